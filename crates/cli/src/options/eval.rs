//! What `rtscope measure eval` was asked to do.

use event::{Cpu, Duration, Error, ErrorKind, Result};
use host::task::Policy;
use measure::counter::Counter;
use measure::cyclic::{Begin, Plan, Sleep, ThreadPlan};
use measure::gaps;
use measure::histogram::OVERFLOWS_NAMED;
use measure::load::{Load, LoadPlan};
use report::Limits;

use super::{Actions, CyclicOptions, CyclicOutput, GapOptions, known_cpus, positive_duration};
use crate::flags::{self, LoadName};

/// The histograms: fine enough for the longest of a stretch, up to ten milliseconds.
const BUCKET: Duration = Duration::from_ns(100);
const BUCKETS: usize = 100_000;
/// Stretches of a run, whose longest latencies make the picture over time and the tail.
const STRETCHES: i64 = 120;
const STRETCH_NS_MIN: i64 = 250_000_000;
/// Loads are looked at as often as that, but in long runs more often: one that stands still must
/// be seen.
const LOAD_LOOK_NS_MIN: i64 = 500_000_000;
const LOAD_LOOK_NS_MAX: i64 = 1_000_000_000;
/// The part of the time in which gaps are looked for.
const HW_PART: i64 = 6;
const HW_NS_MIN: i64 = 2_000_000_000;
/// They are looked for in so many goes at most, of so long each at least, spread over the run: what
/// the loads do changes meanwhile.
const HW_GOES_MAX: i64 = 10;
const HW_GO_NS_MIN: i64 = 1_000_000_000;
/// The part of the time that is measured before late samples are explained: what that costs is the
/// difference. So much at least, and no more than a quarter.
const PLAIN_PART: i64 = 10;
const PLAIN_NS_MIN: i64 = 500_000_000;
/// Both are no more in a run of days: what they find is lost with a run that is killed.
const BESIDE_NS_MAX: i64 = 600_000_000_000;
/// Intervals on disk: a stretch, but so long.
const CLOSE_NS_MIN: i64 = 1_000_000_000;
const CLOSE_NS_MAX: i64 = 60_000_000_000;
/// Samples over the limit that wait to be written, of each thread.
const EXCURSIONS: usize = 4_096;
/// What is measured at least of a run that goes on.
const LEFT_NS_MIN: i64 = 1_000_000_000;
/// Gaps: longer ones are kept, in a third of each second; so many in each go.
const GAP: Duration = Duration::from_us(10);
const GAP_WINDOW: Duration = Duration::from_ms(1000);
const GAP_WIDTH: Duration = Duration::from_ms(300);
const GAPS_MAX: usize = 2_000;
/// An evaluation, decided.
#[derive(Clone, Debug)]
pub struct EvalOptions {
    /// The threads that sleep until an instant.
    pub cyclic: CyclicOptions,
    /// For how long they do before, with nothing explained.
    pub plain: Duration,
    /// The threads that never sleep, while the others rest; none without them.
    pub gaps: Option<GapOptions>,
    /// When the others rest, by the time that they have measured.
    pub rests: Vec<Duration>,
    /// How long each rest is.
    pub rest: Duration,
    /// The worst of the samples that are longer are explained; the budget where nothing was said.
    pub over: Option<Duration>,
    /// How many of these.
    pub worst: usize,
    /// What is done at each of these.
    pub actions: Actions,
    /// What no sample may exceed.
    pub budget: Option<Duration>,
    /// What runs beside them.
    pub loads: Vec<Load>,
    /// Whether these were named: then each must be there.
    pub loads_named: bool,
    /// Where the loads run.
    pub load_plan: LoadPlan,
    /// From one point of the picture over time to the next.
    pub stretch: Duration,
    /// From one interval on disk to the next.
    pub closes_after: Duration,
    /// From one look at the loads to the next.
    pub load_look: Duration,
}

