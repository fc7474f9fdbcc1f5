//! What the ledger asks about, written down in one pass: who had each CPU, as the kernel's state
//! tells it, what happened to each task, which chain led to each activation.

mod boosts;
mod build;
mod candidates;
mod chain;
mod cpu;
mod devices;
mod ends;
mod forget;
mod groups;
mod handlers;
mod late_expiries;
mod life;
mod observe;
mod page_faults;
mod program;
mod promised;
mod quotas;
mod stillness;
mod switches;
mod tasks;
mod timeline;
mod wake;

use std::collections::BTreeMap;
use std::sync::Arc;

use event::{Cpu, Duration, Instant, Result, TimeRange};
use trace::{Item, LossCause, Lost, LostFrom, TRACKED_TASKS, Trace};

use crate::diagnose::is_virtual;
use crate::evidence::Evidence;
use crate::finding::Basis;
use crate::origins::Origin;
use crate::query::Query;
use event::evidence::{EndKind, Mode, Step};
use kernel_state::bind::Families;
use kernel_state::{Actions, Follow, Kernel, Unlisted, known_from_ns, seen_until};

pub(crate) use boosts::Boost;
pub(crate) use candidates::{Candidate, End};
pub(crate) use chain::{Arena, NodeId, begin_at};
pub(crate) use devices::Requests;
use forget::RECORDS_MIN;
pub(crate) use groups::{GroupOf, Groups, WEIGHT_USUAL};
pub(crate) use late_expiries::LateExpiry;
pub(crate) use life::DECISION_NS_MAX;
use page_faults::{FaultsOf, PageFault};
pub(crate) use quotas::Quotas;
pub(crate) use stillness::Span;
pub(crate) use tasks::{Moment, MomentKind, Tasks, Version, VersionId};
pub(crate) use timeline::{Slice, Timeline, What};

/// Everything that the ledger asks about.
pub(crate) struct Model {
    pub timelines: Vec<Timeline>,
    /// The first event of each CPU; the greatest instant for a CPU without any.
    pub begins_ns: Vec<i64>,
    pub tasks: Tasks,
    pub arena: Arena,
    pub irq_actions: Actions,
    /// Interrupts without a number, also those that no table has.
    pub unlisted: Unlisted,
    pub losses: Vec<Lost>,
    pub evidence: Evidence,
    /// When which task touched a page that was not there, in time order.
    pub page_faults: Vec<PageFault>,
    /// When which task made a system call, in time order.
    pub system_calls: Vec<(i64, VersionId)>,
    /// When a clock that is not the trace's was seen to have been set forward, and by how much.
    pub clock_sets: Vec<(i64, Duration)>,
    /// Waits for locks that lent a priority, in time order.
    pub boosts: Vec<Boost>,
    /// Timers whose interrupt came late, as they were served.
    pub late_expiries: Vec<LateExpiry>,
    pub requests: Requests,
    /// What a recorder wrote down of quotas.
    pub quotas: Quotas,
    /// What control groups gave the tasks of hits.
    pub groups: Groups,
    pub candidates: Vec<Candidate>,
    pub families: Families,
    pub basis: Basis,
    /// CPUs of which a switch was not recorded, and nothing tells who was scheduled in.
    pub doubted: Vec<Cpu>,
    /// Timers that are late by less leave no evidence; none when the trace does not say.
    pub late_timer_floor: Option<Duration>,
    /// Timers that beat while the trace was taken, where they are needed.
    heartbeat: Option<stillness::Heartbeat>,
    /// The exit latency of the deepest idle state, where the trace says it.
    pub idle_exit: Option<Duration>,
    /// The machine was a virtual one.
    pub is_virtual: bool,
}

/// The deepest idle states of processors take no longer to leave.
const IDLE_EXIT_MAX: Duration = Duration::from_ms(2);
/// What the way out of idle takes beside the state's own latency.
const IDLE_EXIT_SLACK: Duration = Duration::from_us(200);

/// What a watch writes down of a hit, it writes so much after its end at most.
const EVIDENCE_BEHIND_MAX: Duration = Duration::from_ms(1);

/// From when on a loss hides nothing any more.
fn known_from(lost: &Lost) -> Instant {
    let TimeRange { begin, end } = lost.range;
    Instant::from_ns(known_from_ns(begin.as_ns(), end.as_ns()))
}

impl Model {
    /// Reads the trace once, and keeps of it what explains the activations that `query` asks for.
    ///
    /// # Errors
    /// The trace cannot be read, or is of several machines.
    pub fn read(trace: &Trace, query: &Query) -> Result<Model> {
        let kernel = Kernel::new(trace, Follow::default());
        // A hit says only at its end how far back it reaches; beats are missed where nothing is.
        let beats = stillness::Heartbeat::read(&trace.info().environment).is_some();
        let forgets = query.worst > 0 && !kernel.binding().has_hits() && !beats;
        let records_min = if forgets { RECORDS_MIN } else { usize::MAX };
        Model::build(trace, kernel, query, records_min)
    }

