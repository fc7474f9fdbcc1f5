//! The records of `bpf/syscall.h`: same names, same order, same bytes.
//!
//! Invariant: plain integers and arrays of them, so that every bit pattern is a value; padding is
//! spelt out. `tests/syscalls_layout.rs` compares each offset with what a C compiler says.

#![allow(missing_docs, reason = "bpf/syscall.h documents every field once")]

use crate::raw;

pub const ARGUMENTS: usize = 6;
pub const CONTENTS_MAX: usize = 3;
pub const CALLS_MAX: usize = 1024;
pub const TEXT_BYTES: usize = 4096;
pub const BLOCK_BYTES: usize = 128;
pub const UNREADABLE: u16 = 0xffff;

pub const CONTENT_NONE: u8 = 0;
pub const CONTENT_TEXT: u8 = 1;
pub const CONTENT_FIXED: u8 = 2;
pub const CONTENT_LENGTH: u8 = 3;
pub const CONTENT_POINTED: u8 = 4;
pub const CONTENT_RESULT: u8 = 5;
pub const CONTENT_VECTOR: u8 = 6;
pub const CONTENT_MESSAGE: u8 = 7;
pub const CONTENT_NAME: u8 = 8;

pub const WANTED_ENTRY: u8 = 1;
pub const WANTED_EXIT: u8 = 2;

pub const SYSCALL_EXIT: u16 = 1;
pub const SYSCALL_COMPAT: u16 = 2;
pub const SYSCALL_AGAIN: u16 = 4;
pub const SYSCALL_FAULT: u16 = 8;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawContent {
    pub kind: u8,
    pub argument: u8,
    pub length: u8,
    pub size: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawCall {
    pub wanted: u8,
    pub again: u8,
    pub padding: [u8; 2],
    pub entry: [RawContent; CONTENTS_MAX],
    pub exit: [RawContent; CONTENTS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawSyscall {
    pub time_ns: u64,
    pub result: i64,
    pub arguments: [u64; ARGUMENTS],
    pub lost: u64,
    pub tid: i32,
    pub number: i32,
    pub flags: u16,
    pub lengths: [u16; CONTENTS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawSyscallCounters {
    pub lost: u64,
    pub left_out: u64,
}

// SAFETY: plain integers without implicit padding; the layout test compares every size.
unsafe impl raw::Plain for RawCall {}
// SAFETY: as above.
unsafe impl raw::Plain for RawSyscall {}
// SAFETY: as above.
unsafe impl raw::Plain for RawSyscallCounters {}
