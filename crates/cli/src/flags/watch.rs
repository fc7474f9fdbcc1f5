//! `rtscope watch`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::TrackerFlags;

/// What was typed after `watch`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLE, after_long_help = EXAMPLES)]
#[command(group = ArgGroup::new("tracked").multiple(true))]
pub struct Watch {
    /// Trackers of the kernel instead: 'list' shows them
    ///
    /// Each measures one kind of interval, of every task when none is named; docs/trackers.md has
    /// them all. Several are watched at once.
    #[arg(
        value_name = "TRACKER",
        group = "tracked",
        help_heading = "What to watch"
    )]
    pub tracker: Vec<String>,
    /// These tasks: name, id, pid:N, process:NAME
    ///
    /// TASK is a name (jackd, 'jack*'), a thread id (123), pid:123, process:NAME, prio:50 or rt;
    /// docs/tasks.md has them all. Repeatable.
    #[arg(long, value_name = "TASK", help_heading = "What to watch")]
    pub task: Vec<String>,
    /// The task with this thread id
    #[arg(
        long,
        value_name = "TID",
        conflicts_with = "task",
        help_heading = "What to watch"
    )]
    #[arg(hide_short_help = true)]
    pub tid: Option<i32>,
    /// All threads of this process, by its id
    #[arg(short, long, value_name = "PID", help_heading = "What to watch")]
    #[arg(hide_short_help = true)]
    pub pid: Vec<i32>,
    /// All threads of processes of this name
    ///
    /// That of its first thread, its program or its script. Real-time tasks of other processes that
    /// its real-time threads wake are judged with them.
    #[arg(long, value_name = "NAME", help_heading = "What to watch")]
    pub process: Vec<String>,
    /// Tasks of this control group, and of all below it: its path or the end of that
    #[arg(long, value_name = "PATH|NAME", help_heading = "What to watch")]
    #[arg(hide_short_help = true)]
    pub cgroup: Vec<String>,
    /// Tasks of this unit of systemd
    #[arg(long, value_name = "NAME", help_heading = "What to watch")]
    #[arg(hide_short_help = true)]
    pub unit: Vec<String>,
    /// Tasks of this container: docker, podman, containerd, nspawn, LXC, or a PID namespace
    #[arg(long, value_name = "NAME|ID", help_heading = "What to watch")]
    #[arg(hide_short_help = true)]
    pub container: Vec<String>,
    /// Every task of this machine
    #[arg(long, help_heading = "What to watch")]
    #[arg(conflicts_with_all = ["task", "tid", "pid", "process", "cgroup", "unit", "container"])]
    #[arg(conflicts_with_all = ["command", "real_time"])]
    #[arg(hide_short_help = true)]
    pub all: bool,
    /// Every real-time task (what happens when none is named)
    #[arg(long, help_heading = "What to watch")]
    #[arg(conflicts_with_all = ["task", "tid", "pid", "process", "cgroup", "unit", "container"])]
    #[arg(conflicts_with = "command")]
    #[arg(hide_short_help = true)]
    pub real_time: bool,
    /// Only tasks of at least this real-time priority, 1 to 99
    #[arg(long, value_name = "PRIO", help_heading = "What to watch")]
    #[arg(hide_short_help = true)]
    pub min_prio: Option<u32>,
    /// Only activations that end on these CPUs, as in 0-3,8
    #[arg(long, value_name = "LIST", help_heading = "What to watch")]
    #[arg(hide_short_help = true)]
    pub cpu: Option<String>,
    /// Only chains that begin with this interrupt: its number, or a part of its name
    #[arg(long, value_name = "N|NAME", help_heading = "What to watch")]
    #[arg(hide_short_help = true)]
    pub irq: Option<String>,
    /// Only chains through this softirq: its number or name, as in net_rx
    #[arg(long, value_name = "VEC", help_heading = "What to watch")]
    #[arg(hide_short_help = true)]
    pub softirq: Option<String>,
    /// Where an activation ends: block (work done) or switch-in
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        hide_default_value = true,
        value_name = "END",
        default_value = "block",
        help_heading = "What to watch"
    )]
    pub until: Until,

    /// Report what took longer than DUR, as in 25ms
    #[arg(long, value_name = "DUR", help_heading = "When to report")]
    pub over: Option<String>,
    /// Report only what is worse than everything before (what happens without --over)
    #[arg(long, help_heading = "When to report")]
    #[arg(hide_short_help = true)]
    pub new_worst: bool,
    /// Report when the application says so: line:TEXT, signal
    ///
    /// line:TEXT: it prints a line with TEXT. That is the output of COMMAND; without COMMAND, lines
    /// on the standard input (./app 2>&1 | sudo rtscope watch …). signal: somebody sends SIGUSR1 to
    /// rtscope. Told is an activation of the second before that is longer than --over and than is
    /// usual for its task, and nothing else; also one of a task that works with those that are
    /// meant. Repeatable.
    #[arg(long, value_name = "WHAT", help_heading = "When to report")]
    #[arg(conflicts_with_all = ["timeout", "new_worst", "tracker"])]
    pub trigger: Vec<String>,
    /// Report a task that still waits after DUR
    #[arg(long, value_name = "DUR", help_heading = "When to report")]
    #[arg(hide_short_help = true)]
    pub timeout: Option<String>,
    /// At most this many snapshots; the others are told in short, in late.ndjson
    ///
    /// So many of real-time tasks, and so many of others.
    #[arg(
        long,
        value_name = "N/s",
        default_value = "1/s",
        help_heading = "When to report"
    )]
    #[arg(hide_short_help = true)]
    pub rate: String,
    /// End after N reports
    #[arg(long, value_name = "N", help_heading = "When to report")]
    #[arg(hide_short_help = true)]
    pub max_hits: Option<u64>,
    /// End after DUR
    #[arg(
        long = "for",
        alias = "duration",
        value_name = "DUR",
        help_heading = "When to report"
    )]
    pub run_for: Option<String>,

    /// Run CMD for each report, with its JSON on stdin
    #[arg(long, value_name = "CMD", help_heading = "Output")]
    #[arg(hide_short_help = true)]
    pub exec: Option<String>,
    /// Call the function of this BPF object in the kernel at each hit
    ///
    /// Written with rtscope/action.bpf.h; docs/trackers.md shows one.
    #[arg(long, value_name = "FILE", conflicts_with = "trigger")]
    #[arg(hide_short_help = true, help_heading = "Output")]
    pub bpf_action: Option<PathBuf>,
    /// One JSON object a line
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Fill the terminal: histograms, the worst, who was in the way, what it costs
    #[arg(long, conflicts_with_all = ["json", "verbose", "trigger"])]
    #[arg(hide_short_help = true, help_heading = "Output")]
    pub tui: bool,
    /// Keep no flight recorder and save nothing
    #[arg(long, conflicts_with_all = ["output", "buffer", "events"], help_heading = "Output")]
    #[arg(hide_short_help = true)]
    pub no_snapshot: bool,
    /// Where snapshots go (default: rtscope-snapshots)
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// All that is known of each hit: every step, ledger, stacks
    #[arg(short, long, help_heading = "Output")]
    #[arg(hide_short_help = true)]
    pub verbose: bool,
    /// The worst hit so far as one page for a ticket, into FILE
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "no_snapshot",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub html: Option<PathBuf>,
    /// A page of this machine that shows hits as they happen; its URL is printed
    #[arg(
        long,
        conflicts_with = "tracker",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub view: bool,
    /// Snapshots that stay of each cause, the worst ones: N, SIZE or N/SIZE
    #[arg(
        long,
        value_name = "N/SIZE",
        default_value = "50",
        help_heading = "Output"
    )]
    #[arg(hide_short_help = true)]
    pub keep: String,
    /// Snapshots that earlier watches left in that folder count in --keep too
    #[arg(long, conflicts_with = "no_snapshot", help_heading = "Output")]
    #[arg(hide_short_help = true)]
    pub keep_earlier: bool,
    /// Flight recorder per CPU (default: 4M)
    #[arg(long, value_name = "SIZE", help_heading = "Output")]
    #[arg(hide_short_help = true)]
    pub buffer: Option<String>,
    /// Events that the flight recorder holds: a set, an event or a pattern; repeatable
    #[arg(
        long,
        value_name = "SET",
        value_delimiter = ',',
        help_heading = "Output"
    )]
    #[arg(hide_short_help = true)]
    pub events: Vec<String>,
    /// Keep events of applications too, as record --user does
    ///
    /// Repeatable.
    #[arg(
        long,
        value_name = "PATTERN",
        conflicts_with = "no_snapshot",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub user: Vec<String>,
    /// Run COMMAND, watch it and its children, end with it
    ///
    /// From their first instruction on. Beside --task or --process, those of them that are named so
    /// alone; beside an id, a control group, a unit or a container, COMMAND only runs.
    #[arg(last = true, value_name = "COMMAND", help_heading = "What to watch")]
    pub command: Vec<OsString>,

    /// Flags of trackers.
    #[command(flatten)]
    pub trackers: TrackerFlags,
}

