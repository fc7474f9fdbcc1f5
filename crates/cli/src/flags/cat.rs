//! `rtscope cat`: what babeltrace2's text takes, by the same words, and filters.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::Window;

/// What was typed after `cat`.
#[derive(Clone, Debug, Default, Args)]
#[command(group(ArgGroup::new("clock")), after_help = EXAMPLES)]
pub struct Cat {
    /// The traces or snapshots, merged by their wall clocks
    #[arg(required_unless_present = "user")]
    pub trace: Vec<PathBuf>,
    /// The part to print.
    #[command(flatten)]
    pub window: Window,
    /// Only events that match, as in 'next_prio < 0'
    ///
    /// docs/filter.md is the language.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Times with their dates
    #[arg(long, group = "clock")]
    pub clock_date: bool,
    /// Times as seconds since 1970
    #[arg(long, group = "clock")]
    #[arg(hide_short_help = true)]
    pub clock_seconds: bool,
    /// Times as seconds of the trace's clock
    ///
    /// As --begin takes them.
    #[arg(long, group = "clock")]
    pub clock_trace: bool,
    /// Times as ticks of the stream's clock
    #[arg(long, group = "clock")]
    #[arg(hide_short_help = true)]
    pub clock_cycles: bool,
    /// Times of day in UTC, also those of --begin and --end
    ///
    /// Else they are of the local time zone.
    #[arg(long)]
    pub clock_gmt: bool,
    /// Seconds to add to the wall clock of all traces, or of the Nth that was given; repeatable
    #[arg(long, value_name = "[N:]SECONDS", allow_hyphen_values = true)]
    #[arg(hide_short_help = true)]
    pub clock_offset: Vec<String>,
    /// Nanoseconds to add to the wall clock of all traces
    #[arg(long, value_name = "NS", allow_hyphen_values = true)]
    #[arg(hide_short_help = true)]
    pub clock_offset_ns: Option<i64>,
    /// Without the time since the event before
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub no_delta: bool,
    /// The names to show: payload, context, header, scope, all, none [default: payload,context]
    #[arg(short, long, value_name = "LIST", value_enum, value_delimiter = ',')]
    #[arg(hide_possible_values = true)]
    #[arg(hide_short_help = true)]
    pub names: Vec<NameWord>,
    /// What to show of an event's origin: trace, trace:hostname, trace:domain, trace:procname,
    /// trace:vpid, loglevel, emf, all [default: trace:hostname,trace:procname,trace:vpid]
    #[arg(short, long, value_name = "LIST", value_enum, value_delimiter = ',')]
    #[arg(hide_possible_values = true)]
    #[arg(hide_short_help = true)]
    pub fields: Vec<FieldWord>,
    /// Only the time in which all streams of a trace have packets
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub stream_intersection: bool,
    /// Events of a recording while it is written
    ///
    /// Until it ends, or Ctrl-C.
    #[arg(long, conflicts_with_all = ["begin", "end", "stream_intersection", "debug_info"])]
    pub live: bool,
    /// With --live: events of applications, as record --user
    ///
    /// Nothing is kept. Repeatable.
    #[arg(
        long,
        value_name = "PATTERN",
        requires = "live",
        conflicts_with = "trace"
    )]
    pub user: Vec<String>,
    /// With --user: what these events carry too, as record --context
    #[arg(long, value_name = "LIST", requires = "user")]
    #[arg(hide_short_help = true)]
    pub context: Vec<String>,
    /// Name the code at addresses: of applications file, function and line, from this disk; of the
    /// kernel the function, from the trace
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub debug_info: bool,
    /// Go on with the next packet after bytes that cannot be understood
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub keep_going: bool,
    /// Write to PATH instead of stdout
    #[arg(short = 'w', long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// With --user: run COMMAND, and end with it
    #[arg(last = true, value_name = "COMMAND", requires = "user")]
    pub command: Vec<OsString>,
}

/// Names that lines show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NameWord {
    /// Of the payload's fields
    #[value(alias = "args", alias = "arg")]
    Payload,
    /// Of the fields of contexts
    #[value(alias = "ctx")]
    Context,
    /// Of what stands before the fields
    Header,
    /// Of the groups in braces
    Scope,
    /// All
    All,
    /// None
    None,
}

/// What lines show of an event's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FieldWord {
    /// The trace's name
    Trace,
    /// The host
    #[value(name = "trace:hostname")]
    Hostname,
    /// The tracer's domain
    #[value(name = "trace:domain")]
    Domain,
    /// The process of a trace of one
    #[value(name = "trace:procname")]
    Procname,
    /// Its id
    #[value(name = "trace:vpid")]
    Vpid,
    /// The log level
    #[value(name = "loglevel")]
    LogLevel,
    /// The EMF URI
    Emf,
    /// All
    All,
}

const EXAMPLES: &str = "\
Examples:
  rtscope cat TRACE --filter 'next_comm == \"jack*\" && next_prio < 0'
  rtscope cat KERNEL APPLICATION --clock-date";
