//! Switches, migrations, priorities, forks and execs.

use event::kernel_threads::is_stop_class;
use indexmap::IndexMap;
use trace::EventView;

use super::process::{Arrival, Comm, Process};
use super::waker::Waker;
use super::{CPUS_MAX, Change, Kernel, ProcId, Sink};
use crate::bind::{Left, Life, Pause, Sched, SwitchFields};

/// A switch that an interrupt asks for comes so soon behind it.
pub const BY_TICK_NS_MAX: i64 = 20_000;
/// Priorities below are those of SCHED_DEADLINE, and of threads of the stop class.
const DEADLINE_BELOW: i32 = -100;

/// A task that has a runtime only since it came on its CPU has hardly used one up that soon.
const NEW_NS_MAX: i64 = 1_000_000;

/// Whether a thread has a runtime of its own.
fn has_deadline(process: &Process) -> bool {
    let has = process.prio.is_some_and(|prio| prio < DEADLINE_BELOW);
    has && !is_stop_class(process.comm.bytes())
}

/// A wait for a CPU that is over.
#[derive(Clone, Copy, Debug)]
struct Wait {
    at_ns: i64,
    woken_ns: Option<i64>,
    waker: Option<ProcId>,
    waited_since_ns: Option<i64>,
    lossy: bool,
    doubtful: bool,
    inferred: bool,
    within_ns: Option<(i64, i64)>,
    open: bool,
}

