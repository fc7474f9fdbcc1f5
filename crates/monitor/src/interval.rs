//! A closed interval: what was counted, with names instead of numbers and addresses.

use abi::monitor::{GROUP_NAMED, GROUP_REAL_TIME, Mode, Phase, PhaseSeries, PhaseWorst};
use event::evidence::named;
use event::{Cpu, Duration};

use crate::buckets::{Histogram, Linear};
use crate::kind::Kind;
use crate::late::Late;
use crate::task::Task;

/// Whose samples are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Scope {
    /// Real-time and deadline tasks.
    RealTime = 0,
    /// The tasks that were named.
    Named = 1,
    /// Every task.
    All = 2,
}

impl Scope {
    /// All of them, by number.
    pub const ALL: [Scope; 3] = [Scope::RealTime, Scope::Named, Scope::All];

    /// As files and labels have it.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::RealTime => "realtime",
            Scope::Named => "named",
            Scope::All => "all",
        }
    }

    fn has(self, group: u8) -> bool {
        match self {
            Scope::RealTime => group & GROUP_REAL_TIME != 0,
            Scope::Named => group & GROUP_NAMED != 0,
            Scope::All => true,
        }
    }
}

/// A process that counted, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The machine's name.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// What tells this boot from others.
    pub boot_id: String,
    /// The version of rtscope.
    pub program: String,
    /// What was asked for: an object of JSON with `task` (a list, as they were typed), `all`,
    /// `return` and `linear`; of older programs any text.
    pub settings: String,
}

impl Run {
    /// The tasks that were counted apart; none when nobody knows.
    pub fn tasks(&self) -> Option<Vec<String>> {
        let settings: serde_json::Value = serde_json::from_str(&self.settings).ok()?;
        let tasks = settings["task"].as_array()?.iter();
        tasks.map(|task| task.as_str().map(str::to_owned)).collect()
    }

    /// Whether every task was counted.
    pub fn all(&self) -> bool {
        let settings = serde_json::from_str::<serde_json::Value>(&self.settings);
        settings.is_ok_and(|settings| settings["all"] == true)
    }
}

/// When an interval was, and what is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its begin on the wall clock, in nanoseconds.
    pub begin_ns: i64,
    /// Its end on the wall clock; where somebody set that clock, not `elapsed` later.
    pub end_ns: i64,
    /// Its length on a clock that nobody sets.
    pub elapsed: Duration,
    /// Samples that were not counted: their task was not known yet, or their clocks disagreed, or
    /// the kernel left the event out.
    pub lost: u64,
    /// Samples that no program saw and that are counted by the kernel's accounts.
    pub hidden: u64,
    /// Intervals that trackers did not count.
    pub lost_tracked: u64,
    /// Longest samples of which only the length is known.
    pub worst_missed: u64,
    /// Closed intervals before this one that the store could not take.
    pub unsaved: u64,
    /// What counting cost, on all CPUs: the programs in the kernel and this process.
    pub cost: Duration,
}

impl Head {
    /// Whether it goes over this instant of the wall clock.
    pub fn has(&self, at_ns: i64) -> bool {
        (self.begin_ns..self.end_ns).contains(&at_ns)
    }
}

/// A phase on one CPU, of one scope; or what a tracker measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Whose.
    pub scope: Scope,
    /// Which phase, or what a tracker measures.
    pub phase: Kind,
    /// Where.
    pub cpu: Cpu,
    /// All samples together.
    pub sum: Duration,
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// All of them.
    pub histogram: Histogram,
}

/// The longest sample of a phase, over all CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// Whose.
    pub scope: Scope,
    /// Which phase, or what a tracker measures.
    pub phase: Kind,
    /// Where.
    pub cpu: Cpu,
    /// How long it was.
    pub value: Duration,
    /// When it ended, on the wall clock.
    pub at_ns: i64,
    /// The timer's lateness; none when no timer woke the task.
    pub timer: Option<Duration>,
    /// Wake-up, switch and return to user space, as far as the sample goes.
    pub parts: [Duration; 3],
    /// Who was late.
    pub victim: Option<Task>,
    /// Who had the CPU at the time, which proves nothing by itself; tid 0 is the idle task.
    pub culprit: Option<Task>,
    /// The system call in which the victim waited.
    pub call: Option<String>,
    /// The function that was interrupted.
    pub function: Option<String>,
    /// What it was.
    pub mode: Mode,
    /// The culprit's functions in the kernel, innermost first.
    pub stack: Vec<String>,
    /// What a tracker's interval was of: a disk, a function, a softirq.
    pub key: Option<String>,
}

/// A closed interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// When, and what is missing.
    pub head: Head,
    /// What was counted, by scope, phase and CPU.
    pub series: Vec<Series>,
    /// The longest of each scope and phase.
    pub worst: Vec<Worst>,
    /// OSADL's form of real-time tasks, by phase and CPU; empty when it was not asked for.
    pub linear: Vec<(Phase, Cpu, Linear)>,
    /// Activations over the limit, the longest of them; empty when nobody set one.
    pub late: Vec<Late>,
}

/// Who knows what numbers and addresses are called.
pub trait Names {
    /// The function at an address, with the offset.
    fn function(&self, address: u64) -> Option<String>;
    /// A system call.
    fn call(&self, number: u32) -> Option<String>;
}

