//! Reports of others: whoever starts the server says which there are, and runs them.

use std::fmt;
use std::sync::Arc;

use event::Result;
use report::Grid;
use serde_json::{Value, json};

/// Rows of a table; what comes behind is counted.
const ROWS_MAX: usize = 1000;

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

    pub(crate) fn about(&self) -> Value {
        json!({"name": self.name, "about": "a program of yours"})
    }

    /// Its tables over a range, in the form of our own.
    pub(crate) fn tables(&self, range_ns: (i64, i64)) -> Result<Value> {
        let grids = (self.run)(range_ns)?;
        let tables = grids
            .iter()
            .enumerate()
            .map(|(place, grid)| table(place, grid));
        Ok(json!({ "report": self.name, "tables": tables.collect::<Vec<_>>() }))
    }
}

fn table(place: usize, grid: &Grid) -> Value {
    let columns = grid
        .heads
        .iter()
        .enumerate()
        .map(|(at, (title, is_number))| {
            let unit = if *is_number { "number" } else { "" };
            json!({"key": at.to_string(), "title": title, "unit": unit})
        });
    json!({
        "table": place.to_string(),
        "title": grid.title,
        "of": null,
        "columns": columns.collect::<Vec<_>>(),
        "rows": grid.rows.iter().take(ROWS_MAX).collect::<Vec<_>>(),
        "left_out": grid.rows.len().saturating_sub(ROWS_MAX),
    })
}
