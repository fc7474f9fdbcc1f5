//! Reading a trace in Python: tables and events, beside babeltrace2's bindings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::child;
use crate::diagnose;
use crate::load;
use crate::options::Options;
use crate::report::{Bar, Report, Table, number, text};
use crate::stats::{Comparison, median};

/// The promise: a table in a fiftieth of the time that the bindings take for the same values.
const SHARE_MAX: f64 = 0.02;
/// The distribution's interpreter: the bindings are a package of it.
const PYTHON: &str = "/usr/bin/python3";
const SCRIPT: &str = include_str!("../python/walk.py");
/// Ways to walk, as the script calls them, and what they do.
const WAYS: [(&str, &str); 5] = [
    ("rtscope-batches", "rtscope, every field in columns"),
    ("rtscope-events", "rtscope, every field as an object"),
    ("bt2-fields", "bt2, every payload field as an object"),
    ("bt2-events", "bt2, events only, no field"),
    ("bt2-values", "bt2, every payload field's value"),
];

/// What one walk took.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Walk {
    events: f64,
    wall_s: f64,
    cpu_s: f64,
}

/// Records, then walks in turn.
pub fn measure(options: &Options) -> Result<Report> {
    load::require()?;
    let folder = tempfile::tempdir()?;
    let package = package(folder.path())?;
    let trace = folder.path().join("trace");
    let events = diagnose::record(options, &trace)?;
    let rounds = options.pick(7, 1);
    let mut walks = vec![Vec::new(); WAYS.len()];
    for _ in 0..rounds {
        for (walks, (way, _)) in walks.iter_mut().zip(WAYS) {
            walks.push(walk(&package, way, &trace)?);
        }
    }
    let seen: Vec<f64> = walks.iter().flatten().map(|walk| walk.events).collect();
    if seen.iter().any(|count| *count != seen[0]) {
        bail!("the ways do not see the same number of events: {seen:?}");
    }
    Ok(Report {
        title: "Python",
        command: "bench python".into(),
        setting: format!(
            "{events:.0} events of `rtscope record` under hackbench, read by {PYTHON}; {rounds} \
             runs of each way in turn, warm cache, opening included. Ratios are of CPU time."
        ),
        tables: vec![table(&walks)],
        bars: vec![bar(&walks)],
        remarks: vec![
            compared("A table", "bt2 with values", &walks[4], &walks[0]),
            compared("A table", "bt2 with fields", &walks[2], &walks[0]),
            compared("A table", "bt2 without fields", &walks[3], &walks[0]),
            compared(
                "Events with fields",
                "bt2 with fields",
                &walks[2],
                &walks[1],
            ),
        ],
    })
}

/// The package with the library that was built beside us, in a folder for the interpreter's path.
fn package(folder: &Path) -> Result<PathBuf> {
    let library = std::env::current_exe()?.with_file_name("lib_native.so");
    let build = "cargo build --release --package python";
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/rtscope");
    let path = folder.join("path");
    let package = path.join("rtscope");
    fs::create_dir_all(&package)?;
    fs::copy(sources.join("__init__.py"), package.join("__init__.py"))
        .with_context(|| format!("no Python package at {}", sources.display()))?;
    fs::copy(&library, package.join("_native.abi3.so"))
        .with_context(|| format!("no library at {}: {build}", library.display()))?;
    Ok(path)
}

fn walk(package: &Path, way: &str, trace: &Path) -> Result<Walk> {
    let mut command = Command::new(PYTHON);
    command.args(["-c", SCRIPT, way]).arg(trace);
    let said = child::output(command.env("PYTHONPATH", package))?;
    parse(&said).with_context(|| format!("{way} said: {said}"))
}

/// Reads `EVENTS WALL CPU`.
fn parse(said: &str) -> Option<Walk> {
    let numbers: Vec<f64> = said
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    let [events, wall_s, cpu_s] = numbers[..] else {
        return None;
    };
    Some(Walk {
        events,
        wall_s,
        cpu_s,
    })
}

fn cpu_seconds(walks: &[Walk]) -> Vec<f64> {
    walks.iter().map(|walk| walk.cpu_s).collect()
}

fn table(walks: &[Vec<Walk>]) -> Table {
    let row = |(walks, (_, name)): (&Vec<Walk>, (&str, &str))| {
        let events = walks.first()?.events;
        let cpu_s = median(&cpu_seconds(walks))?;
        let walls: Vec<f64> = walks.iter().map(|walk| walk.wall_s).collect();
        Some(vec![
            text(name),
            number(median(&walls)?, 3),
            number(cpu_s, 3),
            number(events / cpu_s, 0),
        ])
    };
    Table {
        columns: vec![
            "way",
            "wall, s (median)",
            "CPU, s (median)",
            "events/s of CPU",
        ],
        rows: walks.iter().zip(WAYS).filter_map(row).collect(),
    }
}

fn compare(theirs: &[Walk], ours: &[Walk]) -> Option<Comparison> {
    let pairs = cpu_seconds(theirs).into_iter().zip(cpu_seconds(ours));
    Comparison::of(&pairs.collect::<Vec<_>>())
}

fn bar(walks: &[Vec<Walk>]) -> Bar {
    Bar {
        what: "a table, as a share of bt2's time for the same values".into(),
        found: compare(&walks[4], &walks[0]).map(|comparison| comparison.ratio),
        limit: SHARE_MAX,
        unit: "of it",
    }
}

/// How many times faster, with the interval.
fn compared(what: &str, than: &str, theirs: &[Walk], ours: &[Walk]) -> String {
    compare(theirs, ours).map_or_else(String::new, |comparison| {
        let Comparison { ratio, low, high } = comparison;
        let times = [ratio, high, low].map(|share| 1.0 / share);
        let [times, low, high] = times;
        format!("{what}: {times:.1} times as fast as {than} (95 % interval {low:.1} to {high:.1}).")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_says_is_read_and_compared() {
        let walk = parse("100 2.5 0.5\n").expect("three numbers");
        let expect = Walk {
            events: 100.0,
            wall_s: 2.5,
            cpu_s: 0.5,
        };
        assert_eq!(walk, expect);
        assert_eq!(parse("100 2.5"), None);
        assert_eq!(parse("a b c"), None);
        let theirs = Walk {
            cpu_s: 50.0,
            ..walk
        };
        let said = "A: 100.0 times as fast as B (95 % interval 100.0 to 100.0).";
        assert_eq!(compared("A", "B", &[theirs; 3], &[walk; 3]), said);
    }
}
