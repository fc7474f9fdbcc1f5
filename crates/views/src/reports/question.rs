//! A question over one window, and what it found there.

use kernel_state::{Change, Kernel, Topics};

use super::table::{Span, Table};

/// A question over one window: it is told what changes, and answers in tables.
pub(crate) trait Question {
    /// What it is told of.
    fn topics(&self) -> Topics;
    /// Takes in a change of one of its topics.
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>);
    /// The window ends.
    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table>;
    /// What is left when the last table that was given is not whole: its next part, and what
    /// comes behind it.
    fn more(&mut self, _kernel: &Kernel, _span: Span) -> Option<Vec<Table>> {
        None
    }
}

/// What one report found in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Which of the reports that were asked for.
    pub report: usize,
    /// The window's first instant, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// Its last.
    pub end_ns: i64,
    /// Its tables, in the order of the report's kind; also empty ones.
    pub tables: Vec<Table>,
    /// Its first table goes on with the last one of the tick before, in the same window: a log
    /// comes in parts.
    pub continues: bool,
    /// Its last table goes on in the next tick.
    pub goes_on: bool,
}
