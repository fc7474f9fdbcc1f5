//! Switches, wake-ups, migrations, priorities, forks and execs.

use indexmap::IndexMap;
use trace::EventView;

use super::bind::Known;
use super::process::{Comm, Process};
use super::{Change, Kernel, ProcId, Sink};

impl Kernel {
    pub(super) fn scheduling<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        known: Known,
        sink: &mut S,
    ) {
        match known {
            Known::Switch { .. } => self.switch(event, cpu, known, sink),
            Known::Wake {
                tid,
                prio,
                target,
                offset,
            } => {
                let (tid, target) = (event.i64(tid) as i32, event.i64(target) as u32);
                let prio = (event.i64(prio) as i32).saturating_add(offset);
                self.wake(tid, prio, cpu, target, sink);
            }
            Known::Migrate { tid, prio, comm } => {
                let tid = event.i64(tid) as i32;
                let process = match self.processes.find(tid) {
                    Some(id) => id,
                    None => self.processes.add(Process {
                        tid,
                        comm: Comm::new(event.text(comm)),
                        ..Process::default()
                    }),
                };
                sink.change(self, &Change::Migrate { process, cpu });
                self.prio(process, event.i64(prio) as i32, sink);
            }
            Known::PiSetprio { tid, prio } => {
                if let Some(process) = self.processes.find(event.i64(tid) as i32) {
                    self.prio(process, event.i64(prio) as i32, sink);
                }
            }
            Known::Fork { .. } => self.fork(event, known, sink),
            Known::Exec { tid, procname } => {
                let process = self.processes.find_or_add(event.i64(tid) as i32);
                if let Some(procname) = procname {
                    self.processes.get_mut(process).comm = Comm::new(event.text(procname));
                }
                self.close_on_exec(process, sink);
            }
            _ => {}
        }
    }

    fn switch<S: Sink>(&mut self, event: &EventView<'_>, cpu: u32, known: Known, sink: &mut S) {
        let Known::Switch {
            prev_tid,
            prev_comm,
            prev_prio,
            next_tid,
            next_comm,
            next_prio,
        } = known
        else {
            return;
        };
        let (prev_tid, next_tid) = (event.i64(prev_tid) as i32, event.i64(next_tid) as i32);
        let prev = self.processes.find_or_add(prev_tid);
        let next = self.processes.find_or_add(next_tid);
        let Some(state) = self.cpu(cpu) else { return };
        state.current = (next_tid != 0).then_some(next);
        self.processes.get_mut(next).comm = Comm::new(event.text(next_comm));
        self.prio(prev, event.i64(prev_prio) as i32, sink);
        self.prio(next, event.i64(next_prio) as i32, sink);
        let woken = self.processes.get_mut(next);
        let (woken_ns, waker) = (woken.woken_ns.take(), woken.waker.take());
        let change = Change::Switch {
            cpu,
            prev_tid,
            prev_comm: event.text(prev_comm),
            next,
            woken_ns,
            waker: waker.and_then(|waker| self.processes.find(waker)),
        };
        sink.change(self, &change);
    }

    /// The idle tasks share one number, so that their priority says nothing.
    fn prio<S: Sink>(&mut self, id: ProcId, prio: i32, sink: &mut S) {
        let process = self.processes.get_mut(id);
        if process.tid == 0 || process.prio == Some(prio) {
            return;
        }
        process.prio = Some(prio);
        let tid = process.tid;
        sink.change(self, &Change::Prio { tid, prio });
    }

    fn wake<S: Sink>(&mut self, tid: i32, prio: i32, cpu: u32, target: u32, sink: &mut S) {
        self.cpu(target);
        let waker = self.cpu(cpu).and_then(|state| state.current);
        let known = self.processes.find(tid);
        // Who runs is not woken: the wake-up came before the switch was done.
        if known.is_some() && self.cpus.iter().any(|state| state.current == known) {
            return;
        }
        let id = match known {
            Some(id) => id,
            None => self.processes.add(Process {
                tid,
                ..Process::default()
            }),
        };
        self.prio(id, prio, sink);
        let waker = waker.map(|waker| self.processes.get(waker).tid);
        let process = self.processes.get_mut(id);
        // Only the first of several wake-ups counts.
        if process.woken_ns.is_none() {
            process.woken_ns = Some(self.now_ns);
            process.waker = waker.or(process.waker);
        }
    }

    fn fork<S: Sink>(&mut self, event: &EventView<'_>, known: Known, sink: &mut S) {
        let Known::Fork {
            parent_pid,
            parent_comm,
            child_tid,
            child_pid,
            child_comm,
        } = known
        else {
            return;
        };
        let parent_pid = event.i64(parent_pid) as i32;
        let parent = self.processes.find_or_add(parent_pid);
        let process = self.processes.get_mut(parent);
        process.pid = Some(parent_pid);
        process.comm = Comm::new(event.text(parent_comm));
        let inherited: Vec<_> = process
            .files
            .iter()
            .map(|(fd, file)| (*fd, file.clone()))
            .collect();
        let child = self.processes.add(Process {
            tid: event.i64(child_tid) as i32,
            pid: Some(event.i64(child_pid) as i32),
            comm: Comm::new(event.text(child_comm)),
            files: IndexMap::with_capacity(inherited.len()),
            ..Process::default()
        });
        for (fd, file) in inherited {
            self.processes.get_mut(child).files.insert(fd, file);
            sink.change(self, &Change::FileOpened { owner: child, fd });
        }
    }

    fn close_on_exec<S: Sink>(&mut self, process: ProcId, sink: &mut S) {
        let files = &self.processes.get(process).files;
        let closing: Vec<i64> = files
            .iter()
            .filter(|(_, file)| file.cloexec)
            .map(|(fd, _)| *fd)
            .collect();
        for fd in closing {
            self.close_file(process, fd, sink);
        }
    }

    /// A context says the thread group of the task on a CPU.
    pub(super) fn group_of_context(&mut self, cpu: u32, pid: i32) {
        let Some(id) = self.current(cpu) else { return };
        let process = self.processes.get_mut(id);
        if process.pid.is_some() {
            return;
        }
        process.pid = Some(pid);
        let (comm, prio) = (process.comm, process.prio);
        if pid != process.tid && self.processes.find(pid).is_none() {
            self.processes.add(Process {
                tid: pid,
                pid: Some(pid),
                comm,
                prio,
                ..Process::default()
            });
        }
    }
}
