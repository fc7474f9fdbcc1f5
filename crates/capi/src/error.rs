//! Errors in three parts, as a handle.

use std::any::Any;
use std::ffi::{CString, c_char, c_int};

use event::{Error, ErrorKind};

use crate::handle::{ask, c_string, drop_handle, give_handle, handle};

/// Raised when a program that was built against an older header could misread this library.
pub const ABI_VERSION: c_int = 1;

/// Of a panic: a mistake of ours.
const INTERNAL: c_int = 100;

/// The kinds of errors, as the header calls and numbers them. Numbers stay for ever.
pub const KINDS: &[(&str, c_int)] = &[
    ("RTSCOPE_NOT_FOUND", 1),
    ("RTSCOPE_INVALID_INPUT", 2),
    ("RTSCOPE_CORRUPT", 3),
    ("RTSCOPE_UNSUPPORTED", 4),
    ("RTSCOPE_PERMISSION_DENIED", 5),
    ("RTSCOPE_ALREADY_EXISTS", 6),
    ("RTSCOPE_STORAGE_FULL", 7),
    ("RTSCOPE_INTERRUPTED", 8),
    ("RTSCOPE_IO", 9),
    ("RTSCOPE_INTERNAL", INTERNAL),
];

fn number(kind: ErrorKind) -> c_int {
    match kind {
        ErrorKind::NotFound => 1,
        ErrorKind::InvalidInput => 2,
        ErrorKind::Corrupt => 3,
        ErrorKind::Unsupported => 4,
        ErrorKind::PermissionDenied => 5,
        ErrorKind::AlreadyExists => 6,
        ErrorKind::StorageFull => 7,
        ErrorKind::Interrupted => 8,
        _ => 9,
    }
}

/// An error behind the border.
#[derive(Debug)]
pub struct CError {
    kind: c_int,
    what: CString,
    found: Option<CString>,
    fix: Option<CString>,
    text: CString,
}

impl CError {
    pub(crate) fn new(error: Error) -> CError {
        CError {
            kind: number(error.kind()),
            what: c_string(error.what()),
            found: error.value_found().map(c_string),
            fix: error.fixed_by().map(c_string),
            text: c_string(&format!("{error:#}")),
        }
    }

    pub(crate) fn internal(panic: Box<dyn Any + Send>) -> CError {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        let error = Error::new(ErrorKind::Io, "an internal error of librtscope")
            .found(said.unwrap_or_default())
            .fix("please report it with the trace that it happened on");
        CError {
            kind: INTERNAL,
            ..CError::new(error)
        }
    }
}

/// Gives an error to a caller who wants to know and has none yet: of several calls in a row the
/// first error tells most.
pub(crate) fn give(place: *mut *mut CError, error: CError) {
    // SAFETY: the header asks for a place that holds null or an error, or for no place.
    if let Some(place) = unsafe { place.as_mut() }.filter(|place| place.is_null()) {
        *place = give_handle(error);
    }
}

/// One of `KINDS`; 0 for null.
///
/// # Safety
/// `error` is null or an error that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_error_kind(error: *const CError) -> c_int {
    // SAFETY: as the caller promises.
    ask(0, || Some(unsafe { handle(error) }.ok()?.kind))
}

/// What failed.
///
/// # Safety
/// As [`rtscope_error_kind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_error_what(error: *const CError) -> *const c_char {
    ask(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        Some(unsafe { handle(error) }.ok()?.what.as_ptr())
    })
}

/// The value that was found; null when there is none to show.
///
/// # Safety
/// As [`rtscope_error_kind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_error_found(error: *const CError) -> *const c_char {
    ask(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let error = unsafe { handle(error) }.ok()?;
        Some(error.found.as_ref()?.as_ptr())
    })
}

/// The change that fixes it; null when there is none.
///
/// # Safety
/// As [`rtscope_error_kind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_error_fix(error: *const CError) -> *const c_char {
    ask(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let error = unsafe { handle(error) }.ok()?;
        Some(error.fix.as_ref()?.as_ptr())
    })
}

/// All parts, a line each.
///
/// # Safety
/// As [`rtscope_error_kind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_error_text(error: *const CError) -> *const c_char {
    ask(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        Some(unsafe { handle(error) }.ok()?.text.as_ptr())
    })
}

/// Frees an error; null is none.
///
/// # Safety
/// `error` is null or an error that was not freed, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_error_free(error: *mut CError) {
    // SAFETY: as the caller promises.
    unsafe { drop_handle(error) };
}

pub(crate) fn wrong_size(name: &str, size: usize) -> Error {
    let what = format!("struct {name} is smaller than this library knows it");
    Error::new(ErrorKind::InvalidInput, what)
        .found(format!("size = {size}"))
        .fix("begin with the header's _INIT, which sets the size")
}
