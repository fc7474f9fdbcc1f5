//! A measurement of how late threads run, from its start to what it found.

use std::path::Path;
use std::time::Instant;

use event::{Cpu, Duration, ErrorKind, Result};
use host::capabilities::Capabilities;
use host::clock::{Clock, StepWatch};
use host::power::{IdleStates, WakeLatency};
use host::task;
use measure::cyclic::{Break, Plan, Reading, Run};
use report::{Cyclic, cyclic_text};

use crate::options::CyclicOptions;
use crate::signals::{self, Request};

/// How often the figures are looked at.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(250);

/// A measurement and what it rests on.
pub(super) struct Session {
    pub(super) run: Run,
    clock: StepWatch,
    run_for: Option<Duration>,
    /// Whether an end was asked for, in time or in samples.
    is_limited: bool,
    /// While these live, CPUs sleep lightly.
    wake_latency: Option<WakeLatency>,
    _idle_states: Option<IdleStates>,
}

/// What a measurement found.
pub(super) struct Found {
    pub(super) readings: Vec<Reading>,
    pub(super) broken: Option<Break>,
    pub(super) elapsed: Duration,
    /// What the threads slept on.
    pub(super) clock: Clock,
    /// Whether every thread went on for as long as was asked.
    pub(super) complete: bool,
    /// By how much the clock was set meanwhile.
    pub(super) stepped: Option<Duration>,
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

/// Limits how deep idle CPUs sleep; says so where that is not ours to do.
fn limit_idle(latency: Duration) -> Result<Option<WakeLatency>> {
    match WakeLatency::request(latency) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            note!("idle CPUs sleep as deep as they like: {error}");
            Ok(None)
        }
        other => other,
    }
}

/// Measures what is not kept: caches, memory, idle states and loads are then as they stay.
fn warm_up(plan: &Plan, duration: Duration) -> Result<()> {
    let run = Run::start(&Plan {
        samples: None,
        break_over: None,
        mark: None,
        kept: 0,
        phases: None,
        ..plan.clone()
    })?;
    let begin = Instant::now();
    let whole = std::time::Duration::from_nanos(duration.as_ns_unsigned());
    while signals::request() == Request::GoOn && begin.elapsed() < whole {
        std::thread::sleep(LOOK_INTERVAL.min(whole - begin.elapsed().min(whole)));
    }
    run.finish();
    Ok(())
}

impl Session {
    /// Starts what `options` ask for.
    pub(super) fn start(options: &CyclicOptions, capabilities: &Capabilities) -> Result<Session> {
        let mut session = Session::hold(options, capabilities)?;
        session.go();
        Ok(session)
    }

    /// The same, but it measures nothing until [`Session::go`]: who is to explain late samples has
    /// to see all of them.
    pub(super) fn hold(options: &CyclicOptions, capabilities: &Capabilities) -> Result<Session> {
        signals::take_over()?;
        if options.lock_memory
            && let Err(error) = task::lock_memory()
        {
            note!("page faults may be among the latencies: {error}; run it with sudo");
        }
        let wake_latency = options.wake_latency.map(limit_idle).transpose()?;
        let measured = options.plan.threads.iter().filter_map(|thread| thread.cpu);
        let measured: Vec<Cpu> = measured.collect();
        let deepest = options.deepest_idle;
        let limit = |deepest| IdleStates::limit(Path::new("/"), &measured, deepest);
        let idle_states = deepest.map(limit).transpose()?;
        if let Some(duration) = options.warm_up {
            warm_up(&options.plan, duration)?;
        }
        let run = Run::hold(&options.plan)?;
        // Once they are there: a thread without a CPU of its own would come along.
        let aside = capture::housekeeping_cpus(&capabilities.machine, Some(&measured));
        task::stay_within(options.own_cpus.as_ref().unwrap_or(&aside))?;
        Ok(Session {
            run,
            clock: StepWatch::new(options.plan.clock),
            run_for: options.run_for,
            is_limited: options.run_for.is_some() || options.plan.samples.is_some(),
            wake_latency: wake_latency.flatten(),
            _idle_states: idle_states,
        })
    }

    /// Lets it measure from now on.
    pub(super) fn go(&mut self) {
        self.run.go();
    }

    /// How long it has measured.
    fn elapsed(&self) -> Duration {
        self.run.measured()
    }

    /// Whether it has ended, or was asked to.
    pub(super) fn is_over(&self) -> bool {
        let late = self.run_for.is_some_and(|limit| self.elapsed() >= limit);
        late || self.run.is_over() || signals::request() != Request::GoOn
    }

    /// How long it is to go on; a while where nobody said it.
    pub(super) fn left(&self) -> std::time::Duration {
        self.run_for.map_or(LOOK_INTERVAL, |limit| {
            let left_ns = limit.as_ns() - self.elapsed().as_ns();
            std::time::Duration::from_nanos(left_ns.max(0).cast_unsigned())
        })
    }

    /// Whether idle CPUs are kept from deep states.
    pub(super) fn limits_idle(&self) -> bool {
        self.wake_latency.is_some()
    }

    /// Waits until it is over, and calls `look` meanwhile.
    pub(super) fn until_over(&mut self, mut look: impl FnMut(&Session)) {
        while !self.is_over() {
            std::thread::sleep(self.left().min(LOOK_INTERVAL));
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
    pub(super) fn text(&self, capabilities: &Capabilities, columns: usize) -> String {
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
            kernel: &capabilities.machine.kernel_release,
            preemption: capabilities.scheduler.preemption.name(),
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
        self.run.stop();
        let elapsed = self.elapsed();
        let (broken, clock) = (self.run.broken(), self.run.clock());
        let readings = self.run.finish();
        let lost_cpu = readings.iter().any(|reading| reading.lost_cpu);
        Found {
            complete: !lost_cpu && (signals::request() == Request::GoOn || !self.is_limited),
            stepped: self.clock.stepped(),
            readings,
            broken,
            elapsed,
            clock,
        }
    }
}
