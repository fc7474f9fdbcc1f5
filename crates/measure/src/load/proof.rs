//! Whether a load was one: from what it had done at each look to a state.

use std::collections::{BTreeSet, VecDeque};

use event::{Cpu, Duration};

use super::Load;
use super::confined::Confined;
use super::counters::Row;

/// A load that takes less than this part of one CPU stands still, over so long.
const STILL_SHARE_MAX: f64 = 0.01;
const STILL: Duration = Duration::from_ms(2_000);
/// One of several side by side does when it completes nothing for so long, and for so many times as
/// long as it takes in the mean.
const SLOT_STILL: Duration = Duration::from_ms(5_000);
const SLOT_STILL_MEANS: f64 = 5.0;

/// What a load had done at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Since the measurement began.
    pub at: Duration,
    /// The counters of each slot.
    pub(super) slots: Vec<Row>,
    /// CPU time of all its processes.
    pub cpu_time: Duration,
}

impl Look {
    /// Its counters, in the order of [`Load::counters`].
    pub fn counters(&self, load: Load) -> Vec<u64> {
        let sum = |at: usize| self.slots.iter().map(|row| row[at]).sum();
        (0..load.counters().len()).map(sum).collect()
    }
}

/// Whether a load did what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// All the time.
    Ran,
    /// It was not there: why, and what installs it.
    Missing(String),
    /// It ended before its time: why.
    Died(String),
    /// It stood still: when, for how long.
    Idle(String),
}

impl State {
    /// As it is written.
    pub fn name(&self) -> &'static str {
        match self {
            State::Ran => "ran",
            State::Missing(_) => "missing",
            State::Died(_) => "died",
            State::Idle(_) => "idle",
        }
    }

    /// Why it was none; nothing where it was one.
    pub fn why(&self) -> Option<&str> {
        match self {
            State::Ran => None,
            State::Missing(why) | State::Died(why) | State::Idle(why) => Some(why),
        }
    }
}

/// What is known of a load of which a run was to be under.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// Which one.
    pub load: Load,
    /// Whether it was one.
    pub state: State,
    /// What it had done, in order of time.
    pub looks: Vec<Look>,
}

impl Proof {
    /// It ran by itself, but all loads together were none.
    pub fn starve(&mut self, why: &str) {
        if self.state == State::Ran {
            self.state = State::Idle(why.to_owned());
        }
    }

    /// Of a load that did not start.
    pub fn missing(load: Load, why: String) -> Proof {
        Proof {
            load,
            state: State::Missing(why),
            looks: Vec::new(),
        }
    }
}

/// What is known of a load that runs. Looks are many where runs are long: few of them are kept.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    load: Load,
    /// From one look that is kept to the next.
    stretch: Duration,
    kept: Vec<Look>,
    /// The last ones, with the CPU time then, no more than [`STILL`] needs.
    recent: VecDeque<(Duration, Duration)>,
    slots: Vec<Pause>,
    last: Option<Look>,
    still: Option<String>,
    confined: Confined,
}

/// How long a slot completed nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Pause {
    since: Duration,
    done: u64,
    longest: (Duration, Duration),
}

impl Progress {
    pub(super) fn new(load: Load, stretch: Duration) -> Progress {
        Progress {
            load,
            stretch,
            kept: Vec::new(),
            recent: VecDeque::new(),
            slots: Vec::new(),
            last: None,
            still: None,
            confined: Confined::default(),
        }
    }

    /// Takes a look, later than all before.
    pub(super) fn add(&mut self, look: Look) {
        self.look_at_cpu_time(&look);
        let first = Pause {
            since: look.at,
            ..Pause::default()
        };
        self.slots.resize(look.slots.len(), first);
        for (pause, row) in self.slots.iter_mut().zip(&look.slots) {
            if row[0] != pause.done {
                (pause.done, pause.since) = (row[0], look.at);
            } else if look.at - pause.since > pause.longest.1 - pause.longest.0 {
                pause.longest = (pause.since, look.at);
            }
        }
        let due = |kept: &Look| look.at - kept.at >= self.stretch;
        if self.kept.last().is_none_or(due) {
            self.kept.push(look.clone());
        }
        self.last = Some(look);
    }

