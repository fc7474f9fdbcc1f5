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
mod event_stacks;
mod flame;
mod futex;
mod histogram;
mod hosts;
mod intervals;
mod io;
mod irq;
mod irqs;
mod kind;
mod log;
mod memtop;
mod needs;
mod options;
mod ordered;
mod periods;
mod prios;
mod question;
mod resources;
mod rtcheck;
mod sched;
mod sorted_log;
mod spill;
mod states;
mod statistics;
mod stretches;
mod summary;
mod syscalls;
mod table;
mod time_bins;
mod top;
mod unknown;
mod window;

pub use catalog::{Named, REPORTS, report_named};
pub use code::CodeNames;
pub use critical::request;
pub use histogram::Bins;
pub use kind::{Lami, Report, ReportKind, Subject};
pub use needs::Need;
pub use options::{Groups, ReportOptions, RtRule, Views};
pub use question::Tick;
pub use spill::{Spill, SpillFile};
pub use summary::Summary;
pub use table::{Cell, Column, Kind, Table, TableClass};
pub use window::{Pass, run_reports};

/// All kinds of reports, in the order in which people read them.
static KINDS: &[&ReportKind] = &[
    &cputop::KIND,
    &sched::KIND,
    &irq::KIND,
    &io::KIND,
    &memtop::KIND,
    &syscalls::KIND,
    &periods::KIND,
    &intervals::KIND,
    &irqs::KIND,
    &states::KIND,
    &resources::KIND,
    &dependency::KIND,
    &critical::KIND,
    &futex::KIND,
    &rtcheck::KIND,
    &flame::KIND,
    &hosts::KIND,
];
