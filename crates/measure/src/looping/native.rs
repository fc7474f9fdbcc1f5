//! The loop as C has it.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// The loop, here or in a library that was compiled for it.
pub(super) type LoopFunction = unsafe extern "C" fn(run: *mut Loop, stop: *const AtomicBool);

/// The same as `struct rtscope_loop` in npt.c.
#[repr(C)]
pub(super) struct Loop {
    pub iterations: u64,
    pub dropped: u64,
    pub pace: u64,
    pub body: u64,
    pub elapsed: u64,
    pub interruptions: *const AtomicU64,
    pub cpu: u64,
    pub move_ticks: u64,
    pub lost_cpu: u64,
    pub free: Counts,
    pub hit: Counts,
}

/// The same as `struct rtscope_loop_counts` in npt.c.
#[repr(C)]
pub(super) struct Counts {
    pub bins: *mut u64,
    pub bins_length: u64,
    pub counted: u64,
    pub overruns: u64,
    pub overruns_sum: u64,
    pub ticks_max: u64,
}
