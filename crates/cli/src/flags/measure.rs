//! `rtscope measure`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What was typed after `measure`.
#[derive(Debug, Args)]
#[command(after_help = MEASURE_EXAMPLES)]
pub struct Measure {
    /// What to measure.
    #[command(subcommand)]
    pub what: MeasureWhat,
}

/// The measurements.
#[derive(Debug, Subcommand)]
pub enum MeasureWhat {
    /// How late threads run that sleep until an instant, and why (cyclictest)
    Cyclic(Box<Cyclic>),
    /// Gaps in threads that never sleep, and who took them (hwlatdetect)
    Hw(Hw),
    /// A loop that only reads the counter, and what is done to it (npt)
    Loop(super::Loop),
    /// Whether the urgent one runs at once: when woken, at locks, at messages
    Preempt(super::Preempt),
    /// Whether tasks with deadlines keep them (cyclicdeadline)
    Deadline(super::Deadline),
    /// How long a packet waits for its reader (queuelat)
    Queuelat(super::Queuelat),
    /// Whether each single step of a traced process comes back (ssdd)
    Ssdd(super::Ssdd),
    /// Latencies and gaps under load, as one report: pass or fail (rteval)
    Eval(Box<super::Eval>),
}

/// What was typed after `measure cyclic`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, after_long_help = EXAMPLES)]
pub struct Cyclic {
    /// A thread on each of these CPUs, as in 0-3 (default: all)
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<String>,
    /// Real-time priority, 1 to 99
    #[arg(long, value_name = "PRIO", default_value_t = 80)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=99))]
    pub prio: u32,
    /// Scheduling policy
    #[arg(long, value_enum, value_name = "POLICY", default_value = "fifo")]
    #[arg(hide_short_help = true)]
    pub policy: PolicyName,
    /// From one instant to the next
    #[arg(long, value_name = "DUR", default_value = "1ms")]
    pub interval: String,
    /// Each thread's interval is this much longer than the one before
    #[arg(long, value_name = "DUR")]
    #[arg(hide_short_help = true)]
    pub distance: Option<String>,
    /// The clock to sleep on
    #[arg(long, value_enum, value_name = "CLOCK", default_value = "monotonic")]
    #[arg(hide_short_help = true)]
    pub clock: ClockName,
    /// Begin at a whole second, each thread this much after the one before
    #[arg(long, value_name = "DUR", num_args = 0..=1, default_missing_value = "0us")]
    #[arg(hide_short_help = true)]
    pub aligned: Option<String>,
    /// Idle states that CPUs may enter
    #[arg(long, value_enum, value_name = "HOW", default_value = "shallow")]
    #[arg(hide_short_help = true)]
    pub power: Power,

    /// End after this (default: at Ctrl-C)
    #[arg(
        long = "for",
        alias = "duration",
        value_name = "DUR",
        help_heading = "How long"
    )]
    pub run_for: Option<String>,
    /// Measure for this long before anything counts
    #[arg(long, value_name = "DUR", help_heading = "How long")]
    #[arg(hide_short_help = true)]
    pub warm_up: Option<String>,
    /// End when every thread has so many samples
    #[arg(long, value_name = "N", help_heading = "How long")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(hide_short_help = true)]
    pub samples: Option<u64>,
    /// End at the first sample that is longer
    #[arg(long, value_name = "DUR", help_heading = "How long")]
    #[arg(hide_short_help = true)]
    pub break_over: Option<String>,

    /// Explain each sample that is longer, as in 100us (BPF)
    ///
    /// Who made it late, and what to change; the snapshot is kept.
    #[arg(long, value_name = "DUR", help_heading = "What to say")]
    pub over: Option<String>,
    /// Explain so many of them: the longest, whenever they come
    #[arg(long, value_name = "N", default_value_t = super::late::WORST_DEFAULT)]
    #[arg(value_parser = super::late::worst_count(), help_heading = "What to say")]
    #[arg(hide_short_help = true)]
    pub worst: usize,
    /// What to do at each.
    #[command(flatten)]
    pub actions: super::late::Actions,
    /// Split each sample: timer, wake-up, switch, return (BPF)
    ///
    /// To the nanosecond; what the splitting cost is said.
    #[arg(long, help_heading = "What to say")]
    pub phases: bool,
    /// Width of a histogram's bucket
    #[arg(
        long,
        value_name = "DUR",
        default_value = "1us",
        help_heading = "What to say"
    )]
    #[arg(hide_short_help = true)]
    pub bucket: String,
    /// Where the histograms end; longer samples are counted
    #[arg(
        long,
        value_name = "DUR",
        default_value = "10ms",
        help_heading = "What to say"
    )]
    #[arg(hide_short_help = true)]
    pub range: String,
    /// JSON, schema rtscope.cyclic version 1
    #[arg(long, help_heading = "What to say")]
    pub json: bool,
    /// Write the histograms here, as cyclictest does
    #[arg(long, value_name = "FILE", help_heading = "What to say")]
    #[arg(hide_short_help = true)]
    pub histogram: Option<PathBuf>,
    /// No table while it runs
    #[arg(long, short, help_heading = "What to say")]
    #[arg(hide_short_help = true)]
    pub quiet: bool,
    /// Where snapshots of late samples go
    #[arg(
        short,
        long,
        value_name = "DIR",
        default_value = "rtscope-snapshots",
        help_heading = "What to say"
    )]
    #[arg(hide_short_help = true)]
    pub output: PathBuf,
    /// What follows is cyclictest's: its options, its output
    #[arg(
        long,
        value_name = "OPTIONS",
        num_args = 0..,
        allow_hyphen_values = true,
        help_heading = "What to say"
    )]
    pub cyclictest: Option<Vec<String>>,
}

