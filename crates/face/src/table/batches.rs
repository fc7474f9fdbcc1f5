//! Batches: as many selected events at a time as fit the memory that a batch may take.

use std::sync::{Arc, Mutex, PoisonError};

use event::{Result, TimeRange};
use trace::{Damage, Trace};

use super::arrow::{self, ArrowArray, ArrowArrayStream, ArrowSchema};
use super::column::Column;
use super::plan::Plan;
use crate::{Selection, Step, Walk};

/// Rows of a batch when nobody says, and of a table with so many columns that fewer must do.
const ROWS: usize = 1 << 16;
const ROWS_MIN: usize = 1 << 10;
/// What the fixed parts of a batch may take by default.
const FIXED_BYTES: usize = 16 << 20;
/// A batch ends when its texts, lists and structures are larger.
const BLOB_BYTES: usize = 32 << 20;
/// So many places are remembered; all are counted.
const PLACES_MAX: usize = 100;

/// What batches have passed so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows handed out.
    pub rows: u64,
    /// Events that the tracer counted as lost.
    pub lost_events: u64,
    /// How many holes there are.
    pub lost_places: u64,
    /// Of the first holes, when.
    pub lost_ranges: Vec<TimeRange>,
    /// How often bytes could not be understood.
    pub damage_count: u64,
    /// The first of these places.
    pub damages: Vec<Damage>,
}

/// Reads the selected events of a trace as a table.
pub struct Batches {
    walk: Walk,
    plan: Plan,
    rows_max: usize,
    /// By column, whether the last batch had values in it: the next one will have, too.
    was_filled: Vec<bool>,
    tally: Tally,
}

impl Batches {
    /// A table of the named columns, or of all that the selected events can have.
    ///
    /// Common columns are `time_ns` (the trace's clock), `wall_time`, `cpu` and `event`; all others
    /// are fields, by name. A field that has one of these names is a column with a `_` behind it.
    /// `rows_max` of zero leaves the size of a batch to us.
    ///
    /// # Errors
    /// As [`Walk::new`]; [`event::ErrorKind::NotFound`] for a column that no event has.
    pub fn new(
        trace: &Arc<Trace>,
        selection: Selection,
        columns: Option<&[String]>,
        rows_max: usize,
    ) -> Result<Batches> {
        let walk = Walk::new(trace, selection)?;
        let plan = Plan::new(trace, walk.program(), columns)?;
        let fitting = FIXED_BYTES / 8 / plan.columns.len().max(1);
        let rows_max = match rows_max {
            0 => fitting.clamp(ROWS_MIN, ROWS),
            // Offsets have 31 bits.
            rows => rows.min(i32::MAX as usize - 1),
        };
        Ok(Batches {
            was_filled: vec![false; plan.columns.len()],
            walk,
            plan,
            rows_max,
            tally: Tally::default(),
        })
    }

    /// What was passed so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The walk behind it.
    pub fn walk(&self) -> &Walk {
        &self.walk
    }

    /// The names of the columns, in their order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.plan.columns.iter().map(|column| &*column.name)
    }

    /// The columns of every batch, as the fields of a structure.
    pub fn schema(&self) -> ArrowSchema {
        let columns = self.plan.columns.iter();
        arrow::table_schema(columns.map(|column| (&*column.name, &column.kind)))
    }

    /// The next batch, a structure with a member for each column; none at the end.
    ///
    /// # Errors
    /// As [`Walk::advance`].
    pub fn next_batch(&mut self) -> Result<Option<ArrowArray>> {
        let kinds = self.plan.columns.iter().map(|column| &column.kind);
        let mut columns: Vec<Column> = kinds.map(Column::new).collect();
        let filled = columns.iter_mut().zip(&self.was_filled);
        for (column, _) in filled.filter(|(_, was_filled)| **was_filled) {
            column.reserve(self.rows_max.min(ROWS));
        }
        let rows = self.fill(&mut columns)?;
        for (column, was_filled) in columns.iter().zip(&mut self.was_filled) {
            *was_filled = column.len > 0;
        }
        if rows == 0 {
            return Ok(None);
        }
        // A column without any value stays empty: it costs nothing, however many there are.
        for column in columns.iter_mut().filter(|column| column.len > 0) {
            column.pad(rows);
        }
        self.tally.rows += rows as u64;
        let kinds = self.plan.columns.iter().map(|column| &column.kind);
        let columns = columns.into_iter().zip(kinds);
        Ok(Some(arrow::table(columns, rows, &self.plan.names)))
    }

    fn fill(&mut self, columns: &mut [Column]) -> Result<usize> {
        let (mut rows, mut blob_bytes) = (0, 0);
        let (plan, rows_max) = (&self.plan, self.rows_max);
        let trace = self.walk.trace().clone();
        loop {
            let step = self.walk.advance_while(|event| {
                blob_bytes += plan.add_row(&trace, event, columns, rows);
                rows += 1;
                rows < rows_max && blob_bytes < BLOB_BYTES
            })?;
            match step {
                Step::Event | Step::End => return Ok(rows),
                Step::Lost(lost) => {
                    self.tally.lost_places += 1;
                    self.tally.lost_events += lost.count.unwrap_or(0);
                    if self.tally.lost_ranges.len() < PLACES_MAX {
                        self.tally.lost_ranges.push(lost.range);
                    }
                }
                Step::Damage(damage) => {
                    self.tally.damage_count += 1;
                    if self.tally.damages.len() < PLACES_MAX {
                        self.tally.damages.push(damage);
                    }
                }
            }
        }
    }
}

/// The batches as a stream that other libraries read; its rows are taken from `batches`.
pub fn export_stream(batches: Arc<Mutex<Batches>>) -> ArrowArrayStream {
    let schema = {
        let batches = batches.clone();
        move || lock(&batches).schema()
    };
    arrow::stream(schema, move || lock(&batches).next_batch())
}

/// A panic in between leaves batches that still know where they are.
fn lock(batches: &Mutex<Batches>) -> std::sync::MutexGuard<'_, Batches> {
    batches.lock().unwrap_or_else(PoisonError::into_inner)
}
