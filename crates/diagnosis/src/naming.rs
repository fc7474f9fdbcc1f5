//! One name for each nanosecond of a phase: the rules of `docs/ledger.md`.

use event::{Cpu, Duration, Instant, TimeRange};

use event::evidence::{Mode, StopKind};

use kernel_state::BY_TICK_NS_MAX;

use crate::host;
use crate::model::{Model, Slice, Span, Version, VersionId, What};
use crate::own_cost;
use crate::phases::{Doing, Phase, Since};
use crate::quota;
use crate::stacks::{is_at_border, is_behind_interrupt, section_function};
use crate::term::{Reason, Short};

mod settle;
mod spun;
mod threads;

pub(crate) use threads::ThreadNames;

/// A name in small: becomes a public name when the ledger is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// Index into the late timers of the evidence.
    InterruptsOff(usize),
    IdleExit,
    Steal,
    Nmi,
    Hardirq(i32),
    Softirq(u32),
    /// The task of the chain ran; whether it is the target is known at the end.
    Ran(u32),
    Delivery,
    Wait(u32),
    Stop(u32),
    /// With the index into the evidence's preemption-off records.
    PreemptionOff(u32, Option<usize>),
    /// The same, shown by the stack of a hit: its index.
    Kept(u32, usize),
    Throttled(Option<u32>),
    /// A deadline server ran this task.
    Served(u32),
    /// This task, which waits, has used up the runtime of its own deadline.
    RuntimeUsedUp(i32),
    /// The task of the chain was stopped: the index of the record.
    Stopped(usize),
    /// The slack that a timer has by its owner.
    Slack,
    /// The timer's clock was set, by so many nanoseconds.
    ClockSet(i64),
    /// The watch's own work at a hit.
    OwnCost,
    /// The quota of the control group of this task, which waits.
    Quota(i32),
    /// The weight of a control group of this task, which waits.
    Weight(i32),
    /// The owner of a lock had the CPU, slept, or was stopped so.
    LockWait(u32, Option<StopKind>),
    /// The owner of a lock, and who ran in its place.
    Inversion(u32, u32),
    Io,
    PageFault,
    Reclaim(Short),
    Migration,
    Switch,
    Unexplained(Reason),
    /// A task of a lower priority, with the index of its preemption-off record: its name depends on
    /// the sum over the phase, and on what the evidence shows of it.
    Lower(u32, Option<usize>),
    /// The idle task: its name depends on the sum over the phase.
    Idle,
}

/// A piece of a phase with its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub key: Key,
}

/// A switch, with the return from the interrupt before it, takes no longer. A task of a lower
/// priority that stays for longer keeps the CPU.
pub(crate) const SWITCH_MAX_NS: i64 = 10_000;
/// The stamps of one event in two sources differ by no more.
pub(crate) const SKEW_MAX_NS: i64 = 100_000;
/// A task picked sooner after a wake-up may have been picked before it.
pub(crate) const PICK_GUARD_NS: i64 = 2_000;
/// From the interrupt's entry to the callback of a timer that expired by a clock that was set.
const CALLBACK_NS_MAX: i64 = 1_000_000;
/// A clock that was set by at least this share of a timer's lateness explains it.
const CLOCK_SHARE_MIN: f64 = 0.5;
/// Steal that covers at least this share of a timer's lateness explains it.
pub(crate) const STEAL_SHARE_MIN: f64 = 0.9;

/// Names the pieces of one phase.
pub(crate) fn name(model: &Model, phase: &Phase, pieces: &mut Vec<Piece>) {
    let first = pieces.len();
    name_by_events(model, phase, pieces);
    own_cost::charge(model, phase.cpu, pieces, first);
    let span = (phase.begin_ns, phase.end_ns);
    let together = model.late_together(phase.cpu, span);
    for still in model.still(phase.cpu, span).into_iter().chain(together) {
        stand_still(pieces, first, still, Reason::MachineStoodStill);
    }
    for still in model.perhaps_still(phase.cpu, span) {
        stand_still(pieces, first, still, Reason::PerhapsStoodStill);
    }
    if let Doing::Running { .. } = phase.doing {
        for (still, reason) in host::took(model, phase.cpu, span) {
            stand_still(pieces, first, still, reason);
        }
    }
}

