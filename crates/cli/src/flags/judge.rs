//! Verbs that judge traces: `rtscope check` and `rtscope diff`.

use std::path::PathBuf;

use clap::Args;

use super::{TraceGroups, TraceUntil, Window};

/// What was typed after `check`.
#[derive(Clone, Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct Check {
    /// Traces, read as one, or a monitor's store
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// Budgets, one per line; see docs/check.md
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// A budget, or the definition of a period; repeatable
    #[arg(long, value_name = "RULE", required_unless_present_any = ["rules", "task"])]
    pub rule: Vec<String>,
    /// With --over: the response of these tasks, as a budget
    ///
    /// The same as --rule 'response of TASK within DUR'. Repeatable.
    #[arg(long, value_name = "TASK", requires = "over")]
    pub task: Vec<String>,
    /// With --task: what is late
    #[arg(long, value_name = "DUR", requires = "task")]
    pub over: Option<String>,
    /// What a trace does not know.
    #[command(flatten)]
    pub groups: TraceGroups,
    /// The result as JUnit, into FILE
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub junit: Option<PathBuf>,
    /// The part to look at.
    #[command(flatten)]
    pub window: Window,
    /// Of a store: only the last DUR, as in 24h
    #[arg(long, value_name = "DUR", conflicts_with_all = ["begin", "end"], hide_short_help = true)]
    pub last: Option<String>,
    /// JSON, schema rtscope.check version 1
    #[arg(long)]
    pub json: bool,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  rtscope check TRACE --rule 'wake-up of npt within 100us p99.9'
  rtscope check TRACE --task npt --over 1ms
  rtscope check STORE --last 24h --rule 'wake-up of rt within 1ms' --junit FILE

Exit codes: 0 all held, 2 one is broken, 3 the trace does not carry a statement.";

/// What was typed after `diff`.
#[derive(Clone, Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct Diff {
    /// The trace, snapshot or monitor's store before, and the one after
    ///
    /// With --after all of these are before.
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// Several of each: those after
    ///
    /// Only several show how much recordings of the same differ. Name those before first.
    #[arg(long, value_name = "T", num_args = 1..)]
    pub after: Vec<PathBuf>,
    /// Late activations of these tasks: name, id, pid:N, prio:N
    ///
    /// TASK is a name (jackd, 'jack*'), a thread id (123), pid:123, process:NAME, prio:50 or rt;
    /// docs/tasks.md has them all. Repeatable.
    #[arg(long, value_name = "TASK")]
    pub task: Vec<String>,
    /// The same for the thread with this id
    #[arg(long, value_name = "TID", hide_short_help = true)]
    pub tid: Option<i32>,
    /// The same for all threads of this process, by its id
    #[arg(short, long, value_name = "PID", hide_short_help = true)]
    pub pid: Vec<i32>,
    /// The same for all threads of processes whose first thread has this name
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub process: Vec<String>,
    /// What a trace does not know.
    #[command(flatten)]
    pub groups: TraceGroups,
    /// To the end of its work (block), or of its wait (switch-in)
    #[arg(long, value_enum, value_name = "END", default_value = "block")]
    #[arg(hide_possible_values = true, hide_short_help = true)]
    pub until: TraceUntil,
    /// Late means longer than DUR, as in 100us
    #[arg(long, value_name = "DUR")]
    pub over: Option<String>,
    /// The N worst activations of each
    #[arg(long, value_name = "N", default_value_t = 1000, hide_short_help = true)]
    pub worst: usize,
    /// The result as JUnit, into FILE
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub junit: Option<PathBuf>,
    /// The part to look at, of each.
    #[command(flatten)]
    pub window: Window,
    /// Of a store after: from here, where --begin and --end are those of the one before
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub after_begin: Option<String>,
    /// Of a store after: up to here
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub after_end: Option<String>,
    /// Of one store: the last DUR against as long before it
    #[arg(long, value_name = "DUR", conflicts_with_all = ["begin", "end", "after"])]
    #[arg(hide_short_help = true)]
    pub last: Option<String>,
    /// JSON, schema rtscope.diff version 1
    #[arg(long)]
    pub json: bool,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  rtscope diff OLD NEW --task npt --over 100us
  rtscope diff OLD-* --after NEW-* --task npt --junit result.xml
  rtscope diff STORE --last 7d     a monitor's: slower than the week before?

Exit codes: 0 nothing got worse, 2 a cause is new, more frequent or slower,
3 losses forbid a statement, or a trace holds no activation.";
