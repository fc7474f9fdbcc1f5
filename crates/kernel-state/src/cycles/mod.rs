//! Cycles of tasks that a timer of their own wakes, from one release to the end of the last work
//! before the next: a task may sleep in between for what others do (a lock, a semaphore, an
//! answer), and no event tells such a sleep from the end of its work. Nor of a sleep for a length
//! of time, where its releases are moments.
//!
//! A sleep with a time-out, whoever ends it, is no such sleep: it waits for the next thing to do,
//! unless its timer lies elsewhere than the one that releases the task. The timer of a sleep lies
//! on the task's own stack in the kernel, and at one place for one kind of call. Where the kernel
//! varies its stacks, how that place is aligned still tells some calls apart, and a recording of
//! `futex` tells those.

mod cycle;

use event::are_steady;
use trace::EventView;

use crate::bind::{Handler, Pause, WakeKind};
use crate::wakeup::Wakee;
pub use cycle::Inside;
use cycle::{By, Cycle, Expiring, Slept};

/// A task that has a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Its number.
    pub task: u32,
    /// It may wait in a call of `futex`.
    pub in_futex: bool,
}

/// Follows all tasks, by a number that the caller gives them.
#[derive(Debug)]
pub struct Cycles {
    limits_ns: Vec<i64>,
    /// Cycles that end outside do not count.
    range_ns: (i64, i64),
    tasks: Vec<Option<Box<Cycle>>>,
    /// On each CPU: the timer that expires.
    expiring: Vec<Option<Expiring>>,
}

impl Cycles {
    /// Counts cycles that are longer than each of the limits and end in a range of time.
    pub fn new(limits_ns: Vec<i64>, range_ns: (i64, i64)) -> Cycles {
        Cycles {
            limits_ns,
            range_ns,
            tasks: Vec::new(),
            expiring: Vec::new(),
        }
    }

    /// A timer is armed or cancelled by the task `current`, or expires, on a CPU.
    pub fn timer(
        &mut self,
        cpu: u32,
        handler: Handler,
        event: &EventView<'_>,
        current: Option<Caller>,
    ) {
        match handler {
            Handler::HrtimerStart {
                hrtimer,
                expires,
                function,
                mode,
                ..
            } => {
                let function = function.map(|function| event.u64(function));
                let is_nap = mode.is_some_and(|mode| mode.is_relative(event));
                // Of its first timer it matters already.
                let is_first = |caller: &Caller| is_nap && self.of(caller.task).is_none();
                if let Some(caller) = current.filter(is_first) {
                    self.add(caller.task);
                }
                let Some(caller) = current else { return };
                if let Some(cycle) = self.of(caller.task) {
                    let is_nap = cycle.arms(event.u64(hrtimer), function, is_nap, caller.in_futex);
                    if cycle.armed == Some(event.u64(hrtimer)) {
                        let due_ns = event.i64(expires);
                        (cycle.due_ns, cycle.armed_ns) = (Some(due_ns), event.time().as_ns());
                        cycle.is_due(due_ns, event.time().as_ns(), is_nap);
                    }
                }
            }
            Handler::HrtimerCancel { hrtimer } => {
                let address = event.u64(hrtimer);
                if let Some(caller) = current {
                    self.cancelled(caller.task, address);
                }
            }
            Handler::HrtimerExpireEntry {
                hrtimer, function, ..
            } => {
                let cpu = cpu as usize;
                if self.expiring.len() <= cpu {
                    self.expiring.resize(cpu + 1, None);
                }
                self.expiring[cpu] = Some(Expiring {
                    address: event.u64(hrtimer),
                    function: function.map(|function| event.u64(function)),
                });
            }
            Handler::HrtimerExpireExit => self.expired(cpu),
            _ => {}
        }
    }

    /// No timer expires on a CPU: it left the handler, or was seen elsewhere.
    fn expired(&mut self, cpu: u32) {
        if let Some(expiring) = self.expiring.get_mut(cpu as usize) {
            *expiring = None;
        }
    }

