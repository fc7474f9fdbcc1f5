//! What a writer must know before the first event: environment, clock, streams and classes.

use std::fs::File;
use std::io::Read;

use event::{Error, EventClass, Field, Result};

/// A value of the trace's `env` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvValue {
    /// A quoted text.
    Text(String),
    /// A number.
    Integer(i64),
}

impl From<&str> for EnvValue {
    fn from(text: &str) -> Self {
        EnvValue::Text(text.to_owned())
    }
}

impl From<String> for EnvValue {
    fn from(text: String) -> Self {
        EnvValue::Text(text)
    }
}

impl From<i64> for EnvValue {
    fn from(number: i64) -> Self {
        EnvValue::Integer(number)
    }
}

/// How the metadata is written; the streams' bytes are the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// CTF 1.8: TSDL, which every reader has.
    #[default]
    Ctf18,
    /// CTF 2: JSON fragments, in the specification's final form.
    Ctf2,
}

/// A clock of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockMeta {
    /// Its name, `monotonic` for CLOCK_MONOTONIC.
    pub name: String,
    /// Ticks per second.
    pub frequency_hz: u64,
    /// Wall clock (since 1970, UTC) minus this clock, in nanoseconds.
    pub wall_offset_ns: i64,
}

impl Default for ClockMeta {
    /// CLOCK_MONOTONIC of a machine whose wall clock nobody knows.
    fn default() -> Self {
        ClockMeta::monotonic(0)
    }
}

impl ClockMeta {
    /// CLOCK_MONOTONIC in nanoseconds.
    pub fn monotonic(wall_offset_ns: i64) -> Self {
        ClockMeta {
            name: "monotonic".to_owned(),
            frequency_hz: 1_000_000_000,
            wall_offset_ns,
        }
    }
}

/// LTTng's two event headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderKind {
    /// 4 bytes: 5 bits of id and 27 bits of time; best for at most 31 classes.
    Compact,
    /// 6 bytes: 16 bits of id and 32 bits of time.
    #[default]
    Large,
    /// 4 bytes: 32 bits of id, for streams without a clock.
    Untimed,
}

/// So many ids are in the compact header; the last of its five bits' values says that another
/// follows.
const COMPACT_CLASSES_MAX: usize = 31;

impl HeaderKind {
    /// The smallest that holds the ids of so many classes, and a time.
    pub fn for_classes(count: usize) -> Self {
        match count {
            ..=COMPACT_CLASSES_MAX => HeaderKind::Compact,
            _ => HeaderKind::Large,
        }
    }
}

/// A stream class (LTTng: a channel).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamMeta {
    /// The name that its files begin with.
    pub name: String,
    /// The layout of its event headers.
    pub header: HeaderKind,
    /// Its classes; an event's class is the index into this list, whatever `EventClass::id` says.
    /// Fields of the scopes payload and event context are its own; those of the stream's contexts
    /// may be listed too and are written by what stands below.
    pub classes: Vec<EventClass>,
    /// How grave the events of each class are (LTTng's log level), in the order of `classes`; those
    /// beyond its end have none.
    pub log_levels: Vec<Option<i64>>,
    /// Fields that every event carries before its own (CTF: `stream.event.context`).
    pub event_context: Vec<Field>,
    /// Fields of the packet's context behind those that the writer makes itself.
    pub packet_context: Vec<Field>,
    /// Its clock, as an index into the trace's list.
    pub clock: usize,
    /// Whether its packets belong to no CPU.
    pub has_no_cpu: bool,
    /// Whether its events were in a trace whose headers are not copied: a length that refers to
    /// nothing here was in one of these, and is written before what it counts.
    pub lacks_headers: bool,
}

impl StreamMeta {
    /// The log level of the class at `place`.
    pub(super) fn log_level(&self, place: usize) -> Option<i64> {
        self.log_levels.get(place).copied().flatten()
    }
}

/// All that the metadata says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceMeta {
    /// How the metadata is written.
    pub dialect: Dialect,
    /// The `env` block, in this order.
    pub environment: Vec<(String, EnvValue)>,
    /// The trace's UUID.
    pub uuid: [u8; 16],
    /// The clocks; streams name theirs by index.
    pub clocks: Vec<ClockMeta>,
    /// The stream classes; a stream's id is its index.
    pub streams: Vec<StreamMeta>,
    /// Whether a loss may lie anywhere before its packet's end, as in traces of other tracers; else
    /// it lies between two packets, and the environment says so.
    pub losses_are_vague: bool,
}

/// A random (version 4) UUID from the kernel.
///
/// # Errors
/// When `/dev/urandom` cannot be read.
pub fn random_uuid() -> Result<[u8; 16]> {
    let mut uuid = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut uuid))
        .map_err(|cause| Error::io("cannot read /dev/urandom", cause))?;
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(uuid)
}
