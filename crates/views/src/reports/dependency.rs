//! What threads waited for, and who ended it.

use std::rc::Rc;

use super::columns::{LONGEST, LONGEST_RANGE, MEAN, THREAD, TOTAL, WOKEN_BY};
use super::kind::{Answers, Lami, PLAIN, ReportKind, Told};
use super::needs::{SWITCHES, WAKE_UPS};
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::question::Question;
use super::sched::process_cell;
use super::stretches::Stretches;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use kernel_state::{Change, Holder, Kernel, ProcId, Topic, Topics, Waker, sum_up};

const COUNT: Column = Column::count("count", "Times", "waits");
const BLOCKED: TableClass = TableClass {
    name: "blocked",
    title: "What threads waited for",
    columns: &[
        THREAD,
        Column::new("call", "Blocked in", Kind::Syscall),
        WOKEN_BY,
        COUNT,
        TOTAL,
        MEAN,
        LONGEST,
        LONGEST_RANGE,
    ],
};
const CPU: TableClass = TableClass {
    name: "cpu",
    title: "Who had the CPU while threads waited for it",
    columns: &[
        THREAD,
        Column::new("behind", "Who had it", Kind::Process),
        COUNT,
        TOTAL,
        MEAN,
        LONGEST,
        LONGEST_RANGE,
    ],
};
/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "dependency",
    reports: &[(
        "dependency",
        Views::ALWAYS,
        "what threads waited for, and who woke them",
    )],
    classes: &[&BLOCKED, &CPU],
    needs: &[SWITCHES, WAKE_UPS],
    lami: Lami {
        title: "Dependency analysis",
        description: "What threads waited for, and who woke them",
        tags: &["sched", "block"],
    },
    told: &[Told::Queues],
    answers: Answers::Window(|asked| Box::new(Dependency::new(asked.options, asked.begin_ns))),
    ..PLAIN
};

/// A thread, the system call that it was in, and what woke it.
type Blocked = (u32, Option<u32>, Waker);

/// The question over one window.
#[derive(Debug)]
pub(super) struct Dependency {
    options: Rc<ReportOptions>,
    begin_ns: i64,
    blocked: Ordered<Blocked, Stretches>,
    /// A thread, and who had its CPU meanwhile.
    waited: Ordered<(u32, Holder), Stretches>,
    /// Who had it in one wait; its room serves the next one.
    behind: Vec<(Holder, i64)>,
}

impl Dependency {
    pub fn new(options: Rc<ReportOptions>, begin_ns: i64) -> Dependency {
        Dependency {
            options,
            begin_ns,
            blocked: Ordered::default(),
            waited: Ordered::default(),
            behind: Vec::new(),
        }
    }

    /// What ran before the window began is cut off.
    fn waited(
        &mut self,
        kernel: &Kernel,
        id: ProcId,
        cpu: u32,
        (since_ns, until_ns): (i64, i64),
        behind: &[(Holder, i64)],
    ) {
        let span = (since_ns.max(self.begin_ns), until_ns);
        if span.0 > span.1 || !self.wants(kernel, id, cpu, span) {
            return;
        }
        let mut left_ns = span.1 - span.0;
        self.behind.clear();
        for (holder, ns) in behind.iter().rev() {
            let ns = (*ns).min(left_ns);
            left_ns -= ns;
            if ns > 0 {
                self.behind.push((*holder, ns));
            }
        }
        sum_up(&mut self.behind);
        for (holder, ns) in &self.behind {
            let waits = self.waited.entry((id.0, *holder)).or_default();
            waits.add_part(*ns, span);
        }
    }

    /// Whether a block after a thread left `cpu`, or a wait that ended there, is wanted.
    fn wants(&self, kernel: &Kernel, id: ProcId, cpu: u32, (begin_ns, end_ns): (i64, i64)) -> bool {
        let process = kernel.process(id);
        process.tid != 0
            && self.options.wants_cpu(cpu)
            && self.options.wants_process(kernel, process)
            && self.options.wants_duration(end_ns - begin_ns)
    }
}

/// The longest first.
fn by_total<'a, K>(
    waits: &'a Ordered<K, Stretches>,
    options: &ReportOptions,
) -> Vec<(&'a K, &'a Stretches)> {
    let mut rows: Vec<_> = waits.iter().collect();
    rows.sort_by_key(|(_, waits)| std::cmp::Reverse(waits.summary.total_ns));
    if options.limit > 0 {
        rows.truncate(options.limit);
    }
    rows
}

fn holder_cell(kernel: &Kernel, holder: Holder) -> Cell {
    let task = |name: Option<&str>, tid| Cell::Process {
        name: name.map(str::to_owned),
        pid: tid,
        tid,
    };
    match holder {
        Holder::Task(id) => process_cell(kernel, id),
        Holder::Idle => task(Some("idle"), Some(0)),
        Holder::SomeTask => task(None, None),
        Holder::Unknown => Cell::Unknown,
    }
}

impl Question for Dependency {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Waits])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let now_ns = kernel.now_ns();
        match *change {
            Change::Woken {
                process,
                by,
                blocked_since_ns: Some(since_ns),
                ..
            } => {
                let begin_ns = since_ns.max(self.begin_ns);
                let left = kernel.process(process).left_cpu;
                if self.wants(kernel, process, left, (begin_ns, now_ns)) {
                    let call = kernel.process(process).known_call().map(|call| call.call);
                    let waits = self.blocked.entry((process.0, call, by)).or_default();
                    waits.add(begin_ns, now_ns);
                }
            }
            Change::Waited {
                process,
                cpu,
                since_ns,
                until_ns,
                behind,
            } => self.waited(kernel, process, cpu, (since_ns, until_ns), behind),
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        kernel.untold_waits(|id, cpu, waited, behind| {
            self.waited(kernel, id, cpu, waited, behind);
        });
        let mut blocked = span.table(&BLOCKED);
        for ((id, call, by), waits) in by_total(&self.blocked, &self.options) {
            let call = call.map_or(Cell::Empty, |call| {
                Cell::Syscall(kernel.call_name(call).to_owned())
            });
            let by = Cell::Text(kernel.waker_text(*by));
            let mut row = vec![process_cell(kernel, ProcId(*id)), call, by];
            row.push(Cell::Count(waits.summary.count));
            row.extend(waits.cells());
            blocked.rows.push(row);
        }
        let mut cpu = span.table(&CPU);
        for ((id, holder), waits) in by_total(&self.waited, &self.options) {
            let holder = holder_cell(kernel, *holder);
            let mut row = vec![process_cell(kernel, ProcId(*id)), holder];
            row.push(Cell::Count(waits.summary.count));
            row.extend(waits.cells());
            cpu.rows.push(row);
        }
        vec![blocked, cpu]
    }
}
