//! The time of which nobody knows who had a CPU: it stands beside every table.

use super::columns::{CPU_ID, SHARE};
use super::cputop::share;
use super::options::ReportOptions;
use super::ordered::Ordered;
use super::table::{Cell, Column, Kind, Span, Table, TableClass, UNKNOWN_TIME};
use kernel_state::{Change, Holder, Kernel, Topic, Topics};

/// The class of the table; its name stands in no report of its own.
static UNKNOWN: TableClass = TableClass {
    name: UNKNOWN_TIME,
    title: "Time of which nobody knows who had the CPU",
    columns: &[
        CPU_ID,
        Column::new("unknown", "Unknown", Kind::Duration),
        SHARE,
    ],
};

/// What nobody knows of one window.
#[derive(Debug, Default)]
pub(super) struct Unknown(Ordered<u32, i64>);

impl Unknown {
    /// What it is told of.
    pub const TOPICS: Topics = Topics::of(&[Topic::Runs]);

    /// Takes in a change of a window that began at `begin_ns`.
    pub fn change(&mut self, begin_ns: i64, change: &Change<'_>) {
        if let Change::Ran {
            cpu,
            holder: Holder::Unknown | Holder::SomeTask,
            from_ns,
            until_ns,
            ..
        } = *change
        {
            self.add(cpu, until_ns - from_ns.max(begin_ns));
        }
    }

    fn add(&mut self, cpu: u32, ns: i64) {
        if ns > 0 {
            *self.0.entry(cpu).or_default() += ns;
        }
    }

    /// The table; none when all is known.
    pub fn table(mut self, kernel: &Kernel, options: &ReportOptions, span: Span) -> Option<Table> {
        for (cpu, holder, since_ns) in kernel.open_runs() {
            if matches!(holder, Holder::Unknown | Holder::SomeTask) {
                self.add(cpu, span.end_ns - since_ns.max(span.begin_ns));
            }
        }
        self.0.sort_unstable_keys();
        let mut table = span.table(&UNKNOWN);
        for (cpu, ns) in self.0.iter().filter(|(cpu, _)| options.wants_cpu(**cpu)) {
            table.rows.push(vec![
                Cell::Cpu(*cpu),
                Cell::Duration(*ns),
                Cell::Ratio(share(*ns, span)),
            ]);
        }
        (!table.rows.is_empty()).then_some(table)
    }
}
