//! A task of the chain from its switch-in on: what preempts it, and what it blocks on before its
//! work is done.

use event::evidence::{Blocked, BlockedOn, Step, StepKind, TaskRef};
use event::{Cpu, Duration, Instant, Prio};

use crate::due;
use crate::model::{Model, Moment, MomentKind, VersionId, What};
use crate::naming::SKEW_MAX_NS;
use crate::phases::{Doing, Phase, Since};
use crate::stacks::{is_lock_sleep, is_page_fault, reclaim};
use crate::term::Reason;

/// Phases in the making: each begins where the last one ended.
struct Phases {
    list: Vec<Phase>,
    now_ns: i64,
    cpu: Option<Cpu>,
    doing: Doing,
}

impl Phases {
    /// What was done until `time_ns` becomes a phase; from then on it is `doing`, on `cpu`.
    fn then(&mut self, time_ns: i64, cpu: Option<Cpu>, doing: Doing) {
        self.list.push(Phase {
            begin_ns: self.now_ns,
            end_ns: time_ns,
            cpu: self.cpu,
            doing: self.doing,
        });
        (self.now_ns, self.cpu, self.doing) = (time_ns, cpu, doing);
    }
}

/// The phases of a task in a time that is its own work's, wherever it stood when that began; `here`
/// is where it does not say.
pub(crate) fn while_busy(
    model: &Model,
    (tid, here): (i32, Cpu),
    (begin_ns, end_ns): (i64, i64),
) -> Vec<Phase> {
    let log = model.tasks.log(tid, here.0);
    let begun = log.partition_point(|moment| moment.time_ns <= begin_ns);
    let Some(last) = log[..begun].last() else {
        return vec![Phase {
            begin_ns,
            end_ns,
            cpu: None,
            doing: Doing::Missing(Reason::WindowEdge),
        }];
    };
    let kind = match last.kind {
        MomentKind::In => StepKind::SwitchIn,
        _ => StepKind::Preempted,
    };
    let version = version_at(model, tid, &log[begun - 1..]);
    let version = version.and_then(|version| model.tasks.version(version));
    let step = Step {
        time: Instant::from_ns(begin_ns),
        kind,
        cpu: Cpu(last.cpu),
        id: tid,
        prio: version.map_or(Prio(0), |version| version.prio),
        comm: String::new(),
    };
    let began = match last.kind {
        // It was due as it slept for something else.
        MomentKind::OutBlocked => Doing::Missing(Reason::BlockedInKernel),
        _ => begins_with(&step),
    };
    phases_of(model, (&step, began), begin_ns, end_ns)
}

/// What a task of the chain does that was scheduled in, or was put off, with `step`.
fn begins_with(step: &Step) -> Doing {
    let (tid, prio, since) = (step.id, step.prio, Since::Preemption);
    match step.kind {
        StepKind::Preempted => Doing::Waiting { tid, prio, since },
        _ => Doing::Running { tid },
    }
}

/// Whether the task of `step` was preempted by `time_ns`, and had not come back.
pub(crate) fn is_put_off(model: &Model, step: &Step, time_ns: i64) -> bool {
    let log = model.tasks.log(step.id, step.cpu.0);
    let begun = log.partition_point(|moment| moment.time_ns <= time_ns);
    let last = log[..begun].last();
    last.is_some_and(|last| last.kind == MomentKind::OutRunnable)
}

/// The phases of a task of the chain that was scheduled in, or was put off, with `step`.
pub(crate) fn since(model: &Model, step: &Step, begin_ns: i64, end_ns: i64) -> Vec<Phase> {
    phases_of(model, (step, begins_with(step)), begin_ns, end_ns)
}