impl Kernel {
    pub(super) fn scheduling<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        sched: &Sched,
        sink: &mut S,
    ) {
        match sched {
            Sched::Switch(fields) => self.switch(event, cpu, fields, sink),
            Sched::Wake(kind, fields) => {
                self.wake(cpu, *kind, &fields.wake_up(event), sink);
            }
            Sched::Migrate(fields) => {
                let tid = fields.tid(event);
                let process = match self.processes.alive(tid) {
                    Some(id) => id,
                    None => self.processes.add(Process {
                        tid,
                        comm: Comm::new(fields.comm(event)),
                        ..Process::default()
                    }),
                };
                for cpu in sched.cpus_named(event) {
                    self.names_cpu(cpu, sink);
                }
                // A task that has a CPU is not moved.
                self.left_for(CPUS_MAX, process, sink);
                self.is_runnable(process, sink);
                if let Some(from) = fields.left_cpu(event) {
                    self.came_unseen(process, from);
                    if self.follows.queues {
                        self.requeue(process, from);
                    }
                }
                if let Some(to) = fields.cpu(event) {
                    self.arrive(process, to, false);
                    if self.arrived_ns(to, process).is_none() {
                        // That it waits was not seen; it may run there all the same.
                        self.loses_waiting(process, to, self.now_ns);
                    }
                }
                sink.change(self, &Change::Migrate { process, cpu });
                self.prio(process, fields.prio(event), sink);
            }
            Sched::PiSetprio(fields) => {
                if let Some(process) = self.processes.find(fields.tid(event)) {
                    self.prio(process, fields.prio(event), sink);
                }
            }
        }
    }

    /// Threads come and become other programs.
    pub(super) fn life<S: Sink>(&mut self, event: &EventView<'_>, life: Life, sink: &mut S) {
        self.programs.life(life, event);
        match life {
            Life::Fork { .. } => self.fork(event, life, sink),
            Life::Exec(fields) => {
                let process = self.processes.find_or_add(fields.tid(event));
                let stale = self.follows.stale_names && !fields.has_context();
                if let Some(comm) = fields.comm(event).filter(|_| !stale) {
                    self.processes.get_mut(process).comm = Comm::new(comm);
                }
                self.close_on_exec(process, sink);
            }
            Life::Rename { tid, comm } => {
                if let Some(process) = self.processes.find(event.i64(tid) as i32) {
                    self.renames_itself(process, sink);
                    self.rename(process, event.text(comm));
                }
            }
            Life::New { .. } | Life::Exit { .. } => {}
        }
    }

    /// A thread is renamed, mostly by itself: one that seems to wait for a CPU has come on one
    /// unseen, and waited under its old name.
    fn renames_itself<S: Sink>(&mut self, process: ProcId, sink: &mut S) {
        if self.waits(process) && !self.follows.stale_names {
            if let Some(Arrival { cpu, at_ns, .. }) = self.processes.get(process).arrived {
                self.loses_waiting(process, cpu, at_ns);
            }
            self.ran_unseen(process, sink);
        }
    }

    /// A thread is called so from now on, whether or not the switches since were seen.
    #[inline]
    pub(super) fn rename(&mut self, process: ProcId, comm: &[u8]) {
        let process = self.processes.get_mut(process);
        // One that never ran has no name yet in lttng-analyses, which knows no renames either.
        if !self.follows.stale_names {
            process.comm.set(comm);
        }
    }

    fn switch<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        fields: &SwitchFields,
        sink: &mut S,
    ) {
        let switched = fields.switched(event);
        let prev = self.processes.find_or_add(switched.prev_tid);
        let next = self.processes.find_or_add(switched.next_tid);
        if cpu >= CPUS_MAX {
            return;
        }
        self.prio_at_leaving(prev, switched.prev_prio, sink);
        self.left_for(cpu, prev, sink);
        self.left_for(cpu, next, sink);
        self.hand_over(cpu, prev);
        let other_ns = self.switched_in_ns(cpu);
        self.end_run(cpu, (prev, next), sink);
        let next_comm = &mut self.processes.get_mut(next).comm;
        next_comm.set(fields.next.comm(event));
        // It ran: a wake-up before that led here, whether or not its switch was recorded.
        let is_seen_there = self.current(cpu) == Some(prev);
        if !is_seen_there && self.was_woken(prev) {
            self.scheduled_in_by(cpu, prev, sink);
        } else if self.waits(prev) {
            self.had_waited(cpu, prev, other_ns, sink);
        }
        let prev_comm = fields.prev.comm(event);
        self.rename(prev, prev_comm);
        self.prio(next, switched.next_prio, sink);
        self.begin_run(cpu, next);
        self.cpus[cpu as usize].left = Some((prev, self.now_ns));
        self.go_on(cpu, next);
        let wait = self.end_wait(cpu, next, self.now_ns, sink);
        let left = switched.left;
        let prev_runnable = left.stays_runnable();
        let gives_way = self.gives_way((cpu, other_ns), (prev, next), left);
        let pause = self.pause(prev, gives_way, left);
        if pause == Pause::Done && self.locks.is_kept(prev) {
            let (process, surely) = (prev, false);
            sink.change(self, &Change::NoLock { process, surely });
        }
        let change = Change::Switch {
            cpu,
            prev,
            prev_runnable,
            pause,
            waited_since_ns: wait.waited_since_ns,
            prev_comm,
            next,
            woken_ns: wait.woken_ns,
            waker: wait.waker,
            doubtful: wait.doubtful,
        };
        sink.change(self, &change);
        self.has_stopped(prev);
        self.tell_scheduled_in(cpu, next, wait, sink);
        self.leave(cpu, prev, prev_runnable, sink);
        if left.ends() {
            let process = self.processes.get_mut(prev);
            // Another thread may get its number, unseen.
            (process.blocked_since_ns, process.call) = (None, None);
            (process.fault_ns, process.softirq) = (None, None);
            process.tracked_ns = None;
            process.is_over = !self.follows.stale_names;
        }
    }

    /// Who leaves a CPU has this priority: another one, perhaps, than as it came.
    fn prio_at_leaving<S: Sink>(&mut self, id: ProcId, prio: i32, sink: &mut S) {
        let had_deadline = has_deadline(self.process(id));
        self.prio(id, prio, sink);
        self.processes.get_mut(id).runtime.is_new |= !had_deadline;
    }

    /// Who leaves a CPU was woken and seemed to wait for one, or had it when it was woken.
    fn had_waited<S: Sink>(&mut self, cpu: u32, id: ProcId, other_ns: Option<i64>, sink: &mut S) {
        let pending = self.woken_on_cpu(id, other_ns);
        self.scheduled_in_by(cpu, id, sink);
        self.processes.get_mut(id).pending = pending;
        // Without second events of wake-ups nobody knows which of the two it was.
        if let Some(pending) = pending.filter(|_| !self.families.wakeup) {
            let change = Change::MayHaveWaited {
                process: id,
                since_ns: pending.at_ns,
                until_ns: Some(self.now_ns),
                count: 1,
            };
            sink.change(self, &change);
        }
    }

    /// Whether a task that leaves a CPU, on which it came at `came_ns`, may have given up the rest
    /// of its SCHED_DEADLINE runtime. A tick sees that a runtime is used up, and a system call
    /// gives up the rest; but an interrupt may come right before such a call, too. Who gave up
    /// more than half of that runtime before has not used it up.
    fn gives_way(
        &mut self,
        (cpu, came_ns): (u32, Option<i64>),
        (prev, next): (ProcId, ProcId),
        left: Left,
    ) -> bool {
        if !has_deadline(self.process(prev)) {
            return false;
        }
        let interrupted_ns = self.cpus[cpu as usize].interrupted_ns;
        let by_tick = interrupted_ns.is_some_and(|at_ns| self.now_ns - at_ns <= BY_TICK_NS_MAX);
        let has_way = left.pause() == Pause::PutOff && !has_deadline(self.process(next));
        let ran_ns = came_ns.map_or(0, |came_ns| self.now_ns - came_ns);
        let runtime = &mut self.processes.get_mut(prev).runtime;
        runtime.used_ns += ran_ns;
        let used_ns = runtime.used_ns;
        let is_new = std::mem::take(&mut runtime.is_new) && ran_ns < NEW_NS_MAX;
        if left.pause() == Pause::PutOff && !has_way {
            // It is put off by another one with a deadline, and goes on with the rest.
            return false;
        }
        runtime.used_ns = 0;
        if has_way && is_new {
            return true;
        }
        if has_way && !by_tick {
            runtime.given_up_ns = runtime.given_up_ns.max(used_ns);
        }
        has_way && (!by_tick || used_ns < 2 * runtime.given_up_ns)
    }

    /// Why a task leaves its CPU, by the switch and by where it is.
    fn pause(&self, id: ProcId, gives_way: bool, left: Left) -> Pause {
        let process = self.process(id);
        let in_fault = process
            .fault_ns
            .is_some_and(|at_ns| self.is_known_since(at_ns));
        match left.pause() {
            Pause::PutOff if gives_way => Pause::OutOfRuntime,
            Pause::Done if self.is_frozen(id) => Pause::Frozen,
            Pause::Done if in_fault => Pause::Fault,
            Pause::Done if process.lock().is_some() => Pause::Lock,
            pause => pause,
        }
    }

    /// A task was scheduled in, which was not recorded, between two instants.
    pub(super) fn scheduled_in<S: Sink>(
        &mut self,
        cpu: u32,
        id: ProcId,
        within_ns: (i64, i64),
        sink: &mut S,
    ) {
        let wait = self.end_wait(cpu, id, within_ns.0, sink);
        let wait = Wait {
            inferred: true,
            lossy: true,
            within_ns: Some(within_ns).filter(|_| !wait.lossy),
            ..wait
        };
        self.tell_scheduled_in(cpu, id, wait, sink);
    }

    /// The same where nobody knows when since its wake-up.
    pub(super) fn scheduled_in_by<S: Sink>(&mut self, cpu: u32, id: ProcId, sink: &mut S) {
        let now_ns = self.now_ns;
        let woken_ns = self.processes.get(id).woken_ns;
        let wait = self.end_wait(cpu, id, now_ns, sink);
        let within_ns = woken_ns.map(|woken_ns| (woken_ns, now_ns));
        let wait = Wait {
            inferred: true,
            lossy: true,
            within_ns: within_ns.filter(|_| !wait.lossy),
            ..wait
        };
        self.tell_scheduled_in(cpu, id, wait, sink);
    }

    /// What a task waited for ends, as it is scheduled in.
    #[inline(always)] // of what it finds out, most is only told
    fn end_wait<S: Sink>(&mut self, cpu: u32, id: ProcId, at_ns: i64, sink: &mut S) -> Wait {
        // Its wake-up was not seen, and how long it waited for the CPU is not known.
        let unseen = self.processes.get(id).blocked_since_ns.is_some();
        if unseen {
            self.woken(id, Waker::Unknown, sink);
        }
        self.was_woken(id);
        let arrived = self.processes.get_mut(id).arrived.take();
        self.leaves_queue(id, arrived, cpu);
        let task = self.processes.get_mut(id);
        let doubtful = std::mem::take(&mut task.doubtful);
        let (woken_ns, waker) = (task.woken_ns.take(), task.waker.take());
        let waited_since_ns = task.runnable_since_ns.take().filter(|_| !unseen);
        let moved = std::mem::take(&mut task.moved);
        let since_ns = woken_ns.or(waited_since_ns);
        let lossy = doubtful || since_ns.is_some_and(|since_ns| !self.is_known_since(since_ns));
        if lossy {
            self.doubt_call(id);
        }
        let open = moved && {
            let known_ns = since_ns.filter(|_| !lossy);
            self.moved_wait_is_over(id, at_ns, (known_ns, waited_since_ns))
        };
        Wait {
            at_ns,
            woken_ns,
            waker: waker.and_then(|waker| self.processes.find(waker)),
            waited_since_ns,
            lossy,
            doubtful,
            inferred: false,
            within_ns: None,
            open,
        }
    }

    #[inline(always)] // who is not told pays nothing
    fn tell_scheduled_in<S: Sink>(&mut self, cpu: u32, process: ProcId, wait: Wait, sink: &mut S) {
        let Wait {
            at_ns,
            woken_ns,
            waker,
            waited_since_ns,
            lossy,
            inferred,
            within_ns,
            open,
            ..
        } = wait;
        let change = Change::ScheduledIn {
            cpu,
            process,
            at_ns,
            woken_ns,
            waker,
            waited_since_ns,
            lossy,
            inferred,
            within_ns,
            open: open && !lossy,
        };
        sink.change(self, &change);
        if !self.follows.queues {
            return;
        }
        let waited = waited_since_ns.filter(|_| !lossy);
        self.tell_behind(cpu, process, waited.map(|since_ns| (since_ns, at_ns)), sink);
    }

    /// A task has left its CPU.
    fn leave<S: Sink>(&mut self, cpu: u32, id: ProcId, runnable: bool, sink: &mut S) {
        let now_ns = self.now_ns;
        // Wake-ups come in two events: one that wakes, one when the task is on a run queue.
        let has_wakeup = self.families.wakeup;
        let stale = self.follows.stale_names;
        let process = self.processes.get_mut(id);
        if process.tid == 0 {
            return;
        }
        if self.tracks && process.tracked_ns.is_none() {
            // When it sleeps, waits and runs from here on is not recorded.
            process.doubtful = true;
            return;
        }
        process.left_cpu = cpu;
        let pending = process.pending.take().filter(|_| !runnable);
        let is_known = pending.is_none_or(|pending| self.is_known_since(pending.at_ns));
        let process = self.processes.get_mut(id);
        process.blocked_since_ns = (!runnable).then_some(now_ns);
        process.runnable_since_ns = runnable.then_some(now_ns);
        process.arrived = runnable.then_some(Arrival {
            cpu,
            at_ns: now_ns,
            under_way: false,
        });
        match pending {
            // Woken between its decision to block and this switch.
            Some(_) if !is_known && !stale => process.blocked_since_ns = None,
            Some(pending) if has_wakeup => {
                if !stale {
                    process.woken_ns = Some(pending.at_ns);
                    process.waker = pending.waker;
                }
                self.woken(id, pending.by, sink);
            }
            // That, or it went on and sleeps now: the next event of it tells.
            Some(pending) if !stale => {
                process.pending = Some(pending.left(now_ns));
                process.blocked_since_ns = None;
            }
            _ => {}
        }
        if self.processes.get(id).runnable_since_ns.is_some() {
            self.queue(id, cpu);
        }
    }

    /// The idle tasks share one number, so that their priority says nothing.
    #[inline]
    pub(super) fn prio<S: Sink>(&mut self, id: ProcId, prio: i32, sink: &mut S) {
        let process = self.processes.get_mut(id);
        if process.tid == 0 || process.prio == Some(prio) {
            return;
        }
        process.prio = Some(prio);
        sink.change(self, &Change::Prio { process: id, prio });
    }

    fn fork<S: Sink>(&mut self, event: &EventView<'_>, life: Life, sink: &mut S) {
        let Life::Fork {
            parent,
            parent_comm,
            child_tid,
            child_pid,
            child_comm,
        } = life
        else {
            return;
        };
        let parent_tid = event.i64(parent) as i32;
        let parent = self.processes.find_or_add(parent_tid);
        let process = self.processes.get_mut(parent);
        process.comm = Comm::new(event.text(parent_comm));
        let mut inherited = Vec::new();
        let group = process.group.clone();
        if child_pid.is_some() {
            process.pid = Some(parent_tid);
            let files = process.files.iter();
            inherited.extend(files.map(|(fd, file)| (*fd, file.clone())));
        }
        let child = self.processes.add(Process {
            tid: event.i64(child_tid) as i32,
            pid: child_pid.map(|child_pid| event.i64(child_pid) as i32),
            comm: Comm::new(event.text(child_comm)),
            files: IndexMap::with_capacity(inherited.len()),
            has_called: true,
            group,
            // Only forks of those that are tracked are recorded then.
            tracked_ns: self.tracks.then_some(self.now_ns),
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
