//! The time of one part of a trace: its own clock, and where that lies on the clock of the first.

use event::{Instant, TimeRange};

/// A part's clock and the window that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnTime {
    /// To add to its times, so that they are on the clock of the first part.
    pub shift_ns: i64,
    /// The time that was asked for, in its own time.
    pub window: TimeRange,
}

impl OwnTime {
    /// A part that is the first, or is not placed yet.
    pub fn new(window: TimeRange) -> OwnTime {
        OwnTime {
            shift_ns: 0,
            window,
        }
    }

    /// One of its times on the clock of the first part.
    pub fn shifted(&self, own_ns: i64) -> Instant {
        Instant::from_ns(own_ns.saturating_add(self.shift_ns))
    }

    /// A time of the first part's clock on its own.
    pub fn own_ns(&self, time: Instant) -> i64 {
        time.as_ns().saturating_sub(self.shift_ns)
    }

    /// What of `range` lies in its window, on the clock of the first part.
    pub fn inside(&self, range: TimeRange) -> TimeRange {
        if self.window == TimeRange::ALL {
            return range;
        }
        TimeRange {
            begin: range.begin.max(self.shifted(self.window.begin.as_ns())),
            end: range.end.min(self.shifted(self.window.end.as_ns())),
        }
    }

    /// From the first of its times to the last, which is part of it, as far as they lie in its
    /// window; on the clock of the first part.
    pub fn seen(&self, first_ns: i64, last_ns: i64) -> TimeRange {
        let begin_ns = first_ns.max(self.window.begin.as_ns());
        let end_ns = last_ns.saturating_add(1).min(self.window.end.as_ns());
        TimeRange {
            begin: self.shifted(begin_ns),
            end: self.shifted(end_ns.max(begin_ns)),
        }
    }
}
