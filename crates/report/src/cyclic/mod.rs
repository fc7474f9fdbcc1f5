//! A cyclic measurement: as a table, as JSON, and as cyclictest writes it.

mod cyclictest;
mod cyclictest_json;
mod json;
mod table;
mod units;

use event::Duration;
use host::clock::Clock;
use measure::cyclic::{Break, Reading};
use measure::histogram::Histogram;
use serde_json::Value;

pub use cyclictest::{cyclictest_histogram, cyclictest_status};
pub use cyclictest_json::{CyclictestFacts, cyclictest_json};
pub use json::cyclic_json;
pub(crate) use json::latency_json;
pub use table::cyclic_text;
pub(crate) use units::us;

/// A cyclic measurement, finished or not.
#[derive(Clone, Copy, Debug)]
pub struct Cyclic<'a> {
    /// What each thread found.
    pub readings: &'a [Reading],
    /// The clock that they slept on.
    pub clock: Clock,
    /// How long they measured.
    pub elapsed: Duration,
    /// CPU time of the measuring process, all threads.
    pub cpu_time: Duration,
    /// The sample that ended it, when one did.
    pub broken: Option<Break>,
    /// The kernel: its release, and how it preempts itself.
    pub kernel: &'a str,
    /// The preemption model in force.
    pub preemption: &'a str,
    /// Whether it went on for as long as was asked.
    pub complete: bool,
    /// What splitting samples into phases took of all CPUs, when that was asked and is known.
    pub phases_cost: Option<Duration>,
    /// Late samples that were explained, when that was asked.
    pub late: Option<&'a Late>,
    /// What makes the figures doubtful here.
    pub warnings: &'a [String],
}

/// Late samples of a measurement under a watch.
#[derive(Clone, Debug)]
pub struct Late {
    /// From where on a sample is late.
    pub over: Duration,
    /// Samples that were explained.
    pub explained: u64,
    /// Late samples that were not, because others had been just before.
    pub suppressed: u64,
    /// Late samples that were lost.
    pub lost: u64,
    /// CPU time of the watch's programs in the kernel, on all CPUs and for all tasks.
    pub cost: Duration,
    /// Each with its ledger, as `watch --json` has it; empty where they were shown already.
    pub samples: Vec<Value>,
}

impl Late {
    /// How many were late: `samples` by the histograms, and no fewer than the watch saw, as what it
    /// saw may be longer than the sample by what follows it.
    fn count(&self, samples: u64) -> u64 {
        samples.max(self.explained + self.suppressed + self.lost)
    }
}

/// A share of all samples, and the latency that they do not exceed.
pub(crate) const QUANTILES: [(f64, &str); 4] = [
    (0.5, "p50"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
];

/// Samples that must lie above a quantile for it to be more than an accident.
const ABOVE_MIN: f64 = 10.0;

/// A quantile that this many samples can carry; none where too few lie above it.
pub(crate) fn carried(latency: &Histogram, share: f64) -> Option<Duration> {
    let above = latency.samples as f64 * (1.0 - share);
    // Rounding must not cost the exact case: 10 000 samples carry p99.9.
    (above >= ABOVE_MIN - 1e-6)
        .then(|| latency.quantile(share))
        .flatten()
}

/// Samples of all threads over a limit, to a bucket.
pub(crate) fn samples_over(readings: &[Reading], over: Duration) -> u64 {
    let of_one = |reading: &Reading| reading.latency.over(over);
    readings.iter().map(of_one).sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use event::{Cpu, Tid};
    use host::task::Policy;
    use measure::cyclic::ThreadPlan;
    use measure::histogram::Recorder;

    use super::*;

    /// A thread on CPU 1 that was late by each of these.
    pub(crate) fn reading(samples_us: impl IntoIterator<Item = i64>) -> Reading {
        let recorder = Recorder::new(Duration::from_us(1), 8);
        samples_us
            .into_iter()
            .for_each(|us| recorder.add(us * 1000));
        Reading {
            tid: Tid(4242),
            plan: ThreadPlan {
                cpu: Some(Cpu(1)),
                policy: Policy::Fifo(80),
                interval: Duration::from_ms(1),
            },
            latency: recorder.read(),
            missed: 2,
            unmeasured: 0,
            lost_cpu: false,
            phases: None,
        }
    }

    pub(super) fn cyclic<'a>(readings: &'a [Reading], warnings: &'a [String]) -> Cyclic<'a> {
        Cyclic {
            readings,
            clock: Clock::Monotonic,
            elapsed: Duration::from_ms(10_000),
            cpu_time: Duration::from_ms(20),
            broken: None,
            kernel: "6.12.1-rt",
            preemption: "rt",
            complete: true,
            phases_cost: None,
            late: None,
            warnings,
        }
    }

    #[test]
    fn a_quantile_is_given_only_where_ten_samples_lie_above_it() {
        let check = |samples: i64, share: f64, expect: bool| {
            let found = carried(&reading((0..samples).map(|n| n % 4)).latency, share);
            assert_eq!(found.is_some(), expect, "{samples} {share}");
        };
        check(19, 0.5, false);
        check(20, 0.5, true);
        check(999, 0.99, false);
        check(1000, 0.99, true);
        check(10_000, 0.999, true);
    }
}
