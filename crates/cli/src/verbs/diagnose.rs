//! `rtscope diagnose`: the late activations of a trace, who made them late, and what to change.

use std::path::{Path, PathBuf};

use diagnosis::{Diagnosis, LateActivation, Query, diagnose};
use event::{Duration, Result};
use report::{TextStyle, diagnosis_json, diagnosis_text};
use symbols::UserSymbols;
use trace::{Trace, TraceInfo};

use crate::exit::{Outcome, print_answer};
use crate::flags::Diagnose;
use crate::live;
use crate::options::DiagnoseOptions;
use crate::paint::Paint;
use crate::verbs::{again, opened, page, window};

/// Runs the verb.
pub fn run(typed: &Diagnose, paint: Paint) -> Result<Outcome> {
    let options = DiagnoseOptions::new(typed)?;
    let trace = opened::open_of_one_time(&options.traces, "diagnose")?;
    let mut diagnosis = diagnose(&trace, &query(&options, &trace)?)?;
    name_mutexes(&mut diagnosis, &trace)?;
    let command = trace.info().environment.get("rtscope_command_line");
    again::check_as_asked(&mut diagnosis, typed, command.map(String::as_str));
    if let Some(file) = &typed.html {
        page::write(file, &trace, &named(&options.traces), &diagnosis)?;
    }
    if let Some(file) = &typed.svg {
        page::write_picture(file, &trace, &named(&options.traces), &diagnosis)?;
    }
    let text = if options.json {
        format!("{:#}\n", diagnosis_json(&diagnosis))
    } else {
        let telling = Telling {
            trace: &named(&options.traces),
            more: again::with_all(again::own_words()),
            info: trace.info(),
            verbose: typed.verbose,
        };
        text(&diagnosis, &telling, paint)
    };
    print_answer(&text)?;
    Ok(outcome(&diagnosis, options.over.is_some()))
}

/// The traces, as words of a command.
fn named(traces: &[PathBuf]) -> PathBuf {
    match traces {
        [one] => one.clone(),
        several => {
            let names = several.iter().map(|path| path.display().to_string());
            PathBuf::from(names.collect::<Vec<_>>().join(" "))
        }
    }
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
        note!("warning: {problem}");
    }
    Ok(())
}

/// What a text is told with besides its findings.
pub struct Telling<'a> {
    /// Named in the commands that come next.
    pub trace: &'a Path,
    /// The command that shows all of it.
    pub more: String,
    /// Facts of the trace.
    pub info: &'a TraceInfo,
    /// All of it, now.
    pub verbose: bool,
}

/// The diagnosis as people read it.
pub fn text(diagnosis: &Diagnosis, telling: &Telling<'_>, paint: Paint) -> String {
    let offset = telling.info.wall_offset;
    let style = TextStyle {
        color: paint.is_on(),
        trace: Some(telling.trace.display().to_string()),
        verbose: telling.verbose,
        more: Some(telling.more.clone()),
        wall_offset: (offset != Duration::ZERO).then_some(offset),
        utc: false,
        columns: live::stdout_columns(),
    };
    diagnosis_text(diagnosis, &style)
}

fn query(options: &DiagnoseOptions, trace: &Trace) -> Result<Query> {
    window::known_cpus(&options.window, trace)?;
    let range = window::resolve(&options.window, trace)?;
    window::warn_outside(range, trace);
    let default = Query::default();
    let worst = options
        .worst
        .map(|worst| usize::try_from(worst).unwrap_or(usize::MAX));
    Ok(Query {
        tasks: options.tasks.clone(),
        until: options.until,
        threshold: options.over,
        worst: worst.unwrap_or(default.worst),
        range,
        cpus: options.window.cpus.clone(),
        ..default
    })
}

/// Something over a threshold that was asked for is one thing; a worst of which nobody can say why
/// is another, and goes first. Where nothing was activated, nothing was in time either.
fn outcome(diagnosis: &Diagnosis, has_threshold: bool) -> Outcome {
    let basis = &diagnosis.basis;
    let missing = basis.holes > 0 || basis.unknown() > 0 || basis.is_of_start_ups();
    let missing = missing || basis.open_call.is_some();
    let Some(worst) = diagnosis.activations.first() else {
        return match missing || basis.activations == 0 {
            true => Outcome::Inconclusive,
            false => Outcome::Fine,
        };
    };
    let mut groups = diagnosis.groups.iter();
    let of_worst = groups.find(|group| group.members.contains(&0));
    let verdicts = diagnosis.verdict().into_iter();
    let verdicts = verdicts.chain(of_worst.map(|group| &group.verdict));
    let is_open = verdicts.into_iter().any(|verdict| !verdict.conclusive);
    if is_open && !was_in_time(worst) {
        Outcome::Inconclusive
    } else if has_threshold {
        Outcome::Exceeded
    } else {
        Outcome::Fine
    }
}

/// Whether a hit's task was not late at all: what came before it waited is not its latency.
fn was_in_time(late: &LateActivation) -> bool {
    let over = late.hit.as_ref();
    let over = over.filter(|hit| hit.latency() >= hit.threshold);
    late.latency() == Duration::ZERO || over.is_some_and(|hit| late.latency() < hit.threshold)
}
