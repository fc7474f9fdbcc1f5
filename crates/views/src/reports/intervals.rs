//! The time between successive events that a filter wants: a tick that is missing shows as a peak.

use std::rc::Rc;

use super::columns::FROM_TO;
use super::durations::Durations;
use super::kind::{Answers, Lami, PLAIN, ReportKind, Told};
use super::log::{Bytes, Log, Record};
use super::options::{ReportOptions, Views};
use super::question::Question;
use super::sched::summary;
use super::statistics::Summary;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use super::time_bins::{Merge, TimeBins};
use super::top::Top;
use kernel_state::{Change, Kernel, Topic, Topics};

const INTERVAL: Column = Column::new("interval", "Interval", Kind::Duration);
const COUNT: Column = Column::count("count", "Intervals", "intervals");
const MIN: Column = Column::new("min_interval", "Shortest", Kind::Duration);
const AVG: Column = Column::new("avg_interval", "Mean", Kind::Duration);
const MAX: Column = Column::new("max_interval", "Longest", Kind::Duration);
const STATS: TableClass = TableClass {
    name: "stats",
    title: "Intervals between successive events",
    columns: &[
        COUNT,
        MIN,
        AVG,
        MAX,
        Column::new("stdev_interval", "Standard deviation", Kind::Duration),
    ],
};
const TOP: TableClass = TableClass {
    name: "top",
    title: "The longest intervals",
    columns: &[
        FROM_TO,
        INTERVAL,
        Column::new("cpu", "CPU of the second", Kind::Cpu),
    ],
};
const LOG: TableClass = TableClass {
    name: "log",
    title: "All intervals",
    columns: TOP.columns,
};
/// One row per stretch of time, for the plot.
const SERIES: TableClass = TableClass {
    name: "series",
    title: "Intervals over time",
    columns: &[FROM_TO, COUNT, MIN, AVG, MAX],
};
const FREQ: TableClass = TableClass {
    name: "freq",
    title: "How intervals are distributed",
    columns: &[
        Column::new("interval_lower", "Interval (lower bound)", Kind::Duration),
        Column::new("interval_upper", "Interval (upper bound)", Kind::Duration),
        COUNT,
    ],
};
/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "intervals",
    reports: &[(
        "intervals",
        Views::ALWAYS,
        "the time between successive events (--filter)",
    )],
    classes: &[&STATS, &TOP, &SERIES, &FREQ, &LOG],
    needs: &[],
    lami: Lami {
        title: "Intervals analysis",
        description: "The time between successive events of a filter",
        tags: &["interval", "stats", "freq", "top", "log"],
    },
    told: &[Told::MatchedEvents],
    answers: Answers::Window(|asked| {
        Box::new(Intervals::new(asked.options, asked.views, asked.begin_ns))
    }),
    ..PLAIN
};

#[derive(Clone, Copy, Debug)]
struct Interval {
    begin_ns: i64,
    end_ns: i64,
    cpu: u32,
}

impl Record for Interval {
    fn write(&self, to: &mut Vec<u8>) {
        [self.begin_ns, self.end_ns, self.cpu.into()].write(to);
    }

    fn read(from: &mut Bytes<'_>) -> Interval {
        let [begin_ns, end_ns, cpu] = Record::read(from);
        Interval {
            begin_ns,
            end_ns,
            cpu: cpu as u32,
        }
    }
}

impl Merge for Summary {
    fn merge(&mut self, next: Summary) {
        self.join(&next);
    }
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct Intervals {
    options: Rc<ReportOptions>,
    views: Views,
    last_ns: Option<i64>,
    all: Summary,
    series: TimeBins<Summary>,
    top: Top<Interval>,
    log: Log<Interval>,
    /// For the distribution.
    durations: Durations,
}

impl Intervals {
    pub fn new(options: Rc<ReportOptions>, views: Views, begin_ns: i64) -> Intervals {
        Intervals {
            top: Top::new(options.limit),
            views,
            last_ns: None,
            all: Summary::default(),
            series: TimeBins::new(begin_ns),
            log: Log::new(&options.spill),
            durations: Durations::new(&options.spill),
            options,
        }
    }

    fn event(&mut self, now_ns: i64, cpu: u32) {
        let Some(begin_ns) = self.last_ns.replace(now_ns) else {
            return;
        };
        let ns = now_ns - begin_ns;
        if !self.options.wants_duration(ns) {
            return;
        }
        let interval = Interval {
            begin_ns,
            end_ns: now_ns,
            cpu,
        };
        self.top.push(ns, self.all.count, interval);
        self.all.add(ns);
        self.series.at(now_ns).add(ns);
        if self.views.log {
            self.log.push(interval);
        }
        if self.views.freq {
            self.durations.add(ns);
        }
    }

    fn series(&self, span: Span) -> Table {
        let mut table = span.table(&SERIES);
        let full = self.series.iter(span.end_ns).filter(|bin| bin.2.count > 0);
        table.rows = full
            .map(|(begin_ns, end_ns, bin)| {
                let mut row = vec![Cell::Range(begin_ns, end_ns)];
                row.extend(summary(bin).into_iter().take(4));
                row
            })
            .collect();
        table
    }

    fn freq(&self, span: Span) -> Table {
        let mut table = span.table(&FREQ);
        self.durations
            .fill(self.options.edges(&self.all), &mut table);
        table
    }

    fn log(&mut self, span: Span) -> Table {
        let mut table = span.table(&LOG);
        table.rows = self.log.part().iter().map(row).collect();
        table
    }
}

fn row(interval: &Interval) -> Vec<Cell> {
    vec![
        Cell::Range(interval.begin_ns, interval.end_ns),
        Cell::Duration(interval.end_ns - interval.begin_ns),
        Cell::Cpu(interval.cpu),
    ]
}

impl Question for Intervals {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Matches])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        if let Change::Matched { cpu } = *change
            && self.options.wants_cpu(cpu)
        {
            self.event(kernel.now_ns(), cpu);
        }
    }

    fn finish(&mut self, _kernel: &Kernel, span: Span) -> Vec<Table> {
        let mut stats = span.table(&STATS);
        stats.rows.push(summary(&self.all));
        let mut top = span.table(&TOP);
        top.rows = self.top.sorted().map(row).collect();
        let mut tables = vec![stats, self.series(span), top];
        if self.views.freq {
            tables.push(self.freq(span));
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
