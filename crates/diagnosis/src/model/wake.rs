//! The pass over the events: who wakes whom, and where a chain goes on. What the task did that is
//! woken, the kernel's state says.

use event::evidence::{ReleaseKind, Released};
use event::{Cpu, Duration, Instant, Prio};
use kernel_state::bind::{TaskFields, WakeKind, WakeUp, Within};
use kernel_state::{Kernel, ProcId, Wakee};
use trace::EventView;

use super::build::Builder;
use super::chain::{NewNode, NodeId};
use super::ends::Work;
use super::tasks::{At, MomentKind, Run, TaskIndex, TaskState};
use crate::StepKind;

/// Who may have made a wake-up, or raised a softirq, where no handler was seen to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The tracer says that a hard interrupt did.
    Hard,
    /// The task on the CPU: the tracer says so, or shows all that interrupts it.
    Task,
    /// That task or what interrupts it.
    Anybody,
}

impl By {
    /// Of what happens on a CPU now, `within` what the tracer says.
    pub fn of(kernel: &Kernel, cpu: u32, within: Option<Within>) -> By {
        match within {
            Some(Within::Hard) => By::Hard,
            Some(Within::Task) => By::Task,
            Some(Within::Soft) => By::Anybody,
            None if kernel.shows_waker(cpu) => By::Task,
            None => By::Anybody,
        }
    }
}

impl Builder {
    /// A task that is woken, as the event tells it. One that runs may have another priority
    /// since it came.
    fn see_woken(
        &mut self,
        kernel: &Kernel,
        at: At,
        id: ProcId,
        wake_up: &WakeUp<'_>,
    ) -> TaskIndex {
        let task = self.tasks.of_process(kernel, id, at.cpu);
        let before = self.tasks.state(task).version;
        let prio = Prio::from_lttng(wake_up.prio);
        self.tasks.name(task, wake_up.tid, wake_up.comm, prio);
        let state = self.tasks.state(task);
        if let Run::On(on) = state.run
            && before != state.version
            && self
                .cpus
                .get(on as usize)
                .is_some_and(|cpu| cpu.current == Some(task))
        {
            self.mark(on, at.now_ns, false);
        }
        task
    }

