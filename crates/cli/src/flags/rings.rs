//! `rtscope snapshot` and `rtscope recover`.

use std::path::PathBuf;

use clap::Args;

/// What was typed after `snapshot`. Long help alone lists it: the short one fits a screen.
#[derive(Clone, Debug, Args)]
#[command(after_help = SNAPSHOT_EXAMPLES)]
pub struct Snapshot {
    /// Where the trace goes; must not exist (default: rtscope-snapshot)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Look into the rings in this folder alone, as RTSCOPE_DIR tells applications
    #[arg(long, value_name = "DIR")]
    pub rings: Option<PathBuf>,
}

/// What was typed after `recover`.
#[derive(Clone, Debug, Args)]
#[command(after_help = RECOVER_EXAMPLES)]
pub struct Recover {
    /// A trace that a killed recorder left, as .NAME.partial-PID (default: all in this folder, and
    /// the rings)
    #[arg(value_name = "TRACE", conflicts_with_all = ["keep", "rings"])]
    pub trace: Option<PathBuf>,
    /// Where the trace goes; must not exist (default: rtscope-recovered)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Leave the rings where they are
    #[arg(long)]
    pub keep: bool,
    /// Look into the rings in this folder alone, as RTSCOPE_DIR tells applications
    #[arg(long, value_name = "DIR")]
    pub rings: Option<PathBuf>,
}

const SNAPSHOT_EXAMPLES: &str = "\
Examples:
  rtscope record --flight --user 'npt:*' &      applications keep their newest
  rtscope snapshot -o now                       what they hold now, as a trace";

const RECOVER_EXAMPLES: &str = "\
Examples:
  rtscope recover -o crash                      and rtscope cat crash prints it
  rtscope recover .trace.partial-4711           what a killed recorder wrote";
