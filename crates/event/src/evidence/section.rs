//! Sections with interrupts or preemption off: what only the kernel's watch sees of them.

use super::blocked::{Blocked, Throttled};
use super::hit::TaskRef;
use super::stack::{Stack, symbolise};
use crate::{Cpu, Duration, Instant};

/// What a late timer interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Mode {
    /// Kernel code: its stack names the function that ended the section.
    Kernel = 0,
    /// User code: accuses nobody.
    User = 1,
    /// The idle loop: accuses nobody.
    Idle = 2,
    /// Kernel code in which interrupts were on before the timer's came.
    Enabled = 3,
}

/// The preemption model in force; the values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PreemptionModel {
    /// The kernel does not say.
    #[default]
    Unknown = 0,
    /// Kernel code is not preempted.
    None = 1,
    /// Kernel code is preempted at explicit points.
    Voluntary = 2,
    /// Fair tasks are preempted at the next tick, others at once.
    Lazy = 3,
    /// Kernel code is preempted where it does not forbid it.
    Full = 4,
    /// PREEMPT_RT.
    Rt = 5,
}

/// A timer handler that ran late because its interrupt came late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateTimer {
    /// The CPU.
    pub cpu: Cpu,
    /// Entry of the timer's interrupt.
    pub time: Instant,
    /// The timer's hard expiry, on CLOCK_MONOTONIC.
    pub expiry: Instant,
    /// Entry − expiry.
    pub lateness: Duration,
    /// The timer's address.
    pub hrtimer: u64,
    /// Its callback's address.
    pub function: u64,
    /// The task that was interrupted.
    pub interrupted: TaskRef,
    /// What was interrupted.
    pub mode: Mode,
    /// Paravirtual steal since the CPU's previous record; zero when unknown.
    pub steal: Duration,
    /// The interrupted kernel stack, innermost first; empty unless `mode` is kernel.
    pub stack: Stack,
    /// Bit i: interrupts may have come on right before `stack[i]`. Only where the timer expired
    /// before the first of a row of interrupts and came behind it.
    pub came_on: u32,
}

/// A task that should have left the CPU and did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionOff {
    /// The CPU.
    pub cpu: Cpu,
    /// The switch.
    pub time: Instant,
    /// When need-resched was set.
    pub begin: Instant,
    /// Switch − begin.
    pub delay: Duration,
    /// The task that kept the CPU, still runnable.
    pub task: TaskRef,
    /// The preemption model in force.
    pub model: PreemptionModel,
    /// Its kernel stack at the switch, innermost first.
    pub stack: Stack,
}

/// One record of the evidence stream that is no hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A late timer.
    LateTimer(LateTimer),
    /// A late preemption.
    PreemptionOff(PreemptionOff),
    /// A target blocked inside its activation.
    Blocked(Blocked),
    /// A target that its group's quota keeps from running.
    Throttled(Throttled),
}

impl Evidence {
    /// The event's time.
    pub fn time(&self) -> Instant {
        match self {
            Evidence::LateTimer(late) => late.time,
            Evidence::PreemptionOff(off) => off.time,
            Evidence::Blocked(blocked) => blocked.time,
            Evidence::Throttled(throttled) => throttled.time,
        }
    }

    /// The CPU that it happened on.
    pub fn cpu(&self) -> Cpu {
        match self {
            Evidence::LateTimer(late) => late.cpu,
            Evidence::PreemptionOff(off) => off.cpu,
            Evidence::Blocked(blocked) => blocked.cpu,
            Evidence::Throttled(throttled) => throttled.cpu,
        }
    }

    /// Names the functions of its stack.
    pub fn symbolise(&mut self, name: impl Fn(u64) -> String) {
        match self {
            Evidence::LateTimer(late) => {
                let frames = late.stack.len();
                symbolise(&mut late.stack, &name);
                late.came_on >>= frames - late.stack.len();
            }
            Evidence::PreemptionOff(off) => symbolise(&mut off.stack, &name),
            Evidence::Blocked(blocked) => symbolise(&mut blocked.stack, &name),
            Evidence::Throttled(_) => {}
        }
    }
}

impl Mode {
    /// The mode with this value in a record.
    pub fn from_value(value: u8) -> Option<Mode> {
        [Mode::Kernel, Mode::User, Mode::Idle, Mode::Enabled]
            .into_iter()
            .find(|mode| *mode as u8 == value)
    }
}

impl PreemptionModel {
    /// All models, with the names that text, JSON and traces use, in the order of the values.
    pub const NAMES: [(PreemptionModel, &'static str); 6] = [
        (PreemptionModel::Unknown, "unknown"),
        (PreemptionModel::None, "none"),
        (PreemptionModel::Voluntary, "voluntary"),
        (PreemptionModel::Lazy, "lazy"),
        (PreemptionModel::Full, "full"),
        (PreemptionModel::Rt, "rt"),
    ];

    /// This one, or `other` where it is not known.
    pub fn or(self, other: PreemptionModel) -> PreemptionModel {
        match self {
            PreemptionModel::Unknown => other,
            known => known,
        }
    }

    /// The model with this value in a record.
    pub fn from_value(value: u8) -> Option<PreemptionModel> {
        Self::NAMES.get(usize::from(value)).map(|(model, _)| *model)
    }

    /// The model of this name.
    pub fn from_name(name: &str) -> Option<PreemptionModel> {
        let found = Self::NAMES.iter().find(|(_, text)| *text == name);
        found.map(|(model, _)| *model)
    }

    /// Whether kernel code is preempted outside critical sections, so that a task that stays on
    /// the CPU has preemption off.
    pub fn is_full(self) -> bool {
        matches!(self, PreemptionModel::Full | PreemptionModel::Rt)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}
