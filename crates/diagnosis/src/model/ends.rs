//! Where activations end: at the switch-in, or where the work is done.
//!
//! A task sleeps inside its work (uninterruptibly: a lock of the kernel, a page, a device), or it
//! has done its work and waits for the next. A task of which no begin was seen is judged by its
//! waits.

use super::build::Builder;
use super::candidates::{Candidate, End};
use super::chain::NodeId;
use super::tasks::{Run, TaskIndex, TaskState, Version};
use crate::StepKind;
use crate::finding::{Renamed, SleepsInside};
use crate::origins::Origin;
use crate::query::Until;
use event::evidence::{Asleep, Blocked, BlockedOn, StopKind, Stopped};
use event::{Cpu, Duration, Instant, Tid};
use kernel_state::bind::STOPPED_ASLEEP_NS_MAX;
use kernel_state::{Kernel, Pause, ProcId, Stopper};

/// A task's present activation, as far as its chain does not say it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// It sleeps, or is woken from a sleep, in the middle of its work.
    pub inside: bool,
    /// It began with the making of the task, which is nobody's deadline.
    pub forked: bool,
    /// It was scheduled in by a switch that was not recorded, or may have run there before.
    pub doubtful: bool,
    /// For how long it has run.
    pub own_ns: i64,
    /// Since when it runs.
    since_ns: i64,
    /// Since when it were late, had the task on the waker's CPU woken it: nobody knows.
    pub seems_since_ns: Option<i64>,
    /// It was stopped as it had hardly been woken: perhaps in its sleep, to be stopped.
    pub stopped_asleep: bool,
    /// When it is due that is stopped in its sleep, where a timer of its own says so.
    pub stopped_due_ns: Option<i64>,
    /// It was woken before it had left its CPU.
    pub woken_early: bool,
    /// It is counted as one that may have been late.
    doubted: bool,
    /// Where it was put off, when no begin of its activation was seen.
    put_off: Option<(u32, i64)>,
    /// It is in an activation of which nobody knows any more since when it lasts.
    lost: bool,
    /// Since when it were late, had what it slept for come while it was stopped: nobody knows.
    stopped_since_ns: Option<i64>,
}

impl Work {
    /// Of a task that is lost sight of, in the midst of an activation where that is said.
    pub fn lost(lost: bool) -> Work {
        Work {
            lost,
            ..Work::default()
        }
    }

    /// Of a task that was just made.
    pub fn forked() -> Work {
        Work {
            forked: true,
            ..Work::default()
        }
    }

    /// Since when what it slept for may have come, where it was stopped in that sleep; told once.
    pub fn take_stopped_since_ns(&mut self) -> Option<i64> {
        self.stopped_since_ns.take()
    }

    /// Whether it was lost sight of, and not seen to end its work since.
    pub fn is_lost(&self) -> bool {
        self.lost
    }
}

impl TaskState {
    /// The chain that a task goes on with when it leaves the CPU: its own while it is in its work.
    pub(super) fn leave_chain(&mut self, next: NodeId) {
        if !self.work.inside {
            self.chain = next;
        }
    }
}

/// What stopped a task that leaves its CPU so.
pub(super) fn halt(pause: Pause) -> Option<StopKind> {
    match pause {
        Pause::Stopped => Some(StopKind::Signal),
        Pause::Traced => Some(StopKind::Traced),
        Pause::Frozen => Some(StopKind::Frozen),
        _ => None,
    }
}

impl Builder {
    /// Whether a task is in an activation that is judged to its end.
    pub(super) fn is_judged_to_its_end(&self, state: &TaskState) -> bool {
        self.until == Until::Block && !state.chain.is_none() && self.is_wanted(state)
    }

    /// Whether a task is one of those that are asked for.
    fn is_wanted(&self, state: &TaskState) -> bool {
        let version = self.tasks.version(state.version);
        version.is_some_and(|version| version.wanted)
    }

