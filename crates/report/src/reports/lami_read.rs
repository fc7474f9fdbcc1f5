//! What other programs print as LAMI, as tables of texts.

use event::{Error, ErrorKind, Result};
use serde_json::Value;

use super::calendar::Calendar;
use super::grid::Grid;

/// The tables of a LAMI result. `metadata` is what the program says of itself.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when the result is none: the program's own message, if it gave one.
pub fn lami_grids(metadata: &Value, results: &Value, calendar: Calendar) -> Result<Vec<Grid>> {
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
        .map(|result| grid(metadata, result, calendar))
        .collect())
}

fn grid(metadata: &Value, result: &Value, calendar: Calendar) -> Grid {
    let class = &result["class"];
    let name = class
        .as_str()
        .or_else(|| class["inherit"].as_str())
        .unwrap_or_default();
    let described = &metadata["table-classes"][name];
    let own = |key: &str| match class[key].is_null() {
        true => described[key].clone(),
        false => class[key].clone(),
    };
    let columns = own("column-descriptions");
    let columns = columns.as_array().map(Vec::as_slice).unwrap_or_default();
    let rows = result["data"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    Grid {
        title: own("title").as_str().unwrap_or(name).to_owned(),
        heads: columns.iter().map(head).collect(),
        rows: rows
            .iter()
            .map(|row| {
                let cells = row.as_array().map(Vec::as_slice).unwrap_or_default();
                cells.iter().map(|cell| cell_text(cell, calendar)).collect()
            })
            .collect(),
    }
}

/// The head of a column, and whether numbers stand below it.
fn head(column: &Value) -> (String, bool) {
    let title = column["title"].as_str().unwrap_or_default();
    let class = column["class"].as_str().unwrap_or_default();
    let unit = match class {
        "duration" => Some("µs"),
        "ratio" => Some("%"),
        "size" => Some("bytes"),
        _ => column["unit"].as_str(),
    };
    let right = [
        "duration", "ratio", "size", "number", "int", "float", "cpu", "fd",
    ];
    let text = match unit {
        Some(unit) => format!("{title} ({unit})"),
        None => title.to_owned(),
    };
    (text, right.contains(&class))
}

fn cell_text(cell: &Value, calendar: Calendar) -> String {
    let name = || cell["name"].as_str().unwrap_or("?").to_owned();
    let time = |cell: &Value| calendar.time(cell["value"].as_i64().unwrap_or(0));
    let value = &cell["value"];
    let number = value.as_f64().unwrap_or(0.0);
    match cell["class"].as_str() {
        None => plain(cell),
        Some("unknown") => "?".to_owned(),
        Some("timestamp") => time(cell),
        Some("duration") => format!("{:.3}", number / 1000.0),
        Some("ratio") => format!("{:.2}", number * 100.0),
        Some("time-range") => format!("[{}, {}]", time(&cell["begin"]), time(&cell["end"])),
        Some("process") => match cell["tid"].as_i64().or_else(|| cell["pid"].as_i64()) {
            Some(id) => format!("{} ({id})", name()),
            None => name(),
        },
        Some("irq") => match &cell["nr"] {
            Value::Null => name(),
            nr => format!("{} ({nr})", name()),
        },
        Some("path") => plain(&cell["path"]),
        Some("fd") => plain(&cell["fd"]),
        Some("cpu") => plain(&cell["id"]),
        Some("part" | "syscall" | "disk" | "netif") => name(),
        Some(_) => plain(value),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        value => value.to_string(),
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
            let grids = lami_grids(&metadata, &results, Calendar::default()).expect("LAMI");
            assert_eq!(grids[0].title, title);
            assert_eq!(grids[0].heads[1], ("Took (µs)".to_owned(), true));
            assert_eq!(grids[0].rows, [["npt (7)", "1.500"], ["", "?"]]);
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
            assert!(
                lami_grids(&metadata, &broken, Calendar::default()).is_err(),
                "{broken}"
            );
        }
    }
}
