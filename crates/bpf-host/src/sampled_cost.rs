//! What programs cost, measured for a moment now and then. The kernel's own measuring of a call
//! takes longer than most calls do, and each change of it interrupts every CPU. What it adds is
//! told by a program that does nothing, and is no part of the cost: most of the time it is off.

use std::time::{Duration, Instant};

use event::Result;
use libbpf_rs::{Link, Object};

use crate::object;
use crate::statistics::{ProgramCost, RunTimeStatistics, program_costs};

/// How long a moment lasts at least, that with which all begins and each later one, and how often
/// one begins. It ends with the first look behind its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) first: Duration,
    pub(crate) later: Duration,
    pub(crate) every: Duration,
}

/// Of a watch: all of a short one, and little of one that lasts for days.
pub(crate) const OF_A_WATCH: Pace = Pace {
    first: Duration::from_secs(10),
    later: Duration::from_secs(1),
    every: Duration::from_secs(600),
};

/// What the programs of a watch have cost since its start.
#[derive(Clone, Debug, Default)]
pub struct WatchCost {
    /// Their run time, without the kernel's own measuring: measured at the start and for a moment
    /// now and then, and taken to be the same share of the rest; zero where that is not allowed.
    pub run_time: event::Duration,
    /// For how long the kernel measured.
    pub measured: event::Duration,
    /// What it counted meanwhile, its own measuring included.
    pub programs: Vec<ProgramCost>,
}

/// What the programs of one object cost; they are looked at a few times a second.
#[derive(Debug)]
pub(crate) struct CostSampler {
    cost: SampledCost<Measuring>,
    /// A program that does nothing, of which the measuring is all its cost.
    empty: Object,
}

impl CostSampler {
    /// Nothing is measured before the first look.
    ///
    /// # Errors
    /// When the kernel refuses a program that does nothing.
    pub(crate) fn new(pace: Pace) -> Result<CostSampler> {
        Ok(CostSampler {
            cost: SampledCost::new(Instant::now(), pace),
            empty: object::load(object::open(object::EMPTY)?, |name| name == "nothing")?,
        })
    }

    /// Ends a moment, or begins one, when it is time to.
    pub(crate) fn look(&mut self, object: &Object) {
        self.look_at(|| Ran::of(&program_costs(object)));
    }

    fn look_at(&mut self, ran: impl FnOnce() -> Ran) {
        let measure = || Measuring::begin(&self.empty);
        let empty = |measuring: &Measuring| {
            let now = Ran::of(&program_costs(&self.empty));
            now.since(measuring.before)
        };
        self.cost.look(Instant::now(), ran, measure, empty);
    }

    /// What was spent until the last look; zero where measuring is not allowed.
    pub(crate) fn spent_ns(&self) -> u64 {
        self.cost.spent_ns as u64
    }

    /// Looks, and says what was spent.
    pub(crate) fn of(&mut self, object: &Object) -> WatchCost {
        let programs = program_costs(object);
        self.look_at(|| Ran::of(&programs));
        WatchCost {
            run_time: event::Duration::from_ns(self.spent_ns() as i64),
            measured: event::Duration::from_ns(self.cost.measured.as_nanos() as i64),
            programs,
        }
    }
}

/// The kernel measures while this lives, and calls a program that does nothing.
#[derive(Debug)]
struct Measuring {
    _statistics: RunTimeStatistics,
    _empty: Vec<Link>,
    before: Ran,
}

impl Measuring {
    /// None where it is not allowed.
    fn begin(empty: &Object) -> Option<Measuring> {
        Some(Measuring {
            _statistics: RunTimeStatistics::enable().ok()?,
            _empty: object::attach(empty, |_| true).ok()?,
            before: Ran::of(&program_costs(empty)),
        })
    }
}

/// The run time of programs since the start: measured for a moment now and then, and taken to be
/// the same share of the time in between. `S` keeps the kernel measuring while it lives.
#[derive(Debug)]
struct SampledCost<S> {
    pace: Pace,
    /// Run time over elapsed time in the last moment.
    share: f64,
    /// Until `known`.
    spent_ns: f64,
    /// All moments together, until then.
    measured: Duration,
    known: Instant,
    next: Instant,
    moment: Option<Moment<S>>,
}

#[derive(Debug)]
struct Moment<S> {
    measuring: S,
    begin: Instant,
    ends: Instant,
    before: Ran,
    spent_before_ns: f64,
}

/// What programs have run, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ran {
    ns: u64,
    calls: u64,
}

impl Ran {
    fn of(costs: &[ProgramCost]) -> Ran {
        Ran {
            ns: costs.iter().map(|cost| cost.run_ns).sum(),
            calls: costs.iter().map(|cost| cost.calls).sum(),
        }
    }

    /// What ran since then.
    fn since(self, before: Ran) -> Ran {
        Ran {
            ns: self.ns.saturating_sub(before.ns),
            calls: self.calls.saturating_sub(before.calls),
        }
    }

    /// Since `before`, without what the measuring of so many calls took: `empty` did nothing.
    fn own_ns(self, before: Ran, empty: Ran) -> f64 {
        let ran = self.since(before);
        let empty_ns = empty.ns as f64 / empty.calls.max(1) as f64;
        (ran.ns as f64 - ran.calls as f64 * empty_ns).max(0.0)
    }
}