    /// Reads the trace once, and keeps all of it.
    ///
    /// # Errors
    /// The trace cannot be read, or is of several machines.
    pub fn read_whole(trace: &Trace, query: &Query) -> Result<Model> {
        Model::build(
            trace,
            Kernel::new(trace, Follow::default()),
            query,
            usize::MAX,
        )
    }

    /// Reads the trace once, and keeps of it when activations began that others handed on.
    ///
    /// # Errors
    /// The trace cannot be read, or is of several machines.
    pub fn origins(trace: &Trace, query: &Query) -> Result<Vec<Origin>> {
        let mut kernel = Kernel::new(trace, Follow::default());
        let builder = build::Builder::new(kernel.families(), query.clone(), RECORDS_MIN);
        let builder = Model::pass(trace, &mut kernel, builder.with_origins())?;
        Ok(builder.into_origins(&mut kernel))
    }

    /// Looks for what can be dropped when there are `records_min` records.
    fn build(
        trace: &Trace,
        mut kernel: Kernel,
        query: &Query,
        records_min: usize,
    ) -> Result<Model> {
        let builder = build::Builder::new(kernel.families(), query.clone(), records_min);
        let builder = Model::pass(trace, &mut kernel, builder)?;
        let mut model = builder.finish(&mut kernel, &trace.info().environment);
        model.unlisted = kernel.binding().unlisted.clone();
        let floor = trace.info().environment.get("rtscope_late_timer_floor_ns");
        let floor_ns = floor.and_then(|floor| floor.parse().ok());
        model.late_timer_floor = floor_ns.map(Duration::from_ns);
        model.heartbeat = stillness::Heartbeat::read(&trace.info().environment);
        let exit_ns = trace.info().environment.get("rtscope_idle_exit_max_ns");
        let exit_ns = exit_ns.and_then(|exit_ns| exit_ns.parse().ok());
        model.idle_exit = exit_ns.map(Duration::from_ns);
        model.is_virtual = is_virtual(trace.info());
        Ok(model)
    }

    /// The pass over all events.
    fn pass(
        trace: &Trace,
        kernel: &mut Kernel,
        mut builder: build::Builder,
    ) -> Result<build::Builder> {
        kernel.binding().of_one_kernel(trace)?;
        builder.basis.locks_known = kernel.knows_locks();
        if trace.info().environment.contains_key(TRACKED_TASKS) {
            builder.tasks.are_some_alone();
        }
        builder.quotas = Quotas::of(trace.classes());
        // What a watch wrote down of a hit stands behind it.
        let until = match kernel.binding().has_hits() {
            true => Instant::MAX,
            false => builder.range().end,
        };
        let range = TimeRange {
            begin: Instant::MIN,
            end: until,
        };
        let mut cursor = trace.cursor(range);
        let classes = trace.classes();
        let binding = Arc::clone(kernel.binding());
        cursor.each(|item| {
            match item {
                Item::Event(event) => match binding.get(event.class()) {
                    Some(bound) => builder.event(kernel, bound, event, classes),
                    None => builder.passes_by(event.time()),
                },
                Item::Lost(lost) => builder.lost(kernel, *lost),
                Item::Damage(_) => builder.damage(),
            }
            Ok(())
        })?;
        builder.end_ns = seen_until(trace, range)?;
        Ok(builder)
    }

    /// What ran on a CPU; none for a CPU without events.
    pub fn timeline(&self, cpu: Cpu) -> Option<&Timeline> {
        self.timelines.get(cpu.0 as usize)
    }

    /// The deepest idle states take no longer to leave. A virtual CPU that halts is not the
    /// processor's idle state: what it takes to come back is the host's.
    pub fn idle_exit_max(&self) -> Duration {
        match (self.idle_exit, self.is_virtual) {
            (Some(said), _) => said + IDLE_EXIT_SLACK,
            (None, true) => IDLE_EXIT_SLACK,
            (None, false) => IDLE_EXIT_MAX,
        }
    }

    /// The name of an interrupt; empty when the trace does not say.
    pub fn irq_name(&self, irq: i32) -> String {
        let name = self.unlisted.name(irq).map(str::to_owned);
        name.unwrap_or_else(|| self.irq_actions.name(irq.into()))
    }

    /// The steps up to a wake-up.
    pub fn steps(&self, node: NodeId) -> Vec<Step> {
        self.arena.steps(node, &self.tasks, |node| match node.kind {
            crate::StepKind::Hardirq => self.irq_name(node.id),
            _ => String::new(),
        })
    }

    /// Whether events were lost on one of `cpus` inside `range`.
    pub fn is_lossy(&self, range: TimeRange, cpus: &[Cpu]) -> bool {
        self.events_lost().any(|lost| {
            let here = lost.cpu.is_none_or(|cpu| cpus.contains(&cpu));
            here && lost.range.begin < range.end && range.begin < known_from(lost)
        })
    }

    fn events_lost(&self) -> impl Iterator<Item = &Lost> {
        self.losses.iter().filter(|lost| lost.hides_what_happened())
    }

