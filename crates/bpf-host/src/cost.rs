//! What a watch costs on this machine: each program's own run time over that of an empty program,
//! under a short load.

use std::time::Duration;

use abi::{Histogram, raw};
use event::Result;
use libbpf_rs::{Link, Object};

use crate::config::WatchConfig;
use crate::features::{has_tracepoint, vmlinux};
use crate::load::Load;
use crate::object;
use crate::statistics::{ProgramCost, RunTimeStatistics, program_costs};
use crate::trackers::{Tracker, TrackerConfig, TrackerWatch};
use crate::watch::Watch;

/// The programs of `enum rts_program`, by value.
const PROGRAMS: [&str; raw::PROGRAMS_MAX] = [
    "empty",
    "irq_entry",
    "irq_exit",
    "softirq_raise",
    "softirq_entry",
    "softirq_exit",
    "hrtimer_start",
    "hrtimer_expire_entry",
    "hrtimer_expire_exit",
    "sched_waking",
    "sched_switch",
    "sched_set_need_resched_tp",
    "sys_exit",
];

/// The run time of one program, of the calls that changed state or of those that did not.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCost {
    /// The program; interrupts of all kinds share `irq_entry` and `irq_exit`.
    pub program: &'static str,
    /// Whether these are the calls that changed the watch's state.
    pub changed: bool,
    /// The number of calls.
    pub calls: u64,
    /// Calls in a second, on all CPUs.
    pub calls_per_s: f64,
    /// The average over an empty program's, in nanoseconds.
    pub average_over_empty_ns: f64,
    /// Of 100 calls, 99 took at most this, the measuring included.
    pub p99_ns: u64,
    /// The longest call, the measuring and whatever interrupted it included.
    pub max_ns: u64,
}

/// Runs the watch `config` and empty programs side by side for `duration`, under our own load
/// or whatever else runs on the machine.
///
/// # Errors
/// Those of [`Watch::start`], or when the load cannot be started.
pub fn measure_cost(
    config: &WatchConfig,
    duration: Duration,
    own_load: bool,
) -> Result<Vec<MeasuredCost>> {
    let empty = object::load(object::open(object::EMPTY)?, |name| name != "nothing")?;
    let _empty_links = object::attach(&empty, |_| true)?;
    let (watch, _ring) = Watch::start(&WatchConfig {
        profile: true,
        ..config.clone()
    })?;
    let load = own_load.then(Load::start).transpose()?;
    std::thread::sleep(duration);
    drop(load);

    let mut costs = Vec::new();
    let empty = Sum::of(&object::per_cpu(&empty, "profiles", 0)?);
    costs.extend(empty.cost(PROGRAMS[0], false, 0.0, duration));
    for (program, name) in PROGRAMS.iter().enumerate().skip(1) {
        for changed in [true, false] {
            let key = 2 * program as u32 + u32::from(changed);
            let sum = Sum::of(&watch.profile(key)?);
            costs.extend(sum.cost(name, changed, empty.average_ns(), duration));
        }
    }
    Ok(costs)
}

/// What one call of a tracker's programs takes, by the kernel's own measuring.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackerCost {
    /// The program.
    pub program: String,
    /// The number of calls.
    pub calls: u64,
    /// The average over that of an empty program on `sched_switch` in the same seconds, which is
    /// the measuring.
    pub average_over_empty_ns: f64,
    /// The same over that of an empty program in this one's place, in the seconds after: what is
    /// left is the program's own, without what is cold for whoever comes there. None of programs
    /// that are at no tracepoint.
    pub average_over_empty_there_ns: Option<f64>,
}

