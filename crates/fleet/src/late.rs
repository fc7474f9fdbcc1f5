//! The late activations that a watch wrote down: which days its log has, and their lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use event::{Error, ErrorKind, Result};
use monitor::day_text;
use serde_json::Value;

const LOG: &str = "late.ndjson";
const SCHEMA: &str = "rtscope.late";
/// A longer line is no line of the log.
const LINE_MAX: usize = 1 << 16;

/// The lines of the log in a folder of snapshots, by day. A folder without one has none: nothing
/// was late. What is no line of the log, as the one that is being written, is left out.
pub(crate) fn by_day(folder: &Path) -> Result<BTreeMap<String, Vec<Value>>> {
    let path = folder.join(LOG);
    let mut days: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(days),
        Err(cause) => return Err(failed(&path, cause)),
    };
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(|cause| failed(&path, cause))?;
        let parsed = (line.len() <= LINE_MAX).then(|| serde_json::from_slice::<Value>(&line));
        let Some(Ok(value)) = parsed else { continue };
        if let (Some(SCHEMA), Some(ns)) = (value["schema"].as_str(), value["wall_ns"].as_i64()) {
            days.entry(day_text(ns)).or_default().push(value);
        }
    }
    Ok(days)
}

fn failed(path: &Path, cause: std::io::Error) -> Error {
    let error = Error::io(format!("cannot read {}", path.display()), cause);
    match error.kind() {
        ErrorKind::PermissionDenied => error.fix("give the monitor rights to read it"),
        _ => error.fix("name the folder of a watch's snapshots"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_of_their_day_and_what_is_none_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(by_day(folder.path()).expect("none").is_empty());
        let line = |ns: i64| format!("{{\"schema\":\"rtscope.late\",\"wall_ns\":{ns}}}\n");
        let day_ns = 86_400_000_000_000;
        let text = [
            line(5),
            "{\"schema\":\"other\",\"wall_ns\":5}\n\n".to_owned(),
            line(day_ns),
            line(7),
            "{\"schema\":\"rtscope.la".to_owned(),
        ];
        std::fs::write(folder.path().join(LOG), text.concat()).expect("written");
        let days = by_day(folder.path()).expect("days");
        let counts: Vec<_> = days
            .iter()
            .map(|(day, all)| (day.as_str(), all.len()))
            .collect();
        assert_eq!(counts, [("1970-01-01", 2), ("1970-01-02", 1)]);
    }
}
