//! Reports of others: whoever starts the server says which there are, and runs them.

use std::fmt;
use std::sync::Arc;

use event::Result;
use report::Grid;

use crate::answers::{Cell, Report, ReportColumn, ReportName, ReportTable};

/// Rows of a table; what comes behind is counted.
const ROWS_MAX: usize = 1000;
const ABOUT: &str = "a program of yours";

type Run = dyn Fn((i64, i64)) -> Result<Vec<Grid>> + Send + Sync;

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
        run: impl Fn((i64, i64)) -> Result<Vec<Grid>> + Send + Sync + 'static,
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
    pub(crate) fn tables(&self, range_ns: (i64, i64)) -> Result<Report> {
        let grids = (self.run)(range_ns)?;
        let tables = grids
            .iter()
            .enumerate()
            .map(|(place, grid)| table(place, grid));
        Ok(Report {
            report: self.name.clone(),
            about: ABOUT.to_owned(),
            tables: tables.collect(),
        })
    }
}

fn table(place: usize, grid: &Grid) -> ReportTable {
    let heads = grid.heads.iter().enumerate();
    let columns = heads.map(|(at, (title, is_number))| ReportColumn {
        key: at.to_string(),
        title: title.clone(),
        unit: if *is_number { "number" } else { "" }.to_owned(),
    });
    let cells = |row: &Vec<String>| row.iter().cloned().map(Cell::Text).collect();
    ReportTable {
        table: place.to_string(),
        title: grid.title.clone(),
        of: None,
        left_out: grid.rows.len().saturating_sub(ROWS_MAX) as u64,
        columns: columns.collect(),
        rows: grid.rows.iter().take(ROWS_MAX).map(cells).collect(),
    }
}
