//! The pass over the events: CPUs, tasks, losses.

use std::collections::{BTreeMap, HashMap};

use event::{Cpu, Duration, EventClass, Instant, Prio, TimeRange};
use trace::{EventView, Lost};

use super::candidates::{Candidate, Candidates, End};
use super::chain::{Arena, NewNode, NodeId};
use super::ends::Work;
use super::handlers::LeftHandler;
use super::tasks::{At, Moment, MomentKind, Run, TaskIndex, Tasks, VersionId};
use super::timeline::{Occupant, Segment, Timeline, What};
use super::{Contended, Model, promised};
use crate::StepKind;
use crate::evidence::Evidence;
use crate::finding::Basis;
use crate::query::{Query, Until};
use event::evidence::{Kind, Role};
use kernel_state::bind::{self, Bound, Call, Families, Known, Pause, Sched};
use kernel_state::{Cycles, Kernel};

/// A hard interrupt that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct HardFrame {
    pub irq: i32,
    pub base: NodeId,
    pub current: NodeId,
}

/// Softirq vectors that the model has room for; the kernel has ten.
pub(super) const VECTORS_MAX: usize = 32;
/// Hard interrupts that may nest; more means that exits were missed.
pub(super) const NESTING_MAX: usize = 8;

/// The state of one CPU.
#[derive(Debug)]
pub(super) struct CpuState {
    pub current: Option<TaskIndex>,
    pub frames: Vec<HardFrame>,
    /// The last thing that happened here, but for events that change nobody's place.
    pub left_handler: Option<LeftHandler>,
    pub raised: [NodeId; VECTORS_MAX],
    /// A runnable real-time task was preempted for one that is not.
    pub throttled: bool,
    /// Events were lost, and no switch has been seen since.
    pub lost: bool,
    /// A switch was not recorded, and nothing tells who was scheduled in.
    pub doubted: bool,
    /// So it was for the last that had it, and no switch has been seen since.
    pub left_unseen: bool,
    /// Of whom the watch said with which priority it has the CPU.
    pub told: Option<TaskIndex>,
    /// Its first event.
    pub first_ns: i64,
    pub timeline: Timeline,
}

impl Default for CpuState {
    fn default() -> Self {
        CpuState {
            current: None,
            frames: vec![],
            left_handler: None,
            raised: [NodeId::NONE; VECTORS_MAX],
            throttled: false,
            lost: false,
            doubted: false,
            left_unseen: false,
            told: None,
            first_ns: i64::MAX,
            timeline: Timeline::default(),
        }
    }
}

/// Builds a [`Model`] event by event.
pub(super) struct Builder {
    pub(super) families: Families,
    pub(super) cpus: Vec<CpuState>,
    pub(super) tasks: Tasks,
    pub(super) arena: Arena,
    pub(super) timers: HashMap<u64, i64>,
    pub(super) irq_names: BTreeMap<i32, String>,
    pub(super) losses: Vec<Lost>,
    pub(super) evidence: Evidence,
    pub(super) page_faults: Vec<(i64, VersionId)>,
    pub(super) until: Until,
    pub(super) system_calls: Vec<(i64, VersionId)>,
    pub(super) contended: Vec<Contended>,
    /// By how much the clock of a timer is ahead of the trace's, as it expired last.
    pub(super) ahead_ns: HashMap<u64, i64>,
    pub(super) clock_sets: Vec<(i64, Duration)>,
    pub(super) candidates: Candidates,
    pub(super) cycles: Cycles,
    /// Moments and segments since the last look for what can be dropped.
    pub(super) logged: usize,
    /// So few records are not worth that look.
    pub(super) records_min: usize,
    /// So many call for it.
    pub(super) records_max: usize,
    pub(super) basis: Basis,
    /// What the question is about.
    range: TimeRange,
    /// Until when it is known what went on, where the last event does not say it.
    pub(super) end_ns: Option<i64>,
    /// The last event.
    last_ns: i64,
}

