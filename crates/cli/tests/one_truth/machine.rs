//! A small scheduler that is told what happens, and what it did: events in order, and the truth.
//!
//! It keeps the kernel's rules: a CPU has one task, handlers nest, a task is switched out only
//! outside of handlers, an idle CPU takes the first runnable task within 30 µs. When a task is
//! preempted is drawn, so that tasks of a lower priority keep the CPU for long at times. A task may
//! be woken before it has left its CPU, or where it was preempted on its way to sleep.

mod moves;
mod threads;
mod wake;

use testkit::Task;

use crate::story::{Draw, Happening, Op, Record};
use crate::truth::{Doing, Handler, OnCpu, Truth};

/// The interrupt of the only device.
pub const DEVICE: i32 = 24;
/// The softirqs that are raised: TIMER, NET_RX, RCU.
const VECTORS: [i32; 3] = [1, 3, 9];
/// The priority of what has a deadline (`MAX_DL_PRIO - 1`).
const DEADLINE_PRIO: i32 = -1;
const STOP_RANK: i32 = -2;
/// An idle CPU takes a runnable task within this.
const IDLE_EXIT_NS_MAX: i64 = 30_000;
const CALLS: [&str; 2] = ["nanosleep", "read"];
const NAMES: [&str; 3] = ["worker", "render", "idle-not"];

/// Who there is. Some names are those of tasks that only pass work on.
const TASKS: [Task; WORKERS + 4] = [
    Task::rt(101, "ctrl", 50),
    Task::rt(102, "hog", 60),
    Task::fair(103, "build"),
    Task::fair(104, "link"),
    Task::rt(105, "audio", 70),
    Task::rt(106, "irq/24-snd", 50),
    Task::nice(107, "net", -5),
    Task::fair(108, "kworker/1:0"),
    Task::rt(21, "migration/0", 99),
    Task::rt(22, "migration/1", 99),
    Task::rt(23, "migration/2", 99),
    Task::rt(24, "migration/3", 99),
];
/// So many of them do what is drawn; the others move tasks that have their CPU.
const WORKERS: usize = 8;
/// This one may have a deadline.
const WITH_DEADLINE: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It ended; its number may be used again.
    Gone,
    Blocked,
    Queued,
    Running,
}

struct Thread {
    task: Task,
    /// So many threads had its number before.
    life: u32,
    state: State,
    /// Where it ran last, waits or runs.
    cpu: usize,
    /// The system call that it is in.
    call: Option<&'static str>,
    /// When it came on this CPU's run queue.
    arrived_ns: i64,
    /// Index into the truth's waits, from its wake-up to its switch-in.
    wait: Option<usize>,
    /// It was preempted, and may have been on its way to sleep.
    may_have_slept: bool,
}

#[derive(Default)]
struct CpuState {
    current: Option<usize>,
    handlers: Vec<Handler>,
    raised: Vec<i32>,
    queue: Vec<usize>,
    is_off: bool,
}

/// The machine.
pub struct Machine {
    now_ns: i64,
    /// The clock of the events goes on by so much at once.
    clock_step_ns: i64,
    cpus: Vec<CpuState>,
    threads: Vec<Thread>,
    records: Vec<Record>,
    truth: Truth,
}

impl Machine {
    /// A machine of so many CPUs, all idle or, when it is `busy`, each with a task.
    pub fn new(cpus: usize, busy: bool, clock_step_ns: i64) -> Machine {
        let thread = |(place, task): (usize, &Task)| Thread {
            task: *task,
            life: 0,
            state: State::Blocked,
            cpu: place.checked_sub(WORKERS).unwrap_or(place) % cpus,
            call: None,
            arrived_ns: 0,
            wait: None,
            may_have_slept: false,
        };
        let mut machine = Machine {
            now_ns: 1_000,
            clock_step_ns,
            cpus: (0..cpus).map(|_| CpuState::default()).collect(),
            threads: TASKS.iter().enumerate().map(thread).collect(),
            records: Vec::new(),
            truth: Truth::new(cpus),
        };
        if busy {
            for cpu in 0..cpus {
                machine.cpus[cpu].current = Some(cpu);
                machine.threads[cpu].state = State::Running;
            }
        }
        machine.note();
        machine.tick();
        machine
    }

    /// One of the tasks has a deadline.
    pub fn give_deadline(&mut self) {
        self.threads[WITH_DEADLINE].task.prio = DEADLINE_PRIO;
        self.note();
    }

