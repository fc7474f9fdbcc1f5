//! The types of numbers in payloads (`RTSCOPE_NUMBERS` of `probe/include/rtscope/layout.h`), and
//! what they are in a trace.

use event::{FieldType, Integer};

/// What the bytes of a number mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// An integer without a sign.
    Unsigned,
    /// An integer with one.
    Signed,
    /// An integer that people want to see in hexadecimal.
    Hexadecimal,
    /// A floating point number.
    Float,
}

impl NumberKind {
    /// The type in a trace of such a number, as long and in the order that its writer has.
    pub fn field_type(self, size_bytes: u8, big_endian: bool) -> FieldType {
        let size_bits = size_bytes * 8;
        match self.integer(size_bytes, big_endian) {
            Some(integer) => FieldType::Integer(integer),
            None => FieldType::Float {
                size_bits,
                align_bits: 8,
                big_endian,
            },
        }
    }

    /// The same where it is an integer.
    pub fn integer(self, size_bytes: u8, big_endian: bool) -> Option<Integer> {
        let bits = size_bytes * 8;
        let little = match self {
            NumberKind::Unsigned => Integer::le(bits, false),
            NumberKind::Signed => Integer::le(bits, true),
            NumberKind::Hexadecimal => Integer::hex(bits),
            NumberKind::Float => return None,
        };
        Some(Integer {
            big_endian,
            ..little
        })
    }
}

/// Of each type its name in the header, its code, its bytes, and what they mean.
pub const NUMBERS: &[(&str, u8, u8, NumberKind)] = &[
    ("U8", 1, 1, NumberKind::Unsigned),
    ("U16", 2, 2, NumberKind::Unsigned),
    ("U32", 3, 4, NumberKind::Unsigned),
    ("U64", 4, 8, NumberKind::Unsigned),
    ("I8", 5, 1, NumberKind::Signed),
    ("I16", 6, 2, NumberKind::Signed),
    ("I32", 7, 4, NumberKind::Signed),
    ("I64", 8, 8, NumberKind::Signed),
    ("X8", 9, 1, NumberKind::Hexadecimal),
    ("X16", 10, 2, NumberKind::Hexadecimal),
    ("X32", 11, 4, NumberKind::Hexadecimal),
    ("X64", 12, 8, NumberKind::Hexadecimal),
    ("F32", 13, 4, NumberKind::Float),
    ("F64", 14, 8, NumberKind::Float),
];
