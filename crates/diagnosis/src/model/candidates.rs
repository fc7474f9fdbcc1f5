//! The activations that may be late: the worst ones of those that the query asks for.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use event::{Cpu, Instant};

use super::chain::NodeId;
use super::tasks::VersionId;
use crate::query::Query;

/// An activation that may be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub latency_ns: i64,
    /// The wake-up's node.
    pub node: NodeId,
    pub end_ns: i64,
    pub cpu: u32,
    pub version: VersionId,
    pub end: End,
}

/// How an activation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The task came on a CPU.
    Seen,
    /// The same, but its switch was not recorded: it came then at the earliest.
    Inferred,
    /// The task came on a CPU, and may have run before where nothing was recorded.
    Doubtful,
    /// The task still waited at the end of the trace.
    Waiting,
}

/// Keeps as many candidates as the query wants, the worst ones.
pub(super) struct Candidates {
    query: Query,
    /// Latency and number of each, the least late on top.
    order: BinaryHeap<Reverse<(i64, u64)>>,
    kept: HashMap<u64, Candidate>,
    next: u64,
    /// Activations that the query asks for, late or not.
    pub seen: u64,
}

impl Candidates {
    pub fn new(query: Query) -> Self {
        Candidates {
            query,
            order: BinaryHeap::new(),
            kept: HashMap::new(),
            next: 0,
            seen: 0,
        }
    }

    /// Keeps an activation if it lies where the query asks and is late enough.
    pub fn offer(&mut self, candidate: Candidate) {
        let query = &self.query;
        let here = query.cpus.is_empty() || query.cpus.contains(&Cpu(candidate.cpu));
        if !here || !query.range.contains(Instant::from_ns(candidate.end_ns)) {
            return;
        }
        self.seen += 1;
        let latency_ns = candidate.latency_ns;
        if query
            .threshold
            .is_some_and(|threshold| latency_ns < threshold.as_ns())
        {
            return;
        }
        if query.worst > 0 && self.order.len() >= query.worst {
            let least = self
                .order
                .peek()
                .map_or(i64::MIN, |Reverse((least, _))| *least);
            if latency_ns <= least {
                return;
            }
            if let Some(Reverse((_, number))) = self.order.pop() {
                self.kept.remove(&number);
            }
        }
        self.kept.insert(self.next, candidate);
        self.order.push(Reverse((latency_ns, self.next)));
        self.next += 1;
    }

    /// Whether an activation that lasts for so long is one that the query asks for.
    pub fn may_be_late(&self, latency_ns: i64) -> bool {
        let threshold = self.query.threshold;
        threshold.is_none_or(|threshold| latency_ns >= threshold.as_ns())
    }

    /// Those that are kept so far.
    pub fn kept(&self) -> impl Iterator<Item = &Candidate> {
        self.kept.values()
    }

    /// The same, to number their nodes anew.
    pub fn kept_mut(&mut self) -> impl Iterator<Item = &mut Candidate> {
        self.kept.values_mut()
    }

    /// All that were kept, the worst first.
    pub fn into_worst_first(self) -> Vec<Candidate> {
        let mut candidates: Vec<_> = self.kept.into_values().collect();
        candidates.sort_by_key(|candidate| (Reverse(candidate.latency_ns), candidate.end_ns));
        candidates
    }
}
