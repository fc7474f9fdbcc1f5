//! What the kernel's state tells the ledger: who has each CPU, what was inferred, found and lost.

use event::Prio;
use event::evidence::BlockedOn;
use kernel_state::{Change, Holder, Kernel, Pause, ProcId, Sink, Topic, Topics};

use super::build::Builder;
use super::candidates::End;
use super::chain::NodeId;
use super::cpu::VECTORS_MAX;
use super::tasks::{Run, TaskIndex, VersionId};
use crate::query::Until;

/// Of the idle tasks, on LTTng's scale: their priority says nothing.
const IDLE_PRIO: i32 = 20;

impl Sink for Builder {
    const TOPICS: Topics = Topics::of(&[Topic::Runs]);

    // Where a change is made, its kind is known: only what the ledger asks about is left there.
    #[inline(always)]
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        match *change {
            Change::Switch {
                cpu,
                prev,
                prev_runnable,
                pause,
                next,
                doubtful,
                ..
            } => {
                let end = match doubtful {
                    true => End::Doubtful,
                    false => End::Seen,
                };
                let left = (prev, prev_runnable, pause);
                self.switch(kernel, cpu, left, (next, end));
            }
            Change::Ran {
                cpu,
                holder,
                from_ns,
                until_ns,
                inferred,
            } => {
                let is_unknown = matches!(holder, Holder::Unknown | Holder::SomeTask);
                if inferred || is_unknown {
                    self.ran(kernel, cpu, holder, (from_ns, until_ns));
                }
            }
            Change::Inferred {
                cpu,
                process,
                from_ns,
            } => self.inferred(kernel, cpu, process, from_ns),
            Change::Found { cpu, process } => self.found(kernel, cpu, process),
            Change::Unknown { cpu, process, .. } => self.left_unseen(kernel, cpu, process),
            Change::RanUnseen { process } => self.lose_sight(kernel, process),
            Change::MayHaveWaited {
                process,
                since_ns,
                count,
                ..
            } => self.may_have_waited(kernel, process, (since_ns, count)),
            Change::NoLock { process, surely } => self.waited_for_work(kernel, process, surely),
            Change::Doubted { process } => self.doubted(kernel, process),
            Change::DoubtedBefore { process, at_ns } => self.doubted_before(kernel, process, at_ns),
            Change::Lost { cpu, from_ns, .. } => self.lost_on(cpu, from_ns),
            _ => {}
        }
    }
}

impl Builder {
    /// A switch was recorded.
    fn switch(
        &mut self,
        kernel: &Kernel,
        cpu: u32,
        (prev, prev_runnable, pause): (ProcId, bool, Pause),
        (next, end): (ProcId, End),
    ) {
        let lock = kernel.process(prev).lock();
        let stopper = pause.is_stop().then(|| kernel.stopper(prev, pause));
        let was_woken_there = kernel.process(prev).pending.is_some();
        let (prev, before) = self.seen_task(kernel, prev, cpu);
        self.rename_run(cpu, prev, before);
        if was_woken_there {
            self.woken_on_cpu(cpu, prev);
        }
        let (next, _) = self.seen_task(kernel, next, cpu);
        let at = (cpu, kernel.now_ns());
        match (pause, lock) {
            (Pause::Lock, Some(lock)) => self.sleeps_for(at, prev, BlockedOn::Mutex, lock),
            (Pause::Fault, _) => self.sleeps_for(at, prev, BlockedOn::Fault, 0),
            _ => {}
        }
        let left = (prev, prev_runnable, pause);
        let state = self.tasks.state(next);
        let slept = state.run == Run::Blocked && kernel.is_known_since(state.blocked_ns);
        let is_first = state.log.is_empty();
        self.first_ns = kernel.first_ns();
        self.switched(cpu, kernel.now_ns(), left, (next, end));
        if let Some(stopper) = stopper.filter(|_| !self.families.hit) {
            self.stopped_by(at, prev, stopper, kernel);
        }
        if self.tasks.state(next).chain.is_none() {
            match slept {
                true => self.woken_unseen(at, next),
                false if is_first => self.waited_already(at, next),
                false => {}
            }
        }
    }

