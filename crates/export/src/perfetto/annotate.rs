//! Fields as debug annotations, which the UI shows beside a slice or a point.

use ctf::is_packet_bookkeeping;
use event::{EventClass, FieldId, Value};
use trace::EventView;

use super::proto::DebugAnnotation;

/// All fields of an event but those that describe its packet.
pub(super) fn fields(class: &EventClass, event: &EventView<'_>) -> Vec<DebugAnnotation> {
    let fields = class.fields.iter().enumerate();
    let own = fields.filter(|(_, field)| !is_packet_bookkeeping(field));
    own.map(|(place, field)| {
        let value = event.value(FieldId(place as u16));
        annotation(Some(&field.name), &value)
    })
    .collect()
}

fn annotation(name: Option<&str>, value: &Value<'_>) -> DebugAnnotation {
    let mut out = DebugAnnotation {
        name: name.map(str::to_owned),
        ..DebugAnnotation::default()
    };
    match value {
        Value::Unsigned(number) => out.uint_value = Some(*number),
        Value::Signed(number) => out.int_value = Some(*number),
        Value::Enum { value, label: None } => out.int_value = Some(*value),
        Value::Enum { label: Some(l), .. } => out.string_value = Some((*l).to_owned()),
        Value::Float(number) => out.double_value = Some(*number),
        Value::Text(text) => out.string_value = Some(text.clone().into_owned()),
        Value::Bool(truth) => out.bool_value = Some(*truth),
        Value::Absent => out.string_value = Some("none".to_owned()),
        Value::Array(elements) => {
            out.array_values = elements.iter().map(|e| annotation(None, e)).collect();
        }
        Value::Struct(members) => {
            let member = |(name, value): &(&str, Value<'_>)| annotation(Some(name), value);
            out.dict_entries = members.iter().map(member).collect();
        }
        Value::Flags { .. } | Value::Blob(_) => {
            let mut text = Vec::new();
            event::json::value(value, &mut text);
            out.string_value = Some(String::from_utf8_lossy(&text).into_owned());
        }
    }
    out
}
