//! How busy CPUs, interrupts and softirqs were, over time.

use std::rc::Rc;

use super::columns::{LONGEST, LONGEST_RANGE, SHARE, TIME_RANGE, TIMES};
use super::cputop::share;
use super::irq::softirq_name;
use super::kind::{Answers, Lami, PLAIN, ReportKind, Told};
use super::needs::SWITCHES;
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::question::Question;
use super::stretches::Stretches;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use super::time_bins::{Merge, TimeBins};
use kernel_state::{Change, CpuWhat, Kernel, Topic, Topics};

const RESOURCE: Column = Column::new("resource", "Resource", Kind::Text);
const RESOURCES: TableClass = TableClass {
    name: "resources",
    title: "Resources",
    columns: &[
        RESOURCE,
        Column::new("busy", "Busy", Kind::Duration),
        SHARE,
        TIMES,
        LONGEST,
        LONGEST_RANGE,
    ],
};
/// One row per stretch of time and resource, for pictures.
const BUSY: TableClass = TableClass {
    name: "busy",
    title: "Resources over time",
    columns: &[RESOURCE, TIME_RANGE, SHARE],
};
/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "resources",
    reports: &[(
        "resources",
        Views::ALWAYS,
        "how busy CPUs and interrupts were, over time",
    )],
    classes: &[&RESOURCES, &BUSY],
    needs: &[SWITCHES],
    lami: Lami {
        title: "Resources",
        description: "How busy CPUs, interrupts and softirqs were, over time",
        tags: &["cpu", "interrupt", "stats"],
    },
    told: &[Told::Stretches],
    answers: Answers::Window(|asked| Box::new(Resources::new(asked.options, asked.begin_ns))),
    ..PLAIN
};

/// A thing that is busy or not, in the order of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Resource {
    Cpu(u32),
    Irq(i64),
    Softirq(i64),
}

#[derive(Debug, Default)]
struct BusyNs(i64);

impl Merge for BusyNs {
    fn merge(&mut self, next: BusyNs) {
        self.0 += next.0;
    }
}

#[derive(Debug)]
struct Usage {
    busy: Stretches,
    bins: TimeBins<BusyNs>,
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct Resources {
    options: Rc<ReportOptions>,
    begin_ns: i64,
    /// From when to when each CPU was busy without a pause, the last time.
    busy: Ordered<u32, (i64, i64)>,
    all: Ordered<Resource, Usage>,
}

impl Resources {
    pub fn new(options: Rc<ReportOptions>, begin_ns: i64) -> Resources {
        Resources {
            options,
            begin_ns,
            busy: Ordered::default(),
            all: Ordered::default(),
        }
    }

    /// It was busy once, in these stretches.
    fn used(&mut self, resource: Resource, stretches: &[(i64, i64)]) {
        let begin_ns = self.begin_ns;
        let inside = stretches.iter().filter(|(_, to_ns)| *to_ns >= begin_ns);
        let inside = inside.map(|(from_ns, to_ns)| ((*from_ns).max(begin_ns), *to_ns));
        let Some((first_ns, _)) = inside.clone().next() else {
            return;
        };
        let usage = self.all.entry(resource).or_insert_with(|| Usage {
            busy: Stretches::default(),
            bins: TimeBins::new(begin_ns),
        });
        let (mut sum_ns, mut last_ns) = (0, first_ns);
        for (from_ns, to_ns) in inside {
            sum_ns += to_ns - from_ns;
            last_ns = to_ns;
            usage.bins.spread(from_ns, to_ns, |bin, ns| bin.0 += ns);
        }
        usage.busy.add_part(sum_ns, (first_ns, last_ns));
    }

    /// A CPU did something from an instant to another. What it did first is told last.
    fn cpu_stayed(&mut self, cpu: u32, what: CpuWhat, from_ns: i64, until_ns: i64) {
        let is_busy = !matches!(what, CpuWhat::Idle | CpuWhat::Unknown);
        if !is_busy || !self.options.wants_cpu(cpu) {
            return;
        }
        let busy = self.busy.entry(cpu).or_insert((from_ns, from_ns));
        if busy.1 == from_ns {
            busy.1 = until_ns;
            return;
        }
        let (begin_ns, end_ns) = std::mem::replace(busy, (from_ns, until_ns));
        self.used(Resource::Cpu(cpu), &[(begin_ns, end_ns)]);
    }
}

fn name(kernel: &Kernel, resource: Resource) -> String {
    match resource {
        Resource::Cpu(cpu) => format!("CPU {cpu}"),
        Resource::Irq(irq) => match kernel.irq_actions().name(irq) {
            name if name.is_empty() => format!("IRQ {irq}"),
            name => format!("IRQ {irq} {name}"),
        },
        Resource::Softirq(vec) => softirq_name(vec),
    }
}

impl Question for Resources {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Stretches, Topic::Handlers])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let now_ns = kernel.now_ns();
        match *change {
            Change::Stayed {
                cpu,
                what,
                from_ns,
                until_ns,
                ..
            } => self.cpu_stayed(cpu, what, from_ns, until_ns),
            Change::IrqExit { cpu, irq, begin_ns } if self.options.wants_cpu(cpu) => {
                self.used(Resource::Irq(irq), &[(begin_ns, now_ns)]);
            }
            Change::SoftirqExit { cpu, vec, ran, .. } if self.options.wants_cpu(cpu) => {
                self.used(Resource::Softirq(vec), ran);
            }
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        kernel.open_stretches(span.end_ns, |cpu, what, _, from_ns, until_ns| {
            self.cpu_stayed(cpu, what, from_ns, until_ns);
        });
        let busy: Vec<_> = self.busy.iter().map(|(cpu, span)| (*cpu, *span)).collect();
        for (cpu, (begin_ns, end_ns)) in busy {
            self.used(Resource::Cpu(cpu), &[(begin_ns, end_ns)]);
        }
        self.all.sort_unstable_keys();
        let mut resources = span.table(&RESOURCES);
        let mut busy = span.table(&BUSY);
        for (resource, usage) in &self.all {
            let name = name(kernel, *resource);
            let total_ns = usage.busy.total_ns();
            let [longest, longest_range] = usage.busy.longest_cells();
            resources.rows.push(vec![
                Cell::Text(name.clone()),
                Cell::Duration(total_ns),
                Cell::Ratio(share(total_ns, span)),
                Cell::Count(usage.busy.summary.count),
                longest,
                longest_range,
            ]);
            for (begin_ns, end_ns, bin) in usage.bins.iter(span.end_ns) {
                let width = Span { begin_ns, end_ns };
                if bin.0 > 0 {
                    busy.rows.push(vec![
                        Cell::Text(name.clone()),
                        Cell::Range(begin_ns, end_ns),
                        Cell::Ratio(share(bin.0, width)),
                    ]);
                }
            }
        }
        vec![resources, busy]
    }
}
