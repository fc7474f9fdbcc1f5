//! `rtscope measure cyclic`: threads that sleep until an instant, and how late they run.

use capture::capabilities;
use capture::watch::WatchObserver;
use event::{Duration, Result};
use host::capabilities::{Capabilities, Lack, Verb};
use host::task;
use measure::cyclic::Reading;
use report::{Cyclic, Late, cyclic_json, cyclic_text, cyclictest_histogram};

use super::explained;
use super::phases::{self, Phases};
use super::session::{Found, Session};
use super::worst::WorstHits;
use crate::exit::{Outcome, print_answer, write_file};
use crate::flags;
use crate::live::{Live, stdout_columns};
use crate::options::{CyclicOptions, CyclicOutput, ExplainOptions};
use crate::paint::Paint;
use crate::signals;
use crate::verbs::watch::NOT_EXPLAINED;

/// Runs the verb.
pub(super) fn run(typed: &flags::Cyclic, paint: Paint) -> Result<Outcome> {
    let capabilities = capabilities::gather();
    let machine = &capabilities.machine;
    let mut options = CyclicOptions::new(typed, &machine.cpus_online, &machine.cpus_allowed)?;
    let CyclicOutput::Own {
        json,
        explain,
        histogram,
        live,
    } = options.output.clone()
    else {
        unreachable!("cyclictest's output is asked for by its own options");
    };
    if options.is_urgent() {
        capabilities.require(Verb::Measure)?;
    }
    if explain.is_some() || options.phases {
        capabilities.require(Verb::Watch)?;
    }
    if let Some(path) = &histogram {
        // Nobody waits for hours to learn that the file has no place.
        write_file(path, "")?;
    }
    if let Some(explain) = &explain {
        explained::check(explain)?;
        // The threads end by themselves: whoever explains late samples has no time to look.
        options.plan.sampled_for = options.run_for;
    }
    let phases = phases::arm(&mut options)?;
    let mut session = match &explain {
        Some(_) => Session::hold(&options, &capabilities)?,
        None => Session::start(&options, &capabilities)?,
    };
    let live = Live::new(live);
    let late = match &explain {
        Some(explain) => Some(explain_late(
            &mut session,
            explain,
            &capabilities,
            (paint, json),
        )?),
        None => {
            session
                .until_over(|session| live.table(|columns| session.text(&capabilities, columns)));
            None
        }
    };
    live.clear();
    if signals::discarded() {
        return Ok(Outcome::Fine);
    }
    let found = session.finish();
    if let Some(path) = &histogram {
        write_file(path, &cyclictest_histogram(&found.readings, false, false))?;
    }
    let extra = (phases.as_deref().and_then(Phases::cost), late.as_ref());
    let text = render(&found, &options, &capabilities, extra, json);
    print_answer(&text)?;
    let limit = explain.map(|explain| explain.over);
    Ok(outcome(
        &found,
        limit.or(options.plan.break_over),
        late.is_some_and(|late| late.explained > 0),
    ))
}

/// A sample over the limit is one, explained or not. Nothing keeps a limit that was not measured
/// for as long as was asked.
fn outcome(found: &Found, limit: Option<Duration>, explained: bool) -> Outcome {
    let longest = |reading: &Reading| reading.latency.extremes.map(|extremes| extremes.max);
    let longest = found.readings.iter().filter_map(longest).max();
    let is_over = limit
        .zip(longest)
        .is_some_and(|(limit, longest)| longest > limit);
    let measured = |reading: &Reading| reading.latency.samples > 0;
    let is_whole = found.complete && found.readings.iter().all(measured);
    if found.broken.is_some() || explained || is_over {
        Outcome::Exceeded
    } else if found.has_lost_cpu() || limit.is_some() && !is_whole {
        Outcome::Inconclusive
    } else {
        Outcome::Fine
    }
}

