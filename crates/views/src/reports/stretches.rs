//! Stretches of time that are summed up: waits, handlers, times in which something was busy.

use super::statistics::Summary;
use super::table::Cell;

/// How many, how long, and which one was the longest, the first of those that tie.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    pub summary: Summary,
    /// From and to, in nanoseconds since 1970 (UTC).
    pub longest: (i64, i64),
}

/// How long stretches are together.
pub(super) fn sum_ns(all: &[(i64, i64)]) -> i64 {
    all.iter()
        .map(|(from_ns, until_ns)| until_ns - from_ns)
        .sum()
}

impl Stretches {
    pub fn add(&mut self, begin_ns: i64, end_ns: i64) {
        let ns = end_ns - begin_ns;
        if self.summary.count == 0 || ns > self.summary.max_ns {
            self.longest = (begin_ns, end_ns);
        }
        self.summary.add(ns);
    }

    /// Adds a part of a stretch, which has no place of its own in it.
    pub fn add_part(&mut self, ns: i64, whole: (i64, i64)) {
        if self.summary.count == 0 || ns > self.summary.max_ns {
            self.longest = whole;
        }
        self.summary.add(ns);
    }

    /// Their sum in nanoseconds.
    pub fn total_ns(&self) -> i64 {
        i64::try_from(self.summary.total_ns).unwrap_or(i64::MAX)
    }

    /// For the columns `TOTAL`, `MEAN`, `LONGEST` and `LONGEST_RANGE`.
    pub fn cells(&self) -> [Cell; 4] {
        let [longest, range] = self.longest_cells();
        let mean = Cell::DurationFloat(self.summary.mean_ns());
        [Cell::Duration(self.total_ns()), mean, longest, range]
    }

    /// For the columns `LONGEST` and `LONGEST_RANGE`.
    pub fn longest_cells(&self) -> [Cell; 2] {
        let (begin_ns, end_ns) = self.longest;
        let range = match self.summary.count {
            0 => Cell::Unknown,
            _ => Cell::Range(begin_ns, end_ns),
        };
        [Cell::Duration(self.summary.max_ns), range]
    }
}
