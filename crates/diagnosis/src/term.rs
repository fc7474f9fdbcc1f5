//! The names that a nanosecond of a late activation can get. `docs/ledger.md` is the law.

use kernel_state::{softirq_name, vector_name};
use std::fmt;

use event::{Cpu, Duration, Prio, Tid, TimeRange};

use event::evidence::{PreemptionModel, StopKind, TaskRef};

/// Why a span of time has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Events of that CPU were lost there.
    LostEvents,
    /// A switch on that CPU was not recorded, and nobody knows who had it.
    SwitchNotRecorded,
    /// That CPU's events begin later or end earlier.
    WindowEdge,
    /// A timer was late, and no stack says which code kept interrupts off.
    LateTimerWithoutStack,
    /// A timer was late by less than what makes the watch take a stack: this much.
    LateTimerBelowFloor(Duration),
    /// A timer was late though user code ran: the hardware, the hypervisor or the firmware.
    LateTimerInUserMode,
    /// A timer was late though the kernel code that ran had interrupts on: the same.
    LateTimerWhileEnabled,
    /// A timer was late and came behind another interrupt, whose own place is not known.
    LateTimerBehindInterrupt,
    /// The hypervisor took as much time from the CPU, perhaps then and perhaps before.
    MaybeStolen,
    /// No CPU did anything, not even what a timer was to do: the host's doing.
    MachineStoodStill,
    /// The same on those CPUs of which events are known; of others, they were lost.
    PerhapsStoodStill,
    /// The CPU was idle for longer than an idle exit takes.
    LongIdle,
    /// A raised softirq did not run, and nothing says why.
    SoftirqPending,
    /// The trace does not say on which run queue the task waited.
    UnknownRunQueue,
    /// A task that seemed of a lower priority kept the CPU; the trace ends before it says its
    /// priority.
    PriorityUnknown,
    /// The waiting task had another priority in the end, and nothing says since when.
    PriorityChanged,
    /// A task of a lower priority ran code of its own, where it can be preempted at every
    /// interrupt: the scheduler left it the CPU, or the interrupt came late.
    LeftInUserCode,
    /// A task of a lower priority had the CPU, and shortly before the scheduler had preferred such.
    PerhapsLimited,
    /// A task of a lower priority had the CPU while one of SCHED_DEADLINE waited, which may have
    /// used up its runtime before it slept.
    PerhapsOwnRuntime,
    /// A task of SCHED_DEADLINE had used up its runtime, or had given up the rest, as its work was
    /// done: a switch does not tell which.
    PerhapsYielded,
    /// The quota of the waiting task's group had been used up, and nothing says when it was back.
    QuotaEndUnknown,
    /// The scheduler's state and the trace contradict each other there.
    Contradiction,
    /// The chain's steps were cut here.
    MissingSteps,
    /// A task of the chain slept in the kernel, and nothing says for what.
    BlockedInKernel,
    /// A task of the chain waited for a lock, and nothing proves who had it.
    LockOwnerUnknown,
    /// A task of the chain waited for the readers of a lock, and nothing says who of them was the
    /// last to have it, and since when.
    LockOfReaders,
    /// A task of the chain spun for a lock of another one, and nothing says since when.
    SpunForLock,
    /// The owner of a lock slept until another task woke it: it may have waited for a lock itself.
    LockOwnerWaits,
    /// What a task of the chain wrote into was full, and nothing says why nobody read it.
    NoRoomToWrite,
    /// A task of the chain waited for a device, and none had a request.
    DevicesIdle,
    /// The target was stopped while it slept for an event, of which nobody knows whether it came.
    StoppedAsleep,
    /// The group of the waiting task had no quota left in the end, and nothing says since when.
    QuotaBeginUnknown,
    /// The group of the waiting task ran out of quota around that time, and nothing says when.
    PerhapsQuota,
    /// Other fair tasks ran for longer than all of their turns: the quota or the weight of a group.
    TurnsTooLong,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Reason::LateTimerBelowFloor(floor) => {
                return write!(
                    f,
                    "a timer late by less than the watch's floor of {floor:#}"
                );
            }
            Reason::LostEvents => "events were lost there",
            Reason::SwitchNotRecorded => "a switch was not recorded, so nobody knows who ran",
            Reason::WindowEdge => "outside the recorded window",
            Reason::LateTimerWithoutStack => "a late timer without a stack",
            Reason::LateTimerInUserMode => "a late timer while user code ran",
            Reason::LateTimerWhileEnabled => "a late timer while interrupts were on",
            Reason::LateTimerBehindInterrupt => "a late timer behind another interrupt",
            Reason::MaybeStolen => "a late timer, perhaps the hypervisor's doing",
            Reason::PerhapsStoodStill => {
                "no CPU whose events are known shows that the machine did not stand still"
            }
            Reason::MachineStoodStill => "every CPU stood still at once, as if the host had",
            Reason::LongIdle => "the CPU stayed idle",
            Reason::SoftirqPending => "a raised softirq did not run",
            Reason::UnknownRunQueue => "the trace does not say on which CPU it waited",
            Reason::PriorityUnknown => "the priority of the task that ran was not seen",
            Reason::PriorityChanged => "the priority of the task that waited changed meanwhile",
            Reason::LeftInUserCode => "user code of a lower priority ran on, nothing says why",
            Reason::PerhapsLimited => "perhaps a limit on real-time tasks was at work",
            Reason::PerhapsOwnRuntime => {
                "perhaps it had used up the runtime of its own SCHED_DEADLINE before it slept"
            }
            Reason::PerhapsYielded => {
                "it had used up the runtime of its own SCHED_DEADLINE, or had given up the rest \
                 (sched_yield)"
            }
            Reason::QuotaEndUnknown => "nothing says when the quota of its group was back",
            Reason::Contradiction => "the trace contradicts itself",
            Reason::MissingSteps => "steps of the chain are missing",
            Reason::BlockedInKernel => "it slept in the kernel, no event says for what",
            Reason::LockOwnerUnknown => "it waited for a lock, nothing proves whose",
            Reason::LockOfReaders => {
                "it waited for the readers of a lock, nothing says since when the last of them had \
                 it"
            }
            Reason::SpunForLock => "it spun for another task's lock, nothing says since when",
            Reason::LockOwnerWaits => "the owner of its lock waited for another task itself",
            Reason::NoRoomToWrite => "what it wrote into was full, nothing says why nobody read",
            Reason::DevicesIdle => {
                "it waited for a device, and none had a request: who is to ask it waited, or a \
                 limit held it back"
            }
            Reason::StoppedAsleep => "it was stopped as it slept, nothing says when it was to wake",
            Reason::QuotaBeginUnknown => "nothing says since when its group had no quota left",
            Reason::PerhapsQuota => {
                "its control group ran out of its CPU quota around then, nothing says when exactly"
            }
            Reason::TurnsTooLong => {
                "others ran for longer than their turns: the quota or the weight of its control \
                 group"
            }
        };
        f.write_str(text)
    }
}

