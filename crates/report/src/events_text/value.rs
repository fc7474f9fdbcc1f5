//! A value as text, by its type: what a line shows of compound fields.

use std::io::Write;

use event::{Base, FieldType, Integer, IntegerMapping, Value};

use super::options::Codes;

/// How values of one group look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// With the names of members and the places of elements.
    pub names: bool,
    pub codes: Codes,
}

/// Writing into memory cannot fail.
fn push(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

impl Style {
    pub fn value(&self, ty: &FieldType, value: &Value<'_>, out: &mut Vec<u8>) {
        match (ty, value) {
            (FieldType::Integer(integer), value) => {
                self.bold(out, |out| {
                    write_integer(integer, value.as_u64().unwrap_or(0), out);
                });
            }
            (FieldType::Enum(integer, mappings), value) => {
                self.enumeration(integer, mappings, value.as_i64().unwrap_or(0), out);
            }
            (_, Value::Bool(truth)) => self.bold(out, |out| push(out, format_args!("{truth}"))),
            (FieldType::Flags(integer, _), Value::Flags { bits, labels }) => {
                self.flags(integer, *bits, labels, out);
            }
            (_, Value::Blob(bytes)) => self.bold(out, |out| write_blob(bytes, out)),
            (_, Value::Absent) => out.extend_from_slice(b"<none>"),
            (FieldType::Optional { content, .. }, value) => self.value(content, value, out),
            (_, Value::Float(float)) => self.bold(out, |out| write_float(*float, out)),
            (_, Value::Text(text)) => self.bold(out, |out| write_text(text.as_bytes(), out)),
            (FieldType::Struct(fields), Value::Struct(members)) => {
                let members = fields.iter().zip(members);
                let parts = members.map(|(field, (name, value))| (*name, &field.ty, value));
                self.members(parts, out);
            }
            (FieldType::Variant { choices, .. }, Value::Struct(chosen)) => {
                for (name, value) in chosen {
                    let choice = choices.iter().find(|choice| choice.name == *name);
                    out.extend_from_slice(b"{ ");
                    if let Some(choice) = choice {
                        self.value(&choice.ty, value, out);
                    }
                    out.extend_from_slice(b" }");
                }
            }
            (
                FieldType::Array { element, .. } | FieldType::Sequence { element, .. },
                Value::Array(elements),
            ) => self.elements(element, elements, out),
            _ => {}
        }
    }

    fn bold(&self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        out.extend_from_slice(self.codes.bold.as_bytes());
        write(out);
        out.extend_from_slice(self.codes.reset.as_bytes());
    }

    /// `name = `, when names are shown.
    pub fn name(&self, name: &str, out: &mut Vec<u8>) {
        if self.names {
            let Codes {
                field_name, reset, ..
            } = self.codes;
            push(out, format_args!("{field_name}{name}{reset} = "));
        }
    }

    fn members<'m>(
        &self,
        members: impl Iterator<Item = (&'m str, &'m FieldType, &'m Value<'m>)>,
        out: &mut Vec<u8>,
    ) {
        out.push(b'{');
        let mut between = " ";
        for (name, ty, value) in members {
            out.extend_from_slice(between.as_bytes());
            self.name(name, out);
            self.value(ty, value, out);
            between = ", ";
        }
        out.extend_from_slice(b" }");
    }

    fn elements(&self, element: &FieldType, elements: &[Value<'_>], out: &mut Vec<u8>) {
        out.extend_from_slice(b"[ ");
        for (place, value) in elements.iter().enumerate() {
            out.extend_from_slice(if place > 0 { b", " } else { b"" });
            if self.names {
                push(out, format_args!("[{place}] = "));
            }
            self.value(element, value, out);
        }
        out.extend_from_slice(if elements.is_empty() { b"]" } else { b" ]" });
    }

    /// The labels of an enumeration's value and the value.
    pub fn enumeration(
        &self,
        integer: &Integer,
        mappings: &[IntegerMapping],
        value: i64,
        out: &mut Vec<u8>,
    ) {
        let matches = |mapping: &&IntegerMapping| match integer.signed {
            true => (mapping.first..=mapping.last).contains(&value),
            false => (mapping.first as u64..=mapping.last as u64).contains(&(value as u64)),
        };
        let labels = mappings.iter().filter(matches);
        let labels = labels.map(|mapping| mapping.label.as_str());
        self.labels(&labels.collect::<Vec<_>>(), out);
        self.bold(out, |out| write_integer(integer, value as u64, out));
        out.extend_from_slice(b" )");
    }

    /// The labels of set bits, then all bits, as an enumeration shows its label and its integer.
    fn flags(&self, integer: &Integer, bits: u64, labels: &[&str], out: &mut Vec<u8>) {
        out.extend_from_slice(b"( ");
        for (place, label) in labels.iter().enumerate() {
            out.extend_from_slice(if place > 0 { b" | " } else { b"" });
            self.bold(out, |out| write_text(label.as_bytes(), out));
        }
        out.extend_from_slice(if labels.is_empty() { b": " } else { b" : " });
        self.bold(out, |out| write_integer(integer, bits, out));
        out.extend_from_slice(b" )");
    }

    fn labels(&self, labels: &[&str], out: &mut Vec<u8>) {
        let label = |label: &str, out: &mut Vec<u8>| {
            self.bold(out, |out| write_text(label.as_bytes(), out));
        };
        out.extend_from_slice(b"( ");
        match labels {
            [] => {
                let Codes { unknown, reset, .. } = self.codes;
                push(out, format_args!("{unknown}<unknown>{reset}"));
            }
            [only] => label(only, out),
            _ => {
                out.extend_from_slice(b"{ ");
                for (place, text) in labels.iter().enumerate() {
                    out.extend_from_slice(if place > 0 { b", " } else { b"" });
                    label(text, out);
                }
                out.extend_from_slice(b" }");
            }
        }
        out.extend_from_slice(b" : container = ");
    }
}

pub(super) fn write_integer(integer: &Integer, raw: u64, out: &mut Vec<u8>) {
    let bits = raw & (u64::MAX >> (64 - u32::from(integer.size_bits.clamp(1, 64))));
    match integer.base {
        Base::Decimal if integer.signed => push(out, format_args!("{}", raw as i64)),
        Base::Decimal => push(out, format_args!("{raw}")),
        Base::Hexadecimal => push(out, format_args!("0x{bits:X}")),
        Base::Octal => push(out, format_args!("0{bits:o}")),
        Base::Binary => {
            push(
                out,
                format_args!("0b{bits:0width$b}", width = usize::from(integer.size_bits)),
            );
        }
    }
}

/// Bytes in hexadecimal, in braces.
fn write_blob(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'{');
    bytes
        .iter()
        .for_each(|byte| push(out, format_args!(" {byte:02x}")));
    out.extend_from_slice(b" }");
}

