//! `record --raw`: the kernel's pages as they leave it, and their conversion later.
//!
//! A raw recording is a recording whose streams of the kernel's CPUs are not written yet. In their
//! place is the folder `raw`: `per_cpu/cpuN/trace_pipe_raw` and `events/*/*/format`, as a copy of
//! an instance of ftrace has them, and `recording.json` with what only the recorder knew.

mod convert;
mod facts;
mod lanes;

pub use convert::{RawSummary, convert_raw};
pub use facts::is_raw;
pub(crate) use facts::{RawCpu, RawFacts};
pub(crate) use lanes::{RawLane, read_lanes};
