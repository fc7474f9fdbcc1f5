//! `rtscope record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// What was typed after `record`.
#[derive(Clone, Debug, Args)]
pub struct Record {
    /// Where the trace goes; must not exist (default: rtscope-trace)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// End after DUR, as in 10s (default: with COMMAND, or at Ctrl-C)
    #[arg(long, value_name = "DUR")]
    pub duration: Option<String>,
    /// A set of events, one event, or a pattern; repeatable
    #[arg(long, value_name = "SET", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Record events of applications linked with librtscope-probe: GLOB[:LEVEL][ FILTER], as in
    /// 'npt:*:info i > 5'; alone, or beside the kernel's with --events; repeatable
    #[arg(long, value_name = "PATTERN")]
    pub user: Vec<String>,
    /// What events of applications carry too: procname, prio, policy, cpu_id, ip, vuid, pid_ns and
    /// more; see docs/contexts.md
    #[arg(long, value_name = "LIST", requires = "user")]
    pub context: Vec<String>,
    /// Write nothing: applications keep their newest events for rtscope snapshot; with --user alone
    #[arg(long, requires = "user", conflicts_with_all = ["events", "filter", "output"])]
    pub flight: bool,
    /// Say which events --events means on this kernel, and record nothing
    #[arg(long)]
    pub list_events: bool,
    /// Record EVENT only where EXPR holds, decided in the kernel; repeatable
    #[arg(long, value_name = "EVENT: EXPR")]
    pub filter: Vec<String>,
    /// Kernel buffer per CPU (default: 4M)
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,
    /// Run COMMAND and record until it ends
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
