//! What the writer writes by values, the reader reads: every type of the vocabulary, nested, of any
//! width, alignment and byte order, in CTF 1.8 and in CTF 2; clocks, contexts and losses too.

mod every_type_parts;

use ctf::reader::{Step, TraceFiles};
use ctf::writer::{ClockMeta, Dialect, HeaderKind, StreamMeta, TraceMeta, TraceWriter};
use event::{ClassId, Cpu, EventClass, Field, FieldId, Instant, Record, Scope, Value};
use every_type_parts::{Entropy, plain};
use proptest::prelude::*;

/// An event in memory, its values in the order of its class.
struct Event {
    class: ClassId,
    time: Instant,
    values: Vec<Value<'static>>,
}

impl Record for Event {
    fn class(&self) -> ClassId {
        self.class
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

    fn f64(&self, field: FieldId) -> f64 {
        match self.values[usize::from(field.0)] {
            Value::Float(number) => number,
            _ => 0.0,
        }
    }

    fn text(&self, field: FieldId) -> &[u8] {
        let text = self.values[usize::from(field.0)].as_text();
        text.unwrap_or_default().as_bytes()
    }

    fn value(&self, field: FieldId) -> Value<'_> {
        self.values[usize::from(field.0)].clone()
    }
}

/// A stream class with contexts that its classes list too.
fn stream(entropy: &mut Entropy<'_>, clock: usize) -> StreamMeta {
    let shared = entropy.fields(Scope::StreamContext, "s", 3);
    let packet = entropy.fields(Scope::PacketContext, "k", 3);
    let class = |entropy: &mut Entropy<'_>, place: u32| {
        let payload = entropy.fields(Scope::Payload, "p", 5);
        let context = entropy.fields(Scope::EventContext, "c", 3);
        EventClass {
            id: ClassId(place),
            name: format!("class \"{place}\""),
            stream: 0,
            fields: [payload, context, shared.clone()].concat().into(),
        }
    };
    let kinds = [HeaderKind::Compact, HeaderKind::Large, HeaderKind::Untimed];
    StreamMeta {
        name: format!("stream{clock}"),
        header: kinds[usize::from(entropy.below(3))],
        classes: (0..3).map(|place| class(entropy, place)).collect(),
        // The last class has none, and the list need not reach it.
        log_levels: vec![Some(i64::from(entropy.below(15))), None],
        event_context: shared.clone(),
        packet_context: packet,
        clock,
        has_no_cpu: entropy.below(2) == 1,
        lacks_headers: false,
    }
}

/// What was written into one stream.
struct Written {
    events: Vec<Event>,
    packet: Vec<Value<'static>>,
    discarded: u64,
}

fn write(dir: &std::path::Path, meta: &TraceMeta, entropy: &mut Entropy<'_>) -> Vec<Written> {
    let mut trace = TraceWriter::create(dir, meta).unwrap();
    let mut all = Vec::new();
    for (place, declared) in meta.streams.iter().enumerate() {
        let mut stream = trace.stream(place, Cpu(5)).unwrap();
        let mut written = Written {
            events: Vec::new(),
            packet: entropy.values(&declared.packet_context),
            discarded: 0,
        };
        stream.packet_context(&written.packet).unwrap();
        let mut time_ns = 0i64;
        for _ in 0..1 + entropy.below(12) {
            if entropy.below(8) == 7 {
                written.discarded += 3;
                stream.discarded(written.discarded).unwrap();
            }
            time_ns += (entropy.u64() >> (28 + entropy.below(36))) as i64;
            let class = &declared.classes[usize::from(entropy.below(3))];
            let event = Event {
                class: class.id,
                time: Instant::from_ns(time_ns),
                values: entropy.class_values(class),
            };
            stream.record(class.id.0, event.time, &event).unwrap();
            written.events.push(event);
        }
        stream.finish().unwrap();
        all.push(written);
    }
    all
}

