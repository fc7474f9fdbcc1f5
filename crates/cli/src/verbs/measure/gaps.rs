//! `rtscope measure hw`: threads that never sleep, the gaps in their running, and who took them.

use std::path::Path;
use std::time::Instant;

use analysis::{ExplainedGap, Gap, explain_gaps};
use capture::facts::{self, Facts, Verb};
use event::{Duration, Error, Result};
use measure::gaps::{Reading, Run};
use measure::steal;
use report::{Gaps, gaps_json, gaps_text};
use serde_json::Value;
use trace::Trace;

use super::cyclic::{warning, warnings};
use super::disturbers;
use crate::exit::{Outcome, print};
use crate::flags;
use crate::live::LiveLine;
use crate::options::GapOptions;
use crate::signals::{self, Wish};

/// How often we look whether it is over.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

/// Runs the verb.
pub(super) fn run(typed: &flags::Hw) -> Result<Outcome> {
    let facts = facts::gather();
    let machine = &facts.machine;
    let clocksource = machine.clocksource.as_deref();
    let (online, allowed) = (&machine.cpus_online, &machine.cpus_allowed);
    let options = GapOptions::new(typed, online, allowed, clocksource)?;
    if typed.prio > 0 {
        facts.require(Verb::Measure)?;
    }
    signals::take_over()?;
    let text = found(
        &options,
        &facts,
        || (),
        |gaps| match options.json {
            true => format!("{}\n", gaps_json(gaps)),
            false => gaps_text(gaps),
        },
    )?;
    if signals::wish() == Wish::Discard {
        eprintln!("discarded");
        return Ok(Outcome::Fine);
    }
    print(&text)?;
    Ok(Outcome::Fine)
}

/// What is found, as JSON, for a report that holds more; calls `looked` before the recording
/// is written and the gaps are explained, which takes its time.
pub(super) fn as_json(options: &GapOptions, facts: &Facts, looked: impl FnOnce()) -> Result<Value> {
    found(options, facts, looked, gaps_json)
}

/// Looks for gaps, calls `looked`, and shows what was found to `show`.
fn found<T>(
    options: &GapOptions,
    facts: &Facts,
    looked: impl FnOnce(),
    show: impl FnOnce(&Gaps) -> T,
) -> Result<T> {
    let steal_before = steal::of_cpus();
    let begin = Instant::now();
    let (readings, explained) = match &options.events {
        None => {
            let readings = look(options)?;
            looked();
            (readings, None)
        }
        Some(kept) => {
            facts.require(Verb::Record)?;
            recorded(options, kept.as_deref(), facts, looked)?
        }
    };
    let mut warnings = warnings(facts);
    let share = options.plan.width.share_of(options.plan.window);
    let throttled = (options.plan.policy.prio() > 0)
        .then(|| facts.throttling_doubt(share))
        .flatten();
    warnings.extend(throttled.as_ref().map(warning));
    let gaps = Gaps {
        readings: &readings,
        explained: explained.as_deref(),
        steal: &steal::since(&steal_before, &steal::of_cpus()),
        counter: options.plan.counter,
        threshold: options.plan.threshold,
        elapsed: Duration::from_ns(begin.elapsed().as_nanos() as i64),
        complete: signals::wish() == Wish::GoOn,
        kernel: &facts.machine.kernel_release,
        preemption: facts.scheduler.preemption.name(),
        warnings: &warnings,
    };
    Ok(show(&gaps))
}

/// Looks for gaps until the time is over.
fn look(options: &GapOptions) -> Result<Vec<Reading>> {
    let run = Run::start(&options.plan)?;
    let line = LiveLine::new(!options.json);
    let begin = Instant::now();
    let whole = std::time::Duration::from_nanos(options.run_for.as_ns_unsigned());
    while begin.elapsed() < whole && !run.has_failed() && signals::wish() == Wish::GoOn {
        let seconds = begin.elapsed().as_secs_f64();
        line.show(&format!(
            "looking for gaps: {seconds:.0} s of {}",
            options.run_for
        ));
        std::thread::sleep(LOOK_INTERVAL.min(whole - begin.elapsed().min(whole)));
    }
    line.clear();
    run.finish()
}

type Recorded = (Vec<Reading>, Option<Vec<ExplainedGap>>);

/// The same beside a recording of whatever can take a CPU; it goes where it is to be kept.
fn recorded(
    options: &GapOptions,
    kept: Option<&Path>,
    facts: &Facts,
    looked: impl FnOnce(),
) -> Result<Recorded> {
    let cannot = |error| Error::io("cannot make a folder for the recording", error);
    let temporary = tempfile::tempdir().map_err(cannot)?;
    let output = kept.map_or_else(|| temporary.path().join("gaps"), Path::to_owned);
    let look_and_tell = || {
        let readings = look(options);
        looked();
        readings
    };
    let readings = disturbers::recorded(&output, facts, look_and_tell)?;
    let trace = Trace::open(&output)?;
    let gaps = readings.iter().flat_map(|reading| {
        let (cpu, tid) = (reading.cpu, reading.tid);
        let gap = move |&range| Gap { cpu, tid, range };
        reading.gaps.iter().map(gap)
    });
    let explained = explain_gaps(&trace, &gaps.collect::<Vec<_>>())?;
    Ok((readings, Some(explained)))
}
