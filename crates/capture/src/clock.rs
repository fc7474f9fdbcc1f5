//! The two clocks of a trace: CLOCK_MONOTONIC, and its distance to the wall clock.

use std::time::Duration as StdDuration;

use event::{Instant, civil_date};
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

/// When the machine began to run, suspended or not: what counts from then is put on this.
pub(crate) fn boot() -> Instant {
    Instant::from_ns(read_ns(ClockId::Monotonic) - read_ns(ClockId::Boottime))
}

/// What this thread does from some moment on, by the time in which it had a CPU: whoever keeps the
/// machine busy takes nothing away from what it may do.
pub(crate) struct Effort {
    begin_ns: i64,
}

impl Effort {
    pub fn begin() -> Effort {
        Effort {
            begin_ns: read_ns(ClockId::ThreadCPUTime),
        }
    }

    /// What it has taken so far.
    pub fn spent(&self) -> StdDuration {
        let spent_ns = read_ns(ClockId::ThreadCPUTime) - self.begin_ns;
        StdDuration::from_nanos(spent_ns.max(0) as u64)
    }
}

/// `YYYYMMDDThhmmssZ`, in UTC.
pub(crate) fn stamp(wall_ns: i64) -> String {
    let seconds = wall_ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effort_is_what_its_own_thread_does() {
        let effort = Effort::begin();
        let others = std::thread::spawn(|| {
            let effort = Effort::begin();
            while effort.spent() < StdDuration::from_millis(20) {}
        });
        others.join().expect("no panic");
        assert!(effort.spent() < StdDuration::from_millis(20));
    }

    #[test]
    fn a_stamp_is_the_date_in_utc() {
        let check = |seconds: i64, expect: &str| assert_eq!(stamp(seconds * 1_000_000_000), expect);
        check(0, "19700101T000000Z");
        check(951_782_400, "20000229T000000Z");
        check(1_709_251_199, "20240229T235959Z");
        check(1_795_415_580, "20261123T063300Z");
        check(-1, "19691231T235959Z");
    }
}
