//! `rtscope monitor`: latencies for months.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What was typed after `monitor`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Monitor {
    /// What to do with a store instead of writing one.
    #[command(subcommand)]
    pub what: Option<MonitorWhat>,
    /// Count these tasks too, apart
    ///
    /// Name, id, pid:N, process:NAME; docs/tasks.md has them all. Repeatable.
    #[arg(long, value_name = "TASK")]
    pub task: Vec<String>,
    /// Count the tasks of this control group too, apart: its path or the end of that
    #[arg(long, value_name = "PATH|NAME", hide_short_help = true)]
    pub cgroup: Vec<String>,
    /// Count the tasks of this unit of systemd too, apart
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub unit: Vec<String>,
    /// Count the tasks of this container too, apart
    #[arg(long, value_name = "NAME|ID", hide_short_help = true)]
    pub container: Vec<String>,
    /// Count every task too
    #[arg(long, hide_short_help = true)]
    pub all: bool,
    /// Count what this tracker of 'watch' measures too, as in block or softirq; repeatable
    ///
    /// Of the same tasks as the phases; 'rtscope watch list' has the trackers.
    #[arg(long, value_name = "TRACKER", hide_short_help = true)]
    pub tracker: Vec<String>,
    /// Count from this event to the one of --to too: a pair, as 'watch' measures it
    #[arg(
        long,
        value_name = "EVENT[/FILTER]",
        requires = "to",
        hide_short_help = true
    )]
    pub from: Option<String>,
    /// To this event
    #[arg(
        long,
        value_name = "EVENT[/FILTER]",
        requires = "from",
        hide_short_help = true
    )]
    pub to: Option<String>,
    /// What both have in common (default: $tid, the same thread)
    #[arg(long, value_name = "EXPR", requires = "from", hide_short_help = true)]
    pub key: Option<String>,
    /// Close an interval every DUR
    #[arg(long, value_name = "DUR")]
    pub every: Option<String>,
    /// Watch too: snapshot and ledger of what is later than DUR
    ///
    /// What comes on a CPU later than that, from the expiry of its timer, or its wake-up; with
    /// --return to the end of its system call.
    #[arg(long, value_name = "DUR")]
    pub over: Option<String>,
    /// Where those snapshots go (default: STORE-snapshots)
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub snapshots: Option<PathBuf>,
    /// Snapshots that stay of each cause, the worst ones: N, SIZE or N/SIZE (default: 20/200M)
    #[arg(long, value_name = "N/SIZE", hide_short_help = true)]
    pub keep_snapshots: Option<String>,
    /// Stop after DUR
    #[arg(long = "for", alias = "duration", value_name = "DUR")]
    pub run_for: Option<String>,
    /// The store
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Serve /metrics on this port of this machine
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Serve on this address and port, for other machines too; needs --token-file
    #[arg(
        long,
        value_name = "ADDR",
        conflicts_with = "port",
        hide_short_help = true
    )]
    pub listen: Option<String>,
    /// What whoever asks from another machine must know: the first line of FILE
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub token_file: Option<PathBuf>,
    /// Count the return to user space too: a program at the end of every system call
    #[arg(long = "return", hide_short_help = true)]
    pub until_return: bool,
    /// Count real-time tasks in buckets of a microsecond too, as OSADL's kernels do
    #[arg(long, hide_short_help = true)]
    pub linear: bool,
    /// Remove intervals that are older than DUR
    #[arg(long, value_name = "DUR", hide_short_help = true)]
    pub keep: Option<String>,
    /// Remove the oldest intervals when the store is longer than SIZE
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub keep_size: Option<String>,
    /// Settings in TOML; what is typed goes before them
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only say whether the settings make sense
    #[arg(long, requires = "config", hide_short_help = true)]
    pub check_config: bool,
}

/// What is done with a store.
#[derive(Clone, Debug, Subcommand)]
pub enum MonitorWhat {
    /// The phases, and the longest of each interval with victim and culprit
    Report(MonitorReport),
    /// The intervals for other tools
    Export(MonitorExport),
    /// What is new, into the tables of a fleet
    Push(MonitorPush),
}

/// Which store, and which part of it.
#[derive(Clone, Debug, Args)]
pub struct MonitorPart {
    /// The store
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Only the last DUR, as in 24h
    #[arg(long, value_name = "DUR")]
    pub last: Option<String>,
}

/// What was typed after `monitor report`.
#[derive(Clone, Debug, Args)]
#[command(after_help = REPORT_EXAMPLE)]
pub struct MonitorReport {
    /// The store and its part.
    #[command(flatten)]
    pub part: MonitorPart,
    /// Whose latencies
    #[arg(
        long,
        value_enum,
        default_value = "realtime",
        hide_possible_values = true
    )]
    pub scope: ScopeName,
    /// Show the longest of so many intervals
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
}

/// What was typed after `monitor export`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct MonitorExport {
    /// The store and its part.
    #[command(flatten)]
    pub part: MonitorPart,
    /// csv, json (a line each), gnuplot, osadl (files as its kernels have), or parquet
    #[arg(long, value_enum, default_value = "csv", hide_possible_values = true)]
    pub to: MonitorFormat,
    /// Write there instead of to stdout; osadl and parquet need a folder
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
}

/// What was typed after `monitor push`.
#[derive(Clone, Debug, Args)]
#[command(after_help = PUSH_EXAMPLES)]
pub struct MonitorPush {
    /// The store
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// The fleet's folder, which has to be there, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "DIR", required_unless_present = "config")]
    pub to: Option<String>,
    /// The object store's server, as in http://HOST:PORT; without it Amazon's
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// The bucket's region
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// A watch's folder of snapshots: push its log of late activations too
    #[arg(long, value_name = "DIR")]
    pub snapshots: Option<PathBuf>,
    /// Push what was pushed before too, to the same names
    #[arg(long)]
    pub again: bool,
    /// The monitor's settings in TOML; what is typed goes before them
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Whose latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum ScopeName {
    /// Real-time tasks.
    RealTime,
    /// Those that were named.
    Named,
    /// Every task.
    All,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MonitorFormat {
    /// A table.
    Csv,
    /// Lines of JSON.
    Json,
    /// Blocks for gnuplot.
    Gnuplot,
    /// OSADL's files.
    Osadl,
    /// The tables of a fleet.
    Parquet,
}

const EXAMPLES: &str = "\
Examples:
  sudo rtscope monitor --port 9464        every real-time task, until Ctrl-C
  rtscope monitor report --last 24h       the phases, and who was late
  rtscope monitor export --to json        docs/monitor.md has the rest";

const REPORT_EXAMPLE: &str = "\
Example: rtscope monitor report --last 24h --top 3";

const PUSH_EXAMPLES: &str = "\
Examples:
  rtscope monitor push --to /mnt/fleet
  rtscope monitor push --to s3://BUCKET/PREFIX --endpoint https://HOST
  rtscope monitor push --config /etc/rtscope/monitor.toml   as its [fleet] says";

const EXPORT_EXAMPLES: &str = "\
Examples:
  rtscope monitor export --last 7d -o week.csv
  rtscope monitor export --to osadl -o DIR   of a store that was written with --linear";
