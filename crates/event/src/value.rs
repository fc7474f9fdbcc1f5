//! A decoded field value, for the paths where clarity is worth an allocation.

/// The value of one field.
///
/// Hot paths never build it: they ask the event for an integer or a text by its bound field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A floating point number.
    Float(f64),
    /// A text; bytes that are not UTF-8 were replaced.
    Text(std::borrow::Cow<'a, str>),
    /// An integer with the labels that its enumeration maps it to.
    Enum {
        /// The integer, sign-extended.
        value: i64,
        /// The first label that matches, if any.
        label: Option<&'a str>,
    },
    /// A truth value.
    Bool(bool),
    /// A bit map.
    Flags {
        /// All bits.
        bits: u64,
        /// The labels of which a bit is set, in the order of the type.
        labels: Vec<&'a str>,
    },
    /// Bytes of no further type.
    Blob(&'a [u8]),
    /// An optional field that is not there.
    Absent,
    /// The elements of an array or sequence, in order.
    Array(Vec<Value<'a>>),
    /// The members of a structure, in order.
    Struct(Vec<(&'a str, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// The integer inside, if this is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Unsigned(value) => Some(*value as i64),
            Value::Signed(value) | Value::Enum { value, .. } => Some(*value),
            Value::Flags { bits, .. } => Some(*bits as i64),
            Value::Bool(truth) => Some(i64::from(*truth)),
            _ => None,
        }
    }

    /// The integer inside as its unsigned bits, if this is one.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i64().map(|value| value as u64)
    }

    /// The text inside, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The elements inside, if this is an array or sequence.
    pub fn as_array(&self) -> Option<&[Value<'a>]> {
        match self {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The member `name`, if this is a structure that has it.
    pub fn member(&self, name: &str) -> Option<&Value<'a>> {
        match self {
            Value::Struct(members) => members.iter().find_map(|(n, v)| (*n == name).then_some(v)),
            _ => None,
        }
    }
}
