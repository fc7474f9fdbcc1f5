//! Damaged and hostile bytes: the reader ends, never panics, and names what it did not understand.

use ctf::reader::{Schema, Step, StreamReader, metadata_text};
use event::FieldId;
use proptest::prelude::*;

/// Every construct of the language that real tracers use, in both byte orders.
const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 32; base = hex; } := uint32_t;
typealias integer { size = 64; align = 8; } := unsigned long;
typedef enum : uint8_t { ZERO, ONE = 1, MANY = 2 ... 255, } kind_t;
trace { major = 1; minor = 8; byte_order = BYTE_ORDER;
  uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564";
  packet.header := struct { uint32_t magic; uint8_t stream_id; }; };
env { hostname = "vm"; tracer_major = 2; negative = -3; };
clock { name = "c"; freq = 1000; offset_s = 5; offset = -7; };
struct header { enum : integer { size = 5; } { compact = 0 ... 30, extended = 31 } id;
  variant <id> { struct { integer { size = 27; map = clock.c.value; } timestamp; } compact;
    struct { uint32_t id; integer { size = 64; map = clock.c.value; } timestamp; } extended; } v;
} align(8);
stream { id = 1; event.header := struct header;
  packet.context := struct { unsigned long content_size; unsigned long packet_size;
    unsigned long events_discarded; uint8_t cpu_id; };
  event.context := struct { uint8_t _shared_length; }; };
event { name = "all"; id = 3; stream_id = 1; fields := struct {
  integer { size = 3; signed = true; } _three; integer { size = 13; } _thirteen;
  string _text; uint8_t __seq_length; uint32_t _seq[ __seq_length ];
  struct { kind_t tag; variant <tag> { uint8_t ZERO; string ONE; struct { } MANY; } v; } _nested[2];
  floating_point { exp_dig = 8; mant_dig = 24; align = 8; } _float;
  integer { size = 8; encoding = UTF8; } _chars[ stream.event.context._shared_length ];
  string _words[ __seq_length ]; uint8_t _grid[2][2]; }; };
event { name = "empty"; id = 31; stream_id = 1; };
"#;

fn metadata(big_endian: bool) -> String {
    METADATA.replace("BYTE_ORDER", if big_endian { "be" } else { "le" })
}

/// One packet that says its sizes, with `events` as its content after the context.
fn packet(big_endian: bool, events: &[u8]) -> Vec<u8> {
    let bits = (EVENTS_AT + events.len()) as u64 * 8;
    let order = |mut bytes: Vec<u8>| {
        if big_endian {
            bytes.reverse();
        }
        bytes
    };
    let mut bytes = order(0xC1FC_1FC1u32.to_le_bytes().to_vec());
    bytes.push(1);
    for word in [bits, bits, 0] {
        bytes.extend(order(word.to_le_bytes().to_vec()));
    }
    bytes.push(0);
    bytes.extend(events);
    bytes
}

/// Walks everything and decodes every field; returns events and damages.
fn walk(schema: &Schema, bytes: &[u8]) -> (u64, Vec<(u64, String)>) {
    let mut reader = StreamReader::new(schema, bytes);
    let (mut events, mut damages) = (0, Vec::new());
    loop {
        match reader.step() {
            Step::Event => {
                events += 1;
                let event = reader.event().unwrap();
                let class = &schema.classes[event.class().0 as usize];
                for place in 0..class.fields.len() {
                    let id = FieldId(place as u16);
                    let _ = (event.i64(id), event.text(id).len(), event.value(id));
                }
            }
            Step::Lost(_) | Step::Unread(_) => {}
            Step::Damage(damage) => damages.push((damage.offset_bytes, damage.reason)),
            Step::End => return (events, damages),
        }
    }
}

fn schema(big_endian: bool) -> Schema {
    Schema::parse(&metadata(big_endian)).unwrap()
}

