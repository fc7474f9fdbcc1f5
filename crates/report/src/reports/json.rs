//! Reports as our own JSON: schema `rtscope.report` version 1.

use analysis::periods::{Captured, Kept};
use analysis::reports::{Cell, Kind, Pass, Table, Tick};
use serde_json::{Value, json};

/// All that one pass found; `names` are those of the reports.
pub fn report_json(names: &[&str], ticks: &[Tick], pass: &Pass) -> Value {
    let tick = |tick: &Tick| {
        json!({
            "report": names.get(tick.report).copied().unwrap_or_default(),
            "begin_wall_ns": tick.begin_ns,
            "end_wall_ns": tick.end_ns,
            "tables": tick.tables.iter().map(table).collect::<Vec<Value>>(),
        })
    };
    json!({
        "schema": "rtscope.report",
        "version": 1,
        "events": pass.events,
        "lost_events": pass.lost,
        "lost_ranges": pass.holes,
        "unreadable_places": pass.damages,
        "windows": ticks.iter().map(tick).collect::<Vec<Value>>(),
    })
}

fn table(table: &Table) -> Value {
    let columns = table.class.columns;
    let key = |kind: Kind, key: &str| match kind {
        Kind::Duration => format!("{key}_ns"),
        Kind::Time => format!("{key}_wall_ns"),
        Kind::Size => format!("{key}_bytes"),
        _ => key.to_owned(),
    };
    let row = |row: &Vec<Cell>| -> Value {
        let cells = columns.iter().zip(row);
        let pairs = cells.map(|(column, cell)| {
            let value = match (column.kind, cell) {
                // Bounds of counts and shares are scaled like those of durations.
                (Kind::Number, Cell::DurationFloat(bound)) => (bound / 1000.0).into(),
                (_, cell) => value(cell),
            };
            (key(column.kind, column.key), value)
        });
        Value::Object(pairs.collect())
    };
    json!({
        "table": table.class.name,
        "title": table.class.title,
        "of": table.subtitle,
        "group": table.group,
        "rows": table.rows.iter().map(row).collect::<Vec<Value>>(),
    })
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Bool(truth) => (*truth).into(),
        Cell::Count(count) | Cell::Size(count) => (*count).into(),
        Cell::Number(number) | Cell::Time(number) | Cell::Duration(number) => (*number).into(),
        Cell::Fd(number) => (*number).into(),
        Cell::Float(number) | Cell::Ratio(number) => (*number).into(),
        Cell::DurationFloat(ns) => (ns.round() as i64).into(),
        Cell::Text(text)
        | Cell::Syscall(text)
        | Cell::Path(text)
        | Cell::Disk(text)
        | Cell::NetIf(text) => text.as_str().into(),
        Cell::Range(begin_ns, end_ns) => {
            json!({ "begin_wall_ns": begin_ns, "end_wall_ns": end_ns })
        }
        Cell::Process { name, pid, tid } => json!({ "comm": name, "pid": pid, "tid": tid }),
        Cell::Irq { hard, nr, name } => json!({ "hard": hard, "nr": nr, "name": name }),
        Cell::Cpu(cpu) => (*cpu).into(),
        Cell::Captures(captures) => captured(captures),
        _ => Value::Null,
    }
}

/// By name; what lies beyond 64 bits is a text.
fn captured(captures: &Captured) -> Value {
    let one = |(name, value): &(String, Option<Kept>)| {
        let value = match value {
            None => Value::Null,
            Some(Kept::Float(value)) => (*value).into(),
            Some(Kept::Integer(value)) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => value.into(),
                (_, Ok(value)) => value.into(),
                _ => value.to_string().into(),
            },
            Some(text) => text.to_string().into(),
        };
        (name.clone(), value)
    };
    Value::Object(captures.iter().map(one).collect())
}
