//! Event classes: the name and the typed fields that all events of one kind share.

use std::sync::Arc;

use crate::Name;

/// An event class of one open trace: an index into its list of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);

/// A top-level field of one event class: an index into its list of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId(pub u16);

/// Where a field lives. Unqualified names are looked up in this order (lttng-analyses' period
/// language, peers' own order).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The event's own payload.
    #[default]
    Payload,
    /// The event's context (CTF: `event.context`).
    EventContext,
    /// The event's header.
    EventHeader,
    /// The context that all events of a stream carry (CTF: `stream.event.context`).
    StreamContext,
    /// The packet's context (`cpu_id`, discarded counts, …).
    PacketContext,
    /// The packet's header.
    PacketHeader,
}

/// The base that people expect an integer to be printed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Base {
    /// Binary.
    Binary,
    /// Octal.
    Octal,
    /// Decimal.
    #[default]
    Decimal,
    /// Hexadecimal.
    Hexadecimal,
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    /// Width in bits, 1 to 64.
    pub size_bits: u8,
    /// Alignment in bits, a power of two.
    pub align_bits: u16,
    /// Whether it is signed.
    pub signed: bool,
    /// Whether its bytes are big-endian.
    pub big_endian: bool,
    /// The base to print it in.
    pub base: Base,
    /// Whether it is a character of a text.
    pub text: bool,
}

impl Integer {
    /// A little-endian decimal integer, aligned to bytes, as all of rtscope's own traces have.
    pub const fn le(size_bits: u8, signed: bool) -> Self {
        let base = Base::Decimal;
        Integer {
            size_bits,
            align_bits: 8,
            signed,
            big_endian: false,
            base,
            text: false,
        }
    }

    /// The same, printed in hexadecimal.
    pub const fn hex(size_bits: u8) -> Self {
        Integer {
            base: Base::Hexadecimal,
            ..Integer::le(size_bits, false)
        }
    }
}

/// How the characters of a wide text are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WideEncoding {
    /// Bytes of a code unit: 2 (UTF-16) or 4 (UTF-32).
    pub unit_bytes: u8,
    /// Whether a unit's bytes are big-endian.
    pub big_endian: bool,
}

/// What says how many bytes a text or blob has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    /// A zero character after it.
    Terminated,
    /// The type itself.
    Bytes(u32),
    /// An earlier field of this name, as the format spells it.
    Field(String),
}

/// A label of an enumeration, for all values from `first` to `last`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegerMapping {
    /// The label.
    pub label: String,
    /// The least value that it stands for.
    pub first: i64,
    /// The greatest value that it stands for.
    pub last: i64,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldType {
    /// An integer.
    Integer(Integer),
    /// An integer whose values have labels.
    Enum(Integer, Arc<[IntegerMapping]>),
    /// A truth value in an integer: false when it is zero.
    Bool(Integer),
    /// An integer whose bits have labels; ranges count bits from the least significant.
    Flags(Integer, Arc<[IntegerMapping]>),
    /// A floating point number.
    Float {
        /// Width in bits: 16, 32, 64 or 128.
        size_bits: u8,
        /// Alignment in bits.
        align_bits: u16,
        /// Whether its bytes are big-endian.
        big_endian: bool,
    },
    /// A text that ends with a zero byte.
    String,
    /// A text in a fixed number of bytes, ended by the first zero byte or the last byte.
    Text {
        /// Number of bytes.
        size_bytes: u32,
    },
    /// A fixed number of elements.
    Array {
        /// The type of each element.
        element: Arc<FieldType>,
        /// Number of elements.
        count: u32,
    },
    /// As many elements as an earlier integer field says.
    Sequence {
        /// The type of each element.
        element: Arc<FieldType>,
        /// The name of the length field, as the format spells it.
        length: String,
    },
    /// A text of wide characters; only whole values give it ([`crate::Value::Text`]).
    WideText {
        /// How characters are stored.
        encoding: WideEncoding,
        /// Where it ends.
        length: Length,
    },
    /// Bytes of no further type.
    Blob {
        /// How many.
        length: Length,
        /// Their IANA media type.
        media_type: String,
    },
    /// Named members.
    Struct(Arc<[Field]>),
    /// One of several types, chosen by an earlier integer field.
    Variant {
        /// The name of the selecting field, as the format spells it.
        selector: String,
        /// The choices, by label.
        choices: Arc<[Field]>,
        /// Selector values by the name of their choice; none where the selector's own labels name
        /// the choices.
        ranges: Option<Arc<[IntegerMapping]>>,
    },
    /// A field that is there or not, as an earlier field says.
    Optional {
        /// The name of the selecting field, as the format spells it.
        selector: String,
        /// Its type when it is there.
        content: Arc<FieldType>,
        /// Selector values that mean that it is there, first and last; none: all but zero. Bounds
        /// are the selector's bits.
        ranges: Option<Arc<[(i64, i64)]>>,
    },
}

/// A named field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name, without CTF's leading underscore.
    pub name: Name,
    /// Where it lives.
    pub scope: Scope,
    /// Its type.
    pub ty: FieldType,
}

impl Field {
    /// A field of the payload.
    pub fn payload(name: impl Into<Name>, ty: FieldType) -> Self {
        Field {
            name: name.into(),
            scope: Scope::Payload,
            ty,
        }
    }
}

/// What all events of one kind share.
#[derive(Clone, Debug, PartialEq)]
pub struct EventClass {
    /// Its place in the trace's list of classes.
    pub id: ClassId,
    /// The event's name, such as `sched_switch`.
    pub name: String,
    /// The stream class (channel) that it belongs to.
    pub stream: u32,
    /// The fields of all scopes, payload first. Those of many classes are the same, and then held
    /// by all of them: most system calls return one number.
    pub fields: Arc<[Field]>,
}

impl EventClass {
    /// The field `name`, looked up in the order of [`Scope`]. Bind it once, at open.
    pub fn field(&self, name: &str) -> Option<FieldId> {
        let found = |(_, field): &(usize, &Field)| field.name == name;
        let by_scope = |(_, field): &(usize, &Field)| field.scope;
        let place = self
            .fields
            .iter()
            .enumerate()
            .filter(found)
            .min_by_key(by_scope)?
            .0;
        Some(FieldId(place as u16))
    }

    /// Whether perf recorded it: `perf data convert --to-ctf` puts the subsystem before the name,
    /// and hands out what the kernel puts into each of its events.
    pub fn is_of_perf(&self) -> bool {
        self.name.contains(':')
            && self.field_in(Scope::Payload, "common_type").is_some()
            && self.field_in(Scope::Payload, "common_pid").is_some()
    }

    /// The name of the kernel's event, whoever recorded it: `sched_switch` of perf's
    /// `sched:sched_switch`.
    pub fn kernel_name(&self) -> &str {
        match self.name.split_once(':') {
            Some((_, name)) if self.is_of_perf() => name,
            _ => &self.name,
        }
    }

    /// The field `name` of one scope.
    pub fn field_in(&self, scope: Scope, name: &str) -> Option<FieldId> {
        let place = self
            .fields
            .iter()
            .position(|f| f.scope == scope && f.name == name)?;
        Some(FieldId(place as u16))
    }
}
