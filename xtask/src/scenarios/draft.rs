//! A scenario under way: what kinds of faults are made of.

use super::language::{Accuse, Scenario, Task, VICTIM};
use super::place::Place;
use super::random::Random;

/// Names that say something else than the truth, or look like words of a command line.
const NAMES: &[&str] = &[
    "kworker/u9:1",
    "migration/7",
    "irq/36-x",
    "rcu_preempt",
    "ksoftirqd/0",
    "rtscope",
    "lab-victim2",
    "swapper/0",
    "123",
    "rt",
    "[kthreadd]",
    "ctl*",
    "systemd",
    "worker-3",
    "hog",
    "a.out",
];
/// Before the first fault the watch has seen a few activations in time.
const FIRST_AT_US: (u64, u64) = (60_000, 90_000);
/// Beyond the last one, for what was missed to be made up for.
const AFTER_US: u64 = 60_000;
/// Priorities of victims; culprits have more, or less.
const PRIORITY: (u64, u64) = (30, 60);

/// A scenario under way.
pub struct Draw {
    /// What is random in it.
    pub random: Random,
    /// Where it is to be played.
    pub place: Place,
    /// What there is so far.
    pub scenario: Scenario,
    /// The victim's real-time priority.
    pub priority: u64,
    names: Vec<&'static str>,
}

impl Draw {
    /// An empty one of this name and kind of fault.
    pub fn new(mut random: Random, place: Place, name: &str, fault: &str) -> Draw {
        let priority = random.within(PRIORITY.0, PRIORITY.1);
        Draw {
            random,
            place,
            scenario: Scenario {
                name: name.to_owned(),
                fault: fault.to_owned(),
                over_us: place.over_us,
                ..Scenario::default()
            },
            priority,
            names: NAMES.to_vec(),
        }
    }

    /// How long a fault takes, in microseconds.
    pub fn fault_us(&mut self) -> u64 {
        let (least, most) = self.place.times;
        self.random
            .within(self.place.over_us * least, self.place.over_us * most)
    }

    /// When a fault of this length begins; the scenario lasts until it is over and made up for.
    pub fn at_us(&mut self, length_us: u64) -> u64 {
        let at_us = self.random.within(FIRST_AT_US.0, FIRST_AT_US.1);
        self.lasts_until_us(at_us + length_us);
        at_us
    }

    /// Makes the scenario long enough for what ends then.
    pub fn lasts_until_us(&mut self, end_us: u64) {
        let end_us = end_us + AFTER_US + 2_000 * self.place.period_ms;
        self.scenario.length_ms = self.scenario.length_ms.max(end_us.div_ceil(1000));
    }

