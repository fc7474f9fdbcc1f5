//! What the clocks say, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// The wall clock.
pub(super) fn wall_ns() -> i64 {
    now_ns(ClockId::Realtime)
}

pub(super) fn now_ns(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
