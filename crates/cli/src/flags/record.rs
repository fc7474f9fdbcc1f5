//! `rtscope record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::TraceUntil;

/// What was typed after `record`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Record {
    /// Where the trace goes (default: rtscope-trace)
    ///
    /// It must not exist yet.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// End after DUR; else with COMMAND, or at Ctrl-C
    #[arg(long, value_name = "DUR", alias = "for")]
    pub duration: Option<String>,
    /// A set of events, one event, a pattern; repeatable
    #[arg(long, value_name = "SET", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Events of applications: GLOB[:LEVEL][ FILTER]
    ///
    /// Of those that are linked with librtscope-probe, as in 'npt:*:info i > 5'; alone, or beside
    /// the kernel's with --events. Repeatable.
    #[arg(long, value_name = "PATTERN")]
    pub user: Vec<String>,
    /// What these carry too, as in procname,prio
    ///
    /// procname, prio, policy, cpu_id, ip, vuid, pid_ns and more: docs/contexts.md has them.
    #[arg(long, value_name = "LIST", requires = "user")]
    pub context: Vec<String>,
    /// Write nothing: these keep their newest events
    ///
    /// With --user alone; rtscope snapshot writes what they hold, rtscope recover what crashed
    /// ones left.
    #[arg(long, requires = "user", conflicts_with_all = ["events", "filter", "output"])]
    pub flight: bool,
    /// Only say which events --events means here
    #[arg(long)]
    pub list_events: bool,
    /// EVENT only where EXPR holds; repeatable
    ///
    /// The kernel decides, before it writes the event.
    #[arg(long, value_name = "EVENT: EXPR")]
    pub filter: Vec<String>,
    /// What memory each process has mapped, in the state dump
    ///
    /// The kernel locks a process's memory while it is asked.
    #[arg(long, hide_short_help = true)]
    pub maps: bool,
    /// Record the system calls of rtscope itself too
    ///
    /// Without it they are left out in the kernel, and counted.
    #[arg(long = "self", hide_short_help = true)]
    pub own_calls: bool,
    /// Whose worst delay is told at the end (default: rt)
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
    /// Tasks of this control group, and of all below it: its path or the end of that
    #[arg(long, value_name = "PATH|NAME")]
    #[arg(hide_short_help = true)]
    pub cgroup: Vec<String>,
    /// Tasks of this unit of systemd
    #[arg(long, value_name = "NAME")]
    #[arg(hide_short_help = true)]
    pub unit: Vec<String>,
    /// Tasks of this container: docker, podman, containerd, nspawn, LXC, or a PID namespace
    #[arg(long, value_name = "NAME|ID")]
    #[arg(hide_short_help = true)]
    pub container: Vec<String>,
    /// To the end of its work (block), or of its wait (switch-in)
    #[arg(long, value_enum, value_name = "END", default_value = "block")]
    #[arg(hide_possible_values = true, hide_short_help = true)]
    pub until: TraceUntil,
    /// Kernel buffer per CPU (default: 4M)
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,
    /// Run COMMAND and record until it ends
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  sudo rtscope record -- ./app                  and the worst delay in it
  sudo rtscope record --duration 10s --events sched,irq -o trace
  rtscope record --user 'npt:*' -- ./npt        no kernel events, no root";