    /// A task is woken on a CPU, in which state `wakee` says; `has_waking`: the trace has the first
    /// of the two events of a wake-up.
    pub fn wake(
        &mut self,
        (kind, has_waking): (WakeKind, bool),
        wakee: Wakee,
        task: u32,
        (cpu, now_ns): (u32, i64),
    ) {
        if kind == WakeKind::Wakeup && has_waking {
            if wakee == Wakee::Ran {
                self.went_on(task, now_ns);
            }
            return;
        }
        let expiring = self.expiring.get(cpu as usize).copied().flatten();
        let by = expiring.map_or(By::Others, By::Timer);
        if by != By::Others && self.of(task).is_none() {
            self.add(task);
        }
        match wakee {
            Wakee::Slept => self.wakes(task, now_ns, by),
            Wakee::Ran => {
                if let Some(cycle) = self.of(task) {
                    cycle.pending = Some(by);
                }
            }
            Wakee::Preempted | Wakee::Waited => {}
        }
    }

    /// A task was woken that did not leave its CPU: of that nothing begins, but for what it is
    /// overdue for.
    fn went_on(&mut self, task: u32, now_ns: i64) {
        let Some(cycle) = self.of(task) else { return };
        let by = cycle.pending.take();
        if let Some(By::Timer(timer)) = by.filter(|_| cycle.overdue_ns.is_some()) {
            cycle.done_ns = now_ns;
            self.released(task, now_ns, timer, false);
        }
    }

    /// A timer ends a cycle of a task, and begins the next one.
    fn released(&mut self, task: u32, now_ns: i64, timer: Expiring, is_nap: bool) {
        self.close(task);
        let Some(Some(cycle)) = self.tasks.get_mut(task as usize) else {
            return;
        };
        let (first_ns, until_ns) = self.range_ns;
        let came_back = cycle.released(now_ns, timer, is_nap);
        if let Some(slept) = came_back
            && (first_ns..until_ns).contains(&slept.end_ns)
        {
            cycle.found.takes(slept, &self.limits_ns);
        }
    }

    fn add(&mut self, task: u32) {
        let place = task as usize;
        if self.tasks.len() <= place {
            self.tasks.resize_with(place + 1, || None);
        }
        self.tasks[place] = Some(Box::default());
    }

    fn wakes(&mut self, task: u32, now_ns: i64, by: By) {
        let Some(cycle) = self.of(task) else { return };
        cycle.woken_ns = now_ns;
        if std::mem::take(&mut cycle.inside) || std::mem::take(&mut cycle.halted) {
            return;
        }
        match by {
            By::Others => {
                cycle.tries_again = cycle.is_tried_again();
                cycle.slept_ns = now_ns;
                cycle.woken_by_others();
            }
            By::Timer(timer) => {
                let is_nap = cycle.nap.take() == Some(timer.address)
                    || cycle.is_elsewhere(timer.address, now_ns);
                if is_nap {
                    cycle.slept_ns = now_ns;
                }
                if is_nap && cycle.slept_inside(now_ns) || !is_nap && cycle.slept_beside(now_ns) {
                    return;
                }
                // The sleep that the timer ends began where the cycle's work was done.
                self.released(task, now_ns, timer, is_nap);
            }
        }
    }

    /// A task leaves a CPU.
    pub fn leaves(&mut self, task: u32, cpu: u32, now_ns: i64, pause: Pause) {
        self.expired(cpu);
        let Some(cycle) = self.of(task) else { return };
        let pending = cycle.pending.take();
        cycle.inside = pause.is_inside();
        if pause.is_stop() {
            return cycle.stops(now_ns);
        }
        let slept_on = matches!(pause, Pause::Done | Pause::Gone) && cycle.goes_on(pause, now_ns);
        if slept_on {
            if let Some(by) = pending {
                self.wakes(task, now_ns, by);
            }
            return;
        }
        if pause == Pause::Gone {
            cycle.ends(now_ns);
            self.close(task);
            return;
        }
        if pause != Pause::Done {
            return;
        }
        if let Some(timer) = cycle.in_time.take() {
            // It is still armed: it was no time-out of that sleep.
            cycle.others += 1;
            cycle.armed = Some(timer);
        }
        cycle.due_ns = cycle.due_ns.filter(|_| cycle.armed.is_some());
        (cycle.done_ns, cycle.sleeps) = (now_ns, true);
        if let Some(by) = pending {
            self.wakes(task, now_ns, by);
        }
    }

