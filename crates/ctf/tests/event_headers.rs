//! Headers of events that no known tracer writes: variants, structures and enumerations around the
//! id and the time, read as babeltrace2 reads them (and compared with it where it is installed).

use std::fs;
use std::path::Path;
use std::process::Command;

use ctf::reader::{Schema, Step, StreamReader};
use event::{FieldId, Value};

const TRACE: &str = "/* CTF 1.8 */
typealias integer { size = 8; } := u8;
typealias integer { size = 16; } := u16;
typealias integer { size = 32; } := u32;
typealias integer { size = 64; } := u64;
typealias integer { size = 8; map = clock.c.value; } := short_time;
typealias integer { size = 64; map = clock.c.value; } := long_time;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
clock { name = c; freq = 1000000000; };
";
const HEAD_BYTES: usize = 12;

/// One packet with these bytes behind its context.
fn packet(events: &[u8]) -> Vec<u8> {
    let bits = ((HEAD_BYTES + events.len()) * 8) as u32;
    let mut packet = 0xC1FC_1FC1u32.to_le_bytes().to_vec();
    packet.extend([bits.to_le_bytes(), bits.to_le_bytes()].concat());
    packet.extend(events);
    packet
}

/// A trace whose events have this header.
fn metadata(header: &str, classes: &str) -> String {
    let context = "packet.context := struct { u32 content_size; u32 packet_size; };";
    format!("{TRACE}stream {{ {context} event.header := struct {{ {header} }}; }};\n{classes}\n")
}

/// Events as babeltrace2 prints them, as far as these tests have them, and damaged places.
fn read(schema: &Schema, bytes: &[u8]) -> Vec<String> {
    let mut reader = StreamReader::new(schema, bytes);
    let mut lines = Vec::new();
    loop {
        match reader.step() {
            Step::Event => {
                let event = reader.event().expect("the event of the step");
                let class = &schema.classes[event.class().0 as usize];
                let fields = class
                    .fields
                    .iter()
                    .enumerate()
                    .filter_map(|(place, field)| {
                        let is_payload = field.scope == event::Scope::Payload;
                        let value = event.value(FieldId(place as u16));
                        is_payload.then(|| format!("{} = {}", field.name, shown(&value)))
                    });
                let fields: Vec<String> = fields.collect();
                let (ticks, name) = (event.ticks(), &class.name);
                lines.push(format!("[{ticks:020}] {name}: {{ {} }}", fields.join(", ")));
            }
            Step::Damage(damage) => lines.push(damage.reason),
            Step::Lost(_) | Step::Unread(_) => {}
            Step::End => return lines,
        }
    }
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Unsigned(number) => number.to_string(),
        Value::Array(values) if values.is_empty() => "[ ]".to_owned(),
        Value::Array(values) => {
            let values = values.iter().enumerate();
            let values: Vec<String> = values
                .map(|(place, value)| format!("[{place}] = {}", shown(value)))
                .collect();
            format!("[ {} ]", values.join(", "))
        }
        Value::Struct(members) => {
            let member = |(name, value): &(&str, Value<'_>)| format!("{name} = {}", shown(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{ {} }}", members.join(", "))
        }
        other => format!("{other:?}"),
    }
}

/// What babeltrace2 prints of it; none where it is not installed.
fn babeltrace2(metadata: &str, bytes: &[u8]) -> Option<Vec<String>> {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| fs::write(Path::join(dir.path(), name), bytes);
    write("metadata", metadata.as_bytes()).expect("written");
    write("stream", bytes).expect("written");
    let arguments = ["--clock-cycles", "--no-delta"];
    let output = Command::new("babeltrace2")
        .args(arguments)
        .arg(dir.path())
        .output();
    let Ok(output) = output else {
        testkit::skip(
            "headers of events beside babeltrace2",
            "it is not installed",
        );
        return None;
    };
    let text = String::from_utf8(output.stdout).expect("a text");
    Some(text.lines().map(str::to_owned).collect())
}

