//! Reads evidence: what only the kernel's watch sees.

use event::evidence::{
    Blocked, BlockedOn, Evidence, LateTimer, Mode, PreemptionModel, PreemptionOff, Stack,
    Throttled, unnamed,
};
use event::{Cpu, Duration, Instant};

use crate::hit::decode_task;
use crate::{frames, raw};

/// What a whole slot says; none when its kind is unknown or it names no task.
pub fn decode_evidence(slot: &raw::Evidence, cpu: Cpu, model: PreemptionModel) -> Option<Evidence> {
    let time = Instant::from_ns(slot.time_ns as i64);
    let begin = Instant::from_ns(slot.begin_ns as i64);
    let task = decode_task(&slot.task)?;
    match slot.kind {
        raw::EVIDENCE_LATE_TIMER => {
            let (mode, stack, came_on) = interrupted(slot)?;
            Some(Evidence::LateTimer(LateTimer {
                cpu,
                time,
                expiry: begin,
                lateness: time.since(begin),
                hrtimer: slot.hrtimer,
                function: slot.function,
                interrupted: task,
                mode,
                steal: Duration::from_ns(slot.steal_ns as i64),
                stack,
                came_on,
            }))
        }
        raw::EVIDENCE_PREEMPTION_OFF => Some(Evidence::PreemptionOff(PreemptionOff {
            cpu,
            time,
            begin,
            delay: time.since(begin),
            task,
            model,
            stack: frames(&slot.stack),
        })),
        raw::EVIDENCE_BLOCKED => Some(Evidence::Blocked(Blocked {
            cpu,
            time,
            task,
            on: BlockedOn::from_value(slot.mode)?,
            owner: decode_task(&slot.other),
            lock: slot.hrtimer,
            stack: frames(&slot.stack),
        })),
        raw::EVIDENCE_THROTTLED => Some(Evidence::Throttled(Throttled {
            cpu,
            time,
            begin,
            task,
        })),
        _ => None,
    }
}

/// The mode, the stack without the interrupt's own frames, which lie before the interrupted
/// instruction, and the marks of the frames that are left. Where that instruction is not in the
/// stack, only its own address is certain.
fn interrupted(slot: &raw::Evidence) -> Option<(Mode, Stack, u32)> {
    let mode = Mode::from_value(slot.mode)?;
    if mode != Mode::Kernel {
        return Some((mode, Stack::new(), 0));
    }
    let mut stack = frames(&slot.stack);
    let begin = stack
        .iter()
        .position(|frame| frame.address == slot.instruction);
    let Some(begin) = begin else {
        return Some((mode, unnamed(&[slot.instruction]), 0));
    };
    stack.drain(..begin);
    Some((mode, stack, slot.came_on >> begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_interrupted_kernel_code_has_a_stack_and_without_the_interrupts_own_frames() {
        let check = |mode: u8, instruction: u64, expect: Option<(Mode, &[u64], u32)>| {
            let mut slot: raw::Evidence = raw::zeroed();
            slot.kind = raw::EVIDENCE_LATE_TIMER;
            slot.mode = mode;
            slot.instruction = instruction;
            slot.came_on = 0b1100;
            slot.stack.length = 4;
            slot.stack.frames[..4].copy_from_slice(&[10, 20, 30, 40]);
            let seen = match decode_evidence(&slot, Cpu(1), PreemptionModel::None) {
                Some(Evidence::LateTimer(late)) => Some((late.mode, late.stack, late.came_on)),
                _ => None,
            };
            assert_eq!(
                seen,
                expect.map(|(mode, stack, came_on)| (mode, unnamed(stack), came_on))
            );
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
