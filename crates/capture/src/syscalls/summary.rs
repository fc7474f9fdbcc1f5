//! What came of recording system calls.

/// What was recorded of system calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallsSummary {
    /// Entries and exits that were written.
    pub events: u64,
    /// Those for which a ring had no space.
    pub lost: u64,
    /// Those of the recorder itself, which were left out.
    pub left_out: u64,
    /// Those that carry contexts which nobody could read.
    pub unread: u64,
    /// Bytes of the streams.
    pub size_bytes: u64,
    /// What the programs cost in the traced tasks: how often they ran, and for how long in all.
    pub runs: u64,
    /// The same in nanoseconds; zero where the kernel was not asked to count.
    pub run_ns: u64,
    /// Why contents were not recorded, and the calls came by ftrace.
    pub refused: Option<String>,
}
