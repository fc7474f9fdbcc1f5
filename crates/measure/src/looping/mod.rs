//! npt's measurement: a loop that does nothing but read the CPU's counter. What an iteration takes
//! beyond the least is what the machine, or an event recorded in it, did to the loop.

pub mod lttng;
mod native;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration as StdDuration;

use event::{Cpu, Error, ErrorKind, Result};

use self::native::{Counts, Loop, LoopFunction};
use crate::counter::{Counter, Line};
use host::task::{self, Policy};

/// Ticks that have a bin of their own: half a millisecond at 2 GHz.
const BINS: usize = 1 << 20;
/// To be moved to another CPU takes at least a wake-up of the kernel's thread that does it, and two
/// switches. A shorter iteration need not be asked where it ran.
const MOVE_NS_MIN: f64 = 2_000.0;
/// Nanoseconds per second.
const NS_PER_S: i64 = 1_000_000_000;
/// How long the counter is held against the clock.
const CALIBRATION: StdDuration = StdDuration::from_millis(100);

/// What a loop reads that nobody interrupts, as far as is known.
static NO_INTERRUPTIONS: AtomicU64 = AtomicU64::new(0);

/// Who records an event in each iteration.
#[derive(Clone, Copy, Debug)]
pub enum LoopTracer<'a> {
    /// Nobody.
    None,
    /// Nobody; the clock is read once more, the least that an event with a time can cost.
    Clock,
    /// The probe.
    Rtscope {
        /// Whether nobody shall find the events afterwards.
        forget: bool,
    },
    /// LTTng-UST; its session runs already.
    Lttng(&'a lttng::Library),
}

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEvent {
    /// Two numbers of 64 bits.
    Numbers,
    /// A number and 32 bytes of text.
    Text,
}

/// What an iteration does; the same as `enum body` in npt.c.
#[derive(Clone, Copy)]
enum Body {
    Nothing,
    Clock,
    Numbers,
    Text,
}

impl Body {
    fn of(tracer: &LoopTracer<'_>, event: LoopEvent) -> Body {
        match (tracer, event) {
            (LoopTracer::None, _) => Body::Nothing,
            (LoopTracer::Clock, _) => Body::Clock,
            (_, LoopEvent::Numbers) => Body::Numbers,
            (_, LoopEvent::Text) => Body::Text,
        }
    }
}

/// A loop to run.
#[derive(Clone, Copy, Debug)]
pub struct LoopPlan<'a> {
    /// Where.
    pub cpu: Cpu,
    /// How it is scheduled.
    pub policy: Policy,
    /// Iterations that are counted.
    pub iterations: u64,
    /// Iterations before those, while caches are cold.
    pub dropped: u64,
    /// Iterations per second; none for as fast as it goes.
    pub per_second: Option<u64>,
    /// Who records.
    pub tracer: LoopTracer<'a>,
    /// What they record.
    pub event: LoopEvent,
    /// A count that changes whenever something takes the CPU from the loop; with it, iterations in
    /// which it changed are told apart.
    pub interruptions: Option<&'a AtomicU64>,
}

/// What a run of the loop found.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopRun {
    /// All iterations.
    pub all: LoopFound,
    /// Those in which something took the CPU from the loop apart from the others, if that was
    /// asked for. One behind such an iteration may be among them.
    pub apart: Option<LoopParts>,
    /// Whether the CPU was taken from the loop, by hotplug or by a control group; it ended then.
    pub lost_cpu: bool,
}

/// Iterations told apart.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopParts {
    /// Nothing took the CPU from the loop in them.
    pub free: LoopFound,
    /// Something did.
    pub hit: LoopFound,
}

/// What the loop found. Durations are of one iteration, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopFound {
    /// Iterations that were counted.
    pub counted: u64,
    /// Ticks of the counter in a nanosecond.
    pub ticks_per_ns: f64,
    /// Iterations by their ticks, those that happened.
    pub bins: Vec<(u64, u64)>,
    /// Iterations beyond all bins.
    pub overruns: u64,
    /// The ticks of all overruns.
    overruns_sum: u64,
    /// The longest iteration, in ticks.
    ticks_max: u64,
    /// All iterations together, with what lay between them, in ticks.
    elapsed_ticks: u64,
}

