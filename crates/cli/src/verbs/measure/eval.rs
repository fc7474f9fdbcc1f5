//! `rtscope measure eval`: capabilities, loads, both measurements in turn, one report.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use capture::capabilities;
use capture::watch::HitReport;
use event::{Duration, Error, ErrorKind, Result};
use host::capabilities::{Capabilities, Verb};
use host::identity::Identity;
use host::unmasked::Unmasked;
use measure::cyclic::{Pauser, Reader, Reading};
use measure::load::Proof;
use report::{
    Compared, Evaluation, Late, Series, compare_html, compare_text, compare_verdict, eval_file,
    eval_hash, eval_html, eval_json, eval_junit, eval_text, gaps_json,
};
use serde_json::{Value, json};

use super::explained::Explain;
use super::gaps::Search;
use super::loads::Loads;
use super::session::{Found, Session};
use super::worst::WorstHits;
use super::{cyclictest, explained, workload};
use crate::exit::{Outcome, print, write_file};
use crate::flags;
use crate::live::Live;
use crate::options::EvalOptions;
use crate::signals::{self, Request};
use crate::verbs::watch::hit_value;

/// Where the reports go when nobody says it.
const FOLDER: &str = "rtscope-eval";
/// What an evaluation's folder holds; the hash is in the form of `sha256sum --check`.
const JSON: &str = "eval.json";
const HASH: &str = "eval.json.sha256";
const HTML: &str = "report.html";
const JUNIT: &str = "junit.xml";
/// And that of a comparison.
const COMPARISON: &str = "compare.html";
/// Which build this is.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("RTSCOPE_COMMIT"));
/// How often the end of a stretch is looked for.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// Runs the verb.
pub(super) fn run(typed: &flags::Eval) -> Result<Outcome> {
    if let Some([a, b]) = typed.compare.as_deref() {
        let output = typed.output.as_deref();
        return compare(a, b, output.unwrap_or(Path::new(FOLDER)));
    }
    let capabilities = capabilities::gather();
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
        eprintln!("samples over the budget will not be explained: rtscope doctor says why");
    }
    // Nobody waits for minutes to learn that the report has no place.
    let folder = match &typed.output {
        Some(folder) => folder.clone(),
        None => unused_folder(),
    };
    make_folder(&folder)?;
    let evaluation = match typed.command.is_empty() {
        true => evaluate(&options, &capabilities, &folder, typed)?,
        false => evaluate_workload(&options, &capabilities, &folder, typed)?,
    };
    if signals::request() == Request::Discard {
        eprintln!("discarded");
        return Ok(Outcome::Fine);
    }
    let file = |name: &str, text: &str| write_file(&folder.join(name), text);
    file(JSON, &eval_file(&evaluation))?;
    file(HASH, &format!("{}  {JSON}\n", eval_hash(&evaluation)))?;
    file(HTML, &eval_html(&evaluation))?;
    file(JUNIT, &eval_junit(&evaluation))?;
    let text = match typed.json {
        true => format!("{evaluation}\n"),
        false => {
            let path = folder.join(HTML);
            format!("{}the report: {}\n", eval_text(&evaluation), path.display())
        }
    };
    print(&text)?;
    Ok(match evaluation["verdict"].as_str() {
        Some("fail") => Outcome::Exceeded,
        Some("pass" | "none") => Outcome::Fine,
        _ => Outcome::Inconclusive,
    })
}

/// The first of our own names that holds no evaluation.
fn unused_folder() -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("{FOLDER}-{number}")));
    let mut names = std::iter::once(PathBuf::from(FOLDER)).chain(numbered);
    let unused = names.find(|folder| !holds_one(folder));
    unused.unwrap_or_else(|| PathBuf::from(FOLDER))
}

/// Whether an evaluation is in `folder`: an empty file is of one that came to nothing.
fn holds_one(folder: &Path) -> bool {
    std::fs::metadata(folder.join(JSON)).is_ok_and(|file| file.len() > 0)
}

