//! `rtscope report hosts`: packets of two hosts with a known truth, in CTF with LTTng's layout of
//! headers. Needs no privilege.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use ctf::writer::TraceWriter;
use event::{
    Base, ClassId, Cpu, EventClass, Field, FieldId, FieldType, Instant, Integer, IntegerMapping,
    Record, Value,
};
use serde_json::Value as Json;

/// An event in memory, its values in the order of its class.
struct Event {
    class: u32,
    time: Instant,
    values: Vec<Value<'static>>,
}

impl Record for Event {
    fn class(&self) -> ClassId {
        ClassId(self.class)
    }

    fn instant(&self) -> Option<Instant> {
        Some(self.time)
    }

    fn cpu(&self) -> Option<Cpu> {
        None
    }

    fn i64(&self, field: FieldId) -> i64 {
        self.values[usize::from(field.0)].as_i64().unwrap_or(0)
    }

    fn f64(&self, _: FieldId) -> f64 {
        0.0
    }

    fn text(&self, field: FieldId) -> &[u8] {
        let text = self.values[usize::from(field.0)].as_text();
        text.unwrap_or_default().as_bytes()
    }

    fn value(&self, field: FieldId) -> Value<'_> {
        self.values[usize::from(field.0)].clone()
    }
}

fn network(size_bits: u8) -> FieldType {
    FieldType::Integer(Integer {
        size_bits,
        align_bits: u16::from(size_bits),
        signed: false,
        big_endian: true,
        base: Base::Decimal,
        text: false,
    })
}

fn labels(names: &[&str]) -> FieldType {
    let mapping = |(value, label): (usize, &&str)| IntegerMapping {
        label: (*label).to_owned(),
        first: value as i64,
        last: value as i64,
    };
    let mappings = names.iter().enumerate().map(mapping).collect();
    FieldType::Enum(Integer::le(8, false), mappings)
}

fn structure(members: &[(&str, FieldType)]) -> FieldType {
    let member = |(name, ty): &(&str, FieldType)| Field::payload(*name, ty.clone());
    FieldType::Struct(members.iter().map(member).collect())
}

fn variant(selector: &str, choices: &[(&str, FieldType)]) -> FieldType {
    let choice = |(name, ty): &(&str, FieldType)| Field::payload(*name, ty.clone());
    FieldType::Variant {
        selector: selector.to_owned(),
        choices: choices.iter().map(choice).collect(),
        ranges: None,
    }
}

fn addresses(element: FieldType, count: u32) -> FieldType {
    let element = Arc::new(element);
    FieldType::Array { element, count }
}

/// net_dev_queue and net_if_receive_skb as LTTng has them since 2.10, their headers cut to what
/// packets are known by; or without headers, as the kernel itself has them.
fn classes(with_headers: bool) -> Vec<EventClass> {
    let port = network(16);
    let tcp = structure(&[
        ("source_port", port.clone()),
        ("dest_port", port.clone()),
        ("seq", network(32)),
        ("ack_seq", network(32)),
        ("flags", port.clone()),
    ]);
    let udp = structure(&[("source_port", port.clone()), ("dest_port", port)]);
    let transport = [("_unknown", structure(&[])), ("_tcp", tcp), ("_udp", udp)];
    let ip = |address: FieldType| {
        structure(&[
            ("saddr", address.clone()),
            ("daddr", address),
            (
                "transport_header_type",
                labels(&["_unknown", "_tcp", "_udp"]),
            ),
            (
                "transport_header",
                variant("transport_header_type", &transport),
            ),
        ])
    };
    let headers = [
        ("_unknown", structure(&[])),
        ("_ipv4", ip(addresses(network(8), 4))),
        ("_ipv6", ip(addresses(network(16), 8))),
    ];
    let mut fields = vec![
        Field::payload("skbaddr", FieldType::Integer(Integer::hex(64))),
        Field::payload("len", FieldType::Integer(Integer::le(32, false))),
        Field::payload("name", FieldType::String),
    ];
    if with_headers {
        let kinds = labels(&["_unknown", "_ipv4", "_ipv6"]);
        fields.push(Field::payload("network_header_type", kinds));
        let header = variant("network_header_type", &headers);
        fields.push(Field::payload("network_header", header));
    }
    vec![
        testkit::event_class(0, "net_dev_queue", fields.clone()),
        testkit::event_class(1, "net_if_receive_skb", fields),
    ]
}