impl Builder {
    pub fn new(families: Families, query: Query, records_min: usize) -> Self {
        Builder {
            families,
            cpus: vec![],
            tasks: Tasks::new(query.tasks.clone()),
            arena: Arena::default(),
            timers: HashMap::new(),
            irq_names: BTreeMap::new(),
            losses: vec![],
            evidence: Evidence::default(),
            page_faults: vec![],
            until: query.until,
            candidates: Candidates::new(query.clone()),
            cycles: cycles(&query),
            system_calls: vec![],
            contended: vec![],
            ahead_ns: HashMap::new(),
            clock_sets: vec![],
            logged: 0,
            records_min,
            records_max: records_min,
            range: query.range,
            end_ns: None,
            last_ns: 0,
            basis: Basis {
                until: query.until,
                threshold: query.threshold,
                ..Basis::default()
            },
        }
    }

    /// Counts an event.
    fn count(&mut self, time: Instant) {
        if time < self.range.begin || self.range.end <= time {
            return;
        }
        self.basis.events += 1;
        match &mut self.basis.window {
            Some(window) => window.end = time,
            None => {
                self.basis.window = Some(TimeRange {
                    begin: time,
                    end: time,
                })
            }
        }
    }

    /// An event that tells the model nothing.
    pub fn passes_by(&mut self, time: Instant) {
        self.last_ns = time.as_ns();
        self.count(time);
    }

    /// Counts bytes that could not be read; what they took stands beside it as a loss.
    pub fn damage(&mut self) {
        self.basis.damaged += 1;
    }

    pub fn event(
        &mut self,
        kernel: &mut Kernel,
        bound: &Bound,
        event: &EventView<'_>,
        classes: &[EventClass],
    ) {
        self.count(event.time());
        let time_ns = event.time().as_ns();
        self.last_ns = time_ns;
        let known = &bound.known;
        if let Known::Function(_) = known {
            return;
        }
        let Some(cpu) = kernel.place(bound, event) else {
            return;
        };
        if self.cpus.len() <= cpu as usize {
            self.cpus.resize_with(cpu as usize + 1, CpuState::default);
        }
        let follows = matches!(known, Known::Sched(_) | Known::Life(_));
        let is_first = self.cpus[cpu as usize].first_ns == i64::MAX;
        if follows || is_first || bound.tells_task() {
            kernel.witness(bound, cpu, event, time_ns, self);
        }
        if !is_followed(known) {
            return;
        }
        if is_first {
            self.cpu(cpu).first_ns = time_ns;
        }
        let at = At {
            cpu,
            now_ns: time_ns,
        };
        match *known {
            Known::Sched(Sched::Wake(kind, ref fields)) => {
                self.woken(kernel, at, kind, (fields, event));
            }
            Known::Sched(ref sched) => {
                kernel.take_in(known, cpu, event, self);
                self.scheduling(sched, at, event);
            }
            Known::Handler(handler) => {
                let unpaired = self.basis.unpaired;
                self.handler(kernel, handler, cpu, time_ns, event);
                if self.basis.unpaired != unpaired {
                    // What came before its end, nobody knows: it was not seen to begin.
                    kernel.handled_unseen(cpu, time_ns, self);
                }
            }
            Known::Life(life) => {
                kernel.take_in(known, cpu, event, self);
                self.life(life, cpu, time_ns, event);
            }
            Known::Dump(dump) => self.state_dump(dump, event),
            Known::Call(call) => {
                kernel.note_call(cpu, call);
                self.system_call(call, cpu, time_ns);
            }
            Known::Evidence(kind) => {
                self.evidence.add(kind, Cpu(cpu), event, classes);
                if kind == Kind::Moment {
                    self.moment_of_task(cpu);
                }
            }
            _ => {}
        }
        self.forget_the_unreachable(time_ns);
    }