/// Where memory was short that a task waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Short {
    /// In its control group.
    Group,
    /// In the machine.
    Machine,
}

/// The name of a span of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TermKind {
    /// A timer was late because this function kept interrupts off.
    InterruptsOff {
        /// The function that ended the section.
        function: String,
        /// The task that ran it.
        task: TaskRef,
    },
    /// The CPU left an idle state.
    IdleExit,
    /// The hypervisor ran somebody else.
    Steal,
    /// A non-maskable interrupt.
    Nmi,
    /// A hard interrupt's handler.
    Hardirq {
        /// Its number, or a negative one as in [`crate::Step::id`].
        irq: i32,
        /// Its name, or empty.
        name: String,
    },
    /// A softirq's handler.
    Softirq {
        /// Its vector.
        vector: u32,
    },
    /// A task of the chain did its part of the work.
    Upstream {
        /// The task.
        task: TaskRef,
    },
    /// From the decision to wake to the run queue.
    WakeupDelivery,
    /// Another task of the same or a higher priority ran.
    RunQueueWait {
        /// That task.
        behind: TaskRef,
    },
    /// A stop-class thread ran (`migration/N`).
    StopClass {
        /// That thread.
        task: TaskRef,
    },
    /// A task of a lower priority kept the CPU.
    PreemptionOff {
        /// That task.
        task: TaskRef,
        /// The function that kept it, when a stack says so.
        function: Option<String>,
        /// The preemption model in force.
        model: PreemptionModel,
    },
    /// The scheduler passed over a real-time task on purpose: bandwidth limit or fair server.
    Throttled {
        /// Who ran instead; none when the CPU idled.
        ran: Option<TaskRef>,
        /// Whether the deadline server of fair tasks was seen to do so.
        served: bool,
    },
    /// A task of SCHED_DEADLINE had used up its own runtime, and waited for its next period.
    RuntimeUsedUp {
        /// That task.
        task: TaskRef,
    },
    /// A task of the chain was stopped, traced or frozen.
    Stopped {
        /// What stopped it.
        how: StopKind,
        /// The signal's number; 0 without one.
        signal: u32,
        /// Who did it, as far as that is known.
        by: Option<TaskRef>,
    },
    /// The slack that a task allows its timer.
    TimerSlack,
    /// The clock of its timer was set forward: the timer expired by that.
    ClockSet {
        /// By how much.
        by: Duration,
    },
    /// The watch's own work, as it wrote down a hit.
    OwnCost,
    /// A control group had used up its CPU quota.
    Quota {
        /// The task in it that was waited for; none where the late task itself is in it.
        of: Option<TaskRef>,
    },
    /// A control group had so small a weight that other fair tasks went first.
    GroupWeight {
        /// The task in it that was waited for; none where the late task itself is in it.
        of: Option<TaskRef>,
    },
    /// A task waited for a lock, and its owner ran, slept, or was stopped with it.
    LockWait {
        /// The owner.
        owner: TaskRef,
        /// What stopped the owner.
        halted: Option<StopKind>,
    },
    /// A task waited for a lock, and another one ran ahead of the lock's owner.
    PriorityInversion {
        /// The owner.
        owner: TaskRef,
        /// Who ran ahead of it.
        behind: TaskRef,
    },
    /// A task waited for a device in the middle of its work.
    BlockIo,
    /// A page that was not there.
    PageFault,
    /// It waited for memory that was freed for it.
    Reclaim {
        /// Where memory was short.
        short: Short,
    },
    /// From the move to another CPU to running there.
    Migration,
    /// From the decision to switch to the switch.
    Switch,
    /// The target itself ran.
    OwnRun,
    /// Nothing in the trace proves a cause.
    Unexplained(Reason),
}

