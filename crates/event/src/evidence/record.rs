//! How a record of the evidence stream is declared: its fields once, and from them its event class,
//! its bytes in a trace and its way back.

use std::sync::Arc;

use super::stack::{Frame, Stack};
use super::task::TaskRef;
use crate::{Cpu, Duration, Field, FieldType, Instant, Integer, IntegerMapping, Prio, Tid, Value};

/// The place of a record in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The CPU whose stream it is in.
    pub cpu: Cpu,
    /// Its time.
    pub time: Instant,
}

/// An event that is read back: its fields by name.
pub trait Source {
    /// The field's value; none when the event has no such field.
    fn value(&self, name: &str) -> Option<Value<'_>>;
}

impl Source for Value<'_> {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        self.member(name).cloned()
    }
}

/// What a field of a record can be.
pub(super) trait Part: Sized {
    /// Adds the fields of the event class; several for a task and for a sequence.
    fn declare(name: &str, fields: &mut Vec<Field>);
    /// Appends the bytes of those fields.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads them; none when they make no sense. A field that is not there reads as zero: an older
    /// trace has fewer.
    fn decode(name: &str, source: &dyn Source) -> Option<Self>;
}

/// One kind of records.
pub(super) trait Record: Sized {
    /// The name of its event class.
    const NAME: &'static str;
    /// The fields of its event class.
    fn fields() -> Vec<Field>;
    /// Appends its bytes in a trace.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads it back.
    fn decode(place: Place, source: &dyn Source) -> Option<Self>;
    /// Where it stands.
    fn place(&self) -> Place;
}

/// The integer in a field; zero when there is none.
pub(super) fn number(name: &str, source: &dyn Source) -> i64 {
    source
        .value(name)
        .and_then(|value| value.as_i64())
        .unwrap_or(0)
}

pub(super) fn text(name: &str, source: &dyn Source) -> String {
    let value = source.value(name);
    let text = value.as_ref().and_then(Value::as_text).unwrap_or_default();
    text.trim_end_matches('\0').to_owned()
}

pub(super) fn integer(name: &str, size_bits: u8, signed: bool) -> Field {
    Field::payload(name, FieldType::Integer(Integer::le(size_bits, signed)))
}

/// Bytes of `char comm[16]`.
const COMM_BYTES: usize = 16;

/// Cut at 15 bytes, filled with zeros.
pub(super) fn put_comm(text: &str, out: &mut Vec<u8>) {
    let end = text.find('\0').unwrap_or(text.len()).min(COMM_BYTES - 1);
    out.extend_from_slice(&text.as_bytes()[..end]);
    out.resize(out.len() + COMM_BYTES - end, 0);
}

pub(super) fn declare_comm(name: &str) -> Field {
    let size_bytes = COMM_BYTES as u32;
    Field::payload(name, FieldType::Text { size_bytes })
}

/// The length of a sequence, and the sequence.
pub(super) fn declare_sequence(name: &str, members: Vec<Field>, fields: &mut Vec<Field>) {
    let length = format!("{name}_length");
    fields.push(integer(&length, 32, false));
    let element = Arc::new(FieldType::Struct(members.into()));
    let ty = FieldType::Sequence { element, length };
    fields.push(Field::payload(name, ty));
}

pub(super) fn encode_sequence<T>(
    elements: &[T],
    out: &mut Vec<u8>,
    each: impl Fn(&T, &mut Vec<u8>),
) {
    (elements.len() as u32).encode(out);
    elements.iter().for_each(|element| each(element, out));
}

pub(super) fn decode_sequence<T>(
    name: &str,
    source: &dyn Source,
    each: impl Fn(&Value<'_>) -> Option<T>,
) -> Vec<T> {
    let value = source.value(name);
    let elements = value.as_ref().and_then(Value::as_array).unwrap_or_default();
    elements.iter().filter_map(each).collect()
}

/// An enumeration of one byte, with its labels.
pub(super) fn labelled<'a>(name: &str, labels: impl IntoIterator<Item = (u8, &'a str)>) -> Field {
    let mapping = |(value, label): (u8, &str)| IntegerMapping {
        label: label.to_owned(),
        first: i64::from(value),
        last: i64::from(value),
    };
    let mappings: Arc<[_]> = labels.into_iter().map(mapping).collect();
    Field::payload(name, FieldType::Enum(Integer::le(8, false), mappings))
}

