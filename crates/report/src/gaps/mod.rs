//! Gaps of threads that never sleep: who took how much of each CPU.

mod json;
mod text;

use std::collections::BTreeMap;

use diagnosis::{ExplainedGap, Taker, softirq_name};
use event::{Cpu, Duration};
use measure::counter::Counter;
use measure::gaps::Reading;

pub use json::gaps_json;
pub use text::gaps_text;

/// A search for gaps, finished.
#[derive(Clone, Copy, Debug)]
pub struct Gaps<'a> {
    /// What each thread found.
    pub readings: &'a [Reading],
    /// Who took what; none when no events were recorded.
    pub explained: Option<&'a [ExplainedGap]>,
    /// What the kernel counted as taken by a hypervisor, also outside of gaps.
    pub steal: &'a [(Cpu, Duration)],
    /// What the threads read.
    pub counter: Counter,
    /// A gap is longer than this.
    pub threshold: Duration,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether it went on for as long as was asked.
    pub complete: bool,
    /// The kernel's release.
    pub kernel: &'a str,
    /// The preemption model in force.
    pub preemption: &'a str,
    /// What makes the figures doubtful here.
    pub warnings: &'a [String],
}

/// All that one taker took from a CPU in gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Noise {
    /// In so many gaps.
    gaps: u64,
    total: Duration,
    longest: Duration,
}

/// The noise of each CPU, the greatest first.
fn noises(explained: &[ExplainedGap]) -> Vec<(Cpu, Taker, Noise)> {
    let mut all: BTreeMap<(Cpu, Taker), Noise> = BTreeMap::new();
    for one in explained {
        for (taker, duration) in &one.parts {
            let noise = all.entry((one.gap.cpu, taker.clone())).or_default();
            noise.gaps += 1;
            noise.total += *duration;
            noise.longest = noise.longest.max(*duration);
        }
    }
    let mut all: Vec<_> = all
        .into_iter()
        .map(|((cpu, taker), noise)| (cpu, taker, noise))
        .collect();
    all.sort_by_key(|(cpu, _, noise)| (*cpu, std::cmp::Reverse(noise.total)));
    all
}

/// A taker in words.
fn name(taker: &Taker) -> String {
    match taker {
        Taker::Nmi => "NMI".into(),
        Taker::Hardirq { irq, name } if *irq < 0 => format!("interrupt: {name}"),
        Taker::Hardirq { irq, name } => format!("interrupt {irq} {name}").trim_end().to_owned(),
        Taker::Softirq { vector } => match softirq_name(*vector) {
            Some(name) => format!("softirq {name}"),
            None => format!("softirq {vector}"),
        },
        Taker::Task { comm } => format!("task {comm}"),
        Taker::Below => "below the kernel: hardware, firmware or hypervisor".into(),
        Taker::Unknown => "not recorded".into(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use diagnosis::Gap;
    use event::{Instant, Tid, TimeRange};

    use super::*;

    /// A gap of CPU 1 at 5 s, taken by these for so many microseconds.
    pub(super) fn gap(parts_us: &[(Taker, i64)]) -> ExplainedGap {
        let whole_us: i64 = parts_us.iter().map(|(_, us)| us).sum();
        let begin = Instant::from_ns(5_000_000_000);
        let parts = parts_us.iter();
        ExplainedGap {
            gap: Gap {
                cpu: Cpu(1),
                tid: Tid(42),
                range: TimeRange {
                    begin,
                    end: begin + Duration::from_us(whole_us),
                },
            },
            parts: parts
                .map(|(taker, us)| (taker.clone(), Duration::from_us(*us)))
                .collect(),
        }
    }

    pub(super) fn reading(explained: &[ExplainedGap]) -> Reading {
        Reading {
            cpu: Cpu(1),
            tid: Tid(42),
            iterations: 1_000_000,
            looped: Duration::from_ms(500),
            step_min: Duration::from_ns(20),
            gaps: explained.iter().map(|one| one.gap.range).collect(),
            gaps_unkept: 0,
            longest: Duration::from_us(150),
            lost_cpu: false,
        }
    }

    pub(super) fn found<'a>(
        readings: &'a [Reading],
        explained: &'a [ExplainedGap],
        steal: &'a [(Cpu, Duration)],
    ) -> Gaps<'a> {
        Gaps {
            readings,
            explained: Some(explained),
            steal,
            counter: Counter::Processor,
            threshold: Duration::from_us(10),
            elapsed: Duration::from_ms(1000),
            complete: true,
            kernel: "6.12.1",
            preemption: "full",
            warnings: &[],
        }
    }

    #[test]
    fn each_taker_of_a_cpu_is_one_noise() {
        let disk = Taker::Hardirq {
            irq: 30,
            name: "disk".into(),
        };
        let gaps = [
            gap(&[(disk.clone(), 12)]),
            gap(&[(Taker::Below, 90), (disk.clone(), 20)]),
        ];
        let noise = |gaps, total_us, longest_us| Noise {
            gaps,
            total: Duration::from_us(total_us),
            longest: Duration::from_us(longest_us),
        };
        let expect = [
            (Cpu(1), Taker::Below, noise(1, 90, 90)),
            (Cpu(1), disk, noise(2, 32, 20)),
        ];
        assert_eq!(noises(&gaps), expect);
    }
}
