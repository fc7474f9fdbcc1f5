//! The grid on which absolute sleeps release a task: exactly one period after the other, whatever
//! its work takes. A sleep until an instant beside it is none of its releases: a lock, or a wait
//! for something that is tried again, with a time-out.

/// So many releases tell whether they lie on a grid.
const RELEASES_MIN: usize = 8;
/// So many of the last times between two are remembered.
const GAPS_MAX: usize = 16;
/// Three quarters of the releases of a grid lie no farther beside it than the period by this.
const BESIDE: i64 = 64;
/// A program that adds one period after the other rounds so much at most, and sleeps for nothing
/// else so near to its grid.
const ROUNDED_NS: i64 = 50;
const EXACT_NS: i64 = 1_000;
/// Who computes each instant from the time it is may be kept from that: so far beside is another
/// sleep, as a part of the period.
const FAR: i64 = 8;

/// A sleep that is as long as the period, but for this part of it, is for the next release: who
/// counts its next period from when it is done sleeps for as long, whatever its work takes.
const WHOLE: i64 = 16;

/// The releases of a task, by the instants that it slept for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    last_ns: Option<i64>,
    gaps_ns: Vec<i64>,
    next: usize,
    pace: Option<Pace>,
}

/// How often a grid releases a task, and how far beside it such an instant may lie.
#[derive(Clone, Copy, Debug)]
struct Pace {
    period_ns: i64,
    beside_ns: i64,
}

impl Grid {
    /// A sleep until `due_ns` released the task.
    pub fn released(&mut self, due_ns: i64) {
        let Some(last_ns) = self.last_ns.replace(due_ns) else {
            return;
        };
        match self.gaps_ns.get_mut(self.next) {
            Some(gap_ns) => *gap_ns = due_ns - last_ns,
            None => self.gaps_ns.push(due_ns - last_ns),
        }
        self.next = (self.next + 1) % GAPS_MAX;
        self.pace = self.pace();
    }

    /// Nobody knows when it was released.
    pub fn forget(&mut self) {
        *self = Grid::default();
    }

    /// Whether a sleep until `due_ns` is none of its releases, which lie on a grid.
    pub fn is_beside(&self, due_ns: i64) -> bool {
        let (Some(last_ns), Some(pace)) = (self.last_ns, self.pace) else {
            return false;
        };
        beside_ns(due_ns - last_ns, pace.period_ns) > pace.beside_ns
    }

    /// Whether a sleep until `due_ns`, behind one until `before_ns`, is a release of this grid: it
    /// lies on it, and most of a period after the other.
    pub fn follows(&self, before_ns: i64, due_ns: i64) -> bool {
        let later_ns = due_ns.saturating_sub(before_ns);
        let is_later = |pace: Pace| later_ns >= pace.period_ns - pace.period_ns / FAR;
        self.pace.is_some_and(is_later) && !self.is_beside(due_ns)
    }

    /// Whether a sleep until `due_ns`, which began then, was as long as a period: wherever it lies,
    /// the task goes on from there.
    pub fn is_whole(&self, due_ns: i64, slept_ns: i64) -> bool {
        self.pace.is_some_and(|pace| {
            let longer_ns = due_ns
                .saturating_sub(slept_ns)
                .saturating_sub(pace.period_ns);
            longer_ns.saturating_abs() <= pace.period_ns / WHOLE
        })
    }

    /// The usual time between two, where three quarters of them are multiples of it.
    fn pace(&self) -> Option<Pace> {
        if self.gaps_ns.len() < RELEASES_MIN {
            return None;
        }
        let mut sorted = self.gaps_ns.clone();
        sorted.sort_unstable();
        let period_ns = sorted[sorted.len() / 2];
        let beside = sorted.iter().map(|gap_ns| beside_ns(*gap_ns, period_ns));
        let mut beside: Vec<i64> = beside.collect();
        beside.sort_unstable();
        let most_ns = beside[beside.len() * 3 / 4 - 1];
        (most_ns <= period_ns / BESIDE).then_some(Pace {
            period_ns,
            beside_ns: match most_ns <= ROUNDED_NS {
                true => EXACT_NS,
                false => period_ns / FAR,
            },
        })
    }
}

/// How far a length of time lies beside the next multiple of a period.
fn beside_ns(length_ns: i64, period_ns: i64) -> i64 {
    if period_ns <= 0 || length_ns < period_ns / 2 {
        return i64::MAX;
    }
    let more_ns = length_ns % period_ns;
    more_ns.min(period_ns - more_ns)
}

#[cfg(test)]
mod tests {
    use super::Grid;

    const PERIOD_NS: i64 = 10_000_000;

    #[test]
    fn what_lies_beside_an_exact_grid_is_no_release() {
        let released = |gap_ns: &dyn Fn(i64) -> i64| {
            let mut grid = Grid::default();
            let mut due_ns = 0;
            for turn in 0..=12 {
                grid.released(due_ns);
                due_ns += gap_ns(turn);
            }
            (grid, due_ns - gap_ns(12))
        };
        let (grid, last_ns) = released(&|_| PERIOD_NS);
        let is_beside = |after_ns: i64| grid.is_beside(last_ns + after_ns);
        assert!(is_beside(3_000_000) && is_beside(9_000_000) && is_beside(12_000_000));
        assert!(!is_beside(PERIOD_NS) && !is_beside(2 * PERIOD_NS + 500));
        // It tries again each 5 ms, and takes some time for that.
        assert!(is_beside(PERIOD_NS + 30_000));
        // Who counts its next period from when it is done sleeps as long as ever.
        let done_ns = last_ns + 3_000_000;
        assert!(is_beside(PERIOD_NS + 3_000_000) && grid.is_whole(done_ns + PERIOD_NS, done_ns));
        assert!(!grid.is_whole(done_ns + PERIOD_NS / 2 * 3, done_ns));
        // Who computes each from the time it is has small errors, and is kept from that.
        let (grid, last_ns) = released(&|turn| PERIOD_NS + turn % 2 * 40_000);
        assert!(!grid.is_beside(last_ns + PERIOD_NS + 50_000));
        assert!(!grid.is_beside(last_ns + PERIOD_NS + 600_000));
        assert!(grid.is_beside(last_ns + PERIOD_NS + 2_000_000));
        // Who sleeps for a length of time behind its work has none.
        let (grid, last_ns) = released(&|turn| PERIOD_NS + turn % 3 * 300_000);
        assert!(!grid.is_beside(last_ns + 3_000_000));
        // Nor has who was released a few times only.
        let mut grid = Grid::default();
        (0..4).for_each(|turn| grid.released(turn * PERIOD_NS));
        assert!(!grid.is_beside(33_000_000));
    }
}
