//! Switches that the kernel did not record.
//!
//! Some kernels do not record what some tasks do themselves, their switch away from the CPU among
//! it: the idle task's on all CPUs but the first, and others'. Only switches away from such a task
//! can be missing, so that nothing else ran between it and the next task that the trace shows.

use event::Prio;
use kernel_state::preempts_at_once;

use super::build::Builder;
use super::tasks::{Moment, MomentKind, Run, TaskIndex};

impl Builder {
    /// `prev` leaves a CPU that, by the trace, `current` has. When it can be known, `prev` has run
    /// there since; else nobody knows who had it since `current` came.
    ///
    /// An idle CPU takes a runnable task at once, and a task of a higher rank puts one of a lower
    /// rank aside at once.
    pub(super) fn contradiction(
        &mut self,
        cpu: u32,
        current: TaskIndex,
        (prev, next): (TaskIndex, TaskIndex),
    ) {
        let preempts = preempts_at_once(self.prio(prev), self.prio(current));
        let at_once = self.is_idle(current) || preempts;
        match self.arrived_ns(cpu, prev) {
            Some(arrived_ns) if !self.forget_earlier(cpu, (prev, next), arrived_ns) && at_once => {
                self.infer(cpu, current, prev, arrived_ns);
            }
            _ => {
                self.cpu(cpu).timeline.doubt_run();
                self.cpu(cpu).doubted = true;
            }
        }
        self.forget(current);
    }

    fn prio(&self, task: TaskIndex) -> Option<Prio> {
        let version = self.tasks.states[task.0 as usize].version;
        self.tasks.version(version).map(|version| version.prio)
    }

    /// Forgets those that go before `task`, which leaves the CPU, as they wait for longer or have
    /// a higher priority: they may have run. Whether there are such.
    fn forget_earlier(
        &mut self,
        cpu: u32,
        (task, next): (TaskIndex, TaskIndex),
        arrived_ns: i64,
    ) -> bool {
        let all = (0..self.tasks.states.len() as u32).map(TaskIndex);
        let earlier: Vec<TaskIndex> = all
            .filter(|other| *other != task && *other != next)
            .filter(|other| {
                let goes_first = |at_ns| {
                    at_ns < arrived_ns || preempts_at_once(self.prio(*other), self.prio(task))
                };
                self.arrived_ns(cpu, *other).is_some_and(goes_first)
            })
            .collect();
        earlier.iter().for_each(|other| self.forget(*other));
        !earlier.is_empty()
    }

    /// The same for who still runs when the trace ends, on CPUs of which nothing else is known: the
    /// first that came there. One of a higher rank would have put it aside, which is recorded.
    pub(super) fn infer_last_runs(&mut self) {
        for cpu in 0..self.cpus.len() as u32 {
            let state = self.cpu(cpu);
            let hides_idle = state.inferred > 0 && !state.left_idle;
            let Some(idle) = state.current.filter(|_| hides_idle) else {
                continue;
            };
            if !self.is_idle(idle) {
                continue;
            }
            let all = (0..self.tasks.states.len() as u32).map(TaskIndex);
            let came = all.filter_map(|task| Some((self.arrived_ns(cpu, task)?, task)));
            if let Some((arrived_ns, task)) = came.min_by_key(|(arrived_ns, _)| *arrived_ns) {
                self.infer(cpu, idle, task, arrived_ns);
            }
        }
    }

    /// When a runnable `task` came on the run queue of `cpu`, if it was not seen to run since.
    fn arrived_ns(&self, cpu: u32, task: TaskIndex) -> Option<i64> {
        let state = &self.tasks.states[task.0 as usize];
        let is_arrival = |moment: &&Moment| {
            let kind = moment.kind;
            let arrives = matches!(
                kind,
                MomentKind::Waking | MomentKind::Wakeup | MomentKind::Migrate
            );
            arrives && moment.cpu == cpu
        };
        if !matches!(state.run, Run::Woken | Run::Preempted) {
            return None;
        }
        // Woken again while it waits, it stays where it is; its own event of the arrival counts
        // before that of the waker.
        let mut arrived: Option<&Moment> = None;
        // A wake-up from before the one that counts led nowhere.
        let since_ns = match state.run {
            Run::Woken => state.woken_ns,
            _ => i64::MIN,
        };
        let counts = |moment: &&Moment| is_arrival(moment) && moment.time_ns >= since_ns;
        for moment in state.log.iter().rev().take_while(counts) {
            let is_waker_s = moment.kind == MomentKind::Waking;
            if is_waker_s && arrived.is_some_and(|later| later.kind != MomentKind::Waking) {
                continue;
            }
            arrived = Some(moment);
        }
        arrived.map(|moment| moment.time_ns)
    }

    fn infer(&mut self, cpu: u32, current: TaskIndex, task: TaskIndex, arrived_ns: i64) {
        let current = self.tasks.state(current).version;
        let since_ns = self.cpu(cpu).timeline.run_begin_ns(current);
        let begin_ns = arrived_ns.max(since_ns);
        let version = self.tasks.state(task).version;
        self.enter_at(cpu, begin_ns, task, true);
        let state = self.cpu(cpu);
        state.timeline.split_run(current, begin_ns, version);
        state.inferred += 1;
        state.current = Some(task);
        self.basis.inferred += 1;
    }
}