    /// `task` leaves its CPU, of which it is not told yet.
    pub(super) fn work_pauses(&mut self, cpu: u32, now_ns: i64, task: TaskIndex, pause: Pause) {
        if self.until == Until::SwitchIn {
            if pause == Pause::Done {
                self.tasks.state(task).worked_ns = Some(now_ns);
            }
            return;
        }
        let state = &mut self.tasks.states[task.0 as usize];
        if state.run == Run::On(cpu) {
            state.work.own_ns += now_ns - state.work.since_ns;
        }
        let state = &self.tasks.states[task.0 as usize];
        let is_judged = self.is_judged_to_its_end(state);
        let wanted = self.is_wanted(state);
        let (chain, forked) = (state.chain, state.work.forked);
        // Each runtime of a deadline is a new begin.
        let version = self.tasks.version(state.version);
        let has_deadline = version.is_some_and(|version| version.prio.has_deadline());
        // It may have been called otherwise as it was made, or not have been seen for a while: each
        // of its waits is one by itself.
        let starts = forked || state.made_ns.is_some();
        let is_unbegun = chain.is_none() && (!state.work.lost || has_deadline || starts);
        match pause {
            Pause::PutOff | Pause::OutOfRuntime if wanted && (is_unbegun || forked) => {
                self.tasks.state(task).work.put_off = Some((cpu, now_ns));
            }
            Pause::PutOff | Pause::OutOfRuntime => {}
            Pause::Inside | Pause::Lock | Pause::Fault => {
                // Its wake-up does not begin what was not seen to begin, either.
                let unbegun = wanted && chain.is_none() && !forked;
                self.tasks.state(task).work.inside = is_judged || unbegun;
            }
            // What it has for others waits as well.
            Pause::Stopped | Pause::Traced | Pause::Frozen if !chain.is_none() => {
                self.is_stopped((cpu, now_ns), task, pause)
            }
            Pause::Stopped | Pause::Traced | Pause::Frozen => {}
            // Nobody knows since when it was due.
            Pause::Done | Pause::Gone if !forked && self.may_be_late_after_stop(now_ns, task) => {
                self.basis.stopped_asleep += 1;
            }
            // Whoever ends after its work has done it too.
            Pause::Done | Pause::Gone if is_judged && !starts => {
                self.candidate(cpu, now_ns, task, End::Blocked);
            }
            // It had begun before the trace, or woke up unseen.
            Pause::Done if wanted && !starts => self.ends_unbegun((cpu, now_ns), task),
            Pause::Done | Pause::Gone if wanted && starts => {
                self.started((cpu, now_ns), task, pause == Pause::Done);
            }
            Pause::Done | Pause::Gone if !starts => self.renamed((cpu, now_ns), task),
            Pause::Done | Pause::Gone => {}
        }
        if pause == Pause::Done {
            self.candidates.sleeps(task);
        }
        if matches!(pause, Pause::Done | Pause::Gone) {
            let state = self.tasks.state(task);
            (state.work, state.worked_ns) = (Work::default(), Some(now_ns));
            state.made_ns = None;
        }
    }

    /// `task` sleeps for something of its program's: a lock, which has an address and of which the
    /// wake-up tells who has it, or a page.
    pub(super) fn sleeps_for(&mut self, at: (u32, i64), task: TaskIndex, on: BlockedOn, lock: u64) {
        let state = &self.tasks.states[task.0 as usize];
        // A watch says more of it.
        let version = self
            .tasks
            .version(state.version)
            .filter(|_| !self.families.hit);
        let Some(version) = version else { return };
        self.evidence.saw_block(Blocked {
            cpu: Cpu(at.0),
            time: Instant::from_ns(at.1),
            task: version.task_ref(),
            on,
            owner: None,
            lock,
            stack: Vec::new(),
        });
    }

    /// `task` is stopped in its work, which goes on afterwards.
    fn is_stopped(&mut self, (cpu, now_ns): (u32, i64), task: TaskIndex, pause: Pause) {
        let state = &self.tasks.states[task.0 as usize];
        let by_timer = self.arena.came_by_timer(state.chain);
        let is_asleep = !by_timer && state.work.own_ns <= STOPPED_ASLEEP_NS_MAX;
        let due_ns = self.cycles.due_ns(task.0, now_ns).filter(|_| is_asleep);
        // Nobody knows whether what it slept for came meanwhile.
        if is_asleep && due_ns.is_none() && !self.is_judged_to_its_end(state) {
            let origin_ns = self.arena.get(state.chain).map(|node| node.origin_ns);
            self.tasks.state(task).work.stopped_since_ns = origin_ns;
            return;
        }
        let Some(version) = self.tasks.version(state.version) else {
            return;
        };
        // A watch says more of it.
        if !self.families.hit {
            self.evidence.saw_stop(Stopped {
                cpu: Cpu(cpu),
                time: Instant::from_ns(now_ns),
                task: version.task_ref(),
                how: halt(pause).unwrap_or(StopKind::Signal),
                by: None,
                signal: 0,
                asleep: due_ns.map_or(Asleep::No, |_| Asleep::Until),
            });
        }
        let work = &mut self.tasks.state(task).work;
        work.inside = true;
        work.stopped_asleep |= is_asleep && due_ns.is_none();
        work.stopped_due_ns = due_ns;
    }

