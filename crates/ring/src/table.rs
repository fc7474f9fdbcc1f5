//! The table of events: what each record of an id means.

use std::ops::Range;
use std::sync::Arc;

use abi::numbers::{NUMBERS, NumberKind};
use abi::rings::{self, Entry, Plain};
use event::{FieldType, Integer, IntegerMapping};

use crate::described::{Enumerations, described, enumeration, note};

/// The fields of all events of a process; more cost a recorder more than they tell anybody.
const ALL_FIELDS_MAX: usize = 1 << 16;
/// The labels of all fields, which are written anew for each, and the bytes of their texts.
const ALL_LABELS_MAX: usize = 1 << 14;
const ALL_LABELS_BYTES_MAX: usize = 1 << 20;
/// So many notes are kept.
const NOTES_MAX: usize = 1 << 10;
/// So many problems.
const PROBLEMS_MAX: usize = 1 << 10;

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

/// Why an entry of the table was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableProblem {
    /// Where in the table.
    pub offset: usize,
    /// What is wrong.
    pub what: &'static str,
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

/// All events that a process has described so far.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// In the order of their appearance.
    pub events: Vec<EventDescription>,
    /// In the order of their appearance.
    pub notes: Vec<Note>,
    /// What was left out.
    pub problems: Vec<TableProblem>,
    /// Bytes that were read.
    pub read_bytes: usize,
    /// By name, the last that was described.
    enumerations: Enumerations,
    /// Of all events: fields, labels, and the bytes of these.
    fields: usize,
    labels: usize,
    labels_bytes: usize,
    /// For each id, one more than the place of its event; 0 where there is none.
    places: Vec<u32>,
}

impl Table {
    /// Where among the events the one with this id is.
    #[inline]
    pub fn place_of(&self, id: u16) -> Option<usize> {
        let place = self.places.get(usize::from(id))?;
        place.checked_sub(1).map(|place| place as usize)
    }

    /// Takes an event, when there is room for it. Without its labels a field is still a number.
    fn add(&mut self, mut event: EventDescription, at: usize) {
        if self.fields + event.fields.len() > ALL_FIELDS_MAX {
            return self.problem(at, "more fields than a process can have");
        }
        self.fields += event.fields.len();
        for field in &mut event.fields {
            let FieldKind::Enumeration(number, labels) = &field.kind else {
                continue;
            };
            let bytes: usize = labels.iter().map(|label| label.label.len()).sum();
            self.labels += labels.len();
            self.labels_bytes += bytes;
            if self.labels > ALL_LABELS_MAX || self.labels_bytes > ALL_LABELS_BYTES_MAX {
                self.labels -= labels.len();
                self.labels_bytes -= bytes;
                field.kind = FieldKind::Number(*number);
                self.problem(at, "more labels than a process can have");
            }
        }
        let id = usize::from(event.id);
        if self.places.len() <= id {
            self.places.resize(id + 1, 0);
        }
        self.events.push(event);
        self.places[id] = self.events.len() as u32;
    }

    /// Reads the entries in `bytes`, the complete part of the table from `self.read_bytes` on.
    /// Returns the places of the new events.
    pub fn extend(&mut self, bytes: &[u8]) -> Range<usize> {
        let first = self.events.len();
        let mut at = 0;
        while let Some(entry) = bytes.get(at..).and_then(Entry::from_bytes) {
            let header = size_of::<Entry>();
            let total = entry.entry_bytes as usize;
            let text = entry.text_bytes as usize;
            let sound = total.is_multiple_of(8) && text <= total.saturating_sub(header);
            let body = bytes.get(at..at.saturating_add(total));
            let (true, Some(body)) = (sound && total >= header, body) else {
                self.problem(at, "an entry of impossible length");
                // Where the next one begins is not known.
                at = bytes.len();
                break;
            };
            let text = &body[header..header + text];
            if entry.kind == rings::ENTRY_ENUMERATION {
                match enumeration(text) {
                    Ok((name, labels)) => {
                        self.enumerations.insert(name, labels);
                    }
                    Err(what) => self.problem(at, what),
                }
                at += total;
                continue;
            }
            if entry.kind == rings::ENTRY_NOTE {
                match note(text) {
                    Ok(note) if self.notes.len() < NOTES_MAX => self.notes.push(note),
                    Ok(_) => self.problem(at, "more notes than a process can have"),
                    Err(what) => self.problem(at, what),
                }
                at += total;
                continue;
            }
            match described(&entry, text, &self.enumerations) {
                Ok(event) if self.place_of(event.id).is_some() => {
                    self.problem(at, "an id for the second time");
                }
                Ok(event) => self.add(event, at),
                Err(what) => self.problem(at, what),
            }
            at += total;
        }
        self.read_bytes += at;
        first..self.events.len()
    }

    fn problem(&mut self, at: usize, what: &'static str) {
        let offset = self.read_bytes + at;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(TableProblem { offset, what });
        }
    }
}
