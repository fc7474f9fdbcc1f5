//! From the first wake-up of a thread to the switch that lets it run.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::columns::{DURATION_LOWER, DURATION_UPPER, PRIO_LIST};
use super::durations::Durations;
use super::histogram::Edges;
use super::kind::{Answers, Lami, PLAIN, ReportKind};
use super::log::{Bytes, Log, Record, or_none, some};
use super::needs::{SWITCHES, WAKE_UPS};
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::prios::Prios;
use super::question::Question;
use super::statistics::Summary;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use super::top::Top;
use kernel_state::{Change, Comm, Kernel, ProcId, Process, Topic, Topics};

const WAKES: &[Column] = &[
    Column::new("wakeup_ts", "Wakeup timestamp", Kind::Time),
    Column::new("switch_ts", "Switch timestamp", Kind::Time),
    Column::new("latency", "Scheduling latency", Kind::Duration),
    Column::new("prio", "Priority", Kind::Number),
    Column::new("target_cpu", "Target CPU", Kind::Cpu),
    Column::new("wakee_proc", "Wakee process", Kind::Process),
    Column::new("waker_proc", "Waker process", Kind::Process),
];
const LOG: TableClass = TableClass {
    name: "log",
    title: "Scheduling log",
    columns: WAKES,
};
const TOP: TableClass = TableClass {
    name: "top",
    title: "Scheduling top",
    columns: WAKES,
};
const COUNT: Column = Column::count("count", "Scheduling count", "schedulings");
const MIN: Column = Column::new("min_latency", "Minimum latency", Kind::Duration);
const AVG: Column = Column::new("avg_latency", "Average latency", Kind::Duration);
const MAX: Column = Column::new("max_latency", "Maximum latency", Kind::Duration);
const STDEV: Column = Column::new(
    "stdev_latency",
    "Scheduling latency standard deviation",
    Kind::Duration,
);
const TOTAL_STATS: TableClass = TableClass {
    name: "total_stats",
    title: "Scheduling latency stats (total)",
    columns: &[COUNT, MIN, AVG, MAX, STDEV],
};
const PER_TID_STATS: TableClass = TableClass {
    name: "per_tid_stats",
    title: "Scheduling latency stats (per-TID)",
    columns: &[
        Column::new("process", "Wakee process", Kind::Process),
        COUNT,
        MIN,
        AVG,
        MAX,
        STDEV,
        PRIO_LIST,
    ],
};
const PER_PRIO_STATS: TableClass = TableClass {
    name: "per_prio_stats",
    title: "Scheduling latency stats (per-prio)",
    columns: &[
        Column::new("prio", "Priority", Kind::Number),
        COUNT,
        MIN,
        AVG,
        MAX,
        STDEV,
    ],
};
const FREQ: TableClass = TableClass {
    name: "freq",
    title: "Scheduling latency frequency distribution",
    columns: &[DURATION_LOWER, DURATION_UPPER, COUNT],
};

/// The reports.
pub(super) static KIND: ReportKind = ReportKind {
    name: "sched",
    reports: &[
        (
            "schedtop",
            Views::TOP,
            "the longest waits from wake-up to switch",
        ),
        ("schedlog", Views::LOG, "all waits from wake-up to switch"),
        ("schedstats", Views::STATS, "waits by thread or priority"),
        ("schedfreq", Views::FREQ, "how waits are distributed"),
    ],
    classes: &[
        &LOG,
        &TOP,
        &TOTAL_STATS,
        &PER_TID_STATS,
        &PER_PRIO_STATS,
        &FREQ,
    ],
    needs: &[SWITCHES, WAKE_UPS],
    lami: Lami {
        title: "Scheduling latencies analysis",
        description: "From wake-up to switch: log, top, statistics, distribution",
        tags: &["sched", "stats", "freq", "top", "log"],
    },
    answers: Answers::Window(|asked| Box::new(Sched::new(asked.options, asked.views))),
    ..PLAIN
};