/// Makes an enumeration with `NAMES` and `from_value` a field; `unknown` is what a value that it
/// does not have reads as, instead of making the record unreadable.
macro_rules! label_part {
    ($name:ty $(, $unknown:expr)?) => {
        impl $crate::evidence::record::Part for $name {
            fn declare(name: &str, fields: &mut Vec<$crate::Field>) {
                let labels = <$name>::NAMES.map(|(value, label)| (value as u8, label));
                fields.push($crate::evidence::record::labelled(name, labels));
            }

            fn encode(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }

            fn decode(name: &str, source: &dyn $crate::evidence::record::Source) -> Option<Self> {
                let value = $crate::evidence::record::number(name, source);
                let known = u8::try_from(value).ok().and_then(<$name>::from_value);
                $( let known = known.or(Some($unknown)); )?
                known
            }
        }
    };
}
pub(super) use label_part;

impl Part for u32 {
    fn declare(name: &str, fields: &mut Vec<Field>) {
        fields.push(integer(name, 32, false));
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn decode(name: &str, source: &dyn Source) -> Option<Self> {
        Some(number(name, source) as u32)
    }
}

impl Part for i32 {
    fn declare(name: &str, fields: &mut Vec<Field>) {
        fields.push(integer(name, 32, true));
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn decode(name: &str, source: &dyn Source) -> Option<Self> {
        Some(number(name, source) as i32)
    }
}

/// An address.
impl Part for u64 {
    fn declare(name: &str, fields: &mut Vec<Field>) {
        fields.push(Field::payload(name, FieldType::Integer(Integer::hex(64))));
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn decode(name: &str, source: &dyn Source) -> Option<Self> {
        Some(number(name, source) as u64)
    }
}

impl Part for Instant {
    fn declare(name: &str, fields: &mut Vec<Field>) {
        fields.push(integer(name, 64, false));
    }

    fn encode(&self, out: &mut Vec<u8>) {
        (self.as_ns().max(0) as u64).encode(out);
    }

    fn decode(name: &str, source: &dyn Source) -> Option<Self> {
        Some(Instant::from_ns(number(name, source)))
    }
}

impl Part for Duration {
    fn declare(name: &str, fields: &mut Vec<Field>) {
        fields.push(integer(name, 64, false));
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.as_ns_unsigned().encode(out);
    }

    fn decode(name: &str, source: &dyn Source) -> Option<Self> {
        Some(Duration::from_ns(number(name, source)))
    }
}

/// The field's name is the prefix of a task's fields.
impl Part for TaskRef {
    fn declare(prefix: &str, fields: &mut Vec<Field>) {
        fields.push(integer(&format!("{prefix}tid"), 32, true));
        fields.push(integer(&format!("{prefix}prio"), 32, true));
        fields.push(declare_comm(&format!("{prefix}comm")));
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.tid.0.encode(out);
        self.prio.lttng().encode(out);
        put_comm(&self.comm, out);
    }

    fn decode(prefix: &str, source: &dyn Source) -> Option<Self> {
        Some(TaskRef {
            tid: Tid(number(&format!("{prefix}tid"), source) as i32),
            comm: text(&format!("{prefix}comm"), source),
            prio: Prio::from_lttng(number(&format!("{prefix}prio"), source) as i32),
        })
    }
}

/// -1 is no task's number.
impl Part for Option<TaskRef> {
    fn declare(prefix: &str, fields: &mut Vec<Field>) {
        TaskRef::declare(prefix, fields);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Some(task) => task.encode(out),
            None => {
                (-1i32).encode(out);
                0i32.encode(out);
                put_comm("", out);
            }
        }
    }

    fn decode(prefix: &str, source: &dyn Source) -> Option<Self> {
        let there = source.value(&format!("{prefix}tid")).is_some();
        let task = TaskRef::decode(prefix, source);
        Some(task.filter(|task| there && task.tid.0 >= 0))
    }
}

impl Part for Stack {
    fn declare(name: &str, fields: &mut Vec<Field>) {
        let mut members = Vec::new();
        u64::declare("address", &mut members);
        members.push(Field::payload("symbol", FieldType::String));
        declare_sequence(name, members, fields);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        encode_sequence(self, out, |frame, out| {
            frame.address.encode(out);
            let end = frame.symbol.find('\0').unwrap_or(frame.symbol.len());
            out.extend_from_slice(&frame.symbol.as_bytes()[..end]);
            out.push(0);
        });
    }