/// The phases of the task of `step` that does this at `begin_ns`.
fn phases_of(
    model: &Model,
    (step, doing): (&Step, Doing),
    begin_ns: i64,
    end_ns: i64,
) -> Vec<Phase> {
    let tid = step.id;
    // Others, or itself, may give it another one in the midst of its work.
    let mut prio = step.prio;
    let waiting = |since, prio| Doing::Waiting { tid, prio, since };
    let mut phases = Phases {
        list: Vec::new(),
        now_ns: begin_ns,
        cpu: Some(step.cpu),
        doing,
    };
    // Since when it is blocked, and by which record.
    let mut blocked: Option<(i64, Option<&Blocked>)> = None;
    let (begin, end) = (Instant::from_ns(begin_ns), Instant::from_ns(end_ns));
    for moment in model.moments(tid, step.cpu, begin, end) {
        let cpu = Some(Cpu(moment.cpu));
        spins(model, tid, moment.time_ns, &mut phases);
        if matches!(
            moment.kind,
            MomentKind::OutRunnable | MomentKind::OutBlocked
        ) {
            prio = left_as(model, tid, moment).unwrap_or(prio);
        }
        let then = match (moment.kind, phases.doing) {
            (MomentKind::OutRunnable, _) => waiting(Since::Preemption, prio),
            (MomentKind::In, _) => Doing::Running { tid },
            (MomentKind::OutBlocked, _) => {
                let record = record(model, tid, moment.time_ns);
                blocked = Some((moment.time_ns, record));
                // Without a record the activation goes on only through a sleep in the kernel.
                match (record, due::stop_at(model, tid, moment.time_ns)) {
                    (_, Some(stop)) => Doing::Stopped(stop),
                    (Some(_), None) => Doing::Missing(Reason::Contradiction),
                    (None, None) => Doing::Missing(Reason::BlockedInKernel),
                }
            }
            (MomentKind::Waking, Doing::Missing(_) | Doing::Stopped(_)) => {
                if let Some((since_ns, Some(record))) = blocked.take() {
                    wait(model, record, since_ns, moment, &mut phases);
                }
                delivery(model, moment)
            }
            (MomentKind::Waking, Doing::Running { .. }) if has_spun(model, tid, moment) => {
                // It was in its own code before, where that was seen.
                let span = (phases.now_ns, moment.time_ns);
                let own = model.user_code_of(tid, span).into_iter().max();
                let (here, runs) = (phases.cpu, phases.doing);
                let spun = Doing::Missing(Reason::SpunForLock);
                phases.then(own.unwrap_or(phases.now_ns), here, spun);
                phases.then(moment.time_ns, here, runs);
                continue;
            }
            (MomentKind::Wakeup, Doing::Delivery { .. }) => waiting(Since::Wakeup, prio),
            (MomentKind::Migrate, Doing::Waiting { .. }) => waiting(Since::Migration, prio),
            _ => continue,
        };
        phases.then(moment.time_ns, cpu, then);
    }
    spins(model, tid, end_ns, &mut phases);
    phases.then(end_ns, None, Doing::Missing(Reason::Contradiction));
    phases.list
}

/// Nobody spins for a lock for longer.
const SPIN_NS_MAX: i64 = 10_000_000_000;

/// While it has the CPU until `until_ns`: where it lent its priority to the owner of a lock, and so
/// spun for it. It goes on with that where it was preempted meanwhile, and where it was due again.
fn spins(model: &Model, tid: i32, until_ns: i64, phases: &mut Phases) {
    let runs = phases.doing;
    let Doing::Running { .. } = runs else { return };
    let here = phases.cpu;
    let first = model
        .boosts
        .partition_point(|boost| boost.begin_ns < phases.now_ns.saturating_sub(SPIN_NS_MAX));
    for boost in &model.boosts[first..] {
        if boost.begin_ns >= until_ns {
            return;
        }
        let end_ns = boost.end_ns.min(until_ns);
        if boost.waiter != tid || end_ns <= phases.now_ns {
            continue;
        }
        // One that runs code of its own gave up.
        if !model.user_code_of(tid, (boost.begin_ns, end_ns)).is_empty() {
            continue;
        }
        let span = (boost.begin_ns.max(phases.now_ns), end_ns);
        let owner = Owner {
            tid: boost.owner,
            number: 0,
        };
        phases.then(span.0, None, Doing::Missing(Reason::LockOwnerUnknown));
        let begun = phases.list.len();
        owner_of_lock(model, owner, span, phases);
        phases.then(span.1, here, runs);
        phases.list[begun..].iter_mut().for_each(doubt_spinning);
    }
}

/// Nobody spins for an owner that has no CPU: this is another wait, or none.
fn doubt_spinning(phase: &mut Phase) {
    let has_no_cpu = matches!(
        phase.doing,
        Doing::OwnerWaits { .. } | Doing::OwnerSleeps { .. }
    );
    if has_no_cpu && phase.end_ns - phase.begin_ns > SKEW_MAX_NS {
        phase.doing = Doing::Missing(Reason::LockOwnerUnknown);
    }
}

