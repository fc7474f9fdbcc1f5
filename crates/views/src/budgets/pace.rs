//! How often a timer releases a thread: the releases that pass while it is at work are jobs of
//! their own, though it catches up with them without a sleep.

/// So many times between releases tell how often they come.
const GAPS: usize = 3;

/// The last releases of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    last_ns: Option<i64>,
    gaps_ns: [i64; GAPS],
    seen: usize,
}

impl Pace {
    /// A timer releases the thread that was due at `due_ns`: how often it does, as far as is known.
    /// Where releases have passed before this one, the time since the last says nothing.
    pub fn released(&mut self, due_ns: i64) -> Option<i64> {
        let last_ns = self.last_ns.replace(due_ns)?;
        let gap_ns = due_ns - last_ns;
        let have_passed = |period_ns: i64| 2 * gap_ns > 3 * period_ns;
        if !self.period_ns().is_some_and(have_passed) {
            self.gaps_ns[self.seen % GAPS] = gap_ns;
            self.seen += 1;
        }
        self.period_ns()
    }

    /// The time between two releases, where they come steadily: the last ones differ by an eighth
    /// at most.
    fn period_ns(&self) -> Option<i64> {
        let (least_ns, most_ns) = (self.gaps_ns.iter().min()?, self.gaps_ns.iter().max()?);
        let is_steady = self.seen >= GAPS && 8 * (most_ns - least_ns) <= *most_ns;
        (is_steady && *least_ns > 0).then_some(*least_ns)
    }
}

/// How many releases, one each `period_ns`, passed while an activation of `length_ns` went on, and
/// were served later than `limit_ns`.
pub(super) fn passed(length_ns: i64, period_ns: i64, limit_ns: i64) -> u64 {
    let late_ns = length_ns - limit_ns - 1;
    u64::try_from(late_ns / period_ns).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Pace, passed};

    #[test]
    fn a_pace_is_known_where_the_last_releases_came_steadily() {
        let check = |releases_ns: &[i64], expect: Option<i64>| {
            let mut pace = Pace::default();
            let periods = releases_ns.iter().map(|at_ns| pace.released(*at_ns));
            assert_eq!(periods.last().flatten(), expect, "{releases_ns:?}");
        };
        check(&[10, 20, 30], None);
        check(&[10, 20, 30, 40], Some(10));
        check(&[10, 20, 26, 40], None);
        // It caught up with two of them.
        check(&[10, 20, 30, 40, 70], Some(10));
    }

    #[test]
    fn each_release_that_is_served_later_than_the_limit_has_passed() {
        let check = |length_ns, limit_ns, expect| {
            assert_eq!(passed(length_ns, 10, limit_ns), expect);
        };
        check(9, 5, 0);
        check(15, 5, 0);
        check(16, 5, 1);
        check(143, 5, 13);
        check(3, 5, 0);
    }
}