/// While every CPU stood still nobody had one: what seems to have lasted then did not.
fn stand_still(pieces: &mut Vec<Piece>, first: usize, (begin_ns, end_ns): Span, reason: Reason) {
    let named = pieces.split_off(first);
    for piece in named {
        let known = matches!(
            piece.key,
            Key::Steal
                | Key::Unexplained(
                    Reason::WindowEdge
                        | Reason::LostEvents
                        | Reason::SwitchNotRecorded
                        | Reason::MachineStoodStill
                        | Reason::MaybeStolen
                )
        );
        let (from_ns, until_ns) = (piece.begin_ns.max(begin_ns), piece.end_ns.min(end_ns));
        if known || from_ns >= until_ns {
            pieces.push(piece);
            continue;
        }
        let part = |begin_ns, end_ns, key| Piece {
            begin_ns,
            end_ns,
            key,
        };
        let still = Key::Unexplained(reason);
        let parts = [
            part(piece.begin_ns, from_ns, piece.key),
            part(from_ns, until_ns, still),
            part(until_ns, piece.end_ns, piece.key),
        ];
        pieces.extend(parts.into_iter().filter(|part| part.begin_ns < part.end_ns));
    }
}

/// The same without a look at other CPUs.
fn name_by_events(model: &Model, phase: &Phase, pieces: &mut Vec<Piece>) {
    let first = pieces.len();
    let (begin_ns, end_ns) = (phase.begin_ns, phase.end_ns);
    let mut whole = |key| {
        pieces.push(Piece {
            begin_ns,
            end_ns,
            key,
        })
    };
    match phase.doing {
        // While it sleeps, no CPU owes anything.
        Doing::Missing(_)
        | Doing::Io
        | Doing::PageFault
        | Doing::Reclaim(_)
        | Doing::Stopped(_)
        | Doing::Slack
        | Doing::OwnerSleeps { .. } => {
            return whole(proper(phase));
        }
        Doing::OwnerWaits { owner, since } => {
            return owner_waits(model, phase, owner, since, pieces);
        }
        _ => {}
    }
    let Some(cpu) = phase.cpu else {
        return whole(Key::Unexplained(Reason::UnknownRunQueue));
    };
    let Some(timeline) = model.timeline(cpu) else {
        return whole(Key::Unexplained(Reason::WindowEdge));
    };
    let mut namer = Namer {
        model,
        phase,
        cpu,
        passed_over: false,
    };
    timeline.slices(begin_ns, end_ns, |slice| {
        let Slice {
            begin_ns, end_ns, ..
        } = slice;
        pieces.push(Piece {
            begin_ns,
            end_ns,
            key: namer.slice(&slice),
        });
    });
    namer.settle(pieces, first);
    spun::settle(model, phase, timeline, (&mut *pieces, first));
    quota::settle(model, phase, pieces, first);
}

/// The owner of a lock waits as any task does; whoever runs ahead of it also keeps the one off that
/// waits for the lock.
fn owner_waits(
    model: &Model,
    phase: &Phase,
    owner: VersionId,
    since: Since,
    pieces: &mut Vec<Piece>,
) {
    let first = pieces.len();
    let doing = match model.tasks.version(owner) {
        Some(version) => Doing::Waiting {
            tid: version.tid.0,
            prio: version.prio,
            since,
        },
        None => Doing::Missing(Reason::LockOwnerUnknown),
    };
    name_by_events(model, &Phase { doing, ..*phase }, pieces);
    for piece in &mut pieces[first..] {
        if let Key::Wait(task) = piece.key {
            piece.key = Key::Inversion(owner.0, task);
        }
    }
}