/// The priority with which `tid` left its CPU at `moment`, where its switch was recorded.
fn left_as(model: &Model, tid: i32, moment: &Moment) -> Option<Prio> {
    let timeline = model.timeline(Cpu(moment.cpu))?;
    let version = model.tasks.version(timeline.at(moment.time_ns - 1).task)?;
    (version.tid.0 == tid).then_some(version.prio)
}

/// The record of the block at `time_ns`: the nearest one, where it is of no other block.
pub(crate) fn record(model: &Model, tid: i32, time_ns: i64) -> Option<&Blocked> {
    let records = model.evidence.blocked.iter();
    let away_ns = |blocked: &&Blocked| (blocked.time.as_ns() - time_ns).abs();
    let near =
        records.filter(|blocked| blocked.task.tid.0 == tid && away_ns(blocked) <= SKEW_MAX_NS);
    let nearest = near.min_by_key(away_ns)?;
    let is_of = |other: &Moment| {
        let is_block = other.kind == MomentKind::OutBlocked && other.time_ns != time_ns;
        is_block && (other.time_ns - nearest.time.as_ns()).abs() < away_ns(&nearest)
    };
    let around = Duration::from_ns(away_ns(&nearest));
    let (begin, end) = (nearest.time - around, nearest.time + around);
    let moments = model.moments(tid, Cpu(0), begin, end);
    (!moments.iter().any(is_of)).then_some(nearest)
}

/// Whether `tid` has the CPU as it is woken, and spun for a lock until then.
fn has_spun(model: &Model, tid: i32, waking: &Moment) -> bool {
    // The owner gives a lent priority back before it wakes who waits.
    let just_before = waking.time_ns - SKEW_MAX_NS..=waking.time_ns;
    let mut boosts = model.boosts.iter().filter(|boost| boost.waiter == tid);
    let is_told = boosts.any(|boost| just_before.contains(&boost.end_ns));
    let record = record(model, tid, waking.time_ns);
    !is_told && record.is_some_and(|record| record.on == BlockedOn::Spin)
}

/// What follows a wake-up: its delivery, where the trace tells its end.
fn delivery(model: &Model, waking: &Moment) -> Doing {
    let here = waking.cpu == u32::from(waking.by);
    let waker = if here {
        who(model, waking).map_or(What::Edge, |(what, _)| what)
    } else {
        What::Edge
    };
    if model.families.wakeup {
        Doing::Delivery { waker }
    } else {
        Doing::Missing(Reason::MissingSteps)
    }
}

/// The task that woke `tid` first after a time.
pub(crate) fn waker_after(
    model: &Model,
    tid: i32,
    begin: Instant,
    end: Instant,
) -> Option<TaskRef> {
    let mut moments = model.moments(tid, Cpu(0), begin, end).iter();
    let waking = moments.find(|moment| moment.kind == MomentKind::Waking)?;
    let timeline = model.timeline(Cpu(u32::from(waking.by)))?;
    let segment = timeline.at(waking.time_ns);
    let version = model.tasks.version(segment.task)?;
    (segment.occupant.what() == What::Task).then(|| version.task_ref())
}

/// What ran where a wake-up was made, and on whose time.
fn who(model: &Model, waking: &Moment) -> Option<(What, i32)> {
    let timeline = model.timeline(Cpu(u32::from(waking.by)))?;
    let segment = timeline.at(waking.time_ns);
    let version = model.tasks.version(segment.task)?;
    Some((segment.occupant.what(), version.tid.0))
}

/// The phases of a block that began at `since_ns` and that `waking` ended.
fn wait(model: &Model, record: &Blocked, since_ns: i64, waking: &Moment, phases: &mut Phases) {
    let fault = is_page_fault(&record.stack);
    let waker = who(model, waking).filter(|(what, _)| *what == What::Task);
    let sleeps = record.on == BlockedOn::Kernel && !is_lock_sleep(&record.stack);
    if let Some(short) = reclaim(&record.stack).filter(|_| sleeps) {
        phases.doing = Doing::Reclaim(short);
        return;
    }
    phases.doing = match record.on {
        // In a page fault it may wait for who changes what is mapped, a fork among them.
        BlockedOn::Kernel | BlockedOn::Fault if is_lock_sleep(&record.stack) => {
            return released(model, waker, since_ns, waking.time_ns, phases);
        }
        BlockedOn::Lock | BlockedOn::Mutex if record.owner.is_none() => {
            return released(model, waker, since_ns, waking.time_ns, phases);
        }
        BlockedOn::Io | BlockedOn::Kernel if fault => Doing::PageFault,
        BlockedOn::Fault => Doing::PageFault,
        BlockedOn::Io => {
            let tid = record.task.tid.0;
            return device(model, tid, (since_ns, waking.time_ns), phases);
        }
        BlockedOn::Kernel => Doing::Missing(Reason::BlockedInKernel),
        BlockedOn::Write => Doing::Missing(Reason::NoRoomToWrite),
        BlockedOn::Spin => Doing::Missing(Reason::SpunForLock),
        BlockedOn::Readers => Doing::Missing(Reason::LockOfReaders),
        BlockedOn::Lock | BlockedOn::Mutex => {
            // Whoever was the owner then, and lets go of the lock now, had it in between.
            let owner = record.owner.as_ref().map(|owner| owner.tid.0);
            match waker {
                Some((_, tid)) if owner == Some(tid) => {
                    let first = Owner { tid, number: 0 };
                    return owner_of_lock(model, first, (since_ns, waking.time_ns), phases);
                }
                _ => Doing::Missing(Reason::LockOwnerUnknown),
            }
        }
    };
}

