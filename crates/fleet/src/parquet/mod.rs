//! A file of Parquet: a table whose columns are integers, instants, truth values, texts or lists of
//! integers; one group of rows, one page a column, compressed by zstd.
//!
//! Every column but a list is optional. The numbers are those of parquet-format 2.

mod levels;
mod thrift;

use std::io;

use self::levels::Levels;
use self::thrift::Struct;

const MAGIC: &[u8; 4] = b"PAR1";
const ZSTD_LEVEL: i32 = 3;
const CODEC_ZSTD: i32 = 6;
const ENCODING_PLAIN: i32 = 0;
const ENCODING_RLE: i32 = 3;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const REPEATED: i32 = 2;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    /// Microseconds since 1970, UTC.
    Time,
    Truth,
    Text,
    /// Integers; an empty list is one without any.
    List,
}

impl Kind {
    /// The physical type.
    const fn physical(self) -> i32 {
        match self {
            Kind::Truth => 0,
            Kind::Integer | Kind::Time | Kind::List => 2,
            Kind::Text => 6,
        }
    }

    /// What the physical type means, where it says more.
    const fn converted(self) -> Option<i32> {
        match self {
            Kind::Text => Some(0),
            Kind::List => Some(3),
            Kind::Time => Some(10),
            Kind::Integer | Kind::Truth => None,
        }
    }
}

/// One value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    None,
    Integer(i64),
    /// In nanoseconds.
    Time(i64),
    Truth(bool),
    Text(&'a str),
    List(&'a [i64]),
}

impl<'a> Cell<'a> {
    pub fn text(text: Option<&'a str>) -> Cell<'a> {
        text.map_or(Cell::None, Cell::Text)
    }

    pub fn integer(number: Option<i64>) -> Cell<'a> {
        number.map_or(Cell::None, Cell::Integer)
    }
}

/// A column while it is filled.
struct Column {
    name: &'static str,
    kind: Kind,
    /// As the page has them; truth values a byte each until the end.
    values: Vec<u8>,
    defined: Levels,
    repeated: Levels,
}

/// A table while it is filled.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: usize,
}

/// Where a column's page is in the file.
struct Chunk {
    offset: usize,
    bytes: usize,
    uncompressed: usize,
    values: usize,
}

