//! `rtscope doctor`.

use std::path::PathBuf;

use clap::Args;

/// What was typed after `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Remove what killed runs left behind, and say what it was
    #[arg(long)]
    pub clean: bool,
    /// With --clean: also look for half-written traces in DIR
    #[arg(long, value_name = "DIR", default_value = ".", requires = "clean")]
    pub output: PathBuf,
    /// Measure what watching and recording cost on this machine; takes a few seconds
    #[arg(long)]
    pub cost: bool,
    /// JSON, schema rtscope.doctor version 1
    #[arg(long)]
    pub json: bool,
}
