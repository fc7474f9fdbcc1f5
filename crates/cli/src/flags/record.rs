//! `rtscope record`, also of sessions.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::{RecordTo, TraceUntil};

/// Which events are recorded, here and in sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Serialize)]
pub struct RecordWhat {
    /// A set of events, one event, a pattern; repeatable
    #[arg(long, value_name = "SET", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Events of applications: GLOB[:LEVEL][ FILTER]
    ///
    /// Of those that are linked with librtscope-probe, as in 'npt:*:info i > 5'; alone, or beside
    /// the kernel's with --events. Repeatable.
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "*")]
    pub user: Vec<String>,
    /// Without these of --user, as in 'npt:noise'; repeatable
    #[arg(
        long,
        value_name = "PATTERN",
        requires = "user",
        hide_short_help = true
    )]
    pub exclude: Vec<String>,
    /// Applications' buffer per CPU (default: 8M, less of many)
    ///
    /// Of programs that start while they are recorded: buffers are made when a program starts. A
    /// program's own RTSCOPE_RING_SIZE goes before it.
    #[arg(long, value_name = "SIZE", requires = "user", hide_short_help = true)]
    pub ring: Option<String>,
    /// Memory for the buffers of all programs of a user together
    ///
    /// The more run, the smaller are the buffers of those that start next, 8K for each CPU at
    /// least. Who finds nothing left runs on; it is named, and its events are counted as lost.
    #[arg(long, value_name = "SIZE", requires = "user", hide_short_help = true)]
    pub rings_per_user: Option<String>,
    /// What each event carries too, as in procname,prio
    ///
    /// Of both: procname, prio, vpid, vtid, cpu_id, vuid, veuid, vsuid, vgid, vegid, vsgid,
    /// cgroup_ns, ipc_ns, mnt_ns, net_ns, pid_ns, time_ns, user_ns, uts_ns. Of the kernel alone:
    /// tid, pid, ppid, vppid, nice, uid, euid, suid, gid, egid, sgid, hostname, interruptible,
    /// preemptible, preempt_count, migratable, need_reschedule, irq_context, callstack-kernel,
    /// callstack-user, perf:cpu:COUNTER. Of applications alone: policy, ip, $app.PROVIDER:CONTEXT.
    /// docs/contexts.md says of when each is, and what it costs.
    #[arg(long, value_name = "LIST")]
    pub context: Vec<String>,
    /// EVENT only where EXPR holds; repeatable
    ///
    /// The kernel decides, before it writes the event: as in 'sched_switch: next_prio < 0'. What is
    /// recorded is what 'cat --filter' lets through; what the kernel cannot answer so is refused.
    /// Of several for one EVENT, any may hold. docs/filter.md is the language.
    #[arg(long, value_name = "EVENT: EXPR")]
    pub filter: Vec<String>,
    /// Only events of WHOM and of all that descend from them; repeatable
    ///
    /// A task as in --task (jackd, pid:4711, process:NAME), user:NAME, cgroup:PATH, unit:NAME,
    /// container:NAME, or command: what is run here, from its first instruction on. The kernel
    /// leaves out the rest; switches and wake-ups of WHOM are kept whole.
    #[arg(long, value_name = "WHOM", hide_short_help = true)]
    pub track: Vec<String>,
    /// An event at a function of a program: [NAME=]FILE:FUNCTION [FIELD=EXPR[:TYPE]]…
    ///
    /// As in 'alloc=libc.so.6:malloc size=arg1:size_t'; docs/probes.md has the expressions. Alone,
    /// or beside the kernel's events with --events. Repeatable, as the four below.
    #[arg(long, value_name = "PROBE", hide_short_help = true)]
    pub uprobe: Vec<String>,
    /// The same where the function returns: 'got=libc.so.6:malloc at=ret:pointer'
    #[arg(long, value_name = "PROBE", hide_short_help = true)]
    pub uretprobe: Vec<String>,
    /// At a marker of a program (USDT): [NAME=]FILE:PROVIDER:MARKER, or pid:N for FILE
    #[arg(long, value_name = "PROBE", hide_short_help = true)]
    pub usdt: Vec<String>,
    /// At a function of the kernel: [NAME=]FUNCTION [FIELD=EXPR[:TYPE]]…
    #[arg(long, value_name = "PROBE", hide_short_help = true)]
    pub probe: Vec<String>,
    /// The same where it returns
    #[arg(long, value_name = "PROBE", hide_short_help = true)]
    pub retprobe: Vec<String>,
    /// Functions of the kernel, where each begins and returns: names, 'vfs_*'
    ///
    /// By the kernel's function_graph tracer, in an instance of ours; docs/probes.md says what
    /// older kernels give. Alone, or beside the kernel's events with --events. Repeatable.
    #[arg(
        long,
        value_name = "GLOB",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub functions: Vec<String>,
    /// Probes, events and filters in TOML; 'locking' and 'memory' are there
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub event_file: Vec<String>,
    /// What memory each process has mapped, in the state dump
    ///
    /// The kernel locks a process's memory while it is asked.
    #[arg(long, hide_short_help = true)]
    pub maps: bool,
    /// Record the system calls of rtscope itself too
    ///
    /// Without it they are left out in the kernel, and counted.
    #[arg(long = "self", hide_short_help = true)]
    #[serde(rename = "self")]
    pub own_calls: bool,
    /// Events in buffers of their own: NAME events=LIST [buffer=SIZE] [mode=MODE]
    ///
    /// As in 'irqs events=irq,softirq buffer=16M': what comes often takes no room from what is
    /// rare. A channel takes its events from those of --events; all channels are one trace. A full
    /// one overwrites its oldest events (overwrite), or refuses the newest (discard). Repeatable.
    #[arg(long, value_name = "CHANNEL", hide_short_help = true)]
    pub channel: Vec<String>,
    /// Kernel buffer per CPU (default: 4M)
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,
}