/// How a task of a lower priority can keep the CPU under this preemption model.
pub(crate) fn off_or_not(model: PreemptionModel) -> &'static str {
    match model {
        PreemptionModel::Unknown => "preemption off or no preemption point",
        model if model.is_full() => "preemption off",
        _ => "no preemption point",
    }
}

/// What a stop is called; the signals that stop have the same numbers everywhere but on MIPS.
pub(crate) fn stopped(how: StopKind, signal: u32) -> String {
    let name = match signal {
        19 => "SIGSTOP".to_owned(),
        20 => "SIGTSTP".to_owned(),
        21 => "SIGTTIN".to_owned(),
        22 => "SIGTTOU".to_owned(),
        other => format!("signal {other}"),
    };
    match how {
        StopKind::Signal if signal == 0 => "stopped by a signal".to_owned(),
        StopKind::Signal => format!("stopped ({name})"),
        StopKind::Traced => "stopped for its tracer".to_owned(),
        StopKind::Frozen => "frozen with its control group".to_owned(),
    }
}

impl TermKind {
    /// The kind in JSON and in signatures; stable.
    pub fn tag(&self) -> &'static str {
        match self {
            TermKind::InterruptsOff { .. } => "interrupts_off",
            TermKind::IdleExit => "idle_exit",
            TermKind::Steal => "steal",
            TermKind::Nmi => "nmi",
            TermKind::Hardirq { .. } => "hardirq",
            TermKind::Softirq { .. } => "softirq",
            TermKind::Upstream { .. } => "upstream",
            TermKind::WakeupDelivery => "wakeup_delivery",
            TermKind::RunQueueWait { .. } => "run_queue_wait",
            TermKind::StopClass { .. } => "stop_class",
            TermKind::PreemptionOff { .. } => "preemption_off",
            TermKind::Throttled { .. } => "throttled",
            TermKind::RuntimeUsedUp { .. } => "runtime_used_up",
            TermKind::Stopped { .. } => "stopped",
            TermKind::TimerSlack => "timer_slack",
            TermKind::ClockSet { .. } => "clock_set",
            TermKind::OwnCost => "own_cost",
            TermKind::Quota { .. } => "quota",
            TermKind::GroupWeight { .. } => "group_weight",
            TermKind::LockWait { .. } => "lock_wait",
            TermKind::PriorityInversion { .. } => "priority_inversion",
            TermKind::BlockIo => "block_io",
            TermKind::PageFault => "page_fault",
            TermKind::Reclaim { .. } => "memory_reclaim",
            TermKind::Migration => "migration",
            TermKind::Switch => "switch",
            TermKind::OwnRun => "own_run",
            TermKind::Unexplained(_) => "unexplained",
        }
    }

    /// The task that the term names.
    pub fn task(&self) -> Option<&TaskRef> {
        match self {
            TermKind::InterruptsOff { task, .. }
            | TermKind::Upstream { task }
            | TermKind::RunQueueWait { behind: task }
            | TermKind::StopClass { task }
            | TermKind::RuntimeUsedUp { task }
            | TermKind::PreemptionOff { task, .. }
            | TermKind::LockWait { owner: task, .. }
            | TermKind::PriorityInversion { behind: task, .. }
            | TermKind::Stopped { by: Some(task), .. }
            | TermKind::Quota { of: Some(task) }
            | TermKind::GroupWeight { of: Some(task) }
            | TermKind::Throttled {
                ran: Some(task), ..
            } => Some(task),
            _ => None,
        }
    }

    /// Whether no cause is proven.
    pub fn is_unexplained(&self) -> bool {
        matches!(self, TermKind::Unexplained(_))
    }
}

