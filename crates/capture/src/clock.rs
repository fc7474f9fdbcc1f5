//! The two clocks of a trace: CLOCK_MONOTONIC, and its distance to the wall clock.

use event::Instant;
use rustix::time::{ClockId, clock_gettime};

fn read_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec)
}

/// Now, on CLOCK_MONOTONIC.
pub(crate) fn monotonic() -> Instant {
    Instant::from_ns(read_ns(ClockId::Monotonic))
}

/// Now, on the wall clock, in nanoseconds since 1970.
pub(crate) fn wall_ns() -> i64 {
    read_ns(ClockId::Realtime)
}

/// Wall clock (since 1970, UTC) minus CLOCK_MONOTONIC: the tightest of a few readings.
pub(crate) fn wall_offset_ns() -> i64 {
    let sandwich = |_| {
        let before = read_ns(ClockId::Monotonic);
        let wall = read_ns(ClockId::Realtime);
        let after = read_ns(ClockId::Monotonic);
        (after - before, wall - (before + (after - before) / 2))
    };
    (0..5).map(sandwich).min().map_or(0, |(_, offset)| offset)
}
