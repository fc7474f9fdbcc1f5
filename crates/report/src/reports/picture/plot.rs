//! A value over time: what stands out is seen.

use views::reports::{Cell, Table};

use super::bars::amount;
use super::canvas::{Canvas, WIDTH};
use super::scale::{number, unit};
use crate::reports::calendar::Calendar;
use crate::reports::plain_text::cell_text;

const HEIGHT: f64 = 240.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 24.0;
/// The last point is often the one that matters: it is drawn whole.
const RIGHT: f64 = WIDTH - 4.0;
/// More points than a picture has room for are drawn as the greatest of each column.
const COLUMNS: usize = 880;

/// The row with the greatest value of each column, and that value.
fn greatest(table: &Table, range: usize, value: usize) -> Vec<Option<(f64, usize)>> {
    let whole_ns = (table.end_ns - table.begin_ns).max(1) as f64;
    let mut columns: Vec<Option<(f64, usize)>> = vec![None; COLUMNS + 1];
    for (place, row) in table.rows.iter().enumerate() {
        let at_ns = match row[range] {
            Cell::Range(_, end_ns) => end_ns,
            Cell::Time(ns) => ns,
            _ => continue,
        };
        let Some(value) = number(&row[value]) else {
            continue;
        };
        let share = ((at_ns - table.begin_ns) as f64 / whole_ns).clamp(0.0, 1.0);
        let column = &mut columns[(share * COLUMNS as f64) as usize];
        if column.is_none_or(|(before, _)| value > before) {
            *column = Some((value, place));
        }
    }
    columns
}

/// Leaves the rows that are drawn.
pub(super) fn thin(table: &mut Table, range: usize, value: usize) {
    let columns = greatest(table, range, value);
    let rows = columns.into_iter().flatten();
    table.rows = rows
        .map(|(_, place)| std::mem::take(&mut table.rows[place]))
        .collect();
}

pub(super) fn draw(table: &Table, range: usize, value: usize, canvas: &mut Canvas) {
    let columns = greatest(table, range, value);
    let max = columns
        .iter()
        .flatten()
        .map(|point| point.0)
        .fold(0.0, f64::max);
    let bottom = TOP + HEIGHT;
    let column = &table.class.columns[value];
    canvas.text(
        (LEFT, 14.0),
        "",
        &format!("{} ({})", column.title, unit(column)),
    );
    for part in [0.25, 0.5, 0.75, 1.0] {
        let y = bottom - HEIGHT * part;
        canvas.line((LEFT, y), (WIDTH, y), "grid");
        canvas.text((LEFT - 6.0, y + 4.0), "end", &amount(max * part));
    }
    canvas.line((LEFT, bottom), (WIDTH, bottom), "axis");
    for (place, point) in columns.iter().enumerate() {
        let Some((value, row)) = point else {
            continue;
        };
        let x = LEFT + (RIGHT - LEFT) * place as f64 / COLUMNS as f64;
        let y = bottom - if max > 0.0 { HEIGHT * value / max } else { 0.0 };
        canvas.line((x, bottom), (x, y), "stem");
        let when = cell_text(&table.rows[*row][range], Calendar::default());
        canvas.point(
            (x, y),
            &format!("{} {} {when}", amount(*value), unit(column)),
        );
    }
    axis(table, bottom, LEFT, canvas);
}

/// The window's begin and its length.
pub(super) fn axis(table: &Table, bottom: f64, left: f64, canvas: &mut Canvas) {
    let begin = Calendar::default().time(table.begin_ns);
    let seconds = (table.end_ns - table.begin_ns) as f64 / 1e9;
    canvas.text((left, bottom + 16.0), "", &begin);
    canvas.text((WIDTH, bottom + 16.0), "end", &format!("+{seconds:.6} s"));
}
