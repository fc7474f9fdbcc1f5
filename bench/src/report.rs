//! What a benchmark found: tables, bars and remarks; as markdown and as JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::machine::Machine;

const SCHEMA: &str = "rtscope.bench";
const SCHEMA_VERSION: u32 = 1;

/// One subject's results.
#[derive(Debug)]
pub struct Report {
    /// The heading.
    pub title: &'static str,
    /// What to type to have it again.
    pub command: String,
    /// Under what it was measured, in sentences.
    pub setting: String,
    /// The figures.
    pub tables: Vec<Table>,
    /// What was promised, and what was found.
    pub bars: Vec<Bar>,
    /// What a reader must know besides.
    pub remarks: Vec<String>,
}

/// Figures of one kind. Units stand in the columns' names.
#[derive(Debug, Default)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// As many cells a row as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A figure or a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A name.
    Text(String),
    /// A number, and how many decimals of it mean something.
    Number(f64, usize),
    /// Not measured.
    None,
}

/// A promise: the figure found should not exceed the limit.
#[derive(Debug)]
pub struct Bar {
    /// Of what.
    pub what: String,
    /// Found; none where it could not be measured.
    pub found: Option<f64>,
    /// Promised.
    pub limit: f64,
    /// Of both.
    pub unit: &'static str,
}

/// A text cell.
pub fn text(words: impl Into<String>) -> Cell {
    Cell::Text(words.into())
}

/// A number cell.
pub fn number(value: f64, decimals: usize) -> Cell {
    Cell::Number(value, decimals)
}

impl Cell {
    fn markdown(&self) -> String {
        match self {
            Cell::Text(words) => words.clone(),
            Cell::Number(value, decimals) => grouped(*value, *decimals),
            Cell::None => "-".into(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Text(words) => words.as_str().into(),
            Cell::Number(value, _) => json!(value),
            Cell::None => Value::Null,
        }
    }
}

/// The number with spaces between groups of three digits before the point.
fn grouped(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let (sign, digits) = plain.strip_prefix('-').map_or(("", &*plain), |d| ("-", d));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut text = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && whole.len() > 4 {
            text.push(' ');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

impl Bar {
    fn verdict(&self) -> &'static str {
        match self.found {
            Some(found) if found <= self.limit => "met",
            Some(_) => "not met",
            None => "not measured",
        }
    }

    fn cells(&self) -> Vec<Cell> {
        let decimals = if self.limit < 10.0 { 2 } else { 1 };
        let found = self.found.map_or("-".into(), |found| {
            format!("{} {}", grouped(found, decimals), self.unit)
        });
        let limit = format!("{} {}", (self.limit * 100.0).round() / 100.0, self.unit);
        [self.what.clone(), limit, found, self.verdict().into()]
            .map(text)
            .into()
    }
}

impl Table {
    fn markdown(&self) -> String {
        let mut lines = format!("| {} |\n", self.columns.join(" | "));
        lines.push_str(&"|---".repeat(self.columns.len()));
        lines.push_str("|\n");
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(Cell::markdown).collect();
            let _ = writeln!(lines, "| {} |", cells.join(" | "));
        }
        lines
    }

    fn json(&self) -> Value {
        let row = |cells: &Vec<Cell>| -> Value {
            let fields = self.columns.iter().zip(cells);
            fields
                .map(|(name, cell)| ((*name).to_owned(), cell.json()))
                .collect::<Map<_, _>>()
                .into()
        };
        self.rows.iter().map(row).collect()
    }
}

impl Report {
    /// A section of docs/benchmarks.md.
    pub fn markdown(&self) -> String {
        let mut lines = format!("## {}\n\n`{}`\n\n", self.title, self.command);
        let _ = writeln!(lines, "{}", self.setting);
        for table in &self.tables {
            let _ = write!(lines, "\n{}", table.markdown());
        }
        if !self.bars.is_empty() {
            let bars = Table {
                columns: vec!["bar", "at most", "found", ""],
                rows: self.bars.iter().map(Bar::cells).collect(),
            };
            let _ = write!(lines, "\n{}", bars.markdown());
        }
        if !self.remarks.is_empty() {
            lines.push('\n');
        }
        for remark in &self.remarks {
            let _ = writeln!(lines, "- {remark}");
        }
        lines
    }

    fn json(&self) -> Value {
        let bar = |bar: &Bar| {
            json!({"what": bar.what, "found": bar.found, "limit": bar.limit,
            "unit": bar.unit, "verdict": bar.verdict()})
        };
        json!({
            "title": self.title,
            "command": self.command,
            "setting": self.setting,
            "tables": self.tables.iter().map(Table::json).collect::<Vec<_>>(),
            "bars": self.bars.iter().map(bar).collect::<Vec<_>>(),
            "remarks": self.remarks,
        })
    }
}

/// All results as one document.
pub fn json(machine: &Machine, reports: &[Report]) -> Value {
    json!({
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "machine": machine.json(),
        "reports": reports.iter().map(Report::json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_grouped_and_keeps_its_decimals() {
        let check = |value: f64, decimals: usize, expect: &str| {
            assert_eq!(grouped(value, decimals), expect);
        };
        check(1234567.0, 0, "1 234 567");
        check(1234.0, 0, "1234");
        check(-51234.56, 1, "-51 234.6");
        check(0.056, 2, "0.06");
    }

    #[test]
    fn a_bar_is_met_not_met_or_not_measured() {
        let check = |found: Option<f64>, expect: &str| {
            let bar = Bar {
                what: "x".into(),
                found,
                limit: 3.0,
                unit: "%",
            };
            assert_eq!(bar.verdict(), expect, "{found:?}");
        };
        check(Some(3.0), "met");
        check(Some(3.01), "not met");
        check(None, "not measured");
    }

    #[test]
    fn a_table_is_the_same_in_markdown_and_in_json() {
        let table = Table {
            columns: vec!["program", "p99, ns"],
            rows: vec![
                vec![text("sched_waking"), number(152.0, 0)],
                vec![text("-"), Cell::None],
            ],
        };
        let expect = "| program | p99, ns |\n|---|---|\n| sched_waking | 152 |\n| - | - |\n";
        assert_eq!(table.markdown(), expect);
        let expect = json!([{"program": "sched_waking", "p99, ns": 152.0},
            {"program": "-", "p99, ns": null}]);
        assert_eq!(table.json(), expect);
    }
}
