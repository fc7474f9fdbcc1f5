//! A record as the recorder's own filters see it: its fields out of the bytes of a trace's event.

use event::{ClassId, Cpu, EventClass, FieldId, FieldType, Instant, Integer, Record, Value};

/// Where each field of an event begins and ends in its bytes.
pub(super) struct Written<'b> {
    class: &'b EventClass,
    bytes: &'b [u8],
    places: &'b [(usize, usize)],
    cpu: Cpu,
}

/// Finds the fields of `class` in `bytes`; `places` has one entry for each. False when the bytes
/// end before the fields do.
pub(super) fn find(class: &EventClass, bytes: &[u8], places: &mut Vec<(usize, usize)>) -> bool {
    places.clear();
    let mut at = 0;
    for (place, field) in class.fields.iter().enumerate() {
        let count = match &field.ty {
            FieldType::Sequence { .. } => place
                .checked_sub(1)
                .and_then(|length| places.get(length))
                .and_then(|(begin, end)| bytes.get(*begin..*end))
                .and_then(|length| length.first_chunk())
                .map_or(0, |length| usize::from(u16::from_le_bytes(*length))),
            _ => 1,
        };
        let Some(size) = size(&field.ty, count, bytes.get(at..).unwrap_or_default()) else {
            return false;
        };
        let end = at + size;
        if end > bytes.len() {
            return false;
        }
        places.push((at, end));
        at = end;
    }
    true
}

/// The bytes of a field; `count` is the length of a sequence.
fn size(ty: &FieldType, count: usize, rest: &[u8]) -> Option<usize> {
    Some(match ty {
        FieldType::Integer(integer) | FieldType::Enum(integer, _) => {
            usize::from(integer.size_bits / 8)
        }
        FieldType::Float { size_bits, .. } => usize::from(*size_bits / 8),
        FieldType::String => rest.iter().position(|byte| *byte == 0)? + 1,
        FieldType::Text { size_bytes } => *size_bytes as usize,
        FieldType::Array { element, count } => *count as usize * size(element, 1, rest)?,
        FieldType::Sequence { element, .. } => count * size(element, 1, rest)?,
        _ => return None,
    })
}

impl<'b> Written<'b> {
    /// An event whose fields were found at `places`.
    pub fn new(
        class: &'b EventClass,
        bytes: &'b [u8],
        places: &'b [(usize, usize)],
        cpu: Cpu,
    ) -> Written<'b> {
        Written {
            class,
            bytes,
            places,
            cpu,
        }
    }

    fn field(&self, field: FieldId) -> Option<(&FieldType, &[u8])> {
        let place = usize::from(field.0);
        let (begin, end) = *self.places.get(place)?;
        Some((
            &self.class.fields.get(place)?.ty,
            self.bytes.get(begin..end)?,
        ))
    }
}

fn number(integer: &Integer, bytes: &[u8]) -> i64 {
    let mut word = [0; 8];
    for (place, byte) in bytes.iter().take(8).enumerate() {
        let place = match integer.big_endian {
            true => bytes.len().min(8) - 1 - place,
            false => place,
        };
        word[place] = *byte;
    }
    let bits = u64::from_le_bytes(word);
    let unused = 64 - u32::from(integer.size_bits.clamp(1, 64));
    match integer.signed {
        true => (bits << unused) as i64 >> unused,
        false => bits as i64,
    }
}

impl Record for Written<'_> {
    fn class(&self) -> ClassId {
        ClassId(0)
    }

    fn instant(&self) -> Option<Instant> {
        None
    }

    fn cpu(&self) -> Option<Cpu> {
        Some(self.cpu)
    }

    fn i64(&self, field: FieldId) -> i64 {
        match self.field(field) {
            Some((FieldType::Integer(integer) | FieldType::Enum(integer, _), bytes)) => {
                number(integer, bytes)
            }
            _ => 0,
        }
    }

    fn f64(&self, field: FieldId) -> f64 {
        let Some((FieldType::Float { big_endian, .. }, bytes)) = self.field(field) else {
            return 0.0;
        };
        let mut bytes = bytes.to_vec();
        if *big_endian {
            bytes.reverse();
        }
        match (bytes.first_chunk::<4>(), bytes.first_chunk::<8>()) {
            (_, Some(eight)) => f64::from_le_bytes(*eight),
            (Some(four), None) => f32::from_le_bytes(*four).into(),
            _ => 0.0,
        }
    }

    fn text(&self, field: FieldId) -> &[u8] {
        match self.field(field) {
            Some((FieldType::String | FieldType::Text { .. }, bytes)) => {
                bytes.split(|byte| *byte == 0).next().unwrap_or_default()
            }
            _ => &[],
        }
    }

    fn value(&self, field: FieldId) -> Value<'_> {
        match self.field(field) {
            Some((FieldType::Integer(integer) | FieldType::Enum(integer, _), bytes)) => {
                let number = number(integer, bytes);
                match integer.signed {
                    true => Value::Signed(number),
                    false => Value::Unsigned(number as u64),
                }
            }
            Some((FieldType::Float { .. }, _)) => Value::Float(self.f64(field)),
            Some((FieldType::String | FieldType::Text { .. }, _)) => {
                Value::Text(String::from_utf8_lossy(self.text(field)))
            }
            // Filters that ask for elements are refused before.
            _ => Value::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Field;

    fn class() -> EventClass {
        let integer = |bits, signed| FieldType::Integer(Integer::le(bits, signed));
        let network = Integer {
            big_endian: true,
            ..Integer::le(16, false)
        };
        EventClass {
            id: ClassId(0),
            name: "a:b".to_owned(),
            stream: 0,
            fields: [
                Field::payload("small", integer(8, true)),
                Field::payload("port", FieldType::Integer(network)),
                Field::payload("_two_length", integer(16, false)),
                Field::payload(
                    "two",
                    FieldType::Sequence {
                        element: integer(32, false).into(),
                        length: "_two_length".to_owned(),
                    },
                ),
                Field::payload("name", FieldType::String),
                Field::payload("comm", FieldType::Text { size_bytes: 4 }),
                Field::payload("last", integer(32, false)),
            ]
            .into(),
        }
    }

    #[test]
    fn every_field_is_found_behind_those_of_any_length() {
        let class = class();
        let mut bytes = vec![0xff, 0x1f, 0x90, 2, 0];
        bytes.extend([7; 8]);
        bytes.extend(b"xy\0ab\0\0");
        bytes.extend(9_u32.to_le_bytes());
        let mut places = Vec::new();
        assert!(find(&class, &bytes, &mut places));
        let written = Written::new(&class, &bytes, &places, Cpu(1));
        let field = |name: &str| class.field(name).expect("a field");
        assert_eq!(written.i64(field("small")), -1);
        assert_eq!(written.i64(field("port")), 8080);
        assert_eq!(written.text(field("name")), b"xy");
        assert_eq!(written.text(field("comm")), b"ab");
        assert_eq!(written.i64(field("last")), 9);
        for end in 0..bytes.len() {
            assert!(!find(&class, &bytes[..end], &mut places), "{end} bytes");
        }
    }
}