impl LoopFound {
    fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_ns
    }

    /// The shortest.
    pub fn min_ns(&self) -> f64 {
        let first = self.bins.first().map(|(ticks, _)| *ticks);
        self.ns(first.unwrap_or(self.ticks_max))
    }

    /// The longest.
    pub fn max_ns(&self) -> f64 {
        self.ns(self.ticks_max)
    }

    /// All together.
    pub fn sum_ns(&self) -> f64 {
        let ticks: u64 = self.bins.iter().map(|(ticks, count)| ticks * count).sum();
        self.ns(ticks + self.overruns_sum)
    }

    /// The mean.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns() / self.counted.max(1) as f64
    }

    /// The variance, in square nanoseconds; overruns count with their mean.
    pub fn variance(&self) -> f64 {
        let mean = self.mean_ns();
        let square = |ns: f64, count: u64| (ns - mean) * (ns - mean) * count as f64;
        let inside = self
            .bins
            .iter()
            .map(|(ticks, count)| square(self.ns(*ticks), *count));
        let over_ns = self.ns(self.overruns_sum) / self.overruns.max(1) as f64;
        let sum = inside.sum::<f64>() + square(over_ns, self.overruns);
        sum / self.counted.max(1) as f64
    }

    /// What a share of all iterations did not exceed.
    pub fn quantile_ns(&self, share: f64) -> f64 {
        let wanted = (share * self.counted as f64).ceil() as u64;
        let mut seen = 0;
        for (ticks, count) in &self.bins {
            seen += count;
            if seen >= wanted {
                return self.ns(*ticks);
            }
        }
        self.max_ns()
    }

    /// From the first iteration to the last, with what lay between them.
    pub fn elapsed_ns(&self) -> f64 {
        self.ns(self.elapsed_ticks)
    }

    /// Iterations in a second of the whole run.
    pub fn per_second(&self) -> f64 {
        self.counted as f64 * 1e9 / self.elapsed_ns().max(1.0)
    }

    /// These iterations and others of the same run.
    fn with(&self, others: &LoopFound) -> LoopFound {
        let mut bins: BTreeMap<u64, u64> = self.bins.iter().copied().collect();
        for (ticks, count) in &others.bins {
            *bins.entry(*ticks).or_insert(0) += count;
        }
        LoopFound {
            counted: self.counted + others.counted,
            bins: bins.into_iter().collect(),
            overruns: self.overruns + others.overruns,
            overruns_sum: self.overruns_sum + others.overruns_sum,
            ticks_max: self.ticks_max.max(others.ticks_max),
            ..*self
        }
    }

    /// Iterations by whole units of `unit_ns`, those that happened.
    pub fn by_unit(&self, unit_ns: f64) -> Vec<(u64, u64)> {
        let mut units: Vec<(u64, u64)> = Vec::new();
        for (ticks, count) in &self.bins {
            let unit = (self.ns(*ticks) / unit_ns) as u64;
            match units.last_mut() {
                Some((last, total)) if *last == unit => *total += count,
                _ => units.push((unit, *count)),
            }
        }
        units
    }
}

impl Counts {
    /// Nothing counted yet; `bins` must live as long.
    fn into(bins: &mut [u64]) -> Counts {
        Counts {
            bins: bins.as_mut_ptr(),
            bins_length: bins.len() as u64,
            counted: 0,
            overruns: 0,
            overruns_sum: 0,
            ticks_max: 0,
        }
    }

    fn found(&self, bins: &[u64], ticks_per_ns: f64, elapsed_ticks: u64) -> LoopFound {
        let bins = (0..).zip(bins).filter(|(_, count)| **count > 0);
        LoopFound {
            counted: self.counted,
            ticks_per_ns,
            bins: bins.map(|(ticks, count)| (ticks, *count)).collect(),
            overruns: self.overruns,
            overruns_sum: self.overruns_sum,
            ticks_max: self.ticks_max,
            elapsed_ticks,
        }
    }
}

