//! `rtscope convert`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Window;

/// What was typed after `convert`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Convert {
    /// The traces or snapshots, merged by their wall clocks
    #[arg(required = true)]
    pub trace: Vec<PathBuf>,
    /// The format
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub to: To,
    /// A new path, or - for stdout (json, perfetto)
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// The part to convert.
    #[command(flatten)]
    pub window: Window,
    /// Only events that match, as in 'next_prio < 0'
    ///
    /// docs/filter.md is the language.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
}

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum To {
    /// A directory in CTF 1.8, which every reader has
    Ctf1,
    /// A directory in CTF 2
    Ctf2,
    /// A line of JSON for each event; schema rtscope.events version 1
    Json,
    /// A directory with a table for each event class
    Csv,
    /// A file that ui.perfetto.dev opens
    Perfetto,
    /// Parquet files by host, date and event class
    #[cfg(feature = "arrow")]
    Parquet,
    /// The same as files of Arrow
    #[cfg(feature = "arrow")]
    Arrow,
}

const EXAMPLES: &str = "\
Examples:
  rtscope convert TRACE --to ctf1 -o part --begin +1.5s --end +2s
  rtscope convert TRACE --to json -o events.json
  rtscope convert TRACE --to csv -o tables --filter '$name =* \"sched_*\"'
  rtscope convert TRACE --to perfetto -o trace.pftrace
docs/convert.md has the formats. The output appears whole or not at all.";
