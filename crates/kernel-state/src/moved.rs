//! Waits of tasks that were moved while they waited. That a task has not run on the CPU that it was
//! moved away from is certain only once that one has told who had it meanwhile: until then such a
//! wait is open, also where it is over.

use super::process::ProcId;
use super::run::Belief;
use super::{Change, Kernel, Sink};

/// Of more of them at one time, nobody knows whether they ran.
const MOVED_MAX: usize = 256;

/// A task left the run queue of a CPU whose run is not over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    id: ProcId,
    cpu: u32,
    came_ns: i64,
    left_ns: i64,
    /// The wait in which it was moved, once that is over.
    over: Option<Over>,
}

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Over {
    /// When its task was scheduled in.
    at_ns: i64,
    /// Since when it waited for a CPU, if it was seen to.
    waited_since_ns: Option<i64>,
    /// Its place among those of which it is told who had the CPU.
    place: Option<usize>,
}

/// From when to when nobody knows who had a CPU.
pub(super) type Unknown = Option<(i64, i64)>;

impl Moved {
    /// Nothing begins and is over within one instant of a clock.
    fn may_have_run(&self, unknown: Unknown) -> bool {
        let (came_ns, left_ns) = (self.came_ns, self.left_ns);
        let was_there = came_ns < left_ns;
        was_there
            && unknown.is_some_and(|(from_ns, until_ns)| came_ns < until_ns && from_ns < left_ns)
    }
}

impl Kernel {
    /// A task that came at `came_ns` leaves the run queue of a CPU for another one.
    #[cold]
    pub(super) fn is_moved(&mut self, id: ProcId, cpu: u32, came_ns: i64) {
        // lttng-analyses reads switches alone.
        if self.follows.stale_names {
            return;
        }
        let Some(run) = self.cpus.get_mut(cpu as usize).map(|state| &mut state.run) else {
            return;
        };
        let is_full = self.moved.len() >= MOVED_MAX;
        let task = self.processes.get_mut(id);
        match run.belief {
            Belief::Switched(_) if !is_full => {
                (run.moved, task.moved) = (true, true);
                let (came_ns, left_ns) = (came_ns.max(run.begin_ns), self.now_ns);
                let moved = Moved {
                    id,
                    cpu,
                    came_ns,
                    left_ns,
                    over: None,
                };
                // It may have been there before, and have come back.
                let is_it =
                    |other: &&mut Moved| (other.id, other.cpu) == (id, cpu) && other.over.is_none();
                match self.moved.iter_mut().find(is_it) {
                    Some(before) => before.left_ns = left_ns,
                    None => self.moved.push(moved),
                }
            }
            Belief::Switched(_) => task.doubtful = true,
            Belief::Lost => task.doubtful |= run.is_doubted,
            Belief::Unseen | Belief::UntilFirstSwitch | Belief::Untracked => {}
        }
    }

    /// A task is moved away from a CPU where it did not seem to wait. It may have run there, unless
    /// that one's events had begun before.
    #[inline]
    pub(super) fn came_unseen(&mut self, id: ProcId, from: u32) {
        let Some(arrival) = self.process(id).arrived.filter(|last| last.cpu != from) else {
            return;
        };
        let begun_ns = self.begun_ns(from);
        let is_seen = begun_ns.is_some_and(|begun_ns| begun_ns <= arrival.at_ns);
        // lttng-analyses reads switches alone.
        self.processes.get_mut(id).doubtful |= !is_seen && !self.follows.stale_names;
    }

    /// The wait of a task is over that began at `since_ns`; none where nobody knows how long it
    /// was. Whether it is open all the same, as the task was moved.
    #[cold]
    pub(super) fn moved_wait_is_over(
        &mut self,
        id: ProcId,
        at_ns: i64,
        (since_ns, waited_since_ns): (Option<i64>, Option<i64>),
    ) -> bool {
        let place = self.processes.get(id).queued.map(|queued| queued.wait);
        let mut is_open = false;
        self.moved.retain_mut(|moved| {
            if moved.id != id || moved.over.is_some() {
                return true;
            }
            let is_of_it = since_ns.is_some_and(|since_ns| moved.left_ns >= since_ns);
            moved.over = Some(Over {
                at_ns,
                waited_since_ns,
                place,
            });
            is_open |= is_of_it;
            is_of_it
        });
        if let Some(place) = place.filter(|_| is_open) {
            self.waits.hold(place);
        }
        is_open
    }

    /// A CPU's run is over, from which tasks were moved away: those that may have run where nobody
    /// knows who had it are in doubt.
    #[cold]
    pub(super) fn settle_moved<S: Sink>(&mut self, cpu: u32, unknown: Unknown, sink: &mut S) {
        self.settle(cpu, |_, moved| moved.may_have_run(unknown), sink);
    }

    /// The same where it is known who had it, unless they go before that one, and were there still
    /// at `sure_ns`, up to which the CPU idled.
    #[cold]
    pub(super) fn settle_behind<S: Sink>(
        &mut self,
        cpu: u32,
        sure_ns: i64,
        goes_first: impl Fn(&Kernel, ProcId) -> bool,
        sink: &mut S,
    ) {
        let may_have_run = |kernel: &Kernel, moved: &Moved| {
            let was_there = moved.left_ns > sure_ns && moved.left_ns > moved.came_ns;
            was_there && goes_first(kernel, moved.id)
        };
        self.settle(cpu, may_have_run, sink);
    }

    fn settle<S: Sink>(
        &mut self,
        cpu: u32,
        is_doubtful: impl Fn(&Kernel, &Moved) -> bool,
        sink: &mut S,
    ) {
        if let Some(state) = self.cpus.get_mut(cpu as usize) {
            state.run.moved = false;
        }
        while let Some(place) = self.moved.iter().position(|moved| moved.cpu == cpu) {
            let moved = self.moved.remove(place);
            let doubtful = is_doubtful(self, &moved);
            let is_same = |other: &Moved| (other.id, other.over) == (moved.id, moved.over);
            if doubtful {
                // Where else it was moved from says no more of it.
                self.moved.retain(|other| !is_same(other));
            }
            match moved.over {
                None => self.processes.get_mut(moved.id).doubtful |= doubtful,
                Some(_) if !doubtful && self.moved.iter().any(is_same) => {}
                Some(over) => {
                    if let Some(place) = over.place {
                        if doubtful {
                            self.waits.revoke(place, moved.id, over.at_ns);
                        }
                        self.tell_held(place, sink);
                    }
                    let (process, at_ns) = (moved.id, over.at_ns);
                    if doubtful {
                        sink.change(self, &Change::DoubtedBefore { process, at_ns });
                    }
                    let change = Change::Settled {
                        process,
                        at_ns,
                        waited_since_ns: over.waited_since_ns,
                        lossy: doubtful,
                    };
                    sink.change(self, &change);
                }
            }
        }
    }
}
