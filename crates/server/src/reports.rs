//! The reports of `rtscope report`, over a range.

use std::sync::Arc;

use event::{Error, ErrorKind, Result};
use expr::Expr;
use serde_json::{Value, json};
use timeline::Index;
use views::reports::{
    Cell, Column, Kind, REPORTS, ReportOptions, Spill, Table, report_named, run_reports,
};

use crate::foreign::ForeignReport;
use crate::ledger::task_filter;
use crate::question::Words;
use crate::view::View;

/// Rows of a table; what comes behind is counted.
const ROWS_MAX: usize = 1000;

impl View {
    /// The names of all reports.
    pub(crate) fn report_names(&self) -> Value {
        let ours = REPORTS.iter();
        let ours = ours.map(|named| json!({"name": named.name, "about": named.about}));
        let foreign = self.options.foreign.iter().map(ForeignReport::about);
        json!({ "reports": ours.chain(foreign).collect::<Vec<_>>() })
    }

    /// What one report says of a range.
    pub(crate) fn report(&self, words: &Words, range_ns: (i64, i64)) -> Result<Arc<Value>> {
        let name = words.text("name");
        let mut foreign = self.options.foreign.iter();
        if let Some(foreign) = foreign.find(|foreign| foreign.name() == name) {
            let question = format!("{name} {range_ns:?}");
            return self.reports.get(&question, || foreign.tables(range_ns));
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
            limit: words.count("limit", 100, ROWS_MAX as i64)?.max(1),
            spill: Spill::new(tempfile::tempfile),
            ..ReportOptions::default()
        };
        let question = format!(
            "{name} {range_ns:?} {} {} {} {}",
            options.limit,
            words.text("tables"),
            words.text("tasks"),
            words.text("filter")
        );
        let mut asked = named.report;
        // As `--freq` does: how often which value.
        asked.views.freq |= words.text("tables") == "freq";
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
            Ok(json!({ "report": named.name, "about": named.about, "tables": tables }))
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

fn begin(table: &Table, index: &Index) -> Value {
    let columns = table.class.columns.iter().map(|column: &Column| {
        let unit = match column.kind {
            Kind::Duration => "ns",
            Kind::Time => "time",
            Kind::Size => "bytes",
            Kind::Ratio => "share",
            _ => "",
        };
        json!({"key": column.key, "title": column.title, "unit": unit})
    });
    let mut made = json!({
        "table": table.class.name,
        "title": table.class.title,
        "of": table.subtitle,
        "columns": columns.collect::<Vec<_>>(),
        "rows": [],
        "left_out": 0,
    });
    add(&mut made, table, index);
    made
}

fn add(made: &mut Value, table: &Table, index: &Index) {
    let Some(rows) = made["rows"].as_array_mut() else {
        return;
    };
    let room = ROWS_MAX.saturating_sub(rows.len());
    let cells = |row: &Vec<Cell>| row.iter().map(|cell| value(cell, index)).collect::<Value>();
    rows.extend(table.rows.iter().take(room).map(cells));
    let before = made["left_out"].as_u64().unwrap_or(0);
    let left_out = table.rows.len().saturating_sub(room) as u64;
    made["left_out"] = json!(before + left_out);
}

/// A cell; times are after the trace's first event.
fn value(cell: &Cell, index: &Index) -> Value {
    let after = |wall_ns: i64| wall_ns.saturating_sub(index.begin_ns);
    match cell {
        Cell::Bool(truth) => json!(truth),
        Cell::Count(count) | Cell::Size(count) => json!(count),
        Cell::Number(number) | Cell::Duration(number) | Cell::Fd(number) => json!(number),
        Cell::Time(wall_ns) => json!(after(*wall_ns)),
        Cell::Float(number) | Cell::Ratio(number) => json!(number),
        Cell::DurationFloat(ns) => json!(ns.round() as i64),
        Cell::Text(text)
        | Cell::Syscall(text)
        | Cell::Path(text)
        | Cell::Disk(text)
        | Cell::NetIf(text) => json!(text),
        Cell::Range(begin_ns, end_ns) => {
            json!({"begin_ns": after(*begin_ns), "end_ns": after(*end_ns)})
        }
        Cell::Process { name, tid, pid } => json!({"name": name, "tid": tid, "pid": pid}),
        Cell::Irq { hard, nr, name } => json!({"hard": hard, "nr": nr, "name": name}),
        Cell::Cpu(cpu) => json!(cpu),
        _ => Value::Null,
    }
}
