//! Wake-ups: what a woken task did, and since when it waits for a CPU.

use super::process::{Arrival, Comm, Pending, Process};
use super::waker::Waker;
use super::{Change, Kernel, ProcId, Sink, Topic};
use crate::bind::{WakeKind, WakeUp};

/// What a wake-up found its task doing. The kernel looks at a task's state alone
/// (`try_to_wake_up`), and a task sets that before it leaves its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakee {
    /// It slept, and waits for a CPU from now on.
    #[default]
    Slept,
    /// It had a CPU, about to sleep. It goes on, and the wake-up was none; or it is switched out
    /// before the wake-up's second event, and waits for a CPU from that switch on.
    Ran,
    /// It was preempted, about to sleep. It goes on waiting as one that never slept.
    Preempted,
    /// It was woken before, and waits for a CPU since.
    Waited,
}

impl Kernel {
    /// Takes in that a task is woken, or on a run queue, behind [`Kernel::witness`], for who reads
    /// the event by itself; returns which task.
    pub fn wake<S: Sink>(
        &mut self,
        cpu: u32,
        kind: WakeKind,
        wake_up: &WakeUp<'_>,
        sink: &mut S,
    ) -> ProcId {
        if let Some(target) = wake_up.target {
            self.cpu(target);
            self.names_cpu(target, sink);
        }
        let by = match S::TOPICS.has(Topic::Waits) {
            true => self.waker(cpu, wake_up.comm),
            // Nobody is told of it.
            false => Waker::Unknown,
        };
        let waker = self.cpu(cpu).and_then(|state| state.current);
        let waker = waker.map(|waker| self.processes.get(waker).tid);
        let is_new = kind == WakeKind::WakeupNew;
        let known = self.processes.woken(wake_up.tid, is_new);
        if let Some(known) = known
            && let Some(on) = self.seems_on(known)
        {
            self.woken_as_it_ran(known, on, kind, (by, waker));
            return known;
        }
        let id = known.unwrap_or_else(|| self.add_woken(wake_up));
        self.prio(id, wake_up.prio, sink);
        if self.is_untracked(id) {
            // When it has a CPU is not recorded: nothing of it begins here.
            self.wakee = Wakee::Waited;
            return id;
        }
        let perhaps = self.wake_again(id, kind, sink);
        self.forget_pending(id);
        if let Some(known) = known {
            self.rename(known, wake_up.comm);
        }
        let slept = self.surely_sleeps(id);
        let process = self.processes.get_mut(id);
        self.wakee = match (process.woken_ns, process.runnable_since_ns) {
            (Some(_), _) => Wakee::Waited,
            (None, Some(_)) => Wakee::Preempted,
            (None, None) => Wakee::Slept,
        };
        if self.wakee == Wakee::Preempted && !self.follows.stale_names {
            return id;
        }
        let is_second = kind == WakeKind::Wakeup && self.families.waking;
        // Where the first of its two events was not seen, nobody knows since when it waits.
        process.doubtful |= perhaps || is_second && self.wakee == Wakee::Slept;
        process.is_delivered = kind != WakeKind::Waking;
        // Only the first of several wake-ups counts.
        if process.woken_ns.is_none() {
            process.woken_ns = Some(self.now_ns);
            // One that is new has had no CPU either.
            process.slept = slept || is_new;
            process.waker = waker.or(process.waker);
        }
        self.woken(id, by, sink);
        self.arrive(id, wake_up.target.unwrap_or(cpu), kind == WakeKind::Waking);
        id
    }

    /// A task is woken that has a CPU.
    #[inline]
    fn woken_as_it_ran(
        &mut self,
        id: ProcId,
        on: u32,
        kind: WakeKind,
        (by, waker): (Waker, Option<i32>),
    ) {
        let at_ns = self.now_ns;
        let is_first = self.is_first_event(kind);
        self.cpus[on as usize].wakes_itself(at_ns, is_first);
        self.wakee = Wakee::Ran;
        // Of several, the last counts: after the others it went on, and was about to sleep again.
        let process = self.processes.get_mut(id);
        process.pending = match kind {
            WakeKind::Waking => Some(Pending::new(at_ns, by, waker)),
            _ => None,
        };
    }

    /// A task of which nothing was seen before it is woken.
    fn add_woken(&mut self, wake_up: &WakeUp<'_>) -> ProcId {
        self.processes.add(Process {
            tid: wake_up.tid,
            woken_as: Comm::new(wake_up.comm),
            ..Process::default()
        })
    }

