//! Traces of two hosts by hand, in CTF with LTTng's layout of packets' headers.

use std::path::Path;
use std::sync::Arc;

use ctf::writer::TraceWriter;
use event::{
    Base, ClassId, Cpu, EventClass, Field, FieldId, FieldType, Instant, Integer, IntegerMapping,
    Record, Value,
};

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
fn packet_classes(with_headers: bool) -> Vec<EventClass> {
    let port = network(16);
    let tcp = structure(&[
        ("source_port", port.clone()),
        ("dest_port", port.clone()),
        ("seq", network(32)),
        ("ack_seq", network(32)),
        ("flags", port.clone()),
    ]);
    let udp = structure(&[
        ("source_port", port.clone()),
        ("dest_port", port.clone()),
        ("len", port.clone()),
        ("check", port.clone()),
    ]);
    let transport = [("_unknown", structure(&[])), ("_tcp", tcp), ("_udp", udp)];
    let ip = |id: &[(&'static str, FieldType)], address: FieldType| {
        let rest = [
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
        ];
        structure(&[id, &rest].concat())
    };
    let headers = [
        ("_unknown", structure(&[])),
        ("_ipv4", ip(&[("id", port)], addresses(network(8), 4))),
        ("_ipv6", ip(&[], addresses(network(16), 8))),
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

/// The events of the scheduler and of softirqs that a path rests on, behind those of packets. That
/// timers' interrupts are among them says that none of them woke anybody here.
fn kernel_classes() -> Vec<EventClass> {
    let int = |name: &str| Field::payload(name, FieldType::Integer(Integer::le(32, true)));
    let text = |name: &str| Field::payload(name, FieldType::String);
    let switch = vec![
        text("prev_comm"),
        int("prev_tid"),
        int("prev_prio"),
        int("prev_state"),
        text("next_comm"),
        int("next_tid"),
        int("next_prio"),
    ];
    let waking = vec![text("comm"), int("tid"), int("prio"), int("target_cpu")];
    vec![
        testkit::event_class(2, "sched_switch", switch),
        testkit::event_class(3, "sched_waking", waking),
        testkit::event_class(4, "irq_softirq_entry", vec![int("vec")]),
        testkit::event_class(5, "irq_softirq_exit", vec![int("vec")]),
        testkit::event_class(6, "x86_irq_vectors_local_timer_entry", vec![int("vector")]),
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

/// What tells packets of one flow apart.
#[derive(Clone, Copy)]
pub enum Of {
    /// By the sequence number.
    Tcp(u64),
    /// Length, identification (of IPv4) and checksum.
    Udp(u64, u64, u64),
}

/// The values of a packet's event; `from` and `to` are the last bytes of addresses.
pub fn packet((from, to): (u64, u64), v6: bool, of: Of) -> Vec<Value<'static>> {
    let mut ports = vec![
        ("source_port", number(40_000 + from)),
        ("dest_port", number(80 + to)),
    ];
    let ([kind, transport], id, buffer) = match of {
        Of::Tcp(seq) => {
            ports.extend([
                ("seq", number(seq)),
                ("ack_seq", number(7)),
                ("flags", number(16)),
            ]);
            (chosen(1, "_tcp", Value::Struct(ports)), 0, seq)
        }
        Of::Udp(len, id, check) => {
            ports.extend([("len", number(len)), ("check", number(check))]);
            (chosen(2, "_udp", Value::Struct(ports)), id, id)
        }
    };
    let address = |last: u64| match v6 {
        true => Value::Array([0xfe80, 0, 0, 0, 0, 0, 0, last].map(number).to_vec()),
        false => Value::Array([10, 0, 0, last].map(number).to_vec()),
    };
    let id = (!v6).then(|| ("id", number(id)));
    let rest = [
        ("saddr", address(from)),
        ("daddr", address(to)),
        ("transport_header_type", kind),
        ("transport_header", transport),
    ];
    let header = Value::Struct(id.into_iter().chain(rest).collect());
    let [kind, header] = match v6 {
        true => chosen(2, "_ipv6", header),
        false => chosen(1, "_ipv4", header),
    };
    let name = Value::Text("eth0".into());
    vec![number(0xffff_0000 + buffer), number(52), name, kind, header]
}

pub const SENT: u32 = 0;
pub const RECEIVED: u32 = 1;
pub const SWITCH: u32 = 2;
pub const WAKING: u32 = 3;
pub const SOFTIRQ: u32 = 4;
pub const SOFTIRQ_END: u32 = 5;

/// What one host saw, by the true time in ns.
pub type Seen = Vec<(i64, u32, Vec<Value<'static>>)>;

pub fn write(
    dir: &Path,
    host: &str,
    mut seen: Seen,
    clock: impl Fn(i64) -> i64,
    with_headers: bool,
) {
    let mut classes = packet_classes(with_headers);
    classes.extend(kernel_classes());
    let mut meta = testkit::one_stream_class(classes, 0);
    meta.environment.push(("hostname".into(), host.into()));
    let mut trace = TraceWriter::create(dir, &meta).expect("a trace begins");
    let mut stream = trace.stream(0, Cpu(0)).expect("a stream begins");
    seen.sort_by_key(|(at_ns, _, _)| *at_ns);
    for (at_ns, class, mut values) in seen {
        if class <= RECEIVED && !with_headers {
            values.truncate(3);
        }
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

/// B's clock is this much ahead of A's, and gains so much.
pub const AHEAD_NS: i64 = 3_500_000_000;
pub const GAINS_NS_PER_S: i64 = 40_000;
/// In the ten seconds of the conversation.
pub const GAINED_NS: i64 = 10 * GAINS_NS_PER_S;
pub const BEGIN_NS: i64 = 1_000_000_000_000;

pub fn clock_of_b(at_ns: i64) -> i64 {
    at_ns + AHEAD_NS + (at_ns - BEGIN_NS) / 1_000 * GAINS_NS_PER_S / 1_000_000
}