    /// The timer ticks on each CPU: the events of all begin.
    fn tick(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.begin_handler(cpu, Handler::Timer);
            self.pass(500);
            self.end_handler(cpu);
            self.pass(100);
        }
    }

    /// What happened, and the truth about it.
    pub fn finish(mut self) -> (Vec<Record>, Truth) {
        self.note();
        (self.records, self.truth)
    }

    /// One draw happens, unless it makes no sense in this state.
    pub fn step(&mut self, draw: Draw) {
        let after_ns = i64::from(draw.after_ns);
        self.leave_idle(1 + after_ns % IDLE_EXIT_NS_MAX);
        self.pass(1 + after_ns);
        let drawn = usize::from(draw.cpu) % self.cpus.len();
        let cpu = self.on_from(drawn);
        let who = usize::from(draw.who);
        match draw.op {
            Op::Pass => (),
            Op::Wake => self.wake(cpu, who),
            Op::Block => self.block(cpu, who),
            Op::Preempt => self.preempt(cpu),
            Op::Handler => self.handler(cpu, who),
            Op::Migrate => self.migrate(cpu, who),
            Op::Call => self.call(cpu, who),
            Op::Prio => self.prio(cpu, who),
            Op::Rename => self.rename(cpu, who),
            Op::Exec => self.exec(cpu, who),
            Op::End => self.end(cpu),
            Op::Fork => self.fork(cpu, who),
            Op::Affinity => self.move_running(cpu, who),
            Op::Hotplug => self.hotplug(drawn),
        }
    }

    /// What the clock of the events says.
    fn clock_ns(&self) -> i64 {
        self.now_ns - self.now_ns % self.clock_step_ns
    }

    /// The first CPU from this one on that is not off.
    fn on_from(&self, cpu: usize) -> usize {
        let count = self.cpus.len();
        let mut on = (cpu..cpu + count).map(|cpu| cpu % count);
        on.find(|cpu| !self.cpus[*cpu].is_off).unwrap_or(cpu)
    }

    /// All handlers end, all that is runnable runs, and all goes to sleep.
    pub fn drain(&mut self) {
        while self.cpus.iter().any(|cpu| !cpu.handlers.is_empty()) {
            for cpu in 0..self.cpus.len() {
                self.pass(1_000);
                self.end_handler(cpu);
            }
        }
        loop {
            self.leave_idle(1_000);
            let Some(busy) = self.cpus.iter().position(|cpu| cpu.current.is_some()) else {
                return;
            };
            self.pass(7_000);
            self.block(busy, 0);
        }
    }

    fn pass(&mut self, ns: i64) {
        self.now_ns += ns;
    }

    fn emit(&mut self, cpu: usize, what: Happening) {
        self.note();
        let current = self.cpus[cpu].current;
        let tid = match what {
            Happening::Switch { prev, .. } => prev.tid,
            _ => current.map_or(0, |thread| self.threads[thread].task.tid),
        };
        self.records.push(Record {
            at_ns: self.clock_ns(),
            cpu: cpu as u32,
            tid,
            what,
        });
    }

    /// Writes down what is true from now on.
    fn note(&mut self) {
        let now_ns = self.clock_ns();
        for (place, cpu) in self.cpus.iter().enumerate() {
            let on = OnCpu {
                task: cpu.current.map(|thread| self.threads[thread].task),
                life: cpu.current.map_or(0, |thread| self.threads[thread].life),
                handler: cpu.handlers.last().copied(),
            };
            self.truth.on_cpu(place, now_ns, on);
        }
        for thread in &self.threads {
            let cpu = thread.cpu as u32;
            let doing = match thread.state {
                State::Gone => Doing::Gone,
                State::Blocked => Doing::Blocked,
                State::Queued => Doing::Waiting { cpu },
                State::Running => Doing::Running {
                    cpu,
                    interrupted: !self.cpus[thread.cpu].handlers.is_empty(),
                    in_call: thread.call.is_some(),
                },
            };
            self.truth.doing(thread.task.tid, now_ns, doing);
        }
        self.truth.end_ns = now_ns;
    }

    /// Idle CPUs take what is runnable there.
    fn leave_idle(&mut self, lag_ns: i64) {
        for cpu in 0..self.cpus.len() {
            let state = &self.cpus[cpu];
            let idle = state.current.is_none() && state.handlers.is_empty();
            if idle && !state.queue.is_empty() {
                self.pass(lag_ns);
                self.switch(cpu, 0);
            }
        }
    }

    /// The least goes first: threads of the stop class before those with a deadline.
    fn rank(&self, thread: usize) -> i32 {
        match thread < WORKERS {
            true => self.threads[thread].task.prio,
            false => STOP_RANK,
        }
    }

    /// Removes the best task from the run queue: the highest priority, then the first that came.
    fn pick(&mut self, cpu: usize) -> Option<usize> {
        let queue = &self.cpus[cpu].queue;
        let best = (0..queue.len()).min_by_key(|place| self.rank(queue[*place]))?;
        Some(self.cpus[cpu].queue.remove(best))
    }

    /// The task on the CPU leaves, in the state that it has; the best one comes.
    fn switch(&mut self, cpu: usize, prev_state: i64) {
        let now_ns = self.clock_ns();
        let prev = self.cpus[cpu].current;
        let next = self.pick(cpu);
        if let Some(prev) = prev.filter(|prev| self.threads[*prev].state == State::Running) {
            self.threads[prev].state = State::Queued;
            self.threads[prev].arrived_ns = self.clock_ns();
            self.threads[prev].may_have_slept = true;
            self.cpus[cpu].queue.push(prev);
        }
        self.cpus[cpu].current = next;
        let mut arrived_ns = self.clock_ns();
        if let Some(next) = next {
            let thread = &mut self.threads[next];
            thread.state = State::Running;
            thread.may_have_slept = false;
            thread.cpu = cpu;
            arrived_ns = thread.arrived_ns;
            if let Some(wait) = thread.wait.take() {
                let wait = &mut self.truth.waits[wait];
                wait.switch_ns = Some(now_ns);
                wait.comm = thread.task.comm;
            }
        }
        let task = |thread: Option<usize>| thread.map_or(Task::IDLE, |at| self.threads[at].task);
        let what = Happening::Switch {
            prev: task(prev),
            prev_state,
            next: task(next),
            arrived_ns,
        };
        self.emit(cpu, what);
    }

    fn is_in_handler(&self, cpu: usize) -> bool {
        !self.cpus[cpu].handlers.is_empty()
    }

    /// The task that has the CPU outside of handlers.
    fn acting(&self, cpu: usize) -> Option<usize> {
        match self.is_in_handler(cpu) {
            true => None,
            false => self.cpus[cpu].current,
        }
    }

    fn enqueue(&mut self, thread: usize, cpu: usize) {
        self.threads[thread].state = State::Queued;
        self.threads[thread].cpu = cpu;
        self.threads[thread].arrived_ns = self.clock_ns();
        self.cpus[cpu].queue.push(thread);
    }

    fn preempt(&mut self, cpu: usize) {
        let Some(thread) = self.acting(cpu) else {
            return;
        };
        let prio = self.rank(thread);
        let mut queued = self.cpus[cpu].queue.iter();
        let is_better = |queued: &usize| {
            let rival = self.rank(*queued);
            rival < prio || (rival >= 100 && prio >= 100)
        };
        if queued.any(is_better) {
            self.switch(cpu, 0x100);
        }
    }

    fn handler(&mut self, cpu: usize, who: usize) {
        let irq = match who % 2 {
            0 => Handler::Irq(DEVICE),
            _ => Handler::Timer,
        };
        match self.cpus[cpu].handlers.last() {
            None => self.begin_handler(cpu, irq),
            Some(Handler::Softirq(_)) if who.is_multiple_of(3) => self.begin_handler(cpu, irq),
            Some(Handler::Softirq(_)) => self.end_handler(cpu),
            Some(_) => {
                let vector = VECTORS[who % VECTORS.len()];
                if (who / 2).is_multiple_of(2) && !self.cpus[cpu].raised.contains(&vector) {
                    self.cpus[cpu].raised.push(vector);
                    self.emit(cpu, Happening::SoftirqRaise(vector));
                    self.pass(100);
                }
                self.end_handler(cpu);
            }
        }
    }

    fn begin_handler(&mut self, cpu: usize, handler: Handler) {
        self.cpus[cpu].handlers.push(handler);
        self.emit(cpu, Happening::HandlerBegin(handler));
    }

    fn end_handler(&mut self, cpu: usize) {
        if let Some(handler) = self.cpus[cpu].handlers.pop() {
            self.emit(cpu, Happening::HandlerEnd(handler));
        }
        // What an interrupt raised runs when the last one ends, before any task.
        if !self.is_in_handler(cpu) && !self.cpus[cpu].raised.is_empty() {
            let vector = self.cpus[cpu].raised.remove(0);
            self.pass(50);
            self.begin_handler(cpu, Handler::Softirq(vector));
        }
    }
}
