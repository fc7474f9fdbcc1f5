//! LAMI 1.0: the JSON that Trace Compass and others read from external analyses.

use std::fmt::Write as _;
use std::io::{self, Read, Seek, Write};

use serde_json::{Map, Value, json};
use views::periods::{Captured, Kept};
use views::reports::{Cell, Column, Kind, Report, ReportKind, Summary, Table, TableClass, Tick};

use super::cells::results;

/// The version of LAMI that is spoken.
pub const LAMI_VERSION: (u64, u64) = (1, 0);

/// What a kind of reports says of itself.
pub fn lami_metadata(kind: &ReportKind) -> Value {
    let about = &kind.lami;
    let classes = kind.classes.iter().map(|class| {
        let columns: Vec<Value> = class.columns.iter().map(column).collect();
        let value = json!({ "title": class.title, "column-descriptions": columns });
        (class.name.to_owned(), value)
    });
    let tags: Vec<&str> = ["linux-kernel"]
        .into_iter()
        .chain(about.tags.iter().copied())
        .collect();
    json!({
        "mi-version": { "major": LAMI_VERSION.0, "minor": LAMI_VERSION.1 },
        "version": version(env!("CARGO_PKG_VERSION")),
        "title": about.title,
        "description": about.description,
        "authors": ["rtscope"],
        "url": "",
        "tags": tags,
        "table-classes": classes.collect::<Map<String, Value>>(),
    })
}

fn version(text: &str) -> Value {
    let mut parts = text
        .splitn(3, '.')
        .map(|part| part.parse::<u64>().unwrap_or(0));
    let mut part = || parts.next().unwrap_or(0);
    json!({ "major": part(), "minor": part(), "patch": part(), "extra": "" })
}

fn column(column: &Column) -> Value {
    let mut value = json!({ "title": column.title, "class": class(column.kind) });
    if let Some(unit) = column.unit {
        value["unit"] = unit.into();
    }
    value
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Number => "number",
        Kind::Text => "string",
        Kind::Ratio => "ratio",
        Kind::Time => "timestamp",
        Kind::Duration => "duration",
        Kind::Size => "size",
        Kind::Range => "time-range",
        Kind::Syscall => "syscall",
        Kind::Process => "process",
        Kind::Path => "path",
        Kind::Fd => "fd",
        Kind::Irq => "irq",
        Kind::Cpu => "cpu",
        Kind::Disk => "disk",
        Kind::NetIf => "netif",
    }
}

/// All results of one report. Tables of one class stand together, in the order in which classes
/// appear: those of each are kept in a file until all are there.
pub struct LamiResults<S> {
    report: Report,
    /// Distributions become one table.
    series: bool,
    spool: fn() -> S,
    windows: usize,
    /// What is wanted instead when there are many windows.
    summary: Option<Summary>,
    classes: Vec<Class<S>>,
}

/// The results of one class.
struct Class<S> {
    name: &'static str,
    results: S,
    is_empty: bool,
    /// Distributions that become one table.
    series: Vec<Table>,
}

impl<S: Read + Write + Seek> LamiResults<S> {
    /// What waits for its turn is kept in what `spool` opens.
    pub fn new(report: Report, series: bool, spool: fn() -> S) -> LamiResults<S> {
        LamiResults {
            report,
            series,
            spool,
            windows: 0,
            summary: report.summary(),
            classes: Vec::new(),
        }
    }

