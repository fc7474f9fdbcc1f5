//! The types that the metadata declares, before their references are resolved.

use std::sync::{Arc, OnceLock};

use event::{Base, Field, FieldType, Integer, IntegerMapping, Length, Name, Scope, WideEncoding};

use super::layout::Role;

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
    /// Made when it is asked for: nobody sees the structure of a whole scope.
    face: OnceLock<FieldType>,
}

#[derive(Debug)]
pub(crate) enum TypeKind {
    Integer(IntType),
    Enum(IntType, Arc<[Mapping]>),
    Bool(IntType),
    Flags(IntType, Arc<[Mapping]>),
    Float {
        size_bits: u8,
        big_endian: bool,
    },
    String,
    WideString {
        encoding: WideEncoding,
        length: Extent,
    },
    Blob {
        length: Extent,
        media_type: String,
    },
    Struct(Vec<Member>),
    Array {
        element: Arc<Type>,
        count: u64,
    },
    Sequence {
        element: Arc<Type>,
        length: Reference,
    },
    /// The selector is none in a declaration that a later use binds.
    Variant {
        selector: Option<Reference>,
        choices: Vec<Member>,
        /// Selector values by choice; none where the selector's labels name the choices.
        ranges: Option<Vec<Range>>,
    },
    Optional {
        selector: Reference,
        content: Arc<Type>,
        /// Selector values that mean that it is there; none for a truth value.
        ranges: Option<Vec<(i128, i128)>>,
    },
}

/// How many bytes a text or blob has.
#[derive(Clone, Debug)]
pub(crate) enum Extent {
    Terminated,
    Bytes(u64),
    Field(Reference),
}

impl Extent {
    fn face(&self) -> Length {
        match self {
            Extent::Terminated => Length::Terminated,
            Extent::Bytes(bytes) => Length::Bytes(u32::try_from(*bytes).unwrap_or(u32::MAX)),
            Extent::Field(reference) => Length::Field(reference.text()),
        }
    }
}

/// What a length or a selector refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// Words of TSDL: looked up from the inside to the outside, or absolute by the first words.
    Words(Vec<String>),
    /// A place of CTF 2: from the start of a scope, or from the structure around; `None` goes up
    /// to the structure around that.
    Location {
        origin: Option<Scope>,
        path: Vec<Option<String>>,
        /// Whether it leads into another scope.
        is_elsewhere: bool,
    },
}

impl Reference {
    /// As TSDL spells it, with dots between.
    pub fn text(&self) -> String {
        match self {
            Reference::Words(words) => words.join("."),
            Reference::Location {
                origin,
                path,
                is_elsewhere,
            } => {
                let scope = origin.filter(|_| *is_elsewhere).map(tsdl_scope);
                let names = path.iter().flatten().map(String::as_str);
                let names: Vec<&str> = scope.into_iter().chain(names).collect();
                names.join(".")
            }
        }
    }
}

/// A scope, as TSDL's references name it.
fn tsdl_scope(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "trace.packet.header",
        Scope::PacketContext => "stream.packet.context",
        Scope::EventHeader => "stream.event.header",
        Scope::StreamContext => "stream.event.context",
        Scope::EventContext => "event.context",
        Scope::Payload => "event.fields",
    }
}

/// An integer with what it means to the decoder.
#[derive(Clone, Debug)]
pub(crate) struct IntType {
    pub integer: Integer,
    pub storage: Storage,
    /// The clock whose value it holds.
    pub clock: Option<String>,
    /// What the format itself says of it.
    pub role: Role,
}

impl IntType {
    /// One of fixed length in its byte order's own bit order.
    pub fn plain(integer: Integer) -> IntType {
        IntType {
            integer,
            storage: Storage::Plain,
            clock: None,
            role: Role::None,
        }
    }
}

/// How an integer's bits are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In the bit order that belongs to the byte order.
    Plain,
    /// In the other bit order.
    Reversed,
    /// Seven bits a byte.
    Leb128,
}

/// Selector values that mean one choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub first: i128,
    pub last: i128,
    pub choice: u32,
}

/// A label of an enumeration; bounds in 128 bits, so that both signs fit.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub label: String,
    pub first: i128,
    pub last: i128,
}

