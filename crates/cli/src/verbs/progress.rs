//! How far a long walk is, for who sits at the terminal.

use std::time::{Duration, Instant};

use event::TimeRange;
use trace::Trace;

use crate::live::Live;

/// Slow enough to cost nothing.
const INTERVAL: Duration = Duration::from_millis(250);

/// A line on the terminal that says how far the walk is.
pub(super) struct Progress {
    pub live: Live,
    begin: event::Instant,
    whole_ns: f64,
    shown: Instant,
}

impl Progress {
    /// For a walk over `range` of the trace.
    pub fn new(range: TimeRange, trace: &Trace) -> Progress {
        let inside = trace.range().unwrap_or(range);
        let inside = TimeRange {
            begin: inside.begin.max(range.begin),
            end: inside.end.min(range.end),
        };
        Progress {
            live: Live::new(true),
            begin: inside.begin,
            whole_ns: inside.duration().as_ns().max(1) as f64,
            shown: Instant::now(),
        }
    }

    /// Says where the walk is and how many events that made, if it is time.
    pub fn show(&mut self, now: event::Instant, events: u64) {
        if self.shown.elapsed() >= INTERVAL {
            self.shown = Instant::now();
            let share = now.since(self.begin).as_ns() as f64 / self.whole_ns;
            let percent = (share * 100.0).clamp(0.0, 100.0);
            self.live.line(&format!("{percent:.0} %, {events} events"));
        }
    }
}
