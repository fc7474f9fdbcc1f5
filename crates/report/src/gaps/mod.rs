//! Gaps of threads that never sleep: who took how much of each CPU.

mod json;
mod text;

use std::collections::BTreeMap;

use diagnosis::{ExplainedGap, Taker, softirq_name};
use event::evidence::StopKind;
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
    /// What no gap may exceed, and what nothing below the kernel may.
    pub limits: Limits,
}

/// What a search may find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// No gap may be longer, whoever took it.
    pub budget: Option<Duration>,
    /// Nothing below the kernel may take more of a gap.
    pub hard: Option<Duration>,
}

impl Limits {
    /// The shorter one; none without any.
    pub fn least(&self) -> Option<Duration> {
        [self.budget, self.hard].into_iter().flatten().min()
    }
}

/// What was found of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// They hold, or there are none.
    Held,
    /// One is exceeded.
    Exceeded,
    /// Not all was kept, or recorded, or a CPU was not looked at: nobody knows.
    Unknown,
}

impl Gaps<'_> {
    /// The longest gap.
    fn longest(&self) -> Duration {
        let longest = self.readings.iter().map(|reading| reading.longest);
        longest.max().unwrap_or_default()
    }

    /// The most that takers of this kind took of a gap.
    fn most_of(&self, is_it: impl Fn(&Taker) -> bool) -> Duration {
        let parts = self.explained.into_iter().flatten();
        let parts = parts.flat_map(|one| &one.parts);
        let most = parts.filter(|(taker, _)| is_it(taker));
        most.map(|(_, duration)| *duration)
            .max()
            .unwrap_or_default()
    }

    /// The most that was taken below the kernel.
    fn below(&self) -> Duration {
        self.most_of(|taker| *taker == Taker::Below)
    }

    /// Whether the limits hold.
    pub fn held(&self) -> Held {
        let Limits { budget, hard } = self.limits;
        let is_over = |limit: Option<Duration>, found| limit.is_some_and(|limit| found > limit);
        if is_over(budget, self.longest()) || is_over(hard, self.below()) {
            return Held::Exceeded;
        }
        let unkept = self.readings.iter().any(|reading| reading.gaps_unkept > 0);
        let unknown = self.most_of(|taker| *taker == Taker::Unknown);
        let unlooked = self.limits.least().is_some() && !self.has_looked();
        match unlooked || hard.is_some() && (unkept || is_over(hard, unknown)) {
            true => Held::Unknown,
            false => Held::Held,
        }
    }

    /// Whether each CPU was looked at.
    fn has_looked(&self) -> bool {
        let each = |reading: &Reading| reading.looped > Duration::ZERO;
        !self.readings.is_empty() && self.readings.iter().all(each)
    }
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
        Taker::Throttled { ran: None } => {
            "RT throttling (kernel.sched_rt_runtime_us): the CPU idled".into()
        }
        Taker::Throttled { ran: Some(comm) } => format!("throttled: {comm} ran"),
        Taker::Stopped { how } => match how {
            StopKind::Signal => "the looking thread was stopped (SIGSTOP)".into(),
            StopKind::Traced => "the looking thread was stopped for its tracer".into(),
            StopKind::Frozen => "the looking thread was frozen".into(),
        },
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
            limits: Limits::default(),
        }
    }

    #[test]
    fn a_budget_is_for_all_gaps_and_a_hard_limit_for_what_is_taken_below_the_kernel() {
        let check = |taker: Taker, us: i64, limits: (Option<i64>, Option<i64>), expect: Held| {
            let gaps = [gap(&[(taker.clone(), us), (Taker::Nmi, 1)])];
            let readings = [Reading {
                longest: Duration::from_us(us + 1),
                ..reading(&gaps)
            }];
            let limit = |us: Option<i64>| us.map(Duration::from_us);
            let found = Gaps {
                limits: Limits {
                    budget: limit(limits.0),
                    hard: limit(limits.1),
                },
                ..found(&readings, &gaps, &[])
            };
            assert_eq!(found.held(), expect, "{taker:?} {us} {limits:?}");
        };
        let disk = Taker::Hardirq {
            irq: 30,
            name: "disk".into(),
        };
        check(disk.clone(), 50, (None, None), Held::Held);
        check(disk.clone(), 50, (Some(51), None), Held::Held);
        check(disk.clone(), 50, (Some(50), None), Held::Exceeded);
        check(disk, 50, (None, Some(10)), Held::Held);
        check(Taker::Below, 50, (None, Some(49)), Held::Exceeded);
        check(Taker::Below, 50, (Some(60), Some(50)), Held::Held);
        check(
            Taker::Throttled { ran: None },
            50,
            (None, Some(10)),
            Held::Held,
        );
        check(Taker::Unknown, 50, (None, Some(10)), Held::Unknown);
        check(Taker::Unknown, 50, (Some(10), Some(10)), Held::Exceeded);
    }

    #[test]
    fn on_a_cpu_that_nobody_looked_at_no_limit_holds() {
        let check = |looped_ms: &[i64], expect: Held| {
            let of_one = |looped_ms: &i64| Reading {
                looped: Duration::from_ms(*looped_ms),
                longest: Duration::ZERO,
                ..reading(&[])
            };
            let readings: Vec<Reading> = looped_ms.iter().map(of_one).collect();
            let budget = Some(Duration::from_us(10));
            let limits = Limits { budget, hard: None };
            let found = Gaps {
                limits,
                ..found(&readings, &[], &[])
            };
            assert_eq!(found.held(), expect, "{looped_ms:?}");
        };
        check(&[500, 500], Held::Held);
        check(&[500, 0], Held::Unknown);
        check(&[], Held::Unknown);
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
