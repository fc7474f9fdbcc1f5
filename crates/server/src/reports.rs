//! The reports of `rtscope report`, over a range.

use std::sync::Arc;

use event::{Error, ErrorKind, Result};
use expr::Expr;
use expr::period::Periods;
use timeline::Index;
use views::reports::{
    Cell as Found, Column, REPORTS, ReportOptions, Spill, Table, report_named, run_reports,
};

use crate::answers::{Report, ReportColumn, ReportName, ReportTable, Reports};
use crate::cells::{told, unit};
use crate::foreign::ForeignReport;
use crate::ledger::task_filter;
use crate::question::Words;
use crate::view::View;

/// Rows of a table; what comes behind is counted.
const ROWS_MAX: usize = 1000;

impl View {
    /// The names of all reports.
    pub(crate) fn report_names(&self) -> Reports {
        let ours = REPORTS.iter().map(|named| ReportName {
            name: named.name.to_owned(),
            about: named.about.to_owned(),
        });
        let foreign = self.options.foreign.iter().map(ForeignReport::about);
        Reports {
            reports: ours.chain(foreign).collect(),
        }
    }

    /// What one report says of a range.
    pub(crate) fn report(&self, words: &Words, range_ns: (i64, i64)) -> Result<Arc<Report>> {
        let name = words.text("name");
        let mut foreign = self.options.foreign.iter();
        if let Some(foreign) = foreign.find(|foreign| foreign.name() == name) {
            let question = format!("{name} {range_ns:?}");
            return self
                .reports
                .get(&question, || foreign.tables(range_ns, &self.index()));
        }
        let Some(named) = report_named(name) else {
            let error = Error::new(ErrorKind::NotFound, "no such report");
            let found: String = name.chars().take(80).collect();
            return Err(error
                .found(format!("'{found}'"))
                .fix("look at /api/v1/reports"));
        };
        let index = self.index();
        let options = ReportOptions {
            begin_ns: Some(range_ns.0),
            end_ns: Some(range_ns.1),
            tasks: task_filter(words.text("tasks"))?,
            events: events(words.text("filter"))?,
            periods: periods(words.text("periods"))?,
            limit: words.count("limit", 100, ROWS_MAX as i64)?.max(1),
            spill: Spill::new(tempfile::tempfile),
            ..ReportOptions::default()
        };
        let question = format!(
            "{name} {range_ns:?} {} {} {} {} {}",
            options.limit,
            words.text("tables"),
            words.text("tasks"),
            words.text("filter"),
            words.text("periods")
        );
        let mut asked = named.report;
        // As `--freq` does: how often which value.
        asked.views.freq |= words.one_of("tables", &["", "freq"])? == "freq";
        self.reports.get(&question, || {
            let mut tables = Vec::new();
            run_reports(&self.trace, &[asked], &options, |tick| {
                for (place, table) in tick.tables.iter().enumerate() {
                    match tables.last_mut() {
                        Some(last) if place == 0 && tick.continues => add(last, table, &index),
                        _ => tables.push(begin(table, &index)),
                    }
                }
                Ok(())
            })?;
            Ok(Report {
                report: named.name.to_owned(),
                about: named.about.to_owned(),
                tables,
            })
        })
    }
}

/// The events that the report on intervals is about.
fn events(filter: &str) -> Result<Option<Expr>> {
    if filter.is_empty() {
        return Ok(None);
    }
    crate::events::bounded(filter)?;
    Expr::parse(filter).map(Some)
}

/// Those that reports on periods are about: a definition a line.
fn periods(text: &str) -> Result<Periods> {
    crate::events::bounded(text)?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.collect();
    Periods::parse(&lines, &[] as &[&str])
}

fn begin(table: &Table, index: &Index) -> ReportTable {
    let columns = table.class.columns.iter();
    let columns = columns.map(|column: &Column| ReportColumn {
        key: column.key.to_owned(),
        title: column.title.to_owned(),
        unit: unit(column.kind).to_owned(),
    });
    let mut made = ReportTable {
        table: table.class.name.to_owned(),
        title: table.class.title.to_owned(),
        of: table.subtitle.clone(),
        left_out: 0,
        columns: columns.collect(),
        rows: Vec::new(),
    };
    add(&mut made, table, index);
    made
}

fn add(made: &mut ReportTable, table: &Table, index: &Index) {
    let room = ROWS_MAX.saturating_sub(made.rows.len());
    let cells = |row: &Vec<Found>| row.iter().map(|cell| told(cell, index)).collect();
    made.rows.extend(table.rows.iter().take(room).map(cells));
    made.left_out += table.rows.len().saturating_sub(room) as u64;
}
