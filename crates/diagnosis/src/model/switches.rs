//! The pass over the events: who leaves each CPU, who is scheduled in, and what that writes down.

use kernel_state::Pause;

use super::build::Builder;
use super::candidates::End;
use super::chain::{NewNode, NodeId};
use super::ends::halt;
use super::tasks::{MomentKind, Run, TaskIndex, Tasks, VersionId};
use super::timeline::{Occupant, Segment, What};
use crate::{StepKind, Until};

impl Builder {
    /// Writes down who has the CPU from now on.
    pub(super) fn mark(&mut self, cpu: u32, time_ns: i64, picked: bool) {
        let state = &mut self.cpus[cpu as usize];
        let current = state
            .current
            .map(|task| &self.tasks.states[task.0 as usize]);
        let soft = current.and_then(|task| task.softirqs.last());
        let occupant = match (state.frames.last(), soft, current) {
            // It may be over already.
            (Some(frame), ..) if frame.irq >= 0 && !self.families.irq_exit => {
                Occupant::new(What::Lost)
            }
            (None, Some(_), _) if !self.families.softirq_exit => Occupant::new(What::Lost),
            (Some(frame), ..) => Occupant::new(What::Hardirq(frame.irq)),
            (_, Some(frame), _) => Occupant::new(What::Softirq(frame.vector)),
            (_, _, Some(_)) if state.throttled => Occupant::new(What::Task).throttled(),
            (_, _, Some(_)) => Occupant::new(What::Task),
            _ if state.lost => Occupant::new(What::Lost),
            _ => Occupant::new(What::Edge),
        };
        let occupant = if picked { occupant.picked() } else { occupant };
        let task = current.map_or(VersionId::NONE, |task| task.version);
        self.logged += 1;
        state.timeline.push(Segment {
            begin_ns: time_ns,
            occupant,
            task,
        });
    }

    /// `prev` leaves the CPU, to come back by itself if it stays runnable; `next` has it.
    pub(super) fn switched(
        &mut self,
        cpu: u32,
        now_ns: i64,
        (prev, runnable, pause): (TaskIndex, bool, Pause),
        (next, end): (TaskIndex, End),
    ) {
        // No handler spans a switch: these exits were missed.
        self.miss_exits(cpu, 0);
        self.cpu(cpu).left_handler = None;
        // Nothing was inferred: somebody had the CPU of whom nothing is known.
        let left_unseen = std::mem::take(&mut self.cpu(cpu).left_unseen);
        // Where it was not seen to come, its activation is known to the end of its work alone.
        let is_unknown = self.until == Until::SwitchIn && self.cpu(cpu).current != Some(prev);
        if self.has_not(cpu, prev) || left_unseen || is_unknown {
            self.lose_activation(prev, now_ns);
        }
        self.cycles.leaves(prev.0, cpu, now_ns, pause);
        self.work_pauses(cpu, now_ns, prev, pause);
        self.leave(cpu, now_ns, prev, runnable);
        self.halts(prev, pause);
        // Who is preempted on its way out goes on with that.
        self.tasks.state(prev).ends &= pause != Pause::Gone;
        let priority = |tasks: &Tasks, task: TaskIndex| {
            let version = tasks.version(tasks.states[task.0 as usize].version);
            version.map_or((false, false), |v| (v.prio.is_real_time(), v.stop))
        };
        // One out of its own budget waits for that, not for a limit on others.
        let left = self
            .tasks
            .version(self.tasks.states[prev.0 as usize].version);
        let has_deadline = left.is_some_and(|left| left.prio.0 < 0);
        let (prev_real_time, prev_stop) = priority(&self.tasks, prev);
        let (next_real_time, _) = priority(&self.tasks, next);
        let preempted = prev_real_time && !prev_stop && !has_deadline && runnable;
        let state = self.cpu(cpu);
        state.throttled = !next_real_time && (state.throttled || preempted);
        state.current = Some(next);
        (state.lost, state.told) = (false, None);
        self.enter_at(cpu, now_ns, next, end);
        self.mark(cpu, now_ns, true);
    }

