//! The table of Perfetto's numbers for the kernel's events (`events.tsv`), and the classes that are
//! made of them under LTTng's names.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use event::{ClassId, EventClass, Field, FieldType, Integer, Scope, Value};

use super::wire::{Fields, Wire};
use crate::lttng::names::{self, FieldWriting};

const TABLE: &str = include_str!("events.tsv");
/// What LTTng subtracts from the kernel's priorities.
const PRIO_OFFSET: i64 = 100;
const COMM_BYTES: u32 = 16;
/// Fields of an event that Perfetto has no number for.
const GENERIC_FIELDS_MAX: usize = 64;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Signed,
    Unsigned,
    Text,
}

/// A column of an event.
#[derive(Clone, Debug)]
pub(super) struct Column {
    number: u32,
    name: Cow<'static, str>,
    kind: Kind,
    writing: Option<FieldWriting>,
}

/// An event as Perfetto has it, to be written under LTTng's name.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    name: String,
    columns: Vec<Column>,
}

/// By the number of the field of FtraceEvent.
static ROWS: LazyLock<HashMap<u32, &'static str>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| Some((line.split('\t').next()?.parse().ok()?, line));
    lines.filter_map(row).collect()
});

/// Whether an event of this number is in the table.
pub(super) fn is_known(number: u32) -> bool {
    ROWS.contains_key(&number)
}

/// The shape of the event with this number; none where the table has no such.
pub(super) fn shape(number: u32) -> Option<Shape> {
    let mut parts = ROWS.get(&number)?.split('\t').skip(1);
    let (tracepoint, fields) = (parts.next()?, parts.next().unwrap_or_default());
    let row = names::lookup(tracepoint);
    let plain = tracepoint.split(':').nth(1).unwrap_or(tracepoint);
    let name = row
        .as_ref()
        .map_or_else(|| plain.to_owned(), |row| row.name.clone());
    let rows = row.and_then(|row| row.fields);
    let columns = fields.split(' ').filter_map(|field| {
        let mut words = field.split(':');
        let (number, name, kind) = (words.next()?, words.next()?, words.next()?);
        let number = number.parse().ok()?;
        let kind = match kind {
            "i" => Kind::Signed,
            "u" => Kind::Unsigned,
            _ => Kind::Text,
        };
        let Some(rows) = &rows else {
            return Some(Column {
                number,
                name: name.into(),
                kind,
                writing: None,
            });
        };
        // What LTTng does not write is left out, as of the kernel's own records.
        let row = rows
            .iter()
            .find(|row| row.source == name && row.writing != FieldWriting::ThreadGroup)?;
        Some(Column {
            number,
            name: row.name.into(),
            kind,
            writing: Some(row.writing),
        })
    });
    Some(Shape {
        name,
        columns: columns.collect(),
    })
}

/// What tells the shapes of a generic event apart: its name, and its fields with their kinds.
pub(super) fn generic_key(message: &[u8]) -> Option<String> {
    let mut key = String::new();
    for (number, value) in Fields::new(message) {
        match (number, value) {
            (1, Wire::Bytes(name)) => key.insert_str(0, &String::from_utf8_lossy(name)),
            (2, Wire::Bytes(field)) => {
                let (name, value) = generic_field(field);
                let kind = value.as_ref().map_or(Kind::Signed, kind_of);
                key.push_str(&format!("\t{name}={kind:?}"));
            }
            _ => {}
        }
    }
    (!key.is_empty() && !key.starts_with('\t')).then_some(key)
}

/// The shape of a generic event.
pub(super) fn generic_shape(message: &[u8]) -> Shape {
    let mut shape = Shape {
        name: String::new(),
        columns: Vec::new(),
    };
    for (number, value) in Fields::new(message) {
        match (number, value) {
            (1, Wire::Bytes(name)) => shape.name = String::from_utf8_lossy(name).into_owned(),
            (2, Wire::Bytes(field)) if shape.columns.len() < GENERIC_FIELDS_MAX => {
                let (name, value) = generic_field(field);
                shape.columns.push(Column {
                    number: 0,
                    name: name.into(),
                    kind: value.as_ref().map_or(Kind::Signed, kind_of),
                    writing: None,
                });
            }
            _ => {}
        }
    }
    shape
}

/// The values of a generic event, in the order of its fields.
pub(super) fn generic_values(shape: &Shape, message: &[u8]) -> Vec<Value<'static>> {
    let fields = Fields::new(message).filter_map(|(number, value)| match (number, value) {
        (2, Wire::Bytes(field)) => Some(field),
        _ => None,
    });
    let value = |(column, field): (&Column, &[u8])| {
        let (_, value) = generic_field(field);
        value.unwrap_or_else(|| column.empty())
    };
    shape.columns.iter().zip(fields).map(value).collect()
}