    /// Takes in what was found.
    ///
    /// # Errors
    /// As those of the files that `spool` opens.
    pub fn tick(&mut self, tick: &Tick) -> io::Result<()> {
        self.windows += usize::from(!tick.continues);
        if let Some(summary) = &mut self.summary {
            summary.add(tick);
            if self.windows > 1 {
                return Ok(());
            }
        }
        for (place, table) in tick.tables.iter().enumerate() {
            let begins = place > 0 || !tick.continues;
            let ends = place + 1 < tick.tables.len() || !tick.goes_on;
            if is_known(self.report.kind, table) && !table.rows.is_empty() {
                self.table(table, (begins, ends))?;
            }
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, (begins, ends): (bool, bool)) -> io::Result<()> {
        let name = table.class.name;
        let known = self.classes.iter().position(|class| class.name == name);
        let place = known.unwrap_or_else(|| {
            self.classes.push(Class {
                name,
                results: (self.spool)(),
                is_empty: true,
                series: Vec::new(),
            });
            self.classes.len() - 1
        });
        let class = &mut self.classes[place];
        if self.series && name == "freq" {
            class.series.push(table.clone());
            return Ok(());
        }
        let mut text = String::new();
        if begins {
            if !std::mem::take(&mut class.is_empty) {
                text.push(',');
            }
            text.push_str(&result_head(table));
        }
        for (place, row) in table.rows.iter().enumerate() {
            if place > 0 || !begins {
                text.push(',');
            }
            let cells: Vec<Value> = row.iter().map(cell).collect();
            let _ = write!(text, "{}", Value::from(cells));
        }
        if ends {
            text.push_str("]}");
        }
        class.results.write_all(text.as_bytes())
    }

    /// Writes all results as one object.
    ///
    /// # Errors
    /// As those of `out`, and of the files that `spool` opened.
    pub fn finish(mut self, mut out: impl Write) -> io::Result<()> {
        let summary = self.summary.take().filter(|_| self.windows > 1);
        if let Some(summary) = summary {
            self.classes.clear();
            if let Some(table) = summary.table().filter(|table| !table.rows.is_empty()) {
                self.table(&table, (true, true))?;
            }
        }
        out.write_all(b"{\"results\":[")?;
        for (place, class) in self.classes.iter_mut().enumerate() {
            if place > 0 {
                out.write_all(b",")?;
            }
            if let [first, ..] = &class.series[..] {
                write!(out, "{}", series_of(first, &class.series))?;
            }
            class.results.rewind()?;
            io::copy(&mut class.results, &mut out)?;
        }
        out.write_all(b"]}\n")?;
        out.flush()
    }
}

/// What is no class of the kind is there for the text alone.
fn is_known(kind: &ReportKind, table: &Table) -> bool {
    let named = |class: &&TableClass| class.name == table.class.name;
    kind.classes.iter().any(named) && !(table.group.is_some() && table.subtitle.is_none())
}

/// An error as LAMI has it.
pub fn lami_error(message: &str) -> Value {
    json!({ "error-message": message })
}

/// A result up to its first row.
fn result_head(table: &Table) -> String {
    let TableClass { name, title, .. } = table.class;
    let class = match &table.subtitle {
        Some(subtitle) => json!({ "inherit": name, "title": format!("{title} [{subtitle}]") }),
        None => json!(name),
    };
    let range = range(table.begin_ns, table.end_ns);
    format!("{{\"class\":{class},\"time-range\":{range},\"data\":[")
}

/// Distributions over the same bins as one table: a column for each.
fn series_of(first: &Table, tables: &[Table]) -> Value {
    let bounds = first.class.columns.iter().take(2).map(column);
    let times = first.class.place("count").unwrap_or(2);
    let counts = tables.iter().map(|table| {
        let title = table.subtitle.as_deref().unwrap_or(table.class.title);
        let unit = table.class.columns[times].unit;
        json!({ "title": title, "class": "number", "unit": unit })
    });
    let data = first.rows.iter().enumerate().map(|(place, bounds)| {
        let counts = tables
            .iter()
            .filter_map(|table| table.rows.get(place)?.get(times));
        bounds.iter().take(2).chain(counts).map(cell).collect()
    });
    json!({
        "class": {
            "title": format!("{}s", plural(first.class.title)),
            "column-descriptions": bounds.chain(counts).collect::<Vec<Value>>(),
        },
        "time-range": range(first.begin_ns, first.end_ns),
        "data": data.collect::<Vec<Vec<Value>>>(),
    })
}

/// What a distribution is of, in the plural.
fn plural(title: &str) -> String {
    title
        .replacen("latency ", "latencies ", 1)
        .replacen("handler ", "handlers ", 1)
}

fn range(begin_ns: i64, end_ns: i64) -> Value {
    let time = |ns: i64| json!({ "class": "timestamp", "value": ns });
    json!({ "class": "time-range", "begin": time(begin_ns), "end": time(end_ns) })
}

fn cell(cell: &Cell) -> Value {
    let value = |class: &str, value: Value| json!({ "class": class, "value": value });
    let named = |class: &str, name: &str| json!({ "class": class, "name": name });
    match cell {
        Cell::Empty => Value::Null,
        Cell::Unknown => json!({ "class": "unknown" }),
        Cell::Bool(truth) => value("bool", (*truth).into()),
        Cell::Count(count) => value("number", (*count).into()),
        Cell::Number(number) => value("number", (*number).into()),
        Cell::Float(number) => value("number", (*number).into()),
        Cell::Text(text) => value("string", text.as_str().into()),
        Cell::Ratio(share) => value("ratio", (*share).into()),
        Cell::Time(ns) => value("timestamp", (*ns).into()),
        Cell::Duration(ns) => value("duration", (*ns).into()),
        Cell::DurationFloat(ns) => value("duration", (*ns).into()),
        Cell::Size(bytes) => value("size", (*bytes).into()),
        Cell::Range(begin_ns, end_ns) => range(*begin_ns, *end_ns),
        Cell::Syscall(name) => named("syscall", name),
        Cell::Disk(name) => named("disk", name),
        Cell::NetIf(name) => named("netif", name),
        Cell::Path(path) => json!({ "class": "path", "path": path }),
        Cell::Fd(fd) => json!({ "class": "fd", "fd": fd }),
        Cell::Cpu(id) => json!({ "class": "cpu", "id": id }),
        Cell::Captures(captures) => value("string", captured(captures).into()),
        Cell::Results(all) => value("string", results(all).into()),
        Cell::Irq { hard, nr, name } => {
            json!({ "class": "irq", "hard": hard, "nr": nr, "name": name })
        }
        Cell::Process { name, pid, tid } => {
            let mut process = json!({ "class": "process" });
            if let Some(name) = name {
                process["name"] = name.as_str().into();
            }
            for (key, id) in [("pid", pid), ("tid", tid)] {
                if let Some(id) = id {
                    process[key] = (*id).into();
                }
            }
            process
        }
        _ => Value::Null,
    }
}

/// As lttng-analyses writes captures: `{'comm': 'jackd', 'cpu': 1}`.
fn captured(captures: &Captured) -> String {
    let one = |(name, value): &(String, Option<Kept>)| {
        let value = match value {
            None => "None".to_owned(),
            Some(Kept::Text(text)) => quoted(&String::from_utf8_lossy(text)),
            Some(value) => value.to_string(),
        };
        format!("{}: {value}", quoted(name))
    };
    let all: Vec<String> = captures.iter().map(one).collect();
    format!("{{{}}}", all.join(", "))
}

/// A text between single quotes, or double ones when it has a single one and no double one.
fn quoted(text: &str) -> String {
    let quote = match text.contains('\'') && !text.contains('"') {
        true => '"',
        false => '\'',
    };
    let mut quoted = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            letter if letter == quote || letter == '\\' => quoted.extend(['\\', letter]),
            letter => quoted.push(letter),
        }
    }
    quoted.push(quote);
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_written_as_python_writes_them() {
        let check = |kept: Kept, expect: &str| {
            let captures = vec![("x".to_owned(), Some(kept)), ("y".to_owned(), None)];
            assert_eq!(captured(&captures), format!("{{'x': {expect}, 'y': None}}"));
        };
        let text = |text: &str| Kept::Text(text.as_bytes().into());
        check(Kept::Integer(-5), "-5");
        check(Kept::Float(2.0), "2.0");
        check(text("jackd"), "'jackd'");
        check(text("it's"), "\"it's\"");
        check(text("a'b\"c\\\n"), "'a\\'b\"c\\\\\\n'");
    }

    #[test]
    fn a_series_is_called_in_the_plural() {
        let check = |title: &str, expect: &str| assert_eq!(plural(title), expect);
        check(
            "Scheduling latency frequency",
            "Scheduling latencies frequency",
        );
        check("Interrupt handler duration", "Interrupt handlers duration");
    }
}
