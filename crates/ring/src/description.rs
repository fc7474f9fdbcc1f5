//! What a process says of its events: their fields, and why one is missing.

use std::sync::Arc;

use abi::numbers::{NUMBERS, NumberKind};
use event::{FieldType, Integer, IntegerMapping};

/// A number as it lies in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// 1, 2, 4 or 8.
    pub size_bytes: u8,
    /// What the bytes mean.
    pub kind: NumberKind,
    /// Whether they are in network order.
    pub big_endian: bool,
    /// As the probe calls its type, without what stands before it.
    pub code: u8,
}

impl Number {
    pub(crate) fn from_code(code: u8, big_endian: bool) -> Option<Number> {
        let mut all = NUMBERS.iter();
        let (_, code, size_bytes, kind) = *all.find(|(_, known, ..)| *known == code)?;
        Some(Number {
            size_bytes,
            kind,
            big_endian,
            code,
        })
    }

    /// Its type in a trace.
    pub fn field_type(self) -> FieldType {
        self.kind.field_type(self.size_bytes, self.big_endian)
    }

    /// The same where it is an integer.
    pub fn integer(self) -> Option<Integer> {
        self.kind.integer(self.size_bytes, self.big_endian)
    }
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number.
    Number(Number),
    /// An integer whose values have labels.
    Enumeration(Number, Arc<[IntegerMapping]>),
    /// A text behind its length.
    Text,
    /// A text of at most so many bytes, which are all there.
    Characters(u32),
    /// So many numbers.
    Array(Number, u32),
    /// Numbers behind their count.
    Sequence(Number),
}

impl FieldKind {
    /// Its bytes; nothing where they vary.
    pub fn size_bytes(&self) -> Option<usize> {
        match self {
            FieldKind::Number(number) | FieldKind::Enumeration(number, _) => {
                Some(usize::from(number.size_bytes))
            }
            FieldKind::Characters(count) => Some(*count as usize),
            FieldKind::Array(number, count) => {
                Some(usize::from(number.size_bytes) * *count as usize)
            }
            FieldKind::Text | FieldKind::Sequence(_) => None,
        }
    }

    /// The bytes of one element of what varies.
    pub fn element_bytes(&self) -> usize {
        match self {
            FieldKind::Sequence(number) => usize::from(number.size_bytes),
            _ => 1,
        }
    }
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDescription {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: FieldKind,
    /// Whether filters alone see it: it is in no record.
    pub hidden: bool,
}

/// An event at one place of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDescription {
    /// The id in its records, unique in the process.
    pub id: u16,
    /// LTTng's log level: 0 emergency to 14 debug.
    pub level: u8,
    /// Who it belongs to.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// Its fields, in the order of the payload; those that are hidden lie behind it.
    pub fields: Vec<FieldDescription>,
    /// Where its place in the code is in the process's memory; 0 when it has none.
    pub code_address: u64,
    /// Where its switch is.
    pub(crate) switch_offset: u64,
}

impl EventDescription {
    /// An event without fields, of the least grave level.
    pub fn new(id: u16, provider: &str, name: &str) -> Self {
        EventDescription {
            id,
            level: 14,
            provider: provider.to_owned(),
            name: name.to_owned(),
            fields: Vec::new(),
            code_address: 0,
            switch_offset: 0,
        }
    }

    /// `provider:name`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.provider, self.name)
    }

    /// The bytes of the fields of each of its records; nothing where they vary.
    pub fn fields_bytes(&self) -> Option<usize> {
        let shown = self.fields.iter().filter(|field| !field.hidden);
        shown.map(|field| field.kind.size_bytes()).sum()
    }

    /// Cuts a payload into its fields, each without its length; calls `each` for all of them.
    /// Returns whether the payload is exactly what the description says, with at most seven
    /// filling bytes; when it is not, `each` was called for fields that are there.
    pub fn split<'a>(
        &self,
        payload: &'a [u8],
        mut each: impl FnMut(&FieldDescription, &'a [u8]),
    ) -> bool {
        let mut rest = payload;
        for field in self.fields.iter().filter(|field| !field.hidden) {
            let size = match field.kind.size_bytes() {
                Some(size) => size,
                None => match rest.split_first_chunk::<2>() {
                    Some((length, behind)) => {
                        rest = behind;
                        usize::from(u16::from_le_bytes(*length)) * field.kind.element_bytes()
                    }
                    None => return false,
                },
            };
            let Some((bytes, behind)) = rest.split_at_checked(size) else {
                return false;
            };
            each(field, bytes);
            rest = behind;
        }
        rest.len() < 8
    }
}

/// Why an event is missing where it may be looked for, as its process says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Who the event belongs to.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// What is missing.
    pub what: String,
    /// What was found.
    pub found: String,
    /// What fixes it.
    pub fix: String,
}