    /// Nobody knows what a task does, or it has run nobody knows when.
    #[cold]
    fn lose_sight(&mut self, kernel: &Kernel, process: ProcId) {
        let task = self.tasks.of_process(kernel, process, 0);
        self.lose_activation(task, kernel.now_ns());
        self.forget(task);
    }

    /// A task has left its CPU unseen: nobody knows who has that since then.
    #[cold]
    fn left_unseen(&mut self, kernel: &Kernel, cpu: u32, process: ProcId) {
        // Of one that ended, another one may have the id by now.
        if kernel.find(kernel.process(process).tid) == Some(process) {
            self.lose_sight(kernel, process);
        }
        let task = self.tasks.of_process(kernel, process, cpu);
        let state = self.cpu(cpu);
        if state.current == Some(task) {
            (state.current, state.lost, state.left_unseen) = (None, true, true);
            self.basis.unpaired += 1;
            self.mark(cpu, kernel.now_ns(), false);
        }
    }

    /// A task that seemed to have a CPU may have slept when it was woken.
    #[cold]
    fn may_have_waited(&mut self, kernel: &Kernel, process: ProcId, (since_ns, count): (i64, u64)) {
        let task = self.tasks.of_process(kernel, process, 0);
        let version = self.tasks.state(task).version;
        let version = self.tasks.version(version);
        let wanted = version.is_some_and(|version| version.wanted);
        if wanted && self.candidates.may_be_late(kernel.now_ns() - since_ns) {
            self.basis.doubted += count;
        }
    }

    /// A task may have run while it seemed to wait.
    #[cold]
    fn doubted(&mut self, kernel: &Kernel, process: ProcId) {
        // Of one that ended, another one may have the id by now.
        if kernel.find(kernel.process(process).tid) != Some(process) {
            return;
        }
        let task = self.tasks.of_process(kernel, process, 0);
        // What a loss made doubtful is graded so.
        if kernel.is_known_since(self.tasks.state(task).woken_ns) {
            self.lose_activation(task, kernel.now_ns());
            self.forget(task);
        }
    }

    /// A task as an event has just named it to the kernel's state; and what it was until now.
    #[inline(always)] // twice for each switch
    fn seen_task(&mut self, kernel: &Kernel, id: ProcId, cpu: u32) -> (TaskIndex, VersionId) {
        let task = self.tasks.of_process(kernel, id, cpu);
        let before = self.tasks.state(task).version;
        let process = kernel.process(id);
        let prio = Prio::from_lttng(process.prio.unwrap_or(IDLE_PRIO));
        if !self.tasks.is_named(before, &process.comm, prio) {
            self.tasks
                .name(task, process.tid, process.comm.bytes(), prio);
        }
        (task, before)
    }

    /// A task, with the name that it has now, and the priority that the kernel's state knows; and
    /// what it was until now.
    fn named_task(
        &mut self,
        kernel: &Kernel,
        id: ProcId,
        cpu: u32,
        comm: &[u8],
    ) -> (TaskIndex, VersionId) {
        let task = self.tasks.of_process(kernel, id, cpu);
        let before = self.tasks.states[task.0 as usize].version;
        let process = kernel.process(id);
        let prio = Prio::from_lttng(process.prio.unwrap_or(IDLE_PRIO));
        self.tasks.name(task, process.tid, comm, prio);
        (task, before)
    }

    /// A task leaves a CPU on which it was woken, though it seemed to sleep then.
    fn woken_on_cpu(&mut self, cpu: u32, task: TaskIndex) {
        let state = self.tasks.state(task);
        if state.run == Run::Woken && !state.work.inside {
            state.run = Run::On(cpu);
            state.pending = std::mem::replace(&mut state.chain, NodeId::NONE);
        }
    }