#[track_caller]
fn check(header: &str, classes: &str, events: &[&[u8]], expect: &[&str]) {
    let (metadata, bytes) = (metadata(header, classes), packet(&events.concat()));
    let schema = Schema::parse(&metadata).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(read(&schema, &bytes), expect);
    if let Some(lines) = babeltrace2(&metadata, &bytes) {
        // Where events cannot be read, it prints those before.
        let events = expect.iter().take_while(|line| line.starts_with('['));
        assert_eq!(lines, events.copied().collect::<Vec<_>>(), "by babeltrace2");
    }
}

const ONE: &str = "event { name = e; id = 0; fields := struct { u8 x; }; };";
const TWO: &str = "event { name = e; id = 0; fields := struct { u8 x; }; };
event { name = f; id = 1; fields := struct { u16 y; }; };";

#[test]
fn a_variant_holds_the_time_in_one_of_several_widths() {
    check(
        "u8 id; enum : u8 { brief, whole = 1 ... 9 } k;
         variant <k> {
           struct { short_time timestamp; } brief;
           struct { u8 before; long_time timestamp; u16 behind; } whole;
         } v;",
        TWO,
        &[
            &[0, 0, 250, 7],
            &[1, 9, 77, 0, 1, 0, 0, 0, 0, 0, 0, 88, 88, 3, 0],
            &[0, 0, 4, 8],
            // The short time is the next with these bits.
            &[0, 0, 2, 9],
        ],
        &[
            "[00000000000000000250] e: { x = 7 }",
            "[00000000000000000256] f: { y = 3 }",
            "[00000000000000000260] e: { x = 8 }",
            "[00000000000000000514] e: { x = 9 }",
        ],
    );
}

#[test]
fn an_id_in_a_choice_stands_in_place_of_the_one_before() {
    check(
        "u8 id; short_time timestamp; enum : u8 { plain, more } k;
         variant <k> { u8 plain; struct { u8 deep; struct { u8 id; } inner; } more; } v;",
        TWO,
        &[&[0, 1, 0, 99, 7], &[0, 2, 1, 99, 1, 3, 0], &[0, 3, 0, 1, 8]],
        &[
            "[00000000000000000001] e: { x = 7 }",
            "[00000000000000000002] f: { y = 3 }",
            "[00000000000000000003] e: { x = 8 }",
        ],
    );
}

#[test]
fn an_event_without_an_id_has_that_of_the_only_class_and_not_the_one_before() {
    let header = "enum : u8 { none, some } k; short_time timestamp;
        variant <k> { u8 none; struct { u8 id; } some; } v;";
    check(
        header,
        "event { name = g; id = 5; fields := struct { u8 x; }; };",
        &[&[0, 1, 99, 7], &[1, 2, 5, 8]],
        &[
            "[00000000000000000001] g: { x = 7 }",
            "[00000000000000000002] g: { x = 8 }",
        ],
    );
    // babeltrace2 refuses this one before it reads any event.
    let metadata = metadata(header, TWO);
    let schema = Schema::parse(&metadata).expect("read");
    let events = packet(&[1, 1, 1, 3, 0, 0, 2, 99, 7]);
    let lines = read(&schema, &events);
    assert_eq!(lines[0], "[00000000000000000001] f: { y = 3 }");
    assert_eq!(
        lines[1..],
        ["an event without an id, where its stream has several classes"]
    );
}

#[test]
fn a_choice_that_is_called_id_is_none() {
    check(
        "u8 id; short_time timestamp; enum : u8 { id, other } k;
         variant <k> { u8 id; u16 other; } v;",
        TWO,
        &[&[0, 1, 0, 1, 7], &[1, 2, 1, 0, 0, 3, 0]],
        &[
            "[00000000000000000001] e: { x = 7 }",
            "[00000000000000000002] f: { y = 3 }",
        ],
    );
}

#[test]
fn of_two_labels_of_one_value_the_one_of_the_first_choice_counts() {
    check(
        "u8 id; short_time timestamp; enum : u8 { wide = 0 ... 9, narrow = 5 } k;
         variant <k> { u8 narrow; u16 wide; } v;",
        ONE,
        &[&[0, 1, 5, 99, 7], &[0, 2, 4, 99, 99, 8]],
        &[
            "[00000000000000000001] e: { x = 7 }",
            "[00000000000000000002] e: { x = 8 }",
        ],
    );
}