impl<S> SampledCost<S> {
    /// Nothing was spent yet; the first look begins a moment.
    fn new(now: Instant, pace: Pace) -> SampledCost<S> {
        SampledCost {
            pace,
            share: 0.0,
            spent_ns: 0.0,
            measured: Duration::ZERO,
            known: now,
            next: now,
            moment: None,
        }
    }

    /// Ends a moment, or begins one when it is time to. `ran` is what the kernel has measured in
    /// all, `empty` what it has measured of programs that do nothing since `measure` began it;
    /// without that there is no figure.
    fn look(
        &mut self,
        now: Instant,
        ran: impl FnOnce() -> Ran,
        measure: impl FnOnce() -> Option<S>,
        empty: impl FnOnce(&S) -> Ran,
    ) {
        let since = now.saturating_duration_since(self.known);
        if let Some(moment) = &self.moment {
            let length_ns = now.saturating_duration_since(moment.begin).as_nanos() as f64;
            let own_ns = ran().own_ns(moment.before, empty(&moment.measuring));
            self.spent_ns = moment.spent_before_ns + own_ns;
            self.measured += since;
            if length_ns > 0.0 {
                self.share = own_ns / length_ns;
            }
            if now >= moment.ends {
                self.moment = None;
            }
        } else {
            self.spent_ns += self.share * since.as_nanos() as f64;
            if now >= self.next {
                self.begin(now, ran, measure);
            }
        }
        self.known = now;
    }

    fn begin(
        &mut self,
        now: Instant,
        ran: impl FnOnce() -> Ran,
        measure: impl FnOnce() -> Option<S>,
    ) {
        let is_first = self.measured.is_zero();
        let lasts = if is_first {
            self.pace.first
        } else {
            self.pace.later
        };
        self.moment = measure().map(|measuring| Moment {
            measuring,
            begin: now,
            ends: now + lasts,
            before: ran(),
            spent_before_ns: self.spent_ns,
        });
        self.next = now + self.pace.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: Pace = Pace {
        first: Duration::ZERO,
        later: Duration::ZERO,
        every: Duration::from_secs(60),
    };

    /// Looks at these milliseconds, when that many nanoseconds have run: what was spent by then,
    /// for how long the kernel had measured, and whether it goes on.
    fn check(pace: Pace, looks: &[(u64, u64, u64, u64, bool)]) {
        let begin = Instant::now();
        let mut cost = SampledCost::new(begin, pace);
        for (ms, ns, spent_ns, measured_ms, measures) in looks.iter().copied() {
            let ran = Ran { ns, calls: 0 };
            let now = begin + Duration::from_millis(ms);
            cost.look(now, || ran, || Some(()), |()| Ran::default());
            assert_eq!(cost.spent_ns as u64, spent_ns, "at {ms} ms");
            let measured = Duration::from_millis(measured_ms);
            assert_eq!(cost.measured, measured, "at {ms} ms");
            assert_eq!(cost.moment.is_some(), measures, "at {ms} ms");
        }
    }

    #[test]
    fn what_a_moment_cost_is_the_price_of_the_time_until_the_next_one() {
        check(
            AT_ONCE,
            &[
                (0, 500, 0, 0, true),
                // A thousandth of the time.
                (200, 200_500, 200_000, 200, false),
                (1_200, 200_500, 1_200_000, 200, false),
                (60_200, 200_500, 60_200_000, 200, true),
                // Nothing runs any more.
                (60_400, 200_500, 60_200_000, 400, false),
                (90_400, 200_500, 60_200_000, 400, false),
            ],
        );
    }

    #[test]
    fn a_moment_lasts_as_long_as_it_is_to_and_what_it_measured_by_then_is_known() {
        let pace = Pace {
            first: Duration::from_secs(10),
            later: Duration::from_secs(1),
            every: Duration::from_secs(60),
        };
        check(
            pace,
            &[
                (0, 0, 0, 0, true),
                (1_000, 0, 0, 1_000, true),
                // All of it behind the first second.
                (9_000, 5_000_000, 5_000_000, 9_000, true),
                (10_000, 5_000_000, 5_000_000, 10_000, false),
                // By the share of the whole moment.
                (20_000, 5_000_000, 10_000_000, 10_000, false),
                (60_000, 5_000_000, 30_000_000, 10_000, true),
                (60_500, 6_000_000, 31_000_000, 10_500, true),
                (61_000, 6_000_000, 31_000_000, 11_000, false),
                (62_000, 6_000_000, 32_000_000, 11_000, false),
            ],
        );
    }

    #[test]
    fn without_the_kernels_measuring_there_is_no_figure() {
        let begin = Instant::now();
        let mut cost: SampledCost<()> = SampledCost::new(begin, AT_ONCE);
        for second in 0..100 {
            let now = begin + Duration::from_secs(second);
            cost.look(now, Ran::default, || None, |()| Ran::default());
        }
        assert_eq!((cost.spent_ns, cost.measured), (0.0, Duration::ZERO));
    }

    #[test]
    fn the_kernels_measuring_is_no_part_of_it() {
        let check = |ns: u64, calls: u64, empty: (u64, u64), expect_ns: f64| {
            let before = Ran { ns: 100, calls: 10 };
            let after = Ran {
                ns: 100 + ns,
                calls: 10 + calls,
            };
            let (ns, calls) = empty;
            assert_eq!(after.own_ns(before, Ran { ns, calls }), expect_ns);
        };
        check(1_000, 10, (420, 7), 400.0);
        // Nobody called the empty one: nothing is known of the measuring.
        check(1_000, 10, (0, 0), 1_000.0);
        check(500, 10, (420, 7), 0.0);
    }
}
