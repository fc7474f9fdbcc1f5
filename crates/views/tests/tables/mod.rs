//! What a report finds in a small trace.

#![allow(dead_code)] // each test file uses its part

use testkit::Task;
use trace::Trace;
use views::reports::{Cell, REPORTS, Report, ReportOptions, Table, Tick, run_reports};

/// The report of this name.
pub fn named(name: &str) -> Report {
    let named = REPORTS.iter().find(|named| named.name == name);
    named.expect("there is such a report").report
}

/// What a report finds, window by window.
pub fn ticks(trace: &Trace, name: &str, options: &ReportOptions) -> Vec<Tick> {
    let mut ticks = Vec::new();
    run_reports(trace, &[named(name)], options, |tick| {
        ticks.push(tick);
        Ok(())
    })
    .expect("a trace in memory can be walked");
    ticks
}

/// The rows of one table of the only window.
pub fn rows(trace: &Trace, name: &str, options: &ReportOptions, table: &str) -> Vec<Vec<Cell>> {
    let ticks = ticks(trace, name, options);
    assert_eq!(ticks.len(), 1, "{name}");
    let of_class = |found: &&Table| found.class.name == table;
    let found = ticks[0].tables.iter().find(of_class);
    found.expect("the table is there").rows.clone()
}

/// A task as reports name it, when nothing said its process.
pub fn process(task: Task) -> Cell {
    Cell::Process {
        name: Some(task.comm.to_owned()),
        pid: None,
        tid: Some(task.tid),
    }
}
