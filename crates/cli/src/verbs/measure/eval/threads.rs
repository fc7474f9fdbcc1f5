//! The threads that sleep until an instant, and what goes on beside them: the part before anything
//! is explained, and the one in which late samples are.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use capture::watch::HitReport;
use event::{Duration, Error, Result};
use host::capabilities::Capabilities;
use measure::cyclic::{Pauser, Reader, Reading};
use measure::journal::Record;
use report::{Late, Series};

use super::earlier;
use super::intervals::Intervals;
use crate::live::Live;
use crate::options::{EvalOptions, ExplainOptions};
use crate::verbs::measure::explained;
use crate::verbs::measure::gaps::Search;
use crate::verbs::measure::loads::Loads;
use crate::verbs::measure::session::{Found, Session};
use crate::verbs::measure::worst::WorstHits;

/// How often the end of a stretch is looked for.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// What was measured before anything was explained.
#[derive(Default)]
pub(super) struct Plain {
    pub(super) readings: Vec<Reading>,
    pub(super) elapsed: Duration,
    pub(super) complete: bool,
}

impl Plain {
    /// That of an earlier run, if it came so far.
    pub(super) fn of(record: Option<&Record>, options: &EvalOptions) -> Result<Option<Plain>> {
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
pub(super) fn plain(
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
        if let Some(complaint) = loads.look() {
            note!("{complaint}");
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
pub(super) struct Beside<'a, 'capabilities> {
    pub(super) loads: &'a mut Loads,
    pub(super) search: Option<&'a mut Search<'capabilities>>,
    pub(super) intervals: &'a mut Intervals,
}

/// The threads that sleep; late samples are kept in `hits` when that was asked.
pub(super) fn cyclic(
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
    let Some(explain) = explain(options, output) else {
        session.until_over(|_| ());
        return Ok(None);
    };
    let mut keep = |report: &HitReport| {
        hits.add(report);
        Ok(())
    };
    explained::watch(session, &explain, capabilities, &mut keep).map(Some)
}

/// What is explained of an evaluation in this folder.
pub(super) fn explain(options: &EvalOptions, folder: &Path) -> Option<ExplainOptions> {
    Some(ExplainOptions {
        over: options.over?,
        output: folder.join("snapshots"),
        worst: options.worst,
        actions: options.actions.clone(),
    })
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
    // Whoever explains late samples may be seconds from ready: nobody measures until then, and a
    // rest before would be none.
    while !reader.has_begun() && !over.load(Ordering::Acquire) {
        std::thread::sleep(LOOK_INTERVAL);
    }
    beside.intervals.begin();
    let mut next = options.stretch;
    let mut rests = options.rests.iter().peekable();
    while !over.load(Ordering::Acquire) && !pauser.has_ended() {
        std::thread::sleep(LOOK_INTERVAL);
        if let Some(complaint) = beside.loads.look() {
            live.clear();
            note!("{complaint}");
        }
        beside.intervals.excursions.look(reader, series.len());
        let now = pauser.measured();
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
            pauser.during(|| search.look(options.rest))?;
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
    // Late samples are still written and explained: no longer under the loads.
    beside.loads.end();
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
