//! A growing column: values, which of them are there, and the columns inside of it.

use event::{Value, json};

use super::kind::ColumnKind;

/// A column of a batch.
#[derive(Debug)]
pub(super) struct Column {
    pub len: usize,
    pub nulls: usize,
    /// A bit for each value, set when it is there; empty as long as all are.
    pub valid: Vec<u8>,
    pub data: Data,
}

/// Values in Arrow's layout.
#[derive(Debug)]
pub(super) enum Data {
    Bytes1(Vec<u8>),
    Bytes2(Vec<u16>),
    Bytes4(Vec<u32>),
    Bytes8(Vec<u64>),
    Floats(Vec<f64>),
    Bits(Vec<u8>),
    /// Texts and bytes: where each begins, and the end of the last.
    Blob {
        offsets: Vec<i32>,
        bytes: Vec<u8>,
        is_text: bool,
    },
    List {
        offsets: Vec<i32>,
        element: Box<Column>,
    },
    Struct(Vec<(String, Column)>),
}

/// Offsets have 31 bits; a batch ends long before they do, except for one value of this size.
const BLOB_BYTES_MAX: usize = i32::MAX as usize;

impl Column {
    /// An empty column.
    pub fn new(kind: &ColumnKind) -> Column {
        let data = match kind {
            ColumnKind::Integer { bits: 8, .. } => Data::Bytes1(Vec::new()),
            ColumnKind::Integer { bits: 16, .. } => Data::Bytes2(Vec::new()),
            ColumnKind::Integer { bits: 32, .. } | ColumnKind::Name => Data::Bytes4(Vec::new()),
            ColumnKind::Integer { .. } | ColumnKind::WallTime => Data::Bytes8(Vec::new()),
            ColumnKind::Float => Data::Floats(Vec::new()),
            ColumnKind::Bool => Data::Bits(Vec::new()),
            ColumnKind::Text | ColumnKind::Bytes => Data::Blob {
                offsets: vec![0],
                bytes: Vec::new(),
                is_text: *kind == ColumnKind::Text,
            },
            ColumnKind::List(element) => Data::List {
                offsets: vec![0],
                element: Box::new(Column::new(element)),
            },
            ColumnKind::Struct(members) => {
                let member = |(name, kind): &(String, _)| (name.clone(), Column::new(kind));
                Data::Struct(members.iter().map(member).collect())
            }
        };
        Column {
            len: 0,
            nulls: 0,
            valid: Vec::new(),
            data,
        }
    }

    /// Makes room for so many values of a fixed size.
    pub fn reserve(&mut self, rows: usize) {
        match &mut self.data {
            Data::Bytes1(values) => values.reserve(rows),
            Data::Bytes2(values) => values.reserve(rows),
            Data::Bytes4(values) => values.reserve(rows),
            Data::Bytes8(values) => values.reserve(rows),
            Data::Floats(values) => values.reserve(rows),
            Data::Blob { offsets, .. } | Data::List { offsets, .. } => offsets.reserve(rows),
            Data::Bits(_) | Data::Struct(_) => {}
        }
    }

    /// Appends absent values until there are `len`.
    pub fn pad(&mut self, len: usize) {
        if len <= self.len {
            return;
        }
        if self.valid.is_empty() {
            self.valid.resize(self.len.div_ceil(8), 0xff);
            // Bits behind the last value say nothing yet.
            if let Some(last) = self
                .valid
                .last_mut()
                .filter(|_| !self.len.is_multiple_of(8))
            {
                *last = (1 << (self.len % 8)) - 1;
            }
        }
        self.valid.resize(len.div_ceil(8), 0);
        self.nulls += len - self.len;
        self.len = len;
        self.fill(len);
    }