/// What was typed after `record`.
#[derive(Clone, Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES,
    after_long_help = LONG_EXAMPLES
)]
pub struct Record {
    /// What to do with a session instead.
    #[command(subcommand)]
    pub session: Option<RecordSession>,
    /// Where the trace goes (default: rtscope-trace)
    ///
    /// It must not exist yet.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// End after DUR; else with COMMAND, or at Ctrl-C
    #[arg(long, value_name = "DUR", alias = "for")]
    pub duration: Option<String>,
    /// Which events.
    #[command(flatten)]
    pub what: RecordWhat,
    /// Where it goes besides.
    #[command(flatten)]
    pub to: RecordTo,
    /// Keep the kernel's pages as they are; rtscope convert makes a trace of them
    ///
    /// The kernel hands its pages over to the file, and nobody looks at them while it records:
    /// the least work for the recorder. 'rtscope convert DIR --to ctf -o TRACE' gives the trace
    /// that it would have written.
    #[arg(long, conflicts_with_all = ["to", "flight"], hide_short_help = true)]
    pub raw: bool,
    /// Write nothing: these keep their newest events
    ///
    /// With --user alone; rtscope snapshot writes what they hold, rtscope recover what crashed
    /// ones left.
    #[arg(long, requires = "user", conflicts_with_all = ["events", "filter", "output", "to"])]
    pub flight: bool,
    /// Only list the events; of --user, who has them now
    #[arg(long, alias = "list")]
    pub list_events: bool,
    /// Print what the kernel's command line needs to record a boot: these events, this buffer
    ///
    /// With '=persistent' the ring outlives a crash. docs/boot.md has the rest.
    #[arg(
        long,
        value_enum,
        value_name = "MEMORY",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "plain",
        conflicts_with_all = [
            "output", "duration", "to", "flight", "list_events", "user", "filter", "uprobe",
            "uretprobe", "usdt", "probe", "retprobe", "maps", "command", "channel",
        ],
        hide_short_help = true
    )]
    pub at_boot: Option<BootMemory>,
    /// Make a trace of what such a boot recorded
    #[arg(
        long,
        conflicts_with_all = [
            "at_boot", "duration", "to", "flight", "list_events", "user", "filter", "events",
            "functions", "uprobe", "uretprobe", "usdt", "probe", "retprobe", "event_file",
            "buffer", "command", "channel",
        ],
        hide_short_help = true
    )]
    pub import_boot: bool,
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
    /// Run COMMAND and record until it ends
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Where the ring of a boot lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BootMemory {
    /// In the kernel's memory
    Plain,
    /// In reserved memory, which the next boot finds again
    Persistent,
}

impl From<BootMemory> for capture::BootMemory {
    fn from(typed: BootMemory) -> Self {
        match typed {
            BootMemory::Plain => capture::BootMemory::Plain,
            BootMemory::Persistent => capture::BootMemory::Reserved,
        }
    }
}

/// What is done with a session: a recording by name that outlives the terminal.
#[derive(Clone, Debug, Subcommand)]
pub enum RecordSession {
    /// Begin to record in the background, as NAME
    #[command(hide = true)]
    Start(Box<RecordStart>),
    /// The process of a session, started by `start`
    #[command(hide = true)]
    Serve(Box<RecordStart>),
    /// End it; of one that died, finish its archive
    #[command(hide = true, after_help = STOP_EXAMPLE)]
    Stop(SessionOf),
    /// What it does, how full its rings are, what was lost
    #[command(hide = true, after_help = STATUS_EXAMPLE)]
    Status(SessionOf),
    /// End its archive and go on in another, without a loss
    #[command(hide = true, after_help = ROTATE_EXAMPLE)]
    Rotate(SessionOf),
    /// Write what the rings of one in flight hold
    #[command(hide = true, after_help = SNAPSHOT_EXAMPLE)]
    Snapshot(SessionOf),
    /// Forget what it recorded since its last archive
    #[command(hide = true, after_help = CLEAR_EXAMPLE)]
    Clear(SessionOf),
    /// Write the machine's state into its archive: tasks, files, interrupts
    #[command(hide = true, after_help = DUMP_EXAMPLE)]
    Dump(SessionOf),
    /// Record what WHOM does too, of one that records some alone
    #[command(hide = true, after_help = TRACK_EXAMPLE)]
    Track(SessionTrack),
    /// Record no more what WHOM does
    #[command(hide = true, after_help = UNTRACK_EXAMPLE)]
    Untrack(SessionUntrack),
    /// Print what it was started with, as a file for --config
    #[command(hide = true, after_help = SAVE_EXAMPLE)]
    Save(SessionSave),
    /// All sessions
    #[command(hide = true, after_help = LIST_EXAMPLE)]
    List(SessionList),
}