/// A wake-up that came to its switch.
#[derive(Clone, Copy, Debug)]
struct Wake {
    woken_ns: i64,
    switch_ns: i64,
    prio: i32,
    cpu: u32,
    wakee: ProcId,
    waker: Option<ProcId>,
}

impl Record for Wake {
    fn write(&self, to: &mut Vec<u8>) {
        let waker = self.waker.map(|waker| i64::from(waker.0));
        [self.woken_ns, self.switch_ns, or_none(waker)].write(to);
        [self.prio.into(), self.cpu.into(), self.wakee.0.into()].write(to);
    }

    fn read(from: &mut Bytes<'_>) -> Wake {
        let [woken_ns, switch_ns, waker] = Record::read(from);
        let [prio, cpu, wakee] = <[i64; 3]>::read(from);
        Wake {
            woken_ns,
            switch_ns,
            prio: prio as i32,
            cpu: cpu as u32,
            wakee: ProcId(wakee as u32),
            waker: some(waker).map(|waker| ProcId(waker as u32)),
        }
    }
}

/// A thread that was woken, or woke.
#[derive(Debug)]
struct Thread {
    tid: i32,
    comm: Comm,
    prios: Prios,
    latencies: Summary,
}

impl Thread {
    fn new(process: &Process) -> Thread {
        let mut prios = Prios::default();
        prios.add(process.prio);
        Thread {
            tid: process.tid,
            comm: process.comm,
            prios,
            latencies: Summary::default(),
        }
    }
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct Sched {
    options: Rc<ReportOptions>,
    views: Views,
    count: u64,
    /// Those of which it is not certain yet for how long they waited.
    undecided: Vec<Wake>,
    log: Log<Wake>,
    top: Top<Wake>,
    threads: Ordered<u32, Thread>,
    total: Summary,
    by_prio: BTreeMap<i32, Summary>,
    freq_total: Durations,
    /// By id and number, in that order.
    freq_by_tid: BTreeMap<(i32, u32), Durations>,
    freq_by_prio: BTreeMap<i32, Durations>,
}

impl Sched {
    pub fn new(options: Rc<ReportOptions>, views: Views) -> Sched {
        Sched {
            top: Top::new(options.limit),
            views,
            count: 0,
            undecided: Vec::new(),
            log: Log::new(&options.spill),
            threads: Ordered::default(),
            total: Summary::default(),
            by_prio: BTreeMap::new(),
            freq_total: Durations::new(&options.spill),
            freq_by_tid: BTreeMap::new(),
            freq_by_prio: BTreeMap::new(),
            options,
        }
    }

    fn wake(&mut self, kernel: &Kernel, wake: Wake) {
        let wakee = kernel.process(wake.wakee);
        let latency_ns = wake.switch_ns - wake.woken_ns;
        if !self.options.wants_process(kernel, wakee)
            || !self.options.wants_cpu(wake.cpu)
            || !self.options.wants_duration(latency_ns)
        {
            return;
        }
        self.count += 1;
        if self.views.log {
            self.log.push(wake);
        }
        if self.views.top {
            self.top.push(latency_ns, self.count, wake);
        }
        let groups = self.options.groups;
        if self.views.stats {
            self.total.add(latency_ns);
            self.by_prio.entry(wake.prio).or_default().add(latency_ns);
            if let Some(waker) = wake.waker {
                self.threads
                    .entry(waker.0)
                    .or_insert_with(|| Thread::new(kernel.process(waker)));
            }
            let thread = self.threads.entry(wake.wakee.0);
            let thread = thread.or_insert_with(|| Thread::new(wakee));
            thread.latencies.add(latency_ns);
        }
        if self.views.freq {
            let new = || Durations::new(&self.options.spill);
            if groups.total {
                self.freq_total.add(latency_ns);
            }
            if groups.per_tid {
                self.freq_by_tid
                    .entry((wakee.tid, wake.wakee.0))
                    .or_insert_with(new)
                    .add(latency_ns);
            }
            if groups.per_prio {
                self.freq_by_prio
                    .entry(wake.prio)
                    .or_insert_with(new)
                    .add(latency_ns);
            }
        }
    }