    /// Somebody had a CPU who did not seem to, or nobody knows who.
    #[cold]
    fn ran(&mut self, kernel: &Kernel, cpu: u32, holder: Holder, range_ns: (i64, i64)) {
        let version = holder.task().map(|id| {
            let task = self.tasks.of_process(kernel, id, cpu);
            self.tasks.state(task).version
        });
        let Some(state) = self.cpus.get_mut(cpu as usize) else {
            return;
        };
        match version {
            // It is not known to have had the CPU until then.
            Some(version) if state.timeline.at(range_ns.0).task == version => {
                state.timeline.open(range_ns);
            }
            _ => state.timeline.settle(range_ns, version),
        }
    }

    /// A task has had the CPU since `from_ns` at the earliest, and not whoever seemed to.
    #[cold]
    fn inferred(&mut self, kernel: &Kernel, cpu: u32, process: ProcId, from_ns: i64) {
        let comm = kernel.name(kernel.process(process));
        let (task, _) = self.named_task(kernel, process, cpu, comm);
        self.has_not(cpu, task);
        // One that was preempted as it was about to sleep may be woken later than it could run.
        let woken_ns = self.tasks.state(task).woken_ns;
        self.enter_at(cpu, from_ns.max(woken_ns), task, End::Inferred);
        self.cpu(cpu).current = Some(task);
        self.basis.inferred += 1;
    }

    /// The tracer says with an event that a task has the CPU now, where it did not seem to.
    #[cold]
    fn found(&mut self, kernel: &Kernel, cpu: u32, process: ProcId) {
        let known = kernel.process(process);
        let task = match known.prio.is_some() || known.tid == 0 {
            true => self.named_task(kernel, process, cpu, kernel.name(known)).0,
            // It has no name until another event says it.
            false => self.tasks.of_process(kernel, process, cpu),
        };
        let now_ns = kernel.now_ns();
        let state = self.cpu(cpu);
        let unpaired = state.frames.len() as u64;
        state.frames.clear();
        state.left_handler = None;
        (state.throttled, state.lost) = (false, false);
        self.basis.unpaired += unpaired;
        if self.cpu(cpu).current != Some(task) {
            self.cpu(cpu).left_unseen = false;
            self.has_not(cpu, task);
            let state = self.tasks.state(task);
            let woken_ns = (state.run == Run::Woken).then_some(state.woken_ns);
            let is_known = woken_ns.is_some_and(|woken_ns| kernel.is_known_since(woken_ns));
            // Only its switch-in was not recorded: how long it takes to the end of its work is
            // known.
            let end = match is_known && self.until == Until::Block {
                true => End::Inferred,
                false => {
                    self.lose_activation(task, now_ns);
                    self.forget(task);
                    End::Seen
                }
            };
            self.cpu(cpu).current = Some(task);
            self.enter_at(cpu, now_ns, task, end);
        }
        self.mark(cpu, now_ns, false);
    }

    /// Whoever seemed to have the CPU does not, as this one has it: whether there is such a task.
    pub(super) fn has_not(&mut self, cpu: u32, task: TaskIndex) -> bool {
        let seemed = self.cpu(cpu).current.filter(|current| *current != task);
        if let Some(current) = seemed {
            self.basis.unpaired += 1;
            self.forget(current);
        }
        seemed.is_some()
    }

    /// Events were lost from then on: on this CPU, or on any when nobody knows.
    fn lost_on(&mut self, cpu: Option<u32>, from_ns: i64) {
        let all = 0..self.cpus.len() as u32;
        for cpu in all.filter(|each| cpu.is_none_or(|cpu| cpu == *each)) {
            let state = self.cpu(cpu);
            state.frames.clear();
            state.raised = [NodeId::NONE; VECTORS_MAX];
            state.throttled = false;
            state.lost = true;
            state.timeline.leave_run_open();
            if let Some(current) = state.current.take() {
                self.forget(current);
            }
            self.mark(cpu, from_ns, false);
        }
    }
}
