//! CTF 2: every field class and role of the final form, the dialect of release candidates, and
//! fragments that must be refused.

use ctf::reader::{Schema, Step, StreamReader};
use ctf::writer::EnvValue;
use event::{ErrorKind, FieldId};
use proptest::prelude::*;

/// Fragments with their record separators.
fn sequence(fragments: &[&str]) -> String {
    fragments.iter().map(|f| format!("\x1e{f}\n")).collect()
}

const PREAMBLE: &str = r#"{"type": "preamble", "version": 2}"#;

/// The only stream class, of a clock of 1 kHz, with roles in odd places.
const TRACE: [&str; 5] = [
    PREAMBLE,
    r#"{"type": "field-class-alias", "name": "u8", "field-class": {
      "type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian"}}"#,
    r#"{"type": "trace-class", "environment": {"hostname": "vm", "level": -3},
      "packet-header-field-class": {"type": "structure", "member-classes": [
       {"name": "m", "field-class": {"type": "fixed-length-unsigned-integer", "length": 32,
        "byte-order": "big-endian", "roles": ["packet-magic-number"]}},
       {"name": "nest", "field-class": {"type": "structure", "member-classes": [
        {"name": "s", "field-class": {"type": "variable-length-unsigned-integer",
         "roles": ["data-stream-class-id"]}}]}}]}}"#,
    r#"{"type": "clock-class", "id": "c", "frequency": 1000, "origin": "unix-epoch",
      "offset-from-origin": {"seconds": 5, "cycles": -7}}"#,
    r#"{"type": "data-stream-class", "id": 7, "default-clock-class-id": "c",
      "packet-context-field-class": {"type": "structure", "member-classes": [
       {"name": "total", "field-class": {"type": "variable-length-unsigned-integer",
        "roles": ["packet-total-length"]}},
       {"name": "used", "field-class": {"type": "variable-length-unsigned-integer",
        "roles": ["packet-content-length"]}},
       {"name": "t", "field-class": {"type": "variable-length-unsigned-integer",
        "roles": ["default-clock-timestamp"]}},
       {"name": "cpu_id", "field-class": "u8"}]},
      "event-record-header-field-class": {"type": "structure", "member-classes": [
       {"name": "which", "field-class": {"type": "variable-length-unsigned-integer",
        "roles": ["event-record-class-id"]}},
       {"name": "when", "field-class": {"type": "variable-length-unsigned-integer",
        "roles": ["default-clock-timestamp"]}}]},
      "event-record-common-context-field-class": {"type": "structure", "member-classes": [
       {"name": "shared", "field-class": "u8"}]}}"#,
];

/// An event class of the payload's members, with id 3.
fn event_class(members: &str) -> String {
    format!(
        r#"{{"type": "event-record-class", "name": "e", "id": 3, "data-stream-class-id": 7,
        "payload-field-class": {{"type": "structure", "member-classes": [{members}]}}}}"#
    )
}

fn member(name: &str, class: &str) -> String {
    format!(r#"{{"name": "{name}", "field-class": {class}}}"#)
}

fn schema(members: &str) -> event::Result<Schema> {
    let event = event_class(members);
    let mut fragments = TRACE.to_vec();
    fragments.push(&event);
    Schema::parse(&sequence(&fragments))
}

/// A packet with one event: header, context, then id 3, time 2 and a shared context of 4.
fn packet(payload: &[u8]) -> Vec<u8> {
    let size_bits = (12 + 3 + payload.len()) as u64 * 8;
    let leb = |bits: u64| [(bits & 0x7f) as u8 | 0x80, (bits >> 7) as u8];
    let mut bytes = vec![0xc1, 0xfc, 0x1f, 0xc1, 7];
    bytes.extend(leb(size_bits));
    bytes.extend(leb(size_bits));
    // 256 ticks, in two bytes: the event's 2 is of seven bits.
    bytes.extend([0x80, 2, 1]);
    bytes.extend([3, 2, 4]);
    bytes.extend(payload);
    bytes
}

/// The only event's payload, decoded, when it is all of the packet.
fn decode(members: &str, payload: &[u8]) -> Vec<String> {
    let schema = schema(members).unwrap();
    let bytes = packet(payload);
    let mut reader = StreamReader::new(&schema, &bytes);
    assert_eq!(reader.step(), Step::Event, "{members}");
    assert_eq!(reader.time_ns(), 258_000_000);
    assert_eq!(reader.cpu(), Some(1));
    let event = reader.event().unwrap();
    let class = &schema.classes[event.class().0 as usize];
    let shared = event.u64_of("shared", &schema);
    assert_eq!(shared, 4);
    let payload = class
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.scope == event::Scope::Payload);
    let values = payload
        .map(|(place, _)| format!("{:?}", event.value(FieldId(place as u16))))
        .collect();
    assert_eq!(reader.step(), Step::End, "{members}");
    values
}

