//! A length or a selector that a trace keeps in its headers, which no converter copies, is written
//! before what it counts or chooses.

use std::fs;
use std::path::Path;

use event::{FieldId, TimeRange, Value};
use export::Format;
use trace::{Item, Trace};

const HEAD: &str = "/* CTF 1.8 */
typealias integer { size = 8; } := u8;
typealias integer { size = 8; encoding = UTF8; } := letter;
typealias integer { size = 16; } := u16;
typealias integer { size = 32; } := u32;
trace {
  major = 1; minor = 8; byte_order = le;
  packet.header := struct { u32 magic; u8 count; enum : u8 { few, many } size; };
};
clock { name = c; freq = 1000000000; };
stream {
  packet.context := struct {
    u32 content_size; u32 packet_size; u8 words[trace.packet.header.count];
    variant <trace.packet.header.size> { u8 few; u16 many; } how;
  };
  event.header := struct {
    u8 id; integer { size = 64; map = clock.c.value; } timestamp; u8 n; u8 more[n];
    enum : u8 { none, one, some = 2 ... 3 } k;
    variant <k> { u8 none; u16 one; struct { u8 deep; } some; } v;
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
        events.push(n);
        events.extend(if n == 1 {
            vec![200, 201]
        } else {
            vec![n + 200]
        });
        events.extend(body(n));
    }
    const HEAD_BYTES: usize = 18;
    let bits = ((HEAD_BYTES + events.len()) * 8) as u32;
    let mut packet = 0xC1FC_1FC1u32.to_le_bytes().to_vec();
    packet.extend([2, 1]);
    packet.extend([bits.to_le_bytes(), bits.to_le_bytes()].concat());
    packet.extend([33, 34, 35, 36]);
    packet.extend(events);
    fs::write(dir.join("stream"), packet).expect("written");
}

/// Whether the converter added a field.
fn is_added(name: &str) -> bool {
    name.contains("_length") || name.contains("_selector")
}

fn without_added(value: Value<'_>) -> Value<'_> {
    match value {
        // As CTF 1.8 has an optional field, and a blob.
        Value::Struct(members) => match &members[..] {
            [("none", Value::Struct(nothing))] if nothing.is_empty() => Value::Absent,
            [("some", value)] => without_added(value.clone()),
            _ => {
                let own = members.into_iter().filter(|(name, _)| !is_added(name));
                let own = own.map(|(name, value)| (name, without_added(value)));
                Value::Struct(own.collect())
            }
        },
        Value::Blob(bytes) => {
            let bytes = bytes.iter().map(|byte| Value::Unsigned((*byte).into()));
            Value::Array(bytes.collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_added).collect()),
        value => value,
    }
}

/// The events, as text: their fields but for those that a converter adds.
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
        let own = fields
            .filter(|(_, field)| !is_added(&field.name) && !ctf::is_packet_bookkeeping(field));
        let text = |(place, field): (usize, &event::Field)| {
            let value: Value<'_> = event.value(FieldId(place as u16));
            format!("{} = {:?}", field.name, without_added(value))
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
    check_copies(dir.path(), &source);
}

/// Both dialects have the same events as the trace `source`.
#[track_caller]
fn check_copies(dir: &Path, source: &Path) {
    let expect = events(source);
    for format in [Format::Ctf1, Format::Ctf2] {
        let written = dir.join(format!("{format:?}"));
        let trace = Trace::open(source).expect("a trace");
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

#[test]
fn a_variant_that_a_header_chooses_is_copied() {
    for selector in ["k", "stream.event.header.k"] {
        check(
            &format!(
                "}}; event {{ name = e; id = 0; fields := struct {{
                   u8 x;
                   variant <{selector}> {{
                     u8 none; u16 one;
                     struct {{ u8 y; variant <{selector}> {{ u8 some; u8 none; }} w; }} some;
                   }} v;
                   u8 last;
                 }}; }};"
            ),
            |n| match n {
                0 => vec![1, 2, 3],
                1 => vec![1, 2, 3, 4],
                _ => vec![1, n, 3, 4],
            },
        );
    }
}