fn number(value: u64) -> Value<'static> {
    Value::Unsigned(value)
}

fn chosen(kind: i64, label: &'static str, value: Value<'static>) -> [Value<'static>; 2] {
    let selector = Value::Enum {
        value: kind,
        label: Some(label),
    };
    [selector, Value::Struct(vec![(label, value)])]
}

/// The values of a segment's event; `from` and `to` are the last bytes of addresses.
fn segment((from, to): (u64, u64), v6: bool, seq: u64, tcp: bool) -> Vec<Value<'static>> {
    let mut ports = vec![
        ("source_port", number(40_000 + from)),
        ("dest_port", number(80 + to)),
    ];
    let [kind, transport] = match tcp {
        true => {
            ports.extend([
                ("seq", number(seq)),
                ("ack_seq", number(7)),
                ("flags", number(16)),
            ]);
            chosen(1, "_tcp", Value::Struct(ports))
        }
        false => chosen(2, "_udp", Value::Struct(ports)),
    };
    let address = |last: u64| match v6 {
        true => Value::Array([0xfe80, 0, 0, 0, 0, 0, 0, last].map(number).to_vec()),
        false => Value::Array([10, 0, 0, last].map(number).to_vec()),
    };
    let header = Value::Struct(vec![
        ("saddr", address(from)),
        ("daddr", address(to)),
        ("transport_header_type", kind),
        ("transport_header", transport),
    ]);
    let [kind, header] = match v6 {
        true => chosen(2, "_ipv6", header),
        false => chosen(1, "_ipv4", header),
    };
    let name = Value::Text("eth0".into());
    vec![number(0xffff_0000 + seq), number(52), name, kind, header]
}

const RECEIVED: u32 = 1;
const SENT: u32 = 0;

/// What one host saw, by the true time in ns.
type Seen = Vec<(i64, u32, Vec<Value<'static>>)>;

fn write(dir: &Path, host: &str, mut seen: Seen, clock: impl Fn(i64) -> i64, with_headers: bool) {
    let mut meta = testkit::one_stream_class(classes(with_headers), 0);
    meta.environment.push(("hostname".into(), host.into()));
    let mut trace = TraceWriter::create(dir, &meta).expect("a trace begins");
    let mut stream = trace.stream(0, Cpu(0)).expect("a stream begins");
    seen.sort_by_key(|(at_ns, _, _)| *at_ns);
    for (at_ns, class, mut values) in seen {
        values.truncate(if with_headers { 5 } else { 3 });
        let time = Instant::from_ns(clock(at_ns));
        let event = Event {
            class,
            time,
            values,
        };
        stream
            .record(class, time, &event)
            .expect("an event is written");
    }
    stream.finish().expect("a stream ends");
}

fn report(dir: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(["report", "hosts"]).args(words);
    command.current_dir(dir).output().expect("rtscope starts")
}

/// B's clock is this much ahead of A's, and gains so much.
const AHEAD_NS: i64 = 3_500_000_000;
const GAINS_NS_PER_S: i64 = 40_000;
/// In the ten seconds of the conversation.
const GAINED_NS: i64 = 10 * GAINS_NS_PER_S;
const BEGIN_NS: i64 = 1_000_000_000_000;

fn clock_of_b(at_ns: i64) -> i64 {
    at_ns + AHEAD_NS + (at_ns - BEGIN_NS) / 1_000 * GAINS_NS_PER_S / 1_000_000
}

/// A request and an answer each 10 ms for ten seconds, 50 us on their way and some more; the
/// hundredth answer takes 3 ms. Some segments are no evidence: sent twice, lost, or of UDP.
fn conversation() -> (Seen, Seen) {
    let (mut a, mut b) = (Seen::new(), Seen::new());
    for round in 0..1_000 {
        let (seq, v6) = (round as u64 * 10, round % 2 == 1);
        let begin_ns = BEGIN_NS + round * 10_000_000;
        let arrived_ns = begin_ns + 50_000 + round * 7_919 % 30_000;
        let request = segment((1, 2), v6, seq, true);
        a.push((begin_ns, SENT, request.clone()));
        b.push((arrived_ns, RECEIVED, request));
        let way_ns = match round {
            100 => 3_000_000,
            _ => 50_000 + round * 104_729 % 30_000,
        };
        let answer = segment((2, 1), v6, seq, true);
        b.push((arrived_ns + 20_000, SENT, answer.clone()));
        a.push((arrived_ns + 20_000 + way_ns, RECEIVED, answer));
    }
    // Sent again 200 ms later, and only the second one arrives.
    let again = segment((1, 2), false, 77_777, true);
    a.push((BEGIN_NS + 1, SENT, again.clone()));
    a.push((BEGIN_NS + 200_000_000, SENT, again.clone()));
    b.push((BEGIN_NS + 200_060_000, RECEIVED, again));
    // Lost on its way, and one that is not TCP.
    a.push((BEGIN_NS + 2, SENT, segment((1, 2), false, 88_888, true)));
    a.push((BEGIN_NS + 3, SENT, segment((1, 2), false, 0, false)));
    (a, b)
}

fn rows<'j>(found: &'j Json, name: &str) -> &'j [Json] {
    let tables = found["windows"][0]["tables"].as_array();
    let table = tables.and_then(|all| all.iter().find(|table| table["table"] == name));
    let rows = table.and_then(|table| table["rows"].as_array());
    rows.unwrap_or_else(|| panic!("no table {name}: {found:#}"))
}

