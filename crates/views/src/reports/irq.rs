//! Interrupts and softirqs: how often, how long, how late.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::columns::{
    AVG_DURATION, CPU_ID, DURATION_LOWER, DURATION_UPPER, INTERRUPT, MAX_DURATION, MIN_DURATION,
    TIME_RANGE,
};
use super::durations::Durations;
use super::kind::{Answers, Keeps, Lami, PLAIN, ReportKind};
use super::log::{Bytes, Log, Record, or_none, some};
use super::needs::INTERRUPTS;
use super::options::{ReportOptions, Views};
use super::question::Question;
use super::sched::summary;
use super::spill::Spill;
use super::statistics::Summary;
use super::stretches::sum_ns;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use kernel_state::{Change, Kernel, Topic, Topics};

const COUNT: Column = Column::count("count", "Interrupt count", "interrupts");
const STDEV: Column = Column::new(
    "stdev_duration",
    "Interrupt duration standard deviation",
    Kind::Duration,
);
const LOG: TableClass = TableClass {
    name: "log",
    title: "Interrupt log",
    columns: &[
        TIME_RANGE,
        Column::new("raised_ts", "Raised timestamp", Kind::Time),
        CPU_ID,
        INTERRUPT,
    ],
};
const HARD_STATS: TableClass = TableClass {
    name: "hard-stats",
    title: "Hardware interrupt statistics",
    columns: &[
        INTERRUPT,
        COUNT,
        MIN_DURATION,
        AVG_DURATION,
        MAX_DURATION,
        STDEV,
    ],
};
const SOFT_STATS: TableClass = TableClass {
    name: "soft-stats",
    title: "Software interrupt statistics",
    columns: &[
        INTERRUPT,
        COUNT,
        MIN_DURATION,
        AVG_DURATION,
        MAX_DURATION,
        STDEV,
        Column::count("raise_count", "Interrupt raise count", "interrupt raises"),
        Column::new("min_latency", "Minimum raise latency", Kind::Duration),
        Column::new("avg_latency", "Average raise latency", Kind::Duration),
        Column::new("max_latency", "Maximum raise latency", Kind::Duration),
        Column::new(
            "stdev_latency",
            "Interrupt raise latency standard deviation",
            Kind::Duration,
        ),
    ],
};
const FREQ: TableClass = TableClass {
    name: "freq",
    title: "Interrupt handler duration frequency distribution",
    columns: &[DURATION_LOWER, DURATION_UPPER, COUNT],
};
const SUMMARY: TableClass = TableClass {
    name: "summary",
    title: "Interrupt statistics - summary",
    columns: &[
        TIME_RANGE,
        Column::count("count", "Total interrupt count", "interrupts"),
    ],
};

/// The reports.
pub(super) static KIND: ReportKind = ReportKind {
    name: "irq",
    reports: &[
        (
            "irqstats",
            Views::STATS,
            "interrupts and softirqs, how long and how late",
        ),
        ("irqlog", Views::LOG, "all interrupts and softirqs"),
        (
            "irqfreq",
            Views::FREQ,
            "how their durations are distributed",
        ),
    ],
    classes: &[&LOG, &HARD_STATS, &SOFT_STATS, &FREQ, &SUMMARY],
    needs: &[INTERRUPTS],
    lami: Lami {
        title: "System interrupt analysis",
        description: "Interrupts and softirqs: log, statistics, distribution",
        tags: &["interrupt", "stats", "freq", "log"],
    },
    summary: Keeps::Columns {
        tables: &["hard-stats", "soft-stats"],
        keys: &["count"],
        of_stats: true,
    },
    answers: Answers::Window(|asked| Box::new(Irq::new(asked.options, asked.views))),
    ..PLAIN
};

