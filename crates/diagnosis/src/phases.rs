//! From the steps of a chain to phases: who owes the next step, on which CPU, doing what.

use event::{Cpu, Instant, Prio};

use crate::due;
use crate::inside;
use crate::model::{Model, MomentKind, VersionId, What};
use crate::term::{Reason, Short};
use event::evidence::{Step, StepKind, StopKind};

/// What the chain does in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Doing {
    /// A timer has expired and its interrupt has not begun.
    TimerPending,
    /// A handler of the chain runs.
    Handler(What),
    /// A softirq is raised and does not run yet.
    SoftirqPending,
    /// A task is being woken and is on no run queue yet.
    Delivery {
        /// What woke it, when it runs on the same CPU.
        waker: What,
    },
    /// A task is on a run queue.
    Waiting {
        /// The task.
        tid: i32,
        /// Its priority.
        prio: Prio,
        /// What the wait began with.
        since: Since,
    },
    /// A task of the chain runs.
    Running {
        /// The task.
        tid: i32,
    },
    /// A task of the chain waits for a device.
    Io,
    /// A task of the chain waits for what a page fault asked for.
    PageFault,
    /// A task of the chain waits for memory that is freed for it.
    Reclaim(Short),
    /// The owner of a lock that a task of the chain waits for runs.
    OwnerRuns {
        /// The owner.
        tid: i32,
    },
    /// The owner of such a lock is on a run queue.
    OwnerWaits {
        /// The owner, as it was there.
        owner: VersionId,
        /// What its wait began with.
        since: Since,
    },
    /// The owner of such a lock sleeps.
    OwnerSleeps {
        /// The owner, as it was there.
        owner: VersionId,
        /// What stopped it, where it does not sleep by itself.
        halted: Option<StopKind>,
    },
    /// A task of the chain is stopped: the index of the record.
    Stopped(usize),
    /// A timer waits within the slack that its owner allows it.
    Slack,
    /// The trace does not say.
    Missing(Reason),
}

/// What a wait on a run queue began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    Wakeup,
    Migration,
    Preemption,
}

/// A stretch of a chain on one CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Phase {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub cpu: Option<Cpu>,
    pub doing: Doing,
}

/// The steps of an activation on the kernel trace's own instants.
pub(crate) struct Chain<'a> {
    pub steps: &'a [Step],
    /// The instant of each step in the kernel trace's events.
    pub times_ns: &'a [i64],
    /// The end, likewise.
    pub end_ns: i64,
    /// Where it ended.
    pub cpu: Cpu,
    /// The target still waits.
    pub waiting: bool,
}

impl Chain<'_> {
    /// The end of the interval that step `place` begins.
    fn until_ns(&self, place: usize) -> i64 {
        self.times_ns.get(place + 1).copied().unwrap_or(self.end_ns)
    }

    /// The handler in which step `place` happened; a task when there is none.
    fn handler(&self, place: usize) -> What {
        for step in self.steps[..=place].iter().rev() {
            match step.kind {
                StepKind::Nmi => return What::Nmi,
                StepKind::Hardirq => return What::Hardirq(step.id),
                StepKind::Softirq => return What::Softirq(step.id as u32),
                StepKind::Hrtimer | StepKind::Waking if step.cpu == self.steps[place].cpu => {}
                _ => break,
            }
        }
        What::Task
    }

    /// The phases of the interval that step `place` begins, in order and without a gap.
    pub fn phases(&self, model: &Model, place: usize) -> Vec<Phase> {
        let step = &self.steps[place];
        let next = self.steps.get(place + 1);
        let (begin_ns, end_ns) = (self.times_ns[place], self.until_ns(place));
        let whole = |cpu: Cpu, doing| {
            vec![Phase {
                begin_ns,
                end_ns,
                cpu: Some(cpu),
                doing,
            }]
        };
        match step.kind {
            StepKind::TimerExpiry => {
                let cpu = next.map_or(step.cpu, |next| next.cpu);
                let mut phases =
                    due::before_timer(model, &self.steps[place..], cpu, (begin_ns, end_ns));
                // No interrupt raised the softirq for this timer: it was pending already.
                let is_soft = next.is_some_and(|next| next.kind == StepKind::Softirq);
                let last = phases.pop_if(|last| is_soft && last.doing == Doing::TimerPending);
                if let Some(last) = last {
                    let span = (last.begin_ns, last.end_ns);
                    phases.extend(until_softirq(model, cpu, span, last.doing));
                }
                phases
            }
            StepKind::Nmi | StepKind::Hardirq | StepKind::Hrtimer | StepKind::Softirq => {
                whole(step.cpu, Doing::Handler(self.handler(place)))
            }
            StepKind::SoftirqRaise => {
                until_softirq(model, step.cpu, (begin_ns, end_ns), Doing::SoftirqPending)
            }
            StepKind::Waking => match next {
                Some(next) if next.kind != StepKind::SwitchIn || next.id != step.id => {
                    whole(step.cpu, Doing::Missing(Reason::MissingSteps))
                }
                _ => {
                    let end_cpu = match next {
                        Some(next) => Some(next.cpu),
                        None => (!self.waiting).then_some(self.cpu),
                    };
                    let waker = (step.cpu, self.handler(place));
                    let wait = Wait {
                        tid: step.id,
                        prio: step.prio,
                        begin_ns,
                        end_ns,
                    };
                    wait.after_wakeup(model, waker, end_cpu)
                }
            },
            // What it did before somebody waited for it is left out: it may be put off by then.
            StepKind::SwitchIn if place == 0 && inside::is_put_off(model, step, begin_ns) => {
                inside::while_busy(model, (step.id, step.cpu), (begin_ns, end_ns))
            }
            StepKind::SwitchIn | StepKind::UserReturn | StepKind::Preempted => {
                inside::since(model, step, begin_ns, end_ns)
            }
            StepKind::Blocked => whole(step.cpu, due::stopped(model, step)),
        }
    }
}