    /// Notes on which CPUs it may run.
    pub(super) fn confine(&mut self, at: Duration, cpus: &BTreeSet<Cpu>) {
        self.confined.look(at, cpus);
    }

    /// CPU time at the last look.
    pub(super) fn cpu_time(&self) -> Duration {
        let last = self.last.as_ref();
        last.map(|look| look.cpu_time).unwrap_or_default()
    }

    /// The CPUs on which it could run at any time.
    pub(super) fn cpus(&self) -> impl Iterator<Item = &Cpu> {
        self.confined.ever()
    }

    fn look_at_cpu_time(&mut self, look: &Look) {
        self.recent.push_back((look.at, look.cpu_time));
        let long_ago = |&&(at, _): &&(Duration, Duration)| look.at - at >= STILL;
        while self.recent.iter().filter(long_ago).count() > 1 {
            self.recent.pop_front();
        }
        let Some(&(from, before)) = self.recent.front().filter(long_ago) else {
            return;
        };
        let (span, cpu) = (look.at - from, look.cpu_time - before);
        if (cpu.as_ns() as f64) < span.as_ns() as f64 * STILL_SHARE_MAX && self.still.is_none() {
            let to = look.at;
            self.still = Some(format!(
                "it took {cpu} of CPU time from {from} to {to} of the run"
            ));
        }
    }

    /// The load by all looks at it, and why it ended if it did.
    pub(super) fn judge(mut self, ended: Option<String>) -> Proof {
        let state = match ended {
            Some(why) => Some(State::Died(why)),
            None => self.still().map(State::Idle),
        };
        let last = self.last.take();
        self.kept
            .extend(last.filter(|last| self.kept.last() != Some(last)));
        Proof {
            load: self.load,
            state: state.unwrap_or(State::Ran),
            looks: self.kept,
        }
    }

    /// When it stood still, if it did.
    fn still(&mut self) -> Option<String> {
        if let Some(why) = self.still.take().or_else(|| self.confined.found()) {
            return Some(why);
        }
        let (first, last) = self.kept.first().zip(self.last.as_ref())?;
        let done = self.load.counters()[0];
        let counts = self.load.counters().iter().zip(last.counters(self.load));
        let nothing = counts.skip(1).find(|(_, count)| *count == 0);
        if let Some((what, _)) = nothing.filter(|_| last.slots.iter().any(|row| row[0] > 0)) {
            return Some(format!("it completed none of its {what} in {}", last.at));
        }
        // The others are the measure of one that stood still.
        let all: u64 = self.slots.iter().map(|pause| pause.done).sum();
        let run_ns = (last.at - first.at).as_ns() as f64 * self.slots.len() as f64;
        let mean_ns = run_ns / all.max(1) as f64;
        self.slots.iter().enumerate().find_map(|(slot, pause)| {
            let which = which(slot, self.slots.len());
            if pause.done == 0 {
                return Some(format!(
                    "{which} completed none of its {done} in {}",
                    last.at
                ));
            }
            let (from, to) = pause.longest;
            let limit_ns = (mean_ns * SLOT_STILL_MEANS).max(SLOT_STILL.as_ns() as f64);
            ((to - from).as_ns() as f64 > limit_ns).then(|| {
                format!("{which} completed none of its {done} from {from} to {to} of the run")
            })
        })
    }
}