    /// Whether something is missing of what a watch saw that may be about an activation. Of one of
    /// its `hits` it is what was seen up to its end, on any CPU: of one that still waited, the end
    /// may be missing. Whatever else was late may have been no hit, and be told in the place of
    /// one.
    pub fn lacks_evidence(&self, range: TimeRange, hit: Option<EndKind>) -> bool {
        let end = match hit {
            Some(EndKind::Waiting) | None => Instant::MAX,
            Some(_) => range.end + EVIDENCE_BEHIND_MAX,
        };
        let begin = hit.map_or(Instant::MIN, |_| range.begin);
        let mut lost = self.losses.iter();
        let may_be_seen = |from| from != LostFrom::Recording;
        let overlaps = |lost: TimeRange| lost.begin <= end && begin <= lost.end;
        self.families.hit && lost.any(|lost| may_be_seen(lost.from) && overlaps(lost.range))
    }

    /// For how long events were left out inside `range`, of the CPU where that is most; none where
    /// a part of the trace cannot be read: nobody knows what that hides.
    pub fn left_out(&self, range: TimeRange) -> Option<Duration> {
        let mut of_cpus: BTreeMap<Option<Cpu>, Duration> = BTreeMap::new();
        for lost in self.events_lost() {
            let begin = lost.range.begin.max(range.begin);
            let inside = known_from(lost).min(range.end) - begin;
            if inside < Duration::ZERO {
                continue;
            }
            if !matches!(lost.cause, LossCause::Discarded | LossCause::Overrun) {
                return None;
            }
            *of_cpus.entry(lost.cpu).or_default() += inside;
        }
        Some(of_cpus.into_values().max().unwrap_or_default())
    }

    /// Whether events were lost on any CPU inside `range`: a task may have run there.
    pub fn has_loss(&self, range: TimeRange) -> bool {
        let mut losses = self.events_lost();
        losses.any(|lost| lost.range.begin <= range.end && range.begin < known_from(lost))
    }

    /// Whether a CPU's first event lies between two instants: what it did before is not known, and
    /// a task that seems to wait may have run there.
    pub fn has_edge(&self, begin_ns: i64, end_ns: i64) -> bool {
        self.begins_ns
            .iter()
            .any(|first_ns| begin_ns < *first_ns && *first_ns <= end_ns)
    }

    /// The page faults of a task in this time.
    pub fn page_faults_of(&self, tid: i32, range: TimeRange) -> FaultsOf {
        let before = |instant: Instant| {
            let faults = &self.page_faults;
            faults.partition_point(|fault| fault.time_ns < instant.as_ns())
        };
        let first = before(range.begin);
        let those = &self.page_faults[first..before(range.end).max(first)];
        let by = |version| self.tasks.version(version).map(|version| version.tid.0);
        FaultsOf::of(those.iter().filter(|fault| by(fault.by) == Some(tid)))
    }

    /// When a task was seen to run code of its own between two instants: at a page fault, at a
    /// system call, or where a late timer found it; in no order.
    pub fn user_code_of(&self, tid: i32, (begin_ns, end_ns): Span) -> Vec<i64> {
        let inside = |time_ns: &i64| begin_ns < *time_ns && *time_ns < end_ns;
        let is_it = |version| self.tasks.version(version).map(|version| version.tid.0) == Some(tid);
        let mut seen = Vec::new();
        let faults = &self.page_faults;
        let first = faults.partition_point(|fault| fault.time_ns <= begin_ns);
        let those = faults[first..].iter();
        let those = those.take_while(|fault| fault.time_ns < end_ns);
        seen.extend(
            those
                .filter(|fault| is_it(fault.by))
                .map(|fault| fault.time_ns),
        );
        let calls = &self.system_calls;
        let first = calls.partition_point(|(time_ns, _)| *time_ns <= begin_ns);
        let those = calls[first..].iter();
        let those = those.take_while(|(time_ns, _)| *time_ns < end_ns);
        seen.extend(
            those
                .filter(|(_, by)| is_it(*by))
                .map(|(time_ns, _)| *time_ns),
        );
        let late = self.evidence.late_timers.iter();
        let late = late.filter(|late| late.mode == Mode::User && late.interrupted.tid.0 == tid);
        seen.extend(late.map(|late| late.time.as_ns()).filter(inside));
        seen
    }

    /// The moments of a task between two instants.
    pub fn moments(&self, tid: i32, cpu: Cpu, begin: Instant, end: Instant) -> &[Moment] {
        let log = self.tasks.log(tid, cpu.0);
        let first = log.partition_point(|moment| moment.time_ns < begin.as_ns());
        let last = log.partition_point(|moment| moment.time_ns <= end.as_ns());
        &log[first..last.max(first)]
    }
}

#[cfg(test)]
impl Model {
    /// As [`Model::read`], but looks for what can be dropped from so few records on.
    pub fn read_forgetting(trace: &Trace, query: &Query, records_min: usize) -> Result<Model> {
        Model::build(
            trace,
            Kernel::new(trace, Follow::default()),
            query,
            records_min,
        )
    }

    /// How many records it holds.
    pub fn records(&self) -> usize {
        let logs = self.tasks.states.iter().map(|state| state.log.len());
        self.arena.len() + logs.sum::<usize>()
    }
}
