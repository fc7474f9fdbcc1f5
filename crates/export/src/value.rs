//! Field values as JSON, written without a tree between.

use std::io::Write;

pub(crate) use event::json::text;
use event::json::value;
use event::{Field, FieldId, FieldType, Integer, Value};
use trace::EventView;

/// Writes one top-level field of a class.
pub(crate) struct FieldJson {
    id: FieldId,
    kind: Kind,
}

/// What is loaded without decoding a whole value.
enum Kind {
    Signed,
    Unsigned,
    Text,
    Other,
}

impl FieldJson {
    pub fn new(place: usize, field: &Field) -> Self {
        let kind = match &field.ty {
            FieldType::Integer(Integer { signed: true, .. }) => Kind::Signed,
            FieldType::Integer(_) => Kind::Unsigned,
            FieldType::String | FieldType::Text { .. } => Kind::Text,
            _ => Kind::Other,
        };
        FieldJson {
            id: FieldId(place as u16),
            kind,
        }
    }

    /// Appends the field's value.
    pub fn write(&self, event: &EventView<'_>, out: &mut Vec<u8>) {
        match self.kind {
            Kind::Signed => push(out, format_args!("{}", event.i64(self.id))),
            Kind::Unsigned => push(out, format_args!("{}", event.u64(self.id))),
            Kind::Text => text(&String::from_utf8_lossy(event.text(self.id)), out),
            Kind::Other => value(&event.value(self.id), out),
        }
    }

    /// The value as a text of its own: an integer's digits, a text's characters, else JSON.
    pub fn write_plain(&self, event: &EventView<'_>, out: &mut Vec<u8>) {
        match self.kind {
            Kind::Text => out.extend_from_slice(event.text(self.id)),
            Kind::Signed | Kind::Unsigned => self.write(event, out),
            Kind::Other => match event.value(self.id) {
                Value::Text(text) => out.extend_from_slice(text.as_bytes()),
                Value::Enum { label: Some(l), .. } => out.extend_from_slice(l.as_bytes()),
                Value::Enum { value, label: None } => push(out, format_args!("{value}")),
                Value::Absent => {}
                other => value(&other, out),
            },
        }
    }
}

/// Writing into memory cannot fail.
pub(crate) fn push(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_json_that_reads_back() {
        let check = |of: Value<'_>, expect: &str| {
            let mut out = Vec::new();
            value(&of, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expect);
            serde_json::from_slice::<serde_json::Value>(&out).expect(expect);
        };
        check(Value::Unsigned(u64::MAX), "18446744073709551615");
        check(Value::Signed(i64::MIN), "-9223372036854775808");
        check(Value::Float(0.5), "0.5");
        check(Value::Float(1e300), "1e300");
        check(Value::Float(f64::NAN), "\"NaN\"");
        check(Value::Float(f64::NEG_INFINITY), "\"-inf\"");
        check(Value::Text("a\"\n\u{1}é".into()), r#""a\"\n\u0001é""#);
        check(Value::Blob(&[0, 255]), "\"00ff\"");
        check(Value::Absent, "null");
        let label = Some("a \"b\"");
        let labelled = Value::Enum { value: -1, label };
        check(labelled, r#"{"value":-1,"label":"a \"b\""}"#);
        let flags = Value::Flags {
            bits: 5,
            labels: vec!["r", "w"],
        };
        check(flags, r#"{"bits":5,"labels":["r","w"]}"#);
        let nested = Value::Struct(vec![("a", Value::Array(vec![Value::Bool(true)]))]);
        check(nested, r#"{"a":[true]}"#);
    }
}
