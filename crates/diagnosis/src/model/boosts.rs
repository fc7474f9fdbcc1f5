//! Priorities that were lent: the kernel tells in `sched_pi_setprio`, on the CPU of the task that
//! begins to wait for a lock, that the lock's owner has that task's priority from now on
//! (`rt_mutex_adjust_prio`, `kernel/locking/rtmutex.c`). While the owner has a CPU the waiting task
//! keeps its own and spins (`rtmutex_spin_on_owner`): no switch tells of that wait.

use super::build::Builder;
use super::tasks::At;
use event::Prio;

/// A task waits for a lock since it lent its priority to the lock's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Boost {
    /// Who waits.
    pub waiter: i32,
    /// Who has the lock.
    pub owner: i32,
    pub begin_ns: i64,
    /// When the owner gave the priority back, with the lock; the greatest instant until then.
    pub end_ns: i64,
}

/// So many of the newest may still be open: more owners wait for each other nowhere.
const OPEN_MAX: usize = 64;

impl Builder {
    /// The task `tid` has the priority `new` from now on, `old` before.
    pub(super) fn lent(&mut self, at: At, tid: i32, old: Prio, new: Prio) {
        if !new.beats(old) {
            let newest = self.boosts.iter_mut().rev().take(OPEN_MAX);
            let open = newest.filter(|boost| boost.owner == tid && boost.end_ns == i64::MAX);
            open.for_each(|boost| boost.end_ns = at.now_ns);
            return;
        }
        let Some(waiter) = self.runs_itself(at.cpu, new) else {
            return;
        };
        // The owner of its lock waits for another one, which has the priority now too.
        let mut newest = self.boosts.iter().rev().take(OPEN_MAX);
        let waits = newest.any(|boost| boost.waiter == waiter && boost.end_ns == i64::MAX);
        if waiter != tid && !waits {
            self.boosts.push(Boost {
                waiter,
                owner: tid,
                begin_ns: at.now_ns,
                end_ns: i64::MAX,
            });
        }
    }

    /// The task that has this CPU, where no interrupt does and its priority is `prio`: somebody
    /// else only sets the priority of one that waits.
    fn runs_itself(&self, cpu: u32, prio: Prio) -> Option<i32> {
        let state = self.cpus.get(cpu as usize)?;
        let task = state.current.filter(|_| state.frames.is_empty())?;
        let version = self.tasks.states[task.0 as usize].version;
        let version = self.tasks.version(version)?;
        (version.prio == prio && !version.tid.is_idle()).then_some(version.tid.0)
    }
}
