//! `rtscope measure preempt`.

use clap::{Args, ValueEnum};

/// What was typed after `measure preempt`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Preempt {
    /// The CPUs to try, as in 0-3,8 (default: all)
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<String>,
    /// Priority (SCHED_FIFO) of the most urgent thread
    #[arg(long, value_name = "PRIO", default_value_t = 80)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=99))]
    pub prio: u32,
    /// Threads that wake each other, each more urgent
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=64))]
    pub threads: u32,
    /// How often each experiment is made
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rounds: u64,
    /// End after this instead: each experiment gets an equal part
    #[arg(
        long = "for",
        alias = "duration",
        value_name = "DUR",
        conflicts_with = "rounds",
        hide_short_help = true
    )]
    pub run_for: Option<String>,
    /// From one round to the next
    #[arg(long, value_name = "DUR", default_value = "500us")]
    pub interval: String,
    /// What the lock does with a waiter's priority
    #[arg(long, value_enum, value_name = "HOW", default_value = "inherit")]
    #[arg(hide_short_help = true)]
    pub mutex: MutexName,
    /// Exit with 2 when a latency is longer
    #[arg(long, value_name = "DUR")]
    pub over: Option<String>,
    /// JSON, schema rtscope.preempt version 1
    #[arg(long)]
    pub json: bool,
}

/// Locks, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MutexName {
    /// Its owner inherits the priority of who waits.
    Inherit,
    /// A mutex as it comes: shows what an inversion costs.
    Plain,
}

const EXAMPLES: &str = "\
Examples:
  sudo rtscope measure preempt
  sudo rtscope measure preempt --over 50us --json
  sudo rtscope measure preempt --mutex plain     the defect on purpose, found
Exit codes: 2 when an urgent thread did not run at once, 3 when a CPU was taken.";
