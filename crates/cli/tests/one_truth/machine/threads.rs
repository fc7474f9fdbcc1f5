//! What a thread does by itself: system calls, another name or priority, its end, a child.

use super::{CALLS, Machine, NAMES, State, Thread, WORKERS};
use crate::story::Happening;
use testkit::Task;

impl Machine {
    pub(super) fn call(&mut self, cpu: usize, who: usize) {
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
    pub(super) fn prio(&mut self, cpu: usize, who: usize) {
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

    pub(super) fn rename(&mut self, cpu: usize, who: usize) {
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

    /// The program of the task on the CPU is another one from here on.
    pub(super) fn exec(&mut self, cpu: usize, who: usize) {
        let Some(thread) = self.acting(cpu) else {
            return;
        };
        let task = self.threads[thread].task;
        let name = NAMES[who % NAMES.len()];
        self.threads[thread].task.comm = name;
        self.emit(cpu, Happening::Exec { task, name });
    }

    pub(super) fn end(&mut self, cpu: usize) {
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
    pub(super) fn fork(&mut self, cpu: usize, who: usize) {
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
        self.threads[free].life += 1;
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
