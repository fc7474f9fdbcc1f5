//! What the writer writes, the reader reads: random classes, values, times and losses.

use std::borrow::Cow;
use std::sync::Arc;

use ctf::reader::{Step, StreamReader, TraceFiles};
use ctf::writer::{ClockMeta, HeaderKind, PayloadWriter, StreamMeta, TraceMeta, TraceWriter};
use event::{
    Base, ClassId, Cpu, EventClass, Field, FieldId, FieldType, Instant, Integer, IntegerMapping,
    Scope, Value,
};
use proptest::prelude::*;

/// Decisions taken from random bytes; zero when they run out, so that shrinking means less.
struct Entropy<'a>(std::slice::Iter<'a, u8>);

impl Entropy<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    fn text(&mut self) -> String {
        (0..self.below(6))
            .map(|_| char::from(b'a' + self.below(26)))
            .collect()
    }

    fn integer(&mut self) -> Integer {
        let base = [Base::Decimal, Base::Hexadecimal][usize::from(self.below(2))];
        let big_endian = self.below(4) == 3;
        let le = Integer::le(8 << self.below(4), self.below(2) == 1);
        Integer {
            base,
            big_endian,
            ..le
        }
    }

    fn enumeration(&mut self) -> FieldType {
        let first = i64::from(self.below(100));
        let ranges = [
            ("low", first, first),
            ("some", first + 1, first + 20),
            ("all", 0, 126),
        ];
        let mapping = |(label, first, last): (&str, _, _)| IntegerMapping {
            label: label.to_owned(),
            first,
            last,
        };
        FieldType::Enum(self.integer(), ranges.into_iter().map(mapping).collect())
    }

    fn scalar(&mut self) -> FieldType {
        match self.below(5) {
            0 => self.enumeration(),
            1 => FieldType::Float {
                size_bits: 32 << self.below(2),
                align_bits: 8,
                big_endian: false,
            },
            2 => FieldType::String,
            _ => FieldType::Integer(self.integer()),
        }
    }

    fn structure(&mut self) -> FieldType {
        let mut members = Vec::new();
        for place in 0..1 + self.below(3) {
            self.add_field(&mut members, Scope::Payload, &format!("m{place}"), false);
        }
        FieldType::Struct(members.into())
    }

    /// Adds a field; a sequence brings its length field along.
    fn add_field(&mut self, fields: &mut Vec<Field>, scope: Scope, name: &str, nest: bool) {
        let mut add = |name: &str, ty| {
            fields.push(Field {
                name: name.into(),
                scope,
                ty,
            })
        };
        let element = |entropy: &mut Self| match nest && entropy.below(2) == 1 {
            true => Arc::new(entropy.structure()),
            false => Arc::new(entropy.scalar()),
        };
        match self.below(6) {
            0 => add(
                name,
                FieldType::Text {
                    size_bytes: 1 + u32::from(self.below(20)),
                },
            ),
            1 => {
                let count = u32::from(self.below(4));
                add(
                    name,
                    FieldType::Array {
                        element: element(self),
                        count,
                    },
                );
            }
            2 => {
                let length = format!("{name}_length");
                add(&length, FieldType::Integer(Integer::le(32, false)));
                add(
                    name,
                    FieldType::Sequence {
                        element: element(self),
                        length,
                    },
                );
            }
            _ => add(name, self.scalar()),
        }
    }

    fn fields(&mut self, scope: Scope, prefix: &str, limit: u8) -> Vec<Field> {
        let mut fields = Vec::new();
        for place in 0..self.below(limit) {
            self.add_field(&mut fields, scope, &format!("{prefix}{place}"), true);
        }
        fields
    }

    /// A random value of `ty`, appended to `out` as the writer's callers lay it out.
    fn value(&mut self, ty: &FieldType, length: u64, out: &mut PayloadWriter) -> Value<'static> {
        match ty {
            FieldType::Integer(integer) => {
                let raw = self.u64();
                write_integer(integer, raw, out)
            }
            FieldType::Enum(integer, mappings) => {
                let value = i64::from(self.below(127));
                write_integer(integer, value as u64, out);
                let label = mappings
                    .iter()
                    .find(|m| (m.first..=m.last).contains(&value));
                // The label lives as long as the process, as the expected values do.
                let label = label.map(|m| &*Box::leak(m.label.clone().into_boxed_str()));
                Value::Enum { value, label }
            }
            FieldType::Float { size_bits: 32, .. } => {
                let float = f32::from(self.byte()) / 8.0;
                out.f32(float);
                Value::Float(float.into())
            }
            FieldType::Float { .. } => {
                let float = self.u64() as i64 as f64;
                out.f64(float);
                Value::Float(float)
            }
            FieldType::String => {
                let text = self.text();
                out.string(&text);
                Value::Text(Cow::Owned(text))
            }
            FieldType::Text { size_bytes } => {
                let text = self.text();
                out.text(text.as_bytes(), *size_bytes as usize);
                let kept = text.len().min(*size_bytes as usize - 1);
                Value::Text(Cow::Owned(text[..kept].to_owned()))
            }
            FieldType::Array { element, count } => {
                Value::Array((0..*count).map(|_| self.value(element, 0, out)).collect())
            }
            FieldType::Sequence { element, .. } => {
                Value::Array((0..length).map(|_| self.value(element, 0, out)).collect())
            }
            FieldType::Struct(members) => {
                let values = self.values(members, out);
                let name = |field: &Field| &*Box::leak(Box::from(field.name.as_str()));
                Value::Struct(members.iter().map(name).zip(values).collect())
            }
            _ => unreachable!("the writer writes none of these"),
        }
    }

    fn values(&mut self, fields: &[Field], out: &mut PayloadWriter) -> Vec<Value<'static>> {
        let mut values = Vec::new();
        let mut length = 0;
        for field in fields {
            if field.name.ends_with("_length") {
                length = u64::from(self.below(4));
                out.u32(length as u32);
                values.push(Value::Unsigned(length));
            } else {
                values.push(self.value(&field.ty, length, out));
            }
        }
        values
    }
}

