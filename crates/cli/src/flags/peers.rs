//! `rtscope measure queuelat` and `rtscope measure ssdd`: small tests that rt-tests has.

use clap::Args;

/// What was typed after `measure queuelat`.
#[derive(Clone, Debug, Args)]
#[command(after_help = QUEUELAT)]
pub struct Queuelat {
    /// Where the reader is (default: the last that we may use)
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Where the sender is (default: the first)
    #[arg(long, value_name = "CPU")]
    pub sender_cpu: Option<u32>,
    /// Real-time priority of both, 1 to 99; 0 for ordinary tasks
    #[arg(long, value_name = "PRIO", default_value_t = 80)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=99))]
    pub prio: u32,
    /// From one packet to the next
    #[arg(long, value_name = "DUR", default_value = "1ms")]
    pub interval: String,
    /// So many packets at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub burst: u32,
    /// For how long.
    #[command(flatten)]
    pub length: super::Length,
    /// Exit with 2 when a packet waits longer, too
    #[arg(long, value_name = "DUR")]
    pub over: Option<String>,
    /// JSON, schema rtscope.queuelat version 1
    #[arg(long)]
    pub json: bool,
}

/// What was typed after `measure ssdd`.
#[derive(Clone, Debug, Args)]
#[command(after_help = SSDD)]
pub struct Ssdd {
    /// Processes at once, each with its tracer
    #[arg(long, short, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub forks: u32,
    /// Steps of each
    #[arg(long, short, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub iters: u64,
    /// End after this instead
    #[arg(
        long = "for",
        alias = "duration",
        value_name = "DUR",
        conflicts_with = "iters"
    )]
    pub run_for: Option<String>,
    /// Exit with 2 when a step takes longer, too
    #[arg(long, value_name = "DUR")]
    pub over: Option<String>,
    /// JSON, schema rtscope.ssdd version 1
    #[arg(long)]
    pub json: bool,
}

const QUEUELAT: &str = "\
Example: sudo rtscope measure queuelat --over 200us --for 60s
Exit codes: 2 a packet was lost or waited too long, 3 interrupted.";
const SSDD: &str = "\
Example: rtscope measure ssdd --forks 4 --for 10s
Exit codes: 2 a step went wrong or took too long, 3 interrupted.";
