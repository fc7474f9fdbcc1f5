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
    /// Interrupt threads get this priority, as in 'irq/*-eth0=85'
    #[arg(long, value_name = "NAME=PRIO", requires = "cpu")]
    #[arg(hide_short_help = true)]
    pub irq_prio: Vec<String>,
    /// Print what the kernel's command line needs for these CPUs
    #[arg(long, requires = "cpu", conflicts_with_all = ["apply", "json"])]
    pub boot_line: bool,
    /// Print the shield as a tuned.conf, for /etc/tuned/NAME
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "cpu", conflicts_with_all = ["apply", "json", "boot_line"])]
    pub tuned_profile: bool,
    /// JSON, schema rtscope.shield version 1
    #[arg(long)]
    pub json: bool,
    /// Run this inside, and end as it does
    #[arg(last = true, value_name = "COMMAND", requires = "apply")]
    #[arg(hide_short_help = true)]
    pub command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  rtscope shield                           whether a shield is up
  sudo rtscope shield --cpu 2-3            shows every change, and makes none
  sudo rtscope shield --cpu 2-3 --apply    tasks, interrupts, kernel work leave
  sudo rtscope shield --cpu 3 --apply -- rtscope measure cyclic --cpu 3
  sudo rtscope shield --undo               everything as it was
  rtscope shield --cpu 2-3 --boot-line     what only the kernel's command line does
Exit codes: COMMAND's own, 128 and more where a signal ended it; 1 of ours.";