#[test]
fn a_length_is_found_in_a_choice_by_the_name_of_that() {
    let classes = "event { name = e; id = 0; fields := struct {
        u8 x; u8 a[stream.event.header.v.some.n]; }; };";
    check(
        "u8 id; short_time timestamp; enum : u8 { none, some } k;
         variant <k> { struct { u8 n; } none; struct { u8 m; u8 n; } some; } v;",
        classes,
        &[&[0, 1, 1, 99, 2, 7, 11, 12], &[0, 2, 1, 99, 0, 8]],
        &[
            "[00000000000000000001] e: { x = 7, a = [ [0] = 11, [1] = 12 ] }",
            "[00000000000000000002] e: { x = 8, a = [ ] }",
        ],
    );
    let classes = "event { name = e; id = 0; fields := struct {
        enum : u8 { no, yes } k; variant <k> { u8 no; struct { u8 n; } yes; } v;
        u8 a[v.yes.n]; }; };";
    let metadata = metadata("u8 id; short_time timestamp;", classes);
    let schema = Schema::parse(&metadata).expect("a length in a choice of the same scope");
    let lines = read(&schema, &packet(&[0, 1, 1, 2, 11, 12]));
    assert!(
        lines[0].ends_with("a = [ [0] = 11, [1] = 12 ] }"),
        "{lines:?}"
    );
}

#[test]
fn a_time_inside_of_a_choice_needs_no_declared_clock() {
    let text = metadata(
        "u8 id; enum : u8 { a } k; variant <k> { struct { u64 timestamp; } a; } v;",
        ONE,
    );
    let text = text.replace("clock { name = c; freq = 1000000000; };", "");
    let text = text.replace("map = clock.c.value; ", "");
    let bytes = packet(&[0, 0, 44, 1, 0, 0, 0, 0, 0, 0, 7]);
    let expect = ["[00000000000000000300] e: { x = 7 }"];
    let schema = Schema::parse(&text).expect("read");
    assert_eq!(read(&schema, &bytes), expect);
    if let Some(lines) = babeltrace2(&text, &bytes) {
        assert_eq!(lines, expect, "by babeltrace2");
    }
}

#[test]
fn a_hostile_header_ends_with_the_place_that_makes_no_sense() {
    let header = "enum : u8 { none, some, deep = 2 ... 9 } k; u8 n;
        variant <k> {
          u8 none;
          struct { short_time timestamp; u64 id; u8 more[n]; } some;
          struct { u32 n; enum : u8 { none } k; variant <k> { string none; } v; u64 a[n]; } deep;
        } v;";
    let classes = "event { name = e; id = 0; fields := struct {
        u8 x; u8 a[stream.event.header.v.deep.n]; }; };
        event { name = f; id = 18446744073709551614; };";
    let schema = Schema::parse(&metadata(header, classes)).expect("read");
    let reason = |events: &[u8]| read(&schema, &packet(events)).pop().unwrap_or_default();
    assert_eq!(
        reason(&[10, 0]),
        "the selector 10 means no choice of a variant"
    );
    assert_eq!(
        reason(&[2, 0, 0, 0, 0, 0, 1]),
        "the selector 1 means no choice of a variant"
    );
    for beyond in [
        &[1][..],
        &[1, 255, 0, 0],
        &[2, 0, 255, 255, 255, 255, 0, 0],
        &[2, 0, 0, 0, 0, 0, 0, 65, 65, 65],
    ] {
        assert_eq!(
            reason(beyond),
            "a field reaches beyond the packet's content"
        );
    }
    // Whatever a byte is, reading ends, and within what the packet can hold.
    let plain = [
        1, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 9, 7, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 1, 2,
    ];
    for place in 0..plain.len() {
        for byte in 0..=255 {
            let mut events = plain;
            events[place] = byte;
            let lines = read(&schema, &packet(&events));
            assert!(lines.len() <= plain.len(), "{events:?}: {lines:?}");
        }
    }
}
