//! What is printed under cyclictest's name.

use std::path::PathBuf;

use event::Duration;

/// What cyclictest was asked to print.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CyclictestOutput {
    /// Whether a histogram is printed, and whether with sums.
    pub histogram: Option<bool>,
    /// The histogram goes here instead of stdout.
    pub histogram_file: Option<PathBuf>,
    /// The result as JSON.
    pub json_file: Option<PathBuf>,
    /// Figures in nanoseconds.
    pub in_ns: bool,
    /// Only the summary.
    pub quiet: bool,
    /// Nothing waits for what comes behind it.
    pub unbuffered: bool,
    /// Every sample, or of so many the longest.
    pub every: Option<u64>,
    /// From one thread's interval to the next one's.
    pub distance: Duration,
    /// Only where a maximum grew.
    pub on_max: bool,
    /// Samples that are longer are listed at the end, so many at most.
    pub spikes: Option<(Duration, usize)>,
    /// A named pipe that gives the figures to whoever reads it.
    pub pipe: Option<PathBuf>,
    /// The policy that was asked for, and the one that threads have where that is another.
    pub policy: String,
    /// The threads' ids are printed at the end.
    pub tids: bool,
    /// The clock's resolution is looked at first.
    pub resolution: bool,
    /// What the idle states may take, as it is said.
    pub dma_latency_us: Option<i64>,
    /// What is said on stderr first, a line each.
    pub warnings: Vec<String>,
    /// The command line, for the JSON.
    pub command_line: String,
}
