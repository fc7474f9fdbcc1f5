//! This machine, whatever is recorded or measured on it.
//!
//! [`capabilities`] says what it allows, verb by verb, and what makes its figures doubtful.
//! [`shield`] keeps CPUs free for real-time tasks, and gives them back. [`task`] is what makes a
//! thread a real-time task, [`clock`] what it sleeps on, [`power`] keeps idle CPUs from sleeping
//! too deep to wake in time, [`steal`] counts what a hypervisor took.
//!
//! # Design constraints
//! - Nothing here knows a trace, a recording or a measurement.
//! - Nothing is printed here.

pub mod capabilities;
pub mod clock;
pub mod power;
pub mod shield;
pub mod steal;
pub mod task;
