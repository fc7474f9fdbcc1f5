//! `rtscope view`: a page about a trace.

use std::path::PathBuf;

use clap::Args;

/// What was typed after `view`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct View {
    /// The trace or snapshot; several are read as one
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// The port of this machine to listen on, one that is free by default
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub port: u16,
    /// Neither take nor keep an index of the trace
    ///
    /// Else it is kept below XDG_CACHE_HOME or ~/.cache, so that the next view opens at once.
    #[arg(long)]
    pub no_cache: bool,
    /// Also offer the report of a program that speaks LAMI; may be repeated
    ///
    /// As for 'rtscope report PROGRAM'. It is run when the page asks for it, over the range that
    /// is shown.
    #[arg(long, value_name = "PROGRAM")]
    pub report: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  rtscope view TRACE               open the URL that it prints; Ctrl-C ends it
  rtscope view TRACE --port 8080   for a tunnel: ssh -L 8080:127.0.0.1:8080 HOST";
