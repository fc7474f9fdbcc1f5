//! Who had the CPU while a task waited for it, followed only when a question wants it.

use super::process::ProcId;
use super::run::Holder;
use super::{Change, Kernel, Sink};

/// Beyond so many, those that had the CPU during one wait are not told apart.
const HOLDERS_MAX: usize = 256;

/// A task on a run queue.
#[derive(Debug)]
struct Waiting {
    id: ProcId,
    /// Counted up to here.
    since_ns: i64,
    /// Who had the CPU, and for how long.
    behind: Vec<(Holder, i64)>,
}

impl Waiting {
    fn behind(&mut self, holder: Holder, from_ns: i64, until_ns: i64) {
        let ns = until_ns - from_ns.max(self.since_ns);
        if ns <= 0 {
            return;
        }
        self.since_ns = until_ns;
        if self.add(holder, ns) {
            return;
        }
        let holder = match self.behind.len() < HOLDERS_MAX {
            true => holder,
            false => Holder::SomeTask,
        };
        if !self.add(holder, ns) {
            self.behind.push((holder, ns));
        }
    }

    /// Counts it for one that had the CPU before; whether it had.
    fn add(&mut self, holder: Holder, ns: i64) -> bool {
        let known = self.behind.iter_mut().find(|(known, _)| *known == holder);
        let Some((_, sum_ns)) = known else {
            return false;
        };
        *sum_ns += ns;
        true
    }
}

/// The tasks that wait for one CPU.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Vec<Waiting>,
}

impl Queue {
    /// Somebody had the CPU.
    pub fn ran(&mut self, holder: Holder, from_ns: i64, until_ns: i64) {
        for waiting in &mut self.waiting {
            waiting.behind(holder, from_ns, until_ns);
        }
    }
}

impl Kernel {
    /// A task waits for a CPU from now on; it may have waited for another one.
    #[inline]
    pub(super) fn queue(&mut self, id: ProcId, cpu: u32) {
        if self.follows.queues {
            self.queue_on(id, cpu);
        }
    }

    fn queue_on(&mut self, id: ProcId, cpu: u32) {
        if self.cpu(cpu).is_none() {
            return;
        }
        let now_ns = self.now_ns;
        let task = self.processes.get_mut(id);
        let before = task.queued_on.replace(cpu);
        if before == Some(cpu) {
            return;
        }
        let mut waiting = Waiting {
            id,
            since_ns: now_ns,
            behind: Vec::new(),
        };
        if let Some(before) = before.and_then(|before| self.leave_queue(id, before)) {
            waiting.behind = before.behind;
        }
        self.cpus[cpu as usize].queue.waiting.push(waiting);
    }

    /// A task leaves a run queue: what its CPU does now is taken for what it seems to be, but that
    /// it idles. It would have taken the task.
    fn leave_queue(&mut self, id: ProcId, cpu: u32) -> Option<Waiting> {
        let now_ns = self.now_ns;
        let state = self.cpus.get_mut(cpu as usize)?;
        let place = state.queue.waiting.iter().position(|task| task.id == id)?;
        let mut waiting = state.queue.waiting.swap_remove(place);
        let (holder, begin_ns, sure_ns) = state.open_run();
        if holder == Holder::Idle {
            waiting.behind(holder, begin_ns, sure_ns.min(now_ns));
            waiting.behind(Holder::Unknown, sure_ns, now_ns);
        }
        waiting.behind(holder, begin_ns, now_ns);
        Some(waiting)
    }

    /// A task waits no more, since `at_ns`: who had its CPU meanwhile, to the nanosecond.
    pub(super) fn tell_behind<S: Sink>(
        &mut self,
        id: ProcId,
        waited: Option<(i64, i64)>,
        sink: &mut S,
    ) {
        let Some(cpu) = self.processes.get_mut(id).queued_on.take() else {
            return;
        };
        let Some(waiting) = self.leave_queue(id, cpu) else {
            return;
        };
        let Some((since_ns, at_ns)) = waited else {
            return;
        };
        // What ran before it was seen on a run queue, and what a switch to it was inferred from.
        let mut behind = waiting.behind;
        let counted_ns: i64 = behind.iter().map(|(_, ns)| ns).sum();
        let mut over_ns = counted_ns - (at_ns - since_ns);
        if over_ns < 0 {
            behind.push((Holder::Unknown, -over_ns));
        }
        while over_ns > 0 {
            let Some((_, ns)) = behind.last_mut() else {
                break;
            };
            let cut_ns = over_ns.min(*ns);
            *ns -= cut_ns;
            over_ns -= cut_ns;
            if *ns == 0 {
                behind.pop();
            }
        }
        let change = Change::Waited {
            process: id,
            since_ns,
            until_ns: at_ns,
            behind: &behind,
        };
        sink.change(self, &change);
    }
}
