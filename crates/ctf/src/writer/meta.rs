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

/// The one clock of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockMeta {
    /// Its name, `monotonic` for CLOCK_MONOTONIC.
    pub name: String,
    /// Ticks per second.
    pub frequency_hz: u64,
    /// Wall clock (since 1970, UTC) minus this clock, in nanoseconds.
    pub wall_offset_ns: i64,
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
}

/// A stream class (LTTng: a channel).
#[derive(Clone, Debug, PartialEq)]
pub struct StreamMeta {
    /// The name that its files begin with.
    pub name: String,
    /// The layout of its event headers.
    pub header: HeaderKind,
    /// Its classes; an event's class is the index into this list, whatever `EventClass::id` says.
    /// Fields of the scopes payload and event context are written, others are refused.
    pub classes: Vec<EventClass>,
    /// Fields that every event carries before its own (CTF: `stream.event.context`).
    pub event_context: Vec<Field>,
}

/// All that the metadata says.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceMeta {
    /// The `env` block, in this order.
    pub environment: Vec<(String, EnvValue)>,
    /// The trace's UUID.
    pub uuid: [u8; 16],
    /// The clock of all timestamps.
    pub clock: ClockMeta,
    /// The stream classes; a stream's id is its index.
    pub streams: Vec<StreamMeta>,
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