    /// Who stopped `task`, which has just left its CPU.
    pub(super) fn stopped_by(
        &mut self,
        at: (u32, i64),
        task: TaskIndex,
        by: Stopper,
        kernel: &Kernel,
    ) {
        let who = by.by.map(|by| self.tasks.of_process(kernel, by, at.0));
        let version = |task: TaskIndex| {
            self.tasks
                .version(self.tasks.states[task.0 as usize].version)
        };
        let who = who.and_then(version).map(Version::task_ref);
        let tid = version(task).map(|task| task.tid);
        let last = self.evidence.last_stop();
        let its = last.filter(|stop| stop.time.as_ns() == at.1 && Some(stop.task.tid) == tid);
        if let Some(stop) = its {
            (stop.by, stop.signal) = (who, by.signal);
        }
    }

    /// `task`, which was stopped in its sleep until `due_ns`, may go on: the chain of its
    /// activation, to which its wake-up is to be added. It is late since it was due; none where it
    /// was not due yet.
    pub(super) fn continues(
        &mut self,
        (cpu, now_ns): (u32, i64),
        task: TaskIndex,
        due_ns: i64,
    ) -> NodeId {
        let state = self.tasks.state(task);
        state.work = Work::default();
        if due_ns > now_ns {
            return NodeId::NONE;
        }
        let step = self.step(task, StepKind::Blocked, (cpu, due_ns));
        self.arena.add(NodeId::NONE, step)
    }

    /// Whether an activation that ends may have begun while its task was stopped in its sleep, so
    /// long ago that it is late.
    fn may_be_late_after_stop(&self, now_ns: i64, task: TaskIndex) -> bool {
        let state = &self.tasks.states[task.0 as usize];
        let begun = self.arena.get(state.chain);
        let begun = begun.filter(|_| state.work.stopped_asleep && self.is_judged_to_its_end(state));
        begun.is_some_and(|node| self.candidates.may_be_late(now_ns - node.origin_ns))
    }

    /// `task` is scheduled in; whether its activation goes on.
    pub(super) fn work_resumes(
        &mut self,
        cpu: u32,
        now_ns: i64,
        (task, end): (TaskIndex, End),
        was: Run,
    ) -> bool {
        let state = self.tasks.state(task);
        state.work.since_ns = now_ns;
        state.work.doubtful |= end != End::Seen;
        let goes_on = std::mem::take(&mut state.work.inside);
        if let (Run::Preempted, Some(put_off)) = (was, state.work.put_off.take()) {
            self.was_put_off(put_off, (cpu, now_ns), task);
        }
        goes_on
    }

    /// `task` is scheduled in for the first time since its wake-up.
    pub(super) fn comes_on_cpu(&mut self, cpu: u32, now_ns: i64, task: TaskIndex, end: End) {
        let work = &mut self.tasks.state(task).work;
        work.own_ns = 0;
        work.doubtful = end != End::Seen;
        let forked = work.forked;
        if self.until == Until::SwitchIn || forked {
            let seen = self.candidates.seen;
            self.candidate(cpu, now_ns, task, end);
            self.basis.start_ups += u64::from(forked) * (self.candidates.seen - seen);
        }
    }

