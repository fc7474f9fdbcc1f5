//! The frame of small CTF traces that a test writes event by event.

use ctf::writer::{ClockMeta, HeaderKind, StreamMeta, TraceMeta};
use event::{ClassId, EventClass, Field};

/// An event class of the only stream class.
pub fn event_class(id: u32, name: &str, fields: Vec<Field>) -> EventClass {
    EventClass {
        id: ClassId(id),
        name: name.to_owned(),
        stream: 0,
        fields: fields.into(),
    }
}

/// A trace with one stream class, `channel0`, whose monotonic clock is `wall_offset_ns` behind the
/// wall clock; no environment.
pub fn one_stream_class(classes: Vec<EventClass>, wall_offset_ns: i64) -> TraceMeta {
    TraceMeta {
        uuid: [1; 16],
        clocks: vec![ClockMeta::monotonic(wall_offset_ns)],
        streams: vec![StreamMeta {
            name: "channel0".to_owned(),
            header: HeaderKind::Large,
            classes,
            ..StreamMeta::default()
        }],
        ..TraceMeta::default()
    }
}
