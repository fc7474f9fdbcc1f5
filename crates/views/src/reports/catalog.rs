//! The reports by name, their tables, and the summary of many windows.

use super::options::{Family, Report, Views};
use super::table::{Cell, Span, Table, TableClass};
use super::window::Tick;
use super::{
    cputop, critical, dependency, flame, futex, hosts, intervals, io, irq, irqs, memtop, periods,
    resources, rtcheck, sched, states, syscalls,
};

/// A report that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// What people type.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// What is asked.
    pub report: Report,
}

const NONE: Views = Views {
    log: false,
    top: false,
    stats: false,
    freq: false,
    usage: false,
};
const LOG: Views = Views { log: true, ..NONE };
const TOP: Views = Views { top: true, ..NONE };
const STATS: Views = Views {
    stats: true,
    ..NONE
};
const FREQ: Views = Views { freq: true, ..NONE };
const USAGE: Views = Views {
    usage: true,
    ..NONE
};

const fn named(name: &'static str, family: Family, views: Views, about: &'static str) -> Named {
    let report = Report { family, views };
    Named {
        name,
        about,
        report,
    }
}

/// All reports, by the names that they have in lttng-analyses.
pub const REPORTS: &[Named] = &[
    named("cputop", Family::Cpu, NONE, "who used the CPUs"),
    named(
        "schedtop",
        Family::Sched,
        TOP,
        "the longest waits from wake-up to switch",
    ),
    named(
        "schedlog",
        Family::Sched,
        LOG,
        "all waits from wake-up to switch",
    ),
    named(
        "schedstats",
        Family::Sched,
        STATS,
        "waits by thread or priority",
    ),
    named(
        "schedfreq",
        Family::Sched,
        FREQ,
        "how waits are distributed",
    ),
    named(
        "irqstats",
        Family::Irq,
        STATS,
        "interrupts and softirqs, how long and how late",
    ),
    named("irqlog", Family::Irq, LOG, "all interrupts and softirqs"),
    named(
        "irqfreq",
        Family::Irq,
        FREQ,
        "how their durations are distributed",
    ),
    named(
        "iousagetop",
        Family::Io,
        USAGE,
        "bytes by process, file, disk and interface",
    ),
    named(
        "iolatencytop",
        Family::Io,
        TOP,
        "the longest requests on files",
    ),
    named(
        "iolatencystats",
        Family::Io,
        STATS,
        "durations of requests on files and disks",
    ),
    named(
        "iolatencyfreq",
        Family::Io,
        FREQ,
        "how their durations are distributed",
    ),
    named("iolog", Family::Io, LOG, "all requests on files"),
    named(
        "memtop",
        Family::Memory,
        NONE,
        "who took and gave back pages",
    ),
    named(
        "syscallstats",
        Family::Syscalls,
        NONE,
        "system calls by thread",
    ),
    named(
        "periodtop",
        Family::Periods,
        TOP,
        "the longest periods (--period)",
    ),
    named("periodlog", Family::Periods, LOG, "all periods"),
    named(
        "periodstats",
        Family::Periods,
        STATS,
        "periods, and how they nest",
    ),
    named(
        "periodfreq",
        Family::Periods,
        FREQ,
        "how their durations are distributed",
    ),
    named(
        "intervals",
        Family::Intervals,
        NONE,
        "the time between successive events (--filter)",
    ),
    named(
        "irqs",
        Family::Irqs,
        NONE,
        "interrupts by CPU: frequency, period, longest",
    ),
    named(
        "states",
        Family::States,
        NONE,
        "what threads and CPUs did with their time",
    ),
    named(
        "resources",
        Family::Resources,
        NONE,
        "how busy CPUs and interrupts were, over time",
    ),
    named(
        "dependency",
        Family::Dependency,
        NONE,
        "what threads waited for, and who woke them",
    ),
    named(
        "criticalpath",
        Family::CriticalPath,
        NONE,
        "what a task's time went to (--procname, --tid)",
    ),
    named(
        "futex",
        Family::Futexes,
        NONE,
        "who waited for whom at futexes",
    ),
    named(
        "rtcheck",
        Family::RtCheck,
        NONE,
        "tasks that get too little CPU in a period (--rt)",
    ),
    named(
        "flamegraph",
        Family::Flame,
        NONE,
        "call stacks and their time, for flamegraph.pl",
    ),
    named(
        "hosts",
        Family::Hosts,
        NONE,
        "packets between hosts, and how far apart their clocks are",
    ),
];

impl Family {
    /// The classes of all tables that reports of this family can have.
    pub fn classes(self) -> &'static [&'static TableClass] {
        match self {
            Family::Cpu => cputop::CLASSES,
            Family::Sched => sched::CLASSES,
            Family::Irq => irq::CLASSES,
            Family::Io => io::CLASSES,
            Family::Memory => memtop::CLASSES,
            Family::Syscalls => syscalls::CLASSES,
            Family::Periods => periods::CLASSES,
            Family::Intervals => intervals::CLASSES,
            Family::Irqs => irqs::CLASSES,
            Family::Dependency => dependency::CLASSES,
            Family::CriticalPath => critical::CLASSES,
            Family::Futexes => futex::CLASSES,
            Family::RtCheck => rtcheck::CLASSES,
            Family::States => states::CLASSES,
            Family::Flame => flame::CLASSES,
            Family::Resources => resources::CLASSES,
            Family::Hosts => hosts::CLASSES,
        }
    }
}

impl Report {
    /// The summary that LAMI wants instead of the tables of many windows; none where it wants
    /// them as they are.
    pub fn summary(&self) -> Option<Summary> {
        let (from, keep): (&[&str], &[usize]) = match self.family {
            Family::Io => (&[], &[]),
            Family::Irq if !self.views.stats => (&[], &[]),
            Family::Irq => (&["hard-stats", "soft-stats"], &[1]),
            Family::Cpu => (&["total"], &[0]),
            Family::Memory | Family::Syscalls => (&["total"], &[0, 1]),
            _ => return None,
        };
        let mut classes = self.family.classes().iter();
        Some(Summary {
            from,
            keep,
            class: classes.find(|class| class.name == "summary").copied(),
            table: None,
        })
    }
}

/// A row of each window, or nothing at all.
#[derive(Debug)]
pub struct Summary {
    /// The tables and their columns that are kept.
    from: &'static [&'static str],
    keep: &'static [usize],
    class: Option<&'static TableClass>,
    table: Option<Table>,
}

impl Summary {
    /// Takes in what was found in the next window.
    pub fn add(&mut self, tick: &Tick) {
        let Some(class) = self.class else { return };
        let span = Span {
            begin_ns: tick.begin_ns,
            end_ns: tick.end_ns,
        };
        let summary = self.table.get_or_insert_with(|| span.table(class));
        summary.end_ns = tick.end_ns;
        let wanted = |table: &&Table| self.from.contains(&table.class.name);
        for table in tick.tables.iter().filter(wanted) {
            for row in &table.rows {
                let kept = self
                    .keep
                    .iter()
                    .filter_map(|place| row.get(*place).cloned());
                let range = Cell::Range(table.begin_ns, table.end_ns);
                summary.rows.push([range].into_iter().chain(kept).collect());
            }
        }
    }

    /// The table; none when there is nothing to say.
    pub fn table(self) -> Option<Table> {
        self.table.filter(|_| !self.from.is_empty())
    }
}
