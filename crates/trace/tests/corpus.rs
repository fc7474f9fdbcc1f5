//! Real traces against what their collections and the peer say of them.
//!
//! The corpus is not part of the project: name its directory in RTSCOPE_CORPUS; archives in it are
//! read too. What is expected of a trace is taken from the corpus itself, in this order:
//! - a table `*.tsv` with the columns `trace`, `events_…` (lost ones may be counted in) and
//!   `complete_here`;
//! - a file `NAME.expected….txt` beside it, with a line for each event;
//! - a directory `fail` above it: an error or damage, after the good part;
//! - a directory `…-pass` above it: neither;
//! - what babeltrace2 counts, where it reads the trace to its end.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use event::{ClassId, FieldId, FieldType, TimeRange};
use testkit::Corpus;
use trace::{Cursor, EventView, Item, Trace};

/// What was read of a trace.
struct Got {
    events: u64,
    lost: u64,
    damages: u64,
    error: Option<String>,
    unordered: u64,
    disorder: u64,
}

enum Expected {
    Events(u64),
    Failure,
    Clean,
    Unknown,
}

/// Rows of all tables below `dir`: the trace's path and its events, where it is complete.
fn tables(dir: &Path, rows: &mut HashMap<String, u64>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            tables(&path, rows);
        } else if path.extension().is_some_and(|extension| extension == "tsv") {
            add_rows(&fs::read_to_string(&path).unwrap_or_default(), rows);
        }
    }
}

fn add_rows(text: &str, rows: &mut HashMap<String, u64>) {
    let mut lines = text
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let header = lines.next().unwrap_or_default();
    let column = |start: &str| header.iter().position(|name| name.starts_with(start));
    let columns = (column("trace"), column("events_"), column("complete_here"));
    let (Some(trace), Some(events), Some(complete)) = columns else {
        return;
    };
    for line in lines {
        let cell = |place: usize| line.get(place).copied().unwrap_or_default();
        if let (Ok(events), "yes") = (cell(events).parse(), cell(complete)) {
            rows.insert(cell(trace).to_owned(), events);
        }
    }
}

/// Lines that babeltrace2 prints, when it reads the trace to its end.
fn peer_count(dir: &Path) -> Option<u64> {
    let command = "ulimit -v 4000000; timeout 60 babeltrace2 \"$0\"";
    let output = Command::new("sh")
        .args(["-c", command])
        .arg(dir)
        .output()
        .ok()?;
    let fine = output.status.success();
    fine.then(|| output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64)
}

/// Lines of the text that is expected of a trace, when it lies beside it.
fn lines_beside(dir: &Path) -> Option<u64> {
    let start = format!("{}.expected", dir.file_name()?.to_string_lossy());
    let entries = fs::read_dir(dir.parent()?).ok()?.flatten();
    let mut files = entries.filter(|e| e.file_name().to_string_lossy().starts_with(&start));
    let text = fs::read_to_string(files.next()?.path()).ok()?;
    Some(text.lines().count() as u64)
}

fn expected(dir: &Path, rows: &HashMap<String, u64>) -> Expected {
    let row = rows.iter().find(|(name, _)| dir.ends_with(name));
    if let Some((_, events)) = row {
        return Expected::Events(*events);
    }
    if let Some(lines) = lines_beside(dir) {
        return Expected::Events(lines);
    }
    let above: Vec<_> = dir.iter().map(|part| part.to_string_lossy()).collect();
    if above.iter().any(|part| part == "fail") {
        Expected::Failure
    } else if above.iter().any(|part| part.ends_with("-pass")) {
        Expected::Clean
    } else {
        peer_count(dir).map_or(Expected::Unknown, Expected::Events)
    }
}

fn read(dir: &Path) -> Got {
    let mut got = Got {
        events: 0,
        lost: 0,
        damages: 0,
        error: None,
        unordered: 0,
        disorder: 0,
    };
    let trace = match Trace::open(dir) {
        Ok(trace) => trace,
        Err(error) => {
            got.error = Some(error.to_string());
            return got;
        }
    };
    let mut cursor = trace.cursor(TimeRange::ALL);
    let mut latest = event::Instant::MIN;
    while let Some(item) = cursor.next().unwrap() {
        match item {
            Item::Event(event) => {
                check_fields(&trace, &event);
                got.events += 1;
                got.unordered += u64::from(event.time() < latest);
                latest = latest.max(event.time());
            }
            Item::Damage(_) => got.damages += 1,
            Item::Lost(loss) => got.lost += loss.count.unwrap_or(0),
        }
    }
    got.disorder = cursor.disorder().events;
    got
}

