//! What other programs print as LAMI, as tables of the cells that our own have.

use event::{Error, ErrorKind, Result};
use serde_json::Value;
use views::reports::{Cell, Kind};

use super::calendar::Calendar;
use super::grid::Grid;
use super::plain_text::{cell_text, head_with, is_number};

/// A table that another program made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LamiTable {
    /// What it shows.
    pub title: String,
    /// Its columns.
    pub columns: Vec<LamiColumn>,
    /// Its rows: a cell for each column, as a rule.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table that another program made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LamiColumn {
    /// What stands above it.
    pub title: String,
    /// What its cells are; a class that LAMI 1.0 does not have is text.
    pub kind: Kind,
    /// The unit of its numbers, where the program says one.
    pub unit: Option<String>,
}

impl LamiTable {
    /// With its cells written out.
    pub fn grid(&self, calendar: Calendar) -> Grid {
        let text = |row: &Vec<Cell>| row.iter().map(|cell| cell_text(cell, calendar)).collect();
        Grid {
            title: self.title.clone(),
            heads: self.columns.iter().map(head).collect(),
            rows: self.rows.iter().map(text).collect(),
        }
    }
}

/// The head of a column, and whether numbers stand below it.
fn head(column: &LamiColumn) -> (String, bool) {
    let text = head_with(&column.title, column.kind, column.unit.as_deref());
    (text, is_number(column.kind))
}

/// The tables of a LAMI result. `metadata` is what the program says of itself.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when the result is none: the program's own message, if it gave one.
pub fn lami_tables(metadata: &Value, results: &Value) -> Result<Vec<LamiTable>> {
    if let Some(message) = results["error-message"].as_str() {
        let error = Error::new(ErrorKind::InvalidInput, "the report failed");
        return Err(error
            .found(message)
            .fix("run the program by itself to see more"));
    }
    let Some(results) = results["results"].as_array() else {
        let error = Error::new(ErrorKind::InvalidInput, "the report printed no LAMI result");
        let fix = "let it print an object with the key 'results', as LAMI 1.0 says";
        return Err(error.found("no key 'results'").fix(fix));
    };
    Ok(results
        .iter()
        .map(|result| table(metadata, result))
        .collect())
}

fn table(metadata: &Value, result: &Value) -> LamiTable {
    let class = &result["class"];
    let name = class
        .as_str()
        .or_else(|| class["inherit"].as_str())
        .unwrap_or_default();
    let described = &metadata["table-classes"][name];
    let own = |key: &str| match class[key].is_null() {
        true => &described[key],
        false => &class[key],
    };
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let cells = |row: &Value| list(row).iter().map(cell).collect();
    LamiTable {
        title: own("title").as_str().unwrap_or(name).to_owned(),
        columns: list(own("column-descriptions"))
            .iter()
            .map(column)
            .collect(),
        rows: list(&result["data"]).iter().map(cells).collect(),
    }
}

fn column(column: &Value) -> LamiColumn {
    LamiColumn {
        title: column["title"].as_str().unwrap_or_default().to_owned(),
        kind: kind(column["class"].as_str().unwrap_or_default()),
        unit: column["unit"].as_str().map(str::to_owned),
    }
}

fn kind(class: &str) -> Kind {
    match class {
        "bool" => Kind::Bool,
        "number" | "int" | "float" => Kind::Number,
        "ratio" => Kind::Ratio,
        "timestamp" => Kind::Time,
        "duration" => Kind::Duration,
        "size" => Kind::Size,
        "time-range" => Kind::Range,
        "syscall" => Kind::Syscall,
        "process" => Kind::Process,
        "path" => Kind::Path,
        "fd" => Kind::Fd,
        "irq" => Kind::Irq,
        "cpu" => Kind::Cpu,
        "disk" | "part" => Kind::Disk,
        "netif" => Kind::NetIf,
        _ => Kind::Text,
    }
}