    /// A task whose begin nobody saw waited for a CPU.
    fn was_put_off(&mut self, from: (u32, i64), until: (u32, i64), task: TaskIndex) {
        let step = self.step(task, StepKind::Preempted, from);
        let state = self.tasks.state(task);
        let (own_ns, chain) = (std::mem::take(&mut state.work.own_ns), state.chain);
        let starts = state.work.forked || state.made_ns.is_some();
        state.chain = self.arena.add(NodeId::NONE, step);
        match self.candidate_of(until.0, until.1, task, End::Seen) {
            Some(wait) if starts => self.candidates.hold(task, wait),
            Some(wait) => self.offer(wait, task),
            None => {}
        }
        let state = self.tasks.state(task);
        (state.chain, state.work.own_ns) = (chain, own_ns);
    }

    /// The trace ends while `task` is in its work, if it is.
    pub(super) fn work_goes_on(&mut self, end_ns: i64, task: TaskIndex) {
        let state = &self.tasks.states[task.0 as usize];
        let is_open = matches!(state.run, Run::On(_) | Run::Preempted) || state.work.inside;
        if !is_open || !self.is_judged_to_its_end(state) {
            return;
        }
        let cpu = state.log.last().map_or(0, |moment| moment.cpu);
        if state.work.forked || state.made_ns.is_some() {
            return self.started((cpu, end_ns), task, state.work.inside);
        }
        if let Run::On(_) = state.run {
            let ran_ns = end_ns - state.work.since_ns;
            self.tasks.state(task).work.own_ns += ran_ns;
        }
        self.candidate(cpu, end_ns, task, End::Open);
    }

    /// The trace ends: tasks that wait may have run where nothing was recorded.
    pub(super) fn doubt_waits(&mut self, kernel: &Kernel) {
        let known = kernel.processes();
        let is_it = |id: ProcId, tid: i32| kernel.find(tid) == Some(id);
        let waits = known.filter(|(id, process)| process.doubtful && is_it(*id, process.tid));
        for (id, _) in waits {
            let task = self.tasks.of_process(kernel, id, 0);
            let state = self.tasks.state(task);
            state.work.doubtful |= state.run == Run::Woken;
        }
    }

    /// A task that was scheduled in at `at_ns` may have run while it seemed to wait: so long its
    /// activation took at most.
    #[cold]
    pub(super) fn doubted_before(&mut self, kernel: &Kernel, process: ProcId, at_ns: i64) {
        let tid = kernel.process(process).tid;
        // Of one that ended, another one may have the id by now.
        if kernel.find(tid) == Some(process) {
            let task = self.tasks.of_process(kernel, process, 0);
            let state = self.tasks.state(task);
            let begun = self.arena.get(state.chain);
            state.work.doubtful |= begun.is_some_and(|node| node.origin_ns < at_ns);
        }
        let tasks = &self.tasks;
        for candidate in self.candidates.kept_mut() {
            let version = tasks.version(candidate.version);
            let is_its = version.is_some_and(|version| version.tid.0 == tid);
            let begin_ns = candidate.end_ns - candidate.latency_ns;
            candidate.doubtful |= is_its && (begin_ns + 1..=candidate.end_ns).contains(&at_ns);
        }
    }

    /// The trace ends behind a wake-up of a task that left its CPU then and was not seen since: it
    /// waits, or had gone on and sleeps.
    pub(super) fn may_wait_still(&mut self, end_ns: i64, task: TaskIndex) {
        let state = &self.tasks.states[task.0 as usize];
        let wanted = self.is_wanted(state);
        if let Some(node) = self.arena.get(state.pending)
            && wanted
            && state.run == Run::Blocked
            && self.candidates.may_be_late(end_ns - node.origin_ns)
        {
            self.basis.doubted += 1;
        }
    }

    /// Offers an activation of a task that is asked for.
    pub(super) fn candidate(&mut self, cpu: u32, end_ns: i64, task: TaskIndex, end: End) {
        match self.candidate_of(cpu, end_ns, task, end) {
            Some(candidate) => self.offer(candidate, task),
            None => self.renamed((cpu, end_ns), task),
        }
    }

    /// An activation is over: it is counted where it is late, and its task is asked for by a name
    /// that it had before.
    fn renamed(&mut self, (cpu, end_ns): (u32, i64), task: TaskIndex) {
        let state = &self.tasks.states[task.0 as usize];
        let version = self.tasks.version(state.version);
        let version = version.filter(|version| version.was_wanted);
        let first = self.arena.get(state.chain);
        if let (Some(version), Some(first)) = (version, first)
            && self.candidates.may_be_late(end_ns - first.origin_ns)
            && self.candidates.is_asked_for(cpu, end_ns)
        {
            let length = Duration::from_ns(end_ns - first.origin_ns);
            let (before, task) = (self.basis.renamed.take(), version.task_ref());
            self.basis.renamed = Some(Renamed::with(before, task, length));
        }
    }

