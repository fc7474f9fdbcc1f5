//! Traces written call by call read back as they were written, or do not appear.

use std::path::Path;
use std::sync::Arc;

use event::{Cpu, ErrorKind, Instant, Value};
use face::{Accessor, Given, Selection, Step, Walk, Writer};
use trace::Trace;

fn at(ns: i64) -> Instant {
    Instant::from_ns(ns)
}

const TYPES: [&str; 9] = [
    "u8",
    "i64",
    "x32",
    "f32",
    "f64",
    "string",
    "i16[]",
    "u8{LOW=0..9}",
    "f32[]",
];

/// Two events of all types, a loss, and an event of another stream.
fn write(path: &Path, format: &str) {
    let mut writer = Writer::create(path).unwrap();
    writer.format(format).unwrap();
    writer.environment("hostname", "here").unwrap();
    writer.wall_offset_ns(1_000).unwrap();
    let app = writer.stream("app").unwrap();
    let net = writer.stream("net").unwrap();
    let work = writer.class(app, "app:work").unwrap();
    for (place, ty) in TYPES.iter().enumerate() {
        let number = writer.field(work, &format!("f{place}"), ty).unwrap();
        assert_eq!(number, place as u32);
    }
    let packet = writer.class(net, "net:packet").unwrap();
    writer.field(packet, "size", "u32").unwrap();
    let values = [
        Given::Unsigned(255),
        Given::Signed(i64::MIN),
        Given::Signed(16),
        Given::Float(0.5),
        Given::Signed(3),
        Given::Text(b"text"),
        Given::SignedList(&[-1, 2]),
        Given::Unsigned(7),
        Given::FloatList(&[1.5, -2.0]),
    ];
    for (field, value) in values.iter().enumerate() {
        writer.set(work, field as u32, *value).unwrap();
    }
    writer.event(work, Cpu(0), at(10)).unwrap();
    writer.event(work, Cpu(1), at(5)).unwrap();
    writer.discarded(net, Cpu(0), 4).unwrap();
    writer.set(packet, 0, Given::Unsigned(1500)).unwrap();
    writer.event(packet, Cpu(0), at(20)).unwrap();
    assert!(!path.exists(), "it appears when it is closed");
    assert_eq!(writer.close().unwrap(), path);
}

/// An event's time, its CPU and its fields.
type Seen = (i64, u32, Vec<String>);

/// Every event, and how many were lost.
fn read(walk: &mut Walk) -> (Vec<Seen>, u64) {
    let (mut events, mut lost) = (Vec::new(), 0);
    loop {
        match walk.advance().unwrap() {
            Step::Event => {
                let event = walk.event().unwrap();
                let class = &walk.trace().classes()[event.class().0 as usize];
                let fields = (0..TYPES.len()).filter_map(|n| class.field(&format!("f{n}")));
                let fields = fields.map(|field| format!("{:?}", event.value(field)));
                events.push((
                    event.time().as_ns(),
                    event.cpu().unwrap().0,
                    fields.collect(),
                ));
            }
            Step::Lost(loss) => lost += loss.count.unwrap(),
            Step::Damage(damage) => panic!("{damage:?}"),
            Step::End => return (events, lost),
        }
    }
}

#[test]
fn a_written_trace_reads_back_with_all_types_streams_cpus_and_losses() {
    check("ctf1", "1.8");
    check("ctf2", "2");
}

fn check(format: &str, version: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    write(&path, format);
    let trace = Arc::new(Trace::open(&path).unwrap());
    assert_eq!(trace.parts()[0].format_version, version);
    assert_eq!(trace.info().environment["hostname"], "here");
    assert_eq!(trace.wall_ns(at(10)), 1_010);
    let mut walk = Walk::new(&trace, Selection::default()).unwrap();
    let shown = |values: [Value<'_>; 9]| values.map(|value| format!("{value:?}")).to_vec();
    let low = |value| Value::Enum {
        value,
        label: Some("LOW"),
    };
    let set = shown([
        Value::Unsigned(255),
        Value::Signed(i64::MIN),
        Value::Unsigned(16),
        Value::Float(0.5),
        Value::Float(3.0),
        Value::Text("text".into()),
        Value::Array(vec![Value::Signed(-1), Value::Signed(2)]),
        low(7),
        Value::Array(vec![Value::Float(1.5), Value::Float(-2.0)]),
    ]);
    let unset = shown([
        Value::Unsigned(0),
        Value::Signed(0),
        Value::Unsigned(0),
        Value::Float(0.0),
        Value::Float(0.0),
        Value::Text("".into()),
        Value::Array(Vec::new()),
        low(0),
        Value::Array(Vec::new()),
    ]);
    let expect = vec![(5, 1, unset), (10, 0, set), (20, 0, Vec::new())];
    assert_eq!(read(&mut walk), (expect, 4));

    let size = Accessor::bind(&trace, "size").unwrap();
    walk.seek(at(20)).unwrap();
    assert!(matches!(walk.advance().unwrap(), Step::Lost(_)));
    assert_eq!(walk.advance().unwrap(), Step::Event);
    assert_eq!(size.i64(&walk.event().unwrap()), Some(1500));
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let mut writer = Writer::create(&path).unwrap();
    let check = |result: event::Result<()>, expect: ErrorKind| {
        assert_eq!(result.unwrap_err().kind(), expect);
    };
    let invalid = ErrorKind::InvalidInput;
    check(writer.format("tsdl"), invalid);
    check(writer.stream("a/b").map(drop), invalid);
    check(writer.class(0, "early").map(drop), ErrorKind::NotFound);
    let stream = writer.stream("app").unwrap();
    check(writer.stream("app").map(drop), invalid);
    let class = writer.class(stream, "work").unwrap();
    check(writer.field(class, "i", "int").map(drop), invalid);
    check(writer.field(class, "1i", "u8").map(drop), invalid);
    writer.field(class, "i", "u8").unwrap();
    check(writer.field(class, "i", "u8").map(drop), invalid);
    check(writer.field(9, "i", "u8").map(drop), ErrorKind::NotFound);
    check(writer.set(class, 0, Given::Unsigned(256)), invalid);
    check(writer.set(class, 0, Given::Signed(-1)), invalid);
    check(writer.set(class, 0, Given::Text(b"1")), invalid);
    check(
        writer.set(class, 1, Given::Unsigned(1)),
        ErrorKind::NotFound,
    );
    check(writer.event(class, Cpu(0), at(-1)), invalid);
    writer.event(class, Cpu(0), at(10)).unwrap();
    check(writer.event(class, Cpu(0), at(9)), invalid);
    check(writer.stream("late").map(drop), invalid);
    check(writer.format("ctf2"), invalid);
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
