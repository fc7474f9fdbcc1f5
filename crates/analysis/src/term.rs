//! The names that a nanosecond of a late activation can get. `docs/ledger.md` is the law.

use std::fmt;

use event::{Cpu, Duration, TimeRange};

use event::evidence::{PreemptionModel, TaskRef};

/// Why a span of time has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Events of that CPU were lost there.
    LostEvents,
    /// That CPU's events begin later or end earlier.
    WindowEdge,
    /// A timer was late, and no stack says which code kept interrupts off.
    LateTimerWithoutStack,
    /// A timer was late though user code ran: the hardware, the hypervisor or the firmware.
    LateTimerInUserMode,
    /// The CPU was idle for longer than an idle exit takes.
    LongIdle,
    /// A raised softirq did not run, and nothing says why.
    SoftirqPending,
    /// The trace does not say on which run queue the task waited.
    UnknownRunQueue,
    /// A task that seemed of a lower rank kept the CPU; the trace ends before it says its rank.
    RankUnknown,
    /// The scheduler's state and the trace contradict each other there.
    Contradiction,
    /// The chain's steps were cut here.
    MissingSteps,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::LostEvents => "events were lost there",
            Reason::WindowEdge => "outside the recorded window",
            Reason::LateTimerWithoutStack => "a late timer without a stack",
            Reason::LateTimerInUserMode => "a late timer while user code ran",
            Reason::LongIdle => "the CPU stayed idle",
            Reason::SoftirqPending => "a raised softirq did not run",
            Reason::UnknownRunQueue => "the trace does not say on which CPU it waited",
            Reason::RankUnknown => "the rank of the task that ran was not seen",
            Reason::Contradiction => "the trace contradicts itself",
            Reason::MissingSteps => "steps of the chain are missing",
        })
    }
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
    /// Another task of the same or a higher rank ran.
    RunQueueWait {
        /// That task.
        behind: TaskRef,
    },
    /// A stop-class thread ran (`migration/N`).
    StopClass {
        /// That thread.
        task: TaskRef,
    },
    /// A task of a lower rank kept the CPU.
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

/// How a task of a lower rank can keep the CPU under this preemption model.
pub(crate) fn off_or_not(model: PreemptionModel) -> &'static str {
    match model {
        PreemptionModel::Unknown => "preemption off or no preemption point",
        model if model.is_full() => "preemption off",
        _ => "no preemption point",
    }
}

/// Names of the softirq vectors (kernel: `include/linux/interrupt.h`).
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// The name of a softirq vector, if the kernel has one of this number.
pub fn softirq_name(vector: u32) -> Option<&'static str> {
    SOFTIRQS.get(vector as usize).copied()
}

/// The name of an interrupt vector that has a negative number in [`crate::Step::id`].
pub(crate) fn vector_name(irq: i32) -> Option<&'static str> {
    Some(match irq {
        -1 => "local timer",
        -2 => "reschedule",
        -3 => "function call",
        -4 => "irq work",
        _ => return None,
    })
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
            | TermKind::PreemptionOff { task, .. }
            | TermKind::Throttled { ran: Some(task) } => Some(task),
            _ => None,
        }
    }

    /// Whether no cause is proven.
    pub fn is_unexplained(&self) -> bool {
        matches!(self, TermKind::Unexplained(_))
    }
}

/// As the ledger's table prints it.
impl fmt::Display for TermKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TermKind::InterruptsOff { function, task } => {
                write!(f, "interrupts off in {function} by {task}")
            }
            TermKind::IdleExit => f.write_str("idle exit"),
            TermKind::Steal => f.write_str("stolen by the hypervisor"),
            TermKind::Nmi => f.write_str("NMI"),
            TermKind::Hardirq { irq, name } => match vector_name(*irq) {
                Some(vector) => write!(f, "interrupt: {vector}"),
                None if name.is_empty() => write!(f, "interrupt {irq}"),
                None => write!(f, "interrupt {irq} {name}"),
            },
            TermKind::Softirq { vector } => match softirq_name(*vector) {
                Some(name) => write!(f, "softirq {name}"),
                None => write!(f, "softirq {vector}"),
            },
            TermKind::Upstream { task } => write!(f, "upstream work of {task}"),
            TermKind::WakeupDelivery => f.write_str("wake-up delivery"),
            TermKind::RunQueueWait { behind } => write!(f, "run-queue wait behind {behind}"),
            TermKind::StopClass { task } => write!(f, "stop class: {task}"),
            TermKind::PreemptionOff {
                task,
                function,
                model,
            } => {
                let state = off_or_not(*model);
                match function {
                    Some(function) => write!(f, "{state} in {function} by {task}"),
                    None => write!(f, "{state} in {task}"),
                }
            }
            TermKind::Throttled { ran: Some(task) } => {
                write!(f, "throttled while {task} ran")
            }
            TermKind::Throttled { ran: None } => f.write_str("throttled while the CPU idled"),
            TermKind::Migration => f.write_str("migration"),
            TermKind::Switch => f.write_str("switch"),
            TermKind::OwnRun => f.write_str("own run"),
            TermKind::Unexplained(reason) => write!(f, "unexplained: {reason}"),
        }
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
}
