//! `rtscope tune`.

use std::path::PathBuf;

use clap::Args;

use super::Until;

/// What was typed after `tune`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Tune {
    /// Commands to try together, each quoted: taskset, chrt, echo > …
    #[arg(value_name = "COMMAND")]
    pub commands: Vec<String>,
    /// Try the first advice for this snapshot or trace that can be tried
    #[arg(long, value_name = "TRACE", conflicts_with = "commands")]
    pub from: Option<PathBuf>,
    /// Whose lateness decides, as for watch (default: rt)
    #[arg(long, value_name = "TASK")]
    pub task: Vec<String>,
    /// All threads of this process, by its id
    #[arg(short, long, value_name = "PID", hide_short_help = true)]
    pub pid: Vec<i32>,
    /// All threads of processes of this name
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub process: Vec<String>,
    /// Tasks of this control group, and of all below it
    #[arg(long, value_name = "PATH|NAME", hide_short_help = true)]
    pub cgroup: Vec<String>,
    /// Tasks of this unit of systemd
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub unit: Vec<String>,
    /// Tasks of this container
    #[arg(long, value_name = "NAME|ID", hide_short_help = true)]
    pub container: Vec<String>,
    /// What is late: more than DUR, as in 5ms
    #[arg(long, value_name = "DUR")]
    pub over: Option<String>,
    /// To the end of its work (block), or of its wait (switch-in)
    #[arg(long, value_enum, value_name = "END", default_value = "block")]
    #[arg(hide_possible_values = true, hide_short_help = true)]
    pub until: Until,
    /// For how long in all, half of it with the change
    #[arg(long = "for", value_name = "DUR", default_value = "60s")]
    pub run_for: String,
    /// How often it is switched on and off
    #[arg(long, value_name = "N", default_value = "10")]
    pub rounds: u32,
    /// Keep the change if it helps; else it is taken back
    #[arg(long)]
    pub keep: bool,
    /// Only say what the commands change
    #[arg(long, conflicts_with = "keep")]
    pub show: bool,
    /// Take back what a killed tune left
    #[arg(long, conflicts_with_all = ["commands", "from", "keep", "show"])]
    pub undo: bool,
    /// JSON, schema rtscope.tune version 1
    #[arg(long, hide_short_help = true)]
    pub json: bool,
    /// Wait for the end of stdin, then take back what this process left.
    #[arg(long, value_name = "PID", hide = true)]
    pub guard: Option<u32>,
}

const EXAMPLES: &str = "\
Examples:
  sudo rtscope tune --task jackd --over 25ms 'taskset -pc 0 4711'
  sudo rtscope tune --from rtscope-snapshots/hit-0001 --keep
Exit codes: 0 it helped, 2 it made no difference or harm, 3 nothing was late.";