/// A named part, spelled as in the metadata.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub name: Name,
    pub ty: Arc<Type>,
    /// Whether the name's first underscore only keeps it from being a keyword.
    pub escaped: bool,
}

impl Member {
    /// The name as people see it.
    pub fn shown(&self) -> &str {
        if self.escaped {
            shown(&self.name)
        } else {
            &self.name
        }
    }

    /// The same, held by many.
    fn shown_name(&self) -> Name {
        let shown = self.shown();
        match shown.len() == self.name.len() {
            true => self.name.clone(),
            false => shown.into(),
        }
    }
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
            TypeKind::Optional { content, .. } => part(content, false),
            _ => {}
        }
        if depth > DEPTH_MAX || weight > WEIGHT_MAX {
            return None;
        }
        Some(Arc::new(Type {
            kind,
            align_bits: align,
            depth,
            weight,
            face: OnceLock::new(),
        }))
    }

    /// The same type in the vocabulary that users of the trace see.
    pub fn face(&self) -> &FieldType {
        self.face.get_or_init(|| face(&self.kind, self.align_bits))
    }
}

fn face(kind: &TypeKind, align_bits: u32) -> FieldType {
    match kind {
        TypeKind::Integer(int) => FieldType::Integer(int.integer),
        TypeKind::Enum(int, mappings) => FieldType::Enum(int.integer, labels(mappings)),
        TypeKind::Bool(int) => FieldType::Bool(int.integer),
        TypeKind::Flags(int, mappings) => FieldType::Flags(int.integer, labels(mappings)),
        TypeKind::Float {
            size_bits,
            big_endian,
        } => FieldType::Float {
            size_bits: *size_bits,
            align_bits: align_bits as u16,
            big_endian: *big_endian,
        },
        TypeKind::String => FieldType::String,
        TypeKind::WideString { encoding, length } => FieldType::WideText {
            encoding: *encoding,
            length: length.face(),
        },
        TypeKind::Blob { length, media_type } => FieldType::Blob {
            length: length.face(),
            media_type: media_type.clone(),
        },
        TypeKind::Struct(members) => FieldType::Struct(fields(members, Scope::Payload).collect()),
        TypeKind::Array { element, count } => {
            let count = u32::try_from(*count).unwrap_or(u32::MAX);
            match element.is_character() {
                true => FieldType::Text { size_bytes: count },
                false => FieldType::Array {
                    element: Arc::new(element.face().clone()),
                    count,
                },
            }
        }
        TypeKind::Sequence { element, length } => FieldType::Sequence {
            element: Arc::new(element.face().clone()),
            length: length.text(),
        },
        TypeKind::Variant {
            selector,
            choices,
            ranges,
        } => FieldType::Variant {
            selector: selector.as_ref().map(Reference::text).unwrap_or_default(),
            choices: fields(choices, Scope::Payload).collect(),
            ranges: ranges.as_ref().map(|ranges| named(ranges, choices)),
        },
        TypeKind::Optional {
            selector,
            content,
            ranges,
        } => FieldType::Optional {
            selector: selector.text(),
            content: Arc::new(content.face().clone()),
            ranges: ranges.as_ref().map(|ranges| {
                let bits = |(first, last): &(i128, i128)| (*first as i64, *last as i64);
                ranges.iter().map(bits).collect()
            }),
        },
    }
}

/// Selector values by the names of the choices.
fn named(ranges: &[Range], choices: &[Member]) -> Arc<[IntegerMapping]> {
    let mapping = |range: &Range| {
        let choice = choices.get(range.choice as usize)?;
        Some(IntegerMapping {
            label: choice.shown().to_owned(),
            first: range.first as i64,
            last: range.last as i64,
        })
    };
    ranges.iter().filter_map(mapping).collect()
}

fn labels(mappings: &[Mapping]) -> Arc<[IntegerMapping]> {
    let mapping = |m: &Mapping| IntegerMapping {
        label: m.label.clone(),
        first: m.first as i64,
        last: m.last as i64,
    };
    mappings.iter().map(mapping).collect()
}

/// Members as the fields that users of the trace see.
pub(crate) fn fields(members: &[Member], scope: Scope) -> impl Iterator<Item = Field> {
    let field = move |member: &Member| Field {
        name: member.shown_name(),
        scope,
        ty: member.ty.face().clone(),
    };
    members.iter().map(field)
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
