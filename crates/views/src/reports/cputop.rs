//! Who used the CPUs: by thread, by CPU, in all.

use std::rc::Rc;

use super::columns::{CPU_ID, PRIO_LIST, PROCESS, TIME_RANGE};
use super::kind::{Answers, Keeps, Lami, PLAIN, ReportKind};
use super::needs::SWITCHES;
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::prios::Prios;
use super::question::Question;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use kernel_state::{Change, Comm, Holder, Kernel, ProcId, Process, Topic, Topics};

const PER_PROCESS: TableClass = TableClass {
    name: "per-process",
    title: "Per-TID top CPU usage",
    columns: &[
        PROCESS,
        Column::count("migrations", "Migration count", "migrations"),
        PRIO_LIST,
        Column::new("usage", "CPU usage", Kind::Ratio),
    ],
};
/// The same with how much is inferred, which the peer does not know.
const PER_PROCESS_GRADED: TableClass = TableClass {
    name: "per-process",
    title: "Per-TID top CPU usage",
    columns: &[
        PROCESS,
        Column::count("migrations", "Migration count", "migrations"),
        PRIO_LIST,
        Column::new("usage", "CPU usage", Kind::Ratio),
        Column::new("inferred", "Of it inferred", Kind::Ratio),
    ],
};
const PER_CPU: TableClass = TableClass {
    name: "per-cpu",
    title: "Per-CPU top CPU usage",
    columns: &[CPU_ID, Column::new("usage", "CPU usage", Kind::Ratio)],
};
const TOTAL: TableClass = TableClass {
    name: "total",
    title: "Total CPU usage",
    columns: &[Column::new("usage", "CPU usage", Kind::Ratio)],
};
const SUMMARY: TableClass = TableClass {
    name: "summary",
    title: "CPU usage - summary",
    columns: &[
        TIME_RANGE,
        Column::new("usage", "Total CPU usage", Kind::Ratio),
    ],
};

/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "cpu",
    reports: &[("cputop", Views::ALWAYS, "who used the CPUs")],
    classes: &[&PER_PROCESS, &PER_CPU, &TOTAL, &SUMMARY],
    needs: &[SWITCHES],
    lami: Lami {
        title: "Top CPU usage",
        description: "Who used the CPUs: by thread, by CPU, in all",
        tags: &["cpu", "top"],
    },
    summary: Keeps::Columns {
        tables: &["total"],
        keys: &["usage"],
        of_stats: false,
    },
    answers: Answers::Window(|asked| Box::new(CpuTop::new(asked.options, asked.begin_ns))),
    ..PLAIN
};

/// The time that a thread had.
#[derive(Debug)]
struct Thread {
    tid: i32,
    comm: Comm,
    total_ns: i64,
    /// At most so much less of it: a switch was not recorded.
    inferred_ns: i64,
    /// It runs since.
    since_ns: Option<i64>,
    migrations: u64,
    prios: Prios,
}

impl Thread {
    fn new(tid: i32, comm: Comm) -> Thread {
        Thread {
            tid,
            comm,
            total_ns: 0,
            inferred_ns: 0,
            since_ns: None,
            migrations: 0,
            prios: Prios::default(),
        }
    }
}

/// The time for which a CPU was busy.
#[derive(Debug)]
struct Busy {
    total_ns: i64,
    since_ns: Option<i64>,
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct CpuTop {
    options: Rc<ReportOptions>,
    begin_ns: i64,
    threads: Ordered<u32, Thread>,
    cpus: Ordered<u32, Busy>,
    /// Some thread had a CPU, nobody knows which.
    some_ns: i64,
}

impl CpuTop {
    pub fn new(options: Rc<ReportOptions>, begin_ns: i64) -> CpuTop {
        CpuTop {
            options,
            begin_ns,
            threads: Ordered::default(),
            cpus: Ordered::default(),
            some_ns: 0,
        }
    }

    /// The idle task uses nothing.
    fn wants(&self, kernel: &Kernel, process: &Process) -> bool {
        process.tid != 0 && self.options.wants_process(kernel, process)
    }

    /// A CPU was had from an instant to another.
    fn ran(
        &mut self,
        kernel: &Kernel,
        cpu: u32,
        (holder, inferred): (Holder, bool),
        (from_ns, until_ns): (i64, i64),
    ) {
        let ns = until_ns - from_ns.max(self.begin_ns);
        if !self.options.wants_cpu(cpu) || ns <= 0 || holder == Holder::Unknown {
            return;
        }
        let wanted = match holder {
            Holder::Task(id) => self.wants(kernel, kernel.process(id)),
            Holder::SomeTask => self.options.wants_all_processes(),
            Holder::Idle | Holder::Unknown => false,
        };
        let busy = self.cpus.entry(cpu).or_insert(Busy {
            total_ns: 0,
            since_ns: None,
        });
        if !wanted {
            return;
        }
        busy.total_ns += ns;
        match holder {
            Holder::Task(id) => {
                let process = kernel.process(id);
                let thread = self.threads.entry(id.0).or_insert_with(|| {
                    let mut thread = Thread::new(process.tid, process.comm);
                    thread.prios.add(process.prio);
                    thread
                });
                thread.total_ns += ns;
                thread.inferred_ns += if inferred { ns } else { 0 };
            }
            _ => self.some_ns += ns,
        }
    }

