//! Reports of others: whoever starts the server says which there are, and runs them.

use std::fmt;
use std::sync::Arc;

use event::Result;
use report::{LamiColumn, LamiTable};
use timeline::Index;

use crate::answers::{Report, ReportColumn, ReportName, ReportTable};
use crate::cells::{told, unit};

/// Rows of a table; what comes behind is counted.
const ROWS_MAX: usize = 1000;
const ABOUT: &str = "a program of yours";

type Run = dyn Fn((i64, i64)) -> Result<Vec<LamiTable>> + Send + Sync;

/// A report that somebody else makes, over a range in nanoseconds of the wall clock.
#[derive(Clone)]
pub struct ForeignReport {
    name: String,
    run: Arc<Run>,
}

impl fmt::Debug for ForeignReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ForeignReport({:?})", self.name)
    }
}

impl ForeignReport {
    /// A report of that name, which no client can change.
    pub fn new(
        name: &str,
        run: impl Fn((i64, i64)) -> Result<Vec<LamiTable>> + Send + Sync + 'static,
    ) -> ForeignReport {
        ForeignReport {
            name: name.to_owned(),
            run: Arc::new(run),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn about(&self) -> ReportName {
        ReportName {
            name: self.name.clone(),
            about: ABOUT.to_owned(),
        }
    }

    /// Its tables over a range, in the form of our own.
    pub(crate) fn tables(&self, range_ns: (i64, i64), index: &Index) -> Result<Report> {
        let found = (self.run)(range_ns)?;
        let tables = found
            .iter()
            .enumerate()
            .map(|(place, found)| table(place, found, index));
        Ok(Report {
            report: self.name.clone(),
            about: ABOUT.to_owned(),
            tables: tables.collect(),
        })
    }
}

fn table(place: usize, found: &LamiTable, index: &Index) -> ReportTable {
    let columns = found.columns.iter().enumerate();
    let rows = found.rows.iter().take(ROWS_MAX);
    ReportTable {
        table: place.to_string(),
        title: found.title.clone(),
        of: None,
        left_out: found.rows.len().saturating_sub(ROWS_MAX) as u64,
        columns: columns.map(column).collect(),
        rows: rows
            .map(|row| row.iter().map(|cell| told(cell, index)).collect())
            .collect(),
    }
}

fn column((place, column): (usize, &LamiColumn)) -> ReportColumn {
    let title = &column.title;
    let unit = unit(column.kind);
    ReportColumn {
        key: place.to_string(),
        // The page says the unit of those that have one of ours with each number.
        title: match column.unit.as_ref().filter(|_| unit.is_empty()) {
            Some(unit) => format!("{title} ({unit})"),
            None => title.clone(),
        },
        unit: unit.to_owned(),
    }
}
