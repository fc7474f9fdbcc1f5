//! The table of events: what each record of an id means.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use abi::rings::{self, Entry, Plain};
use event::IntegerMapping;

/// No event has more fields; the macro that makes descriptions allows fewer.
const FIELDS_MAX: usize = 64;

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

/// What the bytes of a number mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// An integer without a sign.
    Unsigned,
    /// An integer with one.
    Signed,
    /// An integer that people want to see in hexadecimal.
    Hexadecimal,
    /// A floating point number.
    Float,
}

impl Number {
    fn from_code(code: u8, big_endian: bool) -> Option<Number> {
        let number = |first: u8, smallest: u8, kind| Number {
            size_bytes: smallest << (code - first),
            kind,
            big_endian,
            code,
        };
        Some(match code {
            rings::FIELD_U8..rings::FIELD_I8 => number(rings::FIELD_U8, 1, NumberKind::Unsigned),
            rings::FIELD_I8..rings::FIELD_X8 => number(rings::FIELD_I8, 1, NumberKind::Signed),
            rings::FIELD_X8..rings::FIELD_F32 => {
                number(rings::FIELD_X8, 1, NumberKind::Hexadecimal)
            }
            rings::FIELD_F32..rings::FIELD_TEXT => number(rings::FIELD_F32, 4, NumberKind::Float),
            _ => return None,
        })
    }

    fn is_integer(self) -> bool {
        self.kind != NumberKind::Float
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
    /// What mends it.
    pub mend: String,
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
    enumerations: HashMap<String, Arc<[IntegerMapping]>>,
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

    fn add(&mut self, event: EventDescription) {
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
                    Ok(note) => self.notes.push(note),
                    Err(what) => self.problem(at, what),
                }
                at += total;
                continue;
            }
            match described(&entry, text, &self.enumerations) {
                Ok(event) if self.place_of(event.id).is_some() => {
                    self.problem(at, "an id for the second time");
                }
                Ok(event) => self.add(event),
                Err(what) => self.problem(at, what),
            }
            at += total;
        }
        self.read_bytes += at;
        first..self.events.len()
    }

    fn problem(&mut self, at: usize, what: &'static str) {
        let offset = self.read_bytes + at;
        self.problems.push(TableProblem { offset, what });
    }
}

/// The text of an enumeration: its name, then first, last and label, over and over.
fn enumeration(text: &[u8]) -> Result<(String, Arc<[IntegerMapping]>), &'static str> {
    let mut rest = text;
    let name = identifier(&mut rest)?;
    let mut labels = Vec::new();
    while let Some((first, behind)) = rest.split_first_chunk::<8>() {
        let (last, behind) = behind.split_first_chunk().ok_or("a label without an end")?;
        rest = behind;
        labels.push(IntegerMapping {
            label: String::from_utf8_lossy(zero_ended(&mut rest)?).into_owned(),
            first: i64::from_le_bytes(*first),
            last: i64::from_le_bytes(*last),
        });
    }
    match rest {
        [] => Ok((name, labels.into())),
        _ => Err("a label that is cut off"),
    }
}

/// The text of a note.
fn note(text: &[u8]) -> Result<Note, &'static str> {
    let mut rest = text;
    let (provider, name) = (identifier(&mut rest)?, identifier(&mut rest)?);
    let mut sentence = || {
        let sentence = String::from_utf8_lossy(zero_ended(&mut rest)?);
        // It is shown to people: nothing in it may steer their terminal.
        let shown = |c: char| if c.is_control() { '?' } else { c };
        Ok(sentence.chars().map(shown).collect())
    };
    Ok(Note {
        provider,
        name,
        what: sentence()?,
        found: sentence()?,
        mend: sentence()?,
    })
}

type Enumerations = HashMap<String, Arc<[IntegerMapping]>>;

