//! `rtscope measure hw`: threads that never sleep, the gaps in their running, and who took them.

use std::path::PathBuf;
use std::time::Instant;

use capture::capabilities;
use diagnosis::{ExplainedGap, Gap, explain_gaps};
use event::{Cpu, Duration, Error, Result};
use host::capabilities::{Capabilities, Verb};
use host::steal;
use measure::gaps::{Reading, Run};
use report::{Gaps, Held, Limits, gaps_json, gaps_text};
use trace::Trace;

use super::cyclic::{warning, warnings};
use super::disturbers;
use super::session::lost_cpu;
use crate::exit::{Outcome, print_answer};
use crate::flags;
use crate::live::Live;
use crate::options::GapOptions;
use crate::signals::{self, Request};

/// How often we look whether it is over.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

/// Runs the verb.
pub(super) fn run(typed: &flags::Hw) -> Result<Outcome> {
    let capabilities = capabilities::gather();
    let machine = &capabilities.machine;
    let clocksource = machine.clocksource.as_deref();
    let (online, allowed) = (&machine.cpus_online, &machine.cpus_allowed);
    let options = GapOptions::new(typed, online, allowed, clocksource)?;
    if typed.prio > 0 {
        capabilities.require(Verb::Measure)?;
    }
    signals::take_over()?;
    let mut search = Search::new(&options, &capabilities)?;
    search.look(options.run_for)?;
    let (text, lost_cpu, held) = search.finish(|gaps| {
        let text = match options.json {
            true => format!("{}\n", gaps_json(gaps)),
            false => gaps_text(gaps),
        };
        let lost_cpu = gaps.readings.iter().any(|reading| reading.lost_cpu);
        (text, lost_cpu, gaps.held())
    })?;
    if signals::discarded() {
        return Ok(Outcome::Fine);
    }
    print_answer(&text)?;
    let has_limits = options.limits != Limits::default();
    let was_cut = has_limits && signals::request() != Request::GoOn;
    Ok(match held {
        Held::Exceeded => Outcome::Exceeded,
        Held::Unknown => Outcome::Inconclusive,
        Held::Held if lost_cpu || was_cut => Outcome::Inconclusive,
        Held::Held => Outcome::Fine,
    })
}

/// A search for gaps, in one go or in several with other work between them.
pub(super) struct Search<'a> {
    options: &'a GapOptions,
    capabilities: &'a Capabilities,
    /// Where the recordings are, until the gaps are explained.
    folder: tempfile::TempDir,
    goes: Vec<Go>,
    steal: Vec<(Cpu, Duration)>,
    elapsed: Duration,
}

/// What one go found, and the recording beside it when there is one.
struct Go {
    readings: Vec<Reading>,
    recording: Option<PathBuf>,
}

impl<'a> Search<'a> {
    /// Before the first go.
    pub(super) fn new(
        options: &'a GapOptions,
        capabilities: &'a Capabilities,
    ) -> Result<Search<'a>> {
        if options.events.is_some() {
            capabilities
                .require(Verb::Record)
                .map_err(or_without_events)?;
        }
        let cannot = |error| Error::io("cannot make a folder for the recording", error);
        Ok(Search {
            options,
            capabilities,
            folder: tempfile::tempdir().map_err(cannot)?,
            goes: Vec::new(),
            steal: Vec::new(),
            elapsed: Duration::ZERO,
        })
    }

    /// Looks for so long, beside a recording of whatever can take a CPU where that was asked.
    pub(super) fn look(&mut self, run_for: Duration) -> Result<()> {
        let steal_before = steal::of_cpus();
        let begin = Instant::now();
        let go = match &self.options.events {
            None => Go {
                readings: look(self.options, run_for)?,
                recording: None,
            },
            Some(kept) => {
                let own = || self.folder.path().join(self.goes.len().to_string());
                let output = kept.clone().unwrap_or_else(own);
                let looked = || look(self.options, run_for);
                Go {
                    readings: disturbers::recorded(&output, self.capabilities, looked)?,
                    recording: Some(output),
                }
            }
        };
        self.goes.push(go);
        steal::add(
            &mut self.steal,
            &steal::since(&steal_before, &steal::of_cpus()),
        );
        self.elapsed += Duration::from_ns(begin.elapsed().as_nanos() as i64);
        Ok(())
    }

    /// Whether it has looked yet.
    pub(super) fn has_looked(&self) -> bool {
        !self.goes.is_empty()
    }

    /// Explains the gaps of all goes, and shows what was found to `show`.
    pub(super) fn finish<T>(self, show: impl FnOnce(&Gaps) -> T) -> Result<T> {
        let explained = self.explained()?;
        let plan = &self.options.plan;
        let mut warnings = warnings(self.capabilities);
        let share = plan.width.share_of(plan.window);
        let throttled = (plan.policy.prio() > 0)
            .then(|| self.capabilities.throttling_doubt(share))
            .flatten();
        warnings.extend(throttled.as_ref().map(warning));
        let readings = Reading::joined(self.goes.into_iter().flat_map(|go| go.readings));
        let lost: Vec<Cpu> = readings
            .iter()
            .filter(|reading| reading.lost_cpu)
            .map(|reading| reading.cpu)
            .collect();
        warnings.extend(lost.iter().copied().map(lost_cpu));
        let gaps = Gaps {
            readings: &readings,
            explained: explained.as_deref(),
            steal: &self.steal,
            counter: plan.counter,
            threshold: plan.threshold,
            elapsed: self.elapsed,
            complete: lost.is_empty() && signals::request() == Request::GoOn,
            kernel: &self.capabilities.machine.kernel_release,
            preemption: self.capabilities.scheduler.preemption.name(),
            warnings: &warnings,
            limits: self.options.limits,
        };
        Ok(show(&gaps))
    }

    /// The gaps and who took them, go by go; none where nothing was recorded.
    fn explained(&self) -> Result<Option<Vec<ExplainedGap>>> {
        if self.options.events.is_none() {
            return Ok(None);
        }
        let mut all = Vec::new();
        for go in &self.goes {
            let gaps = go.readings.iter().flat_map(|reading| {
                let (cpu, tid) = (reading.cpu, reading.tid);
                let gap = move |&range| Gap { cpu, tid, range };
                reading.gaps.iter().map(gap)
            });
            if let Some(recording) = &go.recording {
                let trace = Trace::open(recording)?;
                all.extend(explain_gaps(&trace, &gaps.collect::<Vec<_>>())?);
            }
        }
        Ok(Some(all))
    }
}

/// Gaps are found without a recording, too.
fn or_without_events(error: Error) -> Error {
    let fix = error.fixed_by().unwrap_or_default();
    let fix = format!("{fix}, or find gaps without their causes: rtscope measure hw --no-events");
    error.fix(fix)
}

/// Looks for gaps until the time is over.
fn look(options: &GapOptions, run_for: Duration) -> Result<Vec<Reading>> {
    let run = Run::start(&options.plan)?;
    let live = Live::new(!options.json);
    let begin = Instant::now();
    let whole = std::time::Duration::from_nanos(run_for.as_ns_unsigned());
    while begin.elapsed() < whole && !run.is_over() && signals::request() == Request::GoOn {
        let seconds = begin.elapsed().as_secs_f64();
        live.line(&format!("looking for gaps: {seconds:.0} s of {run_for}"));
        std::thread::sleep(LOOK_INTERVAL.min(whole - begin.elapsed().min(whole)));
    }
    run.finish()
}
