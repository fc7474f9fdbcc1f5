//! Reports of others: any program that speaks LAMI, or a Python file that does.

use std::path::{Path, PathBuf};
use std::process::Command;

use event::{Error, ErrorKind, Instant, Result};
use report::{Calendar, lami_tables};
use serde_json::Value;
use server::ForeignReport;
use trace::{OpenOptions, Root};

use crate::exit::{Outcome, print};
use crate::options::{ExternalRequest, Output, report_program};
use crate::verbs::{opened, window};

/// Runs a program's report and prints it as was asked.
pub fn run(request: &ExternalRequest) -> Result<Outcome> {
    let program = find(&request.name)?;
    if request.metadata {
        print(&format!("{}\n", ask(&program, &["--metadata".to_owned()])?))?;
        return Ok(Outcome::Fine);
    }
    let results = ask(&program, &arguments(request)?)?;
    match request.output {
        Output::Lami { .. } | Output::Json => print(&format!("{results}\n"))?,
        _ => {
            let metadata = ask(&program, &["--metadata".to_owned()])?;
            let calendar = Calendar {
                utc: request.window.utc,
                dated: false,
            };
            for table in lami_tables(&metadata, &results)? {
                print(&table.grid(calendar).text())?;
            }
        }
    }
    Ok(Outcome::Fine)
}

/// A report of others that the page of `rtscope view` offers.
pub(super) fn for_view(name: &str, traces: &[PathBuf]) -> Result<ForeignReport> {
    let program = find(name)?;
    let traces: Vec<String> = traces
        .iter()
        .map(|trace| trace.display().to_string())
        .collect();
    let run = move |(begin_ns, end_ns): (i64, i64)| {
        let mut words = vec![format!("--begin={begin_ns}"), format!("--end={end_ns}")];
        words.extend(traces.iter().cloned());
        let results = ask(&program, &words)?;
        let metadata = ask(&program, &["--metadata".to_owned()])?;
        lami_tables(&metadata, &results)
    };
    Ok(ForeignReport::new(name, run))
}

/// The range in nanoseconds since 1970, and the traces.
fn arguments(request: &ExternalRequest) -> Result<Vec<String>> {
    let mut words = Vec::new();
    if request.window.begin.is_some() || request.window.end.is_some() {
        let roots: Vec<Root> = request.traces.iter().map(Root::from).collect();
        let trace = opened::open_all(&roots, &OpenOptions::default())?;
        let range = window::resolve(&request.window, &trace)?;
        if range.begin > Instant::MIN {
            words.push(format!("--begin={}", trace.wall_ns(range.begin)));
        }
        if range.end < Instant::MAX {
            words.push(format!("--end={}", trace.wall_ns(range.end)));
        }
    }
    words.extend(
        request
            .traces
            .iter()
            .map(|trace| trace.display().to_string()),
    );
    Ok(words)
}

/// A path as it is; a name as `rtscope-report-NAME` in the search path.
fn find(name: &str) -> Result<PathBuf> {
    let path = Path::new(name);
    if name.contains('/') || is_python(path) {
        return match path.is_file() {
            true => Ok(path.to_owned()),
            false => Err(missing(name)),
        };
    }
    report_program(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, "there is no such report")
        .found(format!("'{name}'"))
        .fix(format!(
            "rtscope report list names ours; others are a path, or rtscope-report-{name} in PATH"
        ))
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

fn ask(program: &Path, words: &[String]) -> Result<Value> {
    let mut command = match is_python(program) {
        true => {
            let mut command = Command::new("python3");
            command.arg(program);
            command
        }
        false => Command::new(
            program
                .canonicalize()
                .unwrap_or_else(|_| program.to_owned()),
        ),
    };
    let what = || format!("cannot run {}", program.display());
    let output = command
        .args(words)
        .output()
        .map_err(|error| Error::io(what(), error))?;
    let printed = serde_json::from_slice(&output.stdout);
    printed.map_err(|_| {
        let talk = String::from_utf8_lossy(&output.stderr);
        let last = talk
            .lines()
            .last()
            .unwrap_or("nothing that is JSON")
            .to_owned();
        let what = format!("{} printed no LAMI", program.display());
        Error::new(ErrorKind::InvalidInput, what)
            .found(last)
            .fix("let it print one JSON object on stdout, as LAMI 1.0 says; docs/reports.md")
    })
}
