//! What was typed. Parsing touches no system; `crate::options` says what it means.

mod cat;
mod convert;
mod cyclictest;
mod deadline;
mod demo;
mod doctor;
mod elsewhere;
mod eval;
mod getopt;
mod groups;
mod judge;
mod late;
mod length;
mod load_part;
mod looping;
mod measure;
mod mistakes;
mod monitor;
mod peers;
mod preempt;
mod read;
mod receive;
mod record;
mod report;
mod rings;
mod shield;
mod trackers;
mod tune;
mod view;
mod watch;
mod words;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

pub use cat::{Cat, FieldWord, NameWord};
pub use convert::{Convert, To};
pub use cyclictest::{Cyclictest, CyclictestPolicy, Placed, Refusal, USAGE};
pub use deadline::Deadline;
pub use demo::{Demo, DemoKind, DemoPart, PartRole};
pub use doctor::Doctor;
pub use eval::{Eval, LoadName};
pub use groups::TraceGroups;
pub use judge::{Check, Diff};
pub use late::Actions;
pub use length::Length;
pub use load_part::{LoadPart, LoadRole};
pub use looping::{Loop, LoopEvent, Tracer};
pub use measure::{ClockName, Cyclic, Hw, Measure, MeasureWhat, PolicyName, Power};
pub use monitor::{
    Monitor, MonitorExport, MonitorFormat, MonitorPart, MonitorPush, MonitorReport, MonitorWhat,
    ScopeName,
};
pub use peers::{Queuelat, Ssdd};
pub use preempt::{MutexName, Preempt};
pub use read::{Diagnose, Info, TraceUntil, Window};
pub use receive::{Receive, RecordTo};
pub use record::{
    BootMemory, Record, RecordSession, RecordStart, RecordWhat, SessionList, SessionOf,
    SessionSave, SessionTrack, SessionUntrack,
};
pub use report::{Report, ReportFilter, ReportPeriods, ReportTables};
pub use rings::{Recover, Snapshot};
pub use shield::Shield;
pub use trackers::TrackerFlags;
pub use tune::Tune;
pub use view::View;
pub use watch::{Until, Watch};
pub use words::Generated;

use crate::exit::{self, Outcome, stdout_error};
use crate::paint::{Color, Paint};

/// How the help is laid out.
const HELP: &str =
    "{before-help}{about-with-newline}{usage-heading} {usage}\n{all-args}{after-help}";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "rtscope",
    version,
    long_version = LONG_VERSION.as_str(),
    about = "My deadline was missed: who did it, for how long, and what do I change?",
    after_long_help = CONTRACT,
    // Two blank lines less than usual: the verbs fill a screen.
    help_template = HELP,
    disable_help_subcommand = true,
    disable_version_flag = true,
    max_term_width = 100,
)]
pub struct Arguments {
    /// When to colour: auto (on terminals), always, never; NO_COLOR is obeyed
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true,
        hide_short_help = true,
        global = true
    )]
    pub color: Color,
    /// Print version
    #[arg(short = 'V', long, action = clap::ArgAction::Version, hide_short_help = true)]
    pub version: Option<bool>,
    /// Write the man page or a shell's completions to stdout
    #[arg(long, value_name = "WHAT", value_enum, hide_short_help = true)]
    pub generate: Option<Generated>,
    /// The man page of this verb alone
    #[arg(
        long,
        value_name = "VERB",
        requires = "generate",
        hide_short_help = true
    )]
    pub of: Option<String>,
    /// The verb.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What works on this machine, and what fixes the rest
    ///
    /// What this kernel, these privileges and this machine allow, verb by verb.
    Doctor(Doctor),
    /// Make a real-time task late on purpose, and see the answer
    Demo(Demo),
    /// Wait until a task is late, then say who did it and what to change
    Watch(Box<Watch>),
    /// Measure this machine: how late its tasks run, and why
    Measure(Measure),
    /// Count latencies for months: who was late, and who had the CPU
    Monitor(Box<Monitor>),
    /// Keep CPUs free for real-time tasks, and take that back
    Shield(Shield),
    /// Try an advice, say whether it helps, take it back
    ///
    /// Switches it on and off in turn and counts late activations; needs no reboot.
    Tune(Tune),
    /// Who made tasks late in a trace, for how long, and what to change
    Diagnose(Diagnose),
    /// Record events of the kernel and of applications
    ///
    /// Until a time, a command's end or Ctrl-C, as CTF.
    Record(Box<Record>),
    /// Take the recordings of other hosts while they are recorded
    #[command(hide = true)]
    Receive(Receive),
    /// What the rings of applications hold now, as a trace
    Snapshot(Snapshot),
    /// What processes that are gone left in their rings, as a trace
    Recover(Recover),
    /// Print the events of a trace, a line each, in time order
    Cat(Cat),
    /// What a trace holds: streams, clocks, events, losses, time, host
    Info(Info),
    /// A trace in another format, whole or a part of it
    Convert(Convert),
    /// Who used the CPUs, waited, interrupted, read and wrote
    ///
    /// The reports of lttng-analyses, LTTV and Trace Compass, and those of other programs.
    Report(Box<Report>),
    /// Whether a trace keeps its budgets: a latency gate for CI
    Check(Check),
    /// What made tasks late in one trace and not in the other
    Diff(Diff),
    /// A trace in the browser: timeline, events, latencies, ledgers
    ///
    /// A page on this machine alone: no upload, no internet.
    View(View),
    /// A part of the demo, started by the demo itself
    #[command(hide = true)]
    DemoPart(DemoPart),
    /// A part of a load, started by the measurement itself
    #[command(hide = true)]
    LoadPart(LoadPart),
}

