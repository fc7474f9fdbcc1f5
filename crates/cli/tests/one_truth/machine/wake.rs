//! Wake-ups: of tasks that sleep, that have not left their CPU yet, and that were preempted.

use super::{DEVICE, Machine, State, Thread, WORKERS};
use crate::story::Happening;
use crate::truth::{Handler, TrueWait};

impl Machine {
    pub(super) fn wake(&mut self, cpu: usize, who: usize) {
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
    pub(super) fn begin_waker(&mut self, cpu: usize) -> bool {
        let by_interrupt = self.acting(cpu).is_none() && !self.is_in_handler(cpu);
        if by_interrupt {
            self.begin_handler(cpu, Handler::Irq(DEVICE));
            self.pass(700);
        }
        by_interrupt
    }

    /// A task is to be woken, where it is.
    pub(super) fn emit_waking(&mut self, cpu: usize, thread: usize) {
        let Thread { task, cpu: at, .. } = self.threads[thread];
        let target = at as u32;
        self.emit(cpu, Happening::Waking { task, target });
    }

    /// It is on the run queue where it is.
    pub(super) fn emit_wakeup(&mut self, cpu: usize, thread: usize) {
        let Thread { task, cpu: at, .. } = self.threads[thread];
        let target = at as u32;
        self.emit(cpu, Happening::Wakeup { task, target });
    }

    pub(super) fn wake_blocked(&mut self, cpu: usize, thread: usize, target: usize) {
        let waking_ns = self.clock_ns();
        self.enqueue(thread, self.threads[thread].cpu);
        self.emit_waking(cpu, thread);
        self.pass(400);
        self.deliver(cpu, thread, target, waking_ns);
    }

    /// The second half of a wake-up.
    pub(super) fn deliver(&mut self, cpu: usize, thread: usize, target: usize, waking_ns: i64) {
        if target != self.threads[thread].cpu {
            self.emit_migration(cpu, thread, target);
            self.pass(200);
        }
        self.begin_wait(thread, waking_ns, true);
        self.emit_wakeup(cpu, thread);
    }

    /// A task waits for a CPU from its wake-up on, which is over now.
    pub(super) fn begin_wait(&mut self, thread: usize, waking_ns: i64, slept: bool) {
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

    pub(super) fn block(&mut self, cpu: usize, who: usize) {
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
}
