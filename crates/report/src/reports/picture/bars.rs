//! Bars: one for each row, or standing side by side as a distribution.

use views::reports::{Cell, Table};

use super::canvas::{Canvas, WIDTH};
use super::scale::{number, unit};
use crate::reports::calendar::Calendar;
use crate::reports::plain_text::cell_text;

/// More bars than a page shows help nobody; the table has the rest.
const BARS_MAX: usize = 30;
const LINE: f64 = 18.0;
const LABEL_WIDTH: f64 = 330.0;
const VALUE_WIDTH: f64 = 110.0;

pub(super) fn draw(table: &Table, labels: usize, value: usize, canvas: &mut Canvas) {
    let rows = table.rows.iter().take(BARS_MAX);
    let bars: Vec<(String, f64)> = rows
        .filter_map(|row| Some((label_text(&row[..labels]), number(&row[value])?)))
        .collect();
    let column = &table.class.columns[value];
    let max = bars.iter().map(|bar| bar.1).fold(0.0, f64::max);
    let room = WIDTH - LABEL_WIDTH - VALUE_WIDTH;
    canvas.text(
        (LABEL_WIDTH, 14.0),
        "",
        &format!("{} ({})", column.title, unit(column)),
    );
    for (place, (label, value)) in bars.iter().enumerate() {
        let top = 20.0 + place as f64 * LINE;
        let width = if max > 0.0 {
            room * value.max(0.0) / max
        } else {
            0.0
        };
        canvas.text((LABEL_WIDTH - 6.0, top + 13.0), "end", &cut(label, 46));
        canvas.rect((LABEL_WIDTH, top + 2.0), (width, LINE - 4.0), "bar", label);
        let at = (LABEL_WIDTH + width + 6.0, top + 13.0);
        canvas.text(at, "", &amount(*value));
    }
}

fn label_text(cells: &[Cell]) -> String {
    let text = |cell: &Cell| match cell {
        Cell::Cpu(cpu) => format!("CPU {cpu}"),
        cell => cell_text(cell, Calendar::default()),
    };
    let texts = cells.iter().map(text).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join(" · ")
}

/// The first so many letters.
pub(super) fn cut(text: &str, letters: usize) -> String {
    match text.chars().count() > letters {
        true => text.chars().take(letters - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// A number with as many digits as help.
pub(super) fn amount(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 || v.fract() == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

const HEIGHT: f64 = 220.0;
const LEFT: f64 = 70.0;

pub(super) fn draw_histogram(table: &Table, canvas: &mut Canvas) {
    let [lower, upper, times] = table.class.columns else {
        return;
    };
    let bin =
        |[lower, upper, times]: [&Cell; 3]| Some((number(lower)?, number(upper)?, number(times)?));
    let cells = table.cells([lower.key, upper.key, times.key]);
    let bins: Vec<(f64, f64, f64)> = cells.filter_map(bin).collect();
    let max = bins.iter().map(|bin| bin.2).fold(0.0, f64::max);
    let bottom = 24.0 + HEIGHT;
    canvas.text(
        (LEFT, 14.0),
        "",
        &format!("{} (most: {})", times.title, amount(max)),
    );
    let width = (WIDTH - LEFT) / bins.len().max(1) as f64;
    for (place, (lower, upper, count)) in bins.iter().enumerate() {
        let height = if max > 0.0 { HEIGHT * count / max } else { 0.0 };
        let left = LEFT + place as f64 * width;
        let hint = format!(
            "{} to {}: {}",
            amount(*lower),
            amount(*upper),
            amount(*count)
        );
        let gap = (width * 0.1).min(1.0);
        canvas.rect((left, bottom - height), (width - gap, height), "bar", &hint);
    }
    canvas.line((LEFT, bottom), (WIDTH, bottom), "axis");
    if let (Some(first), Some(last)) = (bins.first(), bins.last()) {
        let from = format!("{} {}", amount(first.0), unit(lower));
        canvas.text((LEFT, bottom + 16.0), "", &from);
        let to = format!("{} {}", amount(last.1), unit(lower));
        canvas.text((WIDTH, bottom + 16.0), "end", &to);
    }
}
