//! Sessions from start to files on disk: recordings, the flight recorder, snapshots; and the facts
//! about this machine that they rest on.
//!
//! # Design constraints
//! - The hot path only copies: pages leave the kernel's rings in a drain, all parsing and writing
//!   comes later and elsewhere.
//! - Every lost event is counted, per CPU and cause, and stands at its place in the trace.
//! - Output appears whole, under its own name, or not at all.

pub mod facts;
pub mod leftovers;
mod pages;
mod recorder;
mod select;
mod sets;

pub use pages::{CpuPages, History, PageBlock, PageSpan, Pages};
pub use recorder::{Mode, Recorder, RecorderConfig};
pub use select::{EventSelection, Selected};
