//! What a report is asked: which tables, of what time, of which tasks.

use expr::Expr;
use expr::period::Periods;

use super::code::CodeNames;
use super::histogram::Bins;
use super::spill::Spill;
use event::{TaskPattern, Tid};
use kernel_state::{Comm, Kernel, ProcId, Process, TaskFilter};

/// Which tables of a kind of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Views {
    /// All, in order.
    pub log: bool,
    /// The greatest.
    pub top: bool,
    /// Least, mean, greatest, deviation.
    pub stats: bool,
    /// Frequency distributions.
    pub freq: bool,
    /// Sums by process, file, disk and interface.
    pub usage: bool,
}

impl Views {
    /// Those that a report always has.
    pub(super) const ALWAYS: Views = Views {
        log: false,
        top: false,
        stats: false,
        freq: false,
        usage: false,
    };
    pub(super) const LOG: Views = Views {
        log: true,
        ..Views::ALWAYS
    };
    pub(super) const TOP: Views = Views {
        top: true,
        ..Views::ALWAYS
    };
    pub(super) const STATS: Views = Views {
        stats: true,
        ..Views::ALWAYS
    };
    pub(super) const FREQ: Views = Views {
        freq: true,
        ..Views::ALWAYS
    };
    pub(super) const USAGE: Views = Views {
        usage: true,
        ..Views::ALWAYS
    };

    /// These, and those of `others`.
    pub fn and(self, others: Views) -> Views {
        Views {
            log: self.log || others.log,
            top: self.top || others.top,
            stats: self.stats || others.stats,
            freq: self.freq || others.freq,
            usage: self.usage || others.usage,
        }
    }
}

/// By what wake-ups are grouped, for statistics and distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// All in one.
    pub total: bool,
    /// By thread.
    pub per_tid: bool,
    /// By priority.
    pub per_prio: bool,
}

impl Default for Groups {
    fn default() -> Groups {
        Groups {
            total: false,
            per_tid: true,
            per_prio: false,
        }
    }
}

/// What holds for all reports of a pass. Instants are nanoseconds since 1970 (UTC).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportOptions {
    /// From the first event at or after this. The state is followed from the trace's begin.
    pub begin_ns: Option<i64>,
    /// Up to the last event at or before this.
    pub end_ns: Option<i64>,
    /// A result after each period of this length.
    pub refresh_ns: Option<i64>,
    /// Only on these; empty: on all.
    pub cpus: Vec<u32>,
    /// Only these tasks; empty: all.
    pub tasks: TaskFilter,
    /// Of these, only threads with one of these names, byte for byte; empty: all.
    pub names: Vec<String>,
    /// Of these, only these threads; empty: all.
    pub tids: Vec<i32>,
    /// Only what lasted as long.
    pub min_ns: Option<i64>,
    /// Only what lasted no longer.
    pub max_ns: Option<i64>,
    /// Only requests of as many bytes.
    pub min_size: Option<u64>,
    /// Only requests of no more bytes.
    pub max_size: Option<u64>,
    /// Only these interrupts.
    pub irqs: Vec<i64>,
    /// Only softirqs of these vectors.
    pub softirqs: Vec<i64>,
    /// At most so many rows of a top; zero: all.
    pub limit: usize,
    /// How distributions are cut.
    pub bins: Bins,
    /// How wake-ups are grouped.
    pub groups: Groups,
    /// A result for each of these periods instead of one for all time; what reports
    /// on periods are about.
    pub periods: Periods,
    /// Only periods as long.
    pub min_period_ns: Option<i64>,
    /// Only periods no longer.
    pub max_period_ns: Option<i64>,
    /// Only periods of these names, in tops, statistics and distributions; empty: all.
    pub select: Vec<String>,
    /// Only what is inside periods of this name, in statistics by parent.
    pub aggregate_by: Option<String>,
    /// Statistics and distributions for each value that was kept: a period's name and a capture's.
    pub group_by: Vec<(String, String)>,
    /// A log in which children follow their parents.
    pub by_hierarchy: bool,
    /// The events that the report on intervals is about; none: all.
    pub events: Option<Expr>,
    /// What the real-time check checks.
    pub rt_rules: Vec<RtRule>,
    /// Names functions of applications in call stacks, their locks in the report on futexes.
    pub code: CodeNames,
    /// Names, rows and sums as lttng-analyses 0.6 has them, also where it errs; `docs/reports.md`
    /// lists each difference.
    pub as_lttng_analyses: bool,
    /// Keeps what logs hold beyond their last rows.
    pub spill: Spill,
}