    /// The next part of the log, and the top behind its last one.
    fn log_and_top(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        let mut tables = Vec::new();
        if self.views.log {
            let mut table = span.table(&LOG);
            let mut wakes = self.log.part();
            // What was decided late comes late.
            wakes.sort_by_key(|wake| wake.switch_ns);
            table.rows = wakes.iter().map(|wake| row(kernel, wake)).collect();
            tables.push(table);
        }
        if self.views.top && self.log.is_told() {
            let mut table = span.table(&TOP);
            table.rows = self.top.sorted().map(|wake| row(kernel, wake)).collect();
            tables.push(table);
        }
        tables
    }

    fn stats(&self, span: Span, tables: &mut Vec<Table>) {
        let groups = self.options.groups;
        if groups.total {
            let mut table = span.table(&TOTAL_STATS);
            table.rows.push(summary(&self.total));
            tables.push(table);
        }
        if groups.per_tid {
            tables.push(self.per_tid_stats(span));
        }
        if groups.per_prio {
            let mut table = span.table(&PER_PRIO_STATS);
            for (prio, latencies) in &self.by_prio {
                let mut row = vec![Cell::Number(i64::from(*prio))];
                row.extend(summary(latencies));
                table.rows.push(row);
            }
            tables.push(table);
        }
    }

    fn per_tid_stats(&self, span: Span) -> Table {
        let mut table = span.table(&PER_TID_STATS);
        let woken = |thread: &&Thread| thread.latencies.count > 0;
        let mut threads: Vec<_> = self.threads.values().filter(woken).collect();
        threads.sort_by_cached_key(|thread| thread.comm.text().to_lowercase());
        for thread in threads {
            let mut row = vec![Cell::Process {
                name: Some(thread.comm.text()),
                pid: None,
                tid: Some(thread.tid),
            }];
            row.extend(summary(&thread.latencies));
            row.push(Cell::Text(thread.prios.to_string()));
            table.rows.push(row);
        }
        table
    }

    fn freq(&self, span: Span, tables: &mut Vec<Table>) {
        let groups = self.options.groups;
        if groups.total {
            let table = span.table(&FREQ);
            tables.extend(self.distributions([(table, &self.freq_total)].into_iter()));
        }
        if groups.per_tid {
            let named = self.freq_by_tid.iter().map(|((tid, _), durations)| {
                (span.subtable(&FREQ, format!("TID: {tid}")), durations)
            });
            tables.extend(self.distributions(named));
        }
        if groups.per_prio {
            let named = self.freq_by_prio.iter().map(|(prio, durations)| {
                (span.subtable(&FREQ, format!("Priority: {prio}")), durations)
            });
            tables.extend(self.distributions(named));
        }
    }

    fn distributions<'a>(
        &self,
        groups: impl Iterator<Item = (Table, &'a Durations)>,
    ) -> Vec<Table> {
        let groups: Vec<_> = groups.collect();
        let all = groups.iter().map(|(_, durations)| durations.summary);
        let shared = self.options.edges_of_all(all);
        let fill = |(mut table, durations): (Table, &Durations)| {
            let edges = shared.unwrap_or_else(|| self.options.edges(&durations.summary));
            durations.fill(edges, &mut table);
            table
        };
        groups.into_iter().map(fill).collect()
    }
}

impl ReportOptions {
    /// The bins of one distribution.
    pub(super) fn edges(&self, summary: &Summary) -> Edges {
        let us = |ns: i64| ns as f64 / 1000.0;
        Edges {
            min: us(self.min_ns.unwrap_or(summary.min_ns)),
            max: us(self.max_ns.unwrap_or(summary.max_ns)),
            count: self.bins.count,
        }
    }