trait ByName {
    fn u64_of(&self, name: &str, schema: &Schema) -> i64;
}

impl ByName for ctf::reader::EventRef<'_> {
    fn u64_of(&self, name: &str, schema: &Schema) -> i64 {
        let class = &schema.classes[self.class().0 as usize];
        self.i64(class.field(name).unwrap())
    }
}

/// One member `x`, after a byte `n` that lengths and selectors refer to.
fn check(class: &str, bytes: &[u8], expect: &str) {
    let members = format!("{}, {}", member("n", "\"u8\""), member("x", class));
    assert_eq!(decode(&members, bytes)[1], expect, "{class}");
}

fn fixed(kind: &str, length: u32, more: &str) -> String {
    format!(
        r#"{{"type": "fixed-length-{kind}", "length": {length}, "alignment": 8,
        "byte-order": "little-endian" {more}}}"#
    )
}

#[test]
fn numbers_of_every_kind_are_decoded() {
    check(
        &fixed("unsigned-integer", 16, ""),
        &[0, 1, 2],
        "Unsigned(513)",
    );
    check(&fixed("signed-integer", 8, ""), &[0, 0xff], "Signed(-1)");
    check(&fixed("bit-array", 8, ""), &[0, 0xff], "Unsigned(255)");
    check(&fixed("boolean", 8, ""), &[0, 2], "Bool(true)");
    let flags = r#", "flags": {"low": [[0, 1]], "high": [[7, 7]], "none": [[3, 4]]}"#;
    let expect = "Flags { bits: 130, labels: [\"high\", \"low\"] }";
    check(&fixed("bit-map", 8, flags), &[0, 0x82], expect);
    let labels = r#", "mappings": {"few": [[1, 3], [9, 9]], "one": [[1, 1]]}"#;
    let expect = "Enum { value: 9, label: Some(\"few\") }";
    check(&fixed("unsigned-integer", 8, labels), &[0, 9], expect);
    let expect = "Enum { value: 1, label: Some(\"one\") }";
    check(&fixed("unsigned-enumeration", 8, labels), &[0, 1], expect);
    check(
        &fixed("unsigned-integer", 72, ""),
        &[0; 10],
        "Blob([0, 0, 0, 0, 0, 0, 0, 0, 0])",
    );
    let turned = r#", "bit-order": "last-to-first""#;
    check(
        &fixed("unsigned-integer", 8, turned),
        &[0, 0x12],
        "Unsigned(72)",
    );
    let float = |bits| fixed("floating-point-number", bits, "");
    check(&float(16), &[0, 0, 0xc0], "Float(-2.0)");
    check(&float(32), &[0, 0, 0, 0xc0, 0x3f], "Float(1.5)");
    check(&float(64), &[0, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f], "Float(1.5)");
    let variable = |kind: &str| format!(r#"{{"type": "variable-length-{kind}"}}"#);
    check(
        &variable("unsigned-integer"),
        &[0, 0xe5, 0x8e, 0x26],
        "Unsigned(624485)",
    );
    check(
        &variable("signed-integer"),
        &[0, 0xc0, 0xbb, 0x78],
        "Signed(-123456)",
    );
}

#[test]
fn texts_and_blobs_of_every_kind_are_decoded() {
    let text = |kind: &str, more: &str| format!(r#"{{"type": "{kind}-string" {more}}}"#);
    let at_n = r#", "length-field-location": {"path": ["n"]}"#;
    check(&text("null-terminated", ""), b"\0hi\0", "Text(\"hi\")");
    check(
        &text("static-length", r#", "length": 4"#),
        b"\0hi\0x",
        "Text(\"hi\")",
    );
    check(&text("dynamic-length", at_n), b"\x02hi", "Text(\"hi\")");
    let wide = |encoding: &str| format!(r#", "encoding": "{encoding}""#);
    let bytes = [0, 0xe9, 0, 0x3d, 0xd8, 0, 0xde, 0, 0];
    check(
        &text("null-terminated", &wide("utf-16le")),
        &bytes,
        "Text(\"é😀\")",
    );
    let dynamic = format!("{at_n}{}", wide("utf-16be"));
    check(
        &text("dynamic-length", &dynamic),
        &[4, 0, 0xe9, 0, 0x41],
        "Text(\"éA\")",
    );
    let fixed = format!(r#", "length": 8{}"#, wide("utf-32le"));
    check(
        &text("static-length", &fixed),
        &[0, 0x41, 0, 0, 0, 0, 0, 0, 0],
        "Text(\"A\")",
    );
    let fixed = format!(r#", "length": 4{}"#, wide("utf-32be"));
    check(
        &text("static-length", &fixed),
        &[0, 0, 1, 0xf6, 0],
        "Text(\"😀\")",
    );
    let blob = r#"{"type": "static-length-blob", "length": 2, "media-type": "image/tiff"}"#;
    check(blob, &[0, 7, 8], "Blob([7, 8])");
    let blob = format!(r#"{{"type": "dynamic-length-blob"{at_n}}}"#);
    check(&blob, &[1, 7], "Blob([7])");
}

#[test]
fn compounds_of_every_kind_are_decoded() {
    let array = r#"{"type": "static-length-array", "length": 2, "element-field-class": "u8"}"#;
    check(array, &[0, 7, 8], "Array([Unsigned(7), Unsigned(8)])");
    let at = r#"{"origin": "event-record-payload", "path": ["n"]}"#;
    let array = format!(
        r#"{{"type": "dynamic-length-array", "length-field-location": {at},
        "element-field-class": "u8"}}"#
    );
    check(&array, &[1, 7], "Array([Unsigned(7)])");
    let optional = |ranges: &str| {
        format!(
            r#"{{"type": "optional", "selector-field-location": {at} {ranges},
            "field-class": "u8"}}"#
        )
    };
    check(&optional(""), &[0], "Absent");
    check(&optional(""), &[1, 9], "Unsigned(9)");
    let ranges = r#", "selector-field-ranges": [[0, 0], [5, 6]]"#;
    check(&optional(ranges), &[6, 9], "Unsigned(9)");
    check(&optional(ranges), &[1], "Absent");
    let variant = format!(
        r#"{{"type": "variant", "selector-field-location": {at}, "options": [
        {{"name": "a", "selector-field-ranges": [[0, 3]], "field-class": "u8"}},
        {{"selector-field-ranges": [[9, 9]],
          "field-class": {{"type": "null-terminated-string"}}}}]}}"#
    );
    check(&variant, &[2, 9], "Struct([(\"a\", Unsigned(9))])");
    check(&variant, b"\x09hi\0", "Struct([(\"1\", Text(\"hi\"))])");
    let common = r#"{"type": "dynamic-length-array", "element-field-class": "u8",
        "length-field-location": {"origin": "event-record-common-context", "path": ["shared"]}}"#;
    let expect = "Array([Unsigned(1), Unsigned(2), Unsigned(3), Unsigned(4)])";
    check(common, &[0, 1, 2, 3, 4], expect);
    let structure = r#"{"type": "structure", "minimum-alignment": 64, "member-classes": []}"#;
    // The payload takes on the alignment, then its last member does again.
    check(structure, &[0; 9], "Struct([])");
}

