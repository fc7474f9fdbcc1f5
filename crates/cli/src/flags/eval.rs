//! `rtscope measure eval`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What was typed after `measure eval`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Eval {
    /// A thread on each of these CPUs (default: all)
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<String>,
    /// Real-time priority (SCHED_FIFO), 2 to 99
    #[arg(long, value_name = "PRIO", default_value_t = 80)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=99))]
    #[arg(hide_short_help = true)]
    pub prio: u32,
    /// From one instant to the next
    #[arg(long, value_name = "DUR", default_value = "1ms")]
    #[arg(hide_short_help = true)]
    pub interval: String,
    /// How long, with all its parts
    #[arg(
        long = "for",
        alias = "duration",
        value_name = "DUR",
        default_value = "2m"
    )]
    pub run_for: String,
    /// Fail when a sample is longer, as in 100us
    #[arg(long, value_name = "DUR")]
    pub budget: Option<String>,
    /// Explain the longest over this (BPF; default: budget)
    #[arg(long, value_name = "DUR")]
    pub over: Option<String>,
    /// Explain nothing, which costs nothing: the budget alone
    #[arg(long, conflicts_with_all = ["over", "worst", "exec", "bpf_action"])]
    #[arg(hide_short_help = true)]
    pub no_explain: bool,
    /// Explain so many of them
    #[arg(long, value_name = "N", default_value_t = super::late::WORST_DEFAULT)]
    #[arg(value_parser = super::late::worst_count(), hide_short_help = true)]
    pub worst: usize,
    /// What to do at each.
    #[command(flatten)]
    pub actions: super::late::Actions,
    /// Run for this long, loads and all, before anything counts
    #[arg(long, value_name = "DUR")]
    #[arg(hide_short_help = true)]
    pub warm_up: Option<String>,
    /// What runs beside it (default: all)
    #[arg(long, value_name = "LOADS", value_enum, value_delimiter = ',')]
    pub load: Vec<LoadName>,
    /// CPUs of the loads (default: all that are not isolated)
    #[arg(long, value_name = "LIST")]
    #[arg(hide_short_help = true)]
    pub load_cpu: Option<String>,
    /// Control group that the loads join: its folder
    #[arg(long, value_name = "DIR")]
    #[arg(hide_short_help = true)]
    pub load_cgroup: Option<PathBuf>,
    /// Without the search for gaps, which takes a sixth of the time
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub no_hw: bool,
    /// Words that stand in the report: of what machine, before or after what
    #[arg(short, long, value_name = "TEXT")]
    #[arg(hide_short_help = true)]
    pub annotation: Option<String>,
    /// Where the reports go (default: rtscope-eval, or numbered)
    ///
    /// report.html, eval.json with its SHA-256, and junit.xml. What is there is never replaced.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Go on with the evaluation in this folder, which was killed or interrupted
    ///
    /// With what was asked then; what lies between is stated.
    #[arg(long, value_name = "DIR", conflicts_with = "compare")]
    #[arg(hide_short_help = true)]
    pub resume: Option<PathBuf>,
    /// Prove something all the same where nobody measured for so long in between
    #[arg(long, value_name = "DUR", requires = "resume")]
    #[arg(hide_short_help = true)]
    pub allow_gap: Option<String>,
    /// Serve /metrics on this port of this machine: closed intervals, as the monitor tells them
    #[arg(long, value_name = "PORT", conflicts_with_all = ["compare", "command"])]
    #[arg(hide_short_help = true)]
    pub port: Option<u16>,
    /// Not the table: JSON, schema rtscope.eval version 2
    #[arg(long)]
    pub json: bool,
    /// Put two evaluations side by side instead: their folders
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub compare: Option<Vec<PathBuf>>,
    /// Of COMMAND these tasks (default: its real-time threads)
    #[arg(long, value_name = "TASK", requires = "command")]
    #[arg(hide_short_help = true)]
    pub task: Vec<String>,
    /// Where an activation of COMMAND ends: block, switch-in, user-return
    #[arg(long, value_name = "END", requires = "command")]
    #[arg(hide_short_help = true)]
    pub until: Option<String>,
    /// COMMAND knows its deadline, and says that it was late: line:TEXT, signal
    #[arg(long, value_name = "WHAT", requires = "command")]
    #[arg(hide_short_help = true)]
    pub trigger: Vec<String>,
    /// An application in place of our threads, under these loads
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "compare")]
    // What says how our threads measure means nothing to it.
    #[arg(conflicts_with_all = ["cpu", "prio", "interval", "no_hw", "warm_up"])]
    #[arg(conflicts_with_all = ["no_explain", "exec"])]
    #[arg(hide_short_help = true)]
    pub command: Vec<OsString>,
}

/// Loads, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadName {
    /// Processes that send each other messages.
    Hackbench,
    /// CPU, memory, disk and timers.
    StressNg,
    /// A compiler, again and again.
    Compile,
    /// Nothing.
    None,
}

const EXAMPLES: &str = "\
Examples:
  sudo rtscope measure eval --budget 100us --for 10m
  sudo rtscope measure eval --load hackbench --cpu 1 --over 200us -o before
  sudo rtscope measure eval --budget 1ms -- ./my-control-loop
  rtscope measure eval --compare before after -o both
Exit codes: 2 over the budget (--compare: B is worse), 3 nothing is proved.";
