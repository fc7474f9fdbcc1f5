//! `rtscope measure deadline`.

use clap::Args;

/// What was typed after `measure deadline`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Deadline {
    /// A task with these times; repeatable
    ///
    /// How much CPU time it may take in each period, until when it has to be done, counted from its
    /// release, and from one release to the next.
    #[arg(
        long,
        value_name = "RUNTIME:DEADLINE:PERIOD",
        default_value = "200us:1ms:1ms"
    )]
    pub task: Vec<String>,
    /// Of each so many
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub times: u32,
    /// The part of its runtime that each works in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=99))]
    pub work: u32,
    /// End after this (default: at Ctrl-C)
    #[arg(long = "for", alias = "duration", value_name = "DUR")]
    pub run_for: Option<String>,
    /// Exit with 2 when a task begins later after its release, too
    #[arg(long, value_name = "DUR")]
    pub over: Option<String>,
    /// JSON, schema rtscope.deadline version 1
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo rtscope measure deadline --for 60s
  sudo rtscope measure deadline --task 2ms:5ms:10ms --task 100us:500us:1ms
Exit codes: 2 a deadline was missed or a release skipped, 3 interrupted.";