fn write_integer(integer: &Integer, raw: u64, out: &mut PayloadWriter) -> Value<'static> {
    let size_bytes = usize::from(integer.size_bits / 8);
    let mut bytes = raw.to_le_bytes()[..size_bytes].to_vec();
    if integer.big_endian {
        bytes.reverse();
    }
    out.raw(&bytes);
    let unused = 64 - u32::from(integer.size_bits);
    match integer.signed {
        true => Value::Signed(((raw << unused) as i64) >> unused),
        false => Value::Unsigned(raw << unused >> unused),
    }
}

/// What the reader should say about one event, in the order of the class's fields.
struct Expected {
    class: ClassId,
    time_ns: i64,
    values: Vec<Value<'static>>,
}

struct Written {
    expected: Vec<Expected>,
    discarded: u64,
}

fn write(dir: &std::path::Path, entropy: &mut Entropy<'_>) -> Written {
    let mut class = |place: u8| {
        let payload = entropy.fields(Scope::Payload, "p", 6);
        let context = entropy.fields(Scope::EventContext, "c", 3);
        let fields = [payload, context].concat();
        EventClass {
            id: ClassId(place.into()),
            name: format!("class {place}"),
            stream: 0,
            fields: fields.into(),
        }
    };
    let classes: Vec<EventClass> = (0..3).map(&mut class).collect();
    let header = [HeaderKind::Compact, HeaderKind::Large][usize::from(entropy.below(2))];
    let event_context = entropy.fields(Scope::StreamContext, "s", 3);
    let stream = StreamMeta {
        name: "channel0".to_owned(),
        header,
        classes: classes.clone(),
        event_context: event_context.clone(),
        ..StreamMeta::default()
    };
    let meta = TraceMeta {
        environment: vec![("tracer_name".to_owned(), "lttng-modules".into())],
        uuid: [7; 16],
        clocks: vec![ClockMeta::monotonic(-5)],
        streams: vec![stream],
        ..TraceMeta::default()
    };
    let mut trace = TraceWriter::create(dir, &meta).unwrap();
    let mut stream = trace.stream(0, Cpu(1)).unwrap();
    let mut written = Written {
        expected: Vec::new(),
        discarded: 0,
    };
    let mut time_ns = 0i64;
    for _ in 0..entropy.below(40) {
        if entropy.below(8) == 7 {
            written.discarded += u64::from(entropy.below(9));
            stream.discarded(written.discarded).unwrap();
        }
        time_ns += (entropy.u64() >> (28 + entropy.below(36))) as i64;
        let class = &classes[usize::from(entropy.below(3))];
        let of_scope = |scope| -> Vec<Field> {
            class
                .fields
                .iter()
                .filter(|field| field.scope == scope)
                .cloned()
                .collect()
        };
        let mut out = PayloadWriter::new();
        let shared = entropy.values(&event_context, &mut out);
        let context = entropy.values(&of_scope(Scope::EventContext), &mut out);
        let mut values = entropy.values(&of_scope(Scope::Payload), &mut out);
        stream
            .event(class.id.0, Instant::from_ns(time_ns), out.bytes())
            .unwrap();
        values.extend(context);
        values.extend(shared);
        written.expected.push(Expected {
            class: class.id,
            time_ns,
            values,
        });
    }
    stream.finish().unwrap();
    written
}

