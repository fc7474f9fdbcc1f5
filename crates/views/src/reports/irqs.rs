//! Interrupts as LTTV shows them: how often, how regular, how long at worst and when.

use std::rc::Rc;

use super::columns::{CPU_ID, INTERRUPT, LONGEST, LONGEST_RANGE};
use super::irq::softirq_name;
use super::kind::{Answers, Lami, PLAIN, ReportKind};
use super::needs::INTERRUPTS;
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::question::Question;
use super::statistics::Summary;
use super::stretches::{Stretches, sum_ns};
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use kernel_state::{Change, Kernel, Topic, Topics};

const IRQS: TableClass = TableClass {
    name: "irqs",
    title: "Interrupts and softirqs by CPU",
    columns: &[
        INTERRUPT,
        CPU_ID,
        Column::count("count", "Count", "interrupts"),
        Column::count("frequency", "Frequency", "Hz"),
        Column::new("avg_period", "Mean period", Kind::Duration),
        Column::new("stdev_period", "Period deviation", Kind::Duration),
        Column::new("max_period", "Longest period", Kind::Duration),
        Column::new("total", "Handling in all", Kind::Duration),
        LONGEST,
        LONGEST_RANGE,
    ],
};
/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "irqs",
    reports: &[(
        "irqs",
        Views::ALWAYS,
        "interrupts by CPU: frequency, period, longest",
    )],
    classes: &[&IRQS],
    needs: &[INTERRUPTS],
    lami: Lami {
        title: "Interrupts by CPU",
        description: "Interrupts and softirqs: frequency, period, longest",
        tags: &["interrupt", "stats"],
    },
    answers: Answers::Window(|asked| Box::new(Irqs::new(asked.options))),
    ..PLAIN
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    soft: bool,
    nr: i64,
    cpu: u32,
}

#[derive(Debug, Default)]
struct Source {
    last_begin_ns: Option<i64>,
    periods: Summary,
    handling: Stretches,
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct Irqs {
    options: Rc<ReportOptions>,
    sources: Ordered<Key, Source>,
}

impl Irqs {
    pub fn new(options: Rc<ReportOptions>) -> Irqs {
        Irqs {
            options,
            sources: Ordered::default(),
        }
    }

    /// A handler ended that ran so long: its thread may have been preempted in it.
    fn handled(&mut self, key: Key, (begin_ns, end_ns): (i64, i64), ran_ns: i64) {
        if !self.options.wants_cpu(key.cpu) || !self.options.wants_irq(!key.soft, key.nr) {
            return;
        }
        let source = self.sources.entry(key).or_default();
        if let Some(last_ns) = source.last_begin_ns.replace(begin_ns) {
            source.periods.add(begin_ns - last_ns);
        }
        source.handling.add_part(ran_ns, (begin_ns, end_ns));
    }
}

fn row(kernel: &Kernel, span: Span, key: &Key, source: &Source) -> Vec<Cell> {
    let name = match key.soft {
        true => softirq_name(key.nr),
        false => kernel.irq_actions().name(key.nr),
    };
    let (handling, periods) = (&source.handling, &source.periods);
    let [longest, longest_range] = handling.longest_cells();
    let seconds = span.duration_ns() as f64 / 1e9;
    let frequency = match seconds > 0.0 {
        true => Cell::Float(handling.summary.count as f64 / seconds),
        false => Cell::Unknown,
    };
    let known = |cell: Cell| match periods.count {
        0 => Cell::Unknown,
        _ => cell,
    };
    vec![
        Cell::Irq {
            hard: !key.soft,
            nr: key.nr,
            name,
        },
        Cell::Cpu(key.cpu),
        Cell::Count(handling.summary.count),
        frequency,
        known(Cell::DurationFloat(periods.mean_ns())),
        Cell::duration_or_unknown(periods.deviation_ns()),
        known(Cell::Duration(periods.max_ns)),
        Cell::Duration(handling.total_ns()),
        longest,
        longest_range,
    ]
}

impl Question for Irqs {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Handlers])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let now_ns = kernel.now_ns();
        match *change {
            Change::IrqExit { cpu, irq, begin_ns } => {
                let soft = false;
                let key = Key { soft, nr: irq, cpu };
                self.handled(key, (begin_ns, now_ns), now_ns - begin_ns);
            }
            Change::SoftirqExit {
                cpu,
                vec,
                begin_ns,
                ran,
                ..
            } => {
                let soft = true;
                let key = Key { soft, nr: vec, cpu };
                self.handled(key, (begin_ns, now_ns), sum_ns(ran));
            }
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        self.sources.sort_unstable_keys();
        let mut table = span.table(&IRQS);
        let rows = self.sources.iter();
        table.rows = rows
            .map(|(key, source)| row(kernel, span, key, source))
            .collect();
        vec![table]
    }
}