fn which(slot: usize, count: usize) -> String {
    match count {
        1 => "it".to_owned(),
        count => format!("number {} of {count}", slot + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_of_which_a_part_completed_nothing_stood_still() {
        let check = |vm_ops: u64, expect: Option<&str>| {
            let mut progress = Progress::new(Load::StressNg, Duration::from_ms(500));
            for at in 0u64..4 {
                progress.add(Look {
                    at: Duration::from_ms(at.cast_signed() * 500),
                    slots: vec![[at, at * 160, at * vm_ops, at * 9, at * 7, 0, 0, 0]],
                    cpu_time: Duration::from_ms(at.cast_signed() * 400),
                });
            }
            let state = progress.judge(None).state;
            assert_eq!(state.why(), expect);
        };
        check(1, None);
        check(0, Some("it completed none of its vm_ops in 1.500 s"));
    }

    /// Looks, half a second apart: what each slot completed in all, and the CPU time in ms.
    fn looks(slots: &[&[u64]], cpu_ms: &[i64]) -> Vec<Look> {
        let look = |(at, cpu): (usize, &i64)| Look {
            at: Duration::from_ms(at as i64 * 500),
            slots: slots
                .iter()
                .map(|done| done[at.min(done.len() - 1)])
                .map(|done| [done, done * 800, 0, 0, 0, 0, 0, 0])
                .collect(),
            cpu_time: Duration::from_ms(*cpu),
        };
        cpu_ms.iter().enumerate().map(look).collect()
    }

    #[test]
    fn a_load_stands_still_without_cpu_time_or_without_completing_anything() {
        let check = |slots: &[&[u64]], cpu_ms: &[i64], expect: Option<&str>| {
            let mut progress = Progress::new(Load::Compile, Duration::from_ms(500));
            looks(slots, cpu_ms)
                .into_iter()
                .for_each(|look| progress.add(look));
            let proof = progress.judge(None);
            let why = proof.state.why().map(str::to_owned);
            let as_expected = match (expect, &why) {
                (None, None) => true,
                (Some(expect), Some(why)) => why.contains(expect),
                _ => false,
            };
            assert!(as_expected, "{slots:?} {cpu_ms:?}: {why:?}");
        };
        let steady: Vec<i64> = (0..30).map(|at| at * 400).collect();
        let counting: Vec<u64> = (0..30).collect();
        check(&[&counting], &steady, None);
        check(&[&[0, 3, 6]], &[0, 400, 800], None);
        check(
            &[&[0]],
            &steady,
            Some("it completed none of its files in 14.5"),
        );
        // All of it was stopped from 0.5 s on.
        let stopped = [0, 400, 410, 410, 410, 410, 410];
        check(
            &[&[0, 2, 3]],
            &stopped,
            Some("it took 10.000 ms of CPU time"),
        );
        // One of two was.
        let one = [&counting[..], &[0, 1, 2]];
        check(
            &one,
            &steady,
            Some("number 2 of 2 completed none of its files from 1.000 s"),
        );
        // A slow one is slow, not still.
        let slow: Vec<u64> = (0..30).map(|at| at / 8).collect();
        check(&[&slow], &steady, None);
        // Shorter than that nothing is said.
        check(&[&[0, 2, 2]], &[0, 400, 400, 400], None);
    }

    #[test]
    fn a_load_that_ended_died_whatever_it_had_done() {
        let progress = Progress::new(Load::Hackbench, Duration::from_ms(500));
        let found = progress.judge(Some("it was killed".to_owned()));
        assert_eq!(
            (found.state.name(), found.state.why()),
            ("died", Some("it was killed"))
        );
    }

    #[test]
    fn of_many_looks_one_a_stretch_is_kept_and_the_last() {
        let mut progress = Progress::new(Load::Compile, Duration::from_ms(2_000));
        let counting: Vec<u64> = (1..12).collect();
        let cpu_ms: Vec<i64> = (0..10).map(|at| at * 400).collect();
        looks(&[&counting], &cpu_ms)
            .into_iter()
            .for_each(|look| progress.add(look));
        let found = progress.judge(None);
        let at_ms: Vec<i64> = found
            .looks
            .iter()
            .map(|look| look.at.as_ns() / 1_000_000)
            .collect();
        assert_eq!(at_ms, [0, 2_000, 4_000, 4_500]);
    }
}
