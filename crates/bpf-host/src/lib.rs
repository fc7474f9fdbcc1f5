//! The driver of the kernel's watch: builds and loads `bpf/`, probes what the kernel allows, and
//! hands decoded records to its callers. The only crate that links libbpf.
//!
//! # Design constraints
//! - [`Watch::start`] returns only when everything is attached; afterwards nothing can fail late.
//! - Dropping a [`Watch`] detaches everything, and so does the death of the process: nothing is
//!   pinned.
//! - Only what a question needs is attached; what the kernel lacks is a fact in [`Features`], and
//!   the error of a load names the fact that explains it.

mod action;
mod config;
mod contexts;
mod cost;
mod cycles;
mod elf;
mod evidence;
mod features;
mod fill;
mod interruptions;
mod kernel;
mod late;
mod load;
mod members;
mod monitor;
mod object;
mod packed;
mod pattern;
mod perf;
mod phases;
mod programs;
mod ring;
mod sampled_cost;
mod statistics;
mod steal;
mod syscalls;
pub mod trackers;
mod watch;

/// The version of the records between the kernel's programs and us.
pub use abi::{SleepsInside, VERSION as ABI_VERSION};
pub use action::Action;
pub use config::{Beside, Targets, WatchConfig};
pub use contexts::{ContextConfig, ContextPlace, ContextRing, ContextWatch, Counter};
pub use cost::{MeasuredCost, TrackerCost, measure_cost, measure_tracker_cost};
pub use evidence::{Evidence, EvidenceRings, Gone};
pub use features::{Features, TracepointFact};
pub use interruptions::Interruptions;
pub use late::LateRing;
pub use members::Members;
pub use monitor::{LinearSeries, MonitorConfig, MonitorLosses, PhaseInterval, PhaseMonitor};
pub use phases::{PhaseProbe, Stamps};
pub use programs::{ProgramFunction, newer_program, program_functions};
pub use ring::HitRing;
pub use sampled_cost::WatchCost;
pub use statistics::{ProgramCost, Statistics};
pub use steal::StealReader;
pub use syscalls::{CallTracker, SyscallConfig, SyscallCounters, SyscallWatch, UNKNOWN_CALL};
pub use watch::Watch;
