//! Gaps of a thread that never sleeps, explained by what its CPU did meanwhile.
//!
//! What no event explains while the thread itself had the CPU was taken below the kernel: by the
//! hardware, its firmware (SMI), or a hypervisor. An interrupt costs some time before its first
//! event and after its last: that belongs to it, and is called its edges here; only what is longer
//! than edges can be is put to the account of something below.

use std::collections::BTreeMap;

use event::evidence::StopKind;
use event::{Cpu, Duration, Result, TaskPattern, Tid, TimeRange};
use trace::Trace;

use crate::model::{Model, MomentKind, Slice, What};
use crate::{Query, TaskFilter};

/// What an entry into the kernel and back may cost around the events of one handler: a choice, not
/// a measurement. Where a hypervisor takes part in each interrupt more lies there (about 15 µs on
/// one such machine), and that is the hypervisor's.
const EDGES_MAX: Duration = Duration::from_us(3);

/// A gap to be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where.
    pub cpu: Cpu,
    /// The looking thread there.
    pub tid: Tid,
    /// From one reading of the counter to the next.
    pub range: TimeRange,
}

/// Who took a CPU from the looking thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Taker {
    /// A non-maskable interrupt.
    Nmi,
    /// A hard interrupt, numbered as in [`crate::Step::id`].
    Hardirq {
        /// Its number.
        irq: i32,
        /// Its name, or empty.
        name: String,
    },
    /// A softirq's handler.
    Softirq {
        /// Its vector.
        vector: u32,
    },
    /// Another task; which one is told by name, as threads of one name are one noise.
    Task {
        /// Its name.
        comm: String,
    },
    /// The kernel itself, which let others run or nobody though the looking thread is real-time and
    /// could: the fair server, `kernel.sched_rt_runtime_us`, or a quota.
    Throttled {
        /// The name of the task that ran instead; none where the CPU idled.
        ran: Option<String>,
    },
    /// Nobody: the looking thread was stopped, and whoever had the CPU meanwhile kept nothing from
    /// it.
    Stopped {
        /// By a signal, a tracer or a freezer.
        how: StopKind,
    },
    /// Nothing that the kernel knows of: hardware, firmware or a hypervisor.
    Below,
    /// Not known: not recorded, or lost.
    Unknown,
}

/// A gap and who took it, the longest first. The parts sum to the gap.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedGap {
    /// The gap.
    pub gap: Gap,
    /// Who, and for how long.
    pub parts: Vec<(Taker, Duration)>,
}

impl ExplainedGap {
    /// The largest part.
    pub fn worst(&self) -> Option<&(Taker, Duration)> {
        self.parts.first()
    }
}

/// Explains `gaps` from the events of `trace`.
///
/// # Errors
/// When the trace cannot be read.
pub fn explain_gaps(trace: &Trace, gaps: &[Gap]) -> Result<Vec<ExplainedGap>> {
    let patterns = gaps.iter().map(|gap| TaskPattern::Tid(gap.tid));
    let tasks = TaskFilter {
        patterns: patterns.collect(),
    };
    let query = Query {
        tasks,
        ..Query::default()
    };
    let model = Model::read_whole(trace, &query)?;
    Ok(gaps.iter().map(|gap| explain(&model, gap)).collect())
}

fn explain(model: &Model, gap: &Gap) -> ExplainedGap {
    let mut parts = BTreeMap::new();
    let mut own_ns = 0;
    let mut handlers = 0;
    let mut is_urgent = false;
    let (begin_ns, end_ns) = (gap.range.begin.as_ns(), gap.range.end.as_ns());
    let mut add = |taker: Taker, ns: i64| *parts.entry(taker).or_insert(0) += ns;
    match model.timeline(gap.cpu) {
        Some(timeline) => timeline.slices(begin_ns, end_ns, |slice| {
            let ns = slice.end_ns - slice.begin_ns;
            is_urgent |= is_urgent_looker(model, gap, &slice);
            match taker(model, gap, &slice, is_urgent) {
                Some(taker) => {
                    handlers += 1;
                    add(taker, ns);
                }
                None => own_ns += ns,
            }
        }),
        None => add(Taker::Unknown, end_ns - begin_ns),
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    // The thread had the CPU and did not run: edges of what did, or something below.
    if own_ns > handlers * EDGES_MAX.as_ns() || parts.is_empty() {
        parts.push((Taker::Below, own_ns));
    } else if let Some((_, longest_ns)) = parts.first_mut() {
        *longest_ns += own_ns;
    }
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let parts = parts.into_iter();
    ExplainedGap {
        gap: *gap,
        parts: parts
            .map(|(taker, ns)| (taker, Duration::from_ns(ns)))
            .collect(),
    }
}

/// Whether the looking thread has the CPU in `slice`, and is real-time.
fn is_urgent_looker(model: &Model, gap: &Gap, slice: &Slice) -> bool {
    let version = model.tasks.version(slice.task);
    version.is_some_and(|one| one.tid == gap.tid && one.prio.is_real_time())
}

/// How the looking thread is stopped in `slice`, if it is.
fn stopped(model: &Model, gap: &Gap, slice: &Slice) -> Option<StopKind> {
    let log = model.tasks.log(gap.tid.0, gap.cpu.0);
    let before = log.partition_point(|moment| moment.time_ns <= slice.begin_ns);
    let last = log[..before].last()?;
    last.halted.filter(|_| last.kind == MomentKind::OutBlocked)
}

/// Who had the CPU in `slice`; none for the looking thread itself. Nobody less urgent has it before
/// a real-time one that could run, unless the kernel lets him.
fn taker(model: &Model, gap: &Gap, slice: &Slice, is_urgent: bool) -> Option<Taker> {
    Some(match slice.occupant.what() {
        What::Edge | What::Lost => Taker::Unknown,
        What::Nmi => Taker::Nmi,
        What::Hardirq(irq) => Taker::Hardirq {
            irq,
            name: model.irq_name(irq),
        },
        What::Softirq(vector) => Taker::Softirq { vector },
        What::Task => {
            let Some(version) = model.tasks.version(slice.task) else {
                return Some(Taker::Unknown);
            };
            let task = version.task_ref();
            if task.tid == gap.tid {
                return None;
            }
            if let Some(how) = stopped(model, gap, slice) {
                return Some(Taker::Stopped { how });
            }
            // It never sleeps in its window, and had the CPU when the gap began: only a switch that
            // was seen in it tells of anything.
            if task.tid.is_idle() {
                return Some(match slice.begin_ns > gap.range.begin.as_ns() {
                    true => Taker::Throttled { ran: None },
                    false => Taker::Unknown,
                });
            }
            match is_urgent && slice.occupant.is_throttled() {
                true => Taker::Throttled {
                    ran: Some(task.comm),
                },
                false => Taker::Task { comm: task.comm },
            }
        }
    })
}
