//! `rtscope shield`.

use std::ffi::OsString;

use clap::Args;

/// What was typed after `shield`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Shield {
    /// The CPUs to shield, as in 2-3
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<String>,
    /// Make the changes; without it they are only shown
    #[arg(long, requires = "cpu")]
    pub apply: bool,
    /// Take the shield down, also one that was killed half-way
    #[arg(long, conflicts_with_all = ["cpu", "apply"])]
    pub undo: bool,
    /// JSON, schema rtscope.shield version 1
    #[arg(long)]
    pub json: bool,
    /// Run this inside, and take the shield down when it ends
    #[arg(last = true, value_name = "COMMAND", requires = "apply")]
    pub command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  rtscope shield                           whether a shield is up
  sudo rtscope shield --cpu 2-3            shows every change, and makes none
  sudo rtscope shield --cpu 2-3 --apply    tasks, interrupts, kernel work leave
  sudo rtscope shield --cpu 3 --apply -- rtscope measure cyclic --cpu 3
  sudo rtscope shield --undo               everything as it was
The kernel's command line alone can do: isolcpus=, nohz_full=, rcu_nocbs=.";
