//! Tasks that are known to have left a CPU, or a run queue, of which no switch tells: they were
//! seen elsewhere, moved, or woken while they seemed to wait.

use super::process::{Arrival, ProcId};
use super::run::{Belief, Gone, Holder, WokenThere};
use super::{Change, Kernel, Sink};

impl Kernel {
    /// Somebody else had a CPU who came there at `arrived_ns`, nobody knows for how long. Its
    /// handlers are certain. An idle CPU idled until then; since when a task did not have it any
    /// more nobody knows.
    pub(super) fn doubt_run<S: Sink>(&mut self, cpu: u32, arrived_ns: i64, sink: &mut S) {
        let Some(run) = self.cpus.get(cpu as usize).map(|state| &state.run) else {
            return;
        };
        let Belief::Switched(holder) = run.belief else {
            return;
        };
        if arrived_ns < run.begin_ns {
            return;
        }
        let sure_ns = run.sure_ns();
        let from_ns = match holder {
            Holder::Idle => {
                let all = (0..self.processes.len() as u32).map(ProcId);
                let came = all.filter_map(|id| self.arrived_ns(cpu, id));
                let came = came.chain(run.gone.map(|gone| gone.first_ns));
                let came = came.chain([arrived_ns]);
                came.min().unwrap_or(arrived_ns).max(sure_ns)
            }
            _ => sure_ns,
        };
        self.contradictions += 1;
        let (stretches, woken) = (run.stretches.clone(), run.woken);
        if run.moved {
            self.settle_moved(cpu, Some((from_ns, i64::MAX)), sink);
        }
        self.lose_run(cpu, from_ns);
        let state = &mut self.cpus[cpu as usize];
        state.doubted = true;
        (state.run.stretches, state.run.is_doubted) = (stretches, true);
        self.lose_sight(cpu, (holder, woken), from_ns, sink);
    }

    /// Nobody knows who has had a CPU until `holder` leaves it: whoever waits for it, also who is
    /// scheduled in now, may have run meanwhile.
    pub(super) fn doubt_waiting(&mut self, cpu: u32, holder: Holder) {
        let others = (0..self.processes.len() as u32).map(ProcId);
        for id in others.filter(|id| Some(*id) != holder.task()) {
            let came_ns = self.arrived_ns(cpu, id);
            let process = self.processes.get_mut(id);
            process.doubtful |= came_ns.is_some_and(|at_ns| at_ns < self.now_ns);
        }
    }

    /// A task is somewhere else than on the CPU that it seems to have, if it seems to have one but
    /// `cpu`: it left that one unseen.
    #[inline]
    pub(super) fn left_for<S: Sink>(&mut self, cpu: u32, id: ProcId, sink: &mut S) {
        if let Some(other) = self.seems_on(id).filter(|other| *other != cpu) {
            self.left_unseen(other, sink);
        }
    }

    /// The task that seems to have a CPU is known not to have it.
    #[cold]
    pub(super) fn left_unseen<S: Sink>(&mut self, cpu: u32, sink: &mut S) {
        // lttng-analyses reads switches alone.
        if self.follows.stale_names {
            return;
        }
        self.doubt_run(cpu, i64::MAX, sink);
    }

    /// The CPU that a task seems to have; the idle tasks share one number.
    #[inline]
    pub(super) fn seems_on(&self, id: ProcId) -> Option<u32> {
        let cpu = self.process(id).seen_on;
        (self.current(cpu) == Some(id)).then_some(cpu)
    }

    /// A task that was on a run queue goes on or waits on the CPU `to` now.
    #[inline(always)] // of a task that was nowhere, or is there still, this is known at once
    pub(super) fn leaves_queue(&mut self, id: ProcId, arrived: Option<Arrival>, to: u32) {
        let Some(arrival) = arrived.filter(|arrival| arrival.cpu != to) else {
            return;
        };
        // The first event of a wake-up tells where the task slept.
        let has_come = !arrival.under_way || !self.families.wakeup;
        if has_come {
            self.loses_waiting(id, arrival.cpu, arrival.at_ns);
            self.is_moved(id, arrival.cpu, arrival.at_ns);
        }
    }

    /// Nobody knows what became of a task that had a CPU. Where it was woken it may have slept, and
    /// waited for a CPU.
    pub(super) fn lose_sight<S: Sink>(
        &mut self,
        cpu: u32,
        (holder, woken): (Holder, Option<WokenThere>),
        from_ns: i64,
        sink: &mut S,
    ) {
        let Some(id) = holder.task() else { return };
        // It may be another one's that came there.
        self.doubt_call(id);
        let process = self.processes.get_mut(id);
        process.pending = None;
        (process.blocked_since_ns, process.runnable_since_ns) = (None, None);
        if let Some(woken) = woken {
            let change = Change::MayHaveWaited {
                process: id,
                since_ns: woken.since_ns,
                until_ns: None,
                count: woken.count.max(1),
            };
            sink.change(self, &change);
        }
        let change = Change::Unknown {
            cpu,
            process: id,
            from_ns,
        };
        sink.change(self, &change);
    }

    /// A task that came at `at_ns` is gone from the run queue of a CPU: it may have run unseen, if
    /// that one seemed to idle.
    pub(super) fn loses_waiting(&mut self, id: ProcId, cpu: u32, at_ns: i64) {
        let prio = self.prio_of(id);
        let Some(run) = self.cpus.get_mut(cpu as usize).map(|state| &mut state.run) else {
            return;
        };
        if run.idles() && at_ns >= run.begin_ns {
            let first_ns = at_ns;
            let gone = Gone { first_ns, prio };
            run.gone = Some(run.gone.map_or(gone, |others| others.with(gone)));
        }
    }
}