    /// A task has the name and the priority with which it leaves the CPU.
    pub(super) fn rename_run(&mut self, cpu: u32, task: TaskIndex, before: VersionId) {
        let after = self.tasks.state(task).version;
        if before != after && self.cpu(cpu).current == Some(task) {
            let tasks = &mut self.tasks;
            let timeline = &mut self.cpus[cpu as usize].timeline;
            timeline.rename_run(|version| tasks.run_of(version, before, after));
        }
    }

    /// The task left its CPU for that reason, as its log says last.
    fn halts(&mut self, task: TaskIndex, pause: Pause) {
        if let Some(left) = self.tasks.state(task).log.last_mut()
            && left.kind == MomentKind::OutBlocked
        {
            left.halted = halt(pause);
        }
        if let Some(left) = self.tasks.state(task).log.last_mut()
            && left.kind == MomentKind::OutRunnable
        {
            left.gave_way = pause == Pause::OutOfRuntime;
        }
    }

    /// `task` leaves the CPU.
    fn leave(&mut self, cpu: u32, now_ns: i64, task: TaskIndex, runnable: bool) {
        let idle = self.is_idle(task);
        let has_wakeup = self.families.wakeup;
        let state = self.tasks.state(task);
        if idle {
            state.run = Run::Unknown;
            return;
        }
        let kind = if runnable {
            MomentKind::OutRunnable
        } else {
            MomentKind::OutBlocked
        };
        let pending = std::mem::replace(&mut state.pending, NodeId::NONE);
        if runnable {
            state.run = Run::Preempted;
        } else if !pending.is_none() && has_wakeup {
            // Woken between its decision to block and this switch; its wake-up is on the way.
            state.run = Run::Woken;
            state.blocked_ns = now_ns;
            state.leave_chain(pending);
            state.work.woken_early |= !state.work.inside;
            self.wait_since_late_block(task, now_ns);
        } else {
            state.run = Run::Blocked;
            state.blocked_ns = now_ns;
            state.leave_chain(NodeId::NONE);
            // Where it comes back without another wake-up, that one led there.
            state.pending = pending;
        }
        self.log(task, now_ns, cpu, kind);
    }

    /// `task` is scheduled in; where the switch was not recorded, it came then at the earliest.
    pub(super) fn enter_at(&mut self, cpu: u32, now_ns: i64, task: TaskIndex, end: End) {
        let state = self.tasks.state(task);
        let mut was = std::mem::replace(&mut state.run, Run::On(cpu));
        let pending = std::mem::replace(&mut state.pending, NodeId::NONE);
        if was == Run::Blocked && !pending.is_none() {
            was = Run::Woken;
            state.leave_chain(pending);
            state.work.woken_early |= !state.work.inside;
        }
        let (chain, version) = (state.chain, state.version);
        let goes_on = self.work_resumes(cpu, now_ns, (task, end), was);
        match was {
            Run::Woken if goes_on => {}
            Run::Woken => {
                self.comes_on_cpu(cpu, now_ns, task, end);
                let id = self
                    .tasks
                    .version(version)
                    .map_or(0, |version| version.tid.0);
                let kind = StepKind::SwitchIn;
                let step = NewNode {
                    time_ns: now_ns,
                    kind,
                    cpu,
                    id,
                    version,
                };
                let chain = self.arena.add(chain, step);
                self.tasks.state(task).chain = chain;
            }
            Run::Preempted => {}
            Run::Unknown | Run::Blocked | Run::On(_) => {
                self.basis.unpaired += u64::from(was != Run::Unknown);
                self.tasks.state(task).chain = NodeId::NONE;
            }
        }
        self.log(task, now_ns, cpu, MomentKind::In);
    }
}