const CONTRACT: &str = "\
Examples:
  sudo rtscope doctor                 what works here, and what would fix the rest
  sudo rtscope doctor --json          the same for programs
  sudo rtscope doctor --clean         remove what killed runs left behind
  sudo rtscope demo                   a late task of our own making, and the answer
  sudo rtscope watch --task jackd --over 25ms
                                      wait until jackd is late, then the answer
  rtscope diagnose SNAPSHOT           the same answer from the file, days later, anywhere
  rtscope record --flight --user 'npt:*'
                                      applications keep their newest events
  rtscope snapshot                    what their rings hold now
  rtscope recover                     what crashed ones left in their rings
  sudo rtscope measure cyclic --over 100us
                                      cyclictest, and who made the late samples late
  sudo rtscope shield --cpu 3         what keeps a CPU free for real-time tasks; --apply does it
  sudo rtscope record -- ./app        the kernel's events while ./app runs, and the worst delay
  rtscope receive --token-file token  the recordings of other hosts, by record --to
  sudo rtscope monitor --port 9464    latencies for months, and /metrics
  rtscope cat TRACE --begin +1.5s     the events of a trace, from 1.5 s after its start
  rtscope convert TRACE --to json -o events.json
                                      the events for other tools; csv too
  rtscope info TRACE                  streams, clocks, events by class, losses, time, host
  rtscope report cputop,schedtop TRACE
                                      who used the CPUs, who waited longest; 'report list'
  rtscope check TRACE --rule 'wake-up of npt within 100us p99.9'
                                      a latency gate for CI: exit code 2 when it is broken
  rtscope view TRACE                  the trace in a browser: see the late task, know why
  rtscope --generate bash             completions, for /usr/share/bash-completion/completions

Help: rtscope VERB -h is one screen, rtscope help VERB all of it.

Output: stdout is data, stderr is talk. JSON has a schema and a version, times in it are integer
nanoseconds. Durations are typed with their unit: 40us, 2.5ms, 10s.

Exit codes: 0 fine, 1 error, 2 threshold exceeded or budget broken, 3 inconclusive: losses forbid a
statement, or no cause is proven. A closed pipe is fine, and hides no verdict.

Signals: the first Ctrl-C (or SIGTERM) stops and reports, and what comes within a second is the same
request; then one warns, the next discards, one more kills.";

/// What `--version` says beyond the number: which build this is and what it speaks.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}\ncommit {}\nfeatures: BPF watch, tracefs recorder, CTF 1.8 and 2 traces\n\
         ABI version {} between the kernel's programs and rtscope",
        env!("CARGO_PKG_VERSION"),
        env!("RTSCOPE_COMMIT"),
        bpf_host::ABI_VERSION
    )
});

/// Ends for help, version and mistakes: 0 with the text on stdout, or 1 with it on stderr.
pub fn finish_early(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is fine, and there is nobody left to tell anything else.
            error.print().ok();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.print().ok();
            ExitCode::FAILURE
        }
        _ => {
            let words = std::env::args_os().skip(1);
            let words: Vec<String> = words.map(|word| word.display().to_string()).collect();
            let error = mistakes::explained(error, &Arguments::command(), &words);
            exit::finish(Err(error), Paint::of_stderr(Color::Auto))
        }
    }
}

/// Shows the help of one screen, for someone who typed only the name.
pub fn print_short_help() -> event::Result<Outcome> {
    Arguments::command().print_help().map_err(stdout_error)?;
    Ok(Outcome::Fine)
}
