//! Whether the urgent task runs at once: as tables and as JSON.

mod json;
mod text;

use event::Duration;
use measure::preempt::Findings;

pub use json::preempt_json;
pub use text::preempt_text;

/// The three experiments, finished or not.
#[derive(Clone, Copy, Debug)]
pub struct Preempt<'a> {
    /// What they found.
    pub findings: &'a Findings,
    /// Whether all were run to their end.
    pub complete: bool,
    /// What a latency must not exceed, when that was asked.
    pub over: Option<Duration>,
    /// How long it took.
    pub elapsed: Duration,
    /// The kernel's release.
    pub kernel: &'a str,
    /// The preemption model in force.
    pub preemption: &'a str,
    /// What makes the figures doubtful here.
    pub warnings: &'a [String],
}

impl Preempt<'_> {
    /// The longest latency of all, of the chain, the locks and the messages.
    pub fn longest(&self) -> Option<Duration> {
        let found = self.findings;
        let steps = found.chains.iter().flat_map(|chain| &chain.steps);
        let locks = found.locks.iter().flat_map(|(_, locks)| locks);
        let latencies = steps.map(|step| &step.latency);
        let latencies = latencies.chain(locks.map(|lock| &lock.wait));
        let latencies = latencies.chain(found.messages.iter().map(|found| &found.latency));
        latencies
            .filter_map(|latency| latency.extremes.map(|extremes| extremes.max))
            .max()
    }

    /// Whether a latency was longer than asked.
    pub fn exceeded(&self) -> bool {
        self.over
            .is_some_and(|over| self.longest().is_some_and(|longest| longest > over))
    }
}
