//! Helpers of tests; no product code depends on them.

mod privileged;

pub use privileged::{Privileged, privileged, runs, skip};