    fn offer(&mut self, candidate: Candidate, task: TaskIndex) {
        self.handed_on(&candidate, task);
        let tasks = &self.tasks;
        self.candidates
            .offer(candidate, || tasks.is_kernels(candidate.version));
    }

    /// Waits of tasks that were made and have never slept are activations of theirs.
    pub(super) fn start_ups_end(&mut self) {
        let held = self.candidates.take_held();
        let (tasks, seen) = (&self.tasks, self.candidates.seen);
        for wait in held {
            self.candidates
                .offer(wait, || tasks.is_kernels(wait.version));
        }
        self.basis.start_ups += self.candidates.seen - seen;
    }

    /// The activation of a task that ends now, if it is asked for.
    fn candidate_of(&self, cpu: u32, end_ns: i64, task: TaskIndex, end: End) -> Option<Candidate> {
        let state = &self.tasks.states[task.0 as usize];
        let (node, version, own_ns) = (state.chain, state.version, state.work.own_ns);
        let Work {
            doubtful,
            seems_since_ns,
            ..
        } = state.work;
        let wanted = self
            .tasks
            .version(version)
            .is_some_and(|version| version.wanted);
        let first = self.arena.get(node).filter(|_| wanted)?;
        let latency_ns = end_ns.saturating_sub(first.origin_ns);
        Some(Candidate {
            latency_ns,
            seems_ns: seems_since_ns.map_or(latency_ns, |since_ns| end_ns.saturating_sub(since_ns)),
            others_ns: latency_ns.saturating_sub(own_ns),
            node,
            end_ns,
            cpu,
            version,
            end,
            doubtful,
            slept_ns: self
                .cycles
                .slept_through(task.0)
                .filter(|_| end == End::Blocked),
        })
    }

    /// An activation is over of which somebody may ask when it began.
    fn handed_on(&mut self, late: &Candidate, task: TaskIndex) {
        let (Some(origins), Some(woken_ns)) = (&mut self.origins, self.arena.woken_ns(late.node))
        else {
            return;
        };
        let ago = |length_ns: i64| Instant::from_ns(late.end_ns.saturating_sub(length_ns));
        let origin = Origin {
            tid: self
                .tasks
                .version(late.version)
                .map_or(Tid(0), |task| task.tid),
            begin: ago(late.latency_ns),
            seems: ago(late.seems_ns),
            end: Instant::from_ns(late.end_ns),
        };
        let first = origin.begin.min(origin.seems);
        // A timer that ends a sleep says itself when it was due.
        let work = &self.tasks.states[task.0 as usize].work;
        let came = self.arena.get(late.node).map(|node| node.kind) == Some(StepKind::SwitchIn);
        let is_told = came && self.arena.came_by_timer(late.node) && !work.woken_early;
        if first.as_ns() < woken_ns && !is_told {
            origins.push(origin);
        }
    }

    /// Nobody knows how long a task has waited: an activation that is asked for may have been late.
    pub(super) fn lose_activation(&mut self, task: TaskIndex, now_ns: i64) {
        let state = &self.tasks.states[task.0 as usize];
        let wanted = self.is_wanted(state);
        if let Some(node) = self.arena.get(state.chain)
            && wanted
            && (state.run == Run::Woken || self.is_judged_to_its_end(state))
            && self.candidates.may_be_late(now_ns - node.origin_ns)
        {
            self.basis.doubted += 1;
        }
    }

