//! `rtscope doctor`.

use std::path::PathBuf;

use clap::Args;

/// What was typed after `doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// Remove what killed runs left behind, and say what it was
    #[arg(long)]
    pub clean: bool,
    /// Where killed runs may have left half-written traces
    #[arg(long, value_name = "DIR", default_value = ".", requires = "clean")]
    pub output: PathBuf,
    /// Measure what watching and recording cost here, for a few seconds
    #[arg(long)]
    pub cost: bool,
    /// JSON, schema rtscope.doctor version 1
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo rtscope doctor             what works here, and what would fix the rest
  sudo rtscope doctor --cost      and what it costs
  sudo rtscope doctor --clean     tidy up after runs that were killed";
