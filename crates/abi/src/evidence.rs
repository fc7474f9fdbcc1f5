//! Evidence: what only the kernel's watch sees of interrupts-off and preemption-off sections.

use event::{Cpu, Duration, Instant};

use crate::hit::Task;
use crate::{frames, raw};

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
}

/// The preemption model in force; the values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
    pub interrupted: Task,
    /// What was interrupted.
    pub mode: Mode,
    /// Paravirtual steal since the CPU's previous record; zero when unknown.
    pub steal: Duration,
    /// The interrupted kernel stack, innermost first; empty unless `mode` is kernel.
    pub stack: Vec<u64>,
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
    pub task: Task,
    /// The preemption model in force.
    pub model: PreemptionModel,
    /// Its kernel stack at the switch, innermost first.
    pub stack: Vec<u64>,
}

/// One record of the evidence rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvidenceRecord {
    /// A late timer.
    LateTimer(LateTimer),
    /// A late preemption.
    PreemptionOff(PreemptionOff),
}

impl EvidenceRecord {
    /// The event's time.
    pub fn time(&self) -> Instant {
        match self {
            EvidenceRecord::LateTimer(late) => late.time,
            EvidenceRecord::PreemptionOff(off) => off.time,
        }
    }

    /// The CPU that it happened on.
    pub fn cpu(&self) -> Cpu {
        match self {
            EvidenceRecord::LateTimer(late) => late.cpu,
            EvidenceRecord::PreemptionOff(off) => off.cpu,
        }
    }

    /// What a whole slot says; none when its kind is unknown or it names no task.
    pub fn decode(slot: &raw::Evidence, cpu: Cpu, model: PreemptionModel) -> Option<Self> {
        let time = Instant::from_ns(slot.time_ns as i64);
        let begin = Instant::from_ns(slot.begin_ns as i64);
        let task = Task::decode(&slot.task)?;
        match slot.kind {
            raw::EVIDENCE_LATE_TIMER => {
                let (mode, stack) = interrupted(slot)?;
                Some(EvidenceRecord::LateTimer(LateTimer {
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
                }))
            }
            raw::EVIDENCE_PREEMPTION_OFF => Some(EvidenceRecord::PreemptionOff(PreemptionOff {
                cpu,
                time,
                begin,
                delay: time.since(begin),
                task,
                model,
                stack: frames(&slot.stack),
            })),
            _ => None,
        }
    }
}

/// The mode and the stack without the interrupt's own frames, which lie before the interrupted
/// instruction. Where that instruction is not in the stack, only its own address is certain.
fn interrupted(slot: &raw::Evidence) -> Option<(Mode, Vec<u64>)> {
    let mode = match slot.mode {
        0 => Mode::Kernel,
        1 => Mode::User,
        2 => Mode::Idle,
        _ => return None,
    };
    if mode != Mode::Kernel {
        return Some((mode, Vec::new()));
    }
    let all = frames(&slot.stack);
    let begin = all.iter().position(|address| *address == slot.instruction);
    Some((
        mode,
        begin.map_or_else(|| vec![slot.instruction], |begin| all[begin..].to_vec()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_interrupted_kernel_code_has_a_stack_and_without_the_interrupts_own_frames() {
        let check = |mode: u8, instruction: u64, expect: Option<(Mode, &[u64])>| {
            let mut slot: raw::Evidence = raw::zeroed();
            slot.kind = raw::EVIDENCE_LATE_TIMER;
            slot.mode = mode;
            slot.instruction = instruction;
            slot.stack.length = 4;
            slot.stack.frames[..4].copy_from_slice(&[10, 20, 30, 40]);
            let seen = match EvidenceRecord::decode(&slot, Cpu(1), PreemptionModel::None) {
                Some(EvidenceRecord::LateTimer(late)) => Some((late.mode, late.stack)),
                _ => None,
            };
            assert_eq!(seen, expect.map(|(mode, stack)| (mode, stack.to_vec())));
        };
        check(0, 30, Some((Mode::Kernel, &[30, 40])));
        check(0, 99, Some((Mode::Kernel, &[99])));
        check(1, 30, Some((Mode::User, &[])));
        check(2, 30, Some((Mode::Idle, &[])));
        check(7, 30, None);
    }
}
