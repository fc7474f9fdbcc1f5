//! A hit: a chain over the threshold, with its steps and stacks.

use event::{Cpu, Duration, Error, ErrorKind, Instant, Prio, Result, Tid};

use crate::{frames, raw, text};

/// Numbers of interrupts that are not device interrupts.
pub mod irq {
    /// The local timer.
    pub const LOCAL_TIMER: i32 = -1;
    /// The reschedule interrupt of another CPU.
    pub const RESCHEDULE: i32 = -2;
    /// A function call of another CPU.
    pub const FUNCTION_CALL: i32 = -3;
    /// Work that was deferred to an interrupt of its own.
    pub const IRQ_WORK: i32 = -4;
}

/// What a step is; the values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum StepKind {
    /// The hard expiry of a timer.
    TimerExpiry = 1,
    /// A non-maskable interrupt.
    Nmi = 2,
    /// Entry of a hard interrupt; `id` is its number, see [`irq`].
    Hardirq = 3,
    /// Entry of a high resolution timer's handler.
    Hrtimer = 4,
    /// A softirq was raised; `id` is its vector.
    SoftirqRaise = 5,
    /// Entry of a softirq; `id` is its vector.
    Softirq = 6,
    /// A task was woken; `id`, `prio` and `comm` are the wakee's.
    Waking = 7,
    /// A task came on a CPU.
    SwitchIn = 8,
    /// A task returned from a system call.
    UserReturn = 9,
    /// A task blocked.
    Blocked = 10,
}

impl StepKind {
    /// The kind with this value on the wire.
    pub fn from_value(value: u8) -> Option<Self> {
        use StepKind::*;
        const KINDS: [StepKind; 10] = [
            TimerExpiry,
            Nmi,
            Hardirq,
            Hrtimer,
            SoftirqRaise,
            Softirq,
            Waking,
            SwitchIn,
            UserReturn,
            Blocked,
        ];
        KINDS.into_iter().find(|kind| *kind as u8 == value)
    }

    /// The name, as `docs/format/evidence.md` has it.
    pub fn name(self) -> &'static str {
        match self {
            StepKind::TimerExpiry => "timer_expiry",
            StepKind::Nmi => "nmi",
            StepKind::Hardirq => "hardirq",
            StepKind::Hrtimer => "hrtimer",
            StepKind::SoftirqRaise => "softirq_raise",
            StepKind::Softirq => "softirq",
            StepKind::Waking => "waking",
            StepKind::SwitchIn => "switch_in",
            StepKind::UserReturn => "user_return",
            StepKind::Blocked => "blocked",
        }
    }
}

/// What ends a chain; the values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EndKind {
    /// The target came on a CPU.
    #[default]
    SwitchIn = 0,
    /// The target returned from its system call.
    UserReturn = 1,
    /// The target blocked again.
    Blocked = 2,
    /// The target still waits.
    Waiting = 3,
}

impl EndKind {
    /// The kind with this value on the wire.
    pub fn from_value(value: u32) -> Option<Self> {
        use EndKind::*;
        [SwitchIn, UserReturn, Blocked, Waiting]
            .into_iter()
            .find(|kind| *kind as u32 == value)
    }

    /// The name, as `docs/format/evidence.md` has it.
    pub fn name(self) -> &'static str {
        match self {
            EndKind::SwitchIn => "switch_in",
            EndKind::UserReturn => "user_return",
            EndKind::Blocked => "blocked",
            EndKind::Waiting => "waiting",
        }
    }
}

/// A task as it was at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its thread id; 0 is the idle task of the CPU.
    pub tid: Tid,
    /// Its priority at that moment, inherited ones included.
    pub prio: Prio,
    /// Its name.
    pub comm: String,
}

impl Task {
    /// The task of a record; none when the record names none.
    pub(crate) fn decode(task: &raw::Task) -> Option<Task> {
        let comm = text(&task.comm);
        let named = Task {
            tid: Tid(task.tid),
            prio: Prio::from_lttng(task.prio),
            comm,
        };
        (task.tid >= 0).then_some(named)
    }
}

/// One state change of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, on CLOCK_MONOTONIC.
    pub time: Instant,
    /// What.
    pub kind: StepKind,
    /// Where.
    pub cpu: Cpu,
    /// Interrupt, vector, timer or tid, by kind.
    pub id: i32,
    /// The task's priority, for the kinds that name a task; else zero on LTTng's scale.
    pub prio: Prio,
    /// The task's name, or the interrupt handler's.
    pub comm: String,
}

