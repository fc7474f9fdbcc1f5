//! One column that is being filled.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampNanosecondBuilder,
    UInt64Builder,
};
use arrow_schema::DataType;
use event::{Field, FieldId, FieldType, Value};
use trace::EventView;

/// A column with the field that it takes its values from.
pub(super) struct Column {
    field: FieldId,
    cells: Cells,
}

enum Cells {
    Signed(Int64Builder),
    Unsigned(UInt64Builder),
    Float(Float64Builder),
    Truth(BooleanBuilder),
    /// The text of the field.
    Text(StringBuilder),
    /// Labels, and JSON of what nests.
    Shown(StringBuilder),
    Time(TimestampNanosecondBuilder),
}

/// What columns that are no fields are given.
pub(super) enum Cell<'a> {
    Integer(Option<i64>),
    Text(&'a str),
}

impl Column {
    fn new(cells: Cells) -> Column {
        Column {
            field: FieldId(0),
            cells,
        }
    }

    pub fn time_ns() -> Column {
        Column::new(Cells::Signed(Int64Builder::new()))
    }

    pub fn cpu() -> Column {
        Column::time_ns()
    }

    pub fn wall_time() -> Column {
        let builder = TimestampNanosecondBuilder::new().with_timezone("UTC");
        Column::new(Cells::Time(builder))
    }

    pub fn text() -> Column {
        Column::new(Cells::Text(StringBuilder::new()))
    }

    /// The column of a field. Integers are as wide as can be, so that two traces whose fields
    /// differ in width are one table.
    pub fn of(place: usize, field: &Field) -> Column {
        let cells = match &field.ty {
            FieldType::Integer(int) if int.signed || int.size_bits < 64 => {
                Cells::Signed(Int64Builder::new())
            }
            FieldType::Integer(_) => Cells::Unsigned(UInt64Builder::new()),
            FieldType::Float { .. } => Cells::Float(Float64Builder::new()),
            FieldType::Bool(_) => Cells::Truth(BooleanBuilder::new()),
            FieldType::String | FieldType::Text { .. } => Cells::Text(StringBuilder::new()),
            _ => Cells::Shown(StringBuilder::new()),
        };
        Column {
            field: FieldId(place as u16),
            cells,
        }
    }

    pub fn data_type(&self) -> DataType {
        match self.cells {
            Cells::Signed(_) | Cells::Time(_) => DataType::Int64,
            Cells::Unsigned(_) => DataType::UInt64,
            Cells::Float(_) => DataType::Float64,
            Cells::Truth(_) => DataType::Boolean,
            Cells::Text(_) | Cells::Shown(_) => DataType::Utf8,
        }
    }

    /// Appends what is no field.
    pub fn append(&mut self, cell: &Cell<'_>) {
        match (&mut self.cells, cell) {
            (Cells::Signed(cells), Cell::Integer(number)) => cells.append_option(*number),
            (Cells::Time(cells), Cell::Integer(number)) => cells.append_option(*number),
            (Cells::Text(cells), Cell::Text(text)) => cells.append_value(text),
            (cells, _) => cells.append_null(),
        }
    }

    /// Appends the field's value of an event.
    pub fn append_field(&mut self, event: &EventView<'_>) {
        let field = self.field;
        match &mut self.cells {
            Cells::Signed(cells) => cells.append_value(event.i64(field)),
            Cells::Unsigned(cells) => cells.append_value(event.u64(field)),
            Cells::Float(cells) => cells.append_value(event.f64(field)),
            Cells::Truth(cells) => cells.append_value(event.i64(field) != 0),
            Cells::Text(cells) => cells.append_value(String::from_utf8_lossy(event.text(field))),
            Cells::Shown(cells) => match event.value(field) {
                Value::Absent => cells.append_null(),
                Value::Text(text) => cells.append_value(text),
                Value::Enum { label: Some(l), .. } => cells.append_value(l),
                Value::Enum { value, label: None } => cells.append_value(value.to_string()),
                value => {
                    let mut json = Vec::new();
                    event::json::value(&value, &mut json);
                    cells.append_value(String::from_utf8_lossy(&json));
                }
            },
            Cells::Time(cells) => cells.append_null(),
        }
    }

    /// The rows so far; the column is empty again.
    pub fn take(&mut self) -> ArrayRef {
        match &mut self.cells {
            Cells::Signed(cells) => Arc::new(cells.finish()),
            Cells::Unsigned(cells) => Arc::new(cells.finish()),
            Cells::Float(cells) => Arc::new(cells.finish()),
            Cells::Truth(cells) => Arc::new(cells.finish()),
            Cells::Text(cells) | Cells::Shown(cells) => Arc::new(cells.finish()),
            Cells::Time(cells) => Arc::new(cells.finish()),
        }
    }
}

impl Cells {
    fn append_null(&mut self) {
        match self {
            Cells::Signed(cells) => cells.append_null(),
            Cells::Unsigned(cells) => cells.append_null(),
            Cells::Float(cells) => cells.append_null(),
            Cells::Truth(cells) => cells.append_null(),
            Cells::Text(cells) | Cells::Shown(cells) => cells.append_null(),
            Cells::Time(cells) => cells.append_null(),
        }
    }
}