/// Measures under a watch: late samples are shown as they come, or the worst kept for the object.
fn explain_late(
    session: &mut Session,
    explain: &ExplainOptions,
    capabilities: &Capabilities,
    (paint, json): (Paint, bool),
) -> Result<Late> {
    if !json {
        let mut printer = explained::printer(explain, paint);
        // What was shown keeps its snapshot.
        return explained::watch(session, explain, capabilities, &mut |report| {
            printer.hit(report)
        });
    }
    let mut worst = WorstHits::new(explain.worst);
    let late = explained::watch(session, explain, capabilities, &mut |report| {
        worst.add(report);
        Ok(())
    })?;
    let samples = worst.explained(session.run.measured());
    let is_explained = |line: &&serde_json::Value| line.get(NOT_EXPLAINED).is_none();
    let explained = samples.iter().filter(is_explained).count() as u64;
    Ok(Late {
        explained,
        suppressed: late.suppressed + late.explained.saturating_sub(explained),
        samples,
        ..late
    })
}

fn render(
    found: &Found,
    options: &CyclicOptions,
    capabilities: &Capabilities,
    (phases_cost, late): (Option<Duration>, Option<&Late>),
    json: bool,
) -> String {
    let mut warnings = warnings(capabilities);
    warnings.extend(found.disturbances());
    let cyclic = Cyclic {
        readings: &found.readings,
        clock: options.plan.clock,
        elapsed: found.elapsed,
        cpu_time: Duration::from_ns(task::process_cpu_ns().cast_signed()),
        broken: found.broken,
        kernel: &capabilities.machine.kernel_release,
        preemption: capabilities.scheduler.preemption.name(),
        complete: found.complete,
        phases_cost,
        late,
        warnings: &warnings,
    };
    if json {
        format!("{}\n", cyclic_json(&cyclic))
    } else {
        cyclic_text(&cyclic, stdout_columns())
    }
}

/// The kernel's release, and how it preempts itself.
pub(super) fn kernel(capabilities: &Capabilities) -> (&str, &str) {
    let release = &capabilities.machine.kernel_release;
    (release, capabilities.scheduler.preemption.name())
}

/// What makes figures of this machine doubtful, a line each.
pub(super) fn warnings(capabilities: &Capabilities) -> Vec<String> {
    capabilities.doubts().iter().map(warning).collect()
}

/// A doubt as one line.
pub(super) fn warning(doubt: &Lack) -> String {
    format!("{} ({}); {}", doubt.what, doubt.found, doubt.fix)
}

#[cfg(test)]
mod tests {
    use event::{Cpu, Tid};
    use host::clock::Clock;
    use host::task::Policy;
    use measure::cyclic::ThreadPlan;
    use measure::histogram::Recorder;

    use super::*;

    fn found(samples_us: &[i64], complete: bool) -> Found {
        let recorder = Recorder::new(Duration::from_us(1), 8);
        for us in samples_us {
            recorder.add(us * 1_000);
        }
        Found {
            readings: vec![Reading {
                tid: Tid(7),
                plan: ThreadPlan {
                    cpu: Some(Cpu(0)),
                    policy: Policy::Fifo(80),
                    interval: Duration::from_ms(1),
                },
                latency: recorder.read(),
                missed: 0,
                unmeasured: 0,
                lost_cpu: false,
                phases: None,
            }],
            broken: None,
            elapsed: Duration::from_ms(1),
            clock: Clock::Monotonic,
            complete,
            stepped: None,
        }
    }

    #[test]
    fn a_limit_is_kept_only_by_samples_for_as_long_as_was_asked() {
        let check = |samples_us: &[i64], complete: bool, limit_us: Option<i64>, expect: Outcome| {
            let limit = limit_us.map(Duration::from_us);
            let said = outcome(&found(samples_us, complete), limit, false);
            assert_eq!(said, expect, "{samples_us:?} {complete} {limit_us:?}");
        };
        check(&[3, 5], true, Some(5), Outcome::Fine);
        // The watch did not see it, or could not explain it.
        check(&[3, 5], true, Some(4), Outcome::Exceeded);
        check(&[3, 500], false, Some(5), Outcome::Exceeded);
        check(&[3, 5], false, Some(5), Outcome::Inconclusive);
        check(&[], true, Some(5), Outcome::Inconclusive);
        check(&[3, 500], false, None, Outcome::Fine);
        check(&[], true, None, Outcome::Fine);
    }
}