fn generic_field(field: &[u8]) -> (String, Option<Value<'static>>) {
    let (mut name, mut found) = (String::new(), None);
    for (number, value) in Fields::new(field) {
        match (number, value) {
            (1, Wire::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
            (3, Wire::Bytes(bytes)) => found = Some(text(bytes)),
            (4, Wire::Varint(number)) => found = Some(Value::Signed(number as i64)),
            (5, Wire::Varint(number)) => found = Some(Value::Unsigned(number)),
            _ => {}
        }
    }
    (name, found)
}

fn kind_of(value: &Value<'_>) -> Kind {
    match value {
        Value::Text(_) => Kind::Text,
        Value::Unsigned(_) => Kind::Unsigned,
        _ => Kind::Signed,
    }
}

impl Shape {
    /// The class; what its events have besides their payload comes last: the CPU, the task that was
    /// running, the flags.
    pub fn class(&self, id: ClassId, has_pid: bool, has_flags: bool) -> EventClass {
        let payload = |column: &Column| Field::payload(&*column.name, column.ty());
        let mut fields: Vec<Field> = self.columns.iter().map(payload).collect();
        let comm = FieldType::Text {
            size_bytes: COMM_BYTES,
        };
        let cpu = (Scope::PacketContext, "cpu_id", integer(32, false));
        let task = [
            (Scope::StreamContext, "tid", integer(32, true)),
            (Scope::StreamContext, "procname", comm),
        ];
        let task = task.into_iter().filter(|_| has_pid);
        let flags = FieldType::Integer(Integer::hex(8));
        let flags = has_flags.then_some((Scope::StreamContext, "common_flags", flags));
        let field = |(scope, name, ty): (Scope, &str, FieldType)| Field {
            name: name.into(),
            scope,
            ty,
        };
        fields.extend([cpu].into_iter().chain(task).chain(flags).map(field));
        EventClass {
            id,
            name: self.name.clone(),
            stream: 0,
            fields: fields.into(),
        }
    }

    /// The values of a message, in the order of the columns; what it does not have is empty.
    pub fn values(&self, message: &[u8]) -> Vec<Value<'static>> {
        let mut values: Vec<_> = self.columns.iter().map(Column::empty).collect();
        for (number, value) in Fields::new(message) {
            let place = self.columns.iter().position(|one| one.number == number);
            if let Some(place) = place {
                values[place] = self.columns[place].value(value);
            }
        }
        values
    }

    /// The same of an event that was packed with others: numbers and values of its fields.
    pub fn values_of(&self, fields: &[(u32, Part<'_>)]) -> Vec<Value<'static>> {
        let value = |column: &Column| {
            let part = fields.iter().find(|(number, _)| *number == column.number);
            match part {
                Some((_, Part::Number(number))) => column.number_value(*number),
                Some((_, Part::Text(name))) => text(name.as_bytes()),
                None => column.empty(),
            }
        };
        self.columns.iter().map(value).collect()
    }
}

/// A value of a packed event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    Number(i64),
    Text(&'a str),
}

impl Column {
    fn ty(&self) -> FieldType {
        match (self.kind, self.writing) {
            (Kind::Text, Some(FieldWriting::Text16)) => FieldType::Text {
                size_bytes: COMM_BYTES,
            },
            (Kind::Text, _) => FieldType::String,
            (_, Some(FieldWriting::Prio | FieldWriting::Current)) => integer(32, true),
            (
                _,
                Some(FieldWriting::Integer {
                    hexadecimal: true, ..
                }),
            ) => FieldType::Integer(Integer::hex(64)),
            (
                _,
                Some(FieldWriting::Integer {
                    size_bits, signed, ..
                }),
            ) => integer(size_bits, signed),
            (kind, _) => integer(64, kind == Kind::Signed),
        }
    }

    fn empty(&self) -> Value<'static> {
        match self.kind {
            Kind::Text => text(b""),
            _ => self.number_value(0),
        }
    }

    fn value(&self, value: Wire<'_>) -> Value<'static> {
        match (self.kind, value) {
            (Kind::Text, Wire::Bytes(bytes)) => text(bytes),
            (Kind::Text, _) | (_, Wire::Bytes(_)) => self.empty(),
            (_, value) => self.number_value(value.number().unwrap_or(0) as i64),
        }
    }

    fn number_value(&self, number: i64) -> Value<'static> {
        let number = match self.writing {
            Some(FieldWriting::Prio) => number.saturating_sub(PRIO_OFFSET),
            _ => number,
        };
        match self.ty() {
            FieldType::Integer(integer) if !integer.signed => Value::Unsigned(number as u64),
            _ => Value::Signed(number),
        }
    }
}

fn integer(size_bits: u8, signed: bool) -> FieldType {
    FieldType::Integer(Integer::le(size_bits, signed))
}

pub(super) fn text(bytes: &[u8]) -> Value<'static> {
    Value::Text(Cow::Owned(String::from_utf8_lossy(bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_understood_and_each_number_stands_once() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for line in lines {
            let number = line.split('\t').next().and_then(|word| word.parse().ok());
            let number = number.expect("a number");
            assert!(shape(number).is_some(), "{line}");
            count += 1;
        }
        assert_eq!(count, ROWS.len());
    }

    #[test]
    fn a_switch_has_lttngs_names_and_priorities() {
        // sched_switch: prev_pid 7, prev_prio 49, next_comm "b".
        let message = [0x10, 7, 0x18, 49, 0x2a, 1, b'b'];
        let shape = shape(4).expect("in the table");
        let class = shape.class(ClassId(0), true, false);
        let names: Vec<_> = class
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .collect();
        let expect = [
            "prev_comm",
            "prev_tid",
            "prev_prio",
            "prev_state",
            "next_comm",
            "next_tid",
            "next_prio",
            "cpu_id",
            "tid",
            "procname",
        ];
        assert_eq!(names, expect);
        let values = shape.values(&message);
        assert_eq!(values[1..3], [Value::Signed(7), Value::Signed(-51)]);
        assert_eq!(values[4], text(b"b"));
    }
}