    /// What the kernel's state does not tell of switches, migrations and priorities.
    fn scheduling(&mut self, sched: &Sched, at: At, event: &EventView<'_>) {
        match sched {
            // The kernel's state told who comes and who leaves; who is woken goes another way.
            Sched::Switch(_) | Sched::Wake(..) => {}
            Sched::Migrate(fields) => {
                let task = self.tasks.find(fields.tid(event), at.cpu);
                if let (Some(task), Some(dest)) = (task, fields.cpu(event)) {
                    self.log(task, at.now_ns, dest, MomentKind::Migrate);
                }
            }
            Sched::PiSetprio(fields) => {
                let (tid, prio) = (fields.tid(event), Prio::from_lttng(fields.prio(event)));
                self.set_prio(at.cpu, at.now_ns, tid, prio);
            }
        }
    }

    /// The watch tells what a task was, whatever its name is and has it been renamed since; of the
    /// one that has this CPU, with which priority.
    fn moment_of_task(&mut self, cpu: u32) {
        let Some(moment) = self.evidence.moments.last() else {
            return;
        };
        let (role, task) = (moment.role, moment.task.clone());
        self.tasks
            .is_of_kernel(task.tid.0, moment.is_kernel_thread());
        let current = self.cpu(cpu).current;
        let here = current.filter(|_| role == Role::Running);
        let here = here.filter(|here| self.tasks.find(task.tid.0, cpu) == Some(*here));
        if let Some(here) = here {
            let before = self.tasks.state(here).version;
            let comm = task.comm.as_bytes();
            self.tasks.name(here, task.tid.0, comm, task.prio);
            self.rename_run(cpu, here, before);
            self.cpu(cpu).told = current;
        }
    }

    pub(super) fn page_fault(&mut self, cpu: u32, time_ns: i64) {
        if let Some(task) = self.cpu(cpu).current {
            self.runs_program(cpu, time_ns, task);
            let version = self.tasks.state(task).version;
            self.page_faults.push((time_ns, version));
        }
    }

    /// Until here the task on the CPU ran code of its own.
    fn system_call(&mut self, call: Call, cpu: u32, time_ns: i64) {
        if let (Call::Entry { .. }, Some(task)) = (call, self.cpu(cpu).current) {
            self.runs_program(cpu, time_ns, task);
            let version = self.tasks.state(task).version;
            self.logged += 1;
            self.system_calls.push((time_ns, version));
        }
    }

    /// The task on the CPU runs code of its own: it is no thread of the kernel's, whatever it is
    /// called.
    fn runs_program(&mut self, cpu: u32, time_ns: i64, task: TaskIndex) {
        if self.tasks.is_program_after_all(task) {
            self.mark(cpu, time_ns, false);
        }
    }

    pub(super) fn cpu(&mut self, cpu: u32) -> &mut CpuState {
        &mut self.cpus[cpu as usize]
    }

    pub(super) fn log(&mut self, task: TaskIndex, time_ns: i64, cpu: u32, kind: MomentKind) {
        self.log_by(task, time_ns, cpu, cpu, kind);
    }

    /// The same for what the CPU `by` did.
    pub(super) fn log_by(
        &mut self,
        task: TaskIndex,
        time_ns: i64,
        cpu: u32,
        by: u32,
        kind: MomentKind,
    ) {
        self.logged += 1;
        self.tasks.state(task).log.push(Moment {
            time_ns,
            cpu,
            by: by as u16, // at most CPUS_MAX
            kind,
        });
    }

    /// Writes down who has the CPU from now on.
    pub(super) fn mark(&mut self, cpu: u32, time_ns: i64, picked: bool) {
        let state = &mut self.cpus[cpu as usize];
        let current = state
            .current
            .map(|task| &self.tasks.states[task.0 as usize]);
        let soft = current.and_then(|task| task.softirqs.last());
        let occupant = match (state.frames.last(), soft, current) {
            (Some(frame), ..) => Occupant::new(What::Hardirq(frame.irq)),
            (_, Some(frame), _) => Occupant::new(What::Softirq(frame.vector)),
            (_, _, Some(_)) if state.throttled => Occupant::new(What::Task).throttled(),
            (_, _, Some(_)) => Occupant::new(What::Task),
            _ if state.lost => Occupant::new(What::Lost),
            _ => Occupant::new(What::Edge),
        };
        let occupant = if picked { occupant.picked() } else { occupant };
        let task = current.map_or(VersionId::NONE, |task| task.version);
        self.logged += 1;
        state.timeline.push(Segment {
            begin_ns: time_ns,
            occupant,
            task,
        });
    }

