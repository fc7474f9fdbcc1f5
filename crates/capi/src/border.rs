//! Crossing the border: calls that can fail, and the texts and lists that they take.

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use event::{Error, ErrorKind, Result};

use crate::error::{CError, give};
use crate::handle::null_pointer;

/// Bytes that belong to a handle; not ended by a zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The first; null when there is none at all.
    pub data: *const c_char,
    /// How many.
    pub size: usize,
}

impl Bytes {
    pub(crate) const NONE: Bytes = Bytes {
        data: std::ptr::null(),
        size: 0,
    };
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Bytes {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }
}

/// What a call returns when it fails.
pub(crate) trait Failed {
    fn failed() -> Self;
}

impl<T> Failed for *mut T {
    fn failed() -> Self {
        std::ptr::null_mut()
    }
}

impl Failed for c_int {
    fn failed() -> Self {
        -1
    }
}

impl Failed for i64 {
    fn failed() -> Self {
        -1
    }
}

/// Runs a call that can fail.
pub(crate) fn call<T: Failed>(error: *mut *mut CError, body: impl FnOnce() -> Result<T>) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let failure = match outcome {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => CError::new(failure),
        Err(panic) => CError::internal(panic),
    };
    give(error, failure);
    T::failed()
}

/// A text from C.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when it is null or no UTF-8.
///
/// # Safety
/// `text` is null, or ends with a zero and stays as it is for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return Err(null_pointer());
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| {
        Error::new(ErrorKind::InvalidInput, "a text is not UTF-8")
            .found(format!("{:?}", text.to_string_lossy()))
            .fix("give names and filters as UTF-8")
    })
}

/// A list from C; null is an empty one.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when it is null and not empty.
///
/// # Safety
/// `first` is null or leads to `count` elements that stay as they are for `'a`.
pub(crate) unsafe fn list<'a, T>(first: *const T, count: usize) -> Result<&'a [T]> {
    match (first.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null_pointer()),
        // SAFETY: as the caller promises.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}