impl EvalOptions {
    /// From what was typed, on a machine with the CPUs `online` and `isolated`, of which we may use
    /// `allowed`, and this clocksource.
    ///
    /// # Errors
    /// For a word without a meaning, or a CPU that is not there.
    pub fn new(
        typed: &flags::Eval,
        [online, allowed, isolated]: [&[Cpu]; 3],
        clocksource: Option<&str>,
    ) -> Result<Self> {
        let list = |text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| known_cpus(text, online)).transpose()
        };
        let optional = |flag: &str, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| positive_duration(flag, text)).transpose()
        };
        let cpus = list(&typed.cpu)?.unwrap_or_else(|| allowed.to_vec());
        let free = |cpu: &Cpu| !isolated.contains(cpu);
        let load_cpus = match list(&typed.load_cpu)? {
            Some(cpus) => cpus,
            None => allowed.iter().copied().filter(free).collect(),
        };
        let whole = positive_duration("--for", &typed.run_for)?;
        let interval = positive_duration("--interval", &typed.interval)?;
        let hw_ns = match typed.no_hw {
            true => 0,
            false => (whole.as_ns() / HW_PART).clamp(HW_NS_MIN, BESIDE_NS_MAX),
        };
        let run_for = Duration::from_ns((whole.as_ns() - hw_ns).max(whole.as_ns() / 2));
        let budget = optional("--budget", &typed.budget)?;
        // One over the budget is never too short to be looked for.
        let gap = budget.map_or(GAP, |budget| budget.min(GAP));
        let hw = (typed.prio, gap, hw_ns);
        let gaps = (!typed.no_hw).then(|| gap_options(&cpus, hw, clocksource));
        let goes = (hw_ns / HW_GO_NS_MIN).min(HW_GOES_MAX);
        let over = optional("--over", &typed.over)?.or(budget);
        let over = over.filter(|_| !typed.no_explain);
        let plain_ns = (run_for.as_ns() / PLAIN_PART).clamp(PLAIN_NS_MIN, BESIDE_NS_MAX);
        let plain_ns = plain_ns.min(run_for.as_ns() / 4);
        let plain = over.map_or(Duration::ZERO, |_| Duration::from_ns(plain_ns));
        let measured = run_for;
        let run_for = measured - plain;
        let mut cyclic = cyclic_options(&cpus, typed.prio, interval, run_for);
        cyclic.warm_up = optional("--warm-up", &typed.warm_up)?;
        cyclic.plan.kept_over = over.or(budget);
        cyclic.plan.kept = cyclic.plan.kept_over.map_or(0, |_| EXCURSIONS);
        let stretch_ns = (measured.as_ns() / STRETCHES).max(STRETCH_NS_MIN);
        Ok(EvalOptions {
            cyclic,
            plain,
            gaps,
            rests: rests(goes, run_for),
            rest: Duration::from_ns(hw_ns / goes.max(1)),
            over,
            worst: typed.worst,
            actions: Actions::new(&typed.actions, over)?,
            budget,
            loads: loads(&typed.load)?,
            loads_named: !typed.load.is_empty(),
            load_plan: LoadPlan {
                cpus: load_cpus,
                cgroup: typed.load_cgroup.clone(),
                stretch: Duration::from_ns(stretch_ns),
            },
            stretch: Duration::from_ns(stretch_ns),
            closes_after: Duration::from_ns(stretch_ns.clamp(CLOSE_NS_MIN, CLOSE_NS_MAX)),
            load_look: Duration::from_ns(stretch_ns.clamp(LOAD_LOOK_NS_MIN, LOAD_LOOK_NS_MAX)),
        })
    }
}

impl EvalOptions {
    /// What is left of it where so much was measured, and perhaps the plain part.
    pub fn go_on_after(&mut self, done: Duration, has_plain: bool) {
        if has_plain {
            self.plain = Duration::ZERO;
        }
        let left_ns = self.cyclic.run_for.unwrap_or_default().as_ns() - done.as_ns();
        let left_ns = left_ns.max(LEFT_NS_MIN);
        self.cyclic.run_for = Some(Duration::from_ns(left_ns));
        let interval = self
            .cyclic
            .plan
            .threads
            .first()
            .map(|thread| thread.interval);
        let interval_ns = interval.map_or(1, Duration::as_ns).max(1);
        self.cyclic.plan.samples = Some((left_ns / interval_ns).cast_unsigned());
        self.rests.retain(|at| *at >= done);
        self.rests.iter_mut().for_each(|at| *at -= done);
    }