/// A chain over the threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its number in its watch, from 1.
    pub id: u64,
    /// What ended the chain.
    pub end_kind: EndKind,
    /// Where the chain began, on CLOCK_MONOTONIC.
    pub origin: Instant,
    /// Where it ended.
    pub end: Instant,
    /// The threshold in force.
    pub threshold: Duration,
    /// The task that was late.
    pub target: Task,
    /// Who left the CPU when the target came on it; idle tasks have tid 0.
    pub culprit: Option<Task>,
    /// How often a task of the chain was preempted in it.
    pub preemptions: u32,
    /// Steps that did not fit: the last 16 are kept.
    pub overflow: u32,
    /// Bit 0: cut by age; bit 1: a missed exit was repaired in it.
    pub flags: u32,
    /// The steps, oldest first.
    pub steps: Vec<Step>,
    /// Kernel addresses, innermost first: the waker at the last wake-up.
    pub waker_stack: Vec<u64>,
    /// The target where it blocked.
    pub wakee_stack: Vec<u64>,
    /// The culprit when it was switched out.
    pub culprit_stack: Vec<u64>,
}

impl Hit {
    /// The time from origin to end.
    pub fn latency(&self) -> Duration {
        self.end.since(self.origin)
    }

    /// Reads a hit that came through the ring.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when the bytes are too few or a kind is unknown.
    pub fn decode(bytes: &[u8], threshold: Duration) -> Result<Hit> {
        let hit: raw::Hit = raw::read(bytes).ok_or_else(|| {
            corrupt(format!(
                "{} bytes instead of {}",
                bytes.len(),
                size_of::<raw::Hit>()
            ))
        })?;
        let end_kind = EndKind::from_value(hit.end_kind)
            .ok_or_else(|| corrupt(format!("end kind {}", hit.end_kind)))?;
        let target = Task::decode(&hit.target).ok_or_else(|| corrupt("no target".into()))?;
        let length = (hit.steps_length as usize).min(raw::STEPS_MAX);
        Ok(Hit {
            id: hit.id,
            end_kind,
            origin: Instant::from_ns(hit.origin_ns as i64),
            end: Instant::from_ns(hit.end_ns as i64),
            threshold,
            target,
            culprit: Task::decode(&hit.culprit),
            preemptions: hit.preemptions,
            overflow: hit.overflow,
            flags: hit.flags,
            steps: hit.steps[..length]
                .iter()
                .map(decode_step)
                .collect::<Result<_>>()?,
            waker_stack: frames(&hit.waker_stack),
            wakee_stack: frames(&hit.wakee_stack),
            culprit_stack: frames(&hit.culprit_stack),
        })
    }
}

fn decode_step(step: &raw::Step) -> Result<Step> {
    Ok(Step {
        time: Instant::from_ns(step.time_ns as i64),
        kind: StepKind::from_value(step.kind)
            .ok_or_else(|| corrupt(format!("step kind {}", step.kind)))?,
        cpu: Cpu(step.cpu),
        id: step.id,
        prio: Prio::from_lttng(step.prio),
        comm: text(&step.comm),
    })
}

fn corrupt(found: String) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "a record of the kernel's watch makes no sense",
    )
    .found(found)
    .mend("report it: the program and its BPF part were not built together")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> raw::Hit {
        let mut hit: raw::Hit = raw::zeroed();
        hit.id = 1;
        hit.origin_ns = 1_000;
        hit.end_ns = 26_000;
        hit.target = raw::Task {
            tid: 7,
            prio: -61,
            comm: *b"victim\0\0\0\0\0\0\0\0\0\0",
        };
        hit.culprit.tid = -1;
        hit.steps_length = 1;
        hit.steps[0].kind = StepKind::Waking as u8;
        hit.steps[0].time_ns = 1_000;
        hit
    }

    #[test]
    fn a_hit_is_read_with_its_latency_and_names() {
        let hit = Hit::decode(raw::bytes(&sample()), Duration::from_us(20)).unwrap();
        assert_eq!(hit.latency(), Duration::from_us(25));
        assert_eq!(
            (hit.target.comm.as_str(), hit.target.prio),
            ("victim", Prio(39))
        );
        assert_eq!(hit.culprit, None);
        assert_eq!(hit.steps[0].kind, StepKind::Waking);
    }

    #[test]
    fn lengths_that_lie_are_cut_and_kinds_that_lie_are_refused() {
        let check = |change: fn(&mut raw::Hit), expect: bool| {
            let mut hit = sample();
            change(&mut hit);
            assert_eq!(
                Hit::decode(raw::bytes(&hit), Duration::ZERO).is_ok(),
                expect
            );
        };
        check(|hit| hit.waker_stack.length = u32::MAX, true);
        check(|hit| hit.end_kind = 9, false);
        check(|hit| hit.steps[0].kind = 99, false);
        check(|hit| hit.steps_length = u32::MAX, false);
        check(|hit| hit.target.tid = -1, false);
        assert!(Hit::decode(&raw::bytes(&sample())[1..], Duration::ZERO).is_err());
    }
}
