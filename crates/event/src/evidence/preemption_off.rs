//! A task that should have left the CPU and did not: preemption was off, or no point of it came.

use super::hit::TaskRef;
use super::raw::{self, mirror};
use super::record::{Place, label_part, record};
use super::stack::Stack;
use super::{FromKernel, Machine};
use crate::{Duration, Instant};

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

label_part!(PreemptionModel, PreemptionModel::Unknown);

record! {
    /// A task that should have left the CPU and did not. Its time is the switch.
    PreemptionOff as "rtscope_preemption_off" {
        /// When need-resched was set.
        begin: Instant = "begin_ns",
        /// Switch − begin.
        delay: Duration = "delay_ns",
        /// The task that kept the CPU, still runnable.
        task: TaskRef = "",
        /// The preemption model in force.
        model: PreemptionModel = "model",
        /// Its kernel stack at the switch, innermost first.
        stack: Stack = "stack",
        /// Bit 0: a deadline server ran it meanwhile; bit 1: a timer's interrupt found it in user
        /// mode meanwhile.
        flags: u32 = "flags",
    }
}

impl PreemptionOff {
    /// Whether a deadline server ran it: its own class and priority do not count.
    pub fn is_served(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether it was seen in user mode: then it was no section of the kernel's.
    pub fn was_in_user_mode(&self) -> bool {
        self.flags & 2 != 0
    }
}

mirror! {
    /// What the kernel sends of it.
    Raw = "rts_preemption_off" {
        begin_ns: u64,
        task: raw::Task,
        flags: u32,
        padding: u32,
        stack: raw::Stack,
    }
}

impl FromKernel for PreemptionOff {
    type Raw = Raw;

    fn from_kernel(place: Place, raw: &Raw, machine: &Machine) -> Option<PreemptionOff> {
        let begin = Instant::from_ns(raw.begin_ns as i64);
        Some(PreemptionOff {
            cpu: place.cpu,
            time: place.time,
            begin,
            delay: place.time.since(begin),
            task: raw.task.named()?,
            model: machine.model,
            stack: raw.stack.frames(),
            flags: raw.flags,
        })
    }

    fn symbolise(&mut self, name: &dyn Fn(u64) -> String) {
        super::stack::symbolise(&mut self.stack, &name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::stack::unnamed;
    use super::super::testing::{check_round_trip, place, task};
    use super::*;

    #[test]
    fn a_late_preemption_comes_back_from_its_trace() {
        check_round_trip(&PreemptionOff {
            cpu: place().cpu,
            time: place().time,
            begin: Instant::from_ns(7),
            delay: Duration::from_ns(993),
            task: task("keeps"),
            model: PreemptionModel::Lazy,
            stack: unnamed(&[3]),
            flags: 3,
        });
    }
}
