//! The entries of the table of events: their texts, believed only as far as they were checked.

use std::collections::HashMap;
use std::sync::Arc;

use abi::rings::{self, Entry};
use event::IntegerMapping;

use crate::description::{EventDescription, FieldDescription, FieldKind, Note, Number};
use crate::layout::shown;

/// No event has more fields; the macro that makes descriptions allows fewer.
const FIELDS_MAX: usize = 64;
/// LTTng's least grave level.
const LEVEL_MAX: u8 = 14;
/// No name is longer.
const NAME_BYTES_MAX: usize = 1024;

/// The text of an enumeration: its name, then first, last and label, over and over.
pub(crate) fn enumeration(text: &[u8]) -> Result<(String, Arc<[IntegerMapping]>), &'static str> {
    let mut rest = text;
    let name = identifier(&mut rest)?;
    let mut labels = Vec::new();
    while let Some((first, behind)) = rest.split_first_chunk::<8>() {
        let (last, behind) = behind.split_first_chunk().ok_or("a label without an end")?;
        rest = behind;
        labels.push(IntegerMapping {
            label: shown(&String::from_utf8_lossy(zero_ended(&mut rest)?)),
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
pub(crate) fn note(text: &[u8]) -> Result<Note, &'static str> {
    let mut rest = text;
    let (provider, name) = (identifier(&mut rest)?, identifier(&mut rest)?);
    let mut sentence = || {
        // It is shown to people.
        Ok(shown(&String::from_utf8_lossy(zero_ended(&mut rest)?)))
    };
    Ok(Note {
        provider,
        name,
        what: sentence()?,
        found: sentence()?,
        fix: sentence()?,
    })
}

pub(crate) type Enumerations = HashMap<String, Arc<[IntegerMapping]>>;

/// An event, by its entry and its text.
pub(crate) fn described(
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
    if *level > LEVEL_MAX {
        return Err("a log level that is none");
    }
    let provider = identifier(&mut rest)?;
    let name = identifier(&mut rest)?;
    let mut fields: Vec<FieldDescription> = Vec::new();
    while let Some(field) = described_field(&mut rest, enumerations)? {
        if fields.len() == FIELDS_MAX {
            return Err("too many fields");
        }
        let [own, length] = written_names(&field);
        let is_taken = |name: &String| {
            fields
                .iter()
                .flat_map(written_names)
                .any(|n| n.as_ref() == Some(name))
        };
        if own.iter().chain(&length).any(is_taken) {
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
            Some(labels) if number.integer().is_some() => {
                FieldKind::Enumeration(number, fitting(number, labels))
            }
            _ => FieldKind::Number(number),
        },
        _ => return Err("a field of unknown type"),
    };
    let name = identifier(rest)?;
    Ok(Some(FieldDescription { name, kind, hidden }))
}

/// What a field is called in a trace, and the length that stands before it there.
fn written_names(field: &FieldDescription) -> [Option<String>; 2] {
    let is_sequence = matches!(field.kind, FieldKind::Sequence(_));
    let length = is_sequence.then(|| format!("_{}_length", field.name));
    [Some(field.name.clone()), length]
}

/// The labels that stand for values of such a number, each from its first to its last: readers
/// refuse a whole trace for one that does not.
fn fitting(number: Number, labels: Arc<[IntegerMapping]>) -> Arc<[IntegerMapping]> {
    let unused_bits = 64 - u32::from(number.size_bytes) * 8;
    let is_signed = number.integer().is_some_and(|integer| integer.signed);
    let fits = |label: &IntegerMapping| match is_signed {
        true => {
            let range = (i64::MIN >> unused_bits)..=(i64::MAX >> unused_bits);
            label.first <= label.last && range.contains(&label.first) && range.contains(&label.last)
        }
        false => {
            let (first, last) = (label.first as u64, label.last as u64);
            first <= last && last <= u64::MAX >> unused_bits
        }
    };
    match labels.iter().all(fits) {
        true => labels,
        false => labels.iter().filter(|label| fits(label)).cloned().collect(),
    }
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
        Ok(text) if (1..=NAME_BYTES_MAX).contains(&text.len()) && name.iter().all(plain) => {
            Ok(text.to_owned())
        }
        _ => Err("a name that is no identifier"),
    }
}
