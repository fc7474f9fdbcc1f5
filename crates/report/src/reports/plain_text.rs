//! Titles, heads and cells of tables as people read them: units stand in the heads.

use views::reports::{Cell, Column, Kind, Table};

use super::calendar::Calendar;

/// The title of a table, with what sets it apart.
pub(super) fn title(table: &Table) -> String {
    match &table.subtitle {
        Some(subtitle) => format!("{}: {subtitle}", table.class.title),
        None => table.class.title.to_owned(),
    }
}

/// Numbers stand to the right.
pub(super) fn is_number(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Number | Kind::Ratio | Kind::Duration | Kind::Size | Kind::Cpu | Kind::Fd
    )
}

/// The name of a column with its unit.
pub(super) fn head(column: &Column) -> String {
    // Counts name what they count, which the title does too.
    let unit = column.unit.filter(|unit| *unit == "Hz");
    head_with(column.title, column.kind, unit)
}

/// The same of a title; `unit` is that of numbers that are of no kind with a unit.
pub(super) fn head_with(title: &str, kind: Kind, unit: Option<&str>) -> String {
    let unit = match kind {
        Kind::Duration => Some("µs"),
        Kind::Ratio => Some("%"),
        Kind::Size => Some("bytes"),
        _ => unit,
    };
    match unit {
        Some(unit) => format!("{title} ({unit})"),
        None => title.to_owned(),
    }
}

/// A cell as people read it, in the unit of its column's head.
pub(super) fn cell_text(cell: &Cell, calendar: Calendar) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Unknown => "?".to_owned(),
        Cell::Bool(truth) => truth.to_string(),
        Cell::Count(count) | Cell::Size(count) => count.to_string(),
        Cell::Number(number) | Cell::Fd(number) => number.to_string(),
        Cell::Float(number) => format!("{number:.3}"),
        Cell::Text(text)
        | Cell::Syscall(text)
        | Cell::Path(text)
        | Cell::Disk(text)
        | Cell::NetIf(text) => text.clone(),
        Cell::Ratio(share) => format!("{:.2}", share * 100.0),
        Cell::Time(ns) => calendar.time(*ns),
        Cell::Duration(ns) => format!("{:.3}", *ns as f64 / 1000.0),
        // Bounds of counts and shares are scaled like those of durations.
        Cell::DurationFloat(ns) => format!("{:.3}", ns / 1000.0),
        Cell::Range(begin_ns, end_ns) => calendar.range(*begin_ns, *end_ns),
        Cell::Process { name, tid, .. } => {
            let name = name.as_deref().unwrap_or("unknown");
            match tid {
                Some(tid) => format!("{name} ({tid})"),
                None => name.to_owned(),
            }
        }
        Cell::Irq { hard, nr, name } => match (hard, name.as_str()) {
            (true, "") => format!("IRQ {nr}"),
            (true, name) => format!("IRQ {nr} {name}"),
            (false, name) => name.to_owned(),
        },
        Cell::Cpu(cpu) => cpu.to_string(),
        Cell::Captures(captures) => {
            let one = |(name, value): &(String, Option<_>)| match value {
                Some(value) => format!("{name} = {value}"),
                None => format!("{name} = ?"),
            };
            let captures: Vec<String> = captures.iter().map(one).collect();
            captures.join(", ")
        }
        Cell::Results(all) => {
            let one = |(name, count): &(String, u64)| format!("{count} {name}");
            let all: Vec<String> = all.iter().map(one).collect();
            all.join(", ")
        }
        _ => String::new(),
    }
}
