//! Tasks that are moved from one CPU to another, while they wait or have one; CPUs that go off.

use super::{Machine, State, WORKERS};
use crate::story::Happening;

impl Machine {
    pub(super) fn emit_migration(&mut self, cpu: usize, thread: usize, dest: usize) {
        let orig = self.threads[thread].cpu;
        self.cpus[orig].queue.retain(|queued| *queued != thread);
        self.enqueue(thread, dest);
        let task = self.threads[thread].task;
        let (orig, dest) = (orig as u32, dest as u32);
        self.emit(cpu, Happening::Migrate { task, orig, dest });
    }

    pub(super) fn migrate(&mut self, cpu: usize, who: usize) {
        let thread = who % WORKERS;
        let dest = self.on_from((self.threads[thread].cpu + 1) % self.cpus.len());
        let queued = self.threads[thread].state == State::Queued;
        if queued && dest != self.threads[thread].cpu {
            self.emit_migration(cpu, thread, dest);
        }
    }

    /// Another CPU is the only one that the task may have from now on: the CPU's own thread takes
    /// it away from there.
    pub(super) fn move_running(&mut self, cpu: usize, who: usize) {
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
    pub(super) fn hotplug(&mut self, cpu: usize) {
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
}
