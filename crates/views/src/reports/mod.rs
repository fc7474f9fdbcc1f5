//! The reports of lttng-analyses, LTTV and Trace Compass: who used the CPUs, waited, was
//! interrupted, read and wrote, and on whom that hung.
//!
//! [`run_reports`] walks over a trace once and asks any number of [`Report`]s; what they find are
//! [`Table`]s of typed cells. Where lttng-analyses errs, `docs/reports.md` says so.

mod catalog;
mod code;
mod columns;
mod cputop;
mod critical;
mod dependency;
mod durations;
mod errno;
mod flame;
mod futex;
mod histogram;
mod hosts;
mod intervals;
mod io;
mod irq;
mod irqs;
mod log;
mod memtop;
mod needs;
mod options;
mod ordered;
mod periods;
mod prios;
mod resources;
mod rtcheck;
mod sched;
mod sorted_log;
mod spill;
mod states;
mod statistics;
mod stretches;
mod syscalls;
mod table;
mod time_bins;
mod top;
mod unknown;
mod window;

pub use catalog::{Named, REPORTS, Summary};
pub use code::CodeNames;
pub use histogram::Bins;
pub use needs::Need;
pub use options::{Family, Groups, Report, ReportOptions, RtRule, Views};
pub use spill::{Spill, SpillFile};
pub use table::{Cell, Column, Kind, Table, TableClass};
pub use window::{Pass, Tick, run_reports};
