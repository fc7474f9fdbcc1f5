//! The types of fields as they are spelt in every language: `u32`, `x64`, `string`, `i16[]`, …

use std::sync::Arc;

use event::{Error, ErrorKind, FieldType, Integer, IntegerMapping, Result};

/// Said by every refusal.
const SPELLINGS: &str = "spell it u8 to u64, i8 to i64, x8 to x64 (hexadecimal), f32, f64, string, \
     any number with [] behind it (as many as there are), or u8{LOW=0..9,HIGH=10}";

/// Reads the spelling of a type. A sequence has an empty name of its length: who declares the
/// field knows it.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] says how types are spelt.
pub(super) fn read(text: &str) -> Result<FieldType> {
    let refuse = || {
        Error::new(ErrorKind::InvalidInput, "not a type of a field")
            .found(format!("'{text}'"))
            .fix(SPELLINGS)
    };
    if let Some(element) = text.strip_suffix("[]") {
        return Ok(FieldType::Sequence {
            element: Arc::new(number(element).ok_or_else(refuse)?),
            length: String::new(),
        });
    }
    if let Some((base, labels)) = text.strip_suffix('}').and_then(|t| t.split_once('{')) {
        let Some(FieldType::Integer(integer)) = number(base.trim()) else {
            return Err(refuse());
        };
        let labels: Option<Vec<_>> = labels.split(',').map(mapping).collect();
        return Ok(FieldType::Enum(integer, labels.ok_or_else(refuse)?.into()));
    }
    match text {
        "string" => Ok(FieldType::String),
        text => number(text).ok_or_else(refuse),
    }
}

fn number(text: &str) -> Option<FieldType> {
    let (letter, bits) = text.split_at_checked(1)?;
    let size_bits: u8 = match bits {
        "8" => 8,
        "16" => 16,
        "32" => 32,
        "64" => 64,
        _ => return None,
    };
    match letter {
        "u" => Some(FieldType::Integer(Integer::le(size_bits, false))),
        "i" => Some(FieldType::Integer(Integer::le(size_bits, true))),
        "x" => Some(FieldType::Integer(Integer::hex(size_bits))),
        "f" if size_bits >= 32 => Some(FieldType::Float {
            size_bits,
            align_bits: 8,
            big_endian: false,
        }),
        _ => None,
    }
}

/// `LOW=0..9` or `HIGH=10`.
fn mapping(text: &str) -> Option<IntegerMapping> {
    let (label, range) = text.split_once('=')?;
    let (first, last) = range.split_once("..").unwrap_or((range, range));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let label = label.trim().to_owned();
    (!label.is_empty() && first <= last).then_some(IntegerMapping { label, first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_as_it_is_spelt_and_never_guessed() {
        let check = |text: &str, expect: Option<FieldType>| {
            assert_eq!(read(text).ok(), expect, "{text}");
        };
        let integer = |bits, signed| FieldType::Integer(Integer::le(bits, signed));
        check("u32", Some(integer(32, false)));
        check("i8", Some(integer(8, true)));
        check("x64", Some(FieldType::Integer(Integer::hex(64))));
        check("string", Some(FieldType::String));
        let sequence = FieldType::Sequence {
            element: Arc::new(integer(16, true)),
            length: String::new(),
        };
        check("i16[]", Some(sequence));
        let label = |label: &str, first, last| IntegerMapping {
            label: label.to_owned(),
            first,
            last,
        };
        let labels = [label("LOW", 0, 9), label("HIGH", 10, 10)];
        let level = FieldType::Enum(Integer::le(8, false), labels.into());
        check("u8 {LOW=0..9, HIGH=10}", Some(level));
        for text in [
            "",
            "u",
            "u7",
            "u128",
            "f16",
            "é",
            "int",
            "string[]",
            "u8[",
            "u8{}",
            "u8{A=2..1}",
        ] {
            check(text, None);
        }
    }
}
