//! Who waited for whom at futexes: by lock, and wait by wait.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::code::CodeNames;
use super::columns::{DURATION, FROM_TO, LONGEST, LONGEST_RANGE, MEAN, TOTAL, WOKEN_BY};
use super::kind::{Answers, Lami, PLAIN, ReportKind};
use super::needs::{SWITCHES, SYSTEM_CALLS, WAKE_UPS};
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::question::Question;
use super::sched::process_cell;
use super::stretches::Stretches;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use super::top::Top;
use kernel_state::{Change, Kernel, ProcId, Topic, Topics, Waker};

const ADDRESS: Column = Column::new("futex", "Futex", Kind::Text);
const LOCKS: TableClass = TableClass {
    name: "locks",
    title: "Contention by futex",
    columns: &[
        ADDRESS,
        Column::count("count", "Waits", "waits"),
        TOTAL,
        MEAN,
        LONGEST,
        LONGEST_RANGE,
        Column::count("waiters", "Waiters", "threads"),
        Column::count("together", "At once", "threads"),
    ],
};
const WAITS: TableClass = TableClass {
    name: "waits",
    title: "The longest waits at futexes",
    columns: &[
        FROM_TO,
        DURATION,
        ADDRESS,
        Column::new("waiter", "Waiter", Kind::Process),
        WOKEN_BY,
        Column::count("together", "Waiters then", "threads"),
    ],
};
/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "futex",
    reports: &[("futex", Views::ALWAYS, "who waited for whom at futexes")],
    classes: &[&LOCKS, &WAITS],
    needs: &[SWITCHES, WAKE_UPS, SYSTEM_CALLS],
    lami: Lami {
        title: "Futex contention analysis",
        description: "Who waited for whom at futexes",
        tags: &["futex", "lock", "top"],
    },
    names_code: true,
    answers: Answers::Window(|asked| Box::new(Futexes::new(asked.options))),
    ..PLAIN
};

/// A futex: its address in the memory of a process.
type Futex = (i32, u64);

#[derive(Debug, Default)]
struct Lock {
    waits: Stretches,
    waiters: BTreeSet<u32>,
    waiting_now: u64,
    together_max: u64,
}

/// A thread that is in a call that may wait.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    futex: Futex,
    begin_ns: i64,
    woken_by: Option<Waker>,
    together: u64,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    at: Waiting,
    end_ns: i64,
    waiter: ProcId,
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct Futexes {
    options: Rc<ReportOptions>,
    locks: Ordered<Futex, Lock>,
    waiting: Ordered<u32, Waiting>,
    top: Top<Wait>,
    count: u64,
}

impl Futexes {
    pub fn new(options: Rc<ReportOptions>) -> Futexes {
        Futexes {
            top: Top::new(options.limit),
            options,
            locks: Ordered::default(),
            waiting: Ordered::default(),
            count: 0,
        }
    }

    fn enter(&mut self, kernel: &Kernel, id: ProcId, address: u64) {
        let process = kernel.process(id);
        let futex = (process.pid.unwrap_or(process.tid), address);
        let lock = self.locks.entry(futex).or_default();
        lock.waiting_now += 1;
        lock.together_max = lock.together_max.max(lock.waiting_now);
        let waiting = Waiting {
            futex,
            begin_ns: kernel.now_ns(),
            woken_by: None,
            together: lock.waiting_now,
        };
        if let Some(missed) = self.waiting.insert(id.0, waiting) {
            self.leave(missed.futex);
        }
    }

    fn leave(&mut self, futex: Futex) {
        let Some(lock) = self.locks.get_mut(&futex) else {
            return;
        };
        lock.waiting_now = lock.waiting_now.saturating_sub(1);
        // One that nobody waited for is not kept: memory grows with contention alone.
        if lock.waiting_now == 0 && lock.waits.summary.count == 0 {
            self.locks.swap_remove(&futex);
        }
    }

    fn exit(&mut self, kernel: &Kernel, waiter: ProcId) {
        let Some(at) = self.waiting.shift_remove(&waiter.0) else {
            return;
        };
        self.waited(kernel, at, waiter);
        self.leave(at.futex);
    }

    fn waited(&mut self, kernel: &Kernel, at: Waiting, waiter: ProcId) {
        let end_ns = kernel.now_ns();
        let ns = end_ns - at.begin_ns;
        let wanted = self.options.wants_process(kernel, kernel.process(waiter));
        // Who was not woken did not wait: the value had changed, or the lock was free.
        if at.woken_by.is_none() || !wanted || !self.options.wants_duration(ns) {
            return;
        }
        let lock = self.locks.entry(at.futex).or_default();
        lock.waits.add(at.begin_ns, end_ns);
        lock.waiters.insert(waiter.0);
        self.top.push(ns, self.count, Wait { at, end_ns, waiter });
        self.count += 1;
    }
}

/// As in `queue_lock (0x7f00c0de) in 4711`, or without the name where nobody knows it.
fn futex_text(code: &CodeNames, (pid, address): Futex, at_ns: i64) -> Cell {
    Cell::Text(match code.object(pid, at_ns, address) {
        Some(name) => format!("{name} ({address:#x}) in {pid}"),
        None => format!("{address:#x} in {pid}"),
    })
}

impl Question for Futexes {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Calls, Topic::Waits])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        match *change {
            Change::CallEntry {
                process,
                futex: Some((command, address)),
                ..
            } if command.may_wait() => self.enter(kernel, process, address),
            Change::CallExit { process, .. } => self.exit(kernel, process),
            Change::Woken { process, by, .. } => {
                if let Some(waiting) = self.waiting.get_mut(&process.0) {
                    waiting.woken_by.get_or_insert(by);
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        let mut locks = span.table(&LOCKS);
        let mut contended: Vec<_> = self
            .locks
            .iter()
            .filter(|l| l.1.waits.summary.count > 0)
            .collect();
        contended.sort_by_key(|(_, lock)| std::cmp::Reverse(lock.waits.summary.total_ns));
        for (futex, lock) in contended {
            if self.options.is_full(locks.rows.len()) {
                break;
            }
            let mut row = vec![
                futex_text(&self.options.code, *futex, lock.waits.longest.0),
                Cell::Count(lock.waits.summary.count),
            ];
            row.extend(lock.waits.cells());
            row.extend([lock.waiters.len() as u64, lock.together_max].map(Cell::Count));
            locks.rows.push(row);
        }
        let mut waits = span.table(&WAITS);
        let row = |wait: &Wait| {
            let by = wait.at.woken_by.map(|by| kernel.waker_text(by));
            vec![
                Cell::Range(wait.at.begin_ns, wait.end_ns),
                Cell::Duration(wait.end_ns - wait.at.begin_ns),
                futex_text(&self.options.code, wait.at.futex, wait.at.begin_ns),
                process_cell(kernel, wait.waiter),
                by.map_or(Cell::Unknown, Cell::Text),
                Cell::Count(wait.at.together),
            ]
        };
        waits.rows = self.top.sorted().map(row).collect();
        vec![locks, waits]
    }
}
