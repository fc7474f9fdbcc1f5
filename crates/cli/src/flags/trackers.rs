//! The flags of `rtscope watch TRACKER`.

use std::path::PathBuf;

use clap::Args;

/// What was typed for trackers alone.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Trackers")]
pub struct TrackerFlags {
    /// Measure from this event: a tracepoint, uprobe:FILE:FUNCTION, usdt:FILE:PROVIDER:NAME
    ///
    /// A filter follows a slash, as in sched_waking/prio < 0. Also uretprobe:FILE:FUNCTION.
    /// docs/trackers.md has all of it, docs/filter.md the filters.
    #[arg(
        long,
        value_name = "EVENT[/FILTER]",
        requires = "to",
        group = "tracked",
        hide_short_help = true
    )]
    pub from: Option<String>,
    /// To this event
    #[arg(
        long,
        value_name = "EVENT[/FILTER]",
        requires = "from",
        hide_short_help = true
    )]
    pub to: Option<String>,
    /// What both have in common, as in tid=next_tid or dev,sector (default: $tid, the same thread)
    #[arg(long, value_name = "EXPR", requires = "from", hide_short_help = true)]
    pub key: Option<String>,
    /// Only these calls, interrupts, functions or disks, by name
    ///
    /// As in --only openat,read for syscall, net_rx for softirq, vda for block, local_timer or a
    /// device's name for irq, the name of a function for timer and workqueue.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        requires = "tracked",
        hide_short_help = true
    )]
    pub only: Vec<String>,
    /// Take the stacks of what is over the threshold
    #[arg(long, requires = "tracked", hide_short_help = true)]
    pub stacks: bool,
    /// Draw the histograms at the end
    #[arg(
        long,
        requires = "tracked",
        conflicts_with = "json",
        hide_short_help = true
    )]
    pub hist: bool,
    /// Tell the last 1, 5 and 15 minutes of block and io, each minute and at the end
    ///
    /// By layer (system call, file system, queue, device), disk and operation.
    #[arg(long, requires = "tracked", hide_short_help = true)]
    pub history: bool,
    /// Write the histograms to FILE at the end, as a log of HdrHistogram's
    #[arg(
        long,
        value_name = "FILE",
        requires = "tracked",
        hide_short_help = true
    )]
    pub hdr: Option<PathBuf>,
    /// Add each report to FILE too, as a line of JSON
    #[arg(
        long,
        value_name = "FILE",
        requires = "tracked",
        hide_short_help = true
    )]
    pub log: Option<PathBuf>,
}
