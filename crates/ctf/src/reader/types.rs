//! The types that the metadata declares, before their references are resolved.

use std::sync::Arc;

use event::{Base, Field, FieldType, Integer, IntegerMapping, Scope};

/// Types nest no deeper than this: deeper ones are an attack on the stack.
pub(crate) const DEPTH_MAX: u32 = 48;
/// A type has no more parts than this, each use of a shared type counted.
pub(crate) const WEIGHT_MAX: u64 = 1 << 16;

/// A declared type with what is known of it without looking at data.
#[derive(Debug)]
pub(crate) struct Type {
    pub kind: TypeKind,
    pub align_bits: u32,
    pub depth: u32,
    pub weight: u64,
    /// The same type in the vocabulary that users of the trace see.
    pub face: FieldType,
}

#[derive(Debug)]
pub(crate) enum TypeKind {
    Integer(IntType),
    Enum(IntType, Arc<[Mapping]>),
    Float {
        size_bits: u8,
        big_endian: bool,
    },
    String,
    Struct(Vec<Member>),
    Array {
        element: Arc<Type>,
        count: u64,
    },
    Sequence {
        element: Arc<Type>,
        length: Vec<String>,
    },
    /// The selector is none in a declaration that a later use binds.
    Variant {
        selector: Option<Vec<String>>,
        choices: Vec<Member>,
    },
}

/// An integer and the clock whose value it holds.
#[derive(Clone, Debug)]
pub(crate) struct IntType {
    pub integer: Integer,
    pub clock: Option<String>,
}

/// A label of an enumeration; bounds in 128 bits, so that both signs fit.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub label: String,
    pub first: i128,
    pub last: i128,
}

/// A named part, spelled as in the metadata.
#[derive(Debug)]
pub(crate) struct Member {
    pub name: String,
    pub ty: Arc<Type>,
}

/// A name as people see it: without the underscore that keeps it from being a keyword.
pub(crate) fn shown(name: &str) -> &str {
    name.strip_prefix('_')
        .filter(|rest| !rest.is_empty())
        .unwrap_or(name)
}

impl Type {
    /// Whether arrays and sequences of this are texts.
    pub fn is_character(&self) -> bool {
        let TypeKind::Integer(int) = &self.kind else {
            return false;
        };
        int.integer.text && int.integer.size_bits == 8 && int.integer.align_bits == 8
    }

    /// The type of `kind`, aligned to at least `align_bits`; none when it nests too deep or has too
    /// many parts.
    pub fn new(kind: TypeKind, align_bits: u32) -> Option<Arc<Type>> {
        let mut depth = 0;
        let mut weight = 1u64;
        let mut align = align_bits.max(1);
        let mut part = |ty: &Type, aligns: bool| {
            depth = depth.max(ty.depth + 1);
            weight = weight.saturating_add(ty.weight);
            if aligns {
                align = align.max(ty.align_bits);
            }
        };
        match &kind {
            TypeKind::Struct(members) => members.iter().for_each(|m| part(&m.ty, true)),
            TypeKind::Variant { choices, .. } => choices.iter().for_each(|m| part(&m.ty, false)),
            TypeKind::Array { element, .. } | TypeKind::Sequence { element, .. } => {
                part(element, true);
            }
            _ => {}
        }
        if depth > DEPTH_MAX || weight > WEIGHT_MAX {
            return None;
        }
        let face = face(&kind, align);
        Some(Arc::new(Type {
            kind,
            align_bits: align,
            depth,
            weight,
            face,
        }))
    }
}

fn face(kind: &TypeKind, align_bits: u32) -> FieldType {
    match kind {
        TypeKind::Integer(int) => FieldType::Integer(int.integer),
        TypeKind::Enum(int, mappings) => {
            let mapping = |m: &Mapping| IntegerMapping {
                label: m.label.clone(),
                first: m.first as i64,
                last: m.last as i64,
            };
            FieldType::Enum(int.integer, mappings.iter().map(mapping).collect())
        }
        TypeKind::Float {
            size_bits,
            big_endian,
        } => FieldType::Float {
            size_bits: *size_bits,
            align_bits: align_bits as u16,
            big_endian: *big_endian,
        },
        TypeKind::String => FieldType::String,
        TypeKind::Struct(members) => FieldType::Struct(fields(members, Scope::Payload).into()),
        TypeKind::Array { element, count } => {
            let count = u32::try_from(*count).unwrap_or(u32::MAX);
            match element.is_character() {
                true => FieldType::Text { size_bytes: count },
                false => FieldType::Array {
                    element: Arc::new(element.face.clone()),
                    count,
                },
            }
        }
        TypeKind::Sequence { element, length } => FieldType::Sequence {
            element: Arc::new(element.face.clone()),
            length: length.join("."),
        },
        TypeKind::Variant { selector, choices } => FieldType::Variant {
            selector: selector
                .as_ref()
                .map(|path| path.join("."))
                .unwrap_or_default(),
            choices: fields(choices, Scope::Payload).into(),
        },
    }
}

/// Members as the fields that users of the trace see.
pub(crate) fn fields(members: &[Member], scope: Scope) -> Vec<Field> {
    let field = |member: &Member| Field {
        name: shown(&member.name).to_owned(),
        scope,
        ty: member.ty.face.clone(),
    };
    members.iter().map(field).collect()
}

/// The base that TSDL's attribute names.
pub(crate) fn base(number: u64) -> Option<Base> {
    match number {
        2 => Some(Base::Binary),
        8 => Some(Base::Octal),
        10 => Some(Base::Decimal),
        16 => Some(Base::Hexadecimal),
        _ => None,
    }
}
