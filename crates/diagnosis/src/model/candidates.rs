//! The activations that may be late: the worst ones of those that the query asks for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use event::evidence::TaskRef;
use event::{Cpu, Duration, Instant, TimeRange};

use super::chain::NodeId;
use super::tasks::{TaskIndex, Tasks, VersionId};
use crate::lengths::Lengths;
use crate::query::{Query, Until};

/// An activation that may be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub latency_ns: i64,
    /// How long it were, had it been woken by the task that had the CPU then: nobody knows.
    pub seems_ns: i64,
    /// What of it was not the task's own run.
    pub others_ns: i64,
    /// The wake-up's node.
    pub node: NodeId,
    pub end_ns: i64,
    pub cpu: u32,
    pub version: VersionId,
    pub end: End,
    /// A switch that led to it was not recorded.
    pub doubtful: bool,
    /// A sleep for others right before, amid a cycle of its task's timer and longer than one.
    pub slept_ns: Option<(i64, i64)>,
}

impl Candidate {
    /// The sleep right before that its task slept through its releases with.
    pub fn slept_before(&self) -> Option<TimeRange> {
        self.slept_ns.map(|(begin_ns, end_ns)| TimeRange {
            begin: Instant::from_ns(begin_ns),
            end: Instant::from_ns(end_ns),
        })
    }
}

/// How an activation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The task was scheduled in.
    Seen,
    /// The same, but its switch was not recorded: it came then at the earliest.
    Inferred,
    /// The task was scheduled in, and may have run before where nothing was recorded.
    Doubtful,
    /// The task still waited at the end of the trace.
    Waiting,
    /// It had done its work.
    Blocked,
    /// It was still at work at the end of the trace.
    Open,
}

/// The worst ones in one order.
#[derive(Default)]
struct Ranking {
    /// Rank and number of each, the least late on top.
    order: BinaryHeap<Reverse<(i64, u64)>>,
    kept: HashMap<u64, Candidate>,
    next: u64,
}

impl Ranking {
    /// Keeps it if it belongs to the `count` first ones; 0: to all.
    fn offer(&mut self, rank: i64, candidate: Candidate, count: usize) {
        if count > 0 && self.order.len() >= count {
            let least = self.order.peek();
            let least = least.map_or(i64::MIN, |Reverse((least, _))| *least);
            if rank <= least {
                return;
            }
            if let Some(Reverse((_, number))) = self.order.pop() {
                self.kept.remove(&number);
            }
        }
        self.kept.insert(self.next, candidate);
        self.order.push(Reverse((rank, self.next)));
        self.next += 1;
    }
}

/// Keeps as many candidates as the query wants, the worst ones.
///
/// Where no task was named, the longest activations may all be those of a task that works for long
/// each time: as many are kept of which others took most. The kernel's own threads are ranked by
/// themselves then, so that they take no place from the user's tasks.
pub(super) struct Candidates {
    query: Query,
    by_latency: Ranking,
    by_others: Option<Ranking>,
    of_kernel: Option<Ranking>,
    /// Activations that the query asks for, late or not.
    pub seen: u64,
    /// Those of them that are late, kept or not.
    pub late: u64,
    /// Those that are late only if the task that had the waker's CPU woke them.
    pub unknown_wakers: u64,
    /// How long those of `seen` were, where that is asked.
    pub lengths: Lengths,
    /// The same as `seen`, by the number of the task's version.
    judged: Vec<u64>,
    /// Waits for a CPU in the start-up of a task: they count where it never sleeps.
    starting: BTreeMap<TaskIndex, Vec<Candidate>>,
}

impl Candidates {
    pub fn new(query: Query) -> Self {
        let is_open = !query.tasks.is_explicit() && query.worst > 0;
        let is_block = query.until == Until::Block;
        Candidates {
            by_latency: Ranking::default(),
            by_others: (is_open && is_block).then(Ranking::default),
            of_kernel: is_open.then(Ranking::default),
            query,
            seen: 0,
            lengths: Lengths::default(),
            late: 0,
            unknown_wakers: 0,
            judged: Vec::new(),
            starting: BTreeMap::new(),
        }
    }

    /// Where the query asks.
    pub fn range(&self) -> TimeRange {
        self.query.range
    }

    /// Whether the query asks for what ends there and then.
    pub fn is_asked_for(&self, cpu: u32, end_ns: i64) -> bool {
        let Query { cpus, range, .. } = &self.query;
        let is_here = cpus.is_empty() || cpus.contains(&Cpu(cpu));
        is_here && range.contains(Instant::from_ns(end_ns))
    }

