//! `librtscope`: the trace engine behind C functions; `include/rtscope.h` is its manual.
//!
//! # Design constraints
//! - Handles are opaque; structures that cross the border begin with their own size.
//! - No panic crosses the border: it becomes an error of the kind `RTSCOPE_INTERNAL`.
//! - A null pointer where a handle belongs is an error or a zero, never a crash.
//! - The header is kept by hand, because it is read by people; `tests/header.rs` compares each
//!   prototype and each constant with this source.

pub mod border;
pub mod diagnose;
pub mod error;
mod handle;
pub mod table;
pub mod trace;
pub mod walk;
pub mod writer;

use std::ffi::{c_char, c_int};

use error::ABI_VERSION;

/// The version of this interface: [`ABI_VERSION`].
#[unsafe(no_mangle)]
pub extern "C" fn rtscope_abi_version() -> c_int {
    ABI_VERSION
}

/// The version of the library, as text.
#[unsafe(no_mangle)]
pub extern "C" fn rtscope_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
