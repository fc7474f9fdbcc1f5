//! The score of a run: a table for people, a list of what fell short, JSON for programs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::judge::{GRADES, Grade, Judgement};

/// Version of the layout of `score.json`.
const SCHEMA_VERSION: u32 = 1;

/// One scenario somewhere.
pub struct Cell {
    /// `host`, or a kernel and a profile.
    pub place: String,
    pub fault: String,
    pub name: String,
    /// That it is answered wrongly is known.
    pub known: bool,
    pub judgement: Judgement,
}

/// All of a run.
#[derive(Default)]
pub struct Score {
    cells: Vec<Cell>,
}

impl Score {
    pub fn add(&mut self, cell: Cell) {
        self.cells.push(cell);
    }

    /// The names of those that were answered wrongly, which was not known.
    pub fn wrong(&self) -> Vec<&str> {
        let wrong = |cell: &&Cell| cell.judgement.grade == Grade::Wrong && !cell.known;
        let cells = self.cells.iter().filter(wrong);
        cells.map(|cell| cell.name.as_str()).collect()
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// A table with a line for each value of `key`.
    fn table(&self, head: &str, key: impl Fn(&Cell) -> String) -> String {
        let mut lines: BTreeMap<String, Vec<Grade>> = BTreeMap::new();
        for cell in &self.cells {
            lines
                .entry(key(cell))
                .or_default()
                .push(cell.judgement.grade);
        }
        let all = self.cells.iter().map(|cell| cell.judgement.grade).collect();
        let columns: String = GRADES
            .iter()
            .map(|(_, name)| format!(" {name} |"))
            .collect();
        let mut text = format!(
            "| {head} | cells |{columns}\n|---|{}\n",
            "---:|".repeat(GRADES.len() + 1)
        );
        for (name, grades) in lines.iter().chain([(&"all".to_owned(), &all)]) {
            let count = |grade: &Grade| grades.iter().filter(|one| *one == grade).count();
            let counts = GRADES
                .iter()
                .map(|(grade, _)| format!(" {} |", count(grade)));
            // Writing to a String cannot fail, here and below.
            writeln!(
                text,
                "| {name} | {} |{}",
                grades.len(),
                counts.collect::<String>()
            )
            .ok();
        }
        text
    }

    /// The tables, and below them each cell that is neither right nor silent as it must be.
    pub fn text(&self) -> String {
        let mut text = self.table("place", |cell| cell.place.clone());
        text += "\n";
        text += &self.table("fault", |cell| cell.fault.clone());
        text += "\n";
        let ledger = |cell: &Cell| match &cell.judgement.hit {
            None => "no hit".to_owned(),
            Some(hit) => hit.grade.clone(),
        };
        text += &self.table("ledger", ledger);
        text += "\n";
        for cell in &self.cells {
            let Judgement { grade, why, .. } = &cell.judgement;
            if !matches!(grade, Grade::Right | Grade::Silent) {
                let known = if cell.known { ", as known" } else { "" };
                let Cell { name, place, .. } = cell;
                writeln!(text, "- {grade:?}{known}: {name} ({place}): {why}").ok();
            }
        }
        text
    }

    /// Writes all cells to the file `path`.
    pub fn write(&self, path: &Path) -> Result<()> {
        let cell = |cell: &Cell| {
            json!({
                "place": cell.place, "fault": cell.fault, "name": cell.name,
                "grade": format!("{:?}", cell.judgement.grade), "why": cell.judgement.why,
                "ledger": cell.judgement.hit.as_ref().map(|hit| &hit.grade),
            })
        };
        let cells: Vec<Value> = self.cells.iter().map(cell).collect();
        let value = json!({
            "schema": "rtscope.scenarios", "version": SCHEMA_VERSION, "cells": cells,
        });
        std::fs::write(path, format!("{value:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::hit::Hit;
    use super::*;

    #[test]
    fn each_cell_counts_once_in_each_table_and_what_falls_short_has_its_reason() {
        let mut score = Score::default();
        for (fault, grade) in [
            ("hog", Grade::Right),
            ("hog", Grade::Wrong),
            ("stop", Grade::Open),
        ] {
            score.add(Cell {
                place: "host".to_owned(),
                fault: fault.to_owned(),
                name: format!("{fault}-1-2"),
                known: false,
                judgement: Judgement {
                    grade,
                    why: "so".to_owned(),
                    hit: Some(Hit {
                        grade: "complete".to_owned(),
                        ..Hit::default()
                    }),
                },
            });
        }
        let text = score.text();
        for line in [
            "| host | 3 | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 1 |\n",
            "| hog | 2 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |\n",
            "| stop | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 0 |\n",
            "| complete | 3 | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 1 |\n",
            "- Wrong: hog-1-2 (host): so\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("- Right"), "{text}");
        assert_eq!((score.len(), score.wrong()), (3, vec!["hog-1-2"]));
    }
}
