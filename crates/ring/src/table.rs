//! The table of events: what each record of an id means.

use std::ops::Range;

use abi::rings::{self, Entry, Plain};

/// No event has more fields; the macro that makes descriptions allows fewer.
const FIELDS_MAX: usize = 64;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// An integer of this many bytes.
    Integer {
        /// 1, 2, 4 or 8.
        size_bytes: u8,
        /// Whether it is signed.
        signed: bool,
        /// Whether it is printed in hexadecimal.
        hexadecimal: bool,
    },
    /// A floating point number of 4 or 8 bytes.
    Float {
        /// 4 or 8.
        size_bytes: u8,
    },
    /// A text behind its length.
    Text,
    /// Bytes behind their number.
    Bytes,
}

impl FieldKind {
    fn from_code(code: u8) -> Option<FieldKind> {
        let integer = |first: u8, signed, hexadecimal| FieldKind::Integer {
            size_bytes: 1 << (code - first),
            signed,
            hexadecimal,
        };
        match code {
            rings::FIELD_U8..rings::FIELD_I8 => Some(integer(rings::FIELD_U8, false, false)),
            rings::FIELD_I8..rings::FIELD_X8 => Some(integer(rings::FIELD_I8, true, false)),
            rings::FIELD_X8..rings::FIELD_F32 => Some(integer(rings::FIELD_X8, false, true)),
            rings::FIELD_F32 => Some(FieldKind::Float { size_bytes: 4 }),
            rings::FIELD_F64 => Some(FieldKind::Float { size_bytes: 8 }),
            rings::FIELD_TEXT => Some(FieldKind::Text),
            rings::FIELD_BYTES => Some(FieldKind::Bytes),
            _ => None,
        }
    }

    /// Its bytes; nothing where they vary.
    pub fn size_bytes(self) -> Option<usize> {
        match self {
            FieldKind::Integer { size_bytes, .. } | FieldKind::Float { size_bytes } => {
                Some(usize::from(size_bytes))
            }
            FieldKind::Text | FieldKind::Bytes => None,
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
    /// Its fields, in the order of the payload.
    pub fields: Vec<FieldDescription>,
    /// Where its switch is.
    pub(crate) switch_offset: u64,
}

impl EventDescription {
    /// `provider:name`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.provider, self.name)
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
        for field in &self.fields {
            let size = match field.kind.size_bytes() {
                Some(size) => size,
                None => match rest.split_first_chunk::<2>() {
                    Some((length, behind)) => {
                        rest = behind;
                        usize::from(u16::from_le_bytes(*length))
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

/// All events that a process has described so far.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// In the order of their appearance.
    pub events: Vec<EventDescription>,
    /// What was left out.
    pub problems: Vec<TableProblem>,
    /// Bytes that were read.
    pub read_bytes: usize,
}

impl Table {
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
            match described(&entry, &body[header..header + text]) {
                Ok(event) if self.events.iter().any(|known| known.id == event.id) => {
                    self.problem(at, "an id for the second time");
                }
                Ok(event) => self.events.push(event),
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

fn described(entry: &Entry, text: &[u8]) -> Result<EventDescription, &'static str> {
    let id = u16::try_from(entry.id).map_err(|_| "an id that is too large")?;
    if id == rings::ID_PADDING {
        return Err("the id of padding");
    }
    let (level, mut rest) = text.split_first().ok_or("no level")?;
    let provider = identifier(&mut rest)?;
    let name = identifier(&mut rest)?;
    let mut fields: Vec<FieldDescription> = Vec::new();
    loop {
        let (code, behind) = rest.split_first().ok_or("no end of the fields")?;
        rest = behind;
        if *code == rings::FIELD_END {
            break;
        }
        let kind = FieldKind::from_code(*code).ok_or("a field of unknown type")?;
        let name = identifier(&mut rest)?;
        if fields.len() == FIELDS_MAX {
            return Err("too many fields");
        }
        if fields.iter().any(|field| field.name == name) {
            return Err("two fields of one name");
        }
        fields.push(FieldDescription { name, kind });
    }
    Ok(EventDescription {
        id,
        level: *level,
        provider,
        name,
        fields,
        switch_offset: entry.switch_offset,
    })
}

/// A name up to its zero: letters, digits and underscores, as C and trace formats want them.
fn identifier(rest: &mut &[u8]) -> Result<String, &'static str> {
    let end = rest
        .iter()
        .position(|byte| *byte == 0)
        .ok_or("a name without an end")?;
    let (name, behind) = rest.split_at(end);
    *rest = &behind[1..];
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_empty() && name.iter().all(plain) => Ok(text.to_owned()),
        _ => Err("a name that is no identifier"),
    }
}