/// The softirqs (`include/linux/interrupt.h`); what is 5 was `BLOCK_IOPOLL_SOFTIRQ` until 4.5.
const SOFTIRQS: [&str; 10] = [
    "HI_SOFTIRQ",
    "TIMER_SOFTIRQ",
    "NET_TX_SOFTIRQ",
    "NET_RX_SOFTIRQ",
    "BLOCK_SOFTIRQ",
    "BLOCK_IOPOLL_SOFTIRQ",
    "TASKLET_SOFTIRQ",
    "SCHED_SOFTIRQ",
    "HRTIMER_SOFTIRQ",
    "RCU_SOFTIRQ",
];

pub(super) fn softirq_name(vec: i64) -> String {
    let name = usize::try_from(vec).ok().and_then(|vec| SOFTIRQS.get(vec));
    name.map_or_else(|| format!("softirq {vec}"), |name| (*name).to_owned())
}

/// One interrupt, or one softirq.
#[derive(Debug)]
struct Source {
    /// All names that its handlers had.
    names: Vec<String>,
    durations: Summary,
    raises: Summary,
    /// For the distribution.
    all: Durations,
}

impl Source {
    fn new(names: Vec<String>, spill: &Spill) -> Source {
        Source {
            names,
            durations: Summary::default(),
            raises: Summary::default(),
            all: Durations::new(spill),
        }
    }

    fn name(&self) -> String {
        match &self.names[..] {
            [] => "unknown".to_owned(),
            names => names.join(", "),
        }
    }
}

/// A handler that ended.
#[derive(Clone, Copy, Debug)]
struct Handled {
    begin_ns: i64,
    end_ns: i64,
    raised_ns: Option<i64>,
    cpu: u32,
    nr: i64,
    hard: bool,
}

impl Record for Handled {
    fn write(&self, to: &mut Vec<u8>) {
        [self.begin_ns, self.end_ns, or_none(self.raised_ns)].write(to);
        [self.cpu.into(), self.nr, self.hard.into()].write(to);
    }

    fn read(from: &mut Bytes<'_>) -> Handled {
        let [begin_ns, end_ns, raised_ns] = Record::read(from);
        let [cpu, nr, hard] = <[i64; 3]>::read(from);
        Handled {
            begin_ns,
            end_ns,
            raised_ns: some(raised_ns),
            cpu: cpu as u32,
            nr,
            hard: hard != 0,
        }
    }
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct Irq {
    options: Rc<ReportOptions>,
    views: Views,
    hard: BTreeMap<i64, Source>,
    soft: BTreeMap<i64, Source>,
    log: Log<Handled>,
}

impl Irq {
    pub fn new(options: Rc<ReportOptions>, views: Views) -> Irq {
        Irq {
            views,
            hard: BTreeMap::new(),
            soft: BTreeMap::new(),
            log: Log::new(&options.spill),
            options,
        }
    }

    /// A handler ended that ran so long: its thread may have been preempted in it.
    fn handled(&mut self, handled: Handled, duration_ns: i64) {
        let wanted = self.options.wants_cpu(handled.cpu)
            && self.options.wants_duration(duration_ns)
            && self.options.wants_irq(handled.hard, handled.nr);
        if !wanted {
            return;
        }
        if self.views.log {
            self.log.push(handled);
        }
        let (sources, names): (_, fn(i64) -> Vec<String>) = match handled.hard {
            true => (&mut self.hard, |_| Vec::new()),
            false => (&mut self.soft, |vec| vec![softirq_name(vec)]),
        };
        let source = sources.entry(handled.nr);
        let source = source.or_insert_with(|| Source::new(names(handled.nr), &self.options.spill));
        source.durations.add(duration_ns);
        if let Some(raised_ns) = handled.raised_ns {
            source.raises.add(handled.begin_ns - raised_ns);
        }
        if self.views.freq {
            source.all.add(duration_ns);
        }
    }

