//! Helpers of tests; no product code depends on them.

mod privileged;
mod synthetic;

pub use privileged::{Privileged, privileged, runs, skip};
pub use synthetic::{SyntheticTrace, Task};