/// A value as the dialect keeps it.
fn kept(value: &Value<'_>, dialect: Dialect) -> String {
    match dialect {
        Dialect::Ctf18 => plain(value),
        Dialect::Ctf2 => format!("{value:?}"),
    }
}

fn level(files: &TraceFiles, class: ClassId) -> Option<i64> {
    files.schema().remarks(class).unwrap().log_level
}

fn declared_level(declared: &StreamMeta, class: ClassId) -> Option<i64> {
    let place = class.0 as usize % declared.classes.len();
    declared.log_levels.get(place).copied().flatten()
}

fn clocks() -> Vec<ClockMeta> {
    vec![
        ClockMeta::monotonic(-5),
        ClockMeta {
            name: "other".to_owned(),
            ..ClockMeta::monotonic(-5)
        },
    ]
}

fn check(bytes: &[u8], dialect: Dialect) {
    let mut entropy = Entropy(bytes.iter());
    let root = tempfile::tempdir().unwrap();
    let meta = TraceMeta {
        dialect,
        uuid: [9; 16],
        clocks: clocks(),
        streams: (0..2).map(|clock| stream(&mut entropy, clock)).collect(),
        ..TraceMeta::default()
    };
    let written = write(root.path(), &meta, &mut entropy);
    let files = TraceFiles::open(root.path()).unwrap_or_else(|error| {
        let text = std::fs::read_to_string(root.path().join("metadata")).unwrap();
        panic!("{error:#}\n{text}")
    });
    assert_eq!(files.streams().len(), written.len());
    for (place, expect) in written.iter().enumerate() {
        let declared = &meta.streams[place];
        let is_timed = declared.header != HeaderKind::Untimed;
        let mut reader = files.reader(&files.streams()[place]);
        let (mut events, mut discarded) = (expect.events.iter(), 0);
        loop {
            match reader.step() {
                Step::Event => {
                    let expect_event = events.next().expect("no more events than were written");
                    let event = reader.event().unwrap();
                    let class = &files.schema().classes[event.class().0 as usize];
                    assert_eq!(
                        level(&files, event.class()),
                        declared_level(declared, event.class())
                    );
                    let count = expect_event.values.len();
                    for (field, value) in expect_event.values.iter().enumerate() {
                        let got = event.value(FieldId(field as u16));
                        let name = &class.fields[field].name;
                        let (got, expect) = (kept(&got, dialect), kept(value, dialect));
                        assert_eq!(got, expect, "{name} of {}", class.name);
                    }
                    let own = ctf::is_packet_bookkeeping;
                    let packet = class.fields.iter().enumerate().skip(count);
                    let packet: Vec<_> = packet
                        .filter(|(_, field): &(_, &Field)| !own(field))
                        .collect();
                    for ((field, _), value) in packet.iter().zip(&expect.packet) {
                        let got = event.value(FieldId(*field as u16));
                        assert_eq!(kept(&got, dialect), kept(value, dialect));
                    }
                    assert_eq!(packet.len(), expect.packet.len());
                    if is_timed {
                        assert_eq!(reader.time_ns(), expect_event.time.as_ns());
                    }
                    assert_eq!(reader.cpu(), (!declared.has_no_cpu).then_some(5));
                }
                Step::Lost(loss) => discarded += loss.events.unwrap(),
                Step::Unread(hole) => panic!("{hole:?}"),
                Step::Damage(damage) => {
                    let path = root.path().join("metadata");
                    panic!("{damage:?}\n{}", std::fs::read_to_string(path).unwrap())
                }
                Step::End => break,
            }
        }
        assert_eq!(events.len(), 0, "every event is read");
        assert_eq!(discarded, expect.discarded);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn values_of_every_type_come_back_from_ctf_1_8(
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
    ) {
        check(&bytes, Dialect::Ctf18);
    }

    #[test]
    fn values_of_every_type_come_back_from_ctf_2(
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
    ) {
        check(&bytes, Dialect::Ctf2);
    }
}