/// A pending softirq that a thread will run waits for that thread: it may wait or run already, for
/// another one.
fn until_softirq(
    model: &Model,
    cpu: Cpu,
    (begin_ns, end_ns): (i64, i64),
    before: Doing,
) -> Vec<Phase> {
    let phase = |begin_ns, end_ns, doing| Phase {
        begin_ns,
        end_ns,
        cpu: Some(cpu),
        doing,
    };
    let pending = phase(begin_ns, end_ns, before);
    let host = model.timeline(cpu).map(|timeline| timeline.at(end_ns).task);
    let host = host.and_then(|host| model.tasks.version(host));
    let Some(host) = host.filter(|host| host.passes) else {
        return vec![pending];
    };
    let tid = host.tid.0;
    let log = model.tasks.log(tid, cpu.0);
    let (earlier, later) = log.split_at(log.partition_point(|moment| moment.time_ns < begin_ns));
    let later = &later[..later.partition_point(|moment| moment.time_ns <= end_ns)];
    let (woken_ns, since) = match earlier.last().map(|moment| moment.kind) {
        Some(MomentKind::In) => return inside::while_busy(model, (tid, cpu), (begin_ns, end_ns)),
        Some(MomentKind::OutRunnable) => (begin_ns, Since::Preemption),
        Some(MomentKind::Wakeup) => (begin_ns, Since::Wakeup),
        _ => match later
            .iter()
            .find(|moment| moment.kind == MomentKind::Wakeup)
        {
            Some(woken) => (woken.time_ns, Since::Wakeup),
            None => return vec![pending],
        },
    };
    let came = later.iter().find(|moment| moment.kind == MomentKind::In);
    let came_ns = came.map_or(end_ns, |came| came.time_ns.max(woken_ns));
    let prio = host.prio;
    let mut phases = vec![
        phase(begin_ns, woken_ns, before),
        phase(woken_ns, came_ns, Doing::Waiting { tid, prio, since }),
    ];
    phases.extend(inside::while_busy(model, (tid, cpu), (came_ns, end_ns)));
    phases
}

/// A task that waits from a wake-up or a preemption on.
struct Wait {
    tid: i32,
    prio: Prio,
    begin_ns: i64,
    end_ns: i64,
}

impl Wait {
    /// The CPU on whose run queue the task was already as the activation began.
    fn queued_before(&self, model: &Model, waker: Cpu) -> Option<Cpu> {
        let log = model.tasks.log(self.tid, waker.0);
        let begun = log.partition_point(|moment| moment.time_ns < self.begin_ns);
        let last = log[..begun].last()?;
        let arrives = matches!(
            last.kind,
            MomentKind::Waking | MomentKind::Wakeup | MomentKind::Migrate
        );
        arrives.then_some(Cpu(last.cpu))
    }

    fn after_wakeup(&self, model: &Model, waker: (Cpu, What), end_cpu: Option<Cpu>) -> Vec<Phase> {
        let Wait {
            tid,
            prio,
            begin_ns,
            end_ns,
        } = *self;
        let (begin, end) = (Instant::from_ns(begin_ns), Instant::from_ns(end_ns));
        let log = model.moments(tid, waker.0, begin, end);
        let kind_is = |kind: MomentKind| move |moment: &&crate::model::Moment| moment.kind == kind;
        let mut cpu = log
            .iter()
            .find(kind_is(MomentKind::Waking))
            .map(|moment| Cpu(moment.cpu));
        let mut now_ns = begin_ns;
        let mut phases = Vec::new();
        let mut since = Since::Wakeup;
        if let Some(woken) = log.iter().find(kind_is(MomentKind::Wakeup)) {
            cpu = Some(Cpu(woken.cpu));
            let waker = if cpu == Some(waker.0) {
                waker.1
            } else {
                What::Edge
            };
            let doing = Doing::Delivery { waker };
            phases.push(Phase {
                begin_ns,
                end_ns: woken.time_ns,
                cpu,
                doing,
            });
            now_ns = woken.time_ns;
        } else if cpu.is_none() {
            cpu = self.queued_before(model, waker.0).or(end_cpu);
        }
        for moment in log.iter().filter(kind_is(MomentKind::Migrate)) {
            if moment.time_ns >= now_ns {
                let doing = Doing::Waiting { tid, prio, since };
                phases.push(Phase {
                    begin_ns: now_ns,
                    end_ns: moment.time_ns,
                    cpu,
                    doing,
                });
                now_ns = moment.time_ns;
                since = Since::Migration;
            }
            if moment.time_ns >= now_ns || !model.families.wakeup {
                cpu = Some(Cpu(moment.cpu));
            }
        }
        let doing = Doing::Waiting { tid, prio, since };
        phases.push(Phase {
            begin_ns: now_ns,
            end_ns,
            cpu,
            doing,
        });
        if end_cpu.is_some_and(|end_cpu| Some(end_cpu) != cpu) {
            // It came on another CPU than the trace led to: where it waited is not known.
            for phase in phases
                .iter_mut()
                .filter(|p| matches!(p.doing, Doing::Waiting { .. }))
            {
                phase.cpu = None;
            }
        }
        phases
    }
}
