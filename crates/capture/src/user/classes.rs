//! What a process says of its events, as event classes; its payloads, as those of a trace.

use std::sync::Arc;

use ctf::writer::PayloadWriter;
use event::{ClassId, EventClass, Field, FieldType, Integer, Scope};
use ring::{EventDescription, FieldKind};

/// The fields that every event carries: who it was.
pub(super) fn context() -> Vec<Field> {
    ["vpid", "vtid"]
        .map(|name| Field {
            name: name.to_owned(),
            scope: Scope::StreamContext,
            ty: FieldType::Integer(Integer::le(32, true)),
        })
        .into()
}

/// The class of an event, at `place` in its stream.
pub(super) fn class(event: &EventDescription, place: usize) -> EventClass {
    let mut fields = Vec::new();
    for field in &event.fields {
        let add = |fields: &mut Vec<Field>, name: &str, ty| fields.push(Field::payload(name, ty));
        let name = &field.name;
        match field.kind {
            FieldKind::Integer {
                size_bytes,
                signed,
                hexadecimal,
            } => {
                let integer = match hexadecimal {
                    true => Integer::hex(size_bytes * 8),
                    false => Integer::le(size_bytes * 8, signed),
                };
                add(&mut fields, name, FieldType::Integer(integer));
            }
            FieldKind::Float { size_bytes } => {
                let ty = FieldType::Float {
                    size_bits: size_bytes * 8,
                    align_bits: 8,
                    big_endian: false,
                };
                add(&mut fields, name, ty);
            }
            FieldKind::Text => add(&mut fields, name, FieldType::String),
            FieldKind::Bytes => {
                // As LTTng names the length of its sequences.
                let length = format!("_{name}_length");
                let integer = Integer::le(16, false);
                add(&mut fields, &length, FieldType::Integer(integer));
                let element = Arc::new(FieldType::Integer(Integer::hex(8)));
                add(&mut fields, name, FieldType::Sequence { element, length });
            }
        }
    }
    EventClass {
        id: ClassId(place as u32),
        name: event.full_name(),
        stream: 0,
        fields,
    }
}

/// Puts a record's fields behind what `payload` holds. False when the record is not what its
/// description says.
pub(super) fn encode(event: &EventDescription, bytes: &[u8], payload: &mut PayloadWriter) -> bool {
    event.split(bytes, |field, value| {
        match field.kind {
            FieldKind::Text => payload.string_bytes(value),
            FieldKind::Bytes => payload.u16(value.len() as u16).raw(value),
            FieldKind::Integer { .. } | FieldKind::Float { .. } => payload.raw(value),
        };
    })
}