    /// A wake-up, whichever of its events tells it.
    pub(super) fn woken(
        &mut self,
        kernel: &mut Kernel,
        at: At,
        kind: WakeKind,
        (fields, event): (&TaskFields, &EventView<'_>),
    ) {
        let wake_up = fields.wake_up(event);
        let id = kernel.wake(at.cpu, kind, &wake_up, self);
        let task = self.see_woken(kernel, at, id, &wake_up);
        let target = wake_up.target.unwrap_or(at.cpu);
        let woken = (task, kernel.wakee());
        let events = (kind, self.families.waking);
        self.cycles
            .wake(events, woken.1, task.0, (at.cpu, at.now_ns));
        let by = By::of(kernel, at.cpu, fields.within(event));
        match kind {
            WakeKind::Waking => self.wake(at.cpu, at.now_ns, woken, target, by),
            WakeKind::Wakeup | WakeKind::WakeupNew => {
                self.wakeup(at, woken, target, (by, kind == WakeKind::WakeupNew));
                let is_asked = fields.asks(event).filter(|_| target == at.cpu);
                if let Some(moment) = self.tasks.state(task).log.last_mut() {
                    moment.goes_behind = is_asked == Some(false);
                }
            }
        }
    }

    /// A wake-up from the context that runs on `cpu`.
    fn wake(
        &mut self,
        cpu: u32,
        now_ns: i64,
        (task, wakee): (TaskIndex, Wakee),
        target: u32,
        by: By,
    ) {
        let state = self.tasks.state(task);
        if matches!(wakee, Wakee::Waited | Wakee::Preempted) {
            // While it is runnable, the first origin stays.
            return;
        }
        if wakee == Wakee::Slept {
            state.pending = NodeId::NONE;
        }
        if let Some(due_ns) = state.work.stopped_due_ns {
            return self.wakes_stopped((cpu, now_ns), task, (target, due_ns));
        }
        if state.work.inside {
            // What it slept for inside its work is over: the activation goes on.
            state.run = Run::Woken;
            state.woken_ns = now_ns;
            self.log_by(task, now_ns, target, cpu, MomentKind::Waking);
            return;
        }
        let version = state.version;
        let stopped_since_ns = state.work.take_stopped_since_ns();
        let context = match self.handler_of_thread(cpu, now_ns, version) {
            Some(chain) => chain,
            None if self.is_waker_stopped_asleep(cpu) => NodeId::NONE,
            None => self.context_of_waker(cpu, now_ns, by),
        };
        let seems = [
            self.seems_handed_on(cpu, by),
            self.seems_of_waker(cpu),
            stopped_since_ns,
        ];
        let seems = seems.into_iter().flatten().min();
        let parent = self.arena.fresh(context, now_ns);
        let step = self.step(task, StepKind::Waking, (cpu, now_ns));
        if wakee == Wakee::Ran {
            // Of several, the last counts: after the others it went on.
            let node = self.arena.add(parent, step);
            self.tasks.state(task).pending = node;
            self.tasks.state(task).woken_ns = now_ns;
            self.log_by(task, now_ns, target, cpu, MomentKind::Waking);
            return;
        }
        let chain = self.arena.add(parent, step);
        self.note_slack((cpu, now_ns), task);
        let chain = self.wait_since_block(task, parent, chain);
        let state = self.tasks.state(task);
        state.work.seems_since_ns = seems.map(|origin_ns| origin_ns.max(state.blocked_ns));
        state.run = Run::Woken;
        state.woken_ns = now_ns;
        state.chain = chain;
        self.note_woken(cpu, now_ns, task, by);
        self.log_by(task, now_ns, target, cpu, MomentKind::Waking);
    }

    /// A step of a chain: what `task` does, on a CPU and when.
    pub(super) fn step(
        &self,
        task: TaskIndex,
        kind: StepKind,
        (cpu, time_ns): (u32, i64),
    ) -> NewNode {
        let version = self.tasks.states[task.0 as usize].version;
        let id = self.tasks.version(version);
        NewNode {
            time_ns,
            kind,
            cpu,
            id: id.map_or(0, |version| version.tid.0),
            version,
        }
    }

    /// A task goes on that was stopped in its sleep, which was to end at `due_ns`.
    fn wakes_stopped(&mut self, at: (u32, i64), task: TaskIndex, (target, due_ns): (u32, i64)) {
        let parent = self.continues(at, task, due_ns);
        let step = self.step(task, StepKind::Waking, at);
        let chain = self.arena.add(parent, step);
        let state = self.tasks.state(task);
        (state.run, state.woken_ns, state.chain) = (Run::Woken, at.1, chain);
        self.log_by(task, at.1, target, at.0, MomentKind::Waking);
    }

    /// A timer with slack wakes a task: a watch's record says so, or its arming does.
    fn note_slack(&mut self, (cpu, now_ns): (u32, i64), task: TaskIndex) {
        let armed = self.cpus.get(cpu as usize).and_then(|cpu| cpu.slack);
        let version = self.tasks.states[task.0 as usize].version;
        let version = self.tasks.version(version);
        if let (Some(armed), Some(version)) = (armed, version)
            && !self.families.hit
        {
            self.evidence.saw_slack(Released {
                cpu: Cpu(cpu),
                time: Instant::from_ns(now_ns),
                release: Instant::from_ns(armed.due_ns),
                previous: Instant::from_ns(0),
                slack: Duration::from_ns(armed.slack_ns),
                task: version.task_ref(),
                why: ReleaseKind::Slack,
            });
        }
    }

    /// A task is on a run queue; `new`: it was just made.
    fn wakeup(
        &mut self,
        at: At,
        (task, wakee): (TaskIndex, Wakee),
        target: u32,
        (by, new): (By, bool),
    ) {
        if new {
            // A fork is nobody's deadline: the new task begins a chain of its own.
            self.forget(task);
            let state = self.tasks.state(task);
            state.work = Work::forked();
            state.made_ns = Some(at.now_ns);
            // Whoever had its number before slept for something else.
            state.blocked_ns = at.now_ns;
        }
        if new || !self.families.waking {
            self.wake(at.cpu, at.now_ns, (task, wakee), target, by);
        }
        if wakee == Wakee::Ran {
            // It never left the run queue: no activation begins.
            self.tasks.state(task).pending = NodeId::NONE;
        }
        self.log(task, at.now_ns, target, MomentKind::Wakeup);
    }

    /// Since when what is woken now were late, had the task on the CPU done it, or had its softirq
    /// been raised before that thread was woken: nobody knows.
    fn seems_handed_on(&self, cpu: u32, by: By) -> Option<i64> {
        let unknown = by == By::Anybody && !self.is_handled(cpu) && !self.ends(cpu);
        let chain = match unknown {
            true => self.context(cpu),
            false => self.thread_of_unraised(cpu)?,
        };
        self.arena.get(chain).map(|node| node.origin_ns)
    }

    /// The task that wakes on a CPU now, if one does.
    fn waker(&self, cpu: u32) -> Option<&TaskState> {
        let is_task = !self.is_handled(cpu) && !self.ends(cpu);
        let current = self.cpus[cpu as usize].current.filter(|_| is_task)?;
        Some(&self.tasks.states[current.0 as usize])
    }

    /// Whether the task that wakes on a CPU was stopped in its sleep: nobody knows whether it has
    /// this to do since then, or was only woken for that.
    fn is_waker_stopped_asleep(&self, cpu: u32) -> bool {
        self.waker(cpu)
            .is_some_and(|waker| waker.work.stopped_asleep)
    }

    /// Since when the task that wakes on a CPU may have had this to do.
    fn seems_of_waker(&self, cpu: u32) -> Option<i64> {
        let waker = self.waker(cpu)?;
        match waker.work.stopped_asleep {
            true => self.arena.get(waker.chain).map(|node| node.origin_ns),
            false => waker.work.seems_since_ns,
        }
    }

    /// The chain of the thread that serves softirqs on a CPU now, where the trace has no event of
    /// their raising.
    fn thread_of_unraised(&self, cpu: u32) -> Option<NodeId> {
        let state = &self.cpus[cpu as usize];
        let task = state
            .current
            .map(|task| &self.tasks.states[task.0 as usize])?;
        let serves = state.frames.is_empty() && !task.softirqs.is_empty();
        let passes = |chain: NodeId| {
            let came = self.arena.get(chain)?;
            Some(self.tasks.version(came.version)?.passes)
        };
        let is_unknown = !self.families.raise && serves && passes(task.chain) == Some(true);
        is_unknown.then_some(task.chain)
    }

    /// Whether a handler is seen to have the CPU.
    pub(super) fn is_handled(&self, cpu: u32) -> bool {
        let state = &self.cpus[cpu as usize];
        let task = state
            .current
            .map(|task| &self.tasks.states[task.0 as usize]);
        !state.frames.is_empty() || task.is_some_and(|task| !task.softirqs.is_empty())
    }

    /// The chain of what runs on the CPU now. A fair task that does not only pass work on does work
    /// of its own: what it wakes is not late since its own wake-up.
    pub(super) fn context(&self, cpu: u32) -> NodeId {
        let state = &self.cpus[cpu as usize];
        if let Some(frame) = state.frames.last() {
            return frame.current;
        }
        let Some(task) = state
            .current
            .map(|task| &self.tasks.states[task.0 as usize])
        else {
            return NodeId::NONE;
        };
        if let Some(frame) = task.softirqs.last() {
            return frame.current;
        }
        match self.hands_on(task.chain) {
            true => task.chain,
            false => NodeId::NONE,
        }
    }

    /// Whether a task that was scheduled in by this chain hands it on. The chain's last step is its
    /// switch-in: a boost since then is somebody else's.
    pub(super) fn hands_on(&self, chain: NodeId) -> bool {
        let came = self.arena.get(chain);
        let came = came.and_then(|node| self.tasks.version(node.version));
        came.is_some_and(|came| came.passes || came.prio.is_real_time())
    }
}