#[test]
fn locations_lead_through_the_structures_around() {
    let string = |location: &str| {
        format!(r#"{{"type": "dynamic-length-string", "length-field-location": {location}}}"#)
    };
    let nested = |location: &str| {
        let inner = format!(
            r#"{{"type": "structure", "member-classes": [{}, {}]}}"#,
            member("k", "\"u8\""),
            member("s", &string(location))
        );
        let elements = format!(
            r#"{{"type": "static-length-array", "length": 2, "element-field-class": {inner}}}"#
        );
        format!("{}, {}", member("n", "\"u8\""), member("x", &elements))
    };
    let words = |location: &str, bytes: &[u8]| decode(&nested(location), bytes)[1].clone();
    let near = "Array([Struct([(\"k\", Unsigned(1)), (\"s\", Text(\"a\"))]), \
                Struct([(\"k\", Unsigned(2)), (\"s\", Text(\"bc\"))])])";
    assert_eq!(words(r#"{"path": ["k"]}"#, b"\x00\x01a\x02bc"), near);
    let absolute = r#"{"origin": "event-record-payload", "path": ["x", "k"]}"#;
    assert_eq!(words(absolute, b"\x00\x01a\x02bc"), near);
    let far = "Array([Struct([(\"k\", Unsigned(1)), (\"s\", Text(\"ab\"))]), \
               Struct([(\"k\", Unsigned(2)), (\"s\", Text(\"cd\"))])])";
    assert_eq!(words(r#"{"path": [null, "n"]}"#, b"\x02\x01ab\x02cd"), far);
}

#[test]
fn names_keep_their_underscores_and_the_environment_its_values() {
    let schema = schema(&member("_x", "\"u8\"")).unwrap();
    assert_eq!(schema.classes[0].fields[0].name, "_x");
    assert_eq!(schema.env("hostname"), Some(&EnvValue::Text("vm".into())));
    assert_eq!(schema.env("level"), Some(&EnvValue::Integer(-3)));
    assert_eq!(schema.clocks[0].wall_offset_ns(), 4_993_000_000);
}

#[test]
fn the_dialect_of_release_candidates_is_read() {
    let uuid = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]";
    let stream = r#"{"type": "data-stream-class", "default-clock-class-name": "m",
      "event-record-header-field-class": {"type": "structure", "member-classes": [
       {"name": "id", "field-class": {"type": "fixed-length-unsigned-enumeration", "length": 8,
        "alignment": 8, "byte-order": "little-endian", "roles": ["event-record-class-id"],
        "mappings": {"a": [[0, 9]]}}},
       {"name": "v", "field-class": {"type": "variant",
        "selector-field-location": ["event-record-header", "id"], "options": [
        {"name": "a", "selector-field-ranges": [[0, 9]], "field-class": {
         "type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian",
         "roles": ["default-clock-timestamp"]}}]}}]}}"#;
    let metadata = sequence(&[
        &format!(r#"{{"type": "preamble", "uuid": {uuid}, "version": 2}}"#),
        &format!(r#"{{"type": "trace-class", "uuid": {uuid}}}"#),
        r#"{"type": "clock-class", "name": "m", "frequency": 1000000000}"#,
        stream,
        r#"{"type": "event-record-class", "name": "e",
            "user-attributes": {"anyone": {"level": 3}}}"#,
    ]);
    let schema = Schema::parse(&metadata).unwrap();
    assert_eq!(schema.uuid.map(|uuid| uuid[15]), Some(16));
    let mut reader = StreamReader::new(&schema, &[0, 5, 0, 6]);
    let mut times = Vec::new();
    while reader.step() == Step::Event {
        times.push(reader.time_ns());
    }
    assert_eq!(times, [5, 6]);
}

#[test]
fn fragments_without_sense_are_refused_with_their_number_and_place() {
    let check = |fragments: &[&str], kind: ErrorKind, found: &str| {
        let Err(error) = Schema::parse(&sequence(fragments)) else {
            panic!("{fragments:?} was accepted")
        };
        let text = error.to_string();
        assert!(error.kind() == kind && text.contains(found), "{text}");
    };
    let stream = r#"{"type": "data-stream-class"}"#;
    let corrupt = ErrorKind::Corrupt;
    check(&[PREAMBLE], corrupt, "no data stream class");
    check(
        &[stream],
        corrupt,
        "fragment 1 at byte 1: 'data-stream-class', not the preamble",
    );
    check(
        &[r#"{"type": "preamble", "version": 3}"#],
        corrupt,
        "version 3",
    );
    let extended = r#"{"type": "preamble", "version": 2, "extensions": {"a": {}}}"#;
    check(&[extended], ErrorKind::Unsupported, "extensions");
    check(
        &[PREAMBLE, r#"{"type": "new"}"#],
        corrupt,
        "fragment 2 at byte 37: the unknown type 'new'",
    );
    check(&[PREAMBLE, "{", stream], corrupt, "fragment 2 at byte 37: ");
    check(
        &[PREAMBLE, stream, stream],
        corrupt,
        "fragment 3 at byte 68: the data stream class 0 twice",
    );
    check(
        &[PREAMBLE, "[]"],
        corrupt,
        "fragment 2 at byte 37: a fragment that is no object: []",
    );
    let circle = r#"{"type": "field-class-alias", "name": "a", "field-class": "a"}"#;
    check(&[PREAMBLE, circle], corrupt, "the unknown alias 'a'");
    let mut doubling = vec![PREAMBLE.to_owned(), TRACE[1].replace("\"u8\"", "\"t0\"")];
    for place in 1..60 {
        let before = format!("\"t{}\"", place - 1);
        let members = format!("{}, {}", member("a", &before), member("b", &before));
        doubling.push(format!(
            r#"{{"type": "field-class-alias", "name": "t{place}", "field-class":
            {{"type": "structure", "member-classes": [{members}]}}}}"#
        ));
    }
    let doubling: Vec<&str> = doubling.iter().map(String::as_str).collect();
    check(&doubling, corrupt, "too large");
}

#[test]
fn a_fragment_that_is_still_being_written_is_left_out() {
    let mut metadata = sequence(&[PREAMBLE, r#"{"type": "data-stream-class"}"#]);
    metadata += "\x1e{\"type\": \"event-rec";
    assert!(Schema::parse(&metadata).unwrap().classes.is_empty());
}

#[test]
fn an_integer_that_never_ends_is_damage() {
    let members = member("x", r#"{"type": "variable-length-unsigned-integer"}"#);
    let schema = schema(&members).unwrap();
    let bytes = packet(&[0xff; 20]);
    let Step::Damage(damage) = StreamReader::new(&schema, &bytes).step() else {
        panic!("an event was read")
    };
    assert!(damage.reason.contains("variable length"), "{damage:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn mutated_fragments_and_packets_end_without_a_panic(
        changes in proptest::collection::vec((any::<u16>(), any::<u16>()), 0..4),
        payload in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let location = r#"{"path": ["n"]}"#;
        let members = [
            member("n", "\"u8\""),
            member("w", &format!(r#"{{"type": "dynamic-length-string", "encoding": "utf-16le",
                "length-field-location": {location}}}"#)),
            member("o", &format!(r#"{{"type": "optional", "field-class": "u8",
                "selector-field-location": {location}}}"#)),
            member("v", r#"{"type": "variable-length-signed-integer"}"#),
        ];
        let event = event_class(&members.join(","));
        let mut fragments = TRACE.to_vec();
        fragments.push(&event);
        let mut metadata = sequence(&fragments).into_bytes();
        for (from, to) in changes {
            let from = usize::from(from) % metadata.len();
            let to = usize::from(to) % metadata.len();
            metadata[to] = metadata[from];
        }
        if let Ok(schema) = Schema::parse(&String::from_utf8_lossy(&metadata)) {
            let bytes = packet(&payload);
            let mut reader = StreamReader::new(&schema, &bytes);
            while reader.step() != Step::End {
                let Some(event) = reader.event() else { continue };
                let fields = schema.classes[event.class().0 as usize].fields.len();
                (0..fields).for_each(|place| drop(event.value(FieldId(place as u16))));
            }
        }
    }
}
