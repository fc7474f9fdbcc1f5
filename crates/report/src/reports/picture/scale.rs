//! Cells as numbers, in the units of pictures.

use views::reports::{Cell, Column, Kind};

/// A cell as a number; none when it is none.
pub(super) fn number(cell: &Cell) -> Option<f64> {
    Some(match cell {
        Cell::Count(count) | Cell::Size(count) => *count as f64,
        Cell::Number(number) => *number as f64,
        Cell::Float(number) => *number,
        Cell::Ratio(share) => share * 100.0,
        Cell::Duration(ns) => *ns as f64 / 1000.0,
        Cell::DurationFloat(ns) => ns / 1000.0,
        _ => return None,
    })
}

/// The unit of what [`number`] makes of a column.
pub(super) fn unit(column: &Column) -> &'static str {
    match column.kind {
        Kind::Duration => "µs",
        Kind::Ratio => "%",
        Kind::Size => "bytes",
        _ => column.unit.unwrap_or(""),
    }
}