impl Interval {
    /// Gives what was counted its names. `scopes` are those that are kept; `wall_ns` is what the
    /// wall clock is ahead of CLOCK_MONOTONIC.
    pub fn of(
        head: Head,
        counted: &[PhaseSeries],
        scopes: &[Scope],
        wall_ns: i64,
        names: &dyn Names,
    ) -> Interval {
        let mut interval = Interval {
            head,
            ..Interval::default()
        };
        for scope in scopes {
            for phase in Phase::ALL {
                let of_phase = counted
                    .iter()
                    .filter(|series| series.phase == phase as u8 && scope.has(series.group));
                let of_phase: Vec<_> = of_phase.collect();
                interval.series.extend(by_cpu(*scope, phase, &of_phase));
                let worst = of_phase.iter().filter_map(|series| series.worst.as_ref());
                if let Some(worst) = worst.max_by_key(|worst| worst.value) {
                    let worst = name_worst(*scope, phase, worst, wall_ns, names);
                    interval.worst.push(worst);
                }
            }
        }
        interval
    }
}

/// The groups of one scope, added up by CPU.
fn by_cpu(scope: Scope, phase: Phase, counted: &[&PhaseSeries]) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for one in counted {
        let histogram = Histogram(one.buckets.clone());
        match all.iter_mut().find(|series| series.cpu == one.cpu) {
            Some(series) => {
                series.sum += one.sum;
                series.min = series.min.min(one.min);
                series.max = series.max.max(one.max);
                series.histogram.add(&histogram);
            }
            None => all.push(Series {
                scope,
                phase: phase.into(),
                cpu: one.cpu,
                sum: one.sum,
                min: one.min,
                max: one.max,
                histogram,
            }),
        }
    }
    all.sort_by_key(|series| series.cpu.0);
    all
}

fn name_worst(
    scope: Scope,
    phase: Phase,
    worst: &PhaseWorst,
    wall_ns: i64,
    names: &dyn Names,
) -> Worst {
    let name = |address| {
        names
            .function(address)
            .unwrap_or_else(|| format!("{address:#x}"))
    };
    Worst {
        scope,
        phase: phase.into(),
        cpu: worst.cpu,
        value: worst.value,
        at_ns: worst.at.as_ns().saturating_add(wall_ns),
        timer: worst.timer,
        parts: worst.parts,
        victim: worst.victim.as_ref().map(Task::from),
        culprit: worst.culprit.as_ref().map(Task::from),
        call: worst.call.and_then(|number| names.call(number)),
        function: worst
            .instruction
            .filter(|_| worst.mode != Mode::User)
            .map(name),
        mode: worst.mode,
        stack: named(&worst.stack, |at| names.function(at).unwrap_or_default())
            .into_iter()
            .map(|frame| match frame.symbol.is_empty() {
                true => format!("{:#x}", frame.address),
                false => frame.symbol,
            })
            .collect(),
        key: None,
    }
}

#[cfg(test)]
mod tests {
    use event::evidence::{TaskRef, unnamed};
    use event::{Instant, Prio, Tid};

    use super::*;

    struct Nobody;

    impl Names for Nobody {
        fn function(&self, address: u64) -> Option<String> {
            let known = ["rtscope_program+0x1", "bpf_trace_run4+0x2", "f+0x1"];
            Some((*known.get(address as usize)?).to_owned())
        }
        fn call(&self, number: u32) -> Option<String> {
            (number == 230).then(|| "clock_nanosleep".to_owned())
        }
    }

    fn counted(cpu: u32, group: u8, bucket: u16) -> PhaseSeries {
        let value = Duration::from_ns(i64::from(bucket));
        PhaseSeries {
            cpu: Cpu(cpu),
            group,
            phase: Phase::Switch as u8,
            sum: value,
            min: value,
            max: value,
            buckets: vec![(bucket, 1)],
            worst: Some(PhaseWorst {
                value,
                at: Instant::from_ns(5),
                timer: None,
                parts: [Duration::ZERO; 3],
                victim: Some(TaskRef {
                    tid: Tid(9),
                    comm: "v".to_owned(),
                    prio: Prio::from_rt(50),
                }),
                culprit: None,
                cpu: Cpu(cpu),
                call: Some(230),
                mode: Mode::Kernel,
                instruction: Some(2),
                stack: unnamed(&[0, 1, 2, 8]),
            }),
        }
    }

    #[test]
    fn each_sample_is_in_the_scopes_of_its_task() {
        let counted = [
            counted(1, 0, 3),
            counted(0, 1, 4),
            counted(0, 3, 5),
            counted(0, 2, 9),
        ];
        let of = |scopes: &[Scope]| Interval::of(Head::default(), &counted, scopes, 100, &Nobody);
        let check = |scope: Scope, expect: &[(u32, u64, i64)], worst_ns: i64| {
            let interval = of(&[scope]);
            let series = interval.series.iter();
            let found: Vec<_> = series
                .map(|one| (one.cpu.0, one.histogram.samples(), one.sum.as_ns()))
                .collect();
            assert_eq!(found, expect, "{}", scope.name());
            let worst = &interval.worst[0];
            assert_eq!((worst.value.as_ns(), worst.at_ns), (worst_ns, 105));
            assert_eq!(worst.call.as_deref(), Some("clock_nanosleep"));
            assert_eq!(worst.function.as_deref(), Some("f+0x1"));
            // Not the program that took it.
            assert_eq!(worst.stack, ["f+0x1", "0x8"]);
        };
        check(Scope::RealTime, &[(0, 2, 9)], 5);
        check(Scope::Named, &[(0, 2, 14)], 9);
        check(Scope::All, &[(0, 3, 18), (1, 1, 3)], 9);
        assert_eq!(of(&Scope::ALL).worst.len(), 3);
    }
}
