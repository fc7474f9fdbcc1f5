//! Verbs that read a trace: `rtscope diagnose` and `rtscope info`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::TraceGroups;

/// The part of a trace to look at; the same words for every verb.
#[derive(Clone, Debug, Default, Args)]
pub struct Window {
    /// From here: +1.5s (of the trace), 530.25 or 12:30:05.25
    ///
    /// Seconds of the trace's clock (530.25) or since 1970, after its start (+1.5s), or of the wall
    /// clock (12:30:05.25, '2026-01-30 12:30:05').
    #[arg(long, value_name = "TIME")]
    pub begin: Option<String>,
    /// Stop at this time, inclusive
    #[arg(long, value_name = "TIME")]
    pub end: Option<String>,
    /// Only these CPUs, as in 0-3,8
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<String>,
}

/// Where an activation that is found in a trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceUntil {
    /// It has done its work and waits again.
    Block,
    /// The task is on its CPU.
    SwitchIn,
}

impl From<TraceUntil> for diagnosis::Until {
    fn from(until: TraceUntil) -> Self {
        match until {
            TraceUntil::Block => diagnosis::Until::Block,
            TraceUntil::SwitchIn => diagnosis::Until::SwitchIn,
        }
    }
}

/// What was typed after `diagnose`.
#[derive(Clone, Debug, Args)]
#[command(after_help = DIAGNOSE_EXAMPLES, after_long_help = DIAGNOSE_LONG)]
pub struct Diagnose {
    /// The trace or snapshot
    ///
    /// Several of one time, such as the kernel's and an application's, are read as one.
    #[arg(required = true)]
    pub trace: Vec<PathBuf>,
    /// Late activations of these tasks: name, id, pid:N, prio:N
    ///
    /// TASK is a name (jackd, 'jack*'), a thread id (123), pid:123, process:NAME, prio:50 or rt;
    /// docs/tasks.md has them all. Repeatable.
    #[arg(long, value_name = "TASK")]
    pub task: Vec<String>,
    /// Late activations of the task with this thread id
    #[arg(
        long,
        value_name = "TID",
        conflicts_with = "task",
        hide_short_help = true
    )]
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
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub until: TraceUntil,
    /// Late means longer than DUR, as in 100us
    #[arg(long, value_name = "DUR")]
    pub over: Option<String>,
    /// The N worst activations
    ///
    /// Where no task is named, also N that others took most of, and N of the kernel's threads.
    #[arg(long, value_name = "N")]
    pub worst: Option<u64>,
    /// The part to look at.
    #[command(flatten)]
    pub window: Window,
    /// All of it: steps, ledger, stacks, all advice
    #[arg(short, long)]
    pub verbose: bool,
    /// One page for a ticket, into FILE
    ///
    /// Answer, picture of the window, evidence, machine; text and JSON inside. It needs no other
    /// file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The picture of that page alone, into FILE
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub svg: Option<PathBuf>,
    /// JSON, schema rtscope.diagnosis version 1
    #[arg(long)]
    pub json: bool,
}

/// What was typed after `info`.
#[derive(Clone, Debug, Args)]
#[command(after_help = INFO_EXAMPLES)]
pub struct Info {
    /// The trace or snapshot
    ///
    /// Several are read as one.
    #[arg(required = true)]
    pub trace: Vec<PathBuf>,
    /// The part to count.
    #[command(flatten)]
    pub window: Window,
    /// Fail where the trace breaks its format's standard
    ///
    /// What reading does not need is a warning otherwise. Metadata that CTF 1.8 forbids, bytes that
    /// make no sense, packets and events that go back in time: with this flag, each is an error,
    /// exit code 1.
    #[arg(long)]
    pub strict: bool,
    /// JSON, schema rtscope.info version 1
    #[arg(long)]
    pub json: bool,
}

const DIAGNOSE_EXAMPLES: &str = "\
Examples:
  rtscope diagnose SNAPSHOT              the answer of the watch again
  rtscope diagnose SNAPSHOT --html FILE  one page for the ticket
  rtscope diagnose TRACE --task npt --over 100us --begin +1.5s";

const DIAGNOSE_LONG: &str = "\
Examples:
  rtscope diagnose SNAPSHOT              the answer of the watch again
  rtscope diagnose SNAPSHOT -v           every step, the ledger, stacks
  rtscope diagnose SNAPSHOT --html late.html
                                         one file for the ticket, which opens anywhere
  rtscope diagnose TRACE --task npt --over 100us --begin +1.5s

Exit codes: 0 nothing was late, or it is proven who did it; 2 the same, over
--over; 3 no cause is proven, or nothing was seen.";

const INFO_EXAMPLES: &str = "\
Examples:
  rtscope info TRACE
  rtscope info TRACE --strict            for whoever writes a tracer
  rtscope info TRACE --begin +1.5s --end +2s --json";
