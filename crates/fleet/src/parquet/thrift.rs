//! Structures in Thrift's compact protocol, as far as the metadata of Parquet need it.

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure while it is written; its fields come by rising number.
#[derive(Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    /// Begins a field. The difference to the one before fits four bits: the numbers are small.
    fn field(&mut self, number: u8, kind: u8) {
        debug_assert!(number > self.last && number - self.last < 16);
        self.bytes.push(number.wrapping_sub(self.last) << 4 | kind);
        self.last = number;
    }

    fn list(&mut self, number: u8, kind: u8, length: usize) {
        self.field(number, LIST);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            push_varint(&mut self.bytes, length as u64);
        }
    }

    fn string(&mut self, text: &str) {
        push_varint(&mut self.bytes, text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub fn i32(&mut self, number: u8, value: i32) {
        self.field(number, I32);
        push_varint(&mut self.bytes, zigzag(value.into()));
    }

    pub fn i64(&mut self, number: u8, value: i64) {
        self.field(number, I64);
        push_varint(&mut self.bytes, zigzag(value));
    }

    pub fn text(&mut self, number: u8, text: &str) {
        self.field(number, BINARY);
        self.string(text);
    }

    pub fn texts(&mut self, number: u8, texts: &[&str]) {
        self.list(number, BINARY, texts.len());
        texts.iter().for_each(|text| self.string(text));
    }

    pub fn i32s(&mut self, number: u8, values: &[i32]) {
        self.list(number, I32, values.len());
        for value in values {
            push_varint(&mut self.bytes, zigzag((*value).into()));
        }
    }

    pub fn structure(&mut self, number: u8, inner: Struct) {
        self.field(number, STRUCT);
        self.bytes.extend_from_slice(&inner.finish());
    }

    pub fn structures(&mut self, number: u8, all: Vec<Struct>) {
        self.list(number, STRUCT, all.len());
        for inner in all {
            self.bytes.extend_from_slice(&inner.finish());
        }
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Seven bits a byte, the lowest first.
pub(super) fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_has_its_fields_as_differences_and_a_zero_at_its_end() {
        let check = |write: &dyn Fn(&mut Struct), expect: &[u8]| {
            let mut structure = Struct::default();
            write(&mut structure);
            assert_eq!(structure.finish(), expect);
        };
        check(&|_| {}, &[0]);
        check(&|s| s.i32(1, -1), &[0x15, 1, 0]);
        check(&|s| s.i64(3, 300), &[0x36, 0xd8, 0x04, 0]);
        check(
            &|s| s.i64(1, i64::MIN),
            &[
                0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0,
            ],
        );
        check(&|s| s.text(2, "ab"), &[0x28, 2, b'a', b'b', 0]);
        check(&|s| s.texts(1, &["a"]), &[0x19, 0x18, 1, b'a', 0]);
        check(
            &|s| s.structures(1, vec![Struct::default()]),
            &[0x19, 0x1c, 0, 0],
        );
        let many = [1; 15];
        let expect = [&[0x19, 0xf5, 15][..], &[2; 15], &[0]].concat();
        check(&|s| s.i32s(1, &many), &expect);
    }
}
