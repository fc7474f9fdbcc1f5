//! How often equal recordings seem changed, and how often a true change is found: recordings of
//! machines whose unevenness is known, because it is drawn here.
//!
//! `RTSCOPE_RUNS=1000` compares a thousand pairs of sides each; the figures are in `docs/check.md`.

use event::evidence::TaskRef;
use event::{Cpu, Duration, Instant, Prio, Tid, TimeRange};

use super::{CauseChange, Comparison, compare};
use crate::finding::{Basis, Diagnosis, Grade, Group, LateActivation, Ledger, Verdict};

/// Two tasks of one loop, which are late together: how long each takes beside the other.
const TASKS: [f64; 2] = [1.0, 1.25];
/// Cycles of a recording.
const CYCLES: usize = 300;
const CYCLE_US: i64 = 50_000;
/// As many are listed.
const WORST: usize = 100;
/// Pairs of sides where nothing else is asked for.
const PAIRS: u32 = 8;

/// A machine, by how much its lengths are apart: logarithms.
struct Machine {
    /// One recording from another one.
    recordings: f64,
    /// What drifts in the course of a recording.
    drift: f64,
    /// After so many cycles a drift is forgotten.
    memory: f64,
    /// One cycle from the next.
    cycles: f64,
    /// How many bursts a recording has, about how many cycles each, and by how much longer these
    /// take.
    bursts: (u64, u64, f64),
}

const STEADY: Machine = Machine {
    recordings: 0.02,
    drift: 0.05,
    memory: 15.0,
    cycles: 0.1,
    bursts: (2, 3, 1.5),
};
const UNEVEN: Machine = Machine {
    recordings: 0.05,
    drift: 0.15,
    memory: 30.0,
    cycles: 0.3,
    bursts: (8, 9, 2.5),
};
const ROUGH: Machine = Machine {
    recordings: 0.1,
    drift: 0.3,
    memory: 60.0,
    cycles: 0.5,
    bursts: (8, 24, 3.0),
};

/// What was done to the machine: everything takes so many times as long, and its bursts too.
#[derive(Clone, Copy)]
struct Times {
    all: f64,
    bursts: f64,
}

const NOTHING: Times = Times {
    all: 1.0,
    bursts: 1.0,
};

/// Numbers that look drawn, the same at each run.
struct Drawn(u64);

impl Drawn {
    fn share(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of the normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }

    /// How long the cycles of a recording take, before each task has done its own work.
    fn cycles_us(&mut self, machine: &Machine, times: Times) -> Vec<i64> {
        let level = 1_000f64.ln() + times.all.ln() + machine.recordings * self.normal();
        let kept = (-1.0 / machine.memory).exp();
        let mut drift = machine.drift * self.normal();
        let mut logs = Vec::new();
        for _ in 0..CYCLES {
            let fresh = (1.0 - kept * kept).sqrt() * machine.drift;
            drift = kept * drift + fresh * self.normal();
            logs.push(level + drift + machine.cycles * self.normal());
        }
        let (most, length, factor) = machine.bursts;
        for _ in 0..(most as f64 * self.share() * 2.0) as u64 {
            let begin = (self.share() * CYCLES as f64) as usize;
            let length = 1 + (-(length as f64) * (1.0 - self.share()).ln()) as usize;
            let longer = (factor * times.bursts).ln() * (0.5 + self.share() / 2.0);
            logs.iter_mut()
                .skip(begin)
                .take(length)
                .for_each(|log| *log += longer);
        }
        logs.into_iter()
            .map(|log| log.exp().min(20_000.0) as i64)
            .collect()
    }

    /// What a diagnosis makes of it, where each of the longest has the cause that bursts have, or
    /// another one.
    fn recording(&mut self, machine: &Machine, times: Times) -> Diagnosis {
        let mut basis = Basis {
            tasks_named: true,
            judged_in: Some(TimeRange {
                begin: Instant::from_ns(0),
                end: Instant::from_ns(CYCLES as i64 * CYCLE_US * 1_000),
            }),
            ..Basis::default()
        };
        let mut activations = Vec::new();
        for (turn, us) in (0..).zip(self.cycles_us(machine, times)) {
            for task in TASKS {
                let latency = Duration::from_us((us as f64 * task) as i64);
                let end = Instant::from_ns(turn * CYCLE_US * 1_000) + latency;
                basis.lengths.add(end, latency);
                basis.activations += 1;
                activations.push(late(end, latency));
            }
        }
        activations.sort_by_key(|late| -late.latency().as_ns());
        basis.left_out = (activations.len() - WORST) as u64;
        activations.truncate(WORST);
        let (even, odd) = (0..WORST).partition(|place| self_caused(&activations[*place]));
        let groups = [("hog", even), ("own work", odd)].map(|(name, members)| group(name, members));
        Diagnosis {
            activations,
            groups: groups.into(),
            warnings: Vec::new(),
            basis,
        }
    }
}

