//! What can be wrong with a trace: the good part is delivered, what is wrong is named with its
//! place, and reading goes on with the next packet.

use ctf::reader::{Schema, Step, StreamReader};
use event::FieldId;

const METADATA: &str = include_str!("bad_input.tsdl");

/// The size of a packet's header and context.
const HEAD_BYTES: usize = 40;
const MAGIC: u32 = 0xC1FC_1FC1;

/// A packet of stream class 0 with these events.
fn packet(events: &[u8]) -> Vec<u8> {
    let bits = ((HEAD_BYTES + events.len()) * 8) as u64;
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    bytes.extend([7; 16]);
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes.extend(events);
    bytes
}

fn event(id: u8, time: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![id];
    bytes.extend(time.to_le_bytes());
    bytes.extend(payload);
    bytes
}

fn number(time: u64, n: u32) -> Vec<u8> {
    event(1, time, &n.to_le_bytes())
}

/// Events and damages as words: `n@time`, and `OFFSET: reason`.
fn walk(schema: &Schema, bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    let mut reader = StreamReader::new(schema, bytes);
    let (mut events, mut damages) = (Vec::new(), Vec::new());
    loop {
        match reader.step() {
            Step::Event => {
                let event = reader.event().unwrap();
                let first = event.value(FieldId(0));
                events.push(format!("{:?}@{}", first.as_u64(), reader.time_ns()));
            }
            Step::Lost(_) | Step::Unread(_) => {}
            Step::Damage(damage) => {
                damages.push(format!("{}: {}", damage.offset_bytes, damage.reason));
            }
            Step::End => return (events, damages),
        }
    }
}

/// Puts `bad` between two good packets: what was read of it, one damage that begins `at` bytes into
/// it and says `reason`, and whether the packet after it was read.
fn check(bad: &[u8], events_of_bad: usize, at: usize, reason: &str, goes_on: bool) {
    let schema = Schema::parse(METADATA).unwrap();
    let (first, last) = (packet(&number(1, 10)), packet(&number(9, 30)));
    let whole = [&first, bad, &last].concat();
    let (events, damages) = walk(&schema, &whole);
    assert_eq!(
        events.first().map(String::as_str),
        Some("Some(10)@1000000000")
    );
    let expect = 1 + events_of_bad + usize::from(goes_on);
    assert_eq!(events.len(), expect, "{reason}: {events:?} {damages:?}");
    assert_eq!(damages.len(), 1, "{reason}: {damages:?}");
    let place = format!("{}: ", first.len() + at);
    assert!(
        damages[0].starts_with(&place) && damages[0].contains(reason),
        "{damages:?} is not at {place}{reason}"
    );
    if goes_on {
        assert_eq!(
            events.last().map(String::as_str),
            Some("Some(30)@9000000000")
        );
    }
}

/// A good packet with the 64 bits at `at` replaced.
fn with_word(at: usize, word: u64) -> Vec<u8> {
    let mut bytes = packet(&number(5, 20));
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    bytes
}

#[test]
fn a_wrong_magic_number_is_named_and_the_next_packet_is_found() {
    let mut bad = packet(&number(5, 20));
    bad[0] ^= 1;
    check(&bad, 0, 0, "in place of a packet's magic number", true);
}

#[test]
fn the_reader_stands_at_the_last_event_when_a_time_makes_no_sense() {
    let schema = Schema::parse(METADATA).unwrap();
    let bytes = packet(&[number(1, 10), number(u64::MAX / 2, 20)].concat());
    let mut reader = StreamReader::new(&schema, &bytes);
    assert!(matches!(reader.step(), Step::Event));
    assert!(matches!(reader.step(), Step::Damage(_)));
    // Else its stream would wait behind all others for that time to come.
    assert_eq!(reader.time_ns(), 1_000_000_000);
}

#[test]
fn an_unknown_stream_is_named_and_the_next_packet_is_found() {
    let mut bad = packet(&number(5, 20));
    bad[20] = 77;
    check(&bad, 0, 0, "unknown stream 77", true);
}

#[test]
fn sizes_without_sense_are_named_and_the_next_packet_is_found() {
    const CONTENT: usize = 24;
    const PACKET: usize = 32;
    check(&with_word(PACKET, 0), 0, 0, "a packet of 0 bits", true);
    check(&with_word(PACKET, 8), 0, 0, "a packet of 8 bits", true);
    check(&with_word(PACKET, 425), 0, 0, "a packet of 425 bits", true);
    // Content beyond the packet.
    check(&with_word(CONTENT, 1 << 20), 0, 0, "bits of content", true);
    check(&with_word(CONTENT, u64::MAX), 0, 0, "bits of content", true);
    // Content that ends inside of the packet's own context.
    check(&with_word(CONTENT, 64), 0, 0, "bits of content", true);
}

#[test]
fn a_packet_that_reaches_beyond_the_file_gives_its_events_and_the_end() {
    let schema = Schema::parse(METADATA).unwrap();
    let first = packet(&number(1, 10));
    for size_bits in [1 << 20, u64::MAX - 7] {
        let bytes = [first.clone(), with_word(32, size_bits)].concat();
        let (events, damages) = walk(&schema, &bytes);
        assert_eq!(events.len(), 2, "{damages:?}");
        assert_eq!(damages.len(), 1, "{damages:?}");
        assert!(damages[0].contains("ends after"), "{damages:?}");
    }
    let cut = [first.clone(), packet(&number(5, 20))].concat();
    for length in first.len() + 1..cut.len() {
        let (events, damages) = walk(&schema, &cut[..length]);
        assert_eq!((events.len(), damages.is_empty()), (1, false), "{length}");
    }
}

