//! Handles: given, asked, taken back. Panics are caught, pointers are checked, texts are ended.

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use event::{Error, ErrorKind, Result};

/// Runs a call that answers `otherwise` when there is nothing to answer.
pub(crate) fn ask<T>(otherwise: T, body: impl FnOnce() -> Option<T>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Some(value)) => value,
        _ => otherwise,
    }
}

/// Drops a handle; null is nothing to drop.
///
/// # Safety
/// `handle` is null or came from [`give_handle`], and nobody uses it any more.
pub(crate) unsafe fn drop_handle<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: as the caller promises.
        let owned = unsafe { Box::from_raw(handle) };
        // A panic while dropping must not cross the border either.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(owned)));
    }
}

/// A handle for C.
pub(crate) fn give_handle<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// A handle from C.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when it is null.
///
/// # Safety
/// `handle` is null, or alive for `'a` and not used elsewhere in a way that `&T` forbids.
pub(crate) unsafe fn handle<'a, T>(handle: *const T) -> Result<&'a T> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(null_pointer)
}

/// A handle from C, to change.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when it is null.
///
/// # Safety
/// `handle` is null, or alive for `'a` and used by nobody else.
pub(crate) unsafe fn handle_mut<'a, T>(handle: *mut T) -> Result<&'a mut T> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_mut() }.ok_or_else(null_pointer)
}

pub(crate) fn null_pointer() -> Error {
    Error::new(ErrorKind::InvalidInput, "a null pointer was given")
        .fix("check what the call before returned")
}

/// A text for C. A zero byte would end it too early: it is left out.
pub(crate) fn c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}
