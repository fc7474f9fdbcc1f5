//! `rtscope measure cyclic`: threads that sleep until an instant, and how late they run.

use std::time::Instant;

use capture::facts;
use capture::watch::{HitReport, WatchObserver};
use event::{Cpu, Duration, Result};
use host::clock::{Clock, StepWatch};
use host::facts::{Facts, Lack, Verb};
use host::power::WakeLatency;
use host::task;
use measure::cyclic::{Break, Reading, Run};
use report::{Cyclic, Late, cyclic_json, cyclic_text, cyclictest_histogram};

use super::explained::{self, Explain};
use super::phases::{self, Phases};
use crate::exit::{Outcome, print, write_file};
use crate::flags;
use crate::live::{Live, stdout_columns};
use crate::options::{CyclicOptions, CyclicOutput};
use crate::paint::Paint;
use crate::signals::{self, Wish};
use crate::verbs::watch::hit_value;

/// How often the figures are looked at.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(250);

/// A measurement and what it rests on.
pub(super) struct Session {
    pub(super) run: Run,
    clock: StepWatch,
    begin: Instant,
    run_for: Option<Duration>,
    /// Whether an end was asked for, in time or in samples.
    is_limited: bool,
    /// While this lives, CPUs sleep lightly.
    _wake_latency: Option<WakeLatency>,
}

/// What a measurement found.
pub(super) struct Found {
    pub(super) readings: Vec<Reading>,
    pub(super) broken: Option<Break>,
    pub(super) elapsed: Duration,
    /// What the threads slept on.
    clock: Clock,
    /// Whether every thread went on for as long as was asked.
    pub(super) complete: bool,
    /// By how much the clock was set meanwhile.
    stepped: Option<Duration>,
}

impl Found {
    /// What came in the way of the threads, a line each.
    pub(super) fn disturbances(&self) -> Vec<String> {
        let lost = self.readings.iter().filter(|reading| reading.lost_cpu);
        let lost = lost.filter_map(|reading| reading.plan.cpu);
        let mut lines: Vec<String> = lost.map(lost_cpu).collect();
        lines.extend(self.stepped.map(|step| {
            let left_out: u64 = self.readings.iter().map(|one| one.unmeasured).sum();
            let clock = self.clock.name();
            format!(
                "the clock {clock} was set by {step} while it ran ({left_out} sleeps over that are \
                 left out); measure on monotonic"
            )
        }));
        lines
    }

    /// Whether a thread could not stay where it was to measure.
    pub(super) fn has_lost_cpu(&self) -> bool {
        self.readings.iter().any(|reading| reading.lost_cpu)
    }
}

/// That the kernel took a CPU from a measuring thread: offline, or no longer allowed.
pub(super) fn lost_cpu(cpu: Cpu) -> String {
    format!(
        "{cpu} was taken from its thread, whose figures end there (offline or no longer allowed); \
         keep it: cat /sys/devices/system/cpu/online; taskset -p $$"
    )
}

/// Runs the verb.
pub(super) fn run(typed: &flags::Cyclic, paint: Paint) -> Result<Outcome> {
    let facts = facts::gather();
    let machine = &facts.machine;
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
        facts.require(Verb::Measure)?;
    }
    let explain = explain.map(|(over, output)| Explain {
        over,
        output,
        worst: None,
    });
    if explain.is_some() {
        facts.require(Verb::Watch)?;
    }
    if let Some(path) = &histogram {
        // Nobody waits for hours to learn that the file has no place.
        write_file(path, "")?;
    }
    let phases = phases::arm(&mut options)?;
    let mut session = Session::start(&options, &facts)?;
    let live = Live::new(live);
    let late = match &explain {
        Some(explain) => Some(explain_late(&mut session, explain, &facts, (paint, json))?),
        None => {
            session.until_over(|session| live.table(|columns| session.text(&facts, columns)));
            None
        }
    };
    live.clear();
    if signals::wish() == Wish::Discard {
        eprintln!("discarded");
        return Ok(Outcome::Fine);
    }
    let found = session.finish();
    if let Some(path) = &histogram {
        write_file(path, &cyclictest_histogram(&found.readings, false, false))?;
    }
    let extra = (phases.as_deref().and_then(Phases::cost), late.as_ref());
    let text = render(&found, &options, &facts, extra, json);
    print(&text)?;
    let explained = late.is_some_and(|late| late.explained > 0);
    Ok(if found.broken.is_some() || explained {
        Outcome::Exceeded
    } else if found.has_lost_cpu() {
        Outcome::Inconclusive
    } else {
        Outcome::Fine
    })
}

/// Measures under a watch: late samples are shown as they come, or kept for the object.
fn explain_late(
    session: &mut Session,
    explain: &Explain,
    facts: &Facts,
    (paint, json): (Paint, bool),
) -> Result<Late> {
    let mut printer = explained::printer(explain, paint);
    let mut samples = Vec::new();
    let mut hit = |report: &HitReport| {
        if !json {
            return printer.hit(report);
        }
        samples.push(hit_value(report));
        Ok(())
    };
    let late = explained::watch(session, explain, facts, &mut hit)?;
    Ok(Late { samples, ..late })
}

