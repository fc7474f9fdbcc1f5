//! `rtscope measure eval`: capabilities, loads, both measurements in turn, one report.

mod compare;
mod earlier;
mod folder;
pub(super) mod intervals;
mod served;
mod threads;

use std::path::Path;
use std::sync::Arc;

use capture::capabilities;
use event::{Duration, Error, ErrorKind, Result};
use host::capabilities::{Capabilities, Verb};
use host::identity::Identity;
use host::unmasked::Unmasked;
use measure::cyclic::Reading;
use measure::journal::{Journal, Record};
use measure::load::Proof;
use report::{Evaluation, Late, Parts, eval_json, eval_text, gaps_json};
use serde_json::{Value, json};

use self::folder::{BUILD, FOLDER, HTML};
use self::intervals::Intervals;
use self::threads::{Beside, Plain};
use super::gaps::Search;
use super::loads::Loads;
use super::worst::WorstHits;
use super::{cyclictest, explained, workload};
use crate::exit::{Outcome, print_answer};
use crate::flags;
use crate::options::{EvalOptions, positive_duration};
use crate::signals::{self, Request};

/// Runs the verb.
pub(super) fn run(typed: &flags::Eval) -> Result<Outcome> {
    if let Some([a, b]) = typed.compare.as_deref() {
        let output = typed.output.as_deref();
        return compare::run(a, b, output.unwrap_or(Path::new(FOLDER)));
    }
    let resumed = typed.resume.as_deref().map(Journal::resume).transpose()?;
    let again = resumed.as_ref();
    let again = again.map(|(_, record)| earlier::typed(record, typed));
    let again = again.transpose()?;
    let typed = again.as_ref().unwrap_or(typed);
    signals::heed_terminal()?;
    let capabilities = capabilities::gather();
    let mut options = decide(typed, &capabilities)?;
    // Nobody waits for minutes to learn that the report has no place.
    let folder = match (&typed.resume, &typed.output) {
        (Some(folder), _) | (None, Some(folder)) => folder.clone(),
        (None, None) => folder::unused(),
    };
    threads::explain(&options, &folder)
        .as_ref()
        .map_or(Ok(()), explained::check)?;
    let head = earlier::head(typed, &options, &capabilities);
    let evaluation = match resumed {
        Some((journal, record)) => {
            refuse_complete(&record, &folder)?;
            earlier::check(&record.head, &head)?;
            options.go_on_after(record.elapsed(), record.plain.is_some());
            let days = Days::new(journal, Some(record), typed)?;
            evaluated(&options, &capabilities, &folder, (typed, &days))?
        }
        None => {
            folder::make(&folder)?;
            let days = Days::new(Journal::create(&folder, &head)?, None, typed)?;
            evaluated(&options, &capabilities, &folder, (typed, &days))?
        }
    };
    if signals::discarded() {
        if typed.resume.is_none() {
            folder::forget(&folder);
        }
        return Ok(Outcome::Fine);
    }
    folder::write(&folder, &evaluation)?;
    let text = match typed.json {
        true => format!("{evaluation}\n"),
        false => {
            let path = folder.join(HTML);
            format!("{}the report: {}\n", eval_text(&evaluation), path.display())
        }
    };
    print_answer(&text)?;
    Ok(match evaluation["verdict"].as_str() {
        Some("fail") => Outcome::Exceeded,
        Some("pass" | "none") => Outcome::Fine,
        _ => Outcome::Inconclusive,
    })
}

/// What is to be done, as far as this machine allows it.
fn decide(typed: &flags::Eval, capabilities: &Capabilities) -> Result<EvalOptions> {
    let machine = &capabilities.machine;
    let cpus = [
        &machine.cpus_online[..],
        &machine.cpus_allowed,
        &machine.cpus_isolated,
    ];
    let mut options = EvalOptions::new(typed, cpus, machine.clocksource.as_deref())?;
    capabilities.require(Verb::Measure)?;
    if typed.over.is_some() || !typed.command.is_empty() {
        capabilities.require(Verb::Watch)?;
    }
    if capabilities.stand(Verb::Watch).rung.is_none() && options.over.is_some() {
        options.without_explaining();
        note!("samples over the budget will not be explained: rtscope doctor says why");
    }
    Ok(options)
}

/// Nothing goes on behind a certificate that covers all.
fn refuse_complete(record: &Record, folder: &Path) -> Result<()> {
    if !record.is_complete() || !folder::holds_one(folder) {
        return Ok(());
    }
    let path = folder.display();
    Err(
        Error::new(ErrorKind::InvalidInput, "this evaluation is complete")
            .found(format!("{path} holds its report"))
            .fix(format!("measure anew: -o {path}-2")),
    )
}

/// Where the intervals of this run go, and what the runs before it measured.
struct Days {
    journal: Arc<Journal>,
    earlier: Option<Record>,
    gap_allowed: Duration,
}

impl Days {
    fn new(journal: Journal, earlier: Option<Record>, typed: &flags::Eval) -> Result<Days> {
        let allowed = typed.allow_gap.as_deref();
        let allowed = allowed.map(|text| positive_duration("--allow-gap", text));
        Ok(Days {
            journal: Arc::new(journal),
            earlier,
            gap_allowed: allowed.transpose()?.unwrap_or_default(),
        })
    }
}

/// What every evaluation says, whatever was measured.
struct Frame<'a> {
    began: String,
    unmasked: Unmasked,
    command: Vec<String>,
    capabilities: &'a Capabilities,
}

