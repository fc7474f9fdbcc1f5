//! A small scheduler that is told what happens, and what it did: events in order, and the truth.
//!
//! It keeps the kernel's rules: a CPU has one task, handlers nest, a task is switched out only
//! outside of handlers, an idle CPU takes the first runnable task within 30 µs. When a task is
//! preempted is drawn, so that tasks of a lower priority keep the CPU for long at times. A task may
//! be woken before it has left its CPU, or where it was preempted on its way to sleep.

use testkit::Task;

use crate::story::{Draw, Happening, Op, Record};
use crate::truth::{Doing, Handler, OnCpu, TrueWait, Truth};

/// The interrupt of the only device.
pub const DEVICE: i32 = 24;
/// The softirqs that are raised: TIMER, NET_RX, RCU.
const VECTORS: [i32; 3] = [1, 3, 9];
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

    /// Removes the best task from the run queue: the highest priority, then the first that came.
    fn pick(&mut self, cpu: usize) -> Option<usize> {
        let queue = &self.cpus[cpu].queue;
        let best = (0..queue.len()).min_by_key(|place| self.threads[queue[*place]].task.prio)?;
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

    fn wake(&mut self, cpu: usize, who: usize) {
        let thread = who % WORKERS;
        let state = self.threads[thread].state;
        let itself = self.acting(cpu) == Some(thread);
        let preempted = state == State::Queued && self.threads[thread].may_have_slept;
        if itself || !(preempted || matches!(state, State::Blocked | State::Running)) {
            return;
        }
        let by_interrupt = self.begin_waker(cpu);
        if state == State::Blocked {
            let old = self.threads[thread].cpu;
            let target = match who / WORKERS % 3 {
                0 => (old + 1 + who) % self.cpus.len(),
                _ => old,
            };
            let target = self.on_from(target);
            self.wake_blocked(cpu, thread, target);
        } else {
            // It has not slept yet: it only stays runnable.
            let waking_ns = self.clock_ns();
            self.emit_waking(cpu, thread);
            self.pass(300);
            if preempted {
                self.threads[thread].may_have_slept = false;
                self.begin_wait(thread, waking_ns, false);
            }
            self.emit_wakeup(cpu, thread);
        }
        if by_interrupt {
            self.pass(500);
            self.end_handler(cpu);
        }
    }

    /// The idle task wakes nobody: an interrupt does. Whether it took one.
    fn begin_waker(&mut self, cpu: usize) -> bool {
        let by_interrupt = self.acting(cpu).is_none() && !self.is_in_handler(cpu);
        if by_interrupt {
            self.begin_handler(cpu, Handler::Irq(DEVICE));
            self.pass(700);
        }
        by_interrupt
    }

    /// A task is to be woken, where it is.
    fn emit_waking(&mut self, cpu: usize, thread: usize) {
        let Thread { task, cpu: at, .. } = self.threads[thread];
        let target = at as u32;
        self.emit(cpu, Happening::Waking { task, target });
    }

    /// It is on the run queue where it is.
    fn emit_wakeup(&mut self, cpu: usize, thread: usize) {
        let Thread { task, cpu: at, .. } = self.threads[thread];
        let target = at as u32;
        self.emit(cpu, Happening::Wakeup { task, target });
    }

    fn wake_blocked(&mut self, cpu: usize, thread: usize, target: usize) {
        let waking_ns = self.clock_ns();
        self.enqueue(thread, self.threads[thread].cpu);
        self.emit_waking(cpu, thread);
        self.pass(400);
        self.deliver(cpu, thread, target, waking_ns);
    }

    /// The second half of a wake-up.
    fn deliver(&mut self, cpu: usize, thread: usize, target: usize, waking_ns: i64) {
        if target != self.threads[thread].cpu {
            self.emit_migration(cpu, thread, target);
            self.pass(200);
        }
        self.begin_wait(thread, waking_ns, true);
        self.emit_wakeup(cpu, thread);
    }

    /// A task waits for a CPU from its wake-up on, which is over now.
    fn begin_wait(&mut self, thread: usize, waking_ns: i64, slept: bool) {
        let task = self.threads[thread].task;
        self.threads[thread].wait = Some(self.truth.waits.len());
        self.truth.waits.push(TrueWait {
            tid: task.tid,
            comm: task.comm,
            waking_ns,
            wakeup_ns: self.clock_ns(),
            switch_ns: None,
            slept,
        });
    }

    fn enqueue(&mut self, thread: usize, cpu: usize) {
        self.threads[thread].state = State::Queued;
        self.threads[thread].cpu = cpu;
        self.threads[thread].arrived_ns = self.clock_ns();
        self.cpus[cpu].queue.push(thread);
    }

    fn emit_migration(&mut self, cpu: usize, thread: usize, dest: usize) {
        let orig = self.threads[thread].cpu;
        self.cpus[orig].queue.retain(|queued| *queued != thread);
        self.enqueue(thread, dest);
        let task = self.threads[thread].task;
        let (orig, dest) = (orig as u32, dest as u32);
        self.emit(cpu, Happening::Migrate { task, orig, dest });
    }

    fn block(&mut self, cpu: usize, who: usize) {
        let Some(thread) = self.acting(cpu) else {
            return;
        };
        let by = self.on_from((cpu + 1) % self.cpus.len());
        let is_woken = who % 16 == 9 && by != cpu;
        let by_interrupt = is_woken && self.begin_waker(by);
        let waking_ns = self.clock_ns();
        if is_woken {
            // It has decided to sleep; the waker waits until it has left its CPU.
            self.emit_waking(by, thread);
            self.pass(250);
        }
        self.threads[thread].state = State::Blocked;
        self.switch(cpu, 1 + (who % 2) as i64);
        if is_woken {
            self.enqueue(thread, cpu);
            self.note();
            self.pass(350);
            let target = self.on_from((cpu + who / 16) % self.cpus.len());
            self.deliver(by, thread, target, waking_ns);
        }
        if by_interrupt {
            self.pass(500);
            self.end_handler(by);
        }
    }

    fn preempt(&mut self, cpu: usize) {
        let Some(thread) = self.acting(cpu) else {
            return;
        };
        let prio = self.threads[thread].task.prio;
        let mut queued = self.cpus[cpu].queue.iter();
        let is_better = |queued: &usize| {
            let rival = self.threads[*queued].task.prio;
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

    fn migrate(&mut self, cpu: usize, who: usize) {
        let thread = who % WORKERS;
        let dest = self.on_from((self.threads[thread].cpu + 1) % self.cpus.len());
        let queued = self.threads[thread].state == State::Queued;
        if queued && dest != self.threads[thread].cpu {
            self.emit_migration(cpu, thread, dest);
        }
    }

    /// Another CPU is the only one that the task may have from now on: the CPU's own thread takes
    /// it away from there.
    fn move_running(&mut self, cpu: usize, who: usize) {
        let dest = self.on_from((cpu + 1 + who) % self.cpus.len());
        let by = self.on_from((cpu + 1) % self.cpus.len());
        let stopper = WORKERS + cpu;
        let moved = self.acting(cpu).filter(|thread| *thread < WORKERS);
        let (Some(moved), true) = (moved, dest != cpu && by != cpu) else {
            return;
        };
        let by_interrupt = self.begin_waker(by);
        self.wake_blocked(by, stopper, cpu);
        if by_interrupt {
            self.pass(500);
            self.end_handler(by);
        }
        self.pass(900);
        self.switch(cpu, 0x100);
        self.pass(1_500);
        self.emit_migration(cpu, moved, dest);
        self.pass(800);
        self.threads[stopper].state = State::Blocked;
        self.switch(cpu, 1);
    }

    /// A CPU goes off, and its tasks to another one; or it is on again.
    fn hotplug(&mut self, cpu: usize) {
        if self.cpus[cpu].is_off {
            self.cpus[cpu].is_off = false;
            return;
        }
        let dest = self.on_from((cpu + 1) % self.cpus.len());
        if dest == cpu || self.is_in_handler(cpu) {
            return;
        }
        self.move_running(cpu, dest + self.cpus.len() - cpu - 1);
        let is_busy = |machine: &Machine| machine.cpus[cpu].current.is_some();
        for _ in 0..self.threads.len() {
            while let Some(queued) = self.cpus[cpu].queue.first().copied() {
                self.pass(600);
                self.emit_migration(dest, queued, dest);
            }
            if is_busy(self) {
                self.pass(400);
                self.move_running(cpu, dest + self.cpus.len() - cpu - 1);
            }
        }
        self.cpus[cpu].is_off = !is_busy(self) && self.cpus[cpu].queue.is_empty();
    }

    fn call(&mut self, cpu: usize, who: usize) {
        let Some(thread) = self.acting(cpu) else {
            return;
        };
        match self.threads[thread].call.take() {
            Some(call) => self.emit(cpu, Happening::CallEnd(call)),
            None => {
                let call = CALLS[who % CALLS.len()];
                self.threads[thread].call = Some(call);
                self.emit(cpu, Happening::Call(call));
            }
        }
    }

    /// Somebody changes a thread's priority; where it is inherited, an event says so.
    fn prio(&mut self, cpu: usize, who: usize) {
        let thread = who % WORKERS;
        let task = self.threads[thread].task;
        let prio = [120, 49, 29, 110][who / WORKERS % 4];
        if self.threads[thread].state == State::Gone || prio == task.prio {
            return;
        }
        self.threads[thread].task.prio = prio;
        if prio < task.prio {
            self.emit(cpu, Happening::Boost { task, prio });
        }
    }

    fn rename(&mut self, cpu: usize, who: usize) {
        let Some(thread) = self.acting(cpu) else {
            return;
        };
        let task = self.threads[thread].task;
        let name = NAMES[who % NAMES.len()];
        if task.comm != name {
            self.threads[thread].task.comm = name;
            self.emit(cpu, Happening::Rename { task, name });
        }
    }

    fn end(&mut self, cpu: usize) {
        let Some(thread) = self.acting(cpu) else {
            return;
        };
        let task = self.threads[thread].task;
        self.emit(cpu, Happening::Exit(task));
        self.pass(5_000);
        self.threads[thread].state = State::Gone;
        self.threads[thread].call = None;
        self.switch(cpu, 0x20);
    }

    /// The task on the CPU makes another, which gets the number of one that ended.
    fn fork(&mut self, cpu: usize, who: usize) {
        // A thread that moves others never ends.
        let is_gone = |thread: &Thread| thread.state == State::Gone;
        let (parent, free) = (self.acting(cpu), self.threads.iter().position(is_gone));
        let (Some(parent), Some(free)) = (parent, free) else {
            return;
        };
        let parent = self.threads[parent].task;
        let child = Task {
            tid: self.threads[free].task.tid,
            ..parent
        };
        self.threads[free].task = child;
        self.threads[free].state = State::Blocked;
        self.emit(cpu, Happening::Fork { parent, child });
        self.pass(2_000);
        let target = self.on_from(who % self.cpus.len());
        self.enqueue(free, target);
        self.begin_wait(free, self.clock_ns(), true);
        let target = target as u32;
        self.emit(
            cpu,
            Happening::WakeupNew {
                task: child,
                target,
            },
        );
    }
}
