//! What the quotas of control groups keep tasks from while they are recorded. No event tells of it;
//! the kernel counts it for each group, and what a count grew by between two looks is written down.

use std::path::Path;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use ctf::writer::StreamWriter;
use event::{Instant, Result};
use host::groups::Quotas;

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
        })
    }

    /// Whether it is time to look again.
    pub fn is_due(&self) -> bool {
        self.looked.elapsed() >= LOOK_PERIOD
    }

    /// Looks, and writes down what the counts grew by: so many events. Each look takes a while, so
    /// what it tells begins where the one before began.
    pub fn write(&mut self, trace: &KernelTrace, stream: &mut StreamWriter) -> Result<u64> {
        let begin = clock::monotonic();
        let kept = self.quotas.look(begin - self.since);
        let at = clock::monotonic();
        trace.quota(stream, (self.since, at), &kept)?;
        (self.since, self.looked) = (begin, StdInstant::now());
        stream.gap()?;
        Ok(1 + kept.of_threads.len() as u64)
    }
}