/// A task needs so much of a CPU in each period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtRule {
    /// Its threads.
    pub task: TaskPattern,
    /// The period, above zero, in nanoseconds.
    pub period_ns: i64,
    /// What it needs in each.
    pub needed_ns: i64,
}

impl ReportOptions {
    /// Whether a duration is wanted.
    pub(crate) fn wants_duration(&self, ns: i64) -> bool {
        self.min_ns.is_none_or(|min| ns >= min) && self.max_ns.is_none_or(|max| ns <= max)
    }

    /// Whether a request of this size is wanted; one without a size always is.
    pub(crate) fn wants_size(&self, bytes: Option<i64>) -> bool {
        let Some(bytes) = bytes.and_then(|bytes| u64::try_from(bytes).ok()) else {
            return true;
        };
        self.min_size.is_none_or(|min| bytes >= min) && self.max_size.is_none_or(|max| bytes <= max)
    }

    /// Whether what happens on a CPU is wanted.
    pub(crate) fn wants_cpu(&self, cpu: u32) -> bool {
        self.cpus.is_empty() || self.cpus.contains(&cpu)
    }

    /// Whether a thread is wanted.
    pub(crate) fn wants_process(&self, kernel: &Kernel, process: &Process) -> bool {
        let named = |name: &String| name.as_bytes() == process.comm.bytes();
        let meant = || {
            let tasks = &self.tasks;
            !tasks.is_explicit() || tasks.matches(&kernel.named(process))
        };
        (self.names.is_empty() || self.names.iter().any(named))
            && self.wants_tid(process.tid)
            && meant()
    }

    /// Whether a thread is wanted of which only the id is known.
    pub(crate) fn wants_unseen(&self, tid: i32) -> bool {
        let of_tid = |pattern: &TaskPattern| *pattern == TaskPattern::Tid(Tid(tid));
        let tasks = &self.tasks;
        let meant = !tasks.is_explicit() || tasks.patterns.iter().any(of_tid);
        meant && self.names.is_empty() && self.wants_tid(tid)
    }

    /// Whether all threads are.
    pub(crate) fn wants_all_processes(&self) -> bool {
        !self.tasks.is_explicit() && self.names.is_empty() && self.tids.is_empty()
    }

    /// Whether a thread of this id is wanted.
    pub(crate) fn wants_tid(&self, tid: i32) -> bool {
        self.tids.is_empty() || self.tids.contains(&tid)
    }

    /// Whether an interrupt was asked for, or any when none was.
    pub(crate) fn wants_irq(&self, hard: bool, nr: i64) -> bool {
        let (wanted, others) = match hard {
            true => (&self.irqs, &self.softirqs),
            false => (&self.softirqs, &self.irqs),
        };
        match wanted.is_empty() {
            true => others.is_empty(),
            false => wanted.contains(&nr),
        }
    }

    /// Gives rows of threads, by the numbers of these, the names that threads have: one has one
    /// name in all reports, its last. In lttng-analyses each report has its own.
    pub(crate) fn name_threads<'t, T: 't>(
        &self,
        kernel: &Kernel,
        threads: impl Iterator<Item = (&'t u32, &'t mut T)>,
        name: impl Fn(&mut T) -> &mut Comm,
    ) {
        if !self.as_lttng_analyses {
            threads.for_each(|(id, thread)| *name(thread) = kernel.process(ProcId(*id)).comm);
        }
    }

    /// Whether a top with so many rows is full.
    pub(crate) fn is_full(&self, rows: usize) -> bool {
        self.limit > 0 && rows >= self.limit
    }
}