/// Runs a tracker of all tasks and an empty program side by side for `duration`, and then for as
/// long empty programs in the tracker's place, under whatever runs on the machine.
///
/// # Errors
/// Those of [`TrackerWatch::start`], and when the kernel may not measure.
pub fn measure_tracker_cost(
    tracker: &'static Tracker,
    duration: Duration,
) -> Result<Vec<TrackerCost>> {
    let empty = object::load(object::open(object::EMPTY)?, |name| name == "nothing")?;
    let _empty_links = object::attach(&empty, |_| true)?;
    let watch = TrackerWatch::start(
        tracker,
        &TrackerConfig {
            watch: WatchConfig {
                threshold: event::Duration::MAX,
                waker_stacks: false,
                ..WatchConfig::default()
            },
            ..TrackerConfig::default()
        },
    )?;
    let _measuring = RunTimeStatistics::enable()?;
    let costs = || (program_costs(&empty), watch.spent().programs);
    let before = costs();
    std::thread::sleep(duration);
    let after = costs();
    let average_ns = |before: &[ProgramCost], after: &[ProgramCost]| {
        averages(before, after).next().map(|(_, _, ns)| ns)
    };
    let empty_ns = average_ns(&before.0, &after.0).unwrap_or(0.0);
    drop(watch);
    let there = empty_at(before.1.iter().map(|cost| cost.program.as_str()))?;
    let costs_there = || there.iter().map(|(_, object, _)| program_costs(object));
    let before_there: Vec<_> = costs_there().collect();
    std::thread::sleep(duration);
    let empty_there_ns = |program: &str| {
        let mut places = there.iter().zip(&before_there);
        let ((_, object, _), before) = places.find(|((place, ..), _)| place == program)?;
        average_ns(before, &program_costs(object))
    };
    let cost = |(program, calls, average_ns): (&str, u64, f64)| TrackerCost {
        program: program.to_owned(),
        calls,
        average_over_empty_ns: average_ns - empty_ns,
        average_over_empty_there_ns: empty_there_ns(program).map(|there| average_ns - there),
    };
    Ok(averages(&before.1, &after.1).map(cost).collect())
}

/// A program that does nothing at each of these tracepoints; what is no tracepoint is left out.
fn empty_at<'p>(places: impl Iterator<Item = &'p str>) -> Result<Vec<(String, Object, Vec<Link>)>> {
    let btf = vmlinux();
    let is_there = |place: &&str| btf.as_ref().is_some_and(|btf| has_tracepoint(btf, place));
    let empty = |place: &str| {
        let mut opened = object::open(object::EMPTY)?;
        for mut program in opened.progs_mut() {
            if program.name() == "nothing" {
                program
                    .set_attach_target(0, Some(place.to_owned()))
                    .map_err(|error| object::explain("prepare", &error))?;
            }
        }
        let object = object::load(opened, |name| name == "nothing")?;
        let links = object::attach(&object, |_| true)?;
        Ok((place.to_owned(), object, links))
    };
    places.filter(is_there).map(empty).collect()
}

/// Of the programs that ran in between: name, calls and nanoseconds a call.
fn averages<'c>(
    before: &'c [ProgramCost],
    after: &'c [ProgramCost],
) -> impl Iterator<Item = (&'c str, u64, f64)> + 'c {
    let both = before.iter().zip(after);
    both.filter_map(|(before, after)| {
        let calls = after.calls - before.calls;
        let run_ns = after.run_ns - before.run_ns;
        (calls > 0).then(|| (after.program.as_str(), calls, run_ns as f64 / calls as f64))
    })
}

/// One program's profile, of all CPUs.
#[derive(Default)]
struct Sum {
    calls: u64,
    total_ns: u64,
    max_ns: u64,
    histogram: Histogram,
}

impl Sum {
    fn of(profiles: &[raw::Profile]) -> Self {
        let mut sum = Sum::default();
        for profile in profiles {
            sum.calls += profile.calls;
            sum.total_ns += profile.total_ns;
            sum.max_ns = sum.max_ns.max(profile.max_ns);
            sum.histogram.add(&profile.buckets);
        }
        sum
    }

    fn average_ns(&self) -> f64 {
        if self.calls == 0 {
            0.0
        } else {
            self.total_ns as f64 / self.calls as f64
        }
    }

    /// None when the program never ran so.
    fn cost(
        &self,
        program: &'static str,
        changed: bool,
        empty_ns: f64,
        duration: Duration,
    ) -> Option<MeasuredCost> {
        Some(MeasuredCost {
            program,
            changed,
            calls: self.calls,
            calls_per_s: self.calls as f64 / duration.as_secs_f64(),
            average_over_empty_ns: self.average_ns() - empty_ns,
            p99_ns: self.histogram.quantile(0.99)?.as_ns_unsigned(),
            max_ns: self.max_ns,
        })
    }
}