    /// Keeps an activation if it lies where the query asks and is late enough.
    /// Its task may be one of the kernel's own threads, which is asked where it matters.
    pub fn offer(&mut self, candidate: Candidate, is_kernels: impl FnOnce() -> bool) {
        if !self.is_asked_for(candidate.cpu, candidate.end_ns) {
            return;
        }
        let query = &self.query;
        self.seen += 1;
        if query.lengths {
            let (end, latency) = (candidate.end_ns, candidate.latency_ns);
            self.lengths
                .add(Instant::from_ns(end), Duration::from_ns(latency));
        }
        let place = candidate.version.0 as usize;
        if self.judged.len() <= place {
            self.judged.resize(place + 1, 0);
        }
        self.judged[place] += 1;
        let latency_ns = candidate.latency_ns;
        if query
            .threshold
            .is_some_and(|threshold| latency_ns < threshold.as_ns())
        {
            self.unknown_wakers += u64::from(self.may_be_late(candidate.seems_ns));
            return;
        }
        self.late += 1;
        if let Some(ranking) = self.of_kernel.as_mut().filter(|_| is_kernels()) {
            return ranking.offer(latency_ns, candidate, query.worst);
        }
        self.by_latency.offer(latency_ns, candidate, query.worst);
        if let Some(ranking) = &mut self.by_others {
            ranking.offer(candidate.others_ns, candidate, query.worst);
        }
    }

    /// Keeps a wait of a task in its start-up until it is known whether that ends.
    pub fn hold(&mut self, task: TaskIndex, wait: Candidate) {
        self.starting.entry(task).or_default().push(wait);
    }

    /// A task sleeps: its start-up was one, and nobody's deadline.
    pub fn sleeps(&mut self, task: TaskIndex) {
        if !self.starting.is_empty() {
            self.starting.remove(&task);
        }
    }

    /// Those that are held, of tasks that never slept.
    pub fn take_held(&mut self) -> impl Iterator<Item = Candidate> + use<> {
        std::mem::take(&mut self.starting).into_values().flatten()
    }

    /// How many activations of whom were judged: of each thread the count, the most first.
    pub fn judged(&self, tasks: &Tasks) -> Vec<(TaskRef, u64)> {
        let mut counts: BTreeMap<i32, (VersionId, u64)> = BTreeMap::new();
        let of_versions = (0..).map(VersionId).zip(&self.judged);
        for (version, count) in of_versions.filter(|(_, count)| **count > 0) {
            let Some(tid) = tasks.version(version).map(|version| version.tid.0) else {
                continue;
            };
            let (newest, sum) = counts.entry(tid).or_insert((version, 0));
            *newest = version;
            *sum += count;
        }
        let task =
            |(version, count): (VersionId, u64)| Some((tasks.version(version)?.task_ref(), count));
        let mut judged: Vec<_> = counts.into_values().filter_map(task).collect();
        judged.sort_by_key(|(task, count)| (Reverse(*count), task.tid.0));
        judged
    }

    fn rankings(&self) -> impl Iterator<Item = &Ranking> {
        let further = self.by_others.iter().chain(&self.of_kernel);
        std::iter::once(&self.by_latency).chain(further)
    }

    /// Whether an activation that lasts for so long is one that the query asks for.
    pub fn may_be_late(&self, latency_ns: i64) -> bool {
        let threshold = self.query.threshold;
        threshold.is_none_or(|threshold| latency_ns >= threshold.as_ns())
    }

    /// Whether one that lasts for so long is late by what was asked for.
    pub fn is_over(&self, latency_ns: i64) -> bool {
        let threshold = self.query.threshold;
        threshold.is_some_and(|threshold| latency_ns >= threshold.as_ns())
    }

    /// Those that are kept so far.
    pub fn kept(&self) -> impl Iterator<Item = &Candidate> {
        let ranked = self.rankings().flat_map(|ranking| ranking.kept.values());
        ranked.chain(self.starting.values().flatten())
    }

    /// The same, to number their nodes anew.
    pub fn kept_mut(&mut self) -> impl Iterator<Item = &mut Candidate> {
        let others = self.by_others.iter_mut().chain(&mut self.of_kernel);
        let others = others.flat_map(|ranking| ranking.kept.values_mut());
        let held = self.starting.values_mut().flatten();
        self.by_latency.kept.values_mut().chain(others).chain(held)
    }

    /// All that were kept, the worst first.
    pub fn into_worst_first(self) -> Vec<Candidate> {
        let mut candidates: Vec<_> = self.kept().copied().collect();
        candidates.sort_by_key(|candidate| {
            let Candidate {
                latency_ns,
                end_ns,
                node,
                ..
            } = *candidate;
            (Reverse(latency_ns), end_ns, node.0)
        });
        candidates.dedup();
        candidates
    }
}
