//! Check that a trace which is ended early holds all that happened until then, and nothing else.

use std::path::Path;

use ctf::reader::{Step, StreamReader, TraceFiles};
use ctf::writer::{
    ClockMeta, HeaderKind, PayloadWriter, StreamMeta, StreamWriter, TraceMeta, TraceWriter,
    random_uuid,
};
use event::{ClassId, Cpu, EventClass, Field, FieldType, Instant, Integer};

/// Events of both streams happen at the instants before this one.
const END_NS: i64 = 60;

fn meta(header: HeaderKind) -> TraceMeta {
    let class = EventClass {
        id: ClassId(0),
        name: "robot:step".to_owned(),
        stream: 0,
        fields: [Field::payload(
            "number",
            FieldType::Integer(Integer::le(32, false)),
        )]
        .into(),
    };
    TraceMeta {
        uuid: random_uuid().expect("random bytes"),
        clocks: vec![ClockMeta::monotonic(1_000)],
        streams: vec![StreamMeta {
            name: "channel0".to_owned(),
            header,
            classes: vec![class],
            ..StreamMeta::default()
        }],
        ..TraceMeta::default()
    }
}

/// Whose events the first stream holds: they come in stretches of any length, as threads move.
fn is_first(ns: i64) -> bool {
    ns / 7 % 3 == 0
}

/// Writes an event at each instant, in packets of `count` events, the last of which stay open.
fn write(writer: &mut TraceWriter, count: i64) -> [StreamWriter; 2] {
    let mut payload = PayloadWriter::new();
    let mut streams = [0, 1].map(|cpu| writer.stream(0, Cpu(cpu)).expect("a stream"));
    for ns in 10..END_NS {
        let stream = &mut streams[usize::from(!is_first(ns))];
        payload.clear().u32(ns as u32);
        let event = stream.event(0, Instant::from_ns(ns), payload.bytes());
        event.expect("an event");
        if ns % count == 0 {
            stream.gap().expect("room");
        }
    }
    streams
}

/// The events of a stream, and the end of its last packet by its index.
fn read(files: &TraceFiles, dir: &Path, place: usize) -> (Vec<i64>, u64) {
    let name = files.streams()[place].name();
    let bytes = std::fs::read(dir.join(name)).expect("a stream");
    let mut reader = StreamReader::new(files.schema(), &bytes);
    let mut times = Vec::new();
    loop {
        match reader.step() {
            Step::Event => times.push(reader.time_ns()),
            Step::End => break,
            other => panic!("{other:?}"),
        }
    }
    let index = std::fs::read(dir.join(format!("index/{name}.idx"))).expect("an index");
    let last = index[16..].chunks(72).last().expect("a packet");
    (
        times,
        u64::from_be_bytes(*last[32..].first_chunk().expect("eight bytes")),
    )
}

fn check(header: HeaderKind, count: i64, until_ns: i64) {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("trace");
    let mut writer = TraceWriter::create(&dir, &meta(header)).expect("a trace");
    let mut streams = write(&mut writer, count);
    let until = Instant::from_ns(until_ns);
    let mut all: Vec<_> = streams.iter_mut().collect();
    let ended = writer.end_at(&mut all, until).expect("it ends");
    assert_eq!(ended, until, "there was room for all");
    let mut events = 0;
    for mut stream in streams {
        stream.covers(until).expect("not before its last event");
        events += stream.finish().expect("room").events;
    }
    let files = TraceFiles::open(&dir).expect("a trace");
    let mut times = Vec::new();
    for place in 0..2 {
        let (mut some, end_ns) = read(&files, &dir, place);
        times.append(&mut some);
        assert_eq!(end_ns, until_ns as u64, "both streams end at once");
    }
    times.sort();
    let expect: Vec<i64> = (10..END_NS.min(until_ns + 1)).collect();
    assert_eq!(
        times, expect,
        "{header:?}, packets of {count}, until {until_ns}"
    );
    assert_eq!(events, expect.len() as u64, "as many as the writer says");
}

#[test]
fn nothing_is_left_behind_the_end_and_nothing_is_missing_before_it() {
    for header in [HeaderKind::Compact, HeaderKind::Large] {
        for count in [1, 9, 1000] {
            for until_ns in (0..END_NS + 3).step_by(3) {
                check(header, count, until_ns);
            }
        }
    }
}