/// What was typed after `measure hw`.
#[derive(Debug, Args)]
#[command(after_help = HW_EXAMPLES)]
pub struct Hw {
    /// Threads on these CPUs, as in 0-3 (default: all)
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<String>,
    /// Real-time priority, 1 to 99; 0 for an ordinary task
    #[arg(long, value_name = "PRIO", default_value_t = 80)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=99))]
    pub prio: u32,
    /// Report gaps that are longer
    #[arg(long, value_name = "DUR", default_value = "10us")]
    pub over: String,
    /// For how long.
    #[command(flatten)]
    pub length: super::Length,
    /// From one begin of looking to the next
    #[arg(long, value_name = "DUR", default_value = "1s")]
    pub window: String,
    /// How long to look of each
    #[arg(long, value_name = "DUR", default_value = "500ms")]
    pub width: String,
    /// Fail when a gap is longer, whoever took it
    #[arg(long, value_name = "DUR")]
    pub budget: Option<String>,
    /// Fail when more of a gap was taken below the kernel
    #[arg(long, value_name = "DUR", conflicts_with = "no_events")]
    pub hardlimit: Option<String>,
    /// Record no events: gaps without their takers
    #[arg(long)]
    pub no_events: bool,
    /// Keep the recording here
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// JSON, schema rtscope.gaps version 1
    #[arg(long)]
    pub json: bool,
}

/// Scheduling policies, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_DEADLINE, a tenth of the interval as its runtime, on whatever CPU the scheduler gives.
    Deadline,
    /// SCHED_OTHER.
    Other,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
}

/// Clocks, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClockName {
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// CLOCK_REALTIME.
    Realtime,
    /// CLOCK_TAI.
    Tai,
}

/// What idle CPUs may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Power {
    /// Only states that are left at once.
    Shallow,
    /// Whatever the machine is set to.
    AsItIs,
}

const MEASURE_EXAMPLES: &str = "\
Examples:
  sudo rtscope measure cyclic --over 1ms     and who made them late
  sudo rtscope measure eval --budget 100us   under load: pass or fail";
const EXAMPLE: &str = "\
Example: sudo rtscope measure cyclic --over 100us --for 60s";

const EXAMPLES: &str = "\
Examples:
  sudo rtscope measure cyclic --for 60s
  sudo rtscope measure cyclic --over 100us     who made the late samples late
  sudo rtscope measure cyclic --phases         which part of the way is slow
  sudo rtscope measure cyclic --cpu 3 --interval 250us --for 10m --json
  sudo rtscope measure cyclic --cyclictest -S -m -p 95 -h 100 -q -D 60";

const HW_EXAMPLES: &str = "\
Examples:
  sudo rtscope measure hw                       every gap of 10us, and its taker
  sudo rtscope measure hw --cpu 3 --width 900ms --for 10m --hardlimit 20us
  sudo rtscope measure hw --over 50us -o gaps   keep the events too
Exit codes: 2 a limit is exceeded, 3 nobody knows, or a CPU was taken away.";
