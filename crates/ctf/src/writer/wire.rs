//! Types as they are written: what the dialect can say, with their references resolved.
//!
//! CTF 1.8 has no word for some types, so they become others with the same values: an optional
//! field is a variant of `none` and `some`, a blob an array of bytes, a wide text a UTF-8 string, a
//! bit map a hexadecimal integer, and a selector gets the labels that choose. Floats of 16 and 128
//! bits become ones of 32 and 64, which hold every value that a reader hands out.

use event::{Field, Integer, IntegerMapping, Scope, WideEncoding};

use super::Dialect;

/// A type with its alignment.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub kind: Kind,
    pub align_bits: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Int(Int),
    Float {
        size_bits: u8,
        big_endian: bool,
    },
    String,
    /// A text in so many bytes.
    Text(u32),
    /// A text in as many bytes as an earlier field says.
    CountedText(Link),
    Wide {
        encoding: WideEncoding,
        span: Span,
    },
    Blob {
        span: Span,
        media_type: String,
    },
    Struct(Vec<Member>),
    Array(Box<Node>, u32),
    Sequence(Box<Node>, Link),
    Variant {
        selector: Link,
        choices: Vec<Choice>,
        /// Whether it stands for an optional field: its choices are `none` and `some`.
        is_optional: bool,
    },
    Optional {
        selector: Link,
        content: Box<Node>,
        /// Selector values that mean that it is there; none: all but zero.
        ranges: Option<Vec<(i64, i64)>>,
    },
}

/// An integer and what its value is to people.
#[derive(Clone, Debug)]
pub(super) struct Int {
    pub integer: Integer,
    pub shows: Shows,
    /// Where the encoder keeps its value for a later length or selector.
    pub slot: Option<u16>,
}

#[derive(Clone, Debug)]
pub(super) enum Shows {
    Number,
    Label(Vec<IntegerMapping>),
    Truth,
    Flags(Vec<IntegerMapping>),
}

/// How many bytes a text or blob has.
#[derive(Clone, Debug)]
pub(super) enum Span {
    Terminated,
    Bytes(u32),
    Counted(Link),
}

/// Where a length or a selector is.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub scope: Scope,
    /// Structures to go up from the one around; none: from the start of the scope.
    pub ups: Option<usize>,
    /// Members to go down, as they are written.
    pub names: Vec<String>,
    /// Where the encoder finds the value; none outside of the event's body.
    pub slot: Option<u16>,
    /// Whether the integer is signed.
    pub is_signed: bool,
    /// Whether it is in the same scope as what refers to it.
    pub is_here: bool,
}

/// A part of a structure.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub name: String,
    pub node: Node,
    /// No field of the record: the next member refers to it.
    pub is_carried: bool,
}

/// A choice of a variant.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// As readers show it.
    pub name: String,
    /// As it is written.
    pub written: String,
    /// Selector values that mean it.
    pub ranges: Vec<(i64, i64)>,
    pub node: Node,
}

/// The structures of one event class, in the order of their bytes.
#[derive(Clone, Debug)]
pub(super) struct ClassWire {
    /// Each with the place of its first member among the fields of its scope.
    pub scopes: [Vec<Member>; 3],
    pub slot_count: u16,
    /// Whether every part is whole bytes without padding, as `PayloadWriter` lays them out.
    pub is_bytes: bool,
}

/// The scopes of an event's body, in the order of their bytes.
pub(super) const BODY: [Scope; 3] = [Scope::StreamContext, Scope::EventContext, Scope::Payload];

impl Node {
    pub fn new(kind: Kind, own_align_bits: u32) -> Node {
        let align_bits = match &kind {
            Kind::Struct(members) => align_of(members),
            Kind::Array(element, _) | Kind::Sequence(element, _) => element.align_bits,
            _ => own_align_bits,
        };
        Node { kind, align_bits }
    }

    /// Whether it is whole bytes without padding, wherever it stands on a byte.
    pub fn is_bytes(&self) -> bool {
        let inside = match &self.kind {
            Kind::Int(int) => int.integer.size_bits.is_multiple_of(8),
            Kind::Struct(members) => members.iter().all(|member| member.node.is_bytes()),
            Kind::Array(element, _) | Kind::Sequence(element, _) => element.is_bytes(),
            Kind::Variant { choices, .. } => choices.iter().all(|choice| choice.node.is_bytes()),
            Kind::Optional { content, .. } => content.is_bytes(),
            _ => true,
        };
        inside && self.align_bits <= 8
    }
}

/// A structure's alignment: the greatest of its members'.
pub(super) fn align_of(members: &[Member]) -> u32 {
    let aligns = members.iter().map(|member| member.node.align_bits);
    aligns.max().unwrap_or(1)
}

/// How integers that share bytes are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubByte {
    /// As the class says.
    Keep,
    /// To bytes, because a byte has only one order and the classes use both.
    Align,
}

impl SubByte {
    /// What the fields of one stream need.
    pub fn of<'f>(fields: impl Iterator<Item = &'f Field>) -> SubByte {
        let mut orders = [false; 2];
        for field in fields {
            visit(&field.ty, &mut |integer| {
                if !integer.size_bits.is_multiple_of(8) || integer.align_bits < 8 {
                    orders[usize::from(integer.big_endian)] = true;
                }
            });
        }
        match orders {
            [true, true] => SubByte::Align,
            _ => SubByte::Keep,
        }
    }
}

/// Shows each integer of a type.
fn visit(ty: &event::FieldType, see: &mut impl FnMut(&Integer)) {
    use event::FieldType as Type;
    match ty {
        Type::Integer(int) | Type::Enum(int, _) | Type::Bool(int) | Type::Flags(int, _) => see(int),
        Type::Array { element, .. } | Type::Sequence { element, .. } => visit(element, see),
        Type::Struct(fields) => fields.iter().for_each(|field| visit(&field.ty, see)),
        Type::Variant { choices, .. } => choices.iter().for_each(|field| visit(&field.ty, see)),
        Type::Optional { content, .. } => visit(content, see),
        Type::Float { .. }
        | Type::String
        | Type::Text { .. }
        | Type::WideText { .. }
        | Type::Blob { .. } => {}
    }
}

/// A name that the dialect can say: CTF 1.8 knows letters, digits and underscores.
pub(super) fn written_name(name: &str, dialect: Dialect) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c,
        _ => '_',
    };
    match dialect {
        Dialect::Ctf18 => name.chars().map(plain).collect(),
        Dialect::Ctf2 => name.to_owned(),
    }
}

/// Whether an integer's value lies in a range whose bounds are its bits.
pub(super) fn in_range(value: i64, (first, last): (i64, i64), signed: bool) -> bool {
    match signed {
        true => (first..=last).contains(&value),
        false => (first as u64..=last as u64).contains(&(value as u64)),
    }
}