impl TermKind {
    /// The same without the number of its task: what the tasks of one name and priority share.
    pub(crate) fn without_tid(&self) -> TermKind {
        let mut kind = self.clone();
        match &mut kind {
            TermKind::InterruptsOff { task, .. }
            | TermKind::Upstream { task }
            | TermKind::RunQueueWait { behind: task }
            | TermKind::StopClass { task }
            | TermKind::RuntimeUsedUp { task }
            | TermKind::PreemptionOff { task, .. }
            | TermKind::LockWait { owner: task, .. }
            | TermKind::PriorityInversion { behind: task, .. }
            | TermKind::Stopped { by: Some(task), .. }
            | TermKind::Quota { of: Some(task) }
            | TermKind::GroupWeight { of: Some(task) }
            | TermKind::Throttled {
                ran: Some(task), ..
            } => task.tid = Tid(0),
            _ => {}
        }
        kind
    }

    /// The task, or so many tasks of its name and priority; empty where no task is named.
    pub(crate) fn who(&self, tasks: usize) -> String {
        match self.task() {
            Some(task) if tasks > 1 => {
                format!("{tasks} tasks called {} ({})", task.comm, task.prio)
            }
            Some(task) => task.to_string(),
            None => String::new(),
        }
    }

    /// As the ledger's table prints it, for so many tasks of one name and priority.
    pub(crate) fn text(&self, tasks: usize) -> String {
        let who = self.who(tasks);
        match self {
            TermKind::InterruptsOff { function, .. } => {
                format!("interrupts off in {function} by {who}")
            }
            TermKind::IdleExit => "idle exit".to_owned(),
            TermKind::Steal => "stolen by the hypervisor".to_owned(),
            TermKind::Nmi => "NMI".to_owned(),
            TermKind::Hardirq { irq, name } => interrupt(*irq, name),
            TermKind::Softirq { vector } => match softirq_name(*vector) {
                Some(name) => format!("softirq {name}"),
                None => format!("softirq {vector}"),
            },
            TermKind::Upstream { .. } => format!("upstream work of {who}"),
            TermKind::WakeupDelivery => "wake-up delivery".to_owned(),
            TermKind::RunQueueWait { .. } => format!("run-queue wait behind {who}"),
            TermKind::StopClass { .. } => format!("stop class: {who}"),
            TermKind::PreemptionOff {
                function, model, ..
            } => {
                let state = off_or_not(*model);
                match function {
                    Some(function) => format!("{state} in {function} by {who}"),
                    None => format!("{state} in {who}"),
                }
            }
            TermKind::Throttled { served: true, .. } => {
                format!("the deadline server of fair tasks ran {who}")
            }
            TermKind::Throttled { ran: Some(_), .. } => format!("throttled while {who} ran"),
            TermKind::RuntimeUsedUp { .. } => format!("deadline runtime of {who} used up"),
            TermKind::Stopped { how, signal, by } => {
                let by = by.as_ref().map_or(String::new(), |_| format!(" by {who}"));
                format!("{}{by}", stopped(*how, *signal))
            }
            TermKind::TimerSlack => "slack of its own timer".to_owned(),
            TermKind::ClockSet { by } => format!("its timer's clock was set by {by:#}"),
            TermKind::OwnCost => "rtscope's own work at a hit".to_owned(),
            TermKind::Throttled { ran: None, .. } => "throttled while the CPU idled".to_owned(),
            TermKind::Quota { of: None } => "CPU quota of its control group used up".to_owned(),
            TermKind::Quota { of: Some(_) } => {
                format!("CPU quota of the control group of {who} used up")
            }
            TermKind::GroupWeight { of: None } => {
                "others first by the weight of its control group".to_owned()
            }
            TermKind::GroupWeight { of: Some(_) } => {
                format!("others first by the weight of the control group of {who}")
            }
            TermKind::LockWait { halted: None, .. } => format!("lock held by {who}"),
            TermKind::LockWait {
                halted: Some(how), ..
            } => format!("lock held by {who}, which was {}", stopped(*how, 0)),
            TermKind::PriorityInversion { owner, .. } => {
                format!("lock held by {owner}, preempted for {who}")
            }
            TermKind::BlockIo => "waiting for a device".to_owned(),
            TermKind::PageFault => "page fault".to_owned(),
            TermKind::Reclaim { short } => match short {
                Short::Group => "waiting for memory of its control group".to_owned(),
                Short::Machine => "waiting for memory".to_owned(),
            },
            TermKind::Migration => "migration".to_owned(),
            TermKind::Switch => "switch".to_owned(),
            TermKind::OwnRun => "own run".to_owned(),
            TermKind::Unexplained(reason) => format!("unexplained: {reason}"),
        }
    }
}

