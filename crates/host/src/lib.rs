//! This machine, whatever is recorded or measured on it.
//!
//! [`capabilities`] says what it allows, verb by verb, and what makes its figures doubtful;
//! [`identity`] says which machine it is, [`unmasked`] how often what nothing masks has come.
//! [`shield`] keeps CPUs free for real-time tasks, and gives them back; [`tune`] tries a change and
//! takes it back. [`groups`] finds control groups, units and containers, [`users`] what runs for
//! whom, [`namespace`] says what ids a task has. [`task`] is what makes a thread a real-time task,
//! [`clock`] what it sleeps on, [`power`] keeps idle CPUs from sleeping too deep to wake in time,
//! [`steal`] counts what a hypervisor took, and what was idle.
//!
//! # Design constraints
//! - Nothing here knows a trace, a recording or a measurement.
//! - Nothing is printed here.

pub mod capabilities;
mod change;
pub mod clock;
pub mod groups;
pub mod identity;
pub mod memory;
pub mod namespace;
pub mod power;
pub mod processes;
pub mod shield;
pub mod steal;
pub mod task;
pub mod tune;
pub mod unmasked;
pub mod users;