    /// Whether a task was seen to sleep, and no event was lost since.
    fn surely_sleeps(&self, id: ProcId) -> bool {
        let since_ns = self.processes.get(id).blocked_since_ns;
        since_ns.is_some_and(|since_ns| self.is_known_since(since_ns))
    }

    /// What the last wake-up found its task doing.
    #[inline]
    pub fn wakee(&self) -> Wakee {
        self.wakee
    }

    /// Whether an event is the first that tells of a wake-up.
    fn is_first_event(&self, kind: WakeKind) -> bool {
        kind == WakeKind::Waking || kind == WakeKind::Wakeup && !self.families.waking
    }

    /// A task that is woken has gone on from the wake-up that found it on its way to sleep, and
    /// slept; or it has waited since it left its CPU, and has run there unseen.
    fn forget_pending(&mut self, id: ProcId) {
        let process = self.processes.get_mut(id);
        let (left_cpu, pending) = (process.left_cpu, process.pending.take());
        // Second events of wake-ups would have told.
        let Some(pending) = pending.filter(|pending| !pending.went_on && !self.families.wakeup)
        else {
            return;
        };
        if let Some(begin_ns) = self.switched_in_ns(left_cpu) {
            self.loses_waiting(id, left_cpu, begin_ns.max(pending.at_ns));
        }
    }

    /// The kernel wakes no task that is runnable (`try_to_wake_up` looks at its state first): one
    /// that seems to wait for a CPU since its last wake-up has run meanwhile. One that seems to be
    /// preempted may have: returns whether nobody knows, as the events of a CPU begin later.
    fn wake_again<S: Sink>(&mut self, id: ProcId, kind: WakeKind, sink: &mut S) -> bool {
        let process = self.processes.get(id);
        let is_first = self.is_first_event(kind);
        let ran = is_first && process.woken_ns.is_some();
        let since_ns = process.woken_ns.or(process.runnable_since_ns);
        let lost = since_ns.is_some_and(|since_ns| self.has_lost_since(since_ns));
        let perhaps = is_first && !ran && since_ns.is_some_and(|ns| self.has_begun_since(ns));
        if !(ran || lost || perhaps) || self.follows.stale_names {
            return false;
        }
        let arrived = process.arrived;
        if let Some(Arrival { cpu, at_ns, .. }) = arrived {
            match kind {
                // Whoever seemed to have that CPU had it up to then at most.
                WakeKind::Waking if ran && !lost => self.doubt_run(cpu, at_ns, sink),
                // It may have come there with this wake-up only, or wait there still.
                _ => self.loses_waiting(id, cpu, at_ns),
            }
        }
        self.ran_unseen(id, sink);
        perhaps
    }

    /// A task that seemed to wait for a CPU has had one since, nobody knows when.
    pub(super) fn ran_unseen<S: Sink>(&mut self, id: ProcId, sink: &mut S) {
        sink.change(self, &Change::RanUnseen { process: id });
        let arrived = self.processes.get(id).arrived;
        let cpu = arrived.map_or(0, |arrival| arrival.cpu);
        self.scheduled_in_by(cpu, id, sink);
    }

    /// A task comes on the run queue of a CPU.
    pub(super) fn arrive(&mut self, id: ProcId, cpu: u32, under_way: bool) {
        let at_ns = self.now_ns;
        let process = self.processes.get_mut(id);
        if process.runnable_since_ns.is_none() {
            return;
        }
        // It may run there unseen.
        let unseen = self
            .cpus
            .get(cpu as usize)
            .is_none_or(|state| state.is_unseen());
        let process = self.processes.get_mut(id);
        process.doubtful |= unseen;
        let before = process.arrived;
        let is_there = |arrival: Arrival| arrival.cpu == cpu && (!arrival.under_way || under_way);
        if !before.is_some_and(is_there) {
            process.arrived = Some(Arrival {
                cpu,
                at_ns,
                under_way,
            });
            self.leaves_queue(id, before, cpu);
            self.queue(id, cpu);
        }
    }

    /// Who waits for a CPU that seems to idle may have run there unseen.
    pub(super) fn doubt_waits_on(&mut self, cpu: u32) {
        let now_ns = self.now_ns;
        for process in self.processes.iter_mut() {
            let is_here = |arrival: Arrival| arrival.cpu == cpu && arrival.at_ns < now_ns;
            process.doubtful |= process.arrived.is_some_and(is_here);
        }
    }

