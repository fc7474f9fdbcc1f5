//! Switches that the kernel did not record: what other events show of them.

use event::Prio;

use super::process::ProcId;
use super::run::{Gone, Holder, Part, Run};
use super::{Change, Kernel, Sink};

/// Whether a task that comes on the run queue of a CPU takes it at once from the task that has it:
/// a real-time task of a higher priority does. An idle CPU takes any task at once.
pub fn preempts_at_once(task: Option<Prio>, running: Option<Prio>) -> bool {
    match (task, running) {
        (Some(task), Some(running)) => task.is_real_time() && task.beats(running),
        _ => false,
    }
}

impl Kernel {
    /// A switch was not recorded: by the last one `believed` has the CPU, and `holder` leaves it or
    /// has it at the end. Only switches away from such a task can be missing, so that nobody else
    /// had the CPU in between.
    pub(super) fn contradicted<S: Sink>(
        &mut self,
        cpu: u32,
        run: &Run,
        (believed, holder, next): (Holder, Holder, Option<ProcId>),
        end_ns: i64,
        sink: &mut S,
    ) {
        let part = |holder, begin_ns, end_ns, inferred| Part {
            holder,
            begin_ns,
            end_ns,
            inferred,
        };
        self.contradictions += 1;
        let sure_ns = run.sure_ns();
        let idled = believed == Holder::Idle;
        let first_ns = self.doubt_earlier(cpu, (holder, next), idled, sink);
        let prio = holder.task().and_then(|task| self.prio_of(task));
        let ran_before = |gone: &Gone, arrived_ns: &i64| {
            gone.first_ns < *arrived_ns || !preempts_at_once(prio, gone.prio)
        };
        let arrived_ns = holder
            .task()
            .filter(|task| !self.may_have_been_on(*task))
            .filter(|_| first_ns.is_none() && idled)
            .and_then(|task| self.arrived_ns(cpu, task))
            // One that is gone may have run before it.
            .filter(|at_ns| !run.gone.is_some_and(|gone| ran_before(&gone, at_ns)));
        self.tell(cpu, run, part(believed, run.begin_ns, sure_ns, false), sink);
        if let (Some(arrived_ns), Some(task)) = (arrived_ns, holder.task()) {
            self.settle_behind(cpu, sure_ns, |kernel, id| !kernel.preempts(task, id), sink);
            let from_ns = arrived_ns.max(sure_ns);
            self.tell(cpu, run, part(believed, sure_ns, from_ns, false), sink);
            self.lose_sight(cpu, (believed, None), from_ns, sink);
            self.cpus[cpu as usize].inferred += 1;
            let change = Change::Inferred {
                cpu,
                process: task,
                from_ns,
            };
            sink.change(self, &change);
            self.scheduled_in(cpu, task, (from_ns, end_ns), sink);
            self.tell(cpu, run, part(holder, from_ns, end_ns, true), sink);
            return;
        }
        self.cpus[cpu as usize].doubted = true;
        self.lose_sight(cpu, (believed, run.woken), sure_ns, sink);
        self.doubt_waiting(cpu, holder);
        // An idle CPU takes the first that comes: up to then it was what it seemed.
        let itself_ns = holder.task().map(|task| match self.may_have_been_on(task) {
            true => sure_ns,
            // One that was not seen to come may have come at any time.
            false => self.arrived_ns(cpu, task).unwrap_or(sure_ns),
        });
        let gone_ns = run.gone.map(|gone| gone.first_ns);
        let first_ns = first_ns.into_iter().chain(itself_ns).chain(gone_ns).min();
        let first_ns = first_ns.filter(|_| idled);
        let unknown_ns = first_ns.map_or(sure_ns, |first_ns| first_ns.max(sure_ns));
        self.settle_moved(cpu, Some((unknown_ns, end_ns)), sink);
        self.tell(cpu, run, part(believed, sure_ns, unknown_ns, false), sink);
        let unknown = part(Holder::Unknown, unknown_ns, end_ns, false);
        self.tell(cpu, run, unknown, sink);
    }

    /// When the first of those came on the run queue of a CPU that go before who has it, as they
    /// wait there for longer or have a higher priority: they may have run. Where the CPU `idled` by
    /// what was seen, and was in a handler as they came, any may have been the first whom `holder`
    /// does not take the CPU from at once. That `next` waited is seen, as it is scheduled in now.
    pub(super) fn doubt_earlier<S: Sink>(
        &mut self,
        cpu: u32,
        (holder, next): (Holder, Option<ProcId>),
        idled: bool,
        sink: &mut S,
    ) -> Option<i64> {
        let task = holder.task()?;
        let arrived_ns = self.arrived_ns(cpu, task)?;
        let mut first_ns = None;
        for id in (0..self.processes.len() as u32).map(ProcId) {
            let goes_first = |at_ns: &i64| {
                let is_before = *at_ns < arrived_ns || self.preempts(id, task);
                is_before || idled && !self.preempts(task, id)
            };
            let other_ns = self.arrived_ns(cpu, id).filter(goes_first);
            let Some(at_ns) = other_ns.filter(|_| id != task && Some(id) != next) else {
                continue;
            };
            self.processes.get_mut(id).doubtful = true;
            sink.change(self, &Change::Doubted { process: id });
            first_ns = Some(first_ns.map_or(at_ns, |first: i64| first.min(at_ns)));
        }
        first_ns
    }

    /// Whether a task takes a CPU at once from another one.
    fn preempts(&self, id: ProcId, task: ProcId) -> bool {
        preempts_at_once(self.prio_of(id), self.prio_of(task))
    }

    pub(super) fn prio_of(&self, id: ProcId) -> Option<Prio> {
        self.process(id).prio.map(Prio::from_lttng)
    }

    /// Whether a task was seen to wait for a CPU.
    pub(super) fn waits(&self, id: ProcId) -> bool {
        let process = self.process(id);
        process.woken_ns.is_some() || process.runnable_since_ns.is_some()
    }

    /// When a runnable task came on the run queue of `cpu`, if it was not seen to run since.
    pub(super) fn arrived_ns(&self, cpu: u32, id: ProcId) -> Option<i64> {
        let process = self.process(id);
        let arrival = process.arrived?;
        (arrival.cpu == cpu && process.runnable_since_ns.is_some()).then_some(arrival.at_ns)
    }
}
