//! Reports as our own JSON: schema `rtscope.report` version 1. Each row is a line of its own,
//! written as it comes.

use std::io::{self, Write};

use serde_json::{Value, json};
use views::periods::{Captured, Kept};
use views::reports::{Cell, Column, Kind, Pass, Table, Tick};

/// What one pass finds, as it finds it: one object.
#[derive(Debug)]
pub struct ReportJson<'a, W> {
    /// Those of the reports.
    names: &'a [&'a str],
    out: W,
    /// Whether a window, a table of it and a row of that was written: the next one stands behind a
    /// comma.
    windows: bool,
    tables: bool,
    rows: bool,
}

impl<'a, W: Write> ReportJson<'a, W> {
    /// Begins the object; `names` are those of the reports.
    ///
    /// # Errors
    /// As those of `out`.
    pub fn new(names: &'a [&'a str], mut out: W) -> io::Result<ReportJson<'a, W>> {
        out.write_all(br#"{"schema":"rtscope.report","version":1,"windows":["#)?;
        Ok(ReportJson {
            names,
            out,
            windows: false,
            tables: false,
            rows: false,
        })
    }

    /// Writes what was found.
    ///
    /// # Errors
    /// As those of `out`.
    pub fn tick(&mut self, tick: &Tick) -> io::Result<()> {
        if !tick.continues {
            let name = self.names.get(tick.report).copied().unwrap_or_default();
            let (begin_ns, end_ns) = (tick.begin_ns, tick.end_ns);
            let name = Value::from(name);
            comma(&mut self.windows, &mut self.out)?;
            write!(
                self.out,
                "{{\"report\":{name},\"begin_wall_ns\":{begin_ns},\"end_wall_ns\":{end_ns},\
                 \"tables\":["
            )?;
            self.tables = false;
        }
        for (place, table) in tick.tables.iter().enumerate() {
            if place > 0 || !tick.continues {
                self.head(table)?;
            }
            self.rows(table)?;
            if place + 1 < tick.tables.len() || !tick.goes_on {
                self.out.write_all(b"]}")?;
            }
        }
        if !tick.goes_on {
            self.out.write_all(b"]}")?;
        }
        Ok(())
    }

    fn head(&mut self, table: &Table) -> io::Result<()> {
        comma(&mut self.tables, &mut self.out)?;
        let [name, title] = [table.class.name, table.class.title].map(Value::from);
        let [of, group] = [&table.subtitle, &table.group].map(|text| json!(text));
        self.rows = false;
        write!(
            self.out,
            "{{\"table\":{name},\"title\":{title},\"of\":{of},\"group\":{group},\"rows\":["
        )
    }

    fn rows(&mut self, table: &Table) -> io::Result<()> {
        let columns = table.class.columns.iter();
        let columns: Vec<(Kind, Value)> = columns
            .map(|column| (column.kind, key(column).into()))
            .collect();
        for row in &table.rows {
            comma(&mut self.rows, &mut self.out)?;
            for (place, ((kind, key), cell)) in columns.iter().zip(row).enumerate() {
                let value = match (kind, cell) {
                    // Bounds of counts and shares are scaled like those of durations.
                    (Kind::Number, Cell::DurationFloat(bound)) => (bound / 1000.0).into(),
                    (_, cell) => value(cell),
                };
                let before = if place == 0 { '{' } else { ',' };
                write!(self.out, "{before}{key}:{value}")?;
            }
            self.out.write_all(b"}")?;
        }
        Ok(())
    }

    /// Ends the object, with what limits all that was found.
    ///
    /// # Errors
    /// As those of `out`.
    pub fn finish(mut self, pass: &Pass) -> io::Result<()> {
        let Pass {
            events,
            lost,
            holes,
            damages,
            ..
        } = pass;
        writeln!(
            self.out,
            "\n],\"events\":{events},\"lost_events\":{lost},\"lost_ranges\":{holes},\
             \"unreadable_places\":{damages}}}"
        )?;
        self.out.flush()
    }
}

/// Begins a line; behind one of its kind, with a comma between.
fn comma(before: &mut bool, out: &mut impl Write) -> io::Result<()> {
    out.write_all(if *before { b",\n" } else { b"\n" })?;
    *before = true;
    Ok(())
}

/// A column's key, with its unit.
fn key(column: &Column) -> String {
    let key = column.key;
    match column.kind {
        Kind::Duration => format!("{key}_ns"),
        Kind::Time => format!("{key}_wall_ns"),
        Kind::Size => format!("{key}_bytes"),
        _ => key.to_owned(),
    }
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
        Cell::Results(all) => {
            let one = |(name, count): &(String, u64)| (name.clone(), (*count).into());
            Value::Object(all.iter().map(one).collect())
        }
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

#[cfg(test)]
mod tests {
    use views::reports::TableClass;

    use super::*;

    const LOG: TableClass = TableClass {
        name: "log",
        title: "All",
        columns: &[Column {
            key: "latency",
            title: "Latency",
            kind: Kind::Duration,
            unit: None,
        }],
    };

    fn tick(durations_ns: &[i64], continues: bool, goes_on: bool) -> Tick {
        let rows = durations_ns.iter().map(|ns| vec![Cell::Duration(*ns)]);
        let table = Table {
            class: &LOG,
            subtitle: None,
            group: None,
            begin_ns: 1,
            end_ns: 2,
            rows: rows.collect(),
        };
        Tick {
            report: 0,
            begin_ns: 1,
            end_ns: 2,
            tables: vec![table],
            continues,
            goes_on,
        }
    }

    #[test]
    fn results_are_counts_by_name() {
        let results = [("success", 8), ("EAGAIN", 2)];
        let results = results.map(|(name, count)| (name.to_owned(), count));
        let found = value(&Cell::Results(results.to_vec()));
        assert_eq!(found, json!({ "success": 8, "EAGAIN": 2 }));
    }

    #[test]
    fn a_log_in_parts_is_one_table_with_a_row_on_each_line() {
        let mut out = Vec::new();
        let mut json = ReportJson::new(&["schedlog"], &mut out).expect("memory takes all");
        for part in [
            tick(&[5, 6], false, true),
            tick(&[7], true, false),
            tick(&[], false, false),
        ] {
            json.tick(&part).expect("memory takes all");
        }
        json.finish(&Pass::default()).expect("memory takes all");
        let text = String::from_utf8(out).expect("JSON is UTF-8");
        assert_eq!(text.matches("\n{\"latency_ns\":").count(), 3, "{text}");
        let all: Value = serde_json::from_str(&text).expect("it is JSON");
        let rows = |window: &Value| window["tables"][0]["rows"].clone();
        let found: Vec<Value> = all["windows"]
            .as_array()
            .unwrap()
            .iter()
            .map(rows)
            .collect();
        let row = |ns: i64| json!({ "latency_ns": ns });
        assert_eq!(found, [json!([row(5), row(6), row(7)]), json!([])]);
    }
}