#[test]
fn lengths_near_2_to_64_are_refused_without_memory_or_time() {
    for length in [u64::MAX, u64::MAX / 8, 1 << 61, 1 << 40] {
        for id in [2, 3] {
            let events = [number(5, 20), event(id, 6, &length.to_le_bytes())].concat();
            check(
                &packet(&events),
                1,
                HEAD_BYTES + 13,
                "beyond the packet's content",
                true,
            );
        }
    }
}

#[test]
fn an_unknown_event_id_is_named_and_the_next_packet_is_read() {
    let events = [number(5, 20), event(200, 6, &[])].concat();
    check(
        &packet(&events),
        1,
        HEAD_BYTES + 13,
        "the unknown event id 200",
        true,
    );
}

#[test]
fn times_far_beyond_sense_are_named_and_the_next_packet_is_read() {
    for time in [u64::MAX, i64::MAX as u64] {
        let events = [number(5, 20), number(time, 1), number(6, 2)].concat();
        let reason = format!("an event at {time} ticks of its clock");
        check(&packet(&events), 1, HEAD_BYTES + 13, &reason, true);
    }
}

#[test]
fn a_uuid_that_is_not_the_metadatas_is_no_reason_to_refuse_a_packet() {
    let metadata = METADATA.replace(
        "byte_order = le;",
        "byte_order = le; uuid = \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\";",
    );
    let schema = Schema::parse(&metadata).unwrap();
    let (events, damages) = walk(&schema, &packet(&number(1, 10)));
    assert_eq!((events.len(), damages.len()), (1, 0));
}

#[test]
fn events_of_no_bytes_end_their_packet() {
    let metadata = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; } := uint32_t;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; }; };
stream { packet.context := struct { uint32_t content_size; uint32_t packet_size; }; };
event { name = "nothing"; };
"#;
    let schema = Schema::parse(metadata).unwrap();
    let words = [MAGIC, 16 * 8, 16 * 8, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (events, damages) = walk(&schema, &bytes);
    assert_eq!(events.len(), 0);
    assert_eq!(damages, ["12: an event without any byte"]);
}

#[test]
fn an_event_of_an_enormous_type_ends_its_packet() {
    for fields in [
        "uint8_t bytes[18446744073709551615];",
        "uint8_t bytes[18446744073709551615][18446744073709551615];",
        "uint8_t bytes[4294967296][4294967296];",
    ] {
        let schema = Schema::parse(&METADATA.replace("uint32_t n;", fields)).unwrap();
        let bytes = [packet(&number(1, 10)), packet(&event(200, 2, &[]))].concat();
        let (events, damages) = walk(&schema, &bytes);
        assert_eq!((events.len(), damages.len()), (0, 2), "{damages:?}");
        assert!(
            damages[0].contains("beyond the packet's content"),
            "{damages:?}"
        );
    }
}

#[test]
fn types_that_hold_themselves_or_too_much_are_refused() {
    let check = |fields: &str| {
        let metadata = METADATA.replace("uint32_t n;", fields);
        let Err(error) = Schema::parse(&metadata) else {
            panic!("{fields:.60} was accepted");
        };
        assert!(!error.to_string().is_empty(), "{fields}");
    };
    check("struct inner { struct inner again; } i;");
    check("variant <n> { } v;");
    check(&format!(
        "{}uint8_t n;{}",
        "struct { ".repeat(5000),
        " } m;".repeat(5000)
    ));
}

#[test]
fn an_event_behind_the_end_of_its_packet_is_damage_but_where_the_tracer_is_known_to_do_so() {
    let check = |environment: &str, is_read: bool| {
        let text = format!(
            "/* CTF 1.8 */
             typealias integer {{ size = 64; map = clock.c.value; }} := time;
             trace {{ major = 1; minor = 8; byte_order = le; }};
             env {{ {environment} }};
             clock {{ name = c; }};
             stream {{
               packet.context := struct {{ time timestamp_begin; time timestamp_end; }};
               event.header := struct {{ time timestamp; }};
             }};
             event {{ name = e; }};"
        );
        let schema = Schema::parse(&text).unwrap();
        let bytes: Vec<u8> = [10u64, 20, 15, 21]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        let mut reader = StreamReader::new(&schema, &bytes);
        assert!(matches!(reader.step(), Step::Event), "{environment}");
        let second = reader.step();
        let found = matches!(second, Step::Event);
        assert_eq!(found, is_read, "{environment}: {second:?}");
    };
    let lttng = |name: &str, major: u32, minor: u32| {
        format!("tracer_name = \"{name}\"; tracer_major = {major}; tracer_minor = {minor};")
    };
    check(&lttng("lttng-ust", 2, 10), true);
    check(&lttng("lttng-modules", 2, 8), true);
    check(&lttng("lttng-ust", 2, 11), false);
    check(&lttng("lttng-modules", 3, 0), false);
    check(&lttng("barectf", 2, 3), false);
    check("", false);
}
