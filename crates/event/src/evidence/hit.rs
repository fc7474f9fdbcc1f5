//! A hit: a chain over the threshold, with its steps and stacks.

use super::record::{self, Part, Place, Record, Source, label_part};
use super::stack::{Stack, symbolise};
use super::task::TaskRef;
use crate::{Cpu, Duration, Field, Instant, Prio, Value};

/// Bits of a hit's `flags` in a trace.
const FLAG_STALE: u32 = 1 << 0;
const FLAG_REPAIRED: u32 = 1 << 1;
const FLAG_UNSEEN: u32 = 1 << 2;
const FLAG_NEAR: u32 = 1 << 3;
const FLAG_STRANGER: u32 = 1 << 4;
const FLAG_ORDINARY: u32 = 1 << 5;

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
    /// A task was scheduled in.
    SwitchIn = 8,
    /// A task went back to user mode.
    UserReturn = 9,
    /// A task blocked.
    Blocked = 10,
    /// A task that could run on had to leave its CPU.
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
    /// The target was scheduled in.
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

/// How the task of a hit is meant by what was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kin {
    /// It is one that was asked for.
    #[default]
    Asked,
    /// It works with those: they wake it, it wakes them, or it is of the same command.
    Near,
    /// It is another real-time task.
    Stranger,
}

impl Kin {
    fn flag(self) -> u32 {
        match self {
            Kin::Asked => 0,
            Kin::Near => FLAG_NEAR,
            Kin::Stranger => FLAG_STRANGER,
        }
    }

    fn of_flags(flags: u32) -> Kin {
        let kinds = [Kin::Near, Kin::Stranger].into_iter();
        let mut kinds = kinds.filter(|kin| flags & kin.flag() != 0);
        kinds.next().unwrap_or_default()
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kin::Asked => "asked",
            Kin::Near => "near",
            Kin::Stranger => "stranger",
        }
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
    /// Its wake-up was not seen: it begins with the expiry of its task's own timer or, `stale`, as
    /// that was first seen to run.
    pub unseen: bool,
    /// Whether it was asked for.
    pub kin: Kin,
    /// Its task is not real-time, and other threads of its process are.
    pub ordinary: bool,
    /// Who left the CPU when the target came on it; idle tasks have tid 0. None when the target
    /// still waits.
    pub culprit: Option<TaskRef>,
    /// The steps, in time order.
    pub steps: Vec<Step>,
    /// What the hit itself took of its CPU, right after its end: the watch's own cost.
    pub cost: Duration,
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