impl Table {
    pub fn new(schema: &[(&'static str, Kind)]) -> Table {
        let column = |(name, kind): &(&'static str, Kind)| Column {
            name,
            kind: *kind,
            values: Vec::new(),
            defined: Levels::default(),
            repeated: Levels::default(),
        };
        Table {
            columns: schema.iter().map(column).collect(),
            rows: 0,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a row: a cell for each column. What does not fit its column is none.
    pub fn push(&mut self, row: &[Cell<'_>]) {
        debug_assert_eq!(row.len(), self.columns.len());
        let nothing = std::iter::repeat(&Cell::None);
        for (column, cell) in self.columns.iter_mut().zip(row.iter().chain(nothing)) {
            column.push(cell);
        }
        self.rows += 1;
    }

    /// The file's bytes; `facts` stand in its footer.
    ///
    /// # Errors
    /// When memory for compressing it cannot be had.
    pub fn finish(self, facts: &[(&str, &str)]) -> io::Result<Vec<u8>> {
        let mut file = MAGIC.to_vec();
        let mut chunks = Vec::new();
        for column in &self.columns {
            chunks.push(column.write(&mut file)?);
        }
        let footer = footer(&self.columns, &chunks, self.rows, facts);
        file.extend_from_slice(&footer);
        file.extend_from_slice(&(footer.len() as u32).to_le_bytes());
        file.extend_from_slice(MAGIC);
        Ok(file)
    }
}

impl Column {
    fn push(&mut self, cell: &Cell<'_>) {
        match (self.kind, cell) {
            (Kind::Integer, Cell::Integer(number)) => self.number(*number),
            (Kind::Time, Cell::Time(ns)) => self.number(ns.div_euclid(1000)),
            (Kind::Truth, Cell::Truth(truth)) => self.values.push(u8::from(*truth)),
            (Kind::Text, Cell::Text(text)) => {
                let length = text.len() as u32;
                self.values.extend_from_slice(&length.to_le_bytes());
                self.values.extend_from_slice(text.as_bytes());
            }
            (Kind::List, Cell::List([first, rest @ ..])) => {
                self.repeated.push(false, 1);
                self.repeated.push(true, rest.len());
                self.defined.push(true, rest.len());
                self.number(*first);
                rest.iter().for_each(|number| self.number(*number));
            }
            _ => {
                self.repeated.push(false, 1);
                return self.defined.push(false, 1);
            }
        }
        self.defined.push(true, 1);
    }

    fn number(&mut self, number: i64) {
        self.values.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes the only page.
    fn write(&self, file: &mut Vec<u8>) -> io::Result<Chunk> {
        let mut page = Vec::with_capacity(self.values.len() + 64);
        if self.kind == Kind::List {
            self.repeated.write(&mut page);
        }
        self.defined.write(&mut page);
        match self.kind {
            Kind::Truth => page.extend(self.values.chunks(8).map(|eight| {
                let bits = eight.iter().enumerate();
                bits.fold(0, |byte, (place, bit)| byte | bit << place)
            })),
            _ => page.extend_from_slice(&self.values),
        }
        let packed = zstd::bulk::compress(&page, ZSTD_LEVEL)?;
        let values = self.defined.len();
        let mut data = Struct::default();
        data.i32(1, values as i32);
        data.i32(2, ENCODING_PLAIN);
        data.i32(3, ENCODING_RLE);
        data.i32(4, ENCODING_RLE);
        let mut header = Struct::default();
        header.i32(1, 0); // a page of data
        header.i32(2, page.len() as i32);
        header.i32(3, packed.len() as i32);
        header.structure(5, data);
        let header = header.finish();
        let offset = file.len();
        file.extend_from_slice(&header);
        file.extend_from_slice(&packed);
        Ok(Chunk {
            offset,
            bytes: header.len() + packed.len(),
            uncompressed: header.len() + page.len(),
            values,
        })
    }

    /// What it is in the schema: an element, or three of a list.
    fn elements(&self) -> Vec<Struct> {
        let leaf = |name: &str, repetition: i32, converted: Option<i32>| {
            let mut leaf = Struct::default();
            leaf.i32(1, self.kind.physical());
            leaf.i32(3, repetition);
            leaf.text(4, name);
            if let Some(converted) = converted {
                leaf.i32(6, converted);
            }
            leaf
        };
        let group = |name: &str, repetition: i32, converted: Option<i32>| {
            let mut group = Struct::default();
            group.i32(3, repetition);
            group.text(4, name);
            group.i32(5, 1); // children
            if let Some(converted) = converted {
                group.i32(6, converted);
            }
            group
        };
        match self.kind {
            Kind::List => vec![
                group(self.name, REQUIRED, self.kind.converted()),
                group("list", REPEATED, None),
                leaf("element", REQUIRED, None),
            ],
            _ => vec![leaf(self.name, OPTIONAL, self.kind.converted())],
        }
    }

    fn facts(&self, chunk: &Chunk) -> Struct {
        let mut path = vec![self.name];
        if self.kind == Kind::List {
            path.extend(["list", "element"]);
        }
        let mut facts = Struct::default();
        facts.i32(1, self.kind.physical());
        facts.i32s(2, &[ENCODING_PLAIN, ENCODING_RLE]);
        facts.texts(3, &path);
        facts.i32(4, CODEC_ZSTD);
        facts.i64(5, chunk.values as i64);
        facts.i64(6, chunk.uncompressed as i64);
        facts.i64(7, chunk.bytes as i64);
        facts.i64(9, chunk.offset as i64);
        let mut column = Struct::default();
        column.i64(2, chunk.offset as i64);
        column.structure(3, facts);
        column
    }
}

fn footer(columns: &[Column], chunks: &[Chunk], rows: usize, facts: &[(&str, &str)]) -> Vec<u8> {
    let mut root = Struct::default();
    root.text(4, "schema");
    root.i32(5, columns.len() as i32);
    let mut schema = vec![root];
    schema.extend(columns.iter().flat_map(Column::elements));
    let pairs = columns.iter().zip(chunks);
    let mut group = Struct::default();
    group.structures(
        1,
        pairs.map(|(column, chunk)| column.facts(chunk)).collect(),
    );
    let bytes: usize = chunks.iter().map(|chunk| chunk.uncompressed).sum();
    group.i64(2, bytes as i64);
    group.i64(3, rows as i64);
    let fact = |(key, value): &(&str, &str)| {
        let mut fact = Struct::default();
        fact.text(1, key);
        fact.text(2, value);
        fact
    };
    let mut footer = Struct::default();
    footer.i32(1, 1); // version
    footer.structures(2, schema);
    footer.i64(3, rows as i64);
    footer.structures(4, vec![group]);
    footer.structures(5, facts.iter().map(fact).collect());
    footer.text(6, concat!("rtscope version ", env!("CARGO_PKG_VERSION")));
    footer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(kind: Kind, cells: &[Cell<'_>]) -> Vec<u8> {
        let mut table = Table::new(&[("c", kind)]);
        cells.iter().for_each(|cell| table.push(&[*cell]));
        let mut file = Vec::new();
        let chunk = table.columns[0].write(&mut file).expect("memory");
        // The frame of zstd begins with its magic number.
        let frame = file
            .windows(4)
            .position(|four| four == [0x28, 0xb5, 0x2f, 0xfd]);
        let frame = frame.expect("a frame");
        assert_eq!(chunk.bytes, file.len());
        zstd::bulk::decompress(&file[frame..], 1 << 20).expect("a page")
    }

    #[test]
    fn a_page_has_its_levels_and_then_its_values() {
        let check = |kind: Kind, cells: &[Cell<'_>], expect: &[u8]| {
            assert_eq!(page_of(kind, cells), expect, "{kind:?} {cells:?}");
        };
        let integer = |number: i64| number.to_le_bytes();
        let levels = [2, 0, 0, 0, 4, 1];
        check(
            Kind::Integer,
            &[Cell::Integer(-1), Cell::Integer(2)],
            &[&levels[..], &integer(-1), &integer(2)].concat(),
        );
        check(
            Kind::Text,
            &[Cell::Text("ab"), Cell::None],
            &[4, 0, 0, 0, 2, 1, 2, 0, 2, 0, 0, 0, b'a', b'b'],
        );
        check(Kind::Time, &[Cell::None], &[2, 0, 0, 0, 2, 0]);
        let truths = [true, false, true, true, true, true, true, true, true];
        let truths: Vec<_> = truths.into_iter().map(Cell::Truth).collect();
        check(Kind::Truth, &truths, &[2, 0, 0, 0, 18, 1, 0xfd, 1]);
        // Before 1970 too, a microsecond begins at its lower end.
        check(
            Kind::Time,
            &[Cell::Time(-1)],
            &[&[2, 0, 0, 0, 2, 1][..], &integer(-1)].concat(),
        );
    }

    #[test]
    fn a_list_begins_with_a_level_of_zero_and_an_empty_one_has_no_value() {
        let page = page_of(
            Kind::List,
            &[Cell::List(&[7, 8, 9]), Cell::List(&[]), Cell::List(&[5])],
        );
        let repeated = [6, 0, 0, 0, 2, 0, 4, 1, 4, 0];
        let defined = [6, 0, 0, 0, 6, 1, 2, 0, 2, 1];
        let numbers = [7i64, 8, 9, 5].map(i64::to_le_bytes).concat();
        assert_eq!(page, [&repeated[..], &defined, &numbers].concat());
    }

    #[test]
    fn a_file_ends_with_its_footer_the_length_of_that_and_the_magic() {
        let mut table = Table::new(&[("a", Kind::Integer), ("b", Kind::List)]);
        table.push(&[Cell::Integer(1), Cell::List(&[1, 2])]);
        assert_eq!(table.rows(), 1);
        let file = table.finish(&[("key", "value")]).expect("memory");
        assert!(file.starts_with(MAGIC) && file.ends_with(MAGIC));
        let tail = file.len() - 8;
        let length = u32::from_le_bytes(file[tail..tail + 4].try_into().expect("four"));
        let footer = &file[tail - length as usize..tail];
        // Field 1, an i32: version 1, zigzag.
        assert_eq!(footer[..2], [0x15, 2]);
        let names = String::from_utf8_lossy(footer);
        for name in [
            "schema",
            "list",
            "element",
            "key",
            "value",
            "rtscope version",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }
}
