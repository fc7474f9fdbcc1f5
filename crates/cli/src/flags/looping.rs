//! `rtscope measure loop`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What was typed after `measure loop`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLE, after_long_help = EXAMPLES)]
pub struct Loop {
    /// The CPU to loop on (default: the last)
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Real-time priority (SCHED_FIFO), 1 to 99 (default: none)
    ///
    /// Nobody else runs on the CPU then.
    #[arg(long, value_name = "PRIO", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub prio: Option<u32>,
    /// Iterations to count
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub loops: u64,
    /// Iterations before those, not counted
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(hide_short_help = true)]
    pub drop: u64,
    /// Iterations per second (default: as fast as it goes)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub events_per_second: Option<u64>,
    /// What each iteration records
    #[arg(long, value_enum, value_name = "TRACER", default_value = "none")]
    pub tracer: Tracer,
    /// What the event holds
    #[arg(long, value_enum, value_name = "EVENT", default_value = "numbers")]
    pub event: LoopEvent,
    /// The library with LTTng's tracepoint (default: it is compiled)
    #[arg(long, value_name = "FILE", hide = true)]
    pub lttng_loop: Option<PathBuf>,
    /// Tell apart iterations that were interrupted (BPF)
    ///
    /// By an interrupt, an NMI or a switch.
    #[arg(long)]
    pub net_of_irqs: bool,
    /// Search for the highest rate without a loss
    ///
    /// Recorded alone, and beside kernel events.
    #[arg(long, conflicts_with_all = ["net_of_irqs", "events_per_second", "output", "plot"])]
    pub find_max_rate: bool,
    /// Draw the histogram
    #[arg(long)]
    pub plot: bool,
    /// Write the histogram, in npt's format
    #[arg(short, long, value_name = "FILE")]
    #[arg(hide_short_help = true)]
    pub output: Option<PathBuf>,
    /// JSON, schema rtscope.measure.loop version 3
    #[arg(long)]
    pub json: bool,
}

/// Who records an event in each iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tracer {
    /// Nobody.
    None,
    /// Nobody; the clock is read once more, the least that an event with a time can cost.
    Clock,
    /// The probe: an event of npt's, kept in a flight recorder or recorded by
    /// `rtscope record --user npt`.
    Rtscope,
    /// LTTng-UST, whose consumer the traced thread wakes; compiled when it is asked for.
    Lttng,
    /// LTTng-UST, whose consumer looks every 100 ms.
    LttngTimer,
}

/// What each iteration records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoopEvent {
    /// npt:loop, two numbers of 64 bits.
    Numbers,
    /// npt:text, a number and 32 bytes of text.
    Text,
}

impl Tracer {
    /// As typed.
    pub fn name(self) -> &'static str {
        match self {
            Tracer::None => "none",
            Tracer::Clock => "clock",
            Tracer::Rtscope => "rtscope",
            Tracer::Lttng => "lttng",
            Tracer::LttngTimer => "lttng-timer",
        }
    }
}

const EXAMPLE: &str = "\
Example: rtscope measure loop --tracer rtscope";

const EXAMPLES: &str = "\
Examples:
  rtscope measure loop                         what this machine does to a busy loop
  rtscope measure loop --tracer rtscope        what an event of an application adds
  rtscope measure loop --net-of-irqs --plot    with and without what interrupts did to it
  rtscope measure loop --tracer rtscope --find-max-rate
  rtscope record --user npt -- \\
    rtscope measure loop --tracer rtscope --events-per-second 100000";
