//! The reports of lttng-analyses: who used the CPUs, waited, was interrupted, read and wrote.
//!
//! [`run_reports`] walks over a trace once and asks any number of [`Report`]s; what they find are
//! [`Table`]s of typed cells. Where lttng-analyses errs, `docs/reports.md` says so.

mod catalog;
mod cputop;
mod errno;
mod histogram;
mod io;
mod irq;
mod memtop;
mod needs;
mod options;
mod ordered;
mod periods;
mod prios;
mod sched;
mod statistics;
mod syscalls;
mod table;
mod top;
mod window;

pub use catalog::{Named, REPORTS};
pub use histogram::Bins;
pub use needs::Need;
pub use options::{Family, Groups, Report, ReportOptions, Views};
pub use table::{Cell, Column, Kind, Table, TableClass};
pub use window::{Pass, Tick, run_reports};
