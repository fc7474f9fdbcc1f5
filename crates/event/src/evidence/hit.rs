//! A hit: a chain over the threshold, with its steps and stacks.

use super::stack::{Stack, symbolise};
use crate::{Cpu, Duration, Instant, Prio, Tid};

/// A task as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskRef {
    /// Its thread id.
    pub tid: Tid,
    /// Its name; bytes that are not UTF-8 were replaced.
    pub comm: String,
    /// Its priority.
    pub prio: Prio,
}

/// `hog (tid 4242, rt 60)`.
impl std::fmt::Display for TaskRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (tid {}, {})", self.comm, self.tid, self.prio)
    }
}

/// Numbers of interrupts that the programs of the watch know by themselves, in a step's `id`; all
/// of them are in [`crate::vectors::VECTORS`].
pub mod irq {
    /// The local timer.
    pub const LOCAL_TIMER: i32 = -1;
    /// Work that was deferred to an interrupt of its own.
    pub const IRQ_WORK: i32 = -4;
}

/// What one step of a chain is. The values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StepKind {
    /// A timer's hard expiry.
    TimerExpiry = 1,
    /// A non-maskable interrupt began.
    Nmi = 2,
    /// A hard interrupt's handler began.
    Hardirq = 3,
    /// A timer's callback began.
    Hrtimer = 4,
    /// A softirq was raised.
    SoftirqRaise = 5,
    /// A softirq's handler began.
    Softirq = 6,
    /// A task is being woken.
    Waking = 7,
    /// A task came on a CPU.
    SwitchIn = 8,
    /// A task went back to user mode.
    UserReturn = 9,
    /// A task blocked.
    Blocked = 10,
    /// A task that could run on had to leave its CPU. No watch sends it; analyses find it.
    Preempted = 11,
}

impl StepKind {
    /// All kinds, with the names that text and JSON use.
    pub const NAMES: [(StepKind, &'static str); 11] = [
        (StepKind::TimerExpiry, "timer_expiry"),
        (StepKind::Nmi, "nmi"),
        (StepKind::Hardirq, "hardirq"),
        (StepKind::Hrtimer, "hrtimer"),
        (StepKind::SoftirqRaise, "softirq_raise"),
        (StepKind::Softirq, "softirq"),
        (StepKind::Waking, "waking"),
        (StepKind::SwitchIn, "switch_in"),
        (StepKind::UserReturn, "user_return"),
        (StepKind::Blocked, "blocked"),
        (StepKind::Preempted, "preempted"),
    ];

    /// From its value in a record.
    pub fn from_value(value: u8) -> Option<StepKind> {
        Self::NAMES
            .iter()
            .map(|(kind, _)| *kind)
            .find(|kind| *kind as u8 == value)
    }

    /// Its name in text and JSON.
    pub fn name(self) -> &'static str {
        // The table holds every kind, in the order of the values from 1.
        Self::NAMES[self as usize - 1].1
    }
}

/// One step of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub time: Instant,
    /// What.
    pub kind: StepKind,
    /// Where.
    pub cpu: Cpu,
    /// Interrupt number (a negative one as in [`crate::vectors::VECTORS`]), softirq vector, tid or
    /// the low 31 bits of a timer's address, by kind.
    pub id: i32,
    /// The task's priority; of no meaning for steps without a task.
    pub prio: Prio,
    /// The task's name, or the handler's; empty when the step has none.
    pub comm: String,
}

/// What ended a chain. The values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EndKind {
    /// The target came on a CPU.
    #[default]
    SwitchIn = 0,
    /// The target went back to user mode.
    UserReturn = 1,
    /// The target blocked.
    Blocked = 2,
    /// The target still waits.
    Waiting = 3,
}

impl EndKind {
    /// All kinds, with the names that text and JSON use, in the order of the values.
    pub const NAMES: [(EndKind, &'static str); 4] = [
        (EndKind::SwitchIn, "switch_in"),
        (EndKind::UserReturn, "user_return"),
        (EndKind::Blocked, "blocked"),
        (EndKind::Waiting, "waiting"),
    ];

    /// From its value in a record.
    pub fn from_value(value: u8) -> Option<EndKind> {
        Self::NAMES.get(usize::from(value)).map(|(kind, _)| *kind)
    }

    /// Its name in text and JSON.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// A chain over the threshold, as the watch saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its number in its watch, from 1.
    pub id: u64,
    /// What ended it.
    pub end_kind: EndKind,
    /// Where its latency begins.
    pub origin: Instant,
    /// Where its latency ends.
    pub end: Instant,
    /// The threshold in force.
    pub threshold: Duration,
    /// The target.
    pub task: TaskRef,
    /// How often a task of the chain was preempted in it.
    pub preemptions: u32,
    /// Steps that did not fit; the last ones were kept.
    pub overflow: u32,
    /// Its age passed the cap: what it says about its origin is doubtful.
    pub stale: bool,
    /// A missed exit was repaired in it.
    pub repaired: bool,
    /// Who left the CPU when the target came on it; idle tasks have tid 0. None when the target
    /// still waits.
    pub culprit: Option<TaskRef>,
    /// The steps, in time order.
    pub steps: Vec<Step>,
    /// The waker's kernel stack at the last wake-up.
    pub waker_stack: Stack,
    /// The wakee's kernel stack, where it blocked.
    pub wakee_stack: Stack,
    /// The culprit's kernel stack when it was switched out.
    pub culprit_stack: Stack,
}

impl Hit {
    /// End minus origin.
    pub fn latency(&self) -> Duration {
        self.end - self.origin
    }

    /// Names the functions of all its stacks.
    pub fn symbolise(&mut self, name: impl Fn(u64) -> String) {
        for stack in [
            &mut self.waker_stack,
            &mut self.wakee_stack,
            &mut self.culprit_stack,
        ] {
            symbolise(stack, &name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back_from_its_value_with_its_own_name() {
        for (kind, name) in StepKind::NAMES {
            assert_eq!(StepKind::from_value(kind as u8), Some(kind));
            assert_eq!(kind.name(), name);
        }
        assert_eq!(StepKind::from_value(0), None);
        assert_eq!(StepKind::from_value(12), None);
        for (kind, name) in EndKind::NAMES {
            assert_eq!(EndKind::from_value(kind as u8), Some(kind));
            assert_eq!(kind.name(), name);
        }
        assert_eq!(EndKind::from_value(4), None);
    }
}
