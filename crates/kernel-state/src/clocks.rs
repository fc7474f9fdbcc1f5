//! The clocks of timers that are not the trace's: how far each is ahead, and when it was set.

use event::Duration;

/// How far a timer's clock may be from the trace's to count as the same. Other clocks differ by
/// the time since 1970, or by the time that the machine slept.
const SAME_CLOCK_NS: u64 = 50_000_000;
/// A clock that moves by less was adjusted.
const SET_NS_MIN: i64 = 1_000_000;
/// One that is further away is another clock: TAI is 37 s ahead of the wall clock.
const SET_NS_MAX: i64 = 18_000_000_000;
/// The kernel has three others.
const CLOCKS_MAX: usize = 8;

/// The other clocks as their timers' expiries show them. A timer's address does not tell whose it
/// is: it lies on its task's stack, at another place for each sleep.
#[derive(Debug, Default)]
pub struct OtherClocks {
    /// How far each was ahead of the trace's clock at its last two expiries.
    ahead_ns: Vec<[i64; 2]>,
}

/// What a timer's clock shows as it expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// It is so far ahead of the trace's clock; none where it is the trace's.
    pub ahead_ns: Option<i64>,
    /// By how much it was set forward since the last time. One that is set back makes no timer
    /// late.
    pub set: Option<Duration>,
}

impl OtherClocks {
    /// A timer expires; its clock shows `base_now_ns`, and the trace's `now_ns`.
    pub fn reads(&mut self, base_now_ns: i64, now_ns: i64) -> ClockReading {
        if base_now_ns.abs_diff(now_ns) <= SAME_CLOCK_NS {
            return ClockReading::default();
        }
        let ahead_ns = base_now_ns.saturating_sub(now_ns);
        ClockReading {
            ahead_ns: Some(ahead_ns),
            set: self.set_by(ahead_ns),
        }
    }

    fn set_by(&mut self, ahead_ns: i64) -> Option<Duration> {
        let apart_ns = |last: &[i64; 2]| last[1].abs_diff(ahead_ns);
        let nearest = self.ahead_ns.iter_mut().min_by_key(|last| apart_ns(last));
        let Some(last) = nearest.filter(|last| apart_ns(last) <= SET_NS_MAX as u64) else {
            if self.ahead_ns.len() < CLOCKS_MAX {
                self.ahead_ns.push([ahead_ns; 2]);
            }
            return None;
        };
        // The event comes after the clock was read, sometimes long after: a reading may be too
        // small, and never too large.
        let before_ns = last[0].max(last[1]);
        *last = [last[1], ahead_ns];
        let by_ns = ahead_ns.saturating_sub(before_ns);
        (by_ns >= SET_NS_MIN).then(|| Duration::from_ns(by_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::OtherClocks;

    const WALL_NS: i64 = 1_700_000_000_000_000_000;
    const MS: i64 = 1_000_000;

    fn check(readings_ns: &[i64], expect_ms: &[i64]) {
        let mut clocks = OtherClocks::default();
        let sets = readings_ns.iter().filter_map(|ns| clocks.reads(*ns, 0).set);
        let sets: Vec<_> = sets.map(|by| by.as_ns() / MS).collect();
        assert_eq!(sets, expect_ms, "{readings_ns:?}");
    }

    #[test]
    fn a_clock_that_goes_forward_was_set_and_a_late_reading_or_another_clock_is_no_change() {
        check(&[WALL_NS, WALL_NS, WALL_NS + 60 * MS], &[60]);
        // Set back first: that is believed at the second reading.
        let back_ns = WALL_NS - 60 * MS;
        check(&[WALL_NS, back_ns, back_ns, WALL_NS], &[60]);
        // The host took the CPU between the clock's reading and the event.
        check(&[WALL_NS, WALL_NS - 5 * MS, WALL_NS], &[]);
        check(&[WALL_NS, WALL_NS + MS / 2], &[]);
        let tai_ns = WALL_NS + 37_000 * MS;
        check(&[WALL_NS, tai_ns, WALL_NS, tai_ns + 2 * MS], &[2]);
        check(&[i64::MAX, i64::MIN, WALL_NS, i64::MAX], &[]);
    }
}