    /// Nobody knows who has a CPU: one that was woken there, and was not seen to sleep, may have it
    /// all the time.
    pub(super) fn doubt_woken_on(&mut self, cpu: u32) {
        for process in self.processes.iter_mut() {
            let is_here = process.arrived.is_some_and(|arrival| arrival.cpu == cpu);
            process.doubtful |= is_here && process.woken_ns.is_some() && !process.slept;
        }
    }

    /// A task waits for something no more; it waits for a CPU instead.
    pub(super) fn woken<S: Sink>(&mut self, id: ProcId, by: Waker, sink: &mut S) {
        let now_ns = self.now_ns;
        let process = self.processes.get_mut(id);
        if process.tid == 0 || process.runnable_since_ns.is_some() {
            return;
        }
        process.runnable_since_ns = Some(now_ns);
        let blocked_since_ns = process.blocked_since_ns.take();
        let known_since_ns = blocked_since_ns.filter(|since_ns| self.is_known_since(*since_ns));
        if blocked_since_ns != known_since_ns {
            self.doubt_call(id);
        }
        let change = Change::Woken {
            process: id,
            by,
            blocked_since_ns: known_since_ns,
        };
        sink.change(self, &change);
    }

    /// Whether a task that has a CPU again was woken as it left the last one, of which the second
    /// event of a wake-up would have told: no other wake-up led here.
    pub(super) fn was_woken(&mut self, id: ProcId) -> bool {
        let has_wakeup = self.families.wakeup;
        let task = self.processes.get_mut(id);
        let Some(pending) = task.pending.take().filter(|_| !has_wakeup) else {
            return false;
        };
        task.woken_ns = task.woken_ns.or(Some(pending.at_ns));
        task.waker = task.waker.or(pending.waker);
        // It may have gone on then, and have been woken again by a CPU whose events begin later; or
        // it has gone on, and nobody knows what woke it.
        if pending.went_on || self.has_begun_since(pending.at_ns) {
            self.processes.get_mut(id).doubtful = true;
        }
        true
    }

    /// A task that has no CPU is moved: it waits for one, so that its last wake-up led here.
    pub(super) fn is_runnable<S: Sink>(&mut self, id: ProcId, sink: &mut S) {
        if self.seems_on(id).is_none() && self.was_woken(id) {
            self.woken(id, Waker::Unknown, sink);
        }
        let process = self.processes.get_mut(id);
        process.is_delivered |= process.woken_ns.is_some();
    }

    /// When a task was woken that left its CPU afterwards and was not seen since: it waits for one,
    /// or had gone on and sleeps now. Where second events of wake-ups are recorded, they tell.
    pub fn may_wait_since(&self, id: ProcId) -> Option<i64> {
        let pending = self.process(id).pending?;
        self.seems_on(id).is_none().then_some(pending.at_ns)
    }

    /// Whether a task that was woken may have had a CPU then: only first events of wake-ups are
    /// recorded, and nobody saw it sleep.
    pub(super) fn may_have_been_on(&self, id: ProcId) -> bool {
        let process = self.processes.get(id);
        let is_unsure = process.woken_ns.is_some() && !process.is_delivered;
        is_unsure && !self.families.wakeup && !process.slept
    }

    /// A task that seemed to sleep when it was woken leaves a CPU. It comes on none before the
    /// second event of its wake-up: where that was not seen yet, it had the CPU all the time.
    /// No more where another one had that CPU meanwhile, as it has since `other_ns`.
    pub(super) fn woken_on_cpu(&mut self, id: ProcId, other_ns: Option<i64>) -> Option<Pending> {
        let has_wakeup = self.families.wakeup;
        let process = self.processes.get(id);
        let at_ns = process
            .woken_ns
            .filter(|at_ns| self.is_known_since(*at_ns))?;
        let came_since = other_ns.is_some_and(|other_ns| other_ns > at_ns);
        if self.follows.stale_names || came_since || process.is_delivered {
            return None;
        }
        // Without second events it may have gone on, or wait from now on: that wake-up is not over
        // yet, and is none before. Who slept for sure was scheduled in unseen instead.
        if !has_wakeup && !self.may_have_been_on(id) {
            return None;
        }
        let process = self.processes.get_mut(id);
        process.woken_ns = None;
        process.doubtful |= !has_wakeup;
        Some(Pending::new(at_ns, Waker::Unknown, process.waker))
    }
}