    /// The same where nothing can be explained: then all is measured at once.
    pub fn without_explaining(&mut self) {
        self.over = None;
        let plain = std::mem::take(&mut self.plain);
        let cyclic = &mut self.cyclic;
        let run_for = cyclic.run_for.unwrap_or_default() + plain;
        cyclic.run_for = Some(run_for);
        let interval = cyclic.plan.threads.first().map(|thread| thread.interval);
        let interval_ns = interval.map_or(1, Duration::as_ns).max(1);
        cyclic.plan.samples = Some((run_for.as_ns() / interval_ns).cast_unsigned());
    }
}

fn cyclic_options(cpus: &[Cpu], prio: u32, interval: Duration, run_for: Duration) -> CyclicOptions {
    let thread = |&cpu: &Cpu| ThreadPlan {
        cpu: Some(cpu),
        policy: Policy::Fifo(prio),
        interval,
    };
    CyclicOptions {
        plan: Plan {
            threads: cpus.iter().map(thread).collect(),
            clock: host::clock::Clock::Monotonic,
            // They end by themselves: whoever explains late samples may be busy then.
            samples: Some((run_for.as_ns() / interval.as_ns().max(1)).cast_unsigned()),
            break_over: None,
            bucket: BUCKET,
            buckets: BUCKETS,
            begin: Begin::default(),
            sampled_for: None,
            sleep: Sleep::Until,
            kept: 0,
            overflows_named: OVERFLOWS_NAMED,
            kept_over: None,
            called: None,
            mark: None,
            phases: None,
        },
        phases: false,
        run_for: Some(run_for),
        warm_up: None,
        wake_latency: Some(Duration::ZERO),
        deepest_idle: None,
        own_cpus: None,
        lock_memory: true,
        output: CyclicOutput::Own {
            json: false,
            explain: None,
            histogram: None,
            live: false,
        },
    }
}

/// Each in the middle of an equal part of the time.
fn rests(goes: i64, run_for: Duration) -> Vec<Duration> {
    let at_ns = |go: i64| run_for.as_ns() * (2 * go + 1) / (2 * goes);
    (0..goes).map(|go| Duration::from_ns(at_ns(go))).collect()
}

fn gap_options(
    cpus: &[Cpu],
    (prio, threshold, hw_ns): (u32, Duration, i64),
    clocksource: Option<&str>,
) -> GapOptions {
    GapOptions {
        plan: gaps::Plan {
            cpus: cpus.to_vec(),
            policy: Policy::Fifo(prio),
            counter: Counter::choose(clocksource),
            threshold,
            window: GAP_WINDOW,
            width: GAP_WIDTH,
            gaps_max: GAPS_MAX,
        },
        run_for: Duration::from_ns(hw_ns),
        events: Some(None),
        limits: Limits::default(),
        json: true,
    }
}

fn loads(typed: &[LoadName]) -> Result<Vec<Load>> {
    if typed.is_empty() {
        return Ok(Load::ALL.to_vec());
    }
    let loads: Vec<Load> = typed.iter().copied().filter_map(load_of).collect();
    if !loads.is_empty() && loads.len() < typed.len() {
        let what = "nothing runs beside it, and something does";
        return Err(Error::new(ErrorKind::InvalidInput, what)
            .found("--load with none beside others")
            .fix("name the loads, or none alone"));
    }
    Ok(loads)
}