#[test]
fn the_offset_of_two_clocks_is_found_within_its_error_and_delays_are_put_right() {
    let dir = tempfile::tempdir().expect("a folder");
    let (a, b) = conversation();
    write(&dir.path().join("a"), "one", a, |at_ns| at_ns, true);
    write(&dir.path().join("b"), "two", b, clock_of_b, true);
    let output = report(dir.path(), &["a", "b", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let found: Json = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let clocks = &rows(&found, "clocks")[0];
    assert_eq!(
        (&clocks["a_to_b"], &clocks["b_to_a"]),
        (&1_000.into(), &1_000.into())
    );
    let ns = |row: &Json, key: &str| row[key].as_i64().expect("a number");
    let error_ns = ns(clocks, "error_ns");
    for (key, truth_ns) in [
        ("offset_begin", AHEAD_NS),
        ("offset_end", AHEAD_NS + GAINED_NS),
    ] {
        let off_ns = (ns(clocks, key) - truth_ns).abs();
        assert!(off_ns <= error_ns, "{off_ns}: {clocks}");
    }
    // No more than half of the fastest round trip: nothing in packets says more.
    assert!((1..60_000).contains(&error_ns), "{error_ns}");
    let drift = clocks["drift"].as_f64().expect("a number");
    assert!((drift - GAINS_NS_PER_S as f64).abs() < 5_000.0, "{drift}");
    let counts = serde_json::json!([{"crossed": 2000, "alone": 1, "ambiguous": 1, "left_out": 0}]);
    assert_eq!(rows(&found, "counts"), counts.as_array().expect("rows"));
    let longest = &rows(&found, "packets")[0];
    let names = (&longest["from"], &longest["to"]);
    assert_eq!(names, (&"two".into(), &"one".into()), "{longest}");
    assert!(
        longest["segment"]
            .as_str()
            .is_some_and(|text| text.contains("seq 1000,"))
    );
    let off_ns = (ns(longest, "delay_ns") - 3_000_000).abs();
    assert!(off_ns <= ns(longest, "error_ns"), "{longest}");
}

#[test]
fn traces_that_show_no_headers_and_one_host_alone_are_refused_with_the_way_out() {
    let dir = tempfile::tempdir().expect("a folder");
    let (a, b) = conversation();
    let folder = |name: &str| dir.path().join(name);
    write(&folder("one"), "one", a.clone(), |at_ns| at_ns, true);
    write(&folder("bare-one"), "one", a, |at_ns| at_ns, false);
    write(&folder("bare-two"), "two", b, clock_of_b, false);
    let check = |words: &[&str], expect: [&str; 3]| {
        let output = report(dir.path(), words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
        let parts = ["error: ", "found: ", "mend:  "].iter().zip(expect);
        for (part, expect) in parts {
            let line = text
                .lines()
                .find(|line| line.trim_start().starts_with(part));
            assert!(
                line.is_some_and(|line| line.contains(expect)),
                "{expect}: {text}"
            );
        }
    };
    check(
        &["bare-one", "bare-two"],
        [
            "on another host",
            "no network_header",
            "lttng enable-event -k",
        ],
    );
    check(
        &["one"],
        ["between two hosts", "one host, 'one'", "report hosts"],
    );
}