    /// The bins that all distributions share, if they do.
    pub(super) fn edges_of_all(&self, all: impl Iterator<Item = Summary>) -> Option<Edges> {
        if !self.bins.uniform && !self.bins.series {
            return None;
        }
        let mut whole = Summary::default();
        for summary in all.filter(|summary| summary.count > 0) {
            whole.add(summary.min_ns);
            whole.add(summary.max_ns);
        }
        Some(self.edges(&whole))
    }
}

/// Count, least, mean, greatest and deviation.
pub(super) fn summary(latencies: &Summary) -> Vec<Cell> {
    let mean = match latencies.count {
        0 => Cell::Duration(0),
        _ => Cell::DurationFloat(latencies.mean_ns()),
    };
    vec![
        Cell::Count(latencies.count),
        Cell::Duration(latencies.min_ns),
        mean,
        Cell::Duration(latencies.max_ns),
        Cell::duration_or_unknown(latencies.deviation_ns()),
    ]
}

pub(super) fn process_cell(kernel: &Kernel, id: ProcId) -> Cell {
    let process = kernel.process(id);
    Cell::Process {
        name: Some(process.comm.text()),
        pid: process.pid,
        tid: Some(process.tid),
    }
}

fn row(kernel: &Kernel, wake: &Wake) -> Vec<Cell> {
    vec![
        Cell::Time(wake.woken_ns),
        Cell::Time(wake.switch_ns),
        Cell::Duration(wake.switch_ns - wake.woken_ns),
        Cell::Number(i64::from(wake.prio)),
        Cell::Cpu(wake.cpu),
        process_cell(kernel, wake.wakee),
        wake.waker
            .map_or(Cell::Empty, |waker| process_cell(kernel, waker)),
    ]
}

impl Question for Sched {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Waits, Topic::Tasks])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        match change {
            Change::ScheduledIn {
                cpu,
                process,
                at_ns,
                woken_ns: Some(woken_ns),
                waker,
                lossy,
                inferred,
                open,
                ..
            } => {
                // lttng-analyses knows no losses, and no switches but those that were recorded.
                let wanted = match self.options.as_lttng_analyses {
                    true => !inferred,
                    false => !lossy,
                };
                let wake = Wake {
                    woken_ns: *woken_ns,
                    switch_ns: *at_ns,
                    prio: kernel.process(*process).prio.unwrap_or(0),
                    cpu: *cpu,
                    wakee: *process,
                    waker: *waker,
                };
                match wanted {
                    true if *open => self.undecided.push(wake),
                    true => self.wake(kernel, wake),
                    false => {}
                }
            }
            Change::Settled {
                process,
                at_ns,
                lossy,
                ..
            } => {
                let is_it = |wake: &Wake| wake.wakee == *process && wake.switch_ns == *at_ns;
                if let Some(place) = self.undecided.iter().position(is_it) {
                    let wake = self.undecided.remove(place);
                    if !lossy {
                        self.wake(kernel, wake);
                    }
                }
            }
            Change::Prio { process, prio } => {
                if let Some(thread) = self.threads.get_mut(&process.0) {
                    thread.prios.add(Some(*prio));
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        let mut tables = Vec::new();
        // As far as the window shows it, they have not run before.
        for wake in std::mem::take(&mut self.undecided) {
            self.wake(kernel, wake);
        }
        if self.views.stats {
            self.options
                .name_threads(kernel, self.threads.iter_mut(), |thread| &mut thread.comm);
            self.stats(span, &mut tables);
        }
        if self.views.freq {
            self.freq(span, &mut tables);
        }
        tables.extend(self.log_and_top(kernel, span));
        tables
    }

    fn more(&mut self, kernel: &Kernel, span: Span) -> Option<Vec<Table>> {
        (!self.log.is_told()).then(|| self.log_and_top(kernel, span))
    }
}