    fn decode(name: &str, source: &dyn Source) -> Option<Self> {
        let frame = |frame: &Value<'_>| {
            let address = frame.member("address")?.as_u64()?;
            let symbol = text("symbol", frame);
            Some(Frame { address, symbol })
        };
        Some(decode_sequence(name, source, frame))
    }
}

/// Declares a kind of records: its fields, each with its name in a trace (a task's and an
/// optional task's is a prefix). What follows from them is written once, here.
macro_rules! record {
    (
        $(#[$about:meta])*
        $name:ident as $class:literal {
            $( $(#[$doc:meta])* $field:ident: $ty:ty = $wire:literal, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            /// The CPU on which it was seen.
            pub cpu: $crate::Cpu,
            /// When.
            pub time: $crate::Instant,
            $( $(#[$doc])* pub $field: $ty, )*
        }

        impl $crate::evidence::record::Record for $name {
            const NAME: &'static str = $class;

            fn fields() -> Vec<$crate::Field> {
                let mut fields = Vec::new();
                $( <$ty as $crate::evidence::record::Part>::declare($wire, &mut fields); )*
                fields
            }

            fn encode(&self, out: &mut Vec<u8>) {
                $( $crate::evidence::record::Part::encode(&self.$field, out); )*
            }

            fn decode(
                place: $crate::evidence::record::Place,
                source: &dyn $crate::evidence::record::Source,
            ) -> Option<Self> {
                Some($name {
                    cpu: place.cpu,
                    time: place.time,
                    $( $field: $crate::evidence::record::Part::decode($wire, source)?, )*
                })
            }

            fn place(&self) -> $crate::evidence::record::Place {
                $crate::evidence::record::Place { cpu: self.cpu, time: self.time }
            }
        }
    };
}
pub(super) use record;

#[cfg(test)]
pub(super) mod testing {
    //! Reads bytes back by the fields of a class, as a reader of traces does.

    use crate::evidence::record::{Record, Value};
    use crate::{Field, FieldType};

    /// Check that a record comes back from its bytes as it was.
    pub(in super::super) fn check_round_trip<R: Record + PartialEq + std::fmt::Debug>(record: &R) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        let mut left = bytes.as_slice();
        let fields = R::fields();
        let read = members(&fields, &mut left);
        assert!(left.is_empty(), "{} bytes are left", left.len());
        let found = R::decode(record.place(), &read);
        assert_eq!(found.as_ref(), Some(record));
    }

    fn members<'a>(fields: &'a [Field], left: &mut &'a [u8]) -> Value<'a> {
        let mut read: Vec<(&str, Value<'a>)> = Vec::new();
        for field in fields {
            let count = match &field.ty {
                FieldType::Sequence { length, .. } => {
                    let found = read.iter().find(|(name, _)| name == length);
                    found
                        .and_then(|(_, value)| value.as_u64())
                        .expect("a length")
                }
                _ => 0,
            };
            read.push((&field.name, value(&field.ty, count, left)));
        }
        Value::Struct(read)
    }

    fn take<'a>(count: usize, left: &mut &'a [u8]) -> &'a [u8] {
        let (taken, rest) = left.split_at(count);
        *left = rest;
        taken
    }

    fn value<'a>(ty: &'a FieldType, count: u64, left: &mut &'a [u8]) -> Value<'a> {
        match ty {
            FieldType::Integer(integer) | FieldType::Enum(integer, _) => {
                let bytes = usize::from(integer.size_bits) / 8;
                let mut wide = [0; 8];
                wide[..bytes].copy_from_slice(take(bytes, left));
                let unused = 64 - u32::from(integer.size_bits);
                let bits = u64::from_le_bytes(wide);
                match integer.signed {
                    true => Value::Signed((bits << unused) as i64 >> unused),
                    false => Value::Unsigned(bits),
                }
            }
            FieldType::Text { size_bytes } => text(take(*size_bytes as usize, left)),
            FieldType::String => {
                let end = left.iter().position(|byte| *byte == 0).expect("an end");
                let found = text(take(end, left));
                take(1, left);
                found
            }
            FieldType::Sequence { element, .. } => {
                Value::Array((0..count).map(|_| value(element, 0, left)).collect())
            }
            FieldType::Struct(fields) => members(fields, left),
            other => panic!("no record has such a field: {other:?}"),
        }
    }

    fn text(bytes: &[u8]) -> Value<'_> {
        Value::Text(String::from_utf8_lossy(bytes))
    }
}