/// A folder that takes our files and holds none of another evaluation.
fn make_folder(folder: &Path) -> Result<()> {
    let path = folder.display();
    if holds_one(folder) {
        return Err(
            Error::new(ErrorKind::InvalidInput, "an evaluation is never replaced")
                .found(format!("{path} holds one"))
                .fix(format!("name another folder: -o {path}-2")),
        );
    }
    std::fs::create_dir_all(folder).map_err(|error| {
        Error::io(format!("cannot make {path}"), error)
            .fix("name a folder that is ours to make, as in -o /tmp/eval")
    })?;
    write_file(&folder.join(JSON), "")
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

/// Both measurements under their loads.
fn evaluate(
    options: &EvalOptions,
    capabilities: &Capabilities,
    output: &Path,
    typed: &flags::Eval,
) -> Result<Value> {
    let frame = Frame::begin(capabilities);
    let mut loads = Loads::start(options)?;
    let plan = options.gaps.as_ref();
    let mut search = plan
        .map(|plan| Search::new(plan, capabilities))
        .transpose()?;
    let mut hits = WorstHits::new(options.worst);
    let plain = plain(options, capabilities, &mut loads)?;
    let beside = (&mut loads, search.as_mut());
    let (found, series, late) = cyclic(options, capabilities, output, &mut hits, beside)?;
    // What follows takes its time.
    let proofs = loads.finish();
    let search = search.filter(Search::has_looked);
    let hw = search.map(|search| search.finish(gaps_json)).transpose()?;
    let worst: Vec<Value> = hits.reports.iter().map(hit_value).collect();
    let (plain, plain_for, plain_complete) = match &plain {
        Some(plain) => (&plain.readings[..], plain.elapsed, plain.complete),
        None => (&[][..], Duration::ZERO, true),
    };
    Ok(eval_json(&Evaluation {
        readings: &found.readings,
        plain,
        plain_for,
        series: &series,
        elapsed: plain_for + found.elapsed,
        late: late.map(|late| Late {
            samples: worst,
            ..late
        }),
        hw,
        budget: options.budget,
        complete: found.complete && plain_complete,
        ..frame.evaluation(typed, &proofs)
    }))
}

/// An application under the same loads.
fn evaluate_workload(
    options: &EvalOptions,
    capabilities: &Capabilities,
    output: &Path,
    typed: &flags::Eval,
) -> Result<Value> {
    let frame = Frame::begin(capabilities);
    let mut loads = Loads::start(options)?;
    let (workload, late) = workload::run(typed, options, capabilities, (output, &mut loads))?;
    let proofs = loads.finish();
    Ok(eval_json(&Evaluation {
        workload: Some(&workload),
        elapsed: workload.elapsed,
        late: options.over.map(|_| late),
        budget: options.budget,
        complete: signals::request() == Request::GoOn,
        ..frame.evaluation(typed, &proofs)
    }))
}

/// The threads that sleep, with nobody who explains anything: what that costs is the difference.
fn plain(
    options: &EvalOptions,
    capabilities: &Capabilities,
    loads: &mut Loads,
) -> Result<Option<Found>> {
    if options.plain == Duration::ZERO {
        return Ok(None);
    }
    let mut cyclic = options.cyclic.clone();
    cyclic.plan.samples = None;
    cyclic.run_for = Some(options.plain);
    let mut session = Session::start(&cyclic, capabilities)?;
    session.until_over(|_| {
        if let Some(why) = loads.look() {
            eprintln!("{why}; nothing is proved from here on, Ctrl-C ends it");
        }
    });
    Ok(Some(session.finish()))
}

/// What goes on beside the threads that sleep: loads, and the search for gaps, for which they rest.
type Beside<'a, 'capabilities> = (&'a mut Loads, Option<&'a mut Search<'capabilities>>);

/// The threads that sleep; late samples are kept in `hits` when that was asked.
fn cyclic(
    options: &EvalOptions,
    capabilities: &Capabilities,
    output: &Path,
    hits: &mut WorstHits,
    beside: Beside,
) -> Result<(Found, Vec<Series>, Option<Late>)> {
    let mut cyclic = options.cyclic.clone();
    if options.plain > Duration::ZERO {
        // Everything is warm since then.
        cyclic.warm_up = None;
    }
    let mut session = match options.over {
        Some(_) => Session::hold(&cyclic, capabilities)?,
        None => Session::start(&cyclic, capabilities)?,
    };
    let (reader, pauser) = (session.run.reader(), session.run.pauser());
    let over = AtomicBool::new(false);
    let (watched, sampled) = std::thread::scope(|scope| {
        // A thread of its own: whoever takes a snapshot has no time to look.
        let sampler = scope.spawn(|| {
            let sampled = sample(options, &reader, &over, (&pauser, beside));
            if sampled.is_err() {
                // What follows would be for nothing.
                pauser.end();
            }
            sampled
        });
        let watched = until_over(&mut session, options, capabilities, output, hits);
        over.store(true, Ordering::Release);
        (watched, sampler.join())
    });
    let late = watched?;
    let series = sampled.unwrap_or_else(|_| Err(panicked()))?;
    Ok((session.finish(), series, late))
}

fn panicked() -> Error {
    let cause = std::io::Error::other("the thread that reads the figures panicked");
    Error::io("the evaluation failed", cause)
}

fn until_over(
    session: &mut Session,
    options: &EvalOptions,
    capabilities: &Capabilities,
    output: &Path,
    hits: &mut WorstHits,
) -> Result<Option<Late>> {
    let Some(over) = options.over else {
        session.until_over(|_| ());
        return Ok(None);
    };
    let mut keep = |report: &HitReport| {
        hits.add(report);
        Ok(())
    };
    let explain = Explain {
        over,
        output: output.join("snapshots"),
        worst: options.worst,
        actions: options.actions.clone(),
    };
    explained::watch(session, &explain, capabilities, &mut keep).map(Some)
}

/// Looks at the figures at the end of each stretch, and for gaps when it is time, until it is over.
fn sample(
    options: &EvalOptions,
    reader: &Reader,
    over: &AtomicBool,
    (pauser, (loads, mut search)): (&Pauser, Beside),
) -> Result<Vec<Series>> {
    let mut series = vec![Series::default(); options.cyclic.plan.threads.len()];
    let live = Live::new(true);
    // Whoever explains late samples may be seconds from ready: nobody measures until then, and a
    // rest before would be none.
    while !reader.has_begun() && !over.load(Ordering::Acquire) {
        std::thread::sleep(LOOK_INTERVAL);
    }
    let begin = Instant::now();
    let mut rested = std::time::Duration::ZERO;
    let mut next = options.stretch;
    let mut rests = options.rests.iter().peekable();
    while !over.load(Ordering::Acquire) {
        std::thread::sleep(LOOK_INTERVAL);
        if let Some(why) = loads.look() {
            live.clear();
            eprintln!("{why}; nothing is proved from here on, Ctrl-C ends it");
        }
        let now = Duration::from_ns((begin.elapsed() - rested).as_nanos() as i64);
        if let Some(search) = &mut search
            && rests.next_if(|at| now >= **at).is_some()
            // Nobody looks for gaps on a CPU that is gone, and what is measured already counts.
            && !reader.read().iter().any(|reading| reading.lost_cpu)
        {
            live.clear();
            let rest_began = Instant::now();
            pauser.during(|| search.look(options.rest))?;
            rested += rest_began.elapsed();
        }
        if now < next {
            continue;
        }
        next = now + options.stretch;
        let readings = reader.read();
        live.line(&progress(now, options, &readings));
        for (series, reading) in series.iter_mut().zip(readings) {
            series.add(options.plain + now, reading.latency);
        }
    }
    Ok(series)
}

fn progress(now: Duration, options: &EvalOptions, readings: &[Reading]) -> String {
    let extremes = readings.iter().filter_map(|one| one.latency.extremes);
    let longest = extremes.map(|extremes| extremes.max).max();
    let longest = longest.unwrap_or_default();
    let whole = options.cyclic.run_for.unwrap_or_default();
    let seconds = now.as_ns() / 1_000_000_000;
    format!("measuring: {seconds} s of {whole}, the longest {longest}")
}

/// Two evaluations side by side.
fn compare(a: &Path, b: &Path, output: &Path) -> Result<Outcome> {
    let (a, b) = (read(a)?, read(b)?);
    std::fs::create_dir_all(output).map_err(|error| {
        Error::io(format!("cannot make {}", output.display()), error)
            .fix("name a folder that is ours to make, as in -o /tmp/both")
    })?;
    let path = output.join(COMPARISON);
    write_file(&path, &compare_html(&a, &b))?;
    print(&format!(
        "{}the report: {}\n",
        compare_text(&a, &b),
        path.display()
    ))?;
    Ok(match compare_verdict(&a, &b) {
        Compared::NotWorse => Outcome::Fine,
        Compared::Worse => Outcome::Exceeded,
        Compared::Inconclusive => Outcome::Inconclusive,
    })
}

/// The object of an evaluation, by its folder or its file.
fn read(path: &Path) -> Result<Value> {
    let file = match path.is_dir() {
        true => path.join(JSON),
        false => path.to_owned(),
    };
    let fix = "give the folders that rtscope measure eval -o wrote";
    let text = std::fs::read_to_string(&file)
        .map_err(|error| Error::io(format!("cannot read {}", file.display()), error).fix(fix))?;
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    if value["schema"] != "rtscope.eval" || value["version"] != 2 {
        let what = format!("{} is no evaluation", file.display());
        let found = format!("schema {}, version {}", value["schema"], value["version"]);
        return Err(Error::new(ErrorKind::Corrupt, what).found(found).fix(fix));
    }
    Ok(value)
}
