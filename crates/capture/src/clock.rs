//! The two clocks of a trace: CLOCK_MONOTONIC, and its distance to the wall clock.

use std::sync::OnceLock;
use std::time::Duration as StdDuration;

use event::{Instant, civil_date};
use rustix::time::{ClockId, clock_gettime};

fn read_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    let own_ns = time
        .tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec);
    own_ns.saturating_sub(match clock {
        ClockId::Monotonic => ahead_ns()[0],
        ClockId::Boottime => ahead_ns()[1],
        _ => 0,
    })
}

/// How far CLOCK_MONOTONIC and CLOCK_BOOTTIME are ahead of the machine's in our time namespace: the
/// kernel's events and programs' have the machine's.
fn ahead_ns() -> [i64; 2] {
    static AHEAD: OnceLock<[i64; 2]> = OnceLock::new();
    *AHEAD.get_or_init(|| {
        let link = |name: &str| std::fs::read_link(format!("/proc/self/ns/{name}")).ok();
        let text = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        // They are told of the namespace that children will have.
        match link("time") == link("time_for_children") {
            true => offsets(&text),
            false => [0; 2],
        }
    })
}

/// What `timens_offsets` says of both clocks.
fn offsets(text: &str) -> [i64; 2] {
    ["monotonic", "boottime"].map(|clock| {
        let mut words = text.lines().map(str::split_whitespace);
        let words = words.find_map(|mut words| (words.next() == Some(clock)).then_some(words));
        let numbers: Vec<i64> = words.into_iter().flatten().flat_map(str::parse).collect();
        match numbers[..] {
            [seconds, ns] => seconds.saturating_mul(1_000_000_000).saturating_add(ns),
            _ => 0,
        }
    })
}

/// Now, on CLOCK_MONOTONIC of the machine.
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
    fn a_time_namespace_says_how_far_its_clocks_are_ahead() {
        let check = |text: &str, expect: [i64; 2]| assert_eq!(offsets(text), expect, "{text:?}");
        check("monotonic 0 0\nboottime 0 0\n", [0, 0]);
        let both = "monotonic          7         5\nboottime         -2         100\n";
        check(both, [7_000_000_005, -1_999_999_900]);
        check("", [0, 0]);
        check("monotonic x 1\n", [0, 0]);
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