    /// `prev` leaves the CPU, to come back by itself if it stays runnable; `next` has it.
    pub(super) fn switched(
        &mut self,
        cpu: u32,
        now_ns: i64,
        (prev, runnable, pause): (TaskIndex, bool, Pause),
        (next, end): (TaskIndex, End),
    ) {
        let state = self.cpu(cpu);
        // No handler spans a switch: these exits were missed.
        let unpaired = state.frames.len() as u64;
        state.frames.clear();
        state.left_handler = None;
        self.basis.unpaired += unpaired;
        // Nothing was inferred: somebody had the CPU of whom nothing is known.
        let left_unseen = std::mem::take(&mut self.cpu(cpu).left_unseen);
        if self.has_not(cpu, prev) || left_unseen {
            self.cpu(cpu).doubted = true;
            self.lose_activation(prev, now_ns);
        }
        self.cycles.leaves(prev.0, cpu, now_ns, pause);
        self.work_pauses(cpu, now_ns, prev, pause);
        self.leave(cpu, now_ns, prev, runnable);
        self.tasks.state(prev).ends = false;
        let priority = |tasks: &Tasks, task: TaskIndex| {
            let version = tasks.version(tasks.states[task.0 as usize].version);
            version.map_or((false, false), |v| (v.prio.is_real_time(), v.stop))
        };
        // One out of its own budget waits for that, not for a limit on others.
        let left = self
            .tasks
            .version(self.tasks.states[prev.0 as usize].version);
        let has_deadline = left.is_some_and(|left| left.prio.0 < 0);
        let (prev_real_time, prev_stop) = priority(&self.tasks, prev);
        let (next_real_time, _) = priority(&self.tasks, next);
        let preempted = prev_real_time && !prev_stop && !has_deadline && runnable;
        let state = self.cpu(cpu);
        state.throttled = !next_real_time && (state.throttled || preempted);
        state.current = Some(next);
        (state.lost, state.told) = (false, None);
        self.enter_at(cpu, now_ns, next, end);
        self.mark(cpu, now_ns, true);
    }

    /// A task has the name and the priority with which it leaves the CPU.
    pub(super) fn rename_run(&mut self, cpu: u32, task: TaskIndex, before: VersionId) {
        let after = self.tasks.state(task).version;
        if before != after && self.cpu(cpu).current == Some(task) {
            let tasks = &mut self.tasks;
            let timeline = &mut self.cpus[cpu as usize].timeline;
            timeline.rename_run(|version| tasks.run_of(version, before, after));
        }
    }

    /// `task` leaves the CPU.
    fn leave(&mut self, cpu: u32, now_ns: i64, task: TaskIndex, runnable: bool) {
        let idle = self.is_idle(task);
        let has_wakeup = self.families.wakeup;
        let state = self.tasks.state(task);
        if idle {
            state.run = Run::Unknown;
            return;
        }
        let kind = if runnable {
            MomentKind::OutRunnable
        } else {
            MomentKind::OutBlocked
        };
        let pending = std::mem::replace(&mut state.pending, NodeId::NONE);
        if runnable {
            state.run = Run::Preempted;
        } else if !pending.is_none() && has_wakeup {
            // Woken between its decision to block and this switch; its wake-up is on the way.
            state.run = Run::Woken;
            state.blocked_ns = now_ns;
            state.leave_chain(pending);
            self.wait_since_late_block(task, now_ns);
        } else {
            state.run = Run::Blocked;
            state.blocked_ns = now_ns;
            state.leave_chain(NodeId::NONE);
            // Where it comes back without another wake-up, that one led there.
            state.pending = pending;
        }
        self.log(task, now_ns, cpu, kind);
    }

