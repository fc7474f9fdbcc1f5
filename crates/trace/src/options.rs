//! How traces are opened, and what is known of them before any event is read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ctf::reader::Violations;
use event::{Cpu, Duration, TimeRange};

/// How to open a trace; the default takes everything as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Only the time in which all streams of a trace have packets.
    pub intersection: bool,
    /// To add to the wall clock: instants stay, [`crate::Trace::wall_ns`] moves.
    pub clock_offset: Duration,
    /// Somebody writes it still: that streams end is no loss.
    pub live: bool,
}

/// One of several traces that are opened together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Root {
    /// A trace, or a directory above traces.
    pub path: PathBuf,
    /// To add to its wall clock, which places it beside the others.
    pub clock_offset: Duration,
}

impl<P: Into<PathBuf>> From<P> for Root {
    fn from(path: P) -> Self {
        Root {
            path: path.into(),
            clock_offset: Duration::ZERO,
        }
    }
}

/// One of the traces that were opened as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartInfo {
    /// Its directory relative to what was opened; empty when it is that.
    pub path: String,
    /// `CTF`, `trace.dat`, `ftrace pages` or `ftrace text`.
    pub format: &'static str,
    /// The format's version, such as `1.8`; empty when it has none.
    pub format_version: &'static str,
    /// Its UUID.
    pub uuid: Option<[u8; 16]>,
    /// Its `env`.
    pub environment: BTreeMap<String, String>,
    /// Its clocks; instants are on the first one.
    pub clocks: Vec<ClockFacts>,
    /// Its stream files, in the order of their names.
    pub streams: Vec<StreamInfo>,
    /// Where its metadata breaks the standard and was read all the same.
    pub violations: Violations,
}

/// What a trace says of an event class besides its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassFacts {
    /// Whether its events have a time.
    pub is_timed: bool,
    /// How grave its events are, as the tracer counts it: LTTng's least is the gravest.
    pub log_level: Option<i64>,
    /// Where the Eclipse modelling framework describes it.
    pub emf_uri: Option<String>,
    /// The directory of its trace below the root that was opened; empty when it is that.
    pub trace_path: String,
}

/// What a trace says of a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockFacts {
    /// Its name.
    pub name: String,
    /// Ticks per second.
    pub frequency_hz: u64,
    /// Wall clock (since 1970, UTC) minus this clock, by the trace itself.
    pub wall_offset: Duration,
}

/// What the packets' headers say of one stream file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// The file's name inside its trace.
    pub file: String,
    /// Its size when it was opened.
    pub size_bytes: u64,
    /// The id of its stream class, when packets say it.
    pub class: Option<u64>,
    /// The CPU of its first packets.
    pub cpu: Option<Cpu>,
    /// How many packets it has.
    pub packets: u64,
    /// From the begin of the earliest packet to the end of the latest; none without a clock.
    pub range: Option<TimeRange>,
    /// Events that the tracer discarded, as far as its counters tell.
    pub discarded: u64,
    /// Holes in the packets' sequence numbers.
    pub packet_gaps: u64,
    /// Packets that begin before an earlier one ends; they are put in order.
    pub packets_back_in_time: u64,
}

/// Time that went backwards, as far as a walk has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Packets that were put in order.
    pub packets: u64,
    /// Events that came after a later one of their own packets; they were handed out where they
    /// stood.
    pub events: u64,
}