fn render(
    found: &Found,
    options: &CyclicOptions,
    facts: &Facts,
    (phases_cost, late): (Option<Duration>, Option<&Late>),
    json: bool,
) -> String {
    let mut warnings = warnings(facts);
    warnings.extend(found.disturbances());
    let cyclic = Cyclic {
        readings: &found.readings,
        clock: options.plan.clock,
        elapsed: found.elapsed,
        cpu_time: Duration::from_ns(task::process_cpu_ns().cast_signed()),
        broken: found.broken,
        kernel: &facts.machine.kernel_release,
        preemption: facts.scheduler.preemption.name(),
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

/// What makes figures of this machine doubtful, a line each.
pub(super) fn warnings(facts: &Facts) -> Vec<String> {
    facts.doubts().iter().map(warning).collect()
}

/// A doubt as one line.
pub(super) fn warning(doubt: &Lack) -> String {
    format!("{} ({}); {}", doubt.what, doubt.found, doubt.mend)
}

impl Session {
    /// Starts what `options` ask for.
    pub(super) fn start(options: &CyclicOptions, facts: &Facts) -> Result<Session> {
        signals::take_over()?;
        if options.lock_memory
            && let Err(error) = task::lock_memory()
        {
            eprintln!("page faults may be among the latencies: {error}; run it with sudo");
        }
        let wake_latency = options.wake_latency.map(WakeLatency::request);
        let run = Run::start(&options.plan)?;
        // Once they are there: a thread without a CPU of its own would come along.
        let measured = options.plan.threads.iter().filter_map(|thread| thread.cpu);
        let aside = capture::housekeeping_cpus(&facts.machine, Some(&measured.collect::<Vec<_>>()));
        task::stay_within(options.own_cpus.as_ref().unwrap_or(&aside))?;
        Ok(Session {
            run,
            clock: StepWatch::new(options.plan.clock),
            begin: Instant::now(),
            run_for: options.run_for,
            is_limited: options.run_for.is_some() || options.plan.samples.is_some(),
            _wake_latency: wake_latency.transpose()?.flatten(),
        })
    }

    /// How long it has measured.
    fn elapsed(&self) -> Duration {
        Duration::from_ns(self.begin.elapsed().as_nanos() as i64) - self.run.rested()
    }

    /// Whether it has ended, or was asked to.
    pub(super) fn is_over(&self) -> bool {
        let late = self.run_for.is_some_and(|limit| self.elapsed() >= limit);
        late || self.run.is_over() || signals::wish() != Wish::GoOn
    }

    /// Waits until it is over, and calls `look` meanwhile.
    pub(super) fn until_over(&mut self, mut look: impl FnMut(&Session)) {
        while !self.is_over() {
            let left = self.run_for.map_or(LOOK_INTERVAL, |limit| {
                let left_ns = limit.as_ns() - self.elapsed().as_ns();
                std::time::Duration::from_nanos(left_ns.max(0).cast_unsigned())
            });
            std::thread::sleep(left.min(LOOK_INTERVAL));
            self.look();
            look(self);
        }
    }

    /// Looks whether the clock was set: then no thread sleeps on towards an instant of before.
    pub(super) fn look(&mut self) {
        if self.clock.look() {
            self.run.begin_anew();
        }
    }

    /// The table as it stands, without what makes it doubtful.
    fn text(&self, facts: &Facts, columns: usize) -> String {
        let readings = self.run.read();
        let elapsed = self.elapsed();
        let left_s = |limit: Duration| (limit.as_ns() - elapsed.as_ns()).max(0) / 1_000_000_000;
        let left = self
            .run_for
            .map(|limit| format!(", {} s left", left_s(limit)));
        let cyclic = Cyclic {
            readings: &readings,
            clock: self.run.clock(),
            elapsed,
            cpu_time: Duration::from_ns(task::process_cpu_ns().cast_signed()),
            broken: self.run.broken(),
            kernel: &facts.machine.kernel_release,
            preemption: facts.scheduler.preemption.name(),
            complete: true,
            phases_cost: None,
            late: None,
            warnings: &[],
        };
        let text = cyclic_text(&cyclic, Some(columns));
        let seconds = elapsed.as_ns() / 1_000_000_000;
        format!(
            "{text}{seconds} s{}; Ctrl-C ends it\n",
            left.unwrap_or_default()
        )
    }

    /// Ends it.
    pub(super) fn finish(self) -> Found {
        let elapsed = self.elapsed();
        let (broken, clock) = (self.run.broken(), self.run.clock());
        let readings = self.run.finish();
        let lost_cpu = readings.iter().any(|reading| reading.lost_cpu);
        Found {
            complete: !lost_cpu && (signals::wish() == Wish::GoOn || !self.is_limited),
            stepped: self.clock.stepped(),
            readings,
            broken,
            elapsed,
            clock,
        }
    }
}
