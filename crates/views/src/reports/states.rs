//! What threads and CPUs did with their time.

use std::rc::Rc;

use super::columns::{CPU_ID, THREAD};
use super::kind::{Answers, Lami, PLAIN, ReportKind, Told};
use super::needs::SWITCHES;
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::question::Question;
use super::sched::process_cell;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use kernel_state::{Change, CpuWhat, Holder, Kernel, ProcId, Topic, Topics, WasSoftirq};

const fn duration(key: &'static str, title: &'static str) -> Column {
    Column::new(key, title, Kind::Duration)
}
const THREADS: TableClass = TableClass {
    name: "threads",
    title: "States of threads",
    columns: &[
        THREAD,
        duration("run", "Own run"),
        duration("call", "System calls"),
        duration("interrupted", "Interrupted"),
        duration("waiting", "Waits for a CPU"),
        duration("blocked", "Blocked"),
        duration("unknown", "Unknown"),
        duration("inferred", "Inferred"),
        Column::count("runs", "Runs", "runs"),
    ],
};
const CPUS: TableClass = TableClass {
    name: "cpus",
    title: "States of CPUs",
    columns: &[
        CPU_ID,
        duration("idle", "Idle"),
        duration("run", "Own run"),
        duration("call", "System calls"),
        duration("irq", "Interrupts"),
        duration("softirq", "Softirqs"),
        duration("unknown", "Unknown"),
    ],
};
/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "states",
    reports: &[(
        "states",
        Views::ALWAYS,
        "what threads and CPUs did with their time",
    )],
    classes: &[&THREADS, &CPUS],
    needs: &[SWITCHES],
    lami: Lami {
        title: "State statistics",
        description: "What threads and CPUs did with their time",
        tags: &["cpu", "sched", "stats"],
    },
    told: &[Told::Stretches],
    answers: Answers::Window(|asked| Box::new(States::new(asked.options, asked.begin_ns))),
    ..PLAIN
};

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    run_ns: i64,
    call_ns: i64,
    interrupted_ns: i64,
    waiting_ns: i64,
    blocked_ns: i64,
    /// Of the first three: at most so much less, as a switch was not recorded.
    inferred_ns: i64,
    /// What it did on, and after it left, CPUs that were not asked for.
    elsewhere_ns: i64,
    runs: u64,
}

impl Thread {
    fn known_ns(&self) -> i64 {
        let ran_ns = self.run_ns + self.call_ns + self.interrupted_ns;
        ran_ns + self.waiting_ns + self.blocked_ns
    }

