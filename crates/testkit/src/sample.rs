//! A small trace on disk with one of everything, whose content any test may count on.

use std::path::Path;
use std::sync::Arc;

use ctf::writer::{ClockMeta, HeaderKind, PayloadWriter, StreamMeta, TraceMeta, TraceWriter};
use event::{ClassId, Cpu, EventClass, Field, FieldType, Instant, Integer, IntegerMapping, Result};

/// How many events [`write_sample`] writes.
pub const SAMPLE_EVENTS: u64 = 300;
/// The wall clock at time zero: 2023-11-14 22:13:20 UTC.
const WALL_OFFSET_NS: i64 = 1_700_000_000_000_000_000;
/// Of the first event.
const BEGIN_NS: i64 = 1_000_000_000;
/// Between the begins of two requests.
const PERIOD_NS: i64 = 1_000_000;
/// So many events of CPU 1 are lost before its request 50.
const LOST: u64 = 7;

fn integer(size_bits: u8, signed: bool) -> FieldType {
    FieldType::Integer(Integer::le(size_bits, signed))
}

fn class(name: &str, fields: Vec<(&str, FieldType)>) -> EventClass {
    let field = |(name, ty): (&str, FieldType)| Field::payload(name, ty);
    EventClass {
        id: ClassId(0),
        name: name.to_owned(),
        stream: 0,
        fields: fields.into_iter().map(field).collect(),
    }
}

fn classes() -> Vec<EventClass> {
    let level = |label: &str, first, last| IntegerMapping {
        label: label.to_owned(),
        first,
        last,
    };
    let levels = [level("LOW", 0, 9), level("HIGH", 10, 19)];
    let float = FieldType::Float {
        size_bits: 64,
        align_bits: 8,
        big_endian: false,
    };
    let sizes = FieldType::Sequence {
        element: Arc::new(integer(32, false)),
        length: "sizes_length".to_owned(),
    };
    vec![
        class(
            "app:request_begin",
            vec![("id", integer(32, false)), ("user", FieldType::String)],
        ),
        class(
            "app:request_end",
            vec![
                ("id", integer(32, false)),
                ("status", integer(16, true)),
                ("load", float),
            ],
        ),
        class(
            "app:sizes",
            vec![
                (
                    "level",
                    FieldType::Enum(Integer::le(8, false), levels.into()),
                ),
                ("key", FieldType::Integer(Integer::hex(64))),
                ("sizes_length", integer(32, false)),
                ("sizes", sizes),
            ],
        ),
    ]
}

/// Writes 100 requests on two CPUs into `dir`: each begins, says sizes and ends; request N takes
/// N µs and 10 µs more, is of the users `ann`, `bob` and `eve` in turn, and ends with the status
/// -1 when N is divisible by 10. Seven events of CPU 1 are lost before its request 51.
///
/// # Errors
/// What the writer says.
pub fn write_sample(dir: &Path) -> Result<()> {
    let meta = TraceMeta {
        environment: vec![("hostname".to_owned(), "sample".into())],
        uuid: [7; 16],
        clocks: vec![ClockMeta::monotonic(WALL_OFFSET_NS)],
        streams: vec![StreamMeta {
            name: "app".to_owned(),
            header: HeaderKind::Compact,
            classes: classes(),
            ..StreamMeta::default()
        }],
        ..TraceMeta::default()
    };
    let mut trace = TraceWriter::create(dir, &meta)?;
    for cpu in 0..2 {
        let mut stream = trace.stream(0, Cpu(cpu))?;
        for request in (0..100u32).filter(|request| request % 2 == cpu) {
            if request == 51 {
                stream.discarded(LOST)?;
            }
            let begin_ns = BEGIN_NS + i64::from(request) * PERIOD_NS;
            let at = |ns: i64| Instant::from_ns(begin_ns + ns);
            let mut payload = PayloadWriter::new();
            let user = ["ann", "bob", "eve"][request as usize % 3];
            stream.event(0, at(0), payload.u32(request).string(user).bytes())?;

            let sizes: Vec<u32> = (0..request % 4).map(|place| request * 10 + place).collect();
            payload.clear().u8(request as u8 % 20);
            payload.u64(u64::MAX - u64::from(request));
            payload.sequence(&sizes, |payload, size| {
                payload.u32(*size);
            });
            stream.event(2, at(5_000), payload.bytes())?;

            let status = if request % 10 == 0 { -1 } else { 0 };
            payload.clear().u32(request).i16(status);
            payload.f64(f64::from(request) / 100.0);
            let end = at(10_000 + i64::from(request) * 1_000);
            stream.event(1, end, payload.bytes())?;
        }
        stream.finish()?;
    }
    Ok(())
}
