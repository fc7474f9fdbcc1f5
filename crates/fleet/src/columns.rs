//! A table with columns of integers, instants, truth values, texts or lists of integers, as a file
//! of Parquet: one group of rows, compressed by zstd.
//!
//! Every column but a list is optional.

use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

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
    /// The column in the schema.
    fn column(self, name: &str) -> Result<Type> {
        let leaf = Type::primitive_type_builder;
        let leaf = match self {
            Kind::Integer => leaf(name, Physical::INT64),
            Kind::Time => {
                leaf(name, Physical::INT64).with_converted_type(ConvertedType::TIMESTAMP_MICROS)
            }
            Kind::Truth => leaf(name, Physical::BOOLEAN),
            Kind::Text => leaf(name, Physical::BYTE_ARRAY).with_converted_type(ConvertedType::UTF8),
            Kind::List => {
                let element = leaf("element", Physical::INT64);
                let element = element.with_repetition(Repetition::REQUIRED).build()?;
                let list = Type::group_type_builder("list")
                    .with_repetition(Repetition::REPEATED)
                    .with_fields(vec![Arc::new(element)]);
                return Type::group_type_builder(name)
                    .with_repetition(Repetition::REQUIRED)
                    .with_converted_type(ConvertedType::LIST)
                    .with_fields(vec![Arc::new(list.build()?)])
                    .build();
            }
        };
        leaf.with_repetition(Repetition::OPTIONAL).build()
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

/// A column while it is filled. Levels are those of Parquet: whether a value is there, and whether
/// it goes on with the list before it.
struct Column {
    name: &'static str,
    kind: Kind,
    integers: Vec<i64>,
    truths: Vec<bool>,
    texts: Vec<ByteArray>,
    defined: Vec<i16>,
    repeated: Vec<i16>,
}

/// A table while it is filled.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: usize,
}

