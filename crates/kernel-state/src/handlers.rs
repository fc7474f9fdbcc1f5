//! The handlers that run on a CPU: interrupts, one inside the other, and the softirq below them.

use super::process::ProcId;
use super::run::{Holder, Part, Run};
use super::stretches::stretches;
use super::waker::{CpuWhat, Waker};
use crate::bind::{IRQ_THREAD_WAKE_NS_MAX, irq_of_thread};

/// Where more interrupts seem to run one inside the other, ends of them were not recorded.
const NESTING_MAX: usize = 8;

/// An interrupt's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hard {
    /// Of the interrupt with this number.
    Irq(i64),
    /// Of a vector with a negative number.
    Vector(i32),
    /// A timer's function, which an interrupt calls.
    Timer,
}

/// A softirq's handler that runs, or goes on when its thread has a CPU again.
#[derive(Debug)]
pub(super) struct Softirq {
    /// Its CPU.
    pub cpu: u32,
    /// So many losses that one had had when its thread left it.
    pub losses: u64,
    /// Its vector.
    pub vec: i64,
    /// When it was raised, if that was seen.
    pub raised_ns: Option<i64>,
    /// When it began.
    pub begin_ns: i64,
    /// It began, or its thread was scheduled in since then.
    pub since_ns: i64,
    /// What its CPU did from when to when, before its thread was preempted in it.
    pub earlier: Vec<(i64, i64, CpuWhat)>,
}

impl Softirq {
    /// It begins.
    pub fn new(cpu: u32, vec: i64, raised_ns: Option<i64>, begin_ns: i64) -> Softirq {
        Softirq {
            cpu,
            losses: 0,
            vec,
            raised_ns,
            begin_ns,
            since_ns: begin_ns,
            earlier: Vec::new(),
        }
    }

    /// Its thread leaves its CPU at the end of `run`.
    pub fn pauses(&mut self, run: &Run, thread: ProcId, now_ns: i64) {
        // What was told before is told as what it seemed so far.
        let told_ns = run.begin_ns.max(self.since_ns);
        if self.since_ns < told_ns {
            let told = (self.since_ns, told_ns, CpuWhat::Softirq);
            self.earlier.push(told);
        }
        let part = Part::known(Holder::Task(thread), told_ns, now_ns);
        stretches(&run.stretches, part, |what, from_ns, until_ns| {
            self.earlier.push((from_ns, until_ns, what));
        });
    }

    /// From when to when its thread had a CPU, up to now.
    pub fn ran(&self, now_ns: i64, ran: &mut Vec<(i64, i64)>) {
        ran.clear();
        let earlier = self.earlier.iter().map(|(from, until, _)| (*from, *until));
        for (from_ns, until_ns) in earlier.chain([(self.since_ns, now_ns)]) {
            match ran.last_mut() {
                Some(last) if last.1 == from_ns => last.1 = until_ns,
                _ => ran.push((from_ns, until_ns)),
            }
        }
    }
}

/// The handlers that run on a CPU. No interrupt's handler spans a switch; a softirq's belongs to
/// its thread, which can be preempted in it where the kernel is preemptible everywhere.
#[derive(Debug, Default)]
pub(super) struct Handlers {
    /// The innermost last, and when each began.
    hard: Vec<(Hard, i64)>,
    /// One, or those that lttng-analyses believes to run.
    softirqs: Vec<Softirq>,
    /// The last interrupt that returned, and when: it may go on to wake its thread.
    left: Option<(i64, i64)>,
}

impl Handlers {
    /// An interrupt's handler begins. It does not interrupt itself: the end of one that seems to
    /// run already was not recorded, nor that of those in it.
    pub fn enters(&mut self, hard: Hard, now_ns: i64) {
        let open = self.hard.iter().position(|(open, _)| *open == hard);
        self.hard.truncate(open.unwrap_or(self.hard.len()));
        if self.hard.len() >= NESTING_MAX {
            self.hard.clear();
        }
        self.hard.push((hard, now_ns));
    }

