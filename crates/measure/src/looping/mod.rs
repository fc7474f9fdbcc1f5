//! npt's measurement: a loop that does nothing but read the CPU's counter. What an iteration takes
//! beyond the least is what the machine, or an event recorded in it, did to the loop.

use std::sync::atomic::AtomicBool;
use std::time::Duration as StdDuration;

use event::{Cpu, Error, ErrorKind, Result};

use crate::counter::{Counter, Line};
use crate::task::{self, Policy};

/// Ticks that have a bin of their own: half a millisecond at 2 GHz.
const BINS: usize = 1 << 20;
/// Nanoseconds per second.
const NS_PER_S: i64 = 1_000_000_000;
/// How long the counter is held against the clock.
const CALIBRATION: StdDuration = StdDuration::from_millis(100);

/// A loop to run.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopPlan {
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
    /// Whether each iteration records an event with two numbers.
    pub events: bool,
    /// Whether nobody shall find the events afterwards.
    pub forget: bool,
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

/// The same as `struct rtscope_loop` in npt.c.
#[repr(C)]
struct Loop {
    iterations: u64,
    dropped: u64,
    pace: u64,
    events: u64,
    bins: *mut u64,
    bins_length: u64,
    counted: u64,
    overruns: u64,
    overruns_sum: u64,
    ticks_max: u64,
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
pub fn run(plan: &LoopPlan, stop: &AtomicBool) -> Result<LoopFound> {
    std::thread::scope(|scope| match scope.spawn(|| run_here(plan, stop)).join() {
        Ok(found) => found,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn run_here(plan: &LoopPlan, stop: &AtomicBool) -> Result<LoopFound> {
    let mut bins = vec![0_u64; BINS];
    task::stay_on(plan.cpu)?;
    let ticks_per_ns = calibrate()?;
    if plan.events {
        rtscope_loop_attach();
    }
    let pace = plan
        .per_second
        .map_or(0.0, |rate| 1e9 / rate.max(1) as f64 * ticks_per_ns);
    let mut run = Loop {
        iterations: plan.iterations,
        dropped: plan.dropped,
        pace: pace as u64,
        events: u64::from(plan.events),
        bins: bins.as_mut_ptr(),
        bins_length: bins.len() as u64,
        counted: 0,
        overruns: 0,
        overruns_sum: 0,
        ticks_max: 0,
    };
    let scheduled = task::schedule(plan.policy);
    if scheduled.is_ok() {
        // SAFETY: the structure is as npt.c has it, its bins live until after the call, and the
        // flag is a byte that others may change meanwhile.
        unsafe { rtscope_loop_run(&raw mut run, stop) };
    }
    if plan.events {
        rtscope_loop_detach(i32::from(plan.forget));
    }
    scheduled?;
    let bins = bins.into_iter().enumerate().filter(|(_, count)| *count > 0);
    Ok(LoopFound {
        counted: run.counted,
        ticks_per_ns,
        bins: bins.map(|(ticks, count)| (ticks as u64, count)).collect(),
        overruns: run.overruns,
        overruns_sum: run.overruns_sum,
        ticks_max: run.ticks_max,
    })
}

/// Ticks of the counter in a nanosecond.
fn calibrate() -> Result<f64> {
    let begin = Counter::Processor.pair();
    std::thread::sleep(CALIBRATION);
    let line = Line::through(begin, Counter::Processor.pair());
    let ticks = line.map_or(0, |line| line.counts(NS_PER_S));
    if ticks <= 0 {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "the CPU's counter stands still",
        ));
    }
    Ok(ticks as f64 / NS_PER_S as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bins: &[(u64, u64)]) -> LoopFound {
        LoopFound {
            counted: bins.iter().map(|(_, count)| count).sum(),
            ticks_per_ns: 2.0,
            bins: bins.to_vec(),
            overruns: 0,
            overruns_sum: 0,
            ticks_max: bins.last().map_or(0, |(ticks, _)| *ticks),
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
    fn the_loop_counts_every_iteration_and_stops_when_told() {
        let plan = LoopPlan {
            cpu: Cpu(rustix::thread::sched_getcpu() as u32),
            policy: Policy::Ordinary,
            iterations: 10_000,
            dropped: 5,
            per_second: None,
            events: false,
            forget: true,
        };
        let found = run(&plan, &AtomicBool::new(false)).expect("it runs");
        let in_bins: u64 = found.bins.iter().map(|(_, count)| count).sum();
        assert_eq!(found.counted, 10_000);
        assert_eq!(in_bins + found.overruns, 10_000);
        assert!(found.min_ns() > 0.0 && found.min_ns() <= found.mean_ns());
        let paced = LoopPlan {
            per_second: Some(100_000),
            iterations: 100,
            ..plan.clone()
        };
        assert_eq!(
            run(&paced, &AtomicBool::new(false))
                .expect("it runs")
                .counted,
            100
        );
        let stopped = run(&plan, &AtomicBool::new(true)).expect("it runs");
        assert_eq!(stopped.counted, 0);
    }
}
