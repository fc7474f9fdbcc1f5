//! `rtscope measure eval`: capabilities, loads, both measurements in turn, one report.

mod earlier;
mod folder;
mod intervals;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use capture::capabilities;
use capture::watch::HitReport;
use event::{Duration, Error, ErrorKind, Result};
use host::capabilities::{Capabilities, Verb};
use host::identity::Identity;
use host::unmasked::Unmasked;
use measure::cyclic::{Pauser, Reader, Reading};
use measure::journal::{Journal, Record};
use measure::load::Proof;
use report::{
    Compared, Evaluation, Late, Parts, Series, compare_html, compare_text, compare_verdict,
    eval_json, eval_text, gaps_json,
};
use serde_json::{Value, json};

use self::folder::{BUILD, FOLDER, HTML, JSON};
use self::intervals::Intervals;
use super::explained::Explain;
use super::gaps::Search;
use super::loads::Loads;
use super::session::{Found, Session};
use super::worst::WorstHits;
use super::{cyclictest, explained, workload};
use crate::exit::{Outcome, print, write_file};
use crate::flags;
use crate::live::Live;
use crate::options::{EvalOptions, positive_duration};
use crate::signals::{self, Request};
use crate::verbs::watch::hit_value;

/// The page of a comparison.
const COMPARISON: &str = "compare.html";
/// How often the end of a stretch is looked for.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// Runs the verb.
pub(super) fn run(typed: &flags::Eval) -> Result<Outcome> {
    if let Some([a, b]) = typed.compare.as_deref() {
        let output = typed.output.as_deref();
        return compare(a, b, output.unwrap_or(Path::new(FOLDER)));
    }
    let resumed = typed.resume.as_deref().map(Journal::resume).transpose()?;
    let again = resumed.as_ref();
    let again = again.map(|(_, record)| earlier::typed(record, typed));
    let again = again.transpose()?;
    let typed = again.as_ref().unwrap_or(typed);
    let capabilities = capabilities::gather();
    let mut options = decide(typed, &capabilities)?;
    // Nobody waits for minutes to learn that the report has no place.
    let folder = match (&typed.resume, &typed.output) {
        (Some(folder), _) | (None, Some(folder)) => folder.clone(),
        (None, None) => folder::unused(),
    };
    let head = earlier::head(&options, &capabilities);
    let evaluation = match resumed {
        Some((journal, record)) => {
            is_unfinished(&record, &folder)?;
            earlier::check(&record.head, &head)?;
            options.go_on_after(record.elapsed(), record.plain.is_some());
            let days = Days::new(journal, Some(record), typed)?;
            evaluate(&options, &capabilities, &folder, (typed, &days))?
        }
        None => {
            folder::make(&folder)?;
            match typed.command.is_empty() {
                true => {
                    let days = Days::new(Journal::create(&folder, &head)?, None, typed)?;
                    evaluate(&options, &capabilities, &folder, (typed, &days))?
                }
                false => evaluate_workload(&options, &capabilities, &folder, typed)?,
            }
        }
    };
    if signals::request() == Request::Discard {
        if typed.resume.is_none() {
            folder::forget(&folder);
        }
        eprintln!("discarded");
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
    print(&text)?;
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
        eprintln!("samples over the budget will not be explained: rtscope doctor says why");
    }
    Ok(options)
}