/// A wait for a device, as far as one had a request meanwhile.
fn device(model: &Model, tid: i32, wait_ns: (i64, i64), phases: &mut Phases) {
    phases.doing = Doing::Io;
    let Some(busy) = model.devices_busy(tid, wait_ns) else {
        return;
    };
    let idle = Doing::Missing(Reason::DevicesIdle);
    phases.doing = idle;
    for (begin_ns, end_ns) in busy {
        if begin_ns > wait_ns.0 {
            phases.then(begin_ns, None, Doing::Io);
        } else {
            phases.doing = Doing::Io;
        }
        if end_ns < wait_ns.1 {
            phases.then(end_ns, None, idle);
        }
    }
}

/// A wait for a lock of which nothing says the owner but who lets go of it. That one had the lock
/// since it slept last: before, another one may have had it.
fn released(
    model: &Model,
    waker: Option<(What, i32)>,
    since_ns: i64,
    until_ns: i64,
    phases: &mut Phases,
) {
    phases.doing = Doing::Missing(Reason::LockOwnerUnknown);
    let Some((_, tid)) = waker else { return };
    let log = model.tasks.log(tid, 0);
    let before = &log[..log.partition_point(|moment| moment.time_ns <= until_ns)];
    let slept = before
        .iter()
        .rposition(|moment| moment.kind == MomentKind::OutBlocked);
    let woken = before[slept.map_or(0, |slept| slept + 1)..].first();
    match woken.map(|woken| woken.time_ns).filter(|_| slept.is_some()) {
        // It slept until then, inside of the wait.
        Some(woken_ns) if woken_ns > since_ns => {
            let unknown = Doing::Missing(Reason::LockOwnerUnknown);
            phases.then(woken_ns, None, unknown);
            owner_of_lock(
                model,
                Owner { tid, number: 0 },
                (woken_ns, until_ns),
                phases,
            );
        }
        _ => owner_of_lock(
            model,
            Owner { tid, number: 0 },
            (since_ns, until_ns),
            phases,
        ),
    }
}

/// The owner of a lock, and how many owners wait for it, each for the next one.
#[derive(Clone, Copy)]
struct Owner {
    tid: i32,
    number: usize,
}

/// So many owners are followed.
const OWNERS_MAX: usize = 8;

impl Owner {
    /// Who has the lock for which this one sleeps from the first of `moments` on, and until when:
    /// by the record of that sleep, and by who lets go of the lock.
    fn waits_for(self, model: &Model, moments: &[Moment]) -> Option<(Owner, i64)> {
        let slept = moments.first()?;
        let waking = moments
            .iter()
            .skip(1)
            .find(|moment| moment.kind == MomentKind::Waking)?;
        let (what, waker) = who(model, waking)?;
        // Of one that slept before it was waited for, the record is of when it was.
        let span_ns = slept.time_ns - SKEW_MAX_NS..waking.time_ns;
        let mut records = model.evidence.blocked.iter();
        let is_his = records.any(|record| {
            let of_sleep = record.task.tid.0 == self.tid && span_ns.contains(&record.time.as_ns());
            let owner = record.owner.as_ref().map(|owner| owner.tid.0);
            of_sleep && record.on == BlockedOn::Lock && owner == Some(waker)
        });
        let next = Owner {
            tid: waker,
            number: self.number + 1,
        };
        let is_followed = what == What::Task && waker != self.tid && next.number < OWNERS_MAX;
        (is_his && is_followed).then_some((next, waking.time_ns))
    }
}

