//! `rtscope diagnose`: the late activations of a trace, who made them late, and what to change.

use std::io::Write;
use std::path::Path;

use diagnosis::{Diagnosis, Grade, Query, diagnose};
use event::Result;
use report::{TextStyle, diagnosis_json, diagnosis_text};
use symbols::UserSymbols;
use trace::Trace;

use crate::exit::{Outcome, stdout_error};
use crate::flags::Diagnose;
use crate::live;
use crate::options::DiagnoseOptions;
use crate::paint::Paint;
use crate::verbs::{opened, window};

/// Runs the verb.
pub fn run(typed: &Diagnose, paint: Paint) -> Result<Outcome> {
    let options = DiagnoseOptions::new(typed)?;
    let trace = opened::open(&options.trace)?;
    let mut diagnosis = diagnose(&trace, &query(&options, &trace)?)?;
    name_mutexes(&mut diagnosis, &trace)?;
    let text = if options.json {
        format!("{:#}\n", diagnosis_json(&diagnosis))
    } else {
        text(&diagnosis, &options.trace, paint, typed.verbose)
    };
    std::io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .map_err(stdout_error)?;
    Ok(outcome(&diagnosis, options.over.is_some()))
}

/// Names the mutexes in it by the programs' files; says what stands in the way.
fn name_mutexes(diagnosis: &mut Diagnosis, trace: &Trace) -> Result<()> {
    let verdicts = diagnosis.groups.iter().map(|group| &group.verdict);
    if verdicts.clone().all(|verdict| verdict.mutexes.is_empty()) {
        return Ok(());
    }
    let mut symbols = UserSymbols::read(trace)?;
    diagnosis.name_mutexes(|tid, at, address| {
        let pid = symbols.process_of(tid.0);
        symbols.object(pid, at, address)
    });
    for problem in symbols.problems() {
        eprintln!("warning: {problem}");
    }
    Ok(())
}

/// The diagnosis as people read it; `trace` is named in the commands that come next.
pub fn text(diagnosis: &Diagnosis, trace: &Path, paint: Paint, verbose: bool) -> String {
    let trace = Some(trace.display().to_string());
    diagnosis_text(
        diagnosis,
        &TextStyle {
            color: paint.is_on(),
            trace,
            verbose,
            columns: live::stdout_columns(),
        },
    )
}

fn query(options: &DiagnoseOptions, trace: &Trace) -> Result<Query> {
    window::known_cpus(&options.window, trace)?;
    let default = Query::default();
    let worst = options
        .worst
        .map(|worst| usize::try_from(worst).unwrap_or(usize::MAX));
    Ok(Query {
        tasks: options.tasks.clone(),
        until: options.until,
        threshold: options.over,
        worst: worst.unwrap_or(default.worst),
        range: window::resolve(&options.window, trace)?,
        cpus: options.window.cpus.clone(),
    })
}

/// Something over a threshold that was asked for is one thing; a worst that losses forbid to
/// explain is another, and goes first. Where nothing was activated, nothing was in time either.
fn outcome(diagnosis: &Diagnosis, has_threshold: bool) -> Outcome {
    let worst = diagnosis.activations.first();
    let is_lossy = worst.is_some_and(|late| late.ledger.grade >= Grade::Unrecorded);
    let is_conclusive = diagnosis
        .verdict()
        .is_some_and(|verdict| verdict.conclusive);
    let basis = &diagnosis.basis;
    let missing = basis.holes > 0 || basis.doubted > 0;
    let blind = worst.is_none() && (missing || basis.activations == 0);
    if blind || (is_lossy && !is_conclusive) {
        Outcome::Inconclusive
    } else if has_threshold && worst.is_some() {
        Outcome::Exceeded
    } else {
        Outcome::Fine
    }
}
