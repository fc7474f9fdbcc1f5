//! `rtscope load-part`: a process of a load, as `measure eval` starts it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::LoadName;

/// What was typed after `load-part`.
#[derive(Clone, Debug, Args)]
pub struct LoadPart {
    /// What this process does
    #[arg(value_enum)]
    pub role: LoadRole,
    /// Which load
    #[arg(value_enum)]
    pub load: LoadName,
    /// Its CPUs
    #[arg(long)]
    pub cpus: String,
    /// Its scratch files
    #[arg(long)]
    pub folder: PathBuf,
    /// The control group that it joins
    #[arg(long)]
    pub cgroup: Option<PathBuf>,
}

/// What a process of a load does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadRole {
    /// Ends the load when whoever measures is gone.
    Keeper,
    /// Runs the load's program again and again.
    Work,
}
