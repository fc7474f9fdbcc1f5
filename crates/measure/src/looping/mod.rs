//! npt's measurement: a loop that does nothing but read the CPU's counter. What an iteration takes
//! beyond the least is what the machine, or an event recorded in it, did to the loop.

pub mod lttng;

use std::sync::atomic::AtomicBool;
use std::time::Duration as StdDuration;

use event::{Cpu, Error, ErrorKind, Instant, Result, Tid, TimeRange};

use crate::counter::{Counter, Line, Pair};
use crate::task::{self, Policy};

/// Ticks that have a bin of their own: half a millisecond at 2 GHz.
const BINS: usize = 1 << 20;
/// Nanoseconds per second.
const NS_PER_S: i64 = 1_000_000_000;
/// How long the counter is held against the clock.
const CALIBRATION: StdDuration = StdDuration::from_millis(100);

/// Iterations whose time can be kept.
const LONGS_MAX: usize = 1 << 20;
/// No interrupt takes less than this: entry, handler and return; a choice, not a measurement.
const INTERRUPT_NS_MIN: f64 = 300.0;

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
    /// Whether iterations that an interrupt may have hit are kept with their time.
    pub keep_long: bool,
}

/// An iteration and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongIteration {
    /// On CLOCK_MONOTONIC.
    pub range: TimeRange,
    /// Its ticks.
    ticks: u64,
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
    /// The thread that looped.
    pub tid: Tid,
    /// Iterations long enough for an interrupt, in time order, if they were to be kept.
    pub longs: Vec<LongIteration>,
    /// Such iterations for which there was no room.
    pub longs_unkept: u64,
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

    /// The same without those long iterations for which `is_hit` holds, by their place.
    pub fn without(&self, is_hit: impl Fn(usize) -> bool) -> LoopFound {
        let mut rest = self.clone();
        let mut bins: std::collections::BTreeMap<u64, u64> = rest.bins.drain(..).collect();
        rest.longs.clear();
        for (place, long) in self.longs.iter().enumerate() {
            if !is_hit(place) {
                rest.longs.push(*long);
                continue;
            }
            rest.counted -= 1;
            match bins.get_mut(&long.ticks) {
                Some(count) => *count -= 1,
                None => {
                    rest.overruns -= 1;
                    rest.overruns_sum -= long.ticks;
                }
            }
        }
        rest.bins = bins.into_iter().filter(|(_, count)| *count > 0).collect();
        // What was not kept is still in, so the longest stays.
        if self.longs_unkept == 0 {
            let kept = rest.longs.iter().map(|long| long.ticks).max();
            let binned = rest.bins.last().map(|(ticks, _)| *ticks);
            rest.ticks_max = kept.max(binned).unwrap_or_default();
        }
        rest
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
    body: u64,
    bins: *mut u64,
    bins_length: u64,
    counted: u64,
    overruns: u64,
    overruns_sum: u64,
    ticks_max: u64,
    elapsed: u64,
    long_ticks: u64,
    longs: *mut Long,
    longs_room: u64,
    longs_length: u64,
    longs_unkept: u64,
}

/// The same as `struct rtscope_loop_long` in npt.c.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Long {
    begin: u64,
    ticks: u64,
}

