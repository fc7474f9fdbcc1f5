//! Protocol buffers on the wire: fields one after the other, each with its number and kind.

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    /// An integer of any width; signed ones are sign-extended to 64 bits.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// A message, a text or packed integers.
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    pub fn number(self) -> Option<u64> {
        match self {
            Wire::Varint(number) | Wire::Fixed64(number) => Some(number),
            Wire::Fixed32(number) => Some(u64::from(number)),
            Wire::Bytes(_) => None,
        }
    }

    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Wire::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The fields of a message; it ends early where bytes make no sense, see [`Fields::is_broken`].
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    broken: bool,
}

impl<'a> Fields<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Fields {
            rest: message,
            broken: false,
        }
    }

    /// Whether what was handed out last is not the message's last field.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    fn field(&mut self) -> Option<(u32, Wire<'a>)> {
        let key = varint(&mut self.rest)?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
        let value = match key & 7 {
            0 => Wire::Varint(varint(&mut self.rest)?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Wire::Bytes(bytes)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return None,
        };
        Some((number, value))
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Wire<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() || self.broken {
            return None;
        }
        let field = self.field();
        self.broken = field.is_none();
        field
    }
}

/// Reads an integer of seven bits a byte, the lowest first; none where it has no end.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for (place, byte) in bytes.iter().enumerate().take(VARINT_BYTES_MAX) {
        number |= u64::from(byte & 0x7f).checked_shl(7 * place as u32)?;
        if byte & 0x80 == 0 {
            *bytes = &bytes[place + 1..];
            return Some(number);
        }
    }
    None
}

pub(super) const VARINT_BYTES_MAX: usize = 10;

/// Integers that are packed into one field; it ends where they make no sense.
pub(super) fn packed(mut bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    std::iter::from_fn(move || varint(&mut bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_with_their_kinds_and_what_breaks_off_is_told() {
        let check = |bytes: &[u8], expect: &[(u32, Wire<'_>)], broken: bool| {
            let mut fields = Fields::new(bytes);
            let found: Vec<_> = fields.by_ref().collect();
            assert_eq!((found.as_slice(), fields.is_broken()), (expect, broken));
        };
        check(&[], &[], false);
        check(&[0x08, 0x96, 0x01], &[(1, Wire::Varint(150))], false);
        check(&[0x12, 2, b'a', b'b'], &[(2, Wire::Bytes(b"ab"))], false);
        check(&[0x1d, 1, 0, 0, 0], &[(3, Wire::Fixed32(1))], false);
        check(&[0x12, 3, b'a'], &[], true);
        check(&[0x08], &[], true);
        check(&[0x08, 1, 0x0b], &[(1, Wire::Varint(1))], true);
        check(&[0x00, 1], &[], true);
        let minus_one = [0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        check(&minus_one, &[(1, Wire::Varint(u64::MAX))], false);
        check(&[0x08; 12], &[(1, Wire::Varint(8)); 6], false);
        check(&[255; 12], &[], true);
    }

    #[test]
    fn packed_integers_end_where_the_bytes_do() {
        let numbers = |bytes: &[u8]| packed(bytes).collect::<Vec<_>>();
        assert_eq!(numbers(&[1, 0x96, 1, 7]), [1, 150, 7]);
        assert_eq!(numbers(&[1, 0x96]), [1]);
    }
}