    fn log(&mut self, span: Span) -> Table {
        let mut table = span.table(&LOG);
        let part = self.log.part();
        let row = |handled: &Handled| {
            let raised = match (handled.hard, handled.raised_ns) {
                (true, _) => Cell::Empty,
                (false, None) => Cell::Unknown,
                (false, Some(ns)) => Cell::Time(ns),
            };
            vec![
                Cell::Range(handled.begin_ns, handled.end_ns),
                raised,
                Cell::Cpu(handled.cpu),
                self.cell(handled.hard, handled.nr),
            ]
        };
        table.rows = part.iter().map(row).collect();
        table
    }

    fn cell(&self, hard: bool, nr: i64) -> Cell {
        let sources = if hard { &self.hard } else { &self.soft };
        let name = sources.get(&nr).map_or_else(String::new, Source::name);
        Cell::Irq { hard, nr, name }
    }

    /// Those that came, by number, hardware first.
    fn sources(&self) -> impl Iterator<Item = (bool, i64, &Source)> {
        let came = |(_, _, source): &(bool, i64, &Source)| source.durations.count > 0;
        let hard = self.hard.iter().map(|(nr, source)| (true, *nr, source));
        let soft = self.soft.iter().map(|(nr, source)| (false, *nr, source));
        hard.chain(soft).filter(came)
    }

    fn stats(&self, span: Span) -> [Table; 2] {
        let (mut hard, mut soft) = (span.table(&HARD_STATS), span.table(&SOFT_STATS));
        for (is_hard, nr, source) in self.sources() {
            let mut row = vec![self.cell(is_hard, nr)];
            row.extend(summary(&source.durations));
            if is_hard {
                hard.rows.push(row);
                continue;
            }
            match source.raises.count {
                0 => row.extend([
                    Cell::Count(0),
                    Cell::Unknown,
                    Cell::Unknown,
                    Cell::Unknown,
                    Cell::Unknown,
                ]),
                _ => row.extend(summary(&source.raises)),
            }
            soft.rows.push(row);
        }
        [hard, soft]
    }

    fn freq(&self, span: Span) -> Vec<Table> {
        let all = self.sources().map(|(_, _, source)| source.durations);
        let shared = self.options.edges_of_all(all);
        let table = |(_, nr, source): (bool, i64, &Source)| {
            let mut table = span.subtable(&FREQ, format!("{} ({nr})", source.name()));
            let edges = shared.unwrap_or_else(|| self.options.edges(&source.durations));
            source.all.fill(edges, &mut table);
            table
        };
        self.sources().map(table).collect()
    }
}

impl Question for Irq {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Handlers])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let end_ns = kernel.now_ns();
        match *change {
            Change::IrqEntry { irq, name } => {
                let source = self.hard.entry(irq);
                let source = source.or_insert_with(|| Source::new(Vec::new(), &self.options.spill));
                let names = &mut source.names;
                if names.iter().any(|known| known.as_bytes() == name) {
                    return;
                }
                let name = event::plain_text(name);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            Change::IrqExit { cpu, irq, begin_ns } => {
                let handled = Handled {
                    begin_ns,
                    end_ns,
                    raised_ns: None,
                    cpu,
                    nr: irq,
                    hard: true,
                };
                self.handled(handled, end_ns - begin_ns);
            }
            Change::SoftirqExit {
                cpu,
                vec,
                raised_ns,
                begin_ns,
                ran,
            } => {
                let handled = Handled {
                    begin_ns,
                    end_ns,
                    raised_ns,
                    cpu,
                    nr: vec,
                    hard: false,
                };
                self.handled(handled, sum_ns(ran));
            }
            _ => {}
        }
    }

    fn finish(&mut self, _kernel: &Kernel, span: Span) -> Vec<Table> {
        let mut tables = Vec::new();
        if self.views.stats {
            tables.extend(self.stats(span));
        }
        if self.views.freq {
            tables.extend(self.freq(span));
        }
        if self.views.log {
            tables.push(self.log(span));
        }
        tables
    }

    fn more(&mut self, _kernel: &Kernel, span: Span) -> Option<Vec<Table>> {
        (!self.log.is_told()).then(|| vec![self.log(span)])
    }
}