/// What was typed after `record start`.
#[derive(Clone, Debug, Args)]
#[command(after_help = START_EXAMPLES)]
pub struct RecordStart {
    /// What it is called
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The folder of its archives (default: rtscope-NAME)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Which events.
    #[command(flatten)]
    pub what: RecordWhat,
    /// Where it goes besides.
    #[command(flatten)]
    pub to: RecordTo,
    /// Keep the newest events in memory, for snapshots
    #[arg(long, conflicts_with_all = ["rotate_every", "rotate_size"])]
    pub flight: bool,
    /// A new archive every DUR
    #[arg(long, value_name = "DUR")]
    pub rotate_every: Option<String>,
    /// A new archive when it is so large, as in 100M
    #[arg(long, value_name = "SIZE")]
    pub rotate_size: Option<String>,
    /// Archives that stay: N, SIZE or N/SIZE
    #[arg(long, value_name = "N/SIZE")]
    pub keep: Option<String>,
    /// End by itself after DUR
    #[arg(long, value_name = "DUR", alias = "for", hide_short_help = true)]
    pub duration: Option<String>,
    /// Settings in TOML; what is typed goes before them
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only say whether the settings make sense
    #[arg(long, hide_short_help = true)]
    pub check_config: bool,
}

/// Which session.
#[derive(Clone, Debug, Args)]
pub struct SessionOf {
    /// What it is called
    #[arg(value_name = "NAME")]
    pub name: String,
    /// For programs: schema rtscope.session
    #[arg(long)]
    pub json: bool,
}

/// Whom a session is to track too.
#[derive(Clone, Debug, Args)]
pub struct SessionTrack {
    /// Which session.
    #[command(flatten)]
    pub of: SessionOf,
    /// As in --track: jackd, pid:123, process:NAME, user:NAME, unit:NAME, container:NAME
    #[arg(value_name = "WHOM", required = true)]
    pub whom: Vec<String>,
}

/// Whom a session is to track no more.
#[derive(Clone, Debug, Args)]
pub struct SessionUntrack {
    /// Which session.
    #[command(flatten)]
    pub of: SessionOf,
    /// In the words in which it tracks them
    #[arg(
        value_name = "WHOM",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub whom: Vec<String>,
    /// All that it tracks: nobody is left
    #[arg(long)]
    pub all: bool,
}

/// Where the settings of a session go.
#[derive(Clone, Debug, Args)]
pub struct SessionSave {
    /// What it is called
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Into FILE, which must not exist yet (default: stdout)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How sessions are listed.
#[derive(Clone, Debug, Args)]
pub struct SessionList {
    /// For programs: schema rtscope.session
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo rtscope record -- ./app                  and the worst delay in it
  rtscope record --user 'npt:*' -- ./npt        no kernel events, no root
  sudo rtscope record start NAME                in the background, by a name";

const LONG_EXAMPLES: &str = "\
Examples:
  sudo rtscope record -- ./app                  and the worst delay in it
  sudo rtscope record --duration 10s --events sched,irq -o trace
  rtscope record --user 'npt:*' -- ./npt        no kernel events, no root
  sudo rtscope record --to logger --token-file token
                                                another host gets it meanwhile: rtscope receive

Sessions outlive the terminal (docs/sessions.md):
  sudo rtscope record start NAME --rotate-every 10m --keep 20
  sudo rtscope record start NAME --flight --user 'npt:*' --events default
  sudo rtscope record status NAME               also rotate, snapshot, clear, dump, track,
                                                untrack, save, stop
  sudo rtscope record list";

const START_EXAMPLES: &str = "\
Examples:
  sudo rtscope record start night --rotate-every 10m --keep 20
  sudo rtscope record start box --flight      then: record snapshot box";

const STOP_EXAMPLE: &str = "Example: sudo rtscope record stop night";
const STATUS_EXAMPLE: &str = "Example: sudo rtscope record status night --json";
const ROTATE_EXAMPLE: &str = "Example: sudo rtscope record rotate night";
const SNAPSHOT_EXAMPLE: &str = "Example: sudo rtscope record snapshot box";
const CLEAR_EXAMPLE: &str = "Example: sudo rtscope record clear night";
const DUMP_EXAMPLE: &str = "Example: sudo rtscope record dump night";
const TRACK_EXAMPLE: &str = "Example: sudo rtscope record track web unit:nginx pid:123";
const UNTRACK_EXAMPLE: &str = "Example: sudo rtscope record untrack web pid:123";
const SAVE_EXAMPLE: &str = "\
Example:
  sudo rtscope record save night -o night.toml
  sudo rtscope record start night --config night.toml";
const LIST_EXAMPLE: &str = "Example: sudo rtscope record list";