impl Table {
    pub fn new(schema: &[(&'static str, Kind)]) -> Table {
        let column = |(name, kind): &(&'static str, Kind)| Column {
            name,
            kind: *kind,
            integers: Vec::new(),
            truths: Vec::new(),
            texts: Vec::new(),
            defined: Vec::new(),
            repeated: Vec::new(),
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
    /// When it cannot be compressed.
    pub fn finish(self, facts: &[(&str, &str)]) -> Result<Vec<u8>> {
        let columns = self.columns.iter();
        let fields = columns.map(|column| column.kind.column(column.name).map(Arc::new));
        let schema = Type::group_type_builder("schema").with_fields(fields.collect::<Result<_>>()?);
        let fact = |(key, value): &(&str, &str)| KeyValue::new((*key).into(), (*value).to_owned());
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            // Reads of a fleet take whole files; their names have the day and the host.
            .set_statistics_enabled(EnabledStatistics::None)
            .set_key_value_metadata(Some(facts.iter().map(fact).collect()))
            .set_created_by(concat!("rtscope version ", env!("CARGO_PKG_VERSION")).into());
        let properties = Arc::new(properties.build());
        let schema = Arc::new(schema.build()?);
        let mut file = SerializedFileWriter::new(Vec::new(), schema, properties)?;
        let mut group = file.next_row_group()?;
        for column in &self.columns {
            let Some(mut writer) = group.next_column()? else {
                return Err(ParquetError::General("a column is missing".into()));
            };
            column.write(writer.untyped())?;
            writer.close()?;
        }
        group.close()?;
        file.into_inner()
    }
}

impl Column {
    fn push(&mut self, cell: &Cell<'_>) {
        match (self.kind, cell) {
            (Kind::Integer, Cell::Integer(number)) => self.integers.push(*number),
            (Kind::Time, Cell::Time(ns)) => self.integers.push(ns.div_euclid(1000)),
            (Kind::Truth, Cell::Truth(truth)) => self.truths.push(*truth),
            (Kind::Text, Cell::Text(text)) => self.texts.push((*text).into()),
            (Kind::List, Cell::List(list)) if !list.is_empty() => {
                self.integers.extend_from_slice(list);
                self.defined.extend(list.iter().map(|_| 1));
                self.repeated.push(0);
                self.repeated.extend(list[1..].iter().map(|_| 1));
                return;
            }
            _ => {
                self.repeated.push(0);
                self.defined.push(0);
                return;
            }
        }
        self.repeated.push(0);
        self.defined.push(1);
    }

    fn write(&self, writer: &mut ColumnWriter<'_>) -> Result<()> {
        let defined = Some(&self.defined[..]);
        let repeated = (self.kind == Kind::List).then_some(&self.repeated[..]);
        match writer {
            ColumnWriter::Int64ColumnWriter(to) => {
                to.write_batch(&self.integers, defined, repeated)
            }
            ColumnWriter::BoolColumnWriter(to) => to.write_batch(&self.truths, defined, repeated),
            ColumnWriter::ByteArrayColumnWriter(to) => {
                to.write_batch(&self.texts, defined, repeated)
            }
            _ => Err(ParquetError::General("a column of another type".into())),
        }
        .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Row;

    use super::*;

    fn read(bytes: &[u8]) -> SerializedFileReader<File> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("room");
        SerializedFileReader::new(file).expect("a file of Parquet")
    }

    fn rows(kind: Kind, cells: &[Cell<'_>]) -> Vec<String> {
        let mut table = Table::new(&[("c", kind)]);
        cells.iter().for_each(|cell| table.push(&[*cell]));
        assert_eq!(table.rows(), cells.len());
        let file = read(&table.finish(&[]).expect("written"));
        let rows = file.get_row_iter(None).expect("rows");
        let shown = |row: Result<Row>| row.expect("a row").to_string();
        rows.map(shown).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let check = |kind: Kind, cells: &[Cell<'_>], expect: &[&str]| {
            assert_eq!(rows(kind, cells), expect, "{kind:?}");
        };
        check(
            Kind::Integer,
            &[Cell::Integer(-1), Cell::None, Cell::Integer(i64::MAX)],
            &["{c: -1}", "{c: null}", "{c: 9223372036854775807}"],
        );
        check(
            Kind::Text,
            &[Cell::Text("ä\n"), Cell::Integer(1), Cell::Text("")],
            &["{c: \"ä\n\"}", "{c: null}", "{c: \"\"}"],
        );
        check(
            Kind::Truth,
            &[Cell::Truth(true), Cell::None, Cell::Truth(false)],
            &["{c: true}", "{c: null}", "{c: false}"],
        );
        check(
            Kind::List,
            &[Cell::List(&[7, 8]), Cell::List(&[]), Cell::List(&[5])],
            &["{c: [7, 8]}", "{c: []}", "{c: [5]}"],
        );
    }

    #[test]
    fn before_1970_too_a_microsecond_begins_at_its_lower_end() {
        let check = |ns: i64, expect_us: i64| {
            let mut column = Table::new(&[("c", Kind::Time)]).columns.remove(0);
            column.push(&Cell::Time(ns));
            assert_eq!(column.integers, [expect_us], "{ns}");
        };
        check(1999, 1);
        check(-1, -1);
        check(0, 0);
    }

    #[test]
    fn the_footer_says_what_it_was_told() {
        let mut table = Table::new(&[("a", Kind::Integer), ("b", Kind::List)]);
        table.push(&[Cell::Integer(1), Cell::List(&[1, 2])]);
        let file = read(&table.finish(&[("key", "value")]).expect("written"));
        let facts = file.metadata().file_metadata();
        let known = facts.key_value_metadata().expect("facts");
        assert_eq!(known[0].value.as_deref(), Some("value"));
        assert_eq!((facts.num_rows(), known[0].key.as_str()), (1, "key"));
        assert!(
            facts
                .created_by()
                .is_some_and(|by| by.starts_with("rtscope version "))
        );
    }
}