/// Whether `tid`, which leaves its CPU with the first of `moments`, is woken by another program: it
/// may wait for a lock itself.
fn waits_for_another(model: &Model, tid: i32, moments: &[Moment]) -> bool {
    let mut moments = moments.iter().skip(1);
    let waking = moments.find(|moment| moment.kind == MomentKind::Waking);
    let segment = waking.and_then(|waking| {
        let timeline = model.timeline(Cpu(u32::from(waking.by)))?;
        Some(timeline.at(waking.time_ns))
    });
    segment.is_some_and(|segment| {
        let by = model.tasks.version(segment.task);
        let is_another = by.is_some_and(|by| !by.tid.is_idle() && by.tid.0 != tid);
        let is_kernels = model.tasks.is_kernels(segment.task);
        segment.occupant.what() == What::Task && is_another && !is_kernels
    })
}

/// What the owner of a lock did while it was waited for, or whoever it waited for itself.
fn owner_of_lock(
    model: &Model,
    owner: Owner,
    (since_ns, until_ns): (i64, i64),
    phases: &mut Phases,
) {
    let tid = owner.tid;
    let log = model.tasks.log(tid, 0);
    let now = log.partition_point(|moment| moment.time_ns <= since_ns);
    let state = |place: usize| -> (Option<Cpu>, Doing) {
        let moment = &log[place];
        let cpu = Some(Cpu(moment.cpu));
        let version = version_at(model, tid, &log[place..]);
        let doing = match (moment.kind, version) {
            (MomentKind::In, _) => Doing::OwnerRuns { tid },
            (_, None) => Doing::Missing(Reason::LockOwnerUnknown),
            (MomentKind::OutBlocked, Some(_))
                if moment.halted.is_none() && waits_for_another(model, tid, &log[place..]) =>
            {
                Doing::Missing(Reason::LockOwnerWaits)
            }
            (MomentKind::OutBlocked, Some(owner)) => {
                let halted = moment.halted;
                Doing::OwnerSleeps { owner, halted }
            }
            (kind, Some(owner)) => {
                let since = match kind {
                    MomentKind::OutRunnable => Since::Preemption,
                    MomentKind::Migrate => Since::Migration,
                    _ => Since::Wakeup,
                };
                Doing::OwnerWaits { owner, since }
            }
        };
        (cpu, doing)
    };
    let enter = |place: usize, from_ns: i64, phases: &mut Phases| {
        (phases.cpu, phases.doing) = state(place);
        let moment = &log[place];
        let sleeps = moment.kind == MomentKind::OutBlocked && moment.halted.is_none();
        let next = sleeps.then(|| owner.waits_for(model, &log[place..]));
        if let Some((next, end_ns)) = next.flatten() {
            owner_of_lock(model, next, (from_ns, end_ns.min(until_ns)), phases);
        }
    };
    match now.checked_sub(1) {
        Some(place) => enter(place, since_ns, phases),
        None => (phases.cpu, phases.doing) = (None, Doing::Missing(Reason::LockOwnerUnknown)),
    }
    for (place, moment) in log.iter().enumerate().skip(now) {
        if moment.time_ns > until_ns {
            break;
        }
        // A wake-up of a task that runs changes nothing.
        let woken = matches!(moment.kind, MomentKind::Waking | MomentKind::Wakeup);
        if woken && matches!(phases.doing, Doing::OwnerRuns { .. }) {
            continue;
        }
        phases.then(
            moment.time_ns,
            None,
            Doing::Missing(Reason::LockOwnerUnknown),
        );
        enter(place, moment.time_ns, phases);
    }
}

/// The task `tid` as it was at the first of `moments`: it left the CPU then, or comes on it next.
fn version_at(model: &Model, tid: i32, moments: &[Moment]) -> Option<VersionId> {
    let first = moments.first()?;
    let (cpu, time_ns) = match first.kind {
        MomentKind::OutRunnable | MomentKind::OutBlocked => (first.cpu, first.time_ns - 1),
        _ => {
            let came = moments
                .iter()
                .find(|moment| moment.kind == MomentKind::In)?;
            (came.cpu, came.time_ns)
        }
    };
    let version = model.timeline(Cpu(cpu))?.at(time_ns).task;
    let is_it = model.tasks.version(version)?.tid.0 == tid;
    is_it.then_some(version)
}
