//! What programs cost, measured for a moment now and then. The kernel's own measuring of a call
//! takes longer than most calls do, and each change of it interrupts every CPU.

use std::time::{Duration, Instant};

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
    _measuring: S,
    run_ns: u64,
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

    /// Ends a moment, or begins one when it is time to. `run_ns` is what the kernel has measured in
    /// all; without `measure` there is no figure.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        run_ns: impl FnOnce() -> u64,
        measure: impl FnOnce() -> Option<S>,
    ) {
        let since_ns = now.saturating_duration_since(self.known).as_nanos() as f64;
        if let Some(moment) = self.moment.take() {
            if since_ns > 0.0 {
                self.share = run_ns().saturating_sub(moment.run_ns) as f64 / since_ns;
            }
        } else if now >= self.next {
            self.moment = measure().map(|measuring| Moment {
                _measuring: measuring,
                run_ns: run_ns(),
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
        let mut check = |ms: u64, run_ns: u64, expect_ns: u64, measures: bool| {
            cost.look(at(ms), || run_ns, || Some(()));
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
            cost.look(begin + Duration::from_secs(second), || 7, || None);
        }
        assert_eq!(cost.spent_ns(), 0);
    }
}
