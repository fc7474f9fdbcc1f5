//! What a process says of its events, as event classes; its payloads, as those of a trace.

use std::sync::Arc;

use ctf::writer::PayloadWriter;
use event::{ClassId, EventClass, Field, FieldType, Integer};
use ring::{EventDescription, FieldKind};

/// The class of an event, at `place` in its stream.
pub(super) fn class(event: &EventDescription, place: usize) -> EventClass {
    let mut fields = Vec::new();
    for field in event.fields.iter().filter(|field| !field.hidden) {
        let ty = match &field.kind {
            FieldKind::Number(number) => number.field_type(),
            FieldKind::Enumeration(number, labels) => match number.integer() {
                Some(integer) => FieldType::Enum(integer, Arc::clone(labels)),
                None => number.field_type(),
            },
            FieldKind::Text => FieldType::String,
            FieldKind::Characters(count) => FieldType::Text { size_bytes: *count },
            FieldKind::Array(number, count) => FieldType::Array {
                element: Arc::new(number.field_type()),
                count: *count,
            },
            FieldKind::Sequence(number) => {
                // As LTTng names the length of its sequences.
                let length = format!("_{}_length", field.name);
                let count = FieldType::Integer(Integer::le(16, false));
                fields.push(Field::payload(&length, count));
                FieldType::Sequence {
                    element: Arc::new(number.field_type()),
                    length,
                }
            }
        };
        fields.push(Field::payload(&field.name, ty));
    }
    EventClass {
        id: ClassId(place as u32),
        name: event.full_name(),
        stream: 0,
        fields: fields.into(),
    }
}

/// Puts a record's fields behind what `payload` holds. False when the record is not what its
/// description says.
pub(super) fn encode(event: &EventDescription, bytes: &[u8], payload: &mut PayloadWriter) -> bool {
    event.split(bytes, |field, value| {
        match field.kind {
            FieldKind::Text => payload.string_bytes(value),
            FieldKind::Sequence(number) => payload
                .u16((value.len() / usize::from(number.size_bytes)) as u16)
                .raw(value),
            _ => payload.raw(value),
        };
    })
}
