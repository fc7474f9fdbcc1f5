//! The shared memory of traced processes (`probe/include/rtscope/layout.h`) as Rust sees it: same
//! names, same order, same bytes.
//!
//! Invariant: plain integers and arrays of them, so that every bit pattern is a value; padding is
//! spelt out. `tests/rings_layout.rs` compares each offset with what a C compiler says.

#![allow(missing_docs, reason = "layout.h documents every field once")]

pub const MAGIC: u64 = 0x0065_706f_6373_7472;
pub const LAYOUT_VERSION: u32 = 7;
pub const LAYOUT_VERSION_SIZED: u32 = 6;
pub const LAYOUT_VERSION_ONE_SET: u32 = 5;
pub const SETS_MAX: usize = 4;
pub const ID_PADDING: u16 = 0;
pub const SUBBUFFERS_MAX: u64 = 64;
pub const SUBBUFFER_BYTES_MIN: u64 = 4096;
pub const RING_BYTES_MAX: u64 = 1 << 32;
pub const CPUS_MAX: u32 = 4096;
pub const PAYLOAD_BYTES_MAX: usize = 512;

pub const PAIR_WIDTH_NS: u64 = 1000;

pub const CLOCK_COUNTER: u32 = 0;
pub const CLOCK_MONOTONIC: u32 = 1;
pub const MODE_DISCARD: u32 = 0;
pub const MODE_OVERWRITE: u32 = 1;
pub const MODE_BLOCK: u32 = 2;
pub const ENABLED: u8 = 1;
pub const FILTERED: u8 = 2;
pub const LOSSES: usize = 6;

pub const FIELD_END: u8 = 0;
pub const FIELD_U8: u8 = 1;
pub const FIELD_I8: u8 = 5;
pub const FIELD_X8: u8 = 9;
pub const FIELD_F32: u8 = 13;
pub const FIELD_F64: u8 = 14;
pub const FIELD_TEXT: u8 = 15;
pub const FIELD_BYTES: u8 = 16;
pub const FIELD_HIDDEN: u8 = 64;
pub const FIELD_BIG_ENDIAN: u8 = 65;
pub const FIELD_ENUMERATION: u8 = 66;
pub const FIELD_ARRAY: u8 = 67;
pub const FIELD_SEQUENCE: u8 = 68;

pub const ENTRY_EVENT: u32 = 0;
pub const ENTRY_ENUMERATION: u32 = 1;
pub const ENTRY_NOTE: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    pub magic: u64,
    pub version: u32,
    pub header_bytes: u32,
    pub file_bytes: u64,
    pub begin_ns: u64,
    pub begin_counter: u64,
    pub pair_counter: u64,
    pub pair_ns: u64,
    pub pid: i32,
    pub clock: u32,
    pub mode: u32,
    pub rseq: u32,
    pub rings_length: u32,
    pub block_ns: u32,
    pub controls_offset: u64,
    pub switches_offset: u64,
    pub switches_bytes: u64,
    pub filters_offset: u64,
    pub filters_bytes: u64,
    pub objects_offset: u64,
    pub objects_bytes: u64,
    pub table_offset: u64,
    pub table_bytes: u64,
    pub data_offset: u64,
    pub ring_bytes: u64,
    pub subbuffer_bytes: u64,
    pub table_used: u64,
    pub filters_used: u64,
    pub objects_used: u64,
    pub unregistered: u64,
    pub name: [u8; 16],
    pub sets_length: u32,
    pub padding: u32,
    pub session: u64,
    pub more: [Set; SETS_MAX - 1],
    pub room_bytes: [u64; SETS_MAX],
    pub subbuffers: u32,
    pub padding_behind: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Set {
    pub session: u64,
    pub data_offset: u64,
    pub ring_bytes: u64,
    pub subbuffer_bytes: u64,
    pub mode: u32,
    pub padding: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Ring {
    pub head: u64,
    pub owner: u64,
    pub lost: [u64; LOSSES],
    pub tail: u64,
    pub lost_stated: [u64; LOSSES],
    pub absent: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Switch {
    pub enabled: u8,
    pub sets: u8,
    pub id: u16,
    pub filter: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Filters {
    pub at: [u32; SETS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    pub words: u16,
    pub id: u16,
    pub tid: i32,
    pub time: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    pub entry_bytes: u32,
    pub text_bytes: u32,
    pub id: u32,
    pub kind: u32,
    pub switch_offset: u64,
    pub code_address: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Loaded {
    pub entry_bytes: u32,
    pub build_id_bytes: u16,
    pub path_bytes: u16,
    pub begin: u64,
    pub bytes: u64,
    pub bias: u64,
    pub noticed_ns: u64,
}

/// A record of plain integers, so that any bytes are a value of it.
pub trait Plain: Copy + Default {
    /// The first bytes as this type; nothing when they are too few.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let part = bytes.get(..size_of::<Self>())?;
        // SAFETY: the implementors consist of integers without implicit padding, every bit pattern
        // is a value, and the slice has their size; `read_unaligned` needs no alignment.
        Some(unsafe { std::ptr::read_unaligned(part.as_ptr().cast()) })
    }
}

impl Plain for Header {}
impl Plain for Ring {}
impl Plain for Switch {}
impl Plain for Filters {}
impl Plain for Record {}
impl Plain for Entry {}
impl Plain for Loaded {}
impl Plain for u64 {}
