//! The pass over the events: what each is handed to, losses, and the model in the end.

use std::collections::BTreeMap;

use event::{Cpu, Duration, EventClass, Instant, NumberMap, Prio, TimeRange};
use trace::{EventView, LossCause, Lost, LostFrom};

use super::boosts::Boost;
use super::candidates::{Candidates, End};
use super::chain::{Arena, NodeId};
use super::cpu::{Armed, CpuState};
use super::devices::Requests;
use super::ends::Work;
use super::late_expiries::LateExpiry;
use super::page_faults::PageFault;
use super::tasks::{At, Moment, MomentKind, Run, TaskIndex, Tasks, VersionId};
use super::{Groups, Model, Quotas, promised};
use crate::evidence::Evidence;
use crate::finding::Basis;
use crate::origins::Origin;
use crate::query::{Query, Until};
use event::evidence::{Kind, slack_floor};
use kernel_state::bind::{self, Bound, Families, Known, Sched};
use kernel_state::{Actions, Cycles, Kernel, OtherClocks};

/// Builds a [`Model`] event by event.
pub(super) struct Builder {
    pub(super) families: Families,
    pub(super) cpus: Vec<CpuState>,
    pub(super) tasks: Tasks,
    pub(super) arena: Arena,
    pub(super) timers: NumberMap<u64, Armed>,
    /// From which slack on a timer's owner is due before it.
    pub(super) slack_floor_ns: i64,
    pub(super) irq_actions: Actions,
    pub(super) losses: Vec<Lost>,
    pub(super) evidence: Evidence,
    pub(super) page_faults: Vec<PageFault>,
    pub(super) until: Until,
    pub(super) system_calls: Vec<(i64, VersionId)>,
    pub(super) boosts: Vec<Boost>,
    pub(super) late_expiries: Vec<LateExpiry>,
    pub(super) requests: Requests,
    pub(super) quotas: Quotas,
    pub(super) groups: Groups,
    pub(super) other_clocks: OtherClocks,
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
    /// When activations began that others handed on, where that is asked.
    pub(super) origins: Option<Vec<Origin>>,
    /// What the question is about.
    range: TimeRange,
    /// Until when it is known what went on, where the last event does not say it.
    pub(super) end_ns: Option<i64>,
    /// The last event.
    last_ns: i64,
    /// When the first event came, as the kernel's state says.
    pub(super) first_ns: i64,
}

impl Builder {
    pub fn new(families: Families, query: Query, records_min: usize) -> Self {
        Builder {
            families,
            cpus: vec![],
            tasks: Tasks::new(query.tasks.clone()),
            arena: Arena::default(),
            timers: NumberMap::default(),
            slack_floor_ns: slack_floor(query.threshold.unwrap_or_default()).as_ns(),
            irq_actions: Actions::default(),
            losses: vec![],
            evidence: Evidence::default(),
            page_faults: vec![],
            until: query.until,
            candidates: Candidates::new(query.clone()),
            cycles: cycles(&query),
            system_calls: vec![],
            boosts: vec![],
            late_expiries: vec![],
            requests: Requests::default(),
            quotas: Quotas::default(),
            groups: Groups::default(),
            other_clocks: OtherClocks::default(),
            clock_sets: vec![],
            logged: 0,
            records_min,
            records_max: records_min,
            origins: None,
            range: query.range,
            end_ns: None,
            last_ns: 0,
            first_ns: i64::MAX,
            basis: Basis {
                until: query.until,
                threshold: query.threshold,
                tasks_named: query.tasks.is_explicit(),
                ..Basis::default()
            },
        }
    }

    /// Writes down, too, when activations began that others handed on.
    pub fn with_origins(mut self) -> Self {
        self.origins = Some(Vec::new());
        self
    }