impl<'a> Frame<'a> {
    fn begin(capabilities: &'a Capabilities) -> Frame<'a> {
        let words = std::env::args_os();
        Frame {
            began: cyclictest::date(),
            unmasked: Unmasked::read(Path::new("/")),
            command: words
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            capabilities,
        }
    }

    fn machine(&self) -> Value {
        json!({
            "identity": Identity::read(Path::new("/")),
            "facts": self.capabilities,
            "doubts": self.capabilities.doubts(),
            "unmasked": Unmasked::read(Path::new("/")).since(self.unmasked),
        })
    }

    /// An evaluation without any measurement yet.
    fn evaluation<'b>(&'b self, typed: &'b flags::Eval, loads: &'b [Proof]) -> Evaluation<'b> {
        Evaluation {
            began: &self.began,
            made_by: (BUILD, &self.command),
            annotation: typed.annotation.as_deref(),
            machine: self.machine(),
            loads,
            ..Evaluation::default()
        }
    }
}

/// What was asked for, behind what earlier runs measured.
fn evaluated(
    options: &EvalOptions,
    capabilities: &Capabilities,
    output: &Path,
    asked: (&flags::Eval, &Days),
) -> Result<Value> {
    match asked.0.command.is_empty() {
        true => evaluate(options, capabilities, output, asked),
        false => evaluate_workload(options, capabilities, output, asked),
    }
}

/// Both measurements under their loads.
fn evaluate(
    options: &EvalOptions,
    capabilities: &Capabilities,
    output: &Path,
    (typed, days): (&flags::Eval, &Days),
) -> Result<Value> {
    let frame = Frame::begin(capabilities);
    let mut loads = Loads::start(options)?;
    let plan = options.gaps.as_ref();
    let mut search = plan
        .map(|plan| Search::new(plan, capabilities))
        .transpose()?;
    let mut hits = WorstHits::new(options.worst);
    let mut intervals = Intervals::new(&days.journal, options.closes_after);
    intervals.serve(typed.port)?;
    let before = days.earlier.as_ref();
    let plain = match Plain::of(before, options)? {
        Some(plain) => plain,
        None => threads::plain(options, capabilities, &mut loads, &mut intervals)?,
    };
    let done = plain.elapsed + before.map(Record::elapsed).unwrap_or_default();
    let series = earlier::series(before, options, plain.elapsed);
    let beside = Beside {
        loads: &mut loads,
        search: search.as_mut(),
        intervals: &mut intervals,
    };
    let (found, series, late) = threads::cyclic(
        (options, capabilities),
        output,
        &mut hits,
        beside,
        (done, series),
    )?;
    let complete = found.complete && plain.complete;
    intervals.end(complete);
    // What follows takes its time.
    let proofs = loads.finish();
    let search = search.filter(Search::has_looked);
    let hw = search.map(|search| search.finish(gaps_json)).transpose()?;
    let worst = hits.explained(found.elapsed);
    let mut runs = before.map_or_else(Vec::new, |record| earlier::parts(record, intervals.boot()));
    runs.extend(intervals.part(samples_of(&found.readings), found.elapsed, complete));
    let elapsed = done + found.elapsed;
    let readings = match before {
        Some(record) => earlier::joined(record, options, found.readings)?,
        None => found.readings,
    };
    Ok(eval_json(&Evaluation {
        readings: &readings,
        plain: &plain.readings,
        plain_for: plain.elapsed,
        series: &series,
        elapsed,
        late: late.map(|late| Late {
            samples: worst,
            ..late
        }),
        hw,
        budget: options.budget,
        complete,
        parts: Parts {
            runs: &runs,
            gap_allowed: days.gap_allowed,
            over: options.cyclic.plan.kept_over,
        },
        ..frame.evaluation(typed, &proofs)
    }))
}

/// How many samples there are, and the longest.
fn samples_of(readings: &[Reading]) -> (u64, Option<Duration>) {
    let samples = readings.iter().map(|one| one.latency.samples).sum();
    let extremes = readings.iter().filter_map(|one| one.latency.extremes);
    (samples, extremes.map(|extremes| extremes.max).max())
}

/// An application under the same loads.
fn evaluate_workload(
    options: &EvalOptions,
    capabilities: &Capabilities,
    output: &Path,
    (typed, days): (&flags::Eval, &Days),
) -> Result<Value> {
    let frame = Frame::begin(capabilities);
    let mut loads = Loads::start(options)?;
    let mut intervals = Intervals::new(&days.journal, options.closes_after);
    let before = days.earlier.as_ref();
    let beside = workload::Beside {
        loads: &mut loads,
        intervals: &mut intervals,
    };
    let went = workload::run(typed, options, capabilities, (output, before), beside)?;
    let complete = signals::request() == Request::GoOn;
    intervals.end(complete);
    let proofs = loads.finish();
    let (elapsed, judged, longest) = went.own;
    let mut runs = before.map_or_else(Vec::new, |record| earlier::parts(record, intervals.boot()));
    runs.extend(intervals.part((judged, longest), elapsed, complete));
    Ok(eval_json(&Evaluation {
        workload: Some(&went.workload),
        elapsed: went.workload.elapsed,
        late: options.over.map(|_| went.late),
        budget: options.budget,
        complete,
        parts: Parts {
            runs: &runs,
            gap_allowed: days.gap_allowed,
            over: options.over,
        },
        ..frame.evaluation(typed, &proofs)
    }))
}
