//! The options of cyclictest (rt-tests 2.x), for scripts that go on working.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// What was typed after `--cyclictest`, or after the name cyclictest.
#[derive(Debug, Parser)]
#[command(
    name = "cyclictest",
    disable_version_flag = true,
    disable_help_flag = true
)]
pub struct Cyclictest {
    /// Print this
    #[arg(long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
    /// Run thread #N on processor #N, or on these processors
    #[arg(short, long, value_name = "CPUSET", num_args = 0..=1)]
    pub affinity: Option<Option<String>>,
    /// Align thread wake-ups, each so many us after the one before
    #[arg(short = 'A', long, value_name = "USEC", num_args = 0..=1)]
    pub aligned: Option<Option<i64>>,
    /// Stop when a latency exceeds so many us
    #[arg(short, long, value_name = "USEC")]
    pub breaktrace: Option<i64>,
    /// 0 = CLOCK_MONOTONIC, 1 = CLOCK_REALTIME
    #[arg(short, long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub clock: u8,
    /// Do not ask for shallow idle states
    #[arg(long)]
    pub default_system: bool,
    /// Distance of the threads' intervals in us
    #[arg(short, long, value_name = "DIST", default_value_t = 500)]
    pub distance: i64,
    /// Length of the run, with s, m, h or d
    #[arg(short = 'D', long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Print a histogram up to so many us
    #[arg(short = 'h', long, value_name = "US")]
    pub histogram: Option<usize>,
    /// The same, with a column of sums
    #[arg(short = 'H', long, value_name = "US")]
    pub histofall: Option<usize>,
    /// Write the histogram to this file
    #[arg(long, value_name = "PATH")]
    pub histfile: Option<PathBuf>,
    /// Interval of the first thread in us
    #[arg(short, long, value_name = "INTV", default_value_t = 1000)]
    pub interval: i64,
    /// Write the final results to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Idle states may take so many us to leave
    #[arg(long, value_name = "USEC", default_value_t = 0)]
    pub latency: i64,
    /// So many samples
    #[arg(short, long, value_name = "LOOPS", default_value_t = 0)]
    pub loops: u64,
    /// Run the main thread on these processors
    #[arg(long, value_name = "CPUSET")]
    pub mainaffinity: Option<String>,
    /// Lock memory
    #[arg(short, long)]
    pub mlockall: bool,
    /// Refresh the display only when a maximum changes
    #[arg(short = 'M', long)]
    pub refresh_on_max: bool,
    /// clock_nanosleep, which is what we always use
    #[arg(short = 'n', long)]
    pub nanosleep: bool,
    /// Figures in ns
    #[arg(short = 'N', long)]
    pub nsecs: bool,
    /// Priority of the first thread
    #[arg(short, long, value_name = "PRIO", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=99))]
    pub priority: u32,
    /// Policy
    #[arg(long, value_enum, value_name = "NAME")]
    pub policy: Option<CyclictestPolicy>,
    /// Each thread's priority one below the one before
    #[arg(long)]
    pub priospread: bool,
    /// Print a summary only
    #[arg(short, long)]
    pub quiet: bool,
    /// Begin at a whole second, each thread so many us after the one before
    #[arg(long, value_name = "USEC", num_args = 0..=1)]
    pub secaligned: Option<Option<i64>>,
    /// One thread for each processor, all of one priority
    #[arg(short = 'S', long)]
    pub smp: bool,
    /// Number of threads; without a number one for each processor
    #[arg(short, long, value_name = "NUM", num_args = 0..=1)]
    pub threads: Option<Option<usize>>,
    /// Print every sample as 'thread:number:latency'
    #[arg(short, long)]
    pub verbose: bool,
    /// Print at once; we never keep output back
    #[arg(short, long)]
    pub unbuffered: bool,
}

/// Policies as cyclictest calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CyclictestPolicy {
    /// SCHED_OTHER.
    #[value(alias = "normal")]
    Other,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
}