    /// A task that has a CPU had ended its work when it last slept, as if for a lock, or may have.
    /// What it did before that is over, and what it did since has no begin that is known.
    #[cold]
    pub(super) fn waited_for_work(&mut self, kernel: &Kernel, process: ProcId, surely: bool) {
        let task = self.tasks.of_process(kernel, process, 0);
        let state = &self.tasks.states[task.0 as usize];
        let Some(node) = self.arena.get(state.chain) else {
            return;
        };
        let slept_ns = state.blocked_ns;
        let until_ns = match surely {
            true => slept_ns,
            false => kernel.now_ns(),
        };
        let cpu = state.log.last().map_or(0, |moment| moment.cpu);
        let is_judged = self.is_judged_to_its_end(state);
        if is_judged && (state.work.forked || state.made_ns.is_some()) {
            self.candidates.sleeps(task);
            self.started((cpu, kernel.now_ns()), task, true);
        } else if is_judged && self.candidates.may_be_late(until_ns - node.origin_ns) {
            self.basis.doubted += 1;
        }
        let state = self.tasks.state(task);
        (state.chain, state.made_ns) = (NodeId::NONE, None);
        (state.work, state.worked_ns) = (Work::default(), Some(slept_ns));
    }

    /// A task ends its work, of which no begin was seen: it had begun before the trace, or behind
    /// the last one.
    fn ends_unbegun(&mut self, (cpu, now_ns): (u32, i64), task: TaskIndex) {
        if !self.candidates.is_asked_for(cpu, now_ns) {
            return;
        }
        let state = &self.tasks.states[task.0 as usize];
        match state.worked_ns {
            // The part of it that was seen is late already.
            None if self.candidates.is_over(now_ns - self.first_ns) => self.basis.unwoken += 1,
            None => self.basis.unjudged += 1,
            Some(worked_ns) => {
                let since_ns = worked_ns.max(state.woken_ns);
                let may_be_late = self.candidates.may_be_late(now_ns - since_ns);
                self.basis.unwoken += u64::from(may_be_late && !state.work.doubted);
            }
        }
    }

    /// A task that was seen to sleep is scheduled in, and no wake-up of it was recorded: it waited
    /// for as long as it seemed to sleep at most.
    #[cold]
    pub(super) fn woken_unseen(&mut self, (cpu, now_ns): (u32, i64), task: TaskIndex) {
        let state = &self.tasks.states[task.0 as usize];
        let may_be_late = self.candidates.may_be_late(now_ns - state.blocked_ns);
        let is_asked_for = self.is_wanted(state) && self.candidates.is_asked_for(cpu, now_ns);
        if may_be_late && is_asked_for {
            self.tasks.state(task).work.doubted = true;
            self.basis.doubted += 1;
        }
    }

    /// A task is scheduled in that nothing was seen of before: it waited already as the recording
    /// began. To the end of its work it is not judged then.
    #[cold]
    pub(super) fn waited_already(&mut self, (cpu, now_ns): (u32, i64), task: TaskIndex) {
        let state = &self.tasks.states[task.0 as usize];
        let is_asked_for = self.is_wanted(state) && self.candidates.is_asked_for(cpu, now_ns);
        let may_be_late = self.candidates.may_be_late(now_ns - self.first_ns);
        let is_judged = self.until == Until::SwitchIn;
        self.basis.unwoken += u64::from(is_judged && is_asked_for && may_be_late);
    }

    /// A task that was just made has come to its first sleep, if it `slept`, to its end, or to that
    /// of the trace.
    fn started(&mut self, (cpu, now_ns): (u32, i64), task: TaskIndex, slept: bool) {
        let state = &self.tasks.states[task.0 as usize];
        let origin_ns = self.arena.get(state.chain).map(|node| node.origin_ns);
        let made_ns = state.made_ns.or(origin_ns);
        let is_long = made_ns.is_some_and(|ns| self.candidates.may_be_late(now_ns - ns));
        let is_asked_for = self.candidates.is_asked_for(cpu, now_ns);
        self.basis.long_start_ups += u64::from(is_long && is_asked_for);
        let is_unslept = is_long && is_asked_for && !slept && self.basis.tasks_named;
        self.basis.unslept += u64::from(is_unslept);
    }

    /// What cannot be told from the end of the work, of the tasks that are asked for.
    pub(super) fn find_sleeps_inside(&mut self, end_ns: i64) {
        if self.until == Until::SwitchIn || !self.evidence.hits.is_empty() {
            return;
        }
        for (place, task) in self.tasks.wanted_once() {
            if let Some(inside) = self.cycles.found(place, end_ns) {
                self.basis.inside.push(SleepsInside::new(task, &inside));
            }
        }
        let longest = |found: &SleepsInside| std::cmp::Reverse(found.worst.duration());
        self.basis.inside.sort_by_key(longest);
    }
}