/// Event 3 in a compact header at time 1, little-endian, with its context and all fields, `at`
/// bytes into its packet.
fn event_at(at: usize) -> Vec<u8> {
    let mut bytes = vec![0; at];
    let pad = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend((3u32 | 1 << 5).to_le_bytes());
    bytes.push(2);
    pad(&mut bytes);
    bytes.extend([0xff, 0xff]);
    bytes.extend(b"hi\0\x01");
    pad(&mut bytes);
    bytes.extend(7u32.to_le_bytes());
    bytes.extend([0, 42]);
    bytes.extend(b"\x01one\0");
    bytes.extend(1.5f32.to_le_bytes());
    bytes.extend(b"ab");
    bytes.extend(b"w\0");
    bytes.extend([1, 2, 3, 4]);
    bytes.split_off(at)
}

/// Where the first event of [`packet`] begins.
const EVENTS_AT: usize = 30;

fn whole_event() -> Vec<u8> {
    event_at(EVENTS_AT)
}

fn two_events() -> Vec<u8> {
    let mut bytes = whole_event();
    bytes.extend(event_at(EVENTS_AT + bytes.len()));
    bytes
}

#[test]
fn every_construct_of_the_language_is_decoded() {
    let schema = schema(false);
    let bytes = packet(false, &whole_event());
    let mut reader = StreamReader::new(&schema, &bytes);
    assert_eq!(reader.step(), Step::Event);
    let event = reader.event().unwrap();
    let class = &schema.classes[event.class().0 as usize];
    let value = |name: &str| format!("{:?}", event.value(class.field(name).unwrap()));
    let check = |name: &str, expect: &str| assert_eq!(value(name), expect, "{name}");
    check("three", "Signed(-1)");
    check("thirteen", "Unsigned(8191)");
    check("text", r#"Text("hi")"#);
    check("seq", "Array([Unsigned(7)])");
    check(
        "nested",
        "Array([Struct([(\"tag\", Enum { value: 0, label: Some(\"ZERO\") }), \
         (\"v\", Struct([(\"ZERO\", Unsigned(42))]))]), \
         Struct([(\"tag\", Enum { value: 1, label: Some(\"ONE\") }), \
         (\"v\", Struct([(\"ONE\", Text(\"one\"))]))])])",
    );
    check("float", "Float(1.5)");
    check("chars", r#"Text("ab")"#);
    check("words", r#"Array([Text("w")])"#);
    check(
        "grid",
        "Array([Array([Unsigned(1), Unsigned(2)]), Array([Unsigned(3), Unsigned(4)])])",
    );
    check("cpu_id", "Unsigned(0)");
    assert_eq!(
        reader.time_ns(),
        1_000_000,
        "a clock of 1 kHz, in nanoseconds"
    );
    assert_eq!(reader.step(), Step::End);
}

#[test]
fn a_packet_that_is_cut_gives_its_whole_events_and_names_the_cut() {
    let schema = schema(false);
    let bytes = packet(false, &two_events());
    let (events, damages) = walk(&schema, &bytes);
    assert_eq!((events, damages.len()), (2, 0), "{damages:?}");
    for length in 1..bytes.len() {
        let (events, damages) = walk(&schema, &bytes[..length]);
        assert_eq!(damages.len(), 1, "cut at {length}: {damages:?}");
        assert!(damages[0].0 <= length as u64);
        assert_eq!(
            events,
            u64::from(length >= EVENTS_AT + whole_event().len()),
            "cut at {length}"
        );
    }
}

#[test]
fn sizes_without_sense_end_the_stream_with_a_reason() {
    let schema = schema(false);
    let check = |place: usize, size: u64| {
        let mut bytes = packet(false, &whole_event());
        bytes[place..place + 8].copy_from_slice(&size.to_le_bytes());
        let (_, damages) = walk(&schema, &bytes);
        assert_eq!(damages.len(), 1, "{size} at {place}: {damages:?}");
    };
    for size in [0, 1, 8, 239, 241, u64::MAX] {
        check(5, size);
    }
    for size in [0, 7, 8, u64::MAX - 7, u64::MAX] {
        check(13, size);
    }
}

#[test]
fn types_that_grow_without_bound_are_refused() {
    let check = |text: &str| assert!(Schema::parse(text).is_err(), "{}", &text[..60]);
    let mut doubling = "struct t0 { string s; };".to_owned();
    for place in 1..60 {
        let before = place - 1;
        doubling += &format!("struct t{place} {{ struct t{before} a; struct t{before} b; }};");
    }
    check(&doubling);
    let mut chain = "typedef integer { size = 8; } t0;".to_owned();
    for place in 1..200 {
        chain += &format!("typedef struct {{ t{} m; }} t{place};", place - 1);
    }
    check(&chain);
    check(&"struct { ".repeat(100_000));
    check(&"typealias enum : ".repeat(100_000));
    check(&format!(
        "typedef integer {{ size = 8; }} x{};",
        "[1]".repeat(100_000)
    ));
}

#[test]
fn a_sequence_of_nothing_ends_though_it_claims_billions() {
    let text = "trace { major = 1; minor = 8; byte_order = le; };
        stream { packet.context := struct { integer { size = 8; } x; }; };
        event { fields := struct { integer { size = 64; } _n; integer { size = 8; } _m;
          struct { string _s[ event.fields._m ]; } _q[ event.fields._n ]; }; };";
    let schema = Schema::parse(text).unwrap();
    let mut bytes = vec![0xff; 9];
    bytes.push(0);
    let (events, damages) = walk(&schema, &bytes);
    assert_eq!((events, damages.len()), (0, 1), "{damages:?}");
    assert!(damages[0].1.contains("more parts"), "{damages:?}");
}

#[test]
fn a_length_behind_a_sequence_beyond_the_bytes_is_looked_for_nowhere() {
    let text = "trace { major = 1; minor = 8; byte_order = le; };
        clock { name = c; freq = 1000000000; };
        stream { event.header := struct {
          enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;
          variant <id> {
            struct { integer { size = 27; align = 1; map = clock.c.value; } timestamp; } compact;
            struct {
              integer { size = 32; align = 8; } id;
              integer { size = 64; align = 8; map = clock.c.value; } timestamp;
            } extended;
          } v;
        } align(8); };
        event { fields := struct {
          integer { size = 64; align = 8; } _n; integer { size = 64; align = 8; } _a[ _n ];
          integer { size = 8; align = 8; } _m; integer { size = 8; align = 8; } _b[ _m ]; }; };";
    let schema = Schema::parse(text).unwrap();
    for count in [1u64 << 58, 1 << 60, u64::MAX / 8, u64::MAX] {
        let bytes = [&[0; 4], &count.to_le_bytes()[..], &[0; 20]].concat();
        let (events, damages) = walk(&schema, &bytes);
        assert_eq!((events, damages.len()), (0, 1), "{count}: {damages:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_bytes_end_without_a_panic(
        big_endian: bool,
        events in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        walk(&schema(big_endian), &packet(big_endian, &events));
        walk(&schema(big_endian), &events);
    }

    #[test]
    fn mutated_events_end_without_a_panic(
        changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = packet(false, &two_events());
        for (place, byte) in changes {
            let place = usize::from(place) % bytes.len();
            bytes[place] = byte;
        }
        walk(&schema(false), &bytes);
    }

    #[test]
    fn mutated_metadata_is_understood_or_refused(
        changes in proptest::collection::vec((any::<u16>(), 0u8..4, any::<u16>()), 1..6),
    ) {
        let mut text = metadata(false).into_bytes();
        for (place, kind, other) in changes {
            let place = usize::from(place) % text.len();
            let other = usize::from(other) % text.len();
            match kind {
                0 => text[place] = text[other],
                1 => { text.remove(place); }
                2 => text.truncate(place.max(40)),
                _ => {
                    let piece = text[other..(other + 30).min(text.len())].to_vec();
                    text.splice(place..place, piece);
                }
            }
        }
        if let Ok(text) = metadata_text(&text)
            && let Ok(schema) = Schema::parse(&text)
        {
            walk(&schema, &packet(false, &whole_event()));
        }
    }
}