/// Events of one class alone are those of the whole walk, be the class passed over or not.
fn check_passing(dir: &Path) {
    let Ok(trace) = Trace::open(dir) else { return };
    let walk = |mut cursor: Cursor<'_>| {
        let mut events = Vec::new();
        while let Some(item) = cursor.next().unwrap() {
            if let Item::Event(event) = item {
                events.push((event.class(), event.time()));
            }
        }
        events
    };
    let all = walk(trace.cursor(TimeRange::ALL));
    let mut seen: Vec<ClassId> = all.iter().map(|(class, _)| *class).collect();
    seen.sort();
    seen.dedup();
    for wanted in seen.iter().step_by(seen.len() / 8 + 1) {
        let alone = walk(trace.cursor_of(TimeRange::ALL, |class| class == *wanted));
        let among: Vec<_> = all.iter().filter(|(class, _)| class == wanted).collect();
        assert!(alone.iter().eq(among), "{wanted:?} in {}", dir.display());
    }
}

/// Several threads hand out what one walk does, of all items, in its order.
fn check_slices(dir: &Path) {
    let Ok(trace) = Trace::open(dir) else { return };
    let items = |cursor: &mut Cursor<'_>| {
        let mut items = Vec::new();
        cursor.each(|item| {
            items.push(match item {
                Item::Event(event) => (Some((event.class(), event.time())), String::new()),
                other => (None, format!("{other:?}")),
            });
            Ok(())
        })?;
        Ok(items)
    };
    let all = items(&mut trace.cursor(TimeRange::ALL)).unwrap();
    for threads in [2, 3, 16] {
        let slices = trace.map_slices(TimeRange::ALL, threads, items).unwrap();
        let found: Vec<_> = slices.into_iter().flatten().collect();
        assert!(found == all, "{threads} threads in {}", dir.display());
    }
}

/// Fields that are loaded from known places are what decoding the whole field by its type gives.
fn check_fields(trace: &Trace, event: &EventView<'_>) {
    let class = &trace.classes()[event.class().0 as usize];
    for (place, field) in class.fields.iter().enumerate() {
        let id = FieldId(place as u16);
        let value = event.value(id);
        if let Some(number) = value.as_i64() {
            assert_eq!(event.i64(id), number, "{} of {}", field.name, class.name);
        } else if let Some(text) = value.as_text()
            && !matches!(field.ty, FieldType::WideText { .. })
        {
            let found = String::from_utf8_lossy(event.text(id));
            assert_eq!(found, text, "{} of {}", field.name, class.name);
        }
    }
}

#[test]
#[ignore = "needs the corpus of traces (RTSCOPE_CORPUS)"]
fn real_traces_give_what_is_expected_of_them() {
    let Some(corpus) = Corpus::find("real traces against what is expected of them") else {
        return;
    };
    let mut rows = HashMap::new();
    tables(corpus.path(), &mut rows);
    let traces = corpus.ctf_traces();
    assert!(!traces.is_empty(), "no trace below RTSCOPE_CORPUS");
    let mut wrong = Vec::new();
    eprintln!("trace | expected | got");
    for (name, dir) in &traces {
        let got = read(dir);
        check_passing(dir);
        check_slices(dir);
        let expected = expected(dir, &rows);
        let whole = got.error.is_none() && got.damages == 0;
        let (expects, right) = match expected {
            Expected::Events(events) => {
                let same = got.events == events || got.events + got.lost == events;
                (events.to_string(), whole && same)
            }
            Expected::Failure => ("an error".to_owned(), !whole),
            Expected::Clean => ("no error".to_owned(), whole),
            Expected::Unknown => ("?".to_owned(), true),
        };
        // Nothing may be out of order but what a stream itself has out of order.
        let ordered = got.disorder > 0 || got.unordered == 0;
        let got = match &got.error {
            Some(error) => error.replace(&dir.display().to_string(), ""),
            None => format!(
                "{} events, {} lost, {} damages, {} out of order",
                got.events, got.lost, got.damages, got.unordered
            ),
        };
        let mark = if right && ordered { "" } else { "  <<<" };
        eprintln!("{name} | {expects} | {got}{mark}");
        if !(right && ordered) {
            wrong.push(name.clone());
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