#[test]
fn what_a_header_counts_or_chooses_deep_inside_is_copied() {
    check(
        "}; event { name = e; id = 0; fields := struct { u8 grid[2][n]; u8 cube[n][n]; }; };",
        |n| vec![9; usize::from(2 * n + n * n)],
    );
    check(
        "}; event { name = e; id = 0; fields := struct {
           variant <k> { u8 none[n]; letter one[n]; struct { u8 a[n]; } some[n]; } v;
           variant <k> { u8 none; u8 one; u8 some; } each[n];
         }; };",
        |n| vec![8; usize::from(if n > 1 { n * n } else { n }) + usize::from(n)],
    );
}

/// A class of CTF 2 whose header and whose payload both have a field `n`.
const CTF2: &str = r#"\x1e{"type": "preamble", "version": 2}
\x1e{"type": "trace-class"}
\x1e{"type": "clock-class", "id": "c", "name": "c", "frequency": 1000000000,
  "origin": "unix-epoch", "offset-from-origin": {"seconds": 0, "cycles": 0}}
\x1e{"type": "data-stream-class", "id": 0, "default-clock-class-id": "c",
  "packet-context-field-class": {"type": "structure", "member-classes": [
    {"name": "content_size", "field-class": BITS32},
    {"name": "packet_size", "field-class": BITS32}]},
  "event-record-header-field-class": {"type": "structure", "member-classes": [
    {"name": "t", "field-class": TIME}, {"name": "n", "field-class": U8},
    {"name": "v", "field-class": {"type": "variant", "selector-field-location":
      {"origin": "event-record-header", "path": ["n"]}, "options": [
      {"selector-field-ranges": [[0, 1]], "field-class": {"type": "structure",
        "member-classes": [{"name": "m", "field-class": U8}]}},
      {"selector-field-ranges": [[2, 255]], "field-class": {"type": "structure",
        "member-classes": [{"name": "x", "field-class": U8},
          {"name": "m", "field-class": U8}]}}]}}]}}
\x1e{"type": "event-record-class", "id": 0, "data-stream-class-id": 0, "name": "e",
  "payload-field-class": {"type": "structure", "member-classes": [
    {"name": "n", "field-class": U8},
    {"name": "a", "field-class": {"type": "dynamic-length-array", "element-field-class": U8,
      "length-field-location": {"origin": "event-record-header", "path": ["n"]}}},
    {"name": "b", "field-class": {"type": "dynamic-length-blob",
      "length-field-location": {"origin": "event-record-header", "path": ["v", "m"]}}},
    {"name": "o", "field-class": {"type": "optional", "field-class": U8,
      "selector-field-location": {"origin": "event-record-header", "path": ["n"]},
      "selector-field-ranges": [[2, 3]]}}]}}
"#;

#[test]
fn ctf2_tells_a_header_s_field_from_one_of_the_payload() {
    let integer = |bits: u8, roles: &str| {
        format!(
            r#"{{"type": "fixed-length-unsigned-integer", "length": {bits}, "alignment": 8,
                "byte-order": "little-endian", "roles": [{roles}]}}"#
        )
    };
    let metadata = CTF2
        .replace("\\x1e", "\u{1e}")
        .replacen("BITS32", &integer(32, "\"packet-content-length\""), 1)
        .replacen("BITS32", &integer(32, "\"packet-total-length\""), 1)
        .replace("TIME", &integer(64, "\"default-clock-timestamp\""))
        .replace("U8", &integer(8, ""));
    let mut events = Vec::new();
    for n in 0..4u8 {
        events.extend(u64::from(n).to_le_bytes());
        events.push(n);
        let m = 3 - n;
        events.extend(if n < 2 { vec![m] } else { vec![77, m] });
        events.push(n + 40);
        events.extend((0..n).map(|i| i + 50));
        events.extend((0..m).map(|i| i + 60));
        events.extend((n > 1).then_some(70));
    }
    let bits = ((8 + events.len()) * 8) as u32;
    let head = [bits.to_le_bytes(), bits.to_le_bytes()].concat();
    let dir = tempfile::tempdir().expect("a folder");
    let source = dir.path().join("source");
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("metadata"), metadata).expect("written");
    fs::write(source.join("stream"), [head, events].concat()).expect("written");
    let lines = crate::events(&source);
    assert_eq!(
        lines[2],
        "0.000000002 n = Unsigned(42), a = Array([Unsigned(50), Unsigned(51)]), \
         b = Array([Unsigned(60)]), o = Unsigned(70)"
    );
    check_copies(dir.path(), &source);
}
