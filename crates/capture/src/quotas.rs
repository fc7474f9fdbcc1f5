//! What the quotas of control groups keep tasks from while they are recorded. No event tells of it;
//! the kernel counts it for each group, and what a count grew by between two looks is written down.

use std::path::Path;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use ctf::writer::StreamWriter;
use event::{Instant, Result};
use host::groups::{Kept, Quotas};

use crate::clock;
use crate::kernel_trace::KernelTrace;

/// How often it is looked at the counts.
const LOOK_PERIOD: StdDuration = StdDuration::from_secs(1);

/// Looks at the counts from a recording's begin to its end.
pub(crate) struct QuotaLog {
    quotas: Quotas,
    /// When the last look began.
    since: Instant,
    looked: StdInstant,
    /// What may have been behind the end of the trace before, which has it too.
    carried: Kept,
}

impl QuotaLog {
    /// Begins to look, before the first event, so that all waits are covered; none where the
    /// kernel's ids of tasks are not known.
    pub fn begin() -> Option<QuotaLog> {
        if host::namespace::is_inside() {
            return None;
        }
        let since = clock::monotonic();
        Some(QuotaLog {
            quotas: Quotas::begin(Path::new("/")),
            since,
            looked: StdInstant::now(),
            carried: Kept::default(),
        })
    }

    /// Whether it is time to look again.
    pub fn is_due(&self) -> bool {
        self.looked.elapsed() >= LOOK_PERIOD
    }

    /// Looks, and writes down what the counts grew by: so many events. Each look takes a while, so
    /// what it tells begins where the one before began.
    pub fn write(&mut self, trace: &KernelTrace, stream: &mut StreamWriter) -> Result<u64> {
        self.write_until(trace, stream, Instant::MAX)
    }

    /// The same of a trace that has ended at `until`, where another one begins. What was counted
    /// since then is in both: these are upper bounds.
    pub fn write_until(
        &mut self,
        trace: &KernelTrace,
        stream: &mut StreamWriter,
        until: Instant,
    ) -> Result<u64> {
        let begin = clock::monotonic();
        let mut kept = self.quotas.look(begin - self.since);
        kept.add(&std::mem::take(&mut self.carried));
        let at = clock::monotonic();
        trace.quota(stream, (self.since.min(until), at.min(until)), &kept)?;
        if until < at {
            self.carried = kept.clone();
        }
        (self.since, self.looked) = (begin.min(until), StdInstant::now());
        stream.gap()?;
        Ok(1 + kept.of_threads.len() as u64)
    }
}