    /// Who used the CPU, as lttng-analyses counts: whatever the last switch said goes on.
    fn switch(&mut self, kernel: &Kernel, cpu: u32, prev: (ProcId, &[u8]), next: ProcId) {
        if !self.options.wants_cpu(cpu) {
            return;
        }
        let now_ns = kernel.now_ns();
        let (id, next) = (next, kernel.process(next));
        let wanted = self.wants(kernel, next);
        // Who is first seen as he leaves ran since the window began.
        let begin_ns = self.begin_ns;
        let busy = self.cpus.entry(cpu).or_insert(Busy {
            total_ns: 0,
            since_ns: Some(begin_ns),
        });
        if let Some(since_ns) = busy.since_ns {
            busy.total_ns += now_ns - since_ns;
        }
        busy.since_ns = wanted.then_some(now_ns);
        let (prev, prev_comm) = prev;
        let leaving = self.threads.entry(prev.0).or_insert_with(|| Thread {
            since_ns: Some(begin_ns),
            ..Thread::new(kernel.process(prev).tid, Comm::new(prev_comm))
        });
        if let Some(since_ns) = leaving.since_ns.take() {
            leaving.total_ns += now_ns - since_ns;
        }
        if !wanted {
            return;
        }
        let coming = self.threads.entry(id.0).or_insert_with(|| {
            let mut thread = Thread::new(next.tid, next.comm);
            thread.prios.add(next.prio);
            thread
        });
        coming.since_ns = Some(now_ns);
    }

    fn per_process(&self, span: Span) -> Table {
        let graded = !self.options.as_lttng_analyses;
        let mut table = span.table(match graded {
            true => &PER_PROCESS_GRADED,
            false => &PER_PROCESS,
        });
        let share = |thread: &Thread| share(thread.total_ns, span);
        let mut threads: Vec<&Thread> = self.threads.values().collect();
        threads.sort_by(|a, b| share(b).total_cmp(&share(a)));
        for thread in threads {
            if self.options.is_full(table.rows.len()) {
                break;
            }
            table.rows.push(vec![
                Cell::Process {
                    name: Some(thread.comm.text()),
                    pid: None,
                    tid: Some(thread.tid),
                },
                Cell::Count(thread.migrations),
                Cell::Text(thread.prios.to_string()),
                Cell::Ratio(share(thread)),
            ]);
            if graded && let Some(row) = table.rows.last_mut() {
                row.push(Cell::Ratio(self::share(thread.inferred_ns, span)));
            }
        }
        if self.some_ns > 0 {
            table.rows.push(vec![
                Cell::Process {
                    name: None,
                    pid: None,
                    tid: None,
                },
                Cell::Count(0),
                Cell::Text(String::new()),
                Cell::Ratio(self::share(self.some_ns, span)),
                Cell::Ratio(0.0),
            ]);
        }
        table
    }
}

/// The share of the window, 1 for all of it.
pub(super) fn share(ns: i64, span: Span) -> f64 {
    match span.duration_ns() {
        0 => 0.0,
        whole => (ns as f64 * 100.0 / whole as f64) / 100.0,
    }
}

impl Question for CpuTop {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Runs, Topic::Tasks])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        match change {
            Change::Switch {
                cpu,
                prev,
                prev_comm,
                next,
                ..
            } if self.options.as_lttng_analyses => {
                self.switch(kernel, *cpu, (*prev, prev_comm), *next);
            }
            Change::Ran {
                cpu,
                holder,
                from_ns,
                until_ns,
                inferred,
            } if !self.options.as_lttng_analyses => {
                let span = (*from_ns, *until_ns);
                self.ran(kernel, *cpu, (*holder, *inferred), span);
            }
            Change::Migrate { process, cpu } => {
                let (id, process) = (process, kernel.process(*process));
                if self.wants(kernel, process) && self.options.wants_cpu(*cpu) {
                    let thread = self.threads.entry(id.0);
                    thread
                        .or_insert_with(|| Thread::new(process.tid, process.comm))
                        .migrations += 1;
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
        if !self.options.as_lttng_analyses {
            for (cpu, holder, since_ns) in kernel.open_runs() {
                self.ran(kernel, cpu, (holder, false), (since_ns, span.end_ns));
            }
        }
        self.options
            .name_threads(kernel, self.threads.iter_mut(), |thread| &mut thread.comm);
        for thread in self.threads.values_mut() {
            if let Some(since_ns) = thread.since_ns {
                thread.total_ns += span.end_ns - since_ns;
            }
        }
        for busy in self.cpus.values_mut() {
            if let Some(since_ns) = busy.since_ns {
                busy.total_ns += span.end_ns - since_ns;
            }
        }
        self.cpus.sort_unstable_keys();
        let mut per_cpu = span.table(&PER_CPU);
        let mut usage = 0.0;
        for (cpu, busy) in &self.cpus {
            let share = share(busy.total_ns, span);
            usage += share;
            per_cpu.rows.push(vec![Cell::Cpu(*cpu), Cell::Ratio(share)]);
        }
        let mut total = span.table(&TOTAL);
        let cpus = match (self.options.as_lttng_analyses, self.options.cpus.len()) {
            (true, _) => kernel.cpus_seen(),
            (false, 0) => kernel.cpus(),
            (false, asked) => asked,
        };
        if cpus > 0 {
            let usage = usage / cpus as f64;
            total.rows.push(vec![Cell::Ratio(usage)]);
        }
        vec![self.per_process(span), per_cpu, total]
    }
}