/// Whether a late one is of the first of two causes: one in four is of the other.
fn self_caused(late: &LateActivation) -> bool {
    late.end.as_ns() / (CYCLE_US * 1_000) % 4 > 0
}

fn late(end: Instant, latency: Duration) -> LateActivation {
    LateActivation {
        task: TaskRef {
            tid: Tid(7),
            prio: Prio(40),
            comm: "work".into(),
        },
        origin: end - latency,
        end,
        cpu: Cpu(0),
        steps: Vec::new(),
        steps_left_out: 0,
        hit: None,
        checks: Vec::new(),
        ledger: Ledger {
            terms: Vec::new(),
            total: latency,
            grade: Grade::Complete,
        },
        page_faults: 0,
        page_faults_max: Duration::ZERO,
        free_meanwhile: Vec::new(),
        stolen_max: Duration::ZERO,
        slept_before: None,
        unseen_max: Duration::ZERO,
    }
}

fn group(name: &str, members: Vec<usize>) -> Group {
    Group {
        signature: name.to_owned(),
        members,
        worst: Duration::ZERO,
        verdict: Verdict {
            sentence: String::new(),
            culprits: Vec::new(),
            conclusive: true,
            range: TimeRange::ALL,
            stacks: Vec::new(),
            mutexes: Vec::new(),
            excluded: Vec::new(),
            advice: Vec::new(),
            unadvised: Vec::new(),
        },
    }
}

/// In how many comparisons of so many recordings on each side something changed, and something got
/// worse.
fn compared(seed: u64, machine: &Machine, recordings: usize, after: Times) -> (u32, u32, u32) {
    let mut drawn = Drawn(seed);
    let pairs = testkit::runs(PAIRS);
    let (mut changed, mut worse) = (0, 0);
    for _ in 0..pairs {
        let mut side = |times| -> Vec<Diagnosis> {
            (0..recordings)
                .map(|_| drawn.recording(machine, times))
                .collect()
        };
        let comparison = compare(&side(NOTHING), &side(after));
        changed += u32::from(is_changed(&comparison));
        worse += u32::from(comparison.is_worse());
    }
    (changed, worse, pairs)
}

fn is_changed(comparison: &Comparison) -> bool {
    let shares = comparison.whole.iter().map(|share| share.change);
    let causes = comparison.causes.iter().map(|cause| cause.change);
    shares
        .chain(causes)
        .any(|change| change != CauseChange::NotResolved)
}

/// What is asked of so few pairs is less than what holds of many.
#[test]
fn equal_recordings_seem_changed_once_in_thirty_at_most() {
    let cases = [(&STEADY, 1), (&UNEVEN, 1), (&UNEVEN, 3), (&ROUGH, 2)];
    for ((machine, recordings), seed) in cases.into_iter().zip(1..) {
        let (changed, _, pairs) = compared(seed, machine, recordings, NOTHING);
        // Of a few one may be by chance.
        assert!(changed <= pairs / 30 + 1, "{changed} of {pairs}");
    }
}

#[test]
fn a_change_is_found_the_surer_the_larger_it_is_and_the_more_recordings_there_are() {
    let all = |all| Times { all, bursts: 1.0 };
    // In so many of a hundred pairs at least.
    let cases = [
        (&STEADY, 1, all(2.0), 90),
        (&STEADY, 3, all(1.5), 90),
        (&UNEVEN, 2, all(2.0), 60),
        (&UNEVEN, 3, all(2.0), 90),
    ];
    for ((machine, recordings, times, least), seed) in cases.into_iter().zip(31..) {
        let (_, found, pairs) = compared(seed, machine, recordings, times);
        assert!(
            found * 100 >= pairs * least,
            "{recordings}: {found} of {pairs}"
        );
    }
}