    /// `task` is scheduled in; where the switch was not recorded, it came then at the earliest.
    pub(super) fn enter_at(&mut self, cpu: u32, now_ns: i64, task: TaskIndex, end: End) {
        let state = self.tasks.state(task);
        let mut was = std::mem::replace(&mut state.run, Run::On(cpu));
        let pending = std::mem::replace(&mut state.pending, NodeId::NONE);
        if was == Run::Blocked && !pending.is_none() {
            was = Run::Woken;
            state.leave_chain(pending);
        }
        let (chain, version) = (state.chain, state.version);
        let goes_on = self.work_resumes(cpu, now_ns, (task, end), was);
        match was {
            Run::Woken if goes_on => {}
            Run::Woken => {
                self.comes_on_cpu(cpu, now_ns, task, end);
                let id = self
                    .tasks
                    .version(version)
                    .map_or(0, |version| version.tid.0);
                let kind = StepKind::SwitchIn;
                let step = NewNode {
                    time_ns: now_ns,
                    kind,
                    cpu,
                    id,
                    version,
                };
                let chain = self.arena.add(chain, step);
                self.tasks.state(task).chain = chain;
            }
            Run::Preempted => {}
            Run::Unknown | Run::Blocked | Run::On(_) => {
                self.basis.unpaired += u64::from(was != Run::Unknown);
                self.tasks.state(task).chain = NodeId::NONE;
            }
        }
        self.log(task, now_ns, cpu, MomentKind::In);
    }

    pub(super) fn is_idle(&self, task: TaskIndex) -> bool {
        let version = self
            .tasks
            .version(self.tasks.states[task.0 as usize].version);
        version.is_some_and(|version| version.tid.is_idle())
    }

    /// Nothing is known about the task any more.
    pub(super) fn forget(&mut self, task: TaskIndex) {
        let state = self.tasks.state(task);
        state.run = Run::Unknown;
        state.chain = NodeId::NONE;
        state.pending = NodeId::NONE;
        state.work = Work::default();
        self.cycles.forget(task.0);
        self.basis.unpaired += state.softirqs.len() as u64;
        state.softirqs.clear();
    }

    fn set_prio(&mut self, cpu: u32, now_ns: i64, tid: i32, prio: Prio) {
        let Some(task) = self.tasks.find(tid, cpu) else {
            return;
        };
        self.tasks.set_prio(task, prio);
        if let Run::On(on) = self.tasks.state(task).run
            && self
                .cpus
                .get(on as usize)
                .is_some_and(|state| state.current == Some(task))
        {
            self.mark(on, now_ns, false);
        }
    }

    pub fn lost(&mut self, kernel: &mut Kernel, lost: Lost) {
        if self.range.begin <= lost.range.end {
            self.basis.holes += 1;
            self.basis.lost += lost.count.unwrap_or(0);
        }
        self.losses.push(lost);
        let (begin, end) = (lost.range.begin, lost.range.end);
        let cpu = lost.cpu.map(|cpu| cpu.0);
        if lost.hides_what_happened() {
            self.cycles.forget_all();
            kernel.lost(cpu, begin.as_ns(), end.as_ns(), self);
        }
    }

    /// What a watch promised and the trace does not hold is lost.
    fn miss_evidence(&mut self, environment: &BTreeMap<String, String>) {
        if !self.families.hit {
            return;
        }
        let hits = self.evidence.hits.len();
        let read = &self.evidence.sums;
        let missing = promised::missing(environment, read, hits, &self.losses);
        self.basis.holes += missing.len() as u64;
        self.losses.extend(missing);
    }

    /// Offers an activation of a task that is asked for.
    pub(super) fn candidate(&mut self, cpu: u32, end_ns: i64, task: TaskIndex, end: End) {
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
        let Some(first) = self.arena.get(node).filter(|_| wanted) else {
            return;
        };
        let latency_ns = end_ns.saturating_sub(first.origin_ns);
        let candidate = Candidate {
            latency_ns,
            seems_ns: seems_since_ns.map_or(latency_ns, |since_ns| end_ns.saturating_sub(since_ns)),
            others_ns: latency_ns.saturating_sub(own_ns),
            node,
            end_ns,
            cpu,
            version,
            end,
            doubtful,
        };
        let is_kernels = self.tasks.is_kernels(version);
        self.candidates.offer(candidate, is_kernels);
    }

