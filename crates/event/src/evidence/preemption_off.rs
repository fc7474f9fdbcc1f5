//! A task that should have left the CPU and did not: preemption was off, or no point of it came.

use super::from_kernel::{FromKernel, Machine};
use super::preemption_model::PreemptionModel;
use super::raw::{self, mirror};
use super::record::{Place, record};
use super::stack::Stack;
use super::task::TaskRef;
use crate::{Duration, Instant};

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
