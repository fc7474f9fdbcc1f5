//! Rust view of `bpf/event.h`: the records as they cross the border ([`raw`]), and what they say
//! ([`Hit`], [`EvidenceRecord`], [`Histogram`]).
//!
//! # Design constraints
//! - One definition: the C header. The test `layout` fails when the two disagree by a byte.
//! - Decoding never panics and never trusts a length that came with the bytes.

mod evidence;
mod histogram;
mod hit;
pub mod raw;

pub use evidence::{EvidenceRecord, LateTimer, Mode, PreemptionModel, PreemptionOff};
pub use histogram::Histogram;
pub use hit::{EndKind, Hit, Step, StepKind, Task, irq};

/// The text before the first zero byte, with bytes that are not UTF-8 replaced.
fn text(bytes: &[u8]) -> String {
    let length = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// The frames that a stack says it has, at most those that it can have.
fn frames(stack: &raw::Stack) -> Vec<u64> {
    let length = (stack.length as usize).min(raw::STACK_MAX);
    stack.frames[..length].to_vec()
}