    /// Nobody knows how long a task has waited: an activation that is asked for may have been late.
    pub(super) fn lose_activation(&mut self, task: TaskIndex, now_ns: i64) {
        let state = &self.tasks.states[task.0 as usize];
        let wanted = self.tasks.version(state.version);
        let wanted = wanted.is_some_and(|version| version.wanted);
        if let Some(node) = self.arena.get(state.chain)
            && wanted
            && (state.run == Run::Woken || self.is_judged_to_its_end(state))
            && self.candidates.may_be_late(now_ns - node.origin_ns)
        {
            self.basis.doubted += 1;
        }
    }

    pub fn finish(mut self, kernel: &mut Kernel, environment: &BTreeMap<String, String>) -> Model {
        self.miss_evidence(environment);
        let end_ns = self.end_ns.unwrap_or(self.last_ns);
        kernel.finish(end_ns, &mut self);
        for place in 0..self.tasks.states.len() as u32 {
            let state = &self.tasks.states[place as usize];
            if state.run == Run::Woken && !state.work.inside {
                let cpu = state.log.last().map_or(0, |moment| moment.cpu);
                self.candidate(cpu, end_ns, TaskIndex(place), End::Waiting);
            } else {
                self.work_goes_on(end_ns, TaskIndex(place));
            }
        }
        for state in &mut self.cpus {
            if state.told.is_none() || state.told != state.current {
                state.timeline.leave_run_open();
            }
        }
        let range = self.candidates.range();
        self.basis.judged_in = self.basis.window.map(|window| TimeRange {
            begin: window.begin.max(range.begin),
            end: window.end.min(range.end),
        });
        self.find_sleeps_inside(end_ns);
        self.basis.activations = self.candidates.seen;
        self.basis.unknown_wakers = self.candidates.unknown_wakers;
        self.basis.judged = self.candidates.judged(&self.tasks);
        self.basis.hits = self.evidence.hits.len() as u64;
        let late = self.candidates.late;
        let candidates = self.candidates.into_worst_first();
        self.basis.left_out = late.saturating_sub(candidates.len() as u64);
        let cpus = self.cpus.iter().enumerate();
        let doubted = cpus.filter(|(_, state)| state.doubted);
        Model {
            doubted: doubted.map(|(cpu, _)| Cpu(cpu as u32)).collect(),
            begins_ns: self.cpus.iter().map(|state| state.first_ns).collect(),
            timelines: self.cpus.into_iter().map(|state| state.timeline).collect(),
            tasks: self.tasks,
            arena: self.arena,
            irq_names: self.irq_names,
            unlisted: kernel_state::Unlisted::default(),
            losses: self.losses,
            evidence: self.evidence,
            page_faults: self.page_faults,
            system_calls: self.system_calls,
            contended: self.contended,
            clock_sets: self.clock_sets,
            candidates,
            families: self.families,
            basis: self.basis,
            late_timer_floor: None,
            heartbeat: None,
            idle_exit: None,
            is_virtual: false,
        }
    }
}

/// Cycles of tasks, where activations are judged to the end of their work.
fn cycles(query: &Query) -> Cycles {
    let limits = query.threshold.iter().map(|limit| limit.as_ns());
    let TimeRange { begin, end } = query.range;
    Cycles::new(limits.collect(), (begin.as_ns(), end.as_ns()))
}

/// Whether the ledger follows events of this kind.
fn is_followed(known: &Known) -> bool {
    matches!(
        known,
        Known::Sched(_)
            | Known::Handler(_)
            | Known::Evidence(_)
            | Known::Life(_)
            | Known::Call(_)
            | Known::Dump(bind::Dump::Process { .. })
    )
}
