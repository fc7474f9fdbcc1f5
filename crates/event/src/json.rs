//! Values as JSON, written without a tree between: one form for every crate that shows them so.

use std::io::Write;

use crate::Value;

/// Writing into memory cannot fail.
fn push(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

/// Appends any value on one line. Integers keep all their digits; numbers that JSON has no digits
/// for (NaN, infinities) are texts; blobs are hexadecimal digits; an enumeration is its number with
/// its label.
pub fn value(of: &Value<'_>, out: &mut Vec<u8>) {
    match of {
        Value::Unsigned(number) => push(out, format_args!("{number}")),
        Value::Signed(number) => push(out, format_args!("{number}")),
        Value::Float(number) if number.is_finite() => push(out, format_args!("{number:?}")),
        Value::Float(number) => push(out, format_args!("\"{number}\"")),
        Value::Text(characters) => text(characters, out),
        Value::Bool(truth) => push(out, format_args!("{truth}")),
        Value::Absent => out.extend_from_slice(b"null"),
        Value::Enum { value, label } => {
            push(out, format_args!("{{\"value\":{value},\"label\":"));
            match label {
                Some(label) => text(label, out),
                None => out.extend_from_slice(b"null"),
            }
            out.push(b'}');
        }
        Value::Flags { bits, labels } => {
            push(out, format_args!("{{\"bits\":{bits},\"labels\":["));
            list(labels, out, |label, out| text(label, out));
            out.extend_from_slice(b"]}");
        }
        Value::Blob(bytes) => {
            out.push(b'"');
            let digits = |byte: &u8| push(out, format_args!("{byte:02x}"));
            bytes.iter().for_each(digits);
            out.push(b'"');
        }
        Value::Array(elements) => {
            out.push(b'[');
            list(elements, out, value);
            out.push(b']');
        }
        Value::Struct(members) => {
            out.push(b'{');
            list(members, out, |(name, member), out| {
                text(name, out);
                out.push(b':');
                value(member, out);
            });
            out.push(b'}');
        }
    }
}

fn list<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(item, out);
    }
}

/// Appends a text in quotes.
pub fn text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x00..0x20 => push(out, format_args!("\\u{byte:04x}")),
            byte => out.push(byte),
        }
    }
    out.push(b'"');
}
