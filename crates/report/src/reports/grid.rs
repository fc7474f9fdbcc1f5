//! A table of texts, whatever it came from: columns as wide as what they hold.

use std::fmt::Write;

use analysis::reports::Table;

use super::calendar::Calendar;
use super::plain_text::{cell_text, head, is_number, title};

/// A table whose cells are written out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// What it shows.
    pub title: String,
    /// The heads of the columns, each with whether numbers stand below it.
    pub heads: Vec<(String, bool)>,
    /// The rows, each with a cell per column.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    pub(super) fn of(table: &Table, calendar: Calendar) -> Grid {
        let columns = table.class.columns.iter();
        let rows = table.rows.iter();
        Grid {
            title: title(table),
            heads: columns
                .map(|column| (head(column), is_number(column.kind)))
                .collect(),
            rows: rows
                .map(|row| row.iter().map(|cell| cell_text(cell, calendar)).collect())
                .collect(),
        }
    }

    /// The table below its title; nothing when it has no rows.
    pub fn text(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let width = |place: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(place));
            let lengths = cells.map(|cell| cell.chars().count());
            lengths
                .chain([self.heads[place].0.chars().count()])
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &String>| {
            let mut text = String::new();
            for ((cell, (_, right)), width) in cells.zip(&self.heads).zip(&widths) {
                let _ = match right {
                    true => write!(text, "{cell:>width$}  "),
                    false => write!(text, "{cell:<width$}  "),
                };
            }
            format!("{}\n", text.trim_end())
        };
        let mut out = format!(
            "{}\n{}",
            self.title,
            line(&mut self.heads.iter().map(|head| &head.0))
        );
        let all = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        let _ = writeln!(out, "{:-<all$}", "");
        self.rows
            .iter()
            .for_each(|row| out.push_str(&line(&mut row.iter())));
        out.push('\n');
        out
    }
}