/// The loop, here or in a library that was compiled for it.
type LoopFunction = unsafe extern "C" fn(run: *mut Loop, stop: *const AtomicBool);

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
    let mut longs = vec![Long::default(); if plan.keep_long { LONGS_MAX } else { 0 }];
    task::stay_on(plan.cpu)?;
    let (begin, ticks_per_ns) = calibrate()?;
    let pace = plan
        .per_second
        .map_or(0.0, |rate| 1e9 / rate.max(1) as f64 * ticks_per_ns);
    let mut run = Loop {
        iterations: plan.iterations,
        dropped: plan.dropped,
        pace: pace as u64,
        body: Body::of(&plan.tracer, plan.event) as u64,
        bins: bins.as_mut_ptr(),
        bins_length: bins.len() as u64,
        counted: 0,
        overruns: 0,
        overruns_sum: 0,
        ticks_max: 0,
        elapsed: 0,
        long_ticks: match plan.keep_long {
            true => (INTERRUPT_NS_MIN * ticks_per_ns) as u64,
            false => u64::MAX,
        },
        longs: longs.as_mut_ptr(),
        longs_room: longs.len() as u64,
        longs_length: 0,
        longs_unkept: 0,
    };
    looped(plan, &mut run, stop)?;
    longs.truncate(run.longs_length as usize);
    let line = Line::through(begin, Counter::Processor.pair()).ok_or_else(stands_still)?;
    let instant = |ticks: u64| Instant::from_ns(line.to_ns(ticks.cast_signed()));
    let long = |long: Long| LongIteration {
        range: TimeRange {
            begin: instant(long.begin),
            end: instant(long.begin + long.ticks),
        },
        ticks: long.ticks,
    };
    let bins = bins.into_iter().enumerate().filter(|(_, count)| *count > 0);
    Ok(LoopFound {
        counted: run.counted,
        ticks_per_ns,
        bins: bins.map(|(ticks, count)| (ticks as u64, count)).collect(),
        overruns: run.overruns,
        overruns_sum: run.overruns_sum,
        ticks_max: run.ticks_max,
        elapsed_ticks: run.elapsed,
        tid: Tid(rustix::thread::gettid().as_raw_nonzero().get()),
        longs: longs.into_iter().map(long).collect(),
        longs_unkept: run.longs_unkept,
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

/// Where the counter is, and its ticks in a nanosecond.
fn calibrate() -> Result<(Pair, f64)> {
    let begin = Counter::Processor.pair();
    std::thread::sleep(CALIBRATION);
    let line = Line::through(begin, Counter::Processor.pair());
    let ticks = line.map_or(0, |line| line.counts(NS_PER_S));
    if ticks <= 0 {
        return Err(stands_still());
    }
    Ok((begin, ticks as f64 / NS_PER_S as f64))
}

fn stands_still() -> Error {
    Error::new(ErrorKind::Unsupported, "the CPU's counter stands still")
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
            elapsed_ticks: 0,
            tid: Tid(1),
            longs: Vec::new(),
            longs_unkept: 0,
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
    fn what_was_hit_is_taken_out_and_the_rest_is_whole() {
        let long = |ticks| LongIteration {
            range: TimeRange::ALL,
            ticks,
        };
        let all = LoopFound {
            counted: 6,
            overruns: 1,
            overruns_sum: 5_000_000,
            ticks_max: 5_000_000,
            longs: vec![long(900), long(5_000_000), long(900)],
            ..found(&[(10, 3), (900, 2)])
        };
        let rest = all.without(|place| place < 2);
        assert_eq!((rest.counted, rest.overruns, rest.ticks_max), (4, 0, 900));
        assert_eq!(rest.bins, [(10, 3), (900, 1)]);
        assert_eq!(rest.longs, [long(900)]);
        assert_eq!(all.without(|_| true).bins, [(10, 3)]);
        assert_eq!(all.without(|_| false), all);
    }

    #[test]
    fn the_loop_counts_every_iteration_and_stops_when_told() {
        let plan = LoopPlan {
            cpu: Cpu(rustix::thread::sched_getcpu() as u32),
            policy: Policy::Ordinary,
            iterations: 10_000,
            dropped: 5,
            per_second: None,
            tracer: LoopTracer::None,
            event: LoopEvent::Numbers,
            keep_long: true,
        };
        let found = run(&plan, &AtomicBool::new(false)).expect("it runs");
        let in_bins: u64 = found.bins.iter().map(|(_, count)| count).sum();
        assert_eq!(found.counted, 10_000);
        assert_eq!(in_bins + found.overruns, 10_000);
        assert!(found.min_ns() > 0.0 && found.min_ns() <= found.mean_ns());
        let long =
            |(ticks, _): &&(u64, u64)| *ticks >= (INTERRUPT_NS_MIN * found.ticks_per_ns) as u64;
        let binned: u64 = found.bins.iter().filter(long).map(|(_, n)| n).sum();
        assert_eq!(found.longs.len() as u64, binned + found.overruns);
        let paced = LoopPlan {
            per_second: Some(100_000),
            iterations: 100,
            ..plan
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
