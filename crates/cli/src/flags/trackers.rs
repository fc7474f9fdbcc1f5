//! The flags of `rtscope watch TRACKER`.

use std::path::PathBuf;

use clap::Args;

/// What was typed for trackers alone.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Trackers")]
pub struct TrackerFlags {
    /// Only these calls, interrupts, functions or disks, by name
    ///
    /// As in --only openat,read for syscall, net_rx for softirq, vda for block, local_timer or a
    /// device's name for irq, the name of a function for timer and workqueue.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        requires = "tracker",
        hide_short_help = true
    )]
    pub only: Vec<String>,
    /// Take the stacks of what is over the threshold
    #[arg(long, requires = "tracker", hide_short_help = true)]
    pub stacks: bool,
    /// Draw the histograms at the end
    #[arg(
        long,
        requires = "tracker",
        conflicts_with = "json",
        hide_short_help = true
    )]
    pub hist: bool,
    /// Add each report to FILE too, as a line of JSON
    #[arg(
        long,
        value_name = "FILE",
        requires = "tracker",
        hide_short_help = true
    )]
    pub log: Option<PathBuf>,
}