unsafe extern "C" {
    safe fn rtscope_loop_attach();
    safe fn rtscope_loop_detach(forget: i32);
    fn rtscope_loop_run(run: *mut Loop, stop: *const AtomicBool);
}

/// Runs the loop in a thread of its own, until all iterations are done or `stop` is raised.
///
/// # Errors
/// When the CPU or the policy is refused, or the counter stands still.
pub fn run(plan: &LoopPlan, stop: &AtomicBool) -> Result<LoopRun> {
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("rtscope-loop".into());
        let looping = named
            .spawn_scoped(scope, || run_here(plan, stop))
            .map_err(|error| Error::io("cannot start a measuring thread", error))?;
        match looping.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn run_here(plan: &LoopPlan, stop: &AtomicBool) -> Result<LoopRun> {
    let mut bins = vec![0_u64; BINS];
    let mut hit_bins = vec![0_u64; plan.interruptions.map_or(0, |_| BINS)];
    task::stay_on(plan.cpu)?;
    let ticks_per_ns = calibrate()?;
    let pace = plan
        .per_second
        .map_or(0.0, |rate| 1e9 / rate.max(1) as f64 * ticks_per_ns);
    let mut run = Loop {
        iterations: plan.iterations,
        dropped: plan.dropped,
        pace: pace as u64,
        body: Body::of(&plan.tracer, plan.event) as u64,
        elapsed: 0,
        interruptions: plan.interruptions.unwrap_or(&NO_INTERRUPTIONS),
        cpu: plan.cpu.0.into(),
        move_ticks: (MOVE_NS_MIN * ticks_per_ns) as u64,
        lost_cpu: 0,
        free: Counts::into(&mut bins),
        hit: Counts::into(&mut hit_bins),
    };
    looped(plan, &mut run, stop)?;
    let free = run.free.found(&bins, ticks_per_ns, run.elapsed);
    let lost_cpu = run.lost_cpu != 0;
    if plan.interruptions.is_none() {
        return Ok(LoopRun {
            all: free,
            apart: None,
            lost_cpu,
        });
    }
    let hit = run.hit.found(&hit_bins, ticks_per_ns, run.elapsed);
    Ok(LoopRun {
        all: free.with(&hit),
        apart: Some(LoopParts { free, hit }),
        lost_cpu,
    })
}

/// The loop itself, at its priority, with its tracer.
fn looped(plan: &LoopPlan, run: &mut Loop, stop: &AtomicBool) -> Result<()> {
    let function: LoopFunction = match plan.tracer {
        LoopTracer::Lttng(library) => library.run,
        LoopTracer::None | LoopTracer::Clock | LoopTracer::Rtscope { .. } => rtscope_loop_run,
    };
    if let LoopTracer::Rtscope { .. } = plan.tracer {
        rtscope_loop_attach();
    }
    let scheduled = task::schedule(plan.policy);
    if scheduled.is_ok() {
        // SAFETY: the structure is as npt.c has it, its memory lives until after the call, and the
        // flag is a byte that others may change meanwhile.
        unsafe { function(run, stop) };
    }
    if let LoopTracer::Rtscope { forget } = plan.tracer {
        rtscope_loop_detach(i32::from(forget));
    }
    scheduled
}

/// The counter's ticks in a nanosecond.
fn calibrate() -> Result<f64> {
    let begin = Counter::Processor.pair();
    std::thread::sleep(CALIBRATION);
    let line = Line::through(begin, Counter::Processor.pair());
    let ticks = line.map_or(0, |line| line.counts(NS_PER_S));
    if ticks <= 0 {
        return Err(stands_still());
    }
    Ok(ticks as f64 / NS_PER_S as f64)
}

fn stands_still() -> Error {
    Error::new(ErrorKind::Unsupported, "the CPU's counter stands still")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn found(bins: &[(u64, u64)]) -> LoopFound {
        LoopFound {
            counted: bins.iter().map(|(_, count)| count).sum(),
            ticks_per_ns: 2.0,
            bins: bins.to_vec(),
            overruns: 0,
            overruns_sum: 0,
            ticks_max: bins.last().map_or(0, |(ticks, _)| *ticks),
            elapsed_ticks: 0,
        }
    }

    #[test]
    fn figures_are_those_of_all_iterations() {
        let found = found(&[(10, 2), (20, 1), (40, 1)]);
        assert_eq!((found.min_ns(), found.max_ns()), (5.0, 20.0));
        assert_eq!((found.sum_ns(), found.mean_ns()), (40.0, 10.0));
        assert_eq!(found.variance(), (25.0 + 25.0 + 0.0 + 100.0) / 4.0);
        assert_eq!(found.quantile_ns(0.5), 5.0);
        assert_eq!(found.quantile_ns(0.75), 10.0);
        assert_eq!(found.quantile_ns(1.0), 20.0);
        assert_eq!(found.by_unit(8.0), [(0, 2), (1, 1), (2, 1)]);
    }

    #[test]
    fn what_was_hit_and_what_was_not_are_all() {
        let hit = LoopFound {
            counted: 3,
            overruns: 1,
            overruns_sum: 5_000_000,
            ticks_max: 5_000_000,
            ..found(&[(10, 1), (900, 1)])
        };
        let all = found(&[(10, 3), (20, 1)]).with(&hit);
        assert_eq!(
            (all.counted, all.overruns, all.ticks_max),
            (7, 1, 5_000_000)
        );
        assert_eq!(all.bins, [(10, 4), (20, 1), (900, 1)]);
    }

    /// Something else changes the count all the time, as interrupts would.
    #[test]
    fn iterations_in_which_the_count_changes_are_told_apart() {
        let (count, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let plan = LoopPlan {
            interruptions: Some(&count),
            iterations: 1_000_000,
            ..plan()
        };
        let looped = |changes: bool| {
            std::thread::scope(|scope| {
                stop.store(false, Ordering::Relaxed);
                let change = || {
                    while !stop.load(Ordering::Relaxed) {
                        count.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(StdDuration::from_micros(10));
                    }
                };
                if changes {
                    scope.spawn(change);
                }
                let run = run(&plan, &AtomicBool::new(false)).expect("it runs");
                stop.store(true, Ordering::Relaxed);
                let apart = run.apart.expect("two histograms");
                assert_eq!(apart.free.counted + apart.hit.counted, 1_000_000);
                assert_eq!(apart.free.with(&apart.hit), run.all);
                apart.hit.counted
            })
        };
        assert_eq!(looped(false), 0);
        assert!(looped(true) > 0);
    }

    fn plan() -> LoopPlan<'static> {
        LoopPlan {
            cpu: Cpu(rustix::thread::sched_getcpu() as u32),
            policy: Policy::Ordinary,
            iterations: 10_000,
            dropped: 5,
            per_second: None,
            tracer: LoopTracer::None,
            event: LoopEvent::Numbers,
            interruptions: None,
        }
    }

    #[test]
    fn the_loop_counts_every_iteration_and_stops_when_told() {
        let plan = plan();
        let found = run(&plan, &AtomicBool::new(false)).expect("it runs").all;
        let in_bins: u64 = found.bins.iter().map(|(_, count)| count).sum();
        assert_eq!(found.counted, 10_000);
        assert_eq!(in_bins + found.overruns, 10_000);
        assert!(found.min_ns() > 0.0 && found.min_ns() <= found.mean_ns());
        let paced = LoopPlan {
            per_second: Some(100_000),
            iterations: 100,
            ..plan
        };
        assert_eq!(
            run(&paced, &AtomicBool::new(false))
                .expect("it runs")
                .all
                .counted,
            100
        );
        let stopped = run(&plan, &AtomicBool::new(true)).expect("it runs");
        assert_eq!(stopped.all.counted, 0);
    }
}