/// The same values, comparable with ones that live less long.
fn shortened<'a>(values: &'a [Value<'static>]) -> &'a [Value<'a>] {
    values
}

fn check(bytes: &[u8]) {
    let root = tempfile::tempdir().unwrap();
    let written = write(root.path(), &mut Entropy(bytes.iter()));
    let files = TraceFiles::open(root.path()).unwrap();
    let reader = || files.reader(&files.streams()[0]);
    check_reader(reader(), &written, &[true; 3]);
    // Each class is passed over together with any other.
    for wanted in 0..7u8 {
        let wanted = [0, 1, 2].map(|class| wanted >> class & 1 == 1);
        check_reader(reader().with_wanted(wanted.into()), &written, &wanted);
    }
}

/// Checks every event of the `wanted` classes, and that no other is read.
fn check_reader(mut reader: StreamReader<'_>, written: &Written, wanted: &[bool]) {
    let is_wanted = |expect: &&Expected| wanted[expect.class.0 as usize];
    let mut expected = written.expected.iter().filter(is_wanted);
    let mut discarded = 0;
    loop {
        match reader.step() {
            Step::Event => {
                let expect = expected.next().expect("no more events than were written");
                check_event(&reader, expect);
            }
            Step::Lost(loss) => discarded += loss.events.unwrap(),
            Step::Damage(_) | Step::Unread(_) => panic!("sound"),
            Step::End => break,
        }
    }
    assert_eq!(expected.count(), 0, "every event is read");
    assert_eq!(discarded, written.discarded);
}

fn check_event(reader: &StreamReader<'_>, expect: &Expected) {
    let event = reader.event().unwrap();
    let field = |place: usize| event.value(FieldId(place as u16));
    let values: Vec<Value<'_>> = (0..expect.values.len()).map(field).collect();
    assert_eq!(values, shortened(&expect.values));
    assert_eq!(
        (event.class(), reader.time_ns()),
        (expect.class, expect.time_ns)
    );
    assert_eq!(reader.cpu(), Some(1));
    for (place, value) in expect.values.iter().enumerate() {
        let id = FieldId(place as u16);
        assert_eq!(event.i64(id), value.as_i64().unwrap_or(0));
        assert_eq!(event.text(id), value.as_text().unwrap_or("").as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_event_that_is_written_is_read_with_its_values(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
    ) {
        check(&bytes);
    }
}