/// Where an activation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Until {
    /// It has done its work and waits again.
    Block,
    /// The task is on its CPU.
    SwitchIn,
    /// It is back in user space.
    UserReturn,
}

const EXAMPLE: &str = "\
Example: sudo rtscope watch --task jackd --over 25ms";

const EXAMPLES: &str = "\
Examples:
  sudo rtscope watch                     the worst of all real-time tasks
  sudo rtscope watch --task jackd --over 25ms
                                         wait until jackd is late, then the answer
  sudo rtscope watch --task control --over 1ms --until switch-in
                                         how late it began, not its work
  sudo rtscope watch --process memcached --over 5ms
                                         all threads of the process, new ones too
  sudo rtscope watch --over 5ms -- ./app --its-flags
                                         a command and its children
  sudo rtscope watch --container web --over 5ms
                                         all tasks of a container; --unit, --cgroup
  sudo rtscope watch --task app --over 1ms --user 'app:*'
                                         its own last events in the snapshot too
  sudo rtscope watch --trigger line:missed -- ./app
                                         when it says itself that it was late
  sudo rtscope watch --task app --over 1ms --max-hits 1 --for 10m --json
  sudo rtscope watch syscall --task app --over 5ms --stacks
                                         its slow system calls, and where they waited

Exit codes: 0 fine, 2 something took longer than --over or --timeout, or --trigger said so, 3 hits
were lost, activations could not be judged and none was late, no activation of the named tasks was
judged, or at a trigger none of them was late.";
