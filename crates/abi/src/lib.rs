//! Rust view of the bytes that cross a border: `bpf/event.h` ([`raw`]) and the rings of traced
//! processes ([`rings`]) with their [`numbers`] and [`filters`]; and what the records of the kernel
//! say in the vocabulary of [`event::evidence`].
//!
//! # Design constraints
//! - One definition: the C header. The test `layout` fails when the two disagree by a byte.
//! - Decoding never panics and never trusts a length that came with the bytes.

pub mod contexts;
mod cycles;
mod evidence;
pub mod filters;
mod histogram;
mod hit;
mod late;
pub mod monitor;
pub mod numbers;
pub mod raw;
pub mod rings;
pub mod syscalls;
pub mod trackers;

/// The version of the layout of `bpf/event.h`, raised with every change of a record.
pub const VERSION: u32 = raw::ABI_VERSION;

pub use cycles::{SleepsInside, decode_cycles};
pub use evidence::decode_evidence;
pub use histogram::{Histogram, bucket_begin_ns, bucket_of_ns};
pub use hit::decode_hit;
pub use late::decode_late;

/// The text before the first zero byte, fit to show.
fn text(bytes: &[u8]) -> String {
    let length = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    event::plain_text(&bytes[..length])
}
