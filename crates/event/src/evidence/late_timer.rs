//! A timer handler that ran late because its interrupt came late: what had interrupts off.

use super::from_kernel::{FromKernel, Machine};
use super::raw::{self, mirror};
use super::record::{Place, label_part, record};
use super::stack::{Stack, unnamed};
use super::task::TaskRef;
use crate::{Duration, Instant};

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

impl Mode {
    /// All modes, with the names that traces use, in the order of the values.
    pub const NAMES: [(Mode, &'static str); 4] = [
        (Mode::Kernel, "kernel"),
        (Mode::User, "user"),
        (Mode::Idle, "idle"),
        (Mode::Enabled, "enabled"),
    ];

    /// The mode with this value in a record.
    pub fn from_value(value: u8) -> Option<Mode> {
        Self::NAMES.get(usize::from(value)).map(|(mode, _)| *mode)
    }
}

// User mode accuses nobody: the safe reading of a mode that is not known.
label_part!(Mode, Mode::User);

record! {
    /// A timer handler that ran late because its interrupt came late. Its time is the entry of the
    /// timer's interrupt.
    LateTimer as "rtscope_late_timer" {
        /// The timer's hard expiry, on CLOCK_MONOTONIC.
        expiry: Instant = "expiry_ns",
        /// Entry − expiry.
        lateness: Duration = "lateness_ns",
        /// The timer's address.
        hrtimer: u64 = "hrtimer",
        /// Its callback's address.
        function: u64 = "function",
        /// The task that was interrupted.
        interrupted: TaskRef = "interrupted_",
        /// What was interrupted.
        mode: Mode = "mode",
        /// Paravirtual steal since the CPU's previous record; zero when unknown.
        steal: Duration = "steal_ns",
        /// The interrupted kernel stack, innermost first; empty unless `mode` is kernel.
        stack: Stack = "stack",
        /// Bit i: interrupts may have come on right before `stack[i]`. Only where the timer expired
        /// before the first of a row of interrupts and came behind it.
        came_on: u32 = "came_on",
    }
}

mirror! {
    /// What the kernel sends of it. The stack has the interrupt's own frames before `instruction`.
    Raw = "rts_late_timer" {
        expiry_ns: u64,
        hrtimer: u64,
        function: u64,
        instruction: u64,
        steal_ns: u64,
        task: raw::Task,
        came_on: u32,
        mode: u8,
        padding: [u8; 3],
        stack: raw::Stack,
    }
}

impl FromKernel for LateTimer {
    type Raw = Raw;

    fn from_kernel(place: Place, raw: &Raw, _: &Machine) -> Option<LateTimer> {
        let (mode, stack, came_on) = interrupted(raw)?;
        let expiry = Instant::from_ns(raw.expiry_ns as i64);
        Some(LateTimer {
            cpu: place.cpu,
            time: place.time,
            expiry,
            lateness: place.time.since(expiry),
            hrtimer: raw.hrtimer,
            function: raw.function,
            interrupted: raw.task.named()?,
            mode,
            steal: Duration::from_ns(raw.steal_ns as i64),
            stack,
            came_on,
        })
    }

    /// Frames that go take their marks with them.
    fn symbolise(&mut self, name: &dyn Fn(u64) -> String) {
        // The probe's own frames were cut off with the interrupt's.
        super::stack::name_frames(&mut self.stack, &name);
    }
}

/// The mode, the stack without the interrupt's own frames, which lie before the interrupted
/// instruction, and the marks of the frames that are left. Where that instruction is not in the
/// stack, only its own address is certain.
fn interrupted(raw: &Raw) -> Option<(Mode, Stack, u32)> {
    let mode = Mode::from_value(raw.mode)?;
    if mode != Mode::Kernel {
        return Some((mode, Stack::new(), 0));
    }
    let mut stack = raw.stack.frames();
    let begin = stack
        .iter()
        .position(|frame| frame.address == raw.instruction);
    let Some(begin) = begin else {
        return Some((mode, unnamed(&[raw.instruction]), 0));
    };
    stack.drain(..begin);
    Some((mode, stack, raw.came_on >> begin))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_round_trip, kernel_record, place, task};
    use super::*;

    #[test]
    fn a_late_timer_comes_back_from_its_trace() {
        check_round_trip(&LateTimer {
            cpu: place().cpu,
            time: place().time,
            expiry: Instant::from_ns(100),
            lateness: Duration::from_ns(900),
            hrtimer: 0xffff_8880_0000_1000,
            function: 0xffff_ffff_8100_0000,
            interrupted: task("busy"),
            mode: Mode::Enabled,
            steal: Duration::from_ns(5),
            stack: unnamed(&[1, 2]),
            came_on: 0b10,
        });
    }

    #[test]
    fn only_interrupted_kernel_code_has_a_stack_and_without_the_interrupts_own_frames() {
        let check = |mode: u8, instruction: u64, expect: Option<(Mode, &[u64], u32)>| {
            let mut raw: Raw = kernel_record();
            raw.mode = mode;
            raw.instruction = instruction;
            raw.came_on = 0b1100;
            raw.stack.length = 4;
            raw.stack.frames[..4].copy_from_slice(&[10, 20, 30, 40]);
            let seen = LateTimer::from_kernel(place(), &raw, &Machine::default());
            let seen = seen.map(|late| (late.mode, late.stack, late.came_on));
            let expect = expect.map(|(mode, stack, came_on)| (mode, unnamed(stack), came_on));
            assert_eq!(seen, expect, "{mode} {instruction}");
        };
        check(0, 20, Some((Mode::Kernel, &[20, 30, 40], 0b110)));
        check(0, 30, Some((Mode::Kernel, &[30, 40], 0b11)));
        check(0, 99, Some((Mode::Kernel, &[99], 0)));
        check(1, 30, Some((Mode::User, &[], 0)));
        check(2, 30, Some((Mode::Idle, &[], 0)));
        check(3, 30, Some((Mode::Enabled, &[], 0)));
        check(7, 30, None);
    }
}