struct Namer<'a> {
    model: &'a Model,
    phase: &'a Phase,
    cpu: Cpu,
    /// The scheduler chose a lower priority over the waiting task.
    passed_over: bool,
}

impl Namer<'_> {
    /// NMI beats hard interrupt beats softirq beats task.
    fn slice(&mut self, slice: &Slice) -> Key {
        let what = slice.occupant.what();
        if let Doing::Delivery { waker } = self.phase.doing
            && waker == what
            && what != What::Task
        {
            return Key::Delivery;
        }
        match what {
            What::Edge => Key::Unexplained(Reason::WindowEdge),
            What::Lost => Key::Unexplained(self.unknown(slice)),
            What::Nmi => Key::Nmi,
            What::Hardirq(irq) => Key::Hardirq(irq),
            What::Softirq(vector) => Key::Softirq(vector),
            What::Task => self.task(slice),
        }
    }

    /// Why nobody knows who had the CPU.
    fn unknown(&self, slice: &Slice) -> Reason {
        let range = TimeRange {
            begin: Instant::from_ns(slice.begin_ns),
            end: Instant::from_ns(slice.end_ns),
        };
        match self.model.is_lossy(range, &[self.cpu]) {
            true => Reason::LostEvents,
            false => Reason::SwitchNotRecorded,
        }
    }

    fn task(&mut self, slice: &Slice) -> Key {
        let Some(version) = self.model.tasks.version(slice.task) else {
            return Key::Unexplained(Reason::WindowEdge);
        };
        let ran = slice.task.0;
        let idle = version.tid.is_idle();
        match self.phase.doing {
            Doing::TimerPending => self.late_timer(idle),
            Doing::Handler(What::Hardirq(irq)) => Key::Hardirq(irq),
            Doing::Handler(What::Nmi) => Key::Nmi,
            Doing::Handler(What::Softirq(vector)) => self.preempted(slice, vector),
            Doing::Handler(_) => Key::Unexplained(Reason::MissingSteps),
            Doing::SoftirqPending if self.model.tasks.is_stop(version) => Key::Stop(ran),
            Doing::SoftirqPending => {
                let short = self.phase.end_ns - self.phase.begin_ns <= SWITCH_MAX_NS;
                if short {
                    Key::Switch
                } else {
                    Key::Unexplained(Reason::SoftirqPending)
                }
            }
            Doing::Delivery { waker: What::Edge } if idle => Key::Idle,
            Doing::Delivery { waker: What::Edge } => self
                .section(slice)
                .map_or(Key::Delivery, |place| self.interrupts_off(place)),
            Doing::Delivery { .. } => Key::Delivery,
            Doing::Waiting { tid, .. } | Doing::Running { tid } if version.tid.0 == tid => {
                self.itself(slice)
            }
            Doing::Waiting { .. } if self.model.tasks.is_stop(version) => Key::Stop(ran),
            Doing::Waiting { prio, .. } => {
                let lower = idle || prio.is_real_time() && prio.beats(version.prio);
                if lower {
                    self.lower_priority(slice, idle)
                } else {
                    self.higher_priority(slice)
                }
            }
            Doing::OwnerRuns { tid } if version.tid.0 == tid => Key::LockWait(ran, None),
            Doing::Missing(reason) => Key::Unexplained(reason),
            _ => Key::Unexplained(Reason::Contradiction),
        }
    }

    /// A softirq that runs on a task's time leaves the CPU with it.
    fn preempted(&self, slice: &Slice, vector: u32) -> Key {
        let timeline = self.model.timeline(self.cpu);
        let host = timeline.map_or(VersionId::NONE, |line| line.at(self.phase.begin_ns).task);
        let same = |a: VersionId, b: VersionId| {
            let tid = |id| self.model.tasks.version(id).map(|version| version.tid);
            tid(a) == tid(b)
        };
        if same(host, slice.task) {
            Key::Softirq(vector)
        } else {
            Key::Wait(slice.task.0)
        }
    }

    fn itself(&self, slice: &Slice) -> Key {
        match self.phase.doing {
            Doing::Running { .. } => Key::Ran(slice.task.0),
            // A run out of idle is inferred to begin with its wake-up; where a hit knows better,
            // the CPU was on its way out of idle until then.
            _ if slice.occupant.is_inferred() && self.was_idle() => Key::Idle,
            _ if slice.end_ns - slice.begin_ns <= SWITCH_MAX_NS => Key::Switch,
            _ => Key::Unexplained(Reason::Contradiction),
        }
    }

    /// Whether the CPU was idle when the phase began.
    fn was_idle(&self) -> bool {
        let timeline = self.model.timeline(self.cpu);
        let before = timeline.map(|line| line.at(self.phase.begin_ns.saturating_sub(1)).task);
        let before = before.and_then(|task| self.model.tasks.version(task));
        before.is_some_and(|version| version.tid.is_idle())
    }

    fn higher_priority(&mut self, slice: &Slice) -> Key {
        self.passed_over = false;
        Key::Wait(slice.task.0)
    }

    /// A task of a lower priority, or idle, has the CPU though a real-time task is runnable on it.
    fn lower_priority(&mut self, slice: &Slice, idle: bool) -> Key {
        let Doing::Waiting { tid, prio, since } = self.phase.doing else {
            return Key::Unexplained(Reason::Contradiction);
        };
        if self.model.has_edge(self.phase.begin_ns, slice.end_ns) {
            return Key::Unexplained(Reason::WindowEdge);
        }
        let guard_ns = if since == Since::Preemption {
            0
        } else {
            PICK_GUARD_NS
        };
        let in_wait = slice.begin_ns >= self.phase.begin_ns + guard_ns;
        // The scheduler's choice is judged by the priority that the task had then.
        let lowered = self.lowered_itself(slice);
        let picked = slice.occupant.is_picked() && in_wait && prio.is_real_time() && !lowered;
        self.passed_over |= picked;
        if self.changed_below(slice, idle) {
            return Key::Unexplained(Reason::PriorityChanged);
        }
        // No limit on others keeps a task of SCHED_DEADLINE off: its own does.
        if self.passed_over && !lowered && prio.has_deadline() {
            // A watch ends an activation where its task gives up the rest of its runtime.
            return match self.model.families.hit || self.left_by_tick() && !self.gave_way() {
                true => Key::RuntimeUsedUp(tid),
                false => Key::Unexplained(Reason::PerhapsYielded),
            };
        }
        let throttled = slice.occupant.is_throttled() && prio.is_real_time();
        if throttled || self.passed_over && !lowered {
            return Key::Throttled((!idle).then_some(slice.task.0));
        }
        if idle {
            return Key::Idle;
        }
        if let Some(place) = self.section(slice) {
            return self.interrupts_off(place);
        }
        let tid = self
            .model
            .tasks
            .version(slice.task)
            .map(|version| version.tid);
        let seen = self.model.evidence.preemption_off.iter().position(|off| {
            let here = off.cpu == self.cpu && Some(off.task.tid) == tid;
            let begin_ns = off.begin.as_ns() - SKEW_MAX_NS;
            here && begin_ns < slice.end_ns && slice.begin_ns < off.time.as_ns() + SKEW_MAX_NS
        });
        match seen {
            None if slice.occupant.is_open() => Key::Unexplained(Reason::PriorityUnknown),
            // Not even an interrupt came through: it is not for want of a point to be preempted at.
            None if !self.model.families.hit && self.took_no_interrupt(slice) => {
                Key::Unexplained(Reason::LateTimerWithoutStack)
            }
            seen => Key::Lower(slice.task.0, seen),
        }
    }

    fn took_no_interrupt(&self, slice: &Slice) -> bool {
        let span = (slice.begin_ns, slice.end_ns);
        self.model.took_no_interrupt(self.cpu, span)
    }

    /// Whether the waiting task left its CPU right behind an interrupt, as a tick makes one leave
    /// that has used up its runtime; a system call has none before it.
    fn left_by_tick(&self) -> bool {
        let Some(timeline) = self.model.timeline(self.cpu) else {
            return false;
        };
        let begin_ns = self.phase.begin_ns;
        let mut is_seen = false;
        timeline.slices(begin_ns - BY_TICK_NS_MAX, begin_ns, |slice| {
            is_seen |= matches!(slice.occupant.what(), What::Hardirq(_));
        });
        is_seen
    }

    /// Whether the waiting task left its CPU as it may have given up the rest of its runtime.
    fn gave_way(&self) -> bool {
        let Doing::Waiting { tid, .. } = self.phase.doing else {
            return false;
        };
        let begin = Instant::from_ns(self.phase.begin_ns);
        let moments = self.model.moments(tid, self.cpu, begin, begin);
        moments.iter().any(|moment| moment.gave_way)
    }

    /// Whether the task that has the CPU came with a priority that goes first, and left with
    /// another one.
    fn lowered_itself(&self, slice: &Slice) -> bool {
        let version = self.model.tasks.version(slice.task);
        let came = version.and_then(|version| version.came);
        came.is_some_and(|came| !self.is_lower(came))
    }

    /// Whether the waiting task had another priority when it was scheduled in, with which the one
    /// that has it goes first: nothing says when it changed.
    fn changed_below(&self, slice: &Slice, idle: bool) -> bool {
        let Doing::Waiting { tid, prio, .. } = self.phase.doing else {
            return false;
        };
        let timeline = self.model.timeline(self.cpu);
        let version = |id| self.model.tasks.version(id);
        let came = timeline.and_then(|line| version(line.at(self.phase.end_ns).task));
        let Some(came) = came.filter(|came| came.tid.0 == tid) else {
            return false;
        };
        let came = came.came.and_then(version).unwrap_or(came);
        let ran = version(slice.task);
        let still = |ran: &Version| came.prio.is_real_time() && came.prio.beats(ran.prio);
        !idle && came.prio != prio && !ran.is_some_and(still)
    }

    /// The late timer that shows that all of a slice passed with interrupts off: one that expired
    /// before it and was served at its end. What should have interrupted the CPU could not.
    fn section(&self, slice: &Slice) -> Option<usize> {
        self.model.evidence.late_timers.iter().position(|late| {
            let (expiry_ns, time_ns) = (late.expiry.as_ns(), late.time.as_ns());
            let covers = expiry_ns <= slice.begin_ns + SWITCH_MAX_NS
                && slice.begin_ns + SWITCH_MAX_NS < time_ns
                && slice.end_ns <= time_ns + SWITCH_MAX_NS;
            let stolen = late.steal.share_of(late.lateness) >= STEAL_SHARE_MIN;
            let shown = late.mode == Mode::Kernel
                && !is_at_border(&late.stack)
                && !is_behind_interrupt(&late.stack)
                && section_function(&late.stack).is_some();
            late.cpu == self.cpu && covers && !stolen && shown
        })
    }

    /// By how much the timer's clock was set while the timer seemed to be pending, if it was.
    fn clock_was_set(&self) -> Option<Duration> {
        let span_ns = self.phase.begin_ns..self.phase.end_ns + CALLBACK_NS_MAX;
        let mut sets = self.model.clock_sets.iter();
        let set = sets.find(|(time_ns, _)| span_ns.contains(time_ns))?;
        // By less than it is late, the rest is not the clock's.
        let late = Duration::from_ns(self.phase.end_ns - self.phase.begin_ns);
        (set.1.share_of(late) >= CLOCK_SHARE_MIN).then_some(set.1)
    }

    /// The code that a late timer interrupted kept interrupts off, unless something speaks for
    /// another reason.
    fn interrupts_off(&self, place: usize) -> Key {
        let instead = host::instead_of_section(self.model, place);
        instead.map_or(Key::InterruptsOff(place), Key::Unexplained)
    }

    /// A timer is pending and no handler runs.
    fn late_timer(&self, idle: bool) -> Key {
        if let Some(by) = self.clock_was_set() {
            return Key::ClockSet(by.as_ns());
        }
        let entry = Instant::from_ns(self.phase.end_ns);
        let expiry = Instant::from_ns(self.phase.begin_ns);
        // An interrupt has one record, that of its first timer. One that expired earlier, and was
        // served no sooner, shows that the section began before ours expired.
        let seen = self.model.evidence.late_timers.iter().position(|late| {
            let same_entry = (late.time - entry).as_ns().abs() <= SKEW_MAX_NS;
            let earlier = (late.expiry - expiry).as_ns() <= SKEW_MAX_NS;
            late.cpu == self.cpu && same_entry && earlier
        });
        let Some(place) = seen else {
            let lateness = entry - expiry;
            let floor = self.model.late_timer_floor;
            return match floor.filter(|floor| lateness < *floor) {
                _ if idle => Key::Idle,
                Some(floor) => Key::Unexplained(Reason::LateTimerBelowFloor(floor)),
                None => Key::Unexplained(Reason::LateTimerWithoutStack),
            };
        };
        let late = &self.model.evidence.late_timers[place];
        let covers = |steal: Duration| {
            steal > Duration::ZERO && steal.share_of(late.lateness) >= STEAL_SHARE_MIN
        };
        let (stolen, perhaps) = self.model.evidence.steal_of_late_timer(place);
        if covers(stolen) {
            return Key::Steal;
        }
        match late.mode {
            // It may have been the hypervisor, and nothing says that it was.
            _ if covers(perhaps) => Key::Unexplained(Reason::MaybeStolen),
            Mode::Idle => Key::Idle,
            Mode::User => Key::Unexplained(Reason::LateTimerInUserMode),
            Mode::Enabled => Key::Unexplained(Reason::LateTimerWhileEnabled),
            // User code until just now: nothing on that way takes long.
            Mode::Kernel if is_at_border(&late.stack) => {
                Key::Unexplained(Reason::LateTimerInUserMode)
            }
            Mode::Kernel if is_behind_interrupt(&late.stack) => {
                Key::Unexplained(Reason::LateTimerBehindInterrupt)
            }
            Mode::Kernel if section_function(&late.stack).is_some() => self.interrupts_off(place),
            Mode::Kernel => Key::Unexplained(Reason::LateTimerWithoutStack),
        }
    }
}

/// The name of time in a phase that has no event of its own: what the chain did there.
pub(crate) fn proper(phase: &Phase) -> Key {
    match phase.doing {
        Doing::TimerPending => Key::Unexplained(Reason::LateTimerWithoutStack),
        Doing::Handler(What::Hardirq(irq)) => Key::Hardirq(irq),
        Doing::Handler(What::Softirq(vector)) => Key::Softirq(vector),
        Doing::Handler(What::Nmi) => Key::Nmi,
        Doing::Handler(_) => Key::Unexplained(Reason::MissingSteps),
        Doing::SoftirqPending | Doing::Waiting { .. } => Key::Switch,
        Doing::Delivery { .. } => Key::Delivery,
        Doing::Running { .. } | Doing::OwnerRuns { .. } | Doing::OwnerWaits { .. } => Key::Switch,
        Doing::Io => Key::Io,
        Doing::PageFault => Key::PageFault,
        Doing::Reclaim(short) => Key::Reclaim(short),
        Doing::Stopped(stop) => Key::Stopped(stop),
        Doing::Slack => Key::Slack,
        Doing::OwnerSleeps { owner, halted } => Key::LockWait(owner.0, halted),
        Doing::Missing(reason) => Key::Unexplained(reason),
    }
}