    /// When a task that slept is due by a timer of its own: such a timer released it before, and it
    /// has armed one since. A signal that stops it ends its sleep, but not that.
    pub fn due_ns(&self, task: u32, now_ns: i64) -> Option<i64> {
        let cycle = self.tasks.get(task as usize)?.as_deref()?;
        cycle.due_ns.filter(|due_ns| *due_ns > now_ns)
    }

    /// The sleep, begin and end, by whose end others began what a task does now, where it is one in
    /// the midst of a cycle, and a whole cycle of its timer passed meanwhile: it was late before.
    pub fn slept_through(&self, task: u32) -> Option<(i64, i64)> {
        let cycle = self.tasks.get(task as usize)?.as_deref()?;
        let slept_ns = cycle.caught_up.or_else(|| cycle.slept_through());
        slept_ns.filter(|_| are_steady(&cycle.gaps_ns))
    }

    /// Nobody knows what a task has done, nor in which cycle it is.
    pub fn forget(&mut self, task: u32) {
        if let Some(cycle) = self.of(task) {
            cycle.forget();
        }
    }

    /// The same for all tasks.
    pub fn forget_all(&mut self) {
        for cycle in self.tasks.iter_mut().flatten() {
            cycle.forget();
        }
        self.expiring.clear();
    }

    /// What was found of a task up to the end of what was looked at; none where no timer releases
    /// it steadily, or where nobody else woke it in between.
    pub fn found(&mut self, task: u32, end_ns: i64) -> Option<Inside> {
        let cycle = self.of(task)?;
        if cycle.begin_ns.is_some() {
            let still = !cycle.sleeps || cycle.armed.is_none() && cycle.always_arms;
            if still {
                cycle.others += u64::from(cycle.sleeps);
                cycle.done_ns = end_ns;
            }
        }
        self.close(task);
        let cycle = self.of(task)?;
        let is_found = cycle.found.sleeps > 0 && are_steady(&cycle.gaps_ns);
        is_found.then(|| cycle.found.clone())
    }

    fn of(&mut self, task: u32) -> Option<&mut Cycle> {
        self.tasks.get_mut(task as usize)?.as_deref_mut()
    }

    /// Others woke the task before a time-out of its own: its sleep was no part of a cycle, if it
    /// waits for its releases so.
    fn cancelled(&mut self, task: u32, address: u64) {
        let Some(cycle) = self.of(task) else { return };
        if cycle.in_time == Some(address) && cycle.slept_elsewhere(address) {
            cycle.in_time = None;
            cycle.others += 1;
        } else if cycle.in_time == Some(address) {
            self.close(task);
            if let Some(cycle) = self.of(task) {
                cycle.leave_out();
            }
        } else if cycle.armed == Some(address) {
            cycle.armed = None;
        }
    }

    /// The present cycle of a task ended with its last work.
    fn close(&mut self, task: u32) {
        let Some(cycle) = self.tasks.get_mut(task as usize) else {
            return;
        };
        let Some(cycle) = cycle.as_deref_mut() else {
            return;
        };
        cycle.caught_up = cycle.slept_through().or(cycle.caught_up);
        let begin_ns = cycle.begin_ns.take();
        let beside = std::mem::take(&mut cycle.beside);
        let sleeps = std::mem::take(&mut cycle.others) + beside;
        let end_ns = cycle.done_ns;
        let before = cycle.perhaps.take();
        let slept = begin_ns.filter(|begin_ns| sleeps > 0 && *begin_ns < end_ns);
        let slept = slept.map(|begin_ns| Slept {
            begin_ns,
            end_ns,
            sleeps,
        });
        // Two in a row may be another pace.
        let surely = match beside {
            0 => [before, slept],
            _ => {
                cycle.perhaps = slept;
                [None, None]
            }
        };
        let (first_ns, until_ns) = self.range_ns;
        for slept in surely.into_iter().flatten() {
            if (first_ns..until_ns).contains(&slept.end_ns) {
                cycle.found.takes(slept, &self.limits_ns);
            }
        }
    }
}
