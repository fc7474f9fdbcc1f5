//! `rtscope demo` and its parts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What was typed after `demo`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Demo {
    /// The experiment
    #[arg(value_enum, default_value = "hog")]
    pub kind: DemoKind,
    /// CPU of the experiment (default: the last)
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<String>,
    /// Where snapshots go
    #[arg(short, long, value_name = "DIR", default_value = "rtscope-snapshots")]
    pub output: PathBuf,
    /// The truth and the hits as JSON, schema rtscope.demo version 1
    #[arg(long)]
    pub json: bool,
    /// hog: CPU time of the hog in milliseconds
    #[arg(long, value_name = "N", default_value_t = 120)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=500))]
    pub hog_ms: u64,
    /// Process name of the hog
    #[arg(long, value_name = "NAME", default_value = "rt-hog")]
    #[arg(hide_short_help = true)]
    pub hog_name: String,
    /// hog: process name of a second hog, which runs half as long behind the first
    #[arg(long, value_name = "NAME", default_value = "rt-hog-2")]
    #[arg(hide_short_help = true)]
    pub second_name: String,
    /// hog: process name of the victim
    #[arg(long, value_name = "NAME", default_value = "rt-victim")]
    #[arg(hide_short_help = true)]
    pub victim_name: String,
    /// hog: how many hogs
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=2))]
    pub faults: u8,
    /// hog: an ordinary task that always wants the CPU, and is innocent
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub decoy_low: bool,
    /// hog: a more urgent task on another CPU, which is innocent
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub decoy_other_cpu: bool,
}

/// The experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DemoKind {
    /// A periodic real-time task, and a more urgent hog on its CPU.
    Hog,
    /// The real jackd, and a hog at SCHED_RR 60 for half a second on its CPU.
    Jack,
}

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

const EXAMPLES: &str = "\
Examples:
  sudo rtscope demo               a victim and a hog of our own
  sudo rtscope demo jack          the real jackd and a hog on its CPU
  sudo rtscope demo --hog-ms 40 --faults 2 --json";