    /// Gives absent values their place.
    fn fill(&mut self, len: usize) {
        match &mut self.data {
            Data::Bytes1(values) => values.resize(len, 0),
            Data::Bytes2(values) => values.resize(len, 0),
            Data::Bytes4(values) => values.resize(len, 0),
            Data::Bytes8(values) => values.resize(len, 0),
            Data::Floats(values) => values.resize(len, 0.0),
            Data::Bits(bits) => bits.resize(len.div_ceil(8), 0),
            Data::Blob { offsets, .. } | Data::List { offsets, .. } => {
                let end = offsets.last().copied().unwrap_or(0);
                offsets.resize(len + 1, end);
            }
            Data::Struct(members) => {
                for (_, member) in members {
                    member.pad(len);
                }
            }
        }
    }

    /// One value more, which is there.
    #[inline]
    fn grow(&mut self) {
        if !self.valid.is_empty() {
            if self.len.is_multiple_of(8) {
                self.valid.push(0);
            }
            self.valid[self.len / 8] |= 1 << (self.len % 8);
        }
        self.len += 1;
    }

    /// Appends the bits of a number, cut to the column's width.
    #[inline]
    pub fn push_bits(&mut self, bits: u64) {
        match &mut self.data {
            Data::Bytes1(values) => values.push(bits as u8),
            Data::Bytes2(values) => values.push(bits as u16),
            Data::Bytes4(values) => values.push(bits as u32),
            Data::Bytes8(values) => values.push(bits),
            _ => return self.pad(self.len + 1),
        }
        self.grow();
    }

    /// Appends a float.
    #[inline]
    pub fn push_float(&mut self, float: f64) {
        match &mut self.data {
            Data::Floats(values) => values.push(float),
            _ => return self.pad(self.len + 1),
        }
        self.grow();
    }

    /// Appends a truth value.
    pub fn push_bool(&mut self, truth: bool) {
        let Data::Bits(bits) = &mut self.data else {
            return self.pad(self.len + 1);
        };
        if self.len.is_multiple_of(8) {
            bits.push(0);
        }
        bits[self.len / 8] |= u8::from(truth) << (self.len % 8);
        self.grow();
    }

    /// Appends a text or bytes; what is no UTF-8 is replaced in a text.
    #[inline]
    pub fn push_blob(&mut self, value: &[u8]) {
        let Data::Blob {
            offsets,
            bytes,
            is_text,
        } = &mut self.data
        else {
            return self.pad(self.len + 1);
        };
        // Three bytes for each that is replaced.
        if value.len() > (BLOB_BYTES_MAX - bytes.len()) / 3 {
            return self.pad(self.len + 1);
        }
        match *is_text && !value.is_ascii() {
            true => bytes.extend_from_slice(String::from_utf8_lossy(value).as_bytes()),
            false => bytes.extend_from_slice(value),
        }
        offsets.push(bytes.len() as i32);
        self.grow();
    }

    /// Appends any value; one that does not fit the column's type is absent. A column of texts
    /// takes every value, as JSON when it is none.
    pub fn push_value(&mut self, value: &Value<'_>) {
        if matches!(self.data, Data::Blob { is_text: true, .. }) {
            return match value {
                Value::Text(text) => self.push_blob(text.as_bytes()),
                Value::Absent => self.pad(self.len + 1),
                value => {
                    let mut text = Vec::new();
                    json::value(value, &mut text);
                    self.push_blob(&text);
                }
            };
        }
        match value {
            Value::Bool(truth) if matches!(self.data, Data::Bits(_)) => self.push_bool(*truth),
            Value::Float(float) => self.push_float(*float),
            Value::Unsigned(number) if self.is_float() => self.push_float(*number as f64),
            value if self.is_float() => match value.as_i64() {
                Some(number) => self.push_float(number as f64),
                None => self.pad(self.len + 1),
            },
            Value::Blob(bytes) => self.push_blob(bytes),
            Value::Array(elements) => self.push_list(elements),
            Value::Struct(members) => self.push_struct(members),
            value => match value.as_u64() {
                Some(bits) => self.push_bits(bits),
                None => self.pad(self.len + 1),
            },
        }
    }

    fn is_float(&self) -> bool {
        matches!(self.data, Data::Floats(_))
    }

