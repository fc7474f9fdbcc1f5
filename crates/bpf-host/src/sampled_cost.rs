//! What programs cost, measured for a moment now and then. The kernel's own measuring of a call
//! takes longer than most calls do, and each change of it interrupts every CPU. What it adds is
//! told by a program that does nothing, and is no part of the cost: most of the time it is off.

use std::time::{Duration, Instant};

use crate::statistics::ProgramCost;

/// From the begin of a moment to that of the next one.
const EVERY: Duration = Duration::from_secs(60);

/// The run time of programs since the start: measured for a moment of each minute, and taken to be
/// the same share of the time in between. `S` keeps the kernel measuring while it lives.
#[derive(Debug)]
pub(crate) struct SampledCost<S> {
    /// Run time over elapsed time in the last moment.
    share: f64,
    spent_ns: f64,
    /// Until when `spent_ns` is known.
    known: Instant,
    next: Instant,
    moment: Option<Moment<S>>,
}

#[derive(Debug)]
struct Moment<S> {
    measuring: S,
    before: Ran,
}

/// What programs have run, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) ns: u64,
    pub(crate) calls: u64,
}

impl Ran {
    pub(crate) fn of(costs: &[ProgramCost]) -> Ran {
        Ran {
            ns: costs.iter().map(|cost| cost.run_ns).sum(),
            calls: costs.iter().map(|cost| cost.calls).sum(),
        }
    }

    /// What ran since then.
    pub(crate) fn since(self, before: Ran) -> Ran {
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
    pub(crate) fn new(now: Instant) -> SampledCost<S> {
        SampledCost {
            share: 0.0,
            spent_ns: 0.0,
            known: now,
            next: now,
            moment: None,
        }
    }

    /// Ends a moment, or begins one when it is time to. `ran` is what the kernel has measured in
    /// all, `empty` what it has measured of programs that do nothing since `measure` began it;
    /// without that there is no figure.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        ran: impl FnOnce() -> Ran,
        measure: impl FnOnce() -> Option<S>,
        empty: impl FnOnce(&S) -> Ran,
    ) {
        let since_ns = now.saturating_duration_since(self.known).as_nanos() as f64;
        if let Some(moment) = self.moment.take() {
            if since_ns > 0.0 {
                let own_ns = ran().own_ns(moment.before, empty(&moment.measuring));
                self.share = own_ns / since_ns;
            }
        } else if now >= self.next {
            self.moment = measure().map(|measuring| Moment {
                measuring,
                before: ran(),
            });
            self.next = now + EVERY;
        }
        self.spent_ns += self.share * since_ns;
        self.known = now;
    }

    /// What was spent until the last look.
    pub(crate) fn spent_ns(&self) -> u64 {
        self.spent_ns as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_moment_cost_is_the_price_of_the_time_until_the_next_one() {
        let begin = Instant::now();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let mut cost = SampledCost::new(begin);
        let mut check = |ms: u64, ns: u64, expect_ns: u64, measures: bool| {
            let ran = Ran { ns, calls: 0 };
            cost.look(at(ms), || ran, || Some(()), |()| Ran::default());
            assert_eq!(cost.spent_ns(), expect_ns, "at {ms} ms");
            assert_eq!(cost.moment.is_some(), measures, "at {ms} ms");
        };
        check(0, 500, 0, true);
        // A thousandth of the time.
        check(200, 200_500, 200_000, false);
        check(1_200, 200_500, 1_200_000, false);
        check(60_200, 200_500, 60_200_000, true);
        // Nothing runs any more.
        check(60_400, 200_500, 60_200_000, false);
        check(90_400, 200_500, 60_200_000, false);
    }

    #[test]
    fn without_the_kernels_measuring_there_is_no_figure() {
        let begin = Instant::now();
        let mut cost: SampledCost<()> = SampledCost::new(begin);
        for second in 0..100 {
            let now = begin + Duration::from_secs(second);
            cost.look(now, Ran::default, || None, |()| Ran::default());
        }
        assert_eq!(cost.spent_ns(), 0);
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