    /// A name that no other task of the scenario has.
    pub fn name(&mut self) -> &'static str {
        let name = self.random.of(&self.names);
        self.names.retain(|other| *other != name);
        name
    }

    /// Nobody has a name that begins so.
    pub fn without(&mut self, begin: &str) {
        self.names.retain(|name| !name.starts_with(begin));
    }

    /// The policy of a task that goes before the victim by so much at least.
    pub fn above(&mut self, by: u64) -> String {
        let policy = self.random.of(&["fifo", "rr"]);
        let priority = self.priority + self.random.within(by, by + 20);
        format!("{policy}:{priority}")
    }

    /// The victim's policy.
    pub fn own(&mut self) -> String {
        let policy = self.random.of(&["fifo", "fifo", "rr"]);
        format!("{policy}:{}", self.priority)
    }

    /// How the victim waits for its next activation.
    pub fn every(&mut self) -> String {
        let kinds = [
            "abs", "abs", "skip", "rel", "timerfd", "futex", "poll", "epoll", "signal",
        ];
        let kind = self.random.of(&kinds);
        self.every_by(kind)
    }

    /// The same by this kind of sleep.
    pub fn every_by(&mut self, kind: &str) -> String {
        let period_ms = self.place.period_ms * self.random.of(&[1, 1, 2]);
        format!("every {kind} {period_ms}ms")
    }

    /// A periodic victim on CPU 0 that is always in time by itself.
    pub fn victim(&mut self) {
        let every = self.every();
        let policy = self.own();
        let work = self.work();
        self.victim_of(&policy, &["loop", &every, &work]);
    }

    /// What it does in each activation: far less than what is late.
    pub fn work(&mut self) -> String {
        format!("work {}us", self.random.within(20, self.place.over_us / 10))
    }

    /// A victim on CPU 0 with these steps.
    pub fn victim_of(&mut self, policy: &str, steps: &[&str]) {
        let is_process = self.random.percent(30);
        self.task(
            "victim",
            VICTIM,
            policy,
            &[&["cpu=0"], flag(is_process)].concat(),
            steps,
        );
    }

    /// Adds a task.
    pub fn task(&mut self, role: &str, name: &str, policy: &str, options: &[&str], steps: &[&str]) {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        self.scenario.tasks.push(Task {
            role: role.to_owned(),
            name: name.to_owned(),
            policy: policy.to_owned(),
            options: owned(options),
            steps: owned(steps),
        });
    }

    /// Adds a culprit on CPU 0, a thread or a process, and says that its name may be accused of
    /// having run.
    pub fn culprit(&mut self, policy: &str, steps: &[&str]) -> &'static str {
        let name = self.name();
        let is_process = self.random.percent(40);
        self.task(
            "culprit",
            name,
            policy,
            &[&["cpu=0"], flag(is_process)].concat(),
            steps,
        );
        self.accuse("run_queue_wait", name);
        name
    }

    /// What a verdict may say.
    pub fn accuse(&mut self, kinds: &str, names: &str) {
        let list = |words: &str, none: &str| match words == none {
            true => Vec::new(),
            false => words.split('|').map(str::to_owned).collect(),
        };
        self.scenario.accuse.push(Accuse {
            kinds: list(kinds, "*"),
            names: list(names, "-"),
        });
    }

    /// The lateness may stay unseen, for this reason.
    pub fn silence(&mut self, why: &str) {
        self.scenario.silence = Some(why.to_owned());
    }

    /// A mutex, a channel or a group.
    pub fn thing(&mut self, line: &str) {
        self.scenario.things.push(line.to_owned());
    }

    /// Busy tasks that must not be named: beside a real-time victim.
    pub fn innocents(&mut self) {
        for _ in 0..self.random.within(1, 3) {
            let name = self.name();
            let cpu = format!("cpu={}", self.random.within(0, self.place.cpus - 1));
            let work_us = self.random.within(200, self.place.over_us);
            let work = format!("work {work_us}us");
            let sleep = format!("sleep {}us", work_us * 2 + 1000);
            match self.random.within(0, 3) {
                0 | 1 => {
                    let policy = format!("other:{}", self.random.of(&["0", "-10", "10"]));
                    self.task("innocent", name, &policy, &[&cpu], &["loop", &work, &sleep]);
                }
                // Short: some kernels serve timers by a thread of priority 1, which it goes before.
                2 => {
                    let policy = format!("fifo:{}", self.random.within(1, 10));
                    let work = format!("work {}us", self.place.over_us / 10);
                    self.task("innocent", name, &policy, &[&cpu], &["loop", &work, &sleep]);
                }
                _ => self.short_innocent(),
            }
        }
    }

    /// One that goes before the victim, and hardly ever runs.
    pub fn short_innocent(&mut self) {
        let name = self.name();
        let short = ["loop", "burn 40us", "sleep 7ms"];
        self.task("innocent", name, "fifo:85", &["cpu=0"], &short);
    }

    /// The same beside a fair victim: where it does not run, or hardly ever.
    pub fn innocents_elsewhere(&mut self) {
        let name = self.name();
        let cpu = format!("cpu={}", self.place.cpus - 1);
        let work = match self.place.cpus {
            1 => "work 50us",
            _ => "work 900us",
        };
        self.task(
            "innocent",
            name,
            "other:0",
            &[&cpu],
            &["loop", work, "sleep 6ms"],
        );
    }
}

fn flag(is_process: bool) -> &'static [&'static str] {
    match is_process {
        true => &["process"],
        false => &[],
    }
}
