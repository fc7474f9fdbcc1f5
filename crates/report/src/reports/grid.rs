//! A table of texts, whatever it came from: columns as wide as what they hold.

use std::fmt::Write;

use views::reports::Table;

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
        self.part((true, true), &mut Vec::new())
    }

    /// A part of a table, and whether the table begins and ends with it. Its columns are as wide as
    /// what all parts so far hold.
    pub(super) fn part(&self, (begins, ends): (bool, bool), widths: &mut Vec<usize>) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        if begins {
            widths.clear();
        }
        let width = |place: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(place));
            let lengths = cells.map(|cell| cell.chars().count());
            lengths
                .chain([self.heads[place].0.chars().count()])
                .max()
                .unwrap_or(0)
        };
        widths.resize(self.heads.len(), 0);
        for (place, widest) in widths.iter_mut().enumerate() {
            *widest = width(place).max(*widest);
        }
        let line = |cells: &mut dyn Iterator<Item = &String>| {
            let mut text = String::new();
            for ((cell, (_, right)), width) in cells.zip(&self.heads).zip(&*widths) {
                let _ = match right {
                    true => write!(text, "{cell:>width$}  "),
                    false => write!(text, "{cell:<width$}  "),
                };
            }
            format!("{}\n", text.trim_end())
        };
        let mut out = String::new();
        if begins {
            let heads = line(&mut self.heads.iter().map(|head| &head.0));
            let all = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            let _ = writeln!(out, "{}\n{heads}{:-<all$}", self.title, "");
        }
        self.rows
            .iter()
            .for_each(|row| out.push_str(&line(&mut row.iter())));
        if ends {
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_table_stand_below_one_head_and_keep_its_columns() {
        let part = |cell: &str| Grid {
            title: "Title".into(),
            heads: vec![("A".into(), true), ("B".into(), false)],
            rows: vec![vec![cell.into(), "b".into()]],
        };
        let mut widths = Vec::new();
        let mut text = part("1000").part((true, false), &mut widths);
        text += &part("1").part((false, false), &mut widths);
        text += &part("100000").part((false, true), &mut widths);
        let expect = "Title\n   A  B\n-------\n1000  b\n   1  b\n100000  b\n\n";
        assert_eq!(text, expect);
        assert_eq!(part("1").part((true, true), &mut widths), part("1").text());
    }
}
