//! Values of events: read by fields that were bound once, compared, and kept.

use std::cmp::Ordering;
use std::fmt;

use event::{EventClass, FieldId, FieldType, Integer, Record, Value};
use expr::Step;
use expr::period::EventPart;

/// A value that an event had.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    /// An integer.
    Integer(i128),
    /// A floating point number.
    Float(f64),
    /// A text; its bytes need not be UTF-8.
    Text(Box<[u8]>),
}

impl Kept {
    /// How it compares with another one; a text never compares with a number.
    pub(super) fn order(&self, other: &Kept) -> Option<Ordering> {
        match (self, other) {
            (Kept::Integer(a), Kept::Integer(b)) => Some(a.cmp(b)),
            (Kept::Text(a), Kept::Text(b)) => Some(a.cmp(b)),
            (Kept::Text(_), _) | (_, Kept::Text(_)) => None,
            (a, b) => a.float().partial_cmp(&b.float()),
        }
    }

    fn float(&self) -> f64 {
        match self {
            Kept::Integer(value) => *value as f64,
            Kept::Float(value) => *value,
            Kept::Text(_) => f64::NAN,
        }
    }
}

/// As people read it.
impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Integer(value) => value.fmt(f),
            Kept::Float(value) => write!(f, "{value:?}"),
            Kept::Text(bytes) => event::plain_text(bytes).fmt(f),
        }
    }
}

/// Where a value is in events of one class.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// The same for all events of the class.
    Const(Kept),
    Integer {
        field: FieldId,
        signed: bool,
    },
    Float(FieldId),
    Text(FieldId),
    /// Further in.
    Nested {
        field: FieldId,
        steps: Vec<Step>,
    },
    /// The CPU of its stream.
    Cpu,
}

impl Place {
    /// Where `part` is in events of `class`, if they have it.
    pub fn bind(part: &EventPart, class: &EventClass) -> Option<Place> {
        let EventPart::Field { scope, name, steps } = part else {
            return Some(Place::Const(Kept::Text(class.name.as_bytes().into())));
        };
        let field = match scope {
            None => class.field(name),
            Some(scope) => {
                let scopes = scope.scopes().iter();
                scopes
                    .copied()
                    .find_map(|scope| class.field_in(scope, name))
            }
        };
        let Some(field) = field else {
            return (scope.is_none() && name == "cpu_id" && steps.is_empty()).then_some(Place::Cpu);
        };
        let ty = &class.fields.get(usize::from(field.0))?.ty;
        Some(match ty {
            _ if !steps.is_empty() => Place::Nested {
                field,
                steps: steps.clone(),
            },
            FieldType::Integer(Integer { signed, .. })
            | FieldType::Enum(Integer { signed, .. }, _) => Place::Integer {
                field,
                signed: *signed,
            },
            FieldType::Bool(_) | FieldType::Flags(..) => Place::Integer {
                field,
                signed: false,
            },
            FieldType::Float { .. } => Place::Float(field),
            FieldType::String | FieldType::Text { .. } => Place::Text(field),
            _ => Place::Nested {
                field,
                steps: Vec::new(),
            },
        })
    }

    /// The value of an event of that class.
    pub fn load(&self, record: &impl Record) -> Option<Kept> {
        match self {
            Place::Const(value) => Some(value.clone()),
            Place::Integer { field, signed } => {
                let bits = record.i64(*field);
                Some(Kept::Integer(match signed {
                    true => i128::from(bits),
                    false => i128::from(bits as u64),
                }))
            }
            Place::Float(field) => Some(Kept::Float(record.f64(*field))),
            Place::Text(field) => Some(Kept::Text(record.text(*field).into())),
            Place::Nested { field, steps } => nested(&record.value(*field), steps),
            Place::Cpu => record.cpu().map(|cpu| Kept::Integer(i128::from(cpu.0))),
        }
    }
}

fn nested(value: &Value<'_>, steps: &[Step]) -> Option<Kept> {
    let mut value = value;
    for step in steps {
        value = match step {
            Step::Member(name) => value.member(name)?,
            Step::Index(index) => value.as_array()?.get(*index as usize)?,
        };
    }
    Some(match value {
        Value::Unsigned(value) => Kept::Integer(i128::from(*value)),
        Value::Signed(value) | Value::Enum { value, .. } => Kept::Integer(i128::from(*value)),
        Value::Flags { bits, .. } => Kept::Integer(i128::from(*bits)),
        Value::Bool(truth) => Kept::Integer(i128::from(*truth)),
        Value::Float(value) => Kept::Float(*value),
        Value::Text(text) => Kept::Text(text.as_bytes().into()),
        _ => return None,
    })
}