    /// Whether anything of it is on the CPUs that were asked for.
    fn is_there(&self) -> bool {
        self.elsewhere_ns == 0 || self.known_ns() > 0 || self.runs > 0
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    idle_ns: i64,
    run_ns: i64,
    call_ns: i64,
    irq_ns: i64,
    softirq_ns: i64,
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct States {
    options: Rc<ReportOptions>,
    begin_ns: i64,
    threads: Ordered<u32, Thread>,
    cpus: Ordered<u32, Cpu>,
    /// A thread ran, nobody knows which.
    some: Thread,
    /// Waits of which it is not certain yet how long they were.
    undecided: Vec<Undecided>,
}

/// Whose wait, to when, for which CPU, and how much of it is counted.
type Undecided = (ProcId, i64, u32, i64);

impl States {
    pub fn new(options: Rc<ReportOptions>, begin_ns: i64) -> States {
        States {
            options,
            begin_ns,
            threads: Ordered::default(),
            cpus: Ordered::default(),
            some: Thread::default(),
            undecided: Vec::new(),
        }
    }

    fn thread(&mut self, kernel: &Kernel, id: ProcId) -> Option<&mut Thread> {
        let process = kernel.process(id);
        let wanted = process.tid != 0 && self.options.wants_process(kernel, process);
        wanted.then(|| self.threads.entry(id.0).or_default())
    }

    /// How much of what began at `since_ns` lies in the window.
    fn inside_ns(&self, since_ns: i64, now_ns: i64) -> i64 {
        (now_ns - since_ns.max(self.begin_ns)).max(0)
    }

    fn cpu_stayed(
        &mut self,
        kernel: &Kernel,
        cpu: u32,
        what: CpuWhat,
        (holder, inferred): (Holder, bool),
        ns: i64,
    ) {
        if !self.options.wants_cpu(cpu) {
            if let Some(thread) = holder.task().and_then(|id| self.thread(kernel, id)) {
                thread.elsewhere_ns += ns;
            }
            return;
        }
        let states = self.cpus.entry(cpu).or_default();
        match what {
            CpuWhat::Unknown => {}
            CpuWhat::Idle => states.idle_ns += ns,
            CpuWhat::Task => states.run_ns += ns,
            CpuWhat::Call => states.call_ns += ns,
            CpuWhat::Irq => states.irq_ns += ns,
            CpuWhat::Softirq => states.softirq_ns += ns,
        }
        let thread = match holder {
            Holder::Task(id) => self.thread(kernel, id),
            Holder::SomeTask => Some(&mut self.some),
            Holder::Idle | Holder::Unknown => None,
        };
        let Some(thread) = thread else { return };
        thread.inferred_ns += if inferred { ns } else { 0 };
        match what {
            CpuWhat::Unknown | CpuWhat::Idle => {}
            CpuWhat::Task => thread.run_ns += ns,
            CpuWhat::Call => thread.call_ns += ns,
            CpuWhat::Irq | CpuWhat::Softirq => thread.interrupted_ns += ns,
        }
    }

    /// What counts as something else was a softirq.
    fn was_softirq(&mut self, kernel: &Kernel, was: &WasSoftirq, ns: i64) {
        let holder = (Holder::Task(was.process), false);
        self.cpu_stayed(kernel, was.cpu, was.what, holder, -ns);
        self.cpu_stayed(kernel, was.cpu, CpuWhat::Softirq, holder, ns);
    }

    /// What is still open when the window ends.
    fn close(&mut self, kernel: &Kernel, end_ns: i64) {
        kernel.open_stretches(end_ns, |cpu, what, holder, from_ns, until_ns| {
            let ns = self.inside_ns(from_ns, until_ns);
            self.cpu_stayed(kernel, cpu, what, (holder, false), ns);
        });
        for (id, process) in kernel.processes() {
            let waits = process.runnable_since_ns.map(|ns| (ns, false));
            let open = waits.or(process.blocked_since_ns.map(|ns| (ns, true)));
            let known = open.filter(|(since_ns, blocked)| {
                kernel.is_known_since(*since_ns) && (*blocked || !process.doubtful)
            });
            let Some((since_ns, blocked)) = known else {
                continue;
            };
            let ns = self.inside_ns(since_ns, end_ns);
            let on = process.arrived.filter(|_| !blocked);
            self.was_off(
                kernel,
                id,
                blocked,
                on.map_or(process.left_cpu, |on| on.cpu),
                ns,
            );
        }
    }

    /// A thread was blocked after it left `cpu`, or waited for that.
    fn was_off(&mut self, kernel: &Kernel, id: ProcId, blocked: bool, cpu: u32, ns: i64) {
        let is_wanted = self.options.wants_cpu(cpu);
        let Some(thread) = self.thread(kernel, id) else {
            return;
        };
        match (is_wanted, blocked) {
            (false, _) => thread.elsewhere_ns += ns,
            (true, true) => thread.blocked_ns += ns,
            (true, false) => thread.waiting_ns += ns,
        }
    }
}

impl Question for States {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Stretches, Topic::Waits])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let now_ns = kernel.now_ns();
        match *change {
            Change::Stayed {
                cpu,
                what,
                holder,
                inferred,
                from_ns,
                until_ns,
            } => {
                let ns = self.inside_ns(from_ns, until_ns);
                self.cpu_stayed(kernel, cpu, what, (holder, inferred), ns);
            }
            Change::WasSoftirq(ref was) => {
                let ns = self.inside_ns(was.from_ns, was.until_ns);
                self.was_softirq(kernel, was, ns);
            }
            Change::Woken {
                process,
                blocked_since_ns: Some(since_ns),
                ..
            } => {
                let ns = self.inside_ns(since_ns, now_ns);
                let left = kernel.process(process).left_cpu;
                self.was_off(kernel, process, true, left, ns);
            }
            Change::ScheduledIn {
                cpu,
                process,
                at_ns,
                waited_since_ns,
                lossy,
                open,
                ..
            } => {
                let since_ns = waited_since_ns.filter(|_| !lossy);
                let ns = since_ns.map_or(0, |since_ns| self.inside_ns(since_ns, at_ns));
                self.was_off(kernel, process, false, cpu, ns);
                let is_wanted = self.options.wants_cpu(cpu);
                if let Some(thread) = self.thread(kernel, process) {
                    thread.runs += u64::from(is_wanted);
                }
                if open {
                    self.undecided.push((process, at_ns, cpu, ns));
                }
            }
            Change::Settled {
                process,
                at_ns,
                lossy,
                ..
            } => {
                let is_it = |wait: &Undecided| (wait.0, wait.1) == (process, at_ns);
                if let Some(place) = self.undecided.iter().position(is_it) {
                    let (_, _, cpu, ns) = self.undecided.swap_remove(place);
                    if lossy {
                        self.was_off(kernel, process, false, cpu, -ns);
                    }
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        self.close(kernel, span.end_ns);
        let whole_ns = span.duration_ns();
        let unknown = |known_ns: i64| Cell::Duration((whole_ns - known_ns).max(0));
        let mut threads = span.table(&THREADS);
        let there = self.threads.iter().filter(|(_, thread)| thread.is_there());
        let mut rows: Vec<_> = there.collect();
        rows.sort_by_key(|(_, thread)| -(thread.run_ns + thread.call_ns));
        let nobody = Cell::Process {
            name: None,
            pid: None,
            tid: None,
        };
        let rows = rows.into_iter();
        let mut rows: Vec<_> = rows
            .map(|(id, thread)| (process_cell(kernel, ProcId(*id)), thread))
            .collect();
        if self.some.known_ns() > 0 && self.options.wants_all_processes() {
            rows.push((nobody, &self.some));
        }
        for (cell, thread) in rows {
            if self.options.is_full(threads.rows.len()) {
                break;
            }
            threads.rows.push(vec![
                cell,
                Cell::Duration(thread.run_ns),
                Cell::Duration(thread.call_ns),
                Cell::Duration(thread.interrupted_ns),
                Cell::Duration(thread.waiting_ns),
                Cell::Duration(thread.blocked_ns),
                unknown(thread.known_ns() + thread.elsewhere_ns),
                Cell::Duration(thread.inferred_ns),
                Cell::Count(thread.runs),
            ]);
        }
        let mut cpus = span.table(&CPUS);
        self.cpus.sort_unstable_keys();
        for (cpu, states) in &self.cpus {
            let busy_ns = states.run_ns + states.call_ns + states.irq_ns + states.softirq_ns;
            cpus.rows.push(vec![
                Cell::Cpu(*cpu),
                Cell::Duration(states.idle_ns),
                Cell::Duration(states.run_ns),
                Cell::Duration(states.call_ns),
                Cell::Duration(states.irq_ns),
                Cell::Duration(states.softirq_ns),
                unknown(states.idle_ns + busy_ns),
            ]);
        }
        vec![threads, cpus]
    }
}
