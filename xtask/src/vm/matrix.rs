//! What became of each cell of the matrix: a table for people, JSON for programs.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::guest::Spent;
use super::score::Score;

/// Version of the layout of `matrix.json`.
const SCHEMA_VERSION: u32 = 1;

/// One case on one kernel.
pub struct Cell {
    /// The case's name.
    pub case: String,
    /// The kernel's name.
    pub kernel: String,
    /// Claims that held: checks of the guest's script and scenarios.
    pub held: usize,
    /// How it ended.
    pub end: End,
    /// What all its boots took together.
    pub spent: Spent,
    /// Boots repeated because of the emulator's known crash.
    pub retries: u32,
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// Every claim held.
    Passed,
    /// Why it failed.
    Failed(String),
    /// Why it could not run here.
    Skipped(String),
}

impl End {
    fn word(&self) -> &'static str {
        match self {
            End::Passed => "passed",
            End::Failed(_) => "failed",
            End::Skipped(_) => "skipped",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            End::Passed => None,
            End::Failed(reason) | End::Skipped(reason) => Some(reason),
        }
    }
}

impl Cell {
    /// As its folder of artefacts is called.
    pub fn name(&self) -> String {
        name(&self.case, &self.kernel)
    }

    fn json(&self) -> Value {
        json!({
            "case": self.case,
            "kernel": self.kernel,
            "result": self.end.word(),
            "reason": self.end.reason(),
            "claims_held": self.held,
            "wall_ms": self.spent.wall.as_millis() as u64,
            "cpu_ms": self.spent.cpu.as_millis() as u64,
            "boots_repeated": self.retries,
        })
    }
}

/// The name of the cell of `case` on `kernel`.
pub fn name(case: &str, kernel: &str) -> String {
    format!("{case}-{kernel}")
}

/// All cells so far.
#[derive(Default)]
pub struct Matrix {
    cells: Vec<Cell>,
    /// What became of the scenarios in them.
    pub score: Score,
}

impl Matrix {
    /// Adds what became of a cell.
    pub fn add(&mut self, cell: Cell) {
        self.cells.push(cell);
    }

    /// The cells, in the order in which they ended.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// How many cells passed, failed and were skipped.
    pub fn counts(&self) -> [usize; 3] {
        let count = |word: &str| {
            let ends = self.cells.iter().filter(|cell| cell.end.word() == word);
            ends.count()
        };
        [count("passed"), count("failed"), count("skipped")]
    }

    /// A line for each cell, the reasons, and the sums.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:28} {:8} {:>6} {:>8} {:>8} {:>8}\n",
            "cell", "result", "claims", "wall [s]", "cpu [s]", "repeated"
        );
        // Writing to a String cannot fail, here and below.
        for cell in &self.cells {
            let _ = writeln!(
                text,
                "{:28} {:8} {:6} {:8.1} {:8.1} {:8}",
                cell.name(),
                cell.end.word(),
                cell.held,
                cell.spent.wall.as_secs_f64(),
                cell.spent.cpu.as_secs_f64(),
                cell.retries
            );
        }
        for cell in &self.cells {
            if let Some(reason) = cell.end.reason() {
                let _ = writeln!(text, "{} {}: {reason}", cell.end.word(), cell.name());
            }
        }
        if !self.score.is_empty() {
            text += &self.score.text();
        }
        let [passed, failed, skipped] = self.counts();
        let retries: u32 = self.cells.iter().map(|cell| cell.retries).sum();
        let mut spent = Spent::default();
        for cell in &self.cells {
            spent.add(cell.spent);
        }
        let _ = writeln!(
            text,
            "vm: {passed} passed, {failed} failed, {skipped} skipped in {:.0} s ({:.0} s of CPU \
             time); {retries} boots repeated after the emulator's known crash",
            spent.wall.as_secs_f64(),
            spent.cpu.as_secs_f64()
        );
        text
    }

    /// Writes the cells to the file `path`.
    pub fn write(&self, path: &Path) -> Result<()> {
        let cells: Vec<Value> = self.cells.iter().map(Cell::json).collect();
        let value = json!({"schema": "rtscope.vm", "version": SCHEMA_VERSION, "cells": cells});
        std::fs::write(path, format!("{value:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn matrix() -> Matrix {
        let cell = |case: &str, end: End, held| Cell {
            case: case.into(),
            kernel: "6.1-rt".into(),
            held,
            end,
            spent: Spent {
                wall: Duration::from_millis(1_500),
                cpu: Duration::from_millis(1_100),
            },
            retries: 1,
        };
        let mut matrix = Matrix::default();
        matrix.add(cell("smoke", End::Passed, 20));
        matrix.add(cell("exact", End::Failed("they differ".into()), 0));
        matrix.add(cell("doctor", End::Skipped("no emulator".into()), 0));
        matrix
    }

    #[test]
    fn every_cell_has_a_line_and_every_failure_and_skip_its_reason() {
        let text = matrix().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            "smoke-6.1-rt                 passed       20      1.5      1.1        1"
        );
        assert_eq!(lines[4], "failed exact-6.1-rt: they differ");
        assert_eq!(lines[5], "skipped doctor-6.1-rt: no emulator");
        assert!(
            lines[6].starts_with("vm: 1 passed, 1 failed, 1 skipped in 4 s (3 s"),
            "{text}"
        );
        assert!(lines[6].contains("; 3 boots repeated"), "{text}");
    }

    #[test]
    fn a_program_reads_the_same_cells() {
        let cell = matrix().cells()[1].json();
        assert_eq!(cell["result"], "failed");
        assert_eq!(cell["reason"], "they differ");
        assert_eq!(cell["wall_ms"], 1_500);
        assert_eq!(matrix().cells()[0].json()["reason"], Value::Null);
    }
}