    /// The same as lttng-analyses follows interrupts: one at a time.
    pub fn enters_alone(&mut self, hard: Hard, now_ns: i64) {
        self.hard.clear();
        self.hard.push((hard, now_ns));
    }

    /// An interrupt's handler ends; when it began, if that was seen.
    pub fn leaves(&mut self, hard: Hard, now_ns: i64) -> Option<i64> {
        if let Hard::Irq(irq) = hard {
            self.left = Some((irq, now_ns));
        }
        let place = self.hard.iter().position(|(open, _)| *open == hard)?;
        let (_, begin_ns) = self.hard[place];
        self.hard.truncate(place);
        Some(begin_ns)
    }

    /// A softirq's handler begins, or goes on. They do not interrupt each other: the end of another
    /// one was not recorded.
    pub fn enters_softirq(&mut self, softirq: Softirq) {
        self.softirqs.clear();
        self.softirqs.push(softirq);
    }

    /// The same as lttng-analyses follows softirqs: each vector by itself.
    pub fn enters_softirq_alone(&mut self, softirq: Softirq) {
        self.softirqs.retain(|open| open.vec != softirq.vec);
        self.softirqs.push(softirq);
    }

    /// A softirq's handler ends, if it was seen to begin.
    pub fn leaves_softirq(&mut self, vec: i64) -> Option<Softirq> {
        let place = self.softirqs.iter().position(|open| open.vec == vec)?;
        Some(self.softirqs.swap_remove(place))
    }

    /// The softirq that runs, or is interrupted.
    pub fn softirq(&self) -> Option<&Softirq> {
        self.softirqs.last()
    }

    /// A switch: no handler runs on the CPU any more, but the softirq of the thread that leaves.
    pub fn hand_over(&mut self) -> Option<Softirq> {
        let softirq = self.softirqs.pop();
        self.clear();
        softirq
    }

    /// Whether this is the CPU's work while nothing else interrupts it: a softirq may call timers'
    /// functions, too.
    pub fn interrupts(&self, hard: Hard) -> bool {
        hard != Hard::Timer || self.softirqs.is_empty()
    }

    /// No interrupt is handled.
    pub fn leave_all(&mut self) {
        self.hard.clear();
    }

    /// Since when interrupts are handled.
    pub fn hard_since_ns(&self) -> Option<i64> {
        let mut all = self.hard.iter();
        let first = all.find(|(hard, _)| self.interrupts(*hard));
        first.map(|(_, begin_ns)| *begin_ns)
    }

    /// Nothing is handled any more, as far as anybody knows.
    pub fn clear(&mut self) {
        self.hard.clear();
        self.softirqs.clear();
        self.left = None;
    }

    /// What wakes a task of this name now, when a handler does.
    pub fn waker(&self, comm: &[u8], now_ns: i64) -> Option<Waker> {
        let of_thread = self.left.filter(|(irq, end_ns)| {
            let near = now_ns - end_ns <= IRQ_THREAD_WAKE_NS_MAX;
            near && irq_of_thread(comm).map(i64::from) == Some(*irq)
        });
        let of_thread = of_thread.map(|(irq, _)| Waker::Irq(irq));
        let softirq = self.softirq().map(|softirq| Waker::Softirq(softirq.vec));
        match self.hard.last() {
            Some((Hard::Timer, _)) => Some(Waker::Timer),
            Some((Hard::Irq(irq), _)) => Some(Waker::Irq(*irq)),
            Some((Hard::Vector(vector), _)) => of_thread.or(Some(Waker::Vector(*vector))),
            None => of_thread.or(softirq),
        }
    }

    /// Whether the CPU handles something.
    pub fn are_open(&self) -> bool {
        !self.hard.is_empty() || !self.softirqs.is_empty()
    }
}
