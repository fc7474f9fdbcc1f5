//! The records of `bpf/context.h`: same names, same order, same bytes.
//!
//! Invariant: plain integers and arrays of them, so that every bit pattern is a value; padding is
//! spelt out. `tests/contexts_layout.rs` compares each offset with what a C compiler says.

#![allow(missing_docs, reason = "bpf/context.h documents every field once")]

use crate::raw::{self, COMM_LENGTH};

pub const COUNTERS: usize = 4;
pub const IDS: usize = 6;
pub const NAMESPACES: usize = 8;
pub const HOST_BYTES: usize = 72;
pub const NO_ID: u32 = 0xffff_ffff;

pub const WANTED_TASK: u32 = 1;
pub const WANTED_VIRTUAL: u32 = 2;
pub const WANTED_ID: u32 = 4;
pub const WANTED_VIRTUAL_ID: u32 = 8;
pub const WANTED_NAMESPACE: u32 = 16;
pub const WANTED_HOST: u32 = 32;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawContextConfig {
    pub wanted: u32,
    pub counters: u32,
    pub cpus: u32,
    pub bytes: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawContext {
    pub time_ns: u64,
    pub lost: u64,
    pub tid: i32,
    pub ppid: i32,
    pub vpid: i32,
    pub vtid: i32,
    pub vppid: i32,
    pub prio: i32,
    pub nice: i32,
    pub pid: i32,
    pub comm: [u8; COMM_LENGTH],
    pub ids: [u32; IDS],
    pub virtual_ids: [u32; IDS],
    pub namespaces: [u32; NAMESPACES],
    pub counters: [u64; COUNTERS],
    pub host: [u8; HOST_BYTES],
}

impl Default for RawContext {
    fn default() -> Self {
        RawContext {
            time_ns: 0,
            lost: 0,
            tid: 0,
            ppid: 0,
            vpid: 0,
            vtid: 0,
            vppid: 0,
            prio: 0,
            nice: 0,
            pid: 0,
            comm: [0; COMM_LENGTH],
            ids: [0; IDS],
            virtual_ids: [0; IDS],
            namespaces: [0; NAMESPACES],
            counters: [0; COUNTERS],
            host: [0; HOST_BYTES],
        }
    }
}

// SAFETY: plain integers without implicit padding; the layout test compares every size.
unsafe impl raw::Plain for RawContextConfig {}
// SAFETY: as above.
unsafe impl raw::Plain for RawContext {}
