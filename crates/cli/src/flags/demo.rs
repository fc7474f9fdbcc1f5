//! `rtscope demo` and its parts.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

/// What the demo types to start one of its parts: a process of its own each.
#[derive(Debug, Args)]
pub struct DemoPart {
    /// What to be
    #[arg(value_enum)]
    pub role: PartRole,
    /// The process that started it, without which it ends
    #[arg(long)]
    pub parent: u32,
    /// Process name
    #[arg(long)]
    pub name: String,
    /// CPU to stay on
    #[arg(long)]
    pub cpu: u32,
    /// Real-time priority; 0 = an ordinary task
    #[arg(long, default_value_t = 0)]
    pub prio: u32,
    /// SCHED_RR instead of SCHED_FIFO
    #[arg(long)]
    pub round_robin: bool,
    /// Length of a hog's run, or a victim's period
    #[arg(long, default_value_t = 0)]
    pub length_us: u64,
    /// What to become
    #[arg(last = true)]
    pub command: Vec<OsString>,
}

/// What a part of the demo is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PartRole {
    /// Wakes up every period and notes how late.
    Victim,
    /// Waits for its cue, then runs for its length.
    Hog,
    /// Runs all the time, at no real-time priority.
    Busy,
    /// Becomes another program.
    Run,
    /// From its cue on runs in bursts, so that its CPU is never taken whole.
    Bursts,
}