fn cell(cell: &Value) -> Cell {
    let name = || cell["name"].as_str().unwrap_or("?").to_owned();
    let value = &cell["value"];
    let ns = |cell: &Value| cell["value"].as_i64();
    let known = match cell["class"].as_str() {
        None => return plain(cell),
        Some("unknown") => Some(Cell::Unknown),
        Some("timestamp") => ns(cell).map(Cell::Time),
        Some("duration") => match value.as_i64() {
            Some(ns) => Some(Cell::Duration(ns)),
            None => value.as_f64().map(Cell::DurationFloat),
        },
        Some("ratio") => value.as_f64().map(Cell::Ratio),
        Some("size") => value.as_u64().map(Cell::Size),
        Some("time-range") => ns(&cell["begin"])
            .zip(ns(&cell["end"]))
            .map(|(begin_ns, end_ns)| Cell::Range(begin_ns, end_ns)),
        Some("process") => Some(process(cell)),
        Some("irq") => Some(match cell["nr"].as_i64() {
            Some(nr) => Cell::Irq {
                hard: cell["hard"].as_bool().unwrap_or(true),
                nr,
                name: cell["name"].as_str().unwrap_or_default().to_owned(),
            },
            None => Cell::Text(name()),
        }),
        Some("path") => return plain(&cell["path"]),
        Some("fd") => return plain(&cell["fd"]),
        Some("cpu") => return plain(&cell["id"]),
        Some("part" | "syscall" | "disk" | "netif") => Some(Cell::Text(name())),
        Some(_) => None,
    };
    known.unwrap_or_else(|| plain(value))
}

fn process(cell: &Value) -> Cell {
    let id = |key: &str| cell[key].as_i64().and_then(|id| i32::try_from(id).ok());
    let pid = id("pid");
    Cell::Process {
        name: cell["name"].as_str().map(str::to_owned),
        pid,
        tid: id("tid").or(pid),
    }
}

/// What has no class of its own, or not the value that its class wants.
fn plain(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Empty,
        Value::Bool(truth) => Cell::Bool(*truth),
        Value::String(text) => Cell::Text(text.clone()),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => Cell::Number(number),
            (_, Some(number), _) => Cell::Count(number),
            (.., Some(number)) => Cell::Float(number),
            _ => Cell::Text(number.to_string()),
        },
        value => Cell::Text(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_has_its_columns_from_its_class_or_its_own() {
        let columns = json!([
            { "title": "Who", "class": "process" },
            { "title": "Took", "class": "duration" },
        ]);
        let metadata = json!({ "table-classes": { "top": {
            "title": "Top", "column-descriptions": columns,
        } } });
        let process = json!({ "class": "process", "name": "npt", "tid": 7 });
        let took = json!({ "class": "duration", "value": 1500 });
        let data = json!([[process, took], [null, { "class": "unknown" }]]);
        let check = |class: Value, title: &str| {
            let results = json!({ "results": [{ "class": class, "data": data }] });
            let tables = lami_tables(&metadata, &results).expect("LAMI");
            let grid = tables[0].grid(Calendar::default());
            assert_eq!(grid.title, title);
            assert_eq!(grid.heads[1], ("Took (µs)".to_owned(), true));
            assert_eq!(grid.rows, [["npt (7)", "1.500"], ["", "?"]]);
        };
        check(json!("top"), "Top");
        check(
            json!({ "inherit": "top", "title": "Top of CPU 0" }),
            "Top of CPU 0",
        );
        check(
            json!({ "title": "Own", "column-descriptions": columns }),
            "Own",
        );
        for broken in [json!({}), json!([]), json!({ "error-message": "no trace" })] {
            assert!(lami_tables(&metadata, &broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_cell_is_what_its_class_says_and_what_it_is_where_it_is_not_that() {
        let check = |found: Value, expect: Cell| assert_eq!(cell(&found), expect, "{found}");
        let time = |ns: i64| json!({ "class": "timestamp", "value": ns });
        check(time(-5), Cell::Time(-5));
        check(
            json!({ "class": "time-range", "begin": time(1), "end": time(9) }),
            Cell::Range(1, 9),
        );
        check(
            json!({ "class": "duration", "value": 2.5 }),
            Cell::DurationFloat(2.5),
        );
        check(json!({ "class": "size", "value": 7 }), Cell::Size(7));
        check(json!({ "class": "size", "value": -7 }), Cell::Number(-7));
        check(json!({ "class": "ratio", "value": 1 }), Cell::Ratio(1.0));
        check(json!({ "class": "cpu", "id": 3 }), Cell::Number(3));
        check(
            json!({ "class": "timestamp", "value": "soon" }),
            Cell::Text("soon".to_owned()),
        );
        check(
            json!({ "class": "time-range", "begin": time(1) }),
            Cell::Empty,
        );
        check(
            json!({ "class": "int", "value": u64::MAX }),
            Cell::Count(u64::MAX),
        );
        check(
            json!({ "class": "irq", "name": "eth0" }),
            Cell::Text("eth0".to_owned()),
        );
        check(
            json!({ "class": "process", "pid": 4 }),
            Cell::Process {
                name: None,
                pid: Some(4),
                tid: Some(4),
            },
        );
        check(json!([1]), Cell::Text("[1]".to_owned()));
    }
}
