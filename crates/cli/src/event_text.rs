//! An event as one line of text, in the layout that trace readers of this field share:
//! `[time] (+delta) host name: { cpu_id = 1 }, { context }, { payload }`.

use std::fmt::Write;

use event::{Base, EventClass, FieldId, FieldType, Integer, Scope, Value};
use trace::EventView;

/// The scopes that are shown, in their order; the packet's own bookkeeping is not.
const SHOWN: [Scope; 3] = [Scope::StreamContext, Scope::EventContext, Scope::Payload];

/// Appends the event's name and fields to `line`.
pub fn write_event(line: &mut String, class: &EventClass, event: &EventView<'_>) {
    line.push_str(&class.name);
    line.push(':');
    let mut separator = " ";
    if let Some(cpu) = event.cpu() {
        // Writing to a String cannot fail, here and below.
        let _ = write!(line, " {{ cpu_id = {} }}", cpu.0);
        separator = ", ";
    }
    for scope in SHOWN {
        let mut fields = class
            .fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.scope == scope);
        let mut next = fields.next();
        // An event without fields has empty braces; a context that is not there has none.
        if next.is_none() && scope != Scope::Payload {
            continue;
        }
        line.push_str(separator);
        line.push('{');
        separator = ", ";
        let mut opening = " ";
        while let Some((place, field)) = next {
            let _ = write!(line, "{opening}{} = ", field.name);
            write_value(line, &event.value(FieldId(place as u16)), Some(&field.ty));
            opening = ", ";
            next = fields.next();
        }
        line.push_str(" }");
    }
}

fn write_value(line: &mut String, value: &Value<'_>, ty: Option<&FieldType>) {
    match value {
        Value::Unsigned(value) => write_integer(line, i128::from(*value), ty),
        Value::Signed(value) => write_integer(line, i128::from(*value), ty),
        Value::Float(value) => {
            let _ = write!(line, "{value}");
        }
        Value::Text(text) => {
            let _ = write!(line, "\"{}\"", text.escape_debug());
        }
        Value::Enum { value, label } => {
            let _ = match label {
                Some(label) => write!(line, "( \"{label}\" : container = {value} )"),
                None => write!(line, "( <unknown> : container = {value} )"),
            };
        }
        Value::Array(elements) => write_array(line, elements, ty),
        Value::Struct(members) => write_struct(line, members, ty),
    }
}

fn write_array(line: &mut String, elements: &[Value<'_>], ty: Option<&FieldType>) {
    let element = match ty {
        Some(FieldType::Array { element, .. } | FieldType::Sequence { element, .. }) => {
            Some(&**element)
        }
        _ => None,
    };
    line.push('[');
    for (at, value) in elements.iter().enumerate() {
        let separator = if at == 0 { " " } else { ", " };
        let _ = write!(line, "{separator}[{at}] = ");
        write_value(line, value, element);
    }
    line.push_str(" ]");
}

fn write_struct(line: &mut String, members: &[(&str, Value<'_>)], ty: Option<&FieldType>) {
    let types = match ty {
        Some(FieldType::Struct(fields)) => &fields[..],
        _ => &[],
    };
    line.push('{');
    for (at, (name, value)) in members.iter().enumerate() {
        let _ = write!(line, "{}{name} = ", if at == 0 { " " } else { ", " });
        write_value(line, value, types.get(at).map(|field| &field.ty));
    }
    line.push_str(" }");
}

fn write_integer(line: &mut String, value: i128, ty: Option<&FieldType>) {
    let (base, size_bits) = match ty {
        Some(FieldType::Integer(Integer {
            base, size_bits, ..
        })) => (*base, *size_bits),
        _ => (Base::Decimal, 64),
    };
    // A negative number in another base than ten shows its bits.
    let bits = value & ((1i128 << size_bits.clamp(1, 64)) - 1);
    let _ = match base {
        Base::Decimal => write!(line, "{value}"),
        Base::Hexadecimal => write!(line, "0x{bits:X}"),
        Base::Octal => write!(line, "0{bits:o}"),
        Base::Binary => write!(line, "0b{bits:b}"),
    };
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn check(value: Value<'_>, ty: Option<FieldType>, expect: &str) {
        let mut line = String::new();
        write_value(&mut line, &value, ty.as_ref());
        assert_eq!(line, expect);
    }

    #[test]
    fn each_kind_of_value_reads_as_in_other_trace_readers() {
        check(Value::Unsigned(7), None, "7");
        check(Value::Signed(-7), None, "-7");
        check(
            Value::Unsigned(0xff),
            Some(FieldType::Integer(Integer::hex(8))),
            "0xFF",
        );
        check(
            Value::Signed(-1),
            Some(FieldType::Integer(Integer::hex(8))),
            "0xFF",
        );
        check(
            Value::Text(Cow::Borrowed("a \"b\"\n")),
            None,
            "\"a \\\"b\\\"\\n\"",
        );
        check(
            Value::Enum {
                value: 1,
                label: Some("on"),
            },
            None,
            "( \"on\" : container = 1 )",
        );
        check(
            Value::Enum {
                value: 9,
                label: None,
            },
            None,
            "( <unknown> : container = 9 )",
        );
        check(
            Value::Array(vec![Value::Signed(1), Value::Signed(2)]),
            None,
            "[ [0] = 1, [1] = 2 ]",
        );
        check(
            Value::Struct(vec![("x", Value::Signed(1))]),
            None,
            "{ x = 1 }",
        );
    }
}
