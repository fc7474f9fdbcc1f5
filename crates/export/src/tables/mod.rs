//! Parquet and Arrow files for DuckDB, ClickHouse and Spark: a directory
//! `host=…/date=…/event=…/` as those name partitions, so that the traces of a fleet are one table.
//!
//! Each file has the events of one class on one day (UTC). Columns are the time on the trace's
//! clock (`time_ns`), on the wall (`time`), the CPU and the fields: integers of 64 bits, floats,
//! truth values, texts; an enumeration is its label, what nests is JSON.

mod column;
mod file;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, Schema, TimeUnit};
use ctf::writer::{StagedDir, write_error};
use event::{Result, civil_date, partition_value};
use trace::{EventView, Lost, Trace};

use self::column::{Cell, Column};
use self::file::TableFile;
use crate::csv::named_fields;
use crate::sink::{Sink, cause_word};

pub(crate) use self::file::TableFormat;

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;
/// The losses' partition; names of events are escaped, so that none is called so by accident.
const LOSSES: &str = "__losses";

/// Tables, opened when their first event comes.
pub(crate) struct Tables<'t> {
    trace: &'t Trace,
    format: TableFormat,
    dir: StagedDir,
    host: String,
    /// By event class and day since 1970; the losses' class is none.
    tables: HashMap<(Option<u32>, i64), Table>,
}

struct Table {
    file: TableFile,
    columns: Vec<Column>,
}

impl<'t> Tables<'t> {
    pub fn create(trace: &'t Trace, path: &Path, format: TableFormat) -> Result<Self> {
        let environment = &trace.info().environment;
        let host = environment
            .get("hostname")
            .map_or("unknown", String::as_str);
        Ok(Tables {
            trace,
            format,
            dir: StagedDir::create(path)?,
            host: partition_value(host),
            tables: HashMap::new(),
        })
    }

    fn open(&self, event: &str, day: i64, fields: Vec<ArrowField>) -> Result<TableFile> {
        let date = date(day);
        let below = format!("host={}/date={date}/event={event}", self.host);
        let dir = self.dir.path().join(below);
        std::fs::create_dir_all(&dir).map_err(|cause| write_error(&dir, cause))?;
        // A class of the same name in another stream has fields of its own.
        let mut number = 0;
        let mut path = dir.join(format!("part-0.{}", self.format.extension()));
        while path.exists() {
            number += 1;
            path = dir.join(format!("part-{number}.{}", self.format.extension()));
        }
        TableFile::create(&path, Arc::new(Schema::new(fields)), self.format)
    }

    fn event_table(&self, class: u32, day: i64) -> Result<Option<Table>> {
        let Some(class) = self.trace.classes().get(class as usize) else {
            return Ok(None);
        };
        let mut columns = vec![Column::time_ns(), Column::wall_time(), Column::cpu()];
        let wall = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
        let mut fields = vec![
            ArrowField::new("time_ns", DataType::Int64, true),
            ArrowField::new("time", wall, true),
            ArrowField::new("cpu", DataType::Int64, true),
        ];
        for (place, field, name) in named_fields(class) {
            let name = if name == "time" {
                "fields.time".to_owned()
            } else {
                name
            };
            let column = Column::of(place, field);
            fields.push(ArrowField::new(name, column.data_type(), true));
            columns.push(column);
        }
        let file = self.open(&partition_value(&class.name), day, fields)?;
        Ok(Some(Table { file, columns }))
    }

    fn losses_table(&self, day: i64) -> Result<Table> {
        let names = ["begin_ns", "end_ns", "cpu", "count"];
        let mut columns: Vec<Column> = names.iter().map(|_| Column::cpu()).collect();
        columns.push(Column::text());
        let integer = |name: &str| ArrowField::new(name, DataType::Int64, true);
        let mut fields: Vec<ArrowField> = names.into_iter().map(integer).collect();
        fields.push(ArrowField::new("cause", DataType::Utf8, true));
        let file = self.open(LOSSES, day, fields)?;
        Ok(Table { file, columns })
    }
}

impl Table {
    fn end_row(&mut self) -> Result<()> {
        self.file.end_row(&mut self.columns)
    }
}

impl Sink for Tables<'_> {
    fn event(&mut self, event: &EventView<'_>) -> Result<()> {
        let time = event.is_timed().then(|| event.time());
        let wall_ns = time.map(|time| self.trace.wall_ns(time));
        let class = event.class().0;
        let key = (Some(class), wall_ns.unwrap_or(0).div_euclid(DAY_NS));
        if !self.tables.contains_key(&key) {
            let table = self.event_table(class, key.1)?;
            self.tables.extend(table.map(|table| (key, table)));
        }
        let Some(table) = self.tables.get_mut(&key) else {
            return Ok(());
        };
        let [time_ns, wall, cpu, fields @ ..] = &mut table.columns[..] else {
            return Ok(());
        };
        time_ns.append(&Cell::Integer(time.map(|time| time.as_ns())));
        wall.append(&Cell::Integer(wall_ns));
        cpu.append(&Cell::Integer(event.cpu().map(|cpu| cpu.0.into())));
        fields
            .iter_mut()
            .for_each(|column| column.append_field(event));
        table.end_row()
    }

    fn lost(&mut self, lost: &Lost) -> Result<()> {
        let day = self.trace.wall_ns(lost.range.begin).div_euclid(DAY_NS);
        let key = (None, day);
        if !self.tables.contains_key(&key) {
            let table = self.losses_table(day)?;
            self.tables.insert(key, table);
        }
        let Some(table) = self.tables.get_mut(&key) else {
            return Ok(());
        };
        let cells = [
            Cell::Integer(Some(lost.range.begin.as_ns())),
            Cell::Integer(Some(lost.range.end.as_ns())),
            Cell::Integer(lost.cpu.map(|cpu| cpu.0.into())),
            Cell::Integer(lost.count.map(|count| count as i64)),
            Cell::Text(cause_word(lost.cause)),
        ];
        for (column, cell) in table.columns.iter_mut().zip(&cells) {
            column.append(cell);
        }
        table.end_row()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        for mut table in self.tables.into_values() {
            table.file.finish(&mut table.columns)?;
        }
        self.dir.commit().map(drop)
    }
}

/// A day since 1970 as a partition's value.
fn date(day: i64) -> String {
    let (year, month, day) = civil_date(day);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_date() {
        let check = |day: i64, expect: &str| assert_eq!(date(day), expect);
        check(0, "1970-01-01");
        check(-1, "1969-12-31");
        check(59, "1970-03-01");
        check(11_016, "2000-02-29");
        check(20_777, "2026-11-20");
    }
}
