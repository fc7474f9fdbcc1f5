//! Helpers of tests; no product code depends on them.

pub mod dat;
mod privileged;
mod probe;
mod sample;
mod synthetic;

pub use privileged::{Privileged, privileged, runs, skip};
pub use probe::{Traced, build_traced};
pub use sample::{SAMPLE_EVENTS, write_sample};
pub use synthetic::{SyntheticTrace, Task};
