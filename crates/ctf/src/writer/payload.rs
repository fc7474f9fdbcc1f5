//! Lays fields out as our own traces have them: little-endian, aligned to bytes.

/// Bytes of `char comm[16]` and the like.
const COMM_BYTES: usize = 16;

/// Collects the fields of one event; reuse it between events with [`PayloadWriter::clear`].
///
/// Append the fields in the order of the class: the stream's event context, the event's context,
/// the payload.
#[derive(Clone, Debug, Default)]
pub struct PayloadWriter {
    bytes: Vec<u8>,
}

macro_rules! numbers {
    ($($name:ident $type:ty),*) => {$(
        #[doc = concat!("Appends a little-endian `", stringify!($type), "`.")]
        pub fn $name(&mut self, value: $type) -> &mut Self {
            self.bytes.extend_from_slice(&value.to_le_bytes());
            self
        }
    )*};
}

impl PayloadWriter {
    /// An empty payload.
    pub fn new() -> Self {
        PayloadWriter::default()
    }

    /// Forgets the fields, keeps the memory.
    pub fn clear(&mut self) -> &mut Self {
        self.bytes.clear();
        self
    }

    /// The bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    numbers!(u8 u8, u16 u16, u32 u32, u64 u64, i8 i8, i16 i16, i32 i32, i64 i64, f32 f32, f64 f64);

    /// Appends a text of 16 bytes (`comm`): cut at 15, filled with zeros.
    pub fn text16(&mut self, text: &str) -> &mut Self {
        self.text(text.as_bytes(), COMM_BYTES)
    }

    /// Appends a text of `size_bytes`, cut to leave a final zero, filled with zeros.
    pub fn text(&mut self, text: &[u8], size_bytes: usize) -> &mut Self {
        let end = text
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(text.len());
        let kept = end.min(size_bytes.saturating_sub(1));
        self.bytes.extend_from_slice(&text[..kept]);
        self.bytes.resize(self.bytes.len() + size_bytes - kept, 0);
        self
    }

    /// Appends a text that ends with a zero byte; a zero inside ends it earlier.
    pub fn string(&mut self, text: &str) -> &mut Self {
        self.string_bytes(text.as_bytes())
    }

    /// Appends the bytes of a text that ends with a zero byte; a zero inside ends it earlier.
    pub fn string_bytes(&mut self, text: &[u8]) -> &mut Self {
        let end = text
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(text.len());
        self.bytes.extend_from_slice(&text[..end]);
        self.bytes.push(0);
        self
    }

    /// Appends a `u32` length and then each element by `write`.
    pub fn sequence<T>(
        &mut self,
        elements: &[T],
        mut write: impl FnMut(&mut Self, &T),
    ) -> &mut Self {
        self.u32(elements.len() as u32);
        for element in elements {
            write(self, element);
        }
        self
    }

    /// Appends bytes that are laid out already.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_always_fills_its_bytes_and_ends_with_zero() {
        let check = |text: &str, expect: &[u8; 4]| {
            assert_eq!(
                PayloadWriter::new().text(text.as_bytes(), 4).bytes(),
                expect
            );
        };
        check("", b"\0\0\0\0");
        check("ab", b"ab\0\0");
        check("abcdef", b"abc\0");
        check("a\0b", b"a\0\0\0");
    }
}