fn described(
    entry: &Entry,
    text: &[u8],
    enumerations: &Enumerations,
) -> Result<EventDescription, &'static str> {
    if entry.kind != rings::ENTRY_EVENT {
        return Err("an entry of unknown kind");
    }
    let id = u16::try_from(entry.id).map_err(|_| "an id that is too large")?;
    if id == rings::ID_PADDING {
        return Err("the id of padding");
    }
    let (level, mut rest) = text.split_first().ok_or("no level")?;
    let provider = identifier(&mut rest)?;
    let name = identifier(&mut rest)?;
    let mut fields: Vec<FieldDescription> = Vec::new();
    while let Some(field) = described_field(&mut rest, enumerations)? {
        if fields.len() == FIELDS_MAX {
            return Err("too many fields");
        }
        if fields.iter().any(|known| known.name == field.name) {
            return Err("two fields of one name");
        }
        fields.push(field);
    }
    Ok(EventDescription {
        id,
        level: *level,
        provider,
        name,
        fields,
        code_address: entry.code_address,
        switch_offset: entry.switch_offset,
    })
}

/// One field, or none at the end of all.
fn described_field(
    rest: &mut &[u8],
    enumerations: &Enumerations,
) -> Result<Option<FieldDescription>, &'static str> {
    let (mut hidden, mut big_endian, mut sequence) = (false, false, false);
    let (mut count, mut labels) = (None, None);
    let code = loop {
        let (code, behind) = rest.split_first().ok_or("no end of the fields")?;
        *rest = behind;
        match *code {
            rings::FIELD_HIDDEN => hidden = true,
            rings::FIELD_BIG_ENDIAN => big_endian = true,
            rings::FIELD_SEQUENCE => sequence = true,
            rings::FIELD_ARRAY => {
                let (number, behind) =
                    rest.split_first_chunk().ok_or("an array without a count")?;
                *rest = behind;
                count = Some(u32::from_le_bytes(*number));
            }
            rings::FIELD_ENUMERATION => {
                let name = identifier(rest)?;
                // Without its labels it is still a number.
                labels = enumerations
                    .get(&name)
                    .cloned()
                    .or_else(|| Some(Arc::new([])));
            }
            other => break other,
        }
    };
    if code == rings::FIELD_END {
        return Ok(None);
    }
    if count.is_some_and(|count| count > rings::PAYLOAD_BYTES_MAX as u32) {
        return Err("an array that fits no payload");
    }
    let number = Number::from_code(code, big_endian);
    let kind = match (code, number, count) {
        (rings::FIELD_TEXT, None, None) => FieldKind::Text,
        (rings::FIELD_TEXT, None, Some(count)) => FieldKind::Characters(count),
        (rings::FIELD_BYTES, None, None) => {
            let byte = Number::from_code(rings::FIELD_X8, false);
            FieldKind::Sequence(byte.ok_or("no bytes")?)
        }
        (_, Some(number), Some(count)) => FieldKind::Array(number, count),
        (_, Some(number), None) if sequence => FieldKind::Sequence(number),
        (_, Some(number), None) => match labels {
            Some(labels) if number.is_integer() => FieldKind::Enumeration(number, labels),
            _ => FieldKind::Number(number),
        },
        _ => return Err("a field of unknown type"),
    };
    let name = identifier(rest)?;
    Ok(Some(FieldDescription { name, kind, hidden }))
}

/// The bytes up to the next zero.
fn zero_ended<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    let end = rest.iter().position(|byte| *byte == 0);
    let (text, behind) = rest.split_at(end.ok_or("a name without an end")?);
    *rest = &behind[1..];
    Ok(text)
}

/// A name up to its zero: letters, digits and underscores, as C and trace formats want them.
fn identifier(rest: &mut &[u8]) -> Result<String, &'static str> {
    let name = zero_ended(rest)?;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_empty() && name.iter().all(plain) => Ok(text.to_owned()),
        _ => Err("a name that is no identifier"),
    }
}
