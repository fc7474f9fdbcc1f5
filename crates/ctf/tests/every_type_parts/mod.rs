//! Random types and values of them.

use std::sync::Arc;

use event::{
    Base, EventClass, Field, FieldType, Integer, IntegerMapping, Length, Scope, Value, WideEncoding,
};

/// Decisions taken from random bytes; zero when they run out, so that shrinking means less.
pub struct Entropy<'a>(pub std::slice::Iter<'a, u8>);

/// How deep types nest.
const DEPTH_MAX: u8 = 3;

impl Entropy<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    pub fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    fn text(&mut self) -> String {
        let letters = ['a', 'é', '"', '\\', '字', '🦀', ' ', 'z'];
        (0..self.below(6))
            .map(|_| letters[usize::from(self.below(8))])
            .collect()
    }

    fn integer(&mut self) -> Integer {
        let bases = [Base::Decimal, Base::Hexadecimal, Base::Octal, Base::Binary];
        Integer {
            size_bits: 1 + self.below(64),
            align_bits: 1 << self.below(7),
            signed: self.below(2) == 1,
            big_endian: self.below(2) == 1,
            base: bases[usize::from(self.below(4))],
            text: false,
        }
    }

    /// One that lengths and selectors of ours fit into.
    fn small_unsigned(&mut self) -> Integer {
        Integer {
            size_bits: 8 + self.below(57),
            signed: false,
            ..self.integer()
        }
    }

    fn labels(&mut self) -> Arc<[IntegerMapping]> {
        let first = i64::from(self.below(60));
        let ranges = [
            ("low", first, first),
            ("some \"x\"", first + 1, first + 20),
            ("all", 0, 126),
        ];
        ranges
            .map(|(label, first, last)| mapping(label, first, last))
            .into()
    }

    fn length(&mut self, fields: &mut Vec<Field>, scope: Scope, name: &str) -> String {
        let length = format!("{name}_length");
        let integer = self.small_unsigned();
        fields.push(field(&length, scope, FieldType::Integer(integer)));
        length
    }

    fn wide(&mut self) -> WideEncoding {
        WideEncoding {
            unit_bytes: 2 << self.below(2),
            big_endian: self.below(2) == 1,
        }
    }

    fn leaf(&mut self) -> FieldType {
        match self.below(8) {
            0 => FieldType::Enum(self.small_unsigned(), self.labels()),
            1 => FieldType::Bool(self.integer()),
            2 => FieldType::Flags(self.small_unsigned(), [mapping("r", 0, 0)].into()),
            3 => FieldType::Float {
                size_bits: 32 << self.below(2),
                align_bits: 8 << self.below(3),
                big_endian: self.below(2) == 1,
            },
            4 => FieldType::String,
            5 => FieldType::WideText {
                encoding: self.wide(),
                length: Length::Terminated,
            },
            6 => FieldType::Blob {
                length: Length::Bytes(self.below(5).into()),
                media_type: "text/plain".to_owned(),
            },
            _ => FieldType::Integer(self.integer()),
        }
    }

    fn element(&mut self, depth: u8) -> Arc<FieldType> {
        let nested = depth < DEPTH_MAX && self.below(2) == 1;
        Arc::new(match (nested, self.below(2)) {
            (false, _) => self.leaf(),
            (true, 0) => FieldType::Array {
                element: self.element(depth + 1),
                count: self.below(3).into(),
            },
            (true, _) => FieldType::Struct(self.nested(depth + 1).into()),
        })
    }

    fn nested(&mut self, depth: u8) -> Vec<Field> {
        let mut fields = Vec::new();
        for place in 0..1 + self.below(2) {
            self.add_field(&mut fields, Scope::Payload, &format!("m{place}"), depth);
        }
        fields
    }

    /// Adds a field; what needs a length or a selector brings it along.
    fn add_field(&mut self, fields: &mut Vec<Field>, scope: Scope, name: &str, depth: u8) {
        let ty = match self.below(10) {
            0 => FieldType::Text {
                size_bytes: 1 + u32::from(self.below(20)),
            },
            1 => FieldType::Array {
                element: self.element(depth),
                count: self.below(4).into(),
            },
            2 => {
                let length = self.length(fields, scope, name);
                let element = self.element(depth);
                FieldType::Sequence { element, length }
            }
            3 => {
                let length = Length::Field(self.length(fields, scope, name));
                let media_type = "application/octet-stream".to_owned();
                FieldType::Blob { length, media_type }
            }
            4 => self.variant(fields, scope, name, depth),
            5 => self.optional(fields, scope, name, depth),
            6 if depth < DEPTH_MAX => FieldType::Struct(self.nested(depth + 1).into()),
            _ => self.leaf(),
        };
        fields.push(field(name, scope, ty));
    }

    fn variant(
        &mut self,
        fields: &mut Vec<Field>,
        scope: Scope,
        name: &str,
        depth: u8,
    ) -> FieldType {
        let selector = format!("{name}_selector");
        let ranges = [
            mapping("one", 0, 0),
            mapping("int", 1, 3),
            mapping("_three", 4, 4),
        ];
        let integer = self.small_unsigned();
        // By the selector's own labels, or by ranges of the variant's.
        let (ty, ranges) = match self.below(2) {
            0 => (FieldType::Enum(integer, ranges.into()), None),
            _ => (FieldType::Integer(integer), Some(Arc::from(ranges))),
        };
        fields.push(field(&selector, scope, ty));
        let choices = ["one", "int", "_three"];
        FieldType::Variant {
            selector,
            choices: choices
                .map(|c| field(c, Scope::Payload, (*self.element(depth)).clone()))
                .into(),
            ranges,
        }
    }

    fn optional(
        &mut self,
        fields: &mut Vec<Field>,
        scope: Scope,
        name: &str,
        depth: u8,
    ) -> FieldType {
        let selector = format!("{name}_selector");
        let (ty, ranges) = match self.below(2) {
            0 => (FieldType::Bool(self.small_unsigned()), None),
            _ => {
                let there = Arc::from([(1, 2), (4, 4)]);
                (FieldType::Integer(self.small_unsigned()), Some(there))
            }
        };
        fields.push(field(&selector, scope, ty));
        FieldType::Optional {
            selector,
            content: self.element(depth),
            ranges,
        }
    }

    pub fn fields(&mut self, scope: Scope, prefix: &str, limit: u8) -> Vec<Field> {
        let mut fields = Vec::new();
        for place in 0..self.below(limit) {
            self.add_field(&mut fields, scope, &format!("{prefix}{place}"), 0);
        }
        fields
    }

    /// Values of all fields of a class, scope by scope.
    pub fn class_values(&mut self, class: &EventClass) -> Vec<Value<'static>> {
        self.values(&class.fields)
    }

    /// Values of fields that follow each other: a length or selector is told to what follows it.
    pub fn values(&mut self, fields: &[Field]) -> Vec<Value<'static>> {
        let mut values = Vec::new();
        let mut told = 0;
        for field in fields {
            let is_told = field.name.ends_with("_length") || field.name.ends_with("_selector");
            if is_told {
                told = u64::from(self.below(5));
            }
            values.push(match &field.ty {
                FieldType::Bool(_) if is_told => Value::Bool(told != 0),
                FieldType::Enum(_, labels) if is_told => enumeration(told as i64, labels),
                _ if is_told => Value::Unsigned(told),
                ty => self.value(ty, told),
            });
        }
        values
    }

    fn number(&mut self, integer: &Integer) -> Value<'static> {
        let (raw, unused) = (self.u64(), 64 - u32::from(integer.size_bits));
        match integer.signed {
            true => Value::Signed((raw << unused) as i64 >> unused),
            false => Value::Unsigned(raw << unused >> unused),
        }
    }

    fn value(&mut self, ty: &FieldType, told: u64) -> Value<'static> {
        match ty {
            FieldType::Integer(integer) => self.number(integer),
            FieldType::Enum(_, labels) => enumeration(self.below(127).into(), labels),
            FieldType::Bool(integer) if integer.size_bits == 1 && integer.signed => {
                Value::Bool(false)
            }
            FieldType::Bool(_) => Value::Bool(self.below(2) == 1),
            FieldType::Flags(..) => {
                let bits = u64::from(self.below(2));
                let labels = if bits == 1 { vec!["r"] } else { Vec::new() };
                Value::Flags { bits, labels }
            }
            FieldType::Float { size_bits: 32, .. } => {
                Value::Float(f64::from(f32::from(self.byte()) / 8.0))
            }
            FieldType::Float { .. } => Value::Float(self.u64() as i64 as f64),
            FieldType::String | FieldType::WideText { .. } => Value::Text(self.text().into()),
            FieldType::Text { size_bytes } => {
                let mut text = self.text();
                while text.len() > *size_bytes as usize {
                    text.pop();
                }
                Value::Text(text.into())
            }
            FieldType::Blob { length, .. } => {
                let size = match length {
                    Length::Bytes(size) => u64::from(*size),
                    _ => told,
                };
                let bytes: Vec<u8> = (0..size).map(|_| self.byte()).collect();
                // It lives as long as the process, as the expected values do.
                Value::Blob(Box::leak(bytes.into_boxed_slice()))
            }
            FieldType::Array { element, count } => {
                Value::Array((0..*count).map(|_| self.value(element, 0)).collect())
            }
            FieldType::Sequence { element, .. } => {
                Value::Array((0..told).map(|_| self.value(element, 0)).collect())
            }
            FieldType::Struct(fields) => {
                let values = self.values(fields);
                Value::Struct(
                    fields
                        .iter()
                        .map(|field| leaked(&field.name))
                        .zip(values)
                        .collect(),
                )
            }
            FieldType::Variant { choices, .. } => {
                let choice = &choices[[0, 1, 1, 1, 2][told as usize]];
                Value::Struct(vec![(leaked(&choice.name), self.value(&choice.ty, 0))])
            }
            FieldType::Optional {
                content, ranges, ..
            } => {
                let there = match ranges {
                    None => told != 0,
                    Some(_) => matches!(told, 1 | 2 | 4),
                };
                if there {
                    self.value(content, 0)
                } else {
                    Value::Absent
                }
            }
        }
    }
}

fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn mapping(label: &str, first: i64, last: i64) -> IntegerMapping {
    IntegerMapping {
        label: label.to_owned(),
        first,
        last,
    }
}

fn field(name: &str, scope: Scope, ty: FieldType) -> Field {
    Field {
        name: name.into(),
        scope,
        ty,
    }
}

fn enumeration(value: i64, labels: &[IntegerMapping]) -> Value<'static> {
    let label = labels.iter().find(|m| (m.first..=m.last).contains(&value));
    let label = label.map(|m| leaked(&m.label));
    Value::Enum { value, label }
}

/// A value as CTF 1.8 keeps it: numbers without labels, bytes of a blob, an optional field's
/// content.
pub fn plain(value: &Value<'_>) -> String {
    let all = |values: &[Value<'_>]| values.iter().map(plain).collect::<Vec<_>>().join(",");
    match value {
        Value::Bool(_) | Value::Flags { .. } | Value::Enum { .. } => {
            format!("{}", value.as_i64().unwrap_or(0))
        }
        Value::Unsigned(number) => format!("{}", *number as i64),
        Value::Signed(number) => format!("{number}"),
        Value::Blob(bytes) => {
            let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
            format!("[{}]", numbers.join(","))
        }
        Value::Array(elements) => format!("[{}]", all(elements)),
        Value::Struct(members) => match &members[..] {
            [("none", _)] => "absent".to_owned(),
            [("some", content)] => plain(content),
            members => {
                let member = |(name, v): &(&str, Value<'_>)| format!("{name}={}", plain(v));
                format!(
                    "{{{}}}",
                    members.iter().map(member).collect::<Vec<_>>().join(",")
                )
            }
        },
        Value::Absent => "absent".to_owned(),
        Value::Float(number) => format!("{number:?}"),
        Value::Text(text) => format!("{text:?}"),
    }
}