/// The load of that name; `none` is none.
pub fn load_of(name: LoadName) -> Option<Load> {
    match name {
        LoadName::Hackbench => Some(Load::Hackbench),
        LoadName::StressNg => Some(Load::StressNg),
        LoadName::Compile => Some(Load::Compile),
        LoadName::None => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        eval: flags::Eval,
    }

    fn options(words: &str) -> EvalOptions {
        let words = std::iter::once("eval").chain(words.split_whitespace());
        let typed = Typed::try_parse_from(words).expect("understood").eval;
        let cpus = [Cpu(0), Cpu(1), Cpu(2)];
        EvalOptions::new(&typed, [&cpus, &cpus, &cpus[2..]], Some("tsc")).expect("decided")
    }

    #[test]
    fn what_says_how_our_threads_measure_is_refused_beside_an_application() {
        let check = |words: &str, is_taken: bool| {
            let words = format!("eval {words} --budget 1ms -- true");
            let typed = Typed::try_parse_from(words.split_whitespace());
            assert_eq!(typed.is_ok(), is_taken, "{words}");
        };
        check("--for 10s --load none --worst 3", true);
        for words in [
            "--cpu 1",
            "--prio 80",
            "--interval 1ms",
            "--no-hw",
            "--warm-up 1s",
        ] {
            check(words, false);
        }
    }

    #[test]
    fn no_load_is_no_load_beside_others() {
        let check = |typed: &[LoadName], expect: Option<usize>| {
            let found = loads(typed).ok().map(|loads| loads.len());
            assert_eq!(found, expect, "{typed:?}");
        };
        check(&[], Some(Load::ALL.len()));
        check(&[LoadName::None], Some(0));
        check(&[LoadName::Hackbench, LoadName::Compile], Some(2));
        check(&[LoadName::Hackbench, LoadName::None], None);
    }

    #[test]
    fn loads_stay_off_isolated_cpus_unless_told() {
        let check = |words: &str, expect: &[u32]| {
            let found: Vec<u32> = options(words)
                .load_plan
                .cpus
                .iter()
                .map(|cpu| cpu.0)
                .collect();
            assert_eq!(found, expect, "{words}");
        };
        check("", &[0, 1]);
        check("--load-cpu 2", &[2]);
    }

    #[test]
    fn the_time_is_shared_between_both_parts_and_cut_into_stretches() {
        let check = |words: &str, expect_ms: [i64; 3]| {
            let found = options(words);
            let ms = |one: Option<Duration>| one.map_or(0, |one| one.as_ns() / 1_000_000);
            let hw = found.gaps.map(|gaps| gaps.run_for);
            let times = [ms(found.cyclic.run_for), ms(hw), ms(Some(found.stretch))];
            assert_eq!(times, expect_ms, "{words}");
        };
        check("--for 2m", [100_000, 20_000, 833]);
        check("--for 6s", [4_000, 2_000, 250]);
        check("--for 2m --no-hw", [120_000, 0, 1_000]);
    }

    #[test]
    fn gaps_are_looked_for_in_goes_spread_over_the_run() {
        let check = |words: &str, rest_ms: i64, expect_ms: &[i64]| {
            let found = options(words);
            let ms = |one: &Duration| one.as_ns() / 1_000_000;
            let rests: Vec<i64> = found.rests.iter().map(ms).collect();
            assert_eq!(
                (ms(&found.rest), &rests[..]),
                (rest_ms, expect_ms),
                "{words}"
            );
        };
        check("--for 6s", 1_000, &[1_000, 3_000]);
        check("--for 18s", 1_000, &[2_500, 7_500, 12_500]);
        check("--for 2m --no-hw", 0, &[]);
        let long = options("--for 2m");
        assert_eq!(
            (long.rests.len(), long.rest),
            (10, Duration::from_ms(2_000))
        );
    }

    #[test]
    fn a_part_of_the_time_is_measured_before_anything_is_explained() {
        let check = |words: &str, expect_ms: [i64; 2]| {
            let found = options(words);
            let ms = |one: Duration| one.as_ns() / 1_000_000;
            let run_for = found.cyclic.run_for.unwrap_or_default();
            assert_eq!([ms(found.plain), ms(run_for)], expect_ms, "{words}");
            let samples = found.cyclic.plan.samples;
            assert_eq!(samples, Some(ms(run_for).cast_unsigned()), "{words}");
        };
        check("--for 2m --budget 1ms", [10_000, 90_000]);
        check("--for 6s --over 1ms", [500, 3_500]);
        check("--for 1s --over 1ms --no-hw", [250, 750]);
        check("--for 2m", [0, 100_000]);
        check("--for 2m --budget 1ms --no-explain", [0, 100_000]);
        let mut refused = options("--for 2m --budget 1ms");
        refused.without_explaining();
        assert_eq!(refused.cyclic.plan.samples, Some(100_000));
        assert_eq!((refused.plain, refused.over), (Duration::ZERO, None));
    }

    #[test]
    fn loads_are_those_that_were_named() {
        assert_eq!(options("").loads, Load::ALL);
        assert_eq!(options("--load none").loads, []);
        let named = options("--load compile,hackbench");
        assert_eq!(named.loads, [Load::Compile, Load::Hackbench]);
        assert!(named.loads_named && !options("").loads_named);
    }
}