/// In quotes, with C's escapes.
pub(super) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        let escaped = match byte {
            b'\\' | b'\'' | b'"' | b'?' => *byte,
            0x07 => b'a',
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x0b => b'v',
            0x00..=0x1f | 0x7f => {
                push(out, format_args!("\\x{byte:02x}"));
                continue;
            }
            _ => {
                out.push(*byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', escaped]);
    }
    out.push(b'"');
}

/// As C's `%g`: six significant digits, no trailing zeros.
pub(super) fn write_float(float: f64, out: &mut Vec<u8>) {
    if !float.is_finite() {
        let sign = if float.is_sign_negative() { "-" } else { "" };
        let name = if float.is_nan() { "nan" } else { "inf" };
        return push(out, format_args!("{sign}{name}"));
    }
    let scientific = format!("{float:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |digits: &str| match digits.contains('.') {
        true => digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
        false => digits.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let fixed = format!("{float:.*}", (5 - exponent) as usize);
        return push(out, format_args!("{}", trimmed(&fixed)));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    push(
        out,
        format_args!("{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_float_prints_as_c_prints_it() {
        let check = |float: f64, expect: &str| {
            assert_eq!(text(|out| write_float(float, out)), expect);
        };
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.5, "1.5");
        check(100_000.0, "100000");
        check(999_999.5, "1e+06");
        check(1_000_000.0, "1e+06");
        check(0.0001, "0.0001");
        check(0.00001, "1e-05");
        check(3.141_562_653, "3.14156");
        check(-2.5e-300, "-2.5e-300");
        check(f64::INFINITY, "inf");
        check(f64::NEG_INFINITY, "-inf");
    }

    #[test]
    fn a_text_is_escaped_as_in_c() {
        let check = |bytes: &[u8], expect: &str| {
            assert_eq!(text(|out| write_text(bytes, out)), expect);
        };
        check(b"swapper/0", r#""swapper/0""#);
        check(b"a\"b\\c\n\x01?", r#""a\"b\\c\n\x01\?""#);
    }

    #[test]
    fn an_integer_prints_in_its_base() {
        let check = |size_bits, signed, base, raw: i64, expect: &str| {
            let integer = Integer {
                base,
                ..Integer::le(size_bits, signed)
            };
            assert_eq!(text(|out| write_integer(&integer, raw as u64, out)), expect);
        };
        check(32, true, Base::Decimal, -61, "-61");
        check(64, false, Base::Decimal, -1, "18446744073709551615");
        check(64, false, Base::Hexadecimal, -1, "0xFFFFFFFFFFFFFFFF");
        check(8, true, Base::Hexadecimal, -1, "0xFF");
        check(16, false, Base::Octal, 8, "010");
        check(8, false, Base::Binary, 5, "0b00000101");
    }
}
