//! A length that a trace keeps in its events' headers, which no converter copies, is written before
//! what it counts.

use std::fs;
use std::path::Path;

use event::{FieldId, TimeRange, Value};
use export::Format;
use trace::{Item, Trace};

const HEAD: &str = "/* CTF 1.8 */
typealias integer { size = 8; } := u8;
typealias integer { size = 8; encoding = UTF8; } := letter;
typealias integer { size = 32; } := u32;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
clock { name = c; freq = 1000000000; };
stream {
  packet.context := struct { u32 content_size; u32 packet_size; };
  event.header := struct {
    u8 id; integer { size = 64; map = clock.c.value; } timestamp; u8 n; u8 more[n];
  };
";

/// One packet of events whose headers count `n` = 0, 1, 2, 3, and `body` behind each.
fn write(dir: &Path, rest: &str, body: impl Fn(u8) -> Vec<u8>) {
    fs::write(dir.join("metadata"), format!("{HEAD}{rest}")).expect("written");
    let mut events = Vec::new();
    for n in 0..4u8 {
        events.push(0);
        events.extend((10 + u64::from(n)).to_le_bytes());
        events.push(n);
        events.extend((0..n).map(|m| m + 100));
        events.extend(body(n));
    }
    const HEAD_BYTES: usize = 12;
    let bits = ((HEAD_BYTES + events.len()) * 8) as u32;
    let mut packet = 0xC1FC_1FC1u32.to_le_bytes().to_vec();
    packet.extend([bits.to_le_bytes(), bits.to_le_bytes()].concat());
    packet.extend(events);
    fs::write(dir.join("stream"), packet).expect("written");
}

fn without_lengths(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Struct(members) => Value::Struct({
            let own = members.into_iter();
            own.filter(|(name, _)| !name.contains("_length")).collect()
        }),
        value => value,
    }
}

/// The events, as text: their fields but for those that hold a length.
fn events(path: &Path) -> Vec<String> {
    let trace = Trace::open(path).expect("a trace");
    let mut texts = Vec::new();
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("read") {
        let Item::Event(event) = item else {
            panic!("{item:?}");
        };
        let class = &trace.classes()[event.class().0 as usize];
        let fields = class.fields.iter().enumerate();
        let own = fields.filter(|(_, field)| {
            !field.name.contains("_length") && !ctf::is_packet_bookkeeping(field)
        });
        let text = |(place, field): (usize, &event::Field)| {
            let value: Value<'_> = event.value(FieldId(place as u16));
            format!("{} = {:?}", field.name, without_lengths(value))
        };
        let values: Vec<String> = own.map(text).collect();
        texts.push(format!("{} {}", event.time(), values.join(", ")));
    }
    texts
}

#[track_caller]
fn check(rest: &str, body: impl Fn(u8) -> Vec<u8>) {
    let dir = tempfile::tempdir().expect("a folder");
    let source = dir.path().join("source");
    fs::create_dir(&source).expect("a folder");
    write(&source, rest, body);
    let expect = events(&source);
    assert_eq!(expect.len(), 4, "{expect:?}");
    for format in [Format::Ctf1, Format::Ctf2] {
        let written = dir.path().join(format!("{format:?}"));
        let trace = Trace::open(&source).expect("a trace");
        let mut sink = export::sink(format, &trace, &written).expect("a sink");
        let mut cursor = trace.cursor(TimeRange::ALL);
        while let Some(item) = cursor.next().expect("read") {
            if let Item::Event(event) = item {
                sink.event(&event).expect("written");
            }
        }
        sink.finish().expect("written");
        assert_eq!(events(&written), expect, "{format:?}");
    }
}

/// A number, then `n` bytes.
fn numbers(n: u8) -> Vec<u8> {
    let mut bytes = vec![n + 50];
    bytes.extend((0..n).map(|m| m + 7));
    bytes
}

#[test]
fn a_sequence_that_a_header_counts_is_copied() {
    for length in ["n", "stream.event.header.n"] {
        check(
            &format!(
                "}}; event {{ name = e; id = 0; fields := struct {{ u8 x; u8 a[{length}]; }}; }};"
            ),
            numbers,
        );
    }
}

#[test]
fn a_text_that_a_header_counts_is_copied() {
    check(
        "}; event { name = e; id = 0; fields := struct { letter a[n]; u8 last; }; };",
        |n| [&b"xyz"[..usize::from(n)], b"l"].concat(),
    );
}

#[test]
fn a_context_and_a_structure_that_a_header_counts_are_copied() {
    check(
        "event.context := struct { u8 x; u8 c[stream.event.header.n]; }; };
         event { name = e; id = 0; fields := struct { struct { u8 x; u8 a[n]; } s; u8 last; }; };",
        |n| [numbers(n), numbers(n), vec![9]].concat(),
    );
}

#[test]
fn a_name_that_is_taken_stays_its_own() {
    check(
        "}; event { name = e; id = 0; fields := struct { u8 a_length; u8 a[n]; u8 last; }; };",
        |n| [numbers(n), vec![n]].concat(),
    );
}
