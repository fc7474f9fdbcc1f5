//! The type of a column, and the one that holds the values of two.

use event::{Field, FieldType, Integer};

use crate::accessor::Kind;

/// The type of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnKind {
    /// An integer of 8, 16, 32 or 64 bits.
    Integer {
        bits: u8,
        signed: bool,
    },
    /// A float of 64 bits; those of 16 and 32 bits fit.
    Float,
    Bool,
    Text,
    Bytes,
    List(Box<ColumnKind>),
    /// Members by name; all may be absent.
    Struct(Vec<(String, ColumnKind)>),
    /// Nanoseconds since 1970 (UTC).
    WallTime,
    /// The event's name: an index into the names of all classes.
    Name,
}

impl ColumnKind {
    /// The type for values of a field.
    pub fn of(ty: &FieldType) -> ColumnKind {
        if Kind::of(ty) == Kind::Text {
            return ColumnKind::Text;
        }
        match ty {
            FieldType::Bool(_) => ColumnKind::Bool,
            FieldType::Integer(integer) | FieldType::Enum(integer, _) => integer_kind(integer),
            FieldType::Flags(integer, _) => ColumnKind::Integer {
                bits: rounded(integer.size_bits),
                signed: false,
            },
            FieldType::Float { .. } => ColumnKind::Float,
            FieldType::Blob { .. } => ColumnKind::Bytes,
            FieldType::Array { element, .. } | FieldType::Sequence { element, .. } => {
                ColumnKind::List(Box::new(ColumnKind::of(element)))
            }
            FieldType::Struct(fields)
            | FieldType::Variant {
                choices: fields, ..
            } => members(fields),
            FieldType::Optional { content, .. } => ColumnKind::of(content),
            FieldType::String | FieldType::Text { .. } | FieldType::WideText { .. } => {
                ColumnKind::Text
            }
        }
    }

    /// The type that holds the values of both without loss; a text when there is no better one.
    pub fn with(self, other: ColumnKind) -> ColumnKind {
        use ColumnKind::{Float, Integer, List, Struct, Text};
        match (self, other) {
            (one, other) if one == other => one,
            (
                Integer { bits, signed },
                Integer {
                    bits: other_bits,
                    signed: other_signed,
                },
            ) => {
                if signed == other_signed {
                    let bits = bits.max(other_bits);
                    return Integer { bits, signed };
                }
                let (of_signed, of_unsigned) = match signed {
                    true => (bits, other_bits),
                    false => (other_bits, bits),
                };
                match of_unsigned {
                    64 => Text,
                    _ => Integer {
                        bits: of_signed.max(of_unsigned * 2),
                        signed: true,
                    },
                }
            }
            // A float of 64 bits has all integers of 32.
            (Float, Integer { bits, .. }) | (Integer { bits, .. }, Float) if bits <= 32 => Float,
            (List(one), List(other)) => List(Box::new(one.with(*other))),
            (Struct(mut members), Struct(others)) => {
                for (name, other) in others {
                    match members.iter_mut().find(|(found, _)| *found == name) {
                        Some((_, kind)) => {
                            *kind = std::mem::replace(kind, Text).with(other);
                        }
                        None => members.push((name, other)),
                    }
                }
                Struct(members)
            }
            _ => Text,
        }
    }
}

fn integer_kind(integer: &Integer) -> ColumnKind {
    ColumnKind::Integer {
        bits: rounded(integer.size_bits),
        signed: integer.signed,
    }
}

/// The next width that Arrow has.
fn rounded(bits: u8) -> u8 {
    bits.clamp(8, 64).next_power_of_two()
}

fn members(fields: &[Field]) -> ColumnKind {
    let mut kind = ColumnKind::Struct(Vec::new());
    for field in fields {
        let member = (field.name.to_string(), ColumnKind::of(&field.ty));
        // A name that comes twice is one member.
        kind = kind.with(ColumnKind::Struct(vec![member]));
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_two_types_holds_the_values_of_both() {
        let int = |bits, signed| ColumnKind::Integer { bits, signed };
        let check = |one: ColumnKind, other: ColumnKind, expect: ColumnKind| {
            assert_eq!(one.clone().with(other.clone()), expect);
            assert_eq!(other.with(one), expect);
        };
        check(int(8, false), int(32, false), int(32, false));
        check(int(32, false), int(8, true), int(64, true));
        check(int(8, false), int(64, true), int(64, true));
        check(int(64, false), int(8, true), ColumnKind::Text);
        check(int(32, true), ColumnKind::Float, ColumnKind::Float);
        check(int(64, true), ColumnKind::Float, ColumnKind::Text);
        check(ColumnKind::Bool, int(8, false), ColumnKind::Text);
        let list = |kind| ColumnKind::List(Box::new(kind));
        check(list(int(8, true)), list(int(16, true)), list(int(16, true)));
        let of = |name: &str, kind| ColumnKind::Struct(vec![(name.to_owned(), kind)]);
        let both = of("a", int(16, true));
        check(of("a", int(8, true)), of("a", int(16, true)), both);
    }

    #[test]
    fn an_odd_width_takes_the_next_that_arrow_has() {
        let check = |bits: u8, expect: u8| assert_eq!(rounded(bits), expect);
        check(1, 8);
        check(8, 8);
        check(9, 16);
        check(27, 32);
        check(33, 64);
    }
}