    /// What the question is about.
    pub fn range(&self) -> TimeRange {
        self.range
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
            Known::Handler(handler) => self.handled(kernel, handler, at, event),
            Known::Life(life) => {
                kernel.take_in(known, cpu, event, self);
                self.life(life, cpu, time_ns, event);
            }
            Known::Stop(_) => kernel.take_in(known, cpu, event, self),
            Known::Dump(dump) => {
                kernel.take_in(known, cpu, event, self);
                self.state_dump(dump, event);
            }
            Known::Call(call) => self.system_call(kernel, call, cpu, event),
            Known::Fault { begins } => kernel.note_fault(cpu, begins),
            Known::Device(device) => self.request(device, time_ns, event),
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

    fn handled(
        &mut self,
        kernel: &mut Kernel,
        handler: bind::Handler,
        at: At,
        event: &EventView<'_>,
    ) {
        if let bind::Handler::IrqExit { .. } | bind::Handler::VectorExit(_) = handler {
            kernel.note_interrupt(at.cpu, at.now_ns);
        }
        let unpaired = self.basis.unpaired;
        self.handler(kernel, handler, at.cpu, at.now_ns, event);
        if self.basis.unpaired != unpaired {
            // What came before its end, nobody knows: it was not seen to begin.
            kernel.handled_unseen(at.cpu, at.now_ns, self);
        }
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
                let old = Prio::from_lttng(fields.old_prio(event));
                self.had_prio(at.cpu, tid, old);
                self.lent(at, tid, old, prio);
                self.set_prio(at.cpu, at.now_ns, tid, prio);
            }
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
            halted: None,
            gave_way: false,
            goes_behind: false,
        });
    }

    pub(super) fn is_idle(&self, task: TaskIndex) -> bool {
        let version = self
            .tasks
            .version(self.tasks.states[task.0 as usize].version);
        version.is_some_and(|version| version.tid.is_idle())
    }

    /// Nothing is known about the task any more.
    pub(super) fn forget(&mut self, task: TaskIndex) {
        let state = &self.tasks.states[task.0 as usize];
        let lost = self.is_judged_to_its_end(state) || state.work.is_lost();
        let state = self.tasks.state(task);
        state.run = Run::Unknown;
        state.chain = NodeId::NONE;
        state.pending = NodeId::NONE;
        state.work = Work::lost(lost);
        self.cycles.forget(task.0);
        self.basis.unpaired += state.softirqs.len() as u64;
        state.softirqs.clear();
    }

    /// A task had this priority until now: where it seemed to have another one, what gave it this
    /// one was lost, or is no event.
    fn had_prio(&mut self, cpu: u32, tid: i32, prio: Prio) {
        let Some(task) = self.tasks.find(tid, cpu) else {
            return;
        };
        let state = self.tasks.state(task);
        if let (Run::On(on), before) = (state.run, state.version) {
            self.tasks.set_prio(task, prio);
            self.rename_run(on, task, before);
        }
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
            self.basis.wide_holes += u64::from(self.may_hide_a_whole(&lost));
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

    /// Whether an activation that is late may lie in a loss as a whole.
    fn may_hide_a_whole(&self, lost: &Lost) -> bool {
        let length_ns = lost
            .range
            .end
            .as_ns()
            .saturating_sub(lost.range.begin.as_ns());
        !lost.hides_what_happened() || self.candidates.may_be_late(length_ns)
    }

    /// All that happened on these CPUs is missing.
    fn miss_streams(&mut self, cpus: &[u32]) {
        self.basis.holes += cpus.len() as u64;
        self.basis.wide_holes += cpus.len() as u64;
        self.losses.extend(cpus.iter().map(|cpu| Lost {
            cpu: Some(Cpu(*cpu)),
            range: TimeRange::ALL,
            count: None,
            cause: LossCause::Missing,
            from: LostFrom::Recording,
        }));
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
        self.basis.wide_holes += missing.len() as u64;
        self.losses.extend(missing);
    }

    /// When activations began that others handed on, in the order in which they ended.
    pub fn into_origins(mut self, kernel: &mut Kernel) -> Vec<Origin> {
        let end_ns = self.end_ns.unwrap_or(self.last_ns);
        kernel.finish(end_ns, &mut self);
        self.activations_end(kernel, end_ns);
        self.origins.unwrap_or_default()
    }

    /// Activations that the end of what is looked at leaves open.
    fn activations_end(&mut self, kernel: &Kernel, end_ns: i64) {
        self.doubt_waits(kernel);
        for place in 0..self.tasks.states.len() as u32 {
            let state = &self.tasks.states[place as usize];
            if state.run == Run::Woken && !state.work.inside {
                let cpu = state.log.last().map_or(0, |moment| moment.cpu);
                self.candidate(cpu, end_ns, TaskIndex(place), End::Waiting);
            } else {
                self.work_goes_on(end_ns, TaskIndex(place));
                self.may_wait_still(end_ns, TaskIndex(place));
            }
        }
        self.start_ups_end();
    }

    pub fn finish(mut self, kernel: &mut Kernel, environment: &BTreeMap<String, String>) -> Model {
        self.miss_evidence(environment);
        self.requests.finish();
        let end_ns = self.end_ns.unwrap_or(self.last_ns);
        kernel.finish(end_ns, &mut self);
        self.miss_streams(kernel.unrecorded());
        self.activations_end(kernel, end_ns);
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
        // Of each thread one that goes into a hole, and one that comes out of it.
        let threads = self.basis.judged.len() as u64 + self.basis.unjudged;
        let narrow = self.basis.holes - self.basis.wide_holes;
        self.basis.cut_by_holes_max = narrow * 2 * threads;
        self.basis.hits = self.evidence.hits.len() as u64;
        self.basis.lengths = std::mem::take(&mut self.candidates.lengths);
        let late = self.candidates.late;
        let candidates = self.candidates.into_worst_first();
        self.basis.left_out = late.saturating_sub(candidates.len() as u64);
        let cpus = 0..self.cpus.len() as u32;
        Model {
            doubted: cpus
                .filter(|cpu| kernel.is_doubted(*cpu))
                .map(Cpu)
                .collect(),
            begins_ns: self.cpus.iter().map(|state| state.first_ns).collect(),
            timelines: self.cpus.into_iter().map(|state| state.timeline).collect(),
            tasks: self.tasks,
            arena: self.arena,
            irq_actions: self.irq_actions,
            unlisted: kernel_state::Unlisted::default(),
            losses: self.losses,
            evidence: self.evidence,
            page_faults: self.page_faults,
            system_calls: self.system_calls,
            boosts: self.boosts,
            late_expiries: self.late_expiries,
            requests: self.requests,
            quotas: self.quotas,
            groups: self.groups,
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
            | Known::Stop(_)
            | Known::Call(_)
            | Known::Fault { .. }
            | Known::Device(bind::Device::BlockIssue { .. } | bind::Device::BlockComplete { .. })
            | Known::Dump(
                bind::Dump::Process { .. }
                    | bind::Dump::Program { .. }
                    | bind::Dump::Tracked { .. }
                    | bind::Dump::Quota { .. }
                    | bind::Dump::Limits(_)
            )
    )
}