    /// The CPU of its last step.
    pub fn cpu(&self) -> Cpu {
        self.steps.last().map_or(Cpu(0), |step| step.cpu)
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

label_part!(EndKind);

impl Part for StepKind {
    fn declare(name: &str, fields: &mut Vec<Field>) {
        let labels = StepKind::NAMES.map(|(kind, label)| (kind as u8, label));
        fields.push(record::labelled(name, labels));
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn decode(name: &str, source: &dyn Source) -> Option<Self> {
        u8::try_from(record::number(name, source))
            .ok()
            .and_then(StepKind::from_value)
    }
}

fn step_fields() -> Vec<Field> {
    let mut fields = Vec::new();
    Instant::declare("time_ns", &mut fields);
    StepKind::declare("kind", &mut fields);
    u32::declare("cpu", &mut fields);
    i32::declare("id", &mut fields);
    i32::declare("prio", &mut fields);
    fields.push(record::declare_comm("comm"));
    fields
}

fn encode_step(step: &Step, out: &mut Vec<u8>) {
    step.time.encode(out);
    step.kind.encode(out);
    step.cpu.0.encode(out);
    step.id.encode(out);
    step.prio.lttng().encode(out);
    record::put_comm(&step.comm, out);
}

fn decode_step(step: &Value<'_>) -> Option<Step> {
    Some(Step {
        time: Instant::decode("time_ns", step)?,
        kind: StepKind::decode("kind", step)?,
        cpu: Cpu(u32::decode("cpu", step)?),
        id: i32::decode("id", step)?,
        prio: Prio::from_lttng(i32::decode("prio", step)?),
        comm: record::text("comm", step),
    })
}

impl Record for Hit {
    const NAME: &'static str = "rtscope_hit";

    fn fields() -> Vec<Field> {
        let mut fields = vec![record::integer("id", 64, false)];
        EndKind::declare("end_kind", &mut fields);
        Instant::declare("origin_ns", &mut fields);
        Instant::declare("end_ns", &mut fields);
        Duration::declare("threshold_ns", &mut fields);
        TaskRef::declare("", &mut fields);
        for name in ["preemptions", "overflow", "flags"] {
            u32::declare(name, &mut fields);
        }
        TaskRef::declare("culprit_", &mut fields);
        record::declare_sequence("steps", step_fields(), &mut fields);
        Duration::declare("cost_ns", &mut fields);
        for name in ["waker_stack", "wakee_stack", "culprit_stack"] {
            Stack::declare(name, &mut fields);
        }
        fields
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let stale = if self.stale { FLAG_STALE } else { 0 };
        let repaired = if self.repaired { FLAG_REPAIRED } else { 0 };
        let unseen = if self.unseen { FLAG_UNSEEN } else { 0 };
        let ordinary = if self.ordinary { FLAG_ORDINARY } else { 0 };
        Part::encode(&self.id, out);
        self.end_kind.encode(out);
        self.origin.encode(out);
        self.end.encode(out);
        self.threshold.encode(out);
        self.task.encode(out);
        self.preemptions.encode(out);
        self.overflow.encode(out);
        (stale | repaired | unseen | self.kin.flag() | ordinary).encode(out);
        self.culprit.encode(out);
        record::encode_sequence(&self.steps, out, encode_step);
        self.cost.encode(out);
        self.waker_stack.encode(out);
        self.wakee_stack.encode(out);
        self.culprit_stack.encode(out);
    }

    fn decode(_: Place, source: &dyn Source) -> Option<Self> {
        let flags = u32::decode("flags", source)?;
        Some(Hit {
            id: u64::decode("id", source)?,
            end_kind: EndKind::decode("end_kind", source)?,
            origin: Instant::decode("origin_ns", source)?,
            end: Instant::decode("end_ns", source)?,
            threshold: Duration::decode("threshold_ns", source)?,
            task: TaskRef::decode("", source)?,
            preemptions: u32::decode("preemptions", source)?,
            overflow: u32::decode("overflow", source)?,
            stale: flags & FLAG_STALE != 0,
            repaired: flags & FLAG_REPAIRED != 0,
            unseen: flags & FLAG_UNSEEN != 0,
            kin: Kin::of_flags(flags),
            ordinary: flags & FLAG_ORDINARY != 0,
            culprit: Part::decode("culprit_", source)?,
            steps: record::decode_sequence("steps", source, decode_step),
            cost: Duration::decode("cost_ns", source)?,
            waker_stack: Stack::decode("waker_stack", source)?,
            wakee_stack: Stack::decode("wakee_stack", source)?,
            culprit_stack: Stack::decode("culprit_stack", source)?,
        })
    }

    /// Its end, on the CPU of its last step.
    fn place(&self) -> Place {
        Place {
            cpu: self.cpu(),
            time: self.end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stack::unnamed;
    use super::super::testing::{check_round_trip, task};
    use super::*;

    #[test]
    fn a_hit_comes_back_from_its_trace_with_its_steps_and_stacks() {
        let step = |time_ns, kind| Step {
            time: Instant::from_ns(time_ns),
            kind,
            cpu: Cpu(1),
            id: -1,
            prio: Prio(39),
            comm: "step".to_owned(),
        };
        for culprit in [None, Some(task("hog"))] {
            check_round_trip(&Hit {
                id: 3,
                end_kind: EndKind::Waiting,
                origin: Instant::from_ns(5),
                end: Instant::from_ns(1_000),
                threshold: Duration::from_ns(900),
                task: task("target"),
                preemptions: 1,
                overflow: 2,
                stale: true,
                repaired: false,
                unseen: culprit.is_none(),
                kin: match culprit {
                    None => Kin::Near,
                    Some(_) => Kin::Stranger,
                },
                ordinary: culprit.is_none(),
                culprit,
                steps: vec![step(5, StepKind::Waking), step(1_000, StepKind::SwitchIn)],
                cost: Duration::from_ns(12),
                waker_stack: unnamed(&[1]),
                wakee_stack: unnamed(&[]),
                culprit_stack: unnamed(&[2, 3]),
            });
        }
    }

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