/// Nothing goes on behind a certificate that covers all.
fn is_unfinished(record: &Record, folder: &Path) -> Result<()> {
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
    let before = days.earlier.as_ref();
    let plain = match Plain::of(before, options)? {
        Some(plain) => plain,
        None => plain(options, capabilities, &mut loads, &mut intervals)?,
    };
    let done = plain.elapsed + before.map(Record::elapsed).unwrap_or_default();
    let series = earlier::series(before, options, plain.elapsed);
    let beside = Beside {
        loads: &mut loads,
        search: search.as_mut(),
        intervals: &mut intervals,
    };
    let (found, series, late) = cyclic(
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
    let worst: Vec<Value> = hits.reports.iter().map(hit_value).collect();
    let mut runs = before.map_or_else(Vec::new, |record| earlier::parts(record, intervals.boot()));
    runs.extend(intervals.part(&found.readings, found.elapsed, complete));
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

/// Says what came in the way, if something did.
fn tell(complaint: Option<String>) {
    if let Some(complaint) = complaint {
        eprintln!("{complaint}");
    }
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

/// What was measured before anything was explained.
#[derive(Default)]
struct Plain {
    readings: Vec<Reading>,
    elapsed: Duration,
    complete: bool,
}

impl Plain {
    /// That of an earlier run, if it came so far.
    fn of(record: Option<&Record>, options: &EvalOptions) -> Result<Option<Plain>> {
        let own = record.and_then(|record| Some((record, record.plain.as_ref()?)));
        let Some((record, own)) = own else {
            return Ok(None);
        };
        Ok(Some(Plain {
            readings: earlier::plain(record, options)?,
            elapsed: Duration::from_ns(own.elapsed_ns),
            complete: true,
        }))
    }
}

/// The threads that sleep, with nobody who explains anything: what that costs is the difference.
fn plain(
    options: &EvalOptions,
    capabilities: &Capabilities,
    loads: &mut Loads,
    intervals: &mut Intervals,
) -> Result<Plain> {
    if options.plain == Duration::ZERO {
        return Ok(Plain {
            complete: true,
            ..Plain::default()
        });
    }
    let mut cyclic = options.cyclic.clone();
    cyclic.plan.samples = None;
    cyclic.run_for = Some(options.plain);
    let mut session = Session::start(&cyclic, capabilities)?;
    let (reader, threads) = (session.run.reader(), cyclic.plan.threads.len());
    session.until_over(|_| {
        intervals.excursions.look(&reader, threads);
        if let Some(why) = loads.look() {
            eprintln!("{why}; nothing is proved from here on, Ctrl-C ends it");
        }
    });
    let found = session.finish();
    intervals.excursions.look(&reader, threads);
    if found.complete {
        intervals.plain(found.elapsed, &found.readings);
    }
    Ok(Plain {
        readings: found.readings,
        elapsed: found.elapsed,
        complete: found.complete,
    })
}

/// What goes on beside the threads that sleep: loads, the search for gaps, for which they rest, and
/// their intervals on the way to the disk.
struct Beside<'a, 'capabilities> {
    loads: &'a mut Loads,
    search: Option<&'a mut Search<'capabilities>>,
    intervals: &'a mut Intervals,
}

/// The threads that sleep; late samples are kept in `hits` when that was asked.
fn cyclic(
    (options, capabilities): (&EvalOptions, &Capabilities),
    output: &Path,
    hits: &mut WorstHits,
    mut beside: Beside,
    from: (Duration, Vec<Series>),
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
            let sampled = sample(options, (&reader, &over), (&pauser, &mut beside), from);
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
    let found = session.finish();
    let Beside {
        loads, intervals, ..
    } = beside;
    intervals.excursions.look(&reader, found.readings.len());
    intervals.close(found.elapsed, found.readings.clone(), loads.states());
    Ok((found, series, late))
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

/// Looks at the figures at the end of each stretch and of each interval, and for gaps when it is
/// time, until it is over.
fn sample(
    options: &EvalOptions,
    (reader, over): (&Reader, &AtomicBool),
    (pauser, beside): (&Pauser, &mut Beside),
    (done, mut series): (Duration, Vec<Series>),
) -> Result<Vec<Series>> {
    let live = Live::new(true);
    let say = |line: Option<String>| {
        if line.is_some() {
            live.clear();
            tell(line);
        }
    };
    // Whoever explains late samples may be seconds from ready: nobody measures until then, and a
    // rest before would be none.
    while !reader.has_begun() && !over.load(Ordering::Acquire) {
        std::thread::sleep(LOOK_INTERVAL);
    }
    beside.intervals.begin();
    let begin = Instant::now();
    let mut rested = std::time::Duration::ZERO;
    let mut next = options.stretch;
    let mut rests = options.rests.iter().peekable();
    while !over.load(Ordering::Acquire) {
        std::thread::sleep(LOOK_INTERVAL);
        let died = beside.loads.look();
        say(died.map(|why| format!("{why}; nothing is proved from here on, Ctrl-C ends it")));
        beside.intervals.excursions.look(reader, series.len());
        let now = Duration::from_ns((begin.elapsed() - rested).as_nanos() as i64);
        if beside.intervals.is_due(now) {
            let loads = beside.loads.states();
            beside.intervals.close(now, reader.read(), loads);
        }
        if let Some(search) = &mut beside.search
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
            series.add(done + now, reading.latency);
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