/// An interrupt by its number and its name, if it has one.
fn interrupt(irq: i32, name: &str) -> String {
    match vector_name(irq) {
        Some(vector) => format!("interrupt: {vector}"),
        None if name.is_empty() => format!("interrupt {irq}"),
        None if irq < 0 => format!("interrupt: {name}"),
        None => format!("interrupt {irq} {name}"),
    }
}

/// As the ledger's table prints it.
impl fmt::Display for TermKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(1))
    }
}

/// All the time of one name in a ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The name.
    pub kind: TermKind,
    /// The sum of its pieces.
    pub duration: Duration,
    /// Number of pieces.
    pub pieces: u32,
    /// From the first piece's begin to the last piece's end.
    pub range: TimeRange,
    /// The CPU of its longest piece.
    pub cpu: Cpu,
    /// Who was on a run queue in its longest piece, where that is a task that the late one waits
    /// for.
    pub waiter: Option<TaskRef>,
    /// The priority with which it, or the late task itself, was there.
    pub waited_as: Option<Prio>,
}

/// The terms that differ in nothing but their task's number, as one: a storm of short-lived tasks
/// of one name is one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Sum {
    /// The kind of the largest of them.
    pub kind: TermKind,
    /// How many tasks; 1 where the kind names none.
    pub tasks: usize,
    /// All their time.
    pub duration: Duration,
    /// From the first begin to the last end.
    pub range: TimeRange,
    /// The CPU of the largest.
    pub cpu: Cpu,
    /// [`Term::waiter`] of the largest.
    pub waiter: Option<TaskRef>,
    /// [`Term::waited_as`] of the largest.
    pub waited_as: Option<Prio>,
}

/// As the ledger's table prints it: `run-queue wait behind 21 tasks called bash (rt 70)`.
impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.text(self.tasks))
    }
}

/// Adds up `terms`, which are sorted by their length; the longest sum first.
pub(crate) fn sums(terms: &[Term]) -> Vec<Sum> {
    let mut names: Vec<TermKind> = Vec::new();
    let mut sums: Vec<Sum> = Vec::new();
    for term in terms {
        let name = term.kind.without_tid();
        if let Some(place) = names.iter().position(|known| *known == name) {
            let sum = &mut sums[place];
            sum.tasks += 1;
            sum.duration += term.duration;
            sum.range.begin = sum.range.begin.min(term.range.begin);
            sum.range.end = sum.range.end.max(term.range.end);
            continue;
        }
        names.push(name);
        sums.push(Sum {
            kind: term.kind.clone(),
            tasks: 1,
            duration: term.duration,
            range: term.range,
            cpu: term.cpu,
            waiter: term.waiter.clone(),
            waited_as: term.waited_as,
        });
    }
    sums.sort_by_key(|sum| -sum.duration.as_ns());
    sums
}
