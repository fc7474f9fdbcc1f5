//! Helpers of tests; no product code depends on them.

mod privileged;
mod sample;
mod synthetic;

pub use privileged::{Privileged, privileged, runs, skip};
pub use sample::{SAMPLE_EVENTS, write_sample};
pub use synthetic::{SyntheticTrace, Task};