    fn push_list(&mut self, elements: &[Value<'_>]) {
        let Data::List { offsets, element } = &mut self.data else {
            return self.pad(self.len + 1);
        };
        if elements.len() > BLOB_BYTES_MAX - element.len {
            return self.pad(self.len + 1);
        }
        for value in elements {
            element.push_value(value);
        }
        offsets.push(element.len as i32);
        self.grow();
    }

    fn push_struct(&mut self, values: &[(&str, Value<'_>)]) {
        let Data::Struct(members) = &mut self.data else {
            return self.pad(self.len + 1);
        };
        for (name, member) in members {
            match values.iter().find(|(found, _)| found == name) {
                Some((_, value)) => member.push_value(value),
                None => member.pad(member.len + 1),
            }
        }
        self.grow();
    }

    /// About how many bytes it holds.
    pub fn size_bytes(&self) -> usize {
        match &self.data {
            Data::Bytes1(values) => values.len(),
            Data::Bytes2(values) => values.len() * 2,
            Data::Bytes4(values) => values.len() * 4,
            Data::Bytes8(values) => values.len() * 8,
            Data::Floats(values) => values.len() * 8,
            Data::Bits(bits) => bits.len(),
            Data::Blob { offsets, bytes, .. } => offsets.len() * 4 + bytes.len(),
            Data::List { offsets, element } => offsets.len() * 4 + element.size_bytes(),
            Data::Struct(members) => members.iter().map(|(_, m)| m.size_bytes()).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_absent_has_a_clear_bit_and_a_place() {
        let mut column = Column::new(&ColumnKind::Text);
        for text in ["a", "bc", "d", "e", "f", "g", "h", "i", "j"] {
            column.push_blob(text.as_bytes());
        }
        assert!(column.valid.is_empty(), "all are there");
        column.pad(12);
        column.push_blob(b"k\xff");
        assert_eq!((column.len, column.nulls), (13, 3));
        assert_eq!(column.valid, [0b1111_1111, 0b0001_0001]);
        let Data::Blob { offsets, bytes, .. } = &column.data else {
            panic!("{column:?}")
        };
        assert_eq!(bytes, "abcdefghijk\u{fffd}".as_bytes());
        assert_eq!(offsets, &[0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 14]);
    }

    #[test]
    fn a_column_of_texts_takes_every_value() {
        let mut column = Column::new(&ColumnKind::Text);
        let pair = Value::Struct(vec![("a", Value::Unsigned(u64::MAX)), ("b", Value::Absent)]);
        for value in [Value::Signed(-1), pair, Value::Bool(true)] {
            column.push_value(&value);
        }
        let Data::Blob { bytes, .. } = &column.data else {
            panic!("{column:?}")
        };
        assert_eq!(bytes, br#"-1{"a":18446744073709551615,"b":null}true"#);
    }

    #[test]
    fn lists_and_structures_keep_their_members_in_step() {
        let int = ColumnKind::Integer {
            bits: 16,
            signed: true,
        };
        let kind = ColumnKind::Struct(vec![
            ("list".to_owned(), ColumnKind::List(Box::new(int))),
            ("truth".to_owned(), ColumnKind::Bool),
        ]);
        let mut column = Column::new(&kind);
        let list = Value::Array(vec![Value::Signed(-2), Value::Absent]);
        column.push_value(&Value::Struct(vec![("list", list)]));
        column.pad(2);
        column.push_value(&Value::Struct(vec![("truth", Value::Bool(true))]));
        column.push_value(&Value::Text("of another type".into()));
        assert_eq!((column.len, column.valid.as_slice()), (4, &[0b0101][..]));
        let Data::Struct(members) = &column.data else {
            panic!("{column:?}")
        };
        assert_eq!([members[0].1.len, members[1].1.len], [4, 4]);
        let Data::List { offsets, element } = &members[0].1.data else {
            panic!("{column:?}")
        };
        assert_eq!(
            (offsets.as_slice(), element.nulls),
            (&[0, 2, 2, 2, 2][..], 1)
        );
        let Data::Bits(bits) = &members[1].1.data else {
            panic!("{column:?}")
        };
        assert_eq!((bits.as_slice(), members[1].1.nulls), (&[0b0100][..], 3));
    }
}
