//! What a watch is asked, and its form in the loaded programs' read-only data.

use abi::raw;
use event::evidence::{EndKind, slack_floor};
use event::{Cpu, Duration, Prio, Result, TaskPattern};

use crate::action::Action;
use crate::fill::{fill, invalid};
use crate::members::Members;
use crate::pattern;

/// The tasks whose latency is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Targets {
    /// Tasks that one of these means; at most eight of names, eight of priorities, 64 threads, 64
    /// processes.
    Tasks(Vec<TaskPattern>),
    /// Every real-time and deadline task, without the kernel threads that only pass work on and
    /// without our own process.
    RealTime,
    /// Every task.
    #[default]
    All,
}

/// Tasks that nobody asks for, and that may be what those wait for who are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beside {
    /// None of them is judged.
    #[default]
    Nobody,
    /// Real-time tasks of other processes that real-time tasks which are asked for wake.
    Woken,
    /// Every real-time task, those of the command, and threads of the same processes that work with
    /// those that are asked for.
    All,
}

/// The question of a watch.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// The tasks whose latency is measured.
    pub targets: Targets,
    /// With [`Targets::Tasks`]: these too.
    pub members: Members,
    /// With [`Targets::Tasks`]: who is judged beside those that are asked for.
    pub beside: Beside,
    /// Only chains that begin on these CPUs.
    pub cpus: Option<Vec<Cpu>>,
    /// Only chains that begin with these interrupts; negative numbers as in
    /// [`event::evidence::irq`]. At most 8.
    pub irqs: Option<Vec<i32>>,
    /// Only chains that pass through this softirq vector.
    pub softirq: Option<u32>,
    /// Only targets of at least this priority.
    pub min_prio: Option<Prio>,
    /// From which latency on a chain is a hit.
    pub threshold: Duration,
    /// What ends a chain.
    pub end: EndKind,
    /// Report a target that still waits after this, see [`crate::Watch::check_waiting`].
    pub waiting_after: Option<Duration>,
    /// Report only chains that are worse than every reported one.
    pub new_worst_only: bool,
    /// Report each chain that is the worst of its task in a time of this length, and no other:
    /// whoever asks for the worst of a moment has it then.
    pub window: Option<Duration>,
    /// At most one hit in this time; the rest is counted.
    pub rate_limit_interval: Duration,
    /// At most so many hits; the rest is counted.
    pub max_hits: Option<u64>,
    /// Collect evidence of late timers and late preemptions from this delay on; zero: none.
    pub late_timer_floor: Duration,
    /// Take the waker's stack at each wake-up of a target: 1.4 µs each where it was measured,
    /// against 0.05 µs without.
    pub waker_stacks: bool,
    /// Tell in short of each late activation that the limits hold back, see [`crate::LateRing`].
    pub notes_late: bool,
    /// Call this in the kernel at each hit.
    pub action: Option<Action>,
    /// Measure each program's own run time.
    pub profile: bool,
}

impl Default for WatchConfig {
    fn default() -> Self {
        WatchConfig {
            targets: Targets::All,
            members: Members::default(),
            beside: Beside::Nobody,
            cpus: None,
            irqs: None,
            softirq: None,
            min_prio: None,
            threshold: Duration::from_ms(1),
            end: EndKind::SwitchIn,
            waiting_after: None,
            new_worst_only: false,
            window: None,
            rate_limit_interval: Duration::from_ms(1000),
            max_hits: None,
            late_timer_floor: Duration::from_us(50),
            waker_stacks: true,
            notes_late: false,
            action: None,
            profile: false,
        }
    }
}

impl WatchConfig {
    /// The configuration as the programs read it.
    ///
    /// # Errors
    /// [`event::ErrorKind::InvalidInput`] for a threshold of zero, an empty or too long list, a CPU
    /// or a softirq that cannot be, a pattern that makes no sense.
    pub(crate) fn to_raw(&self) -> Result<raw::Config> {
        let mut config: raw::Config = raw::zeroed();
        config.threshold_ns = positive("the threshold", self.threshold)?;
        config.rate_limit_ns = self.rate_limit_interval.as_ns_unsigned();
        config.hits_max = self.max_hits.unwrap_or(0);
        if self.max_hits == Some(0) {
            return Err(invalid(
                "the number of hits is zero",
                "0",
                "give at least 1",
            ));
        }
        config.waiting_ns = match self.waiting_after {
            Some(after) => positive("the waiting time", after)?,
            None => 0,
        };
        config.evidence_floor_ns = self.late_timer_floor.as_ns_unsigned();
        config.window_ns = match self.window {
            Some(window) => positive("the window", window)?,
            None => 0,
        };
        config.slack_floor_ns = slack_floor(self.threshold).as_ns_unsigned();
        config.prio_max = self.min_prio.map_or(i32::MAX, |prio| prio.0);
        config.softirq = softirq(self.softirq)?;
        if self.end == EndKind::Waiting {
            let fix = "end at switch_in, user_return or blocked, and set waiting_after";
            return Err(invalid("a chain cannot end by waiting", "waiting", fix));
        }
        config.end_kind = self.end as u8;
        config.new_worst_only = u8::from(self.new_worst_only);
        config.waker_stacks = u8::from(self.waker_stacks);
        config.notes_late = u8::from(self.notes_late);
        config.acts = u8::from(self.action.is_some());
        config.profile = u8::from(self.profile);
        self.fill_cpus(&mut config)?;
        if let Some(irqs) = &self.irqs {
            if irqs.is_empty() {
                return Err(invalid(
                    "no interrupt is named",
                    "none",
                    "name at least one",
                ));
            }
            config.irqs_length = fill("interrupts", irqs, &mut config.irqs)?;
        }
        self.fill_targets(&mut config)?;
        Ok(config)
    }

    fn fill_cpus(&self, config: &mut raw::Config) -> Result<()> {
        let Some(cpus) = &self.cpus else {
            return Ok(());
        };
        config.cpus_filtered = 1;
        if cpus.is_empty() {
            return Err(invalid(
                "the list of CPUs is empty",
                "no CPU",
                "name at least one CPU",
            ));
        }
        for cpu in cpus {
            let word = config.cpus.get_mut(cpu.0 as usize / 64).ok_or_else(|| {
                let fix = format!("give CPUs below {}", raw::CPU_WORDS * 64);
                invalid("no such CPU", &cpu.0.to_string(), &fix)
            })?;
            *word |= 1 << (cpu.0 % 64);
        }
        Ok(())
    }

    fn fill_targets(&self, config: &mut raw::Config) -> Result<()> {
        match &self.targets {
            Targets::All => config.target_kind = raw::TARGET_ALL,
            Targets::RealTime => config.target_kind = raw::TARGET_REAL_TIME,
            Targets::Tasks(tasks) => {
                if tasks.is_empty() && self.members.is_empty() {
                    return Err(invalid("no task is named", "none", event::TASK_FORMS));
                }
                fill_tasks(tasks, config)?;
                self.members.fill(config)?;
                config.beside = match self.beside {
                    Beside::Nobody => raw::BESIDE_NOBODY,
                    Beside::Woken => raw::BESIDE_WOKEN,
                    Beside::All => raw::BESIDE_ALL,
                };
            }
        }
        Ok(())
    }
}

fn fill_tasks(tasks: &[TaskPattern], config: &mut raw::Config) -> Result<()> {
    config.target_kind = raw::TARGET_FLAGGED;
    let (mut tids, mut pids, mut prios, mut names) = (vec![], vec![], vec![], vec![]);
    for task in tasks {
        match task {
            TaskPattern::Name(name) => names.extend(pattern::compile(name, false)),
            TaskPattern::Process(name) => names.extend(pattern::compile(name, true)),
            TaskPattern::Tid(tid) => tids.push(tid.0),
            TaskPattern::Pid(pid) => pids.push(pid.0),
            TaskPattern::Prio(first, last) => prios.push(raw::Prios {
                first: first.0,
                last: last.0,
            }),
            TaskPattern::RealTime => config.real_time = 1,
        }
    }
    config.tids_length = fill("threads", &tids, &mut config.tids)?;
    config.pids_length = fill("processes", &pids, &mut config.pids)?;
    config.prios_length = fill("ranges of priorities", &prios, &mut config.prios)?;
    config.patterns_length = fill("patterns of names", &names, &mut config.patterns)?;
    Ok(())
}

fn positive(name: &str, duration: Duration) -> Result<u64> {
    if duration <= Duration::ZERO {
        let what = format!("{name} must be more than zero");
        return Err(invalid(
            &what,
            &duration.to_string(),
            "give a duration, as in 25ms",
        ));
    }
    Ok(duration.as_ns_unsigned())
}

fn softirq(vector: Option<u32>) -> Result<i32> {
    const VECTORS: u32 = 10;
    match vector {
        None => Ok(-1),
        Some(vector) if vector < VECTORS => Ok(vector as i32),
        Some(vector) => Err(invalid(
            "no such softirq",
            &vector.to_string(),
            "give a vector from 0 to 9",
        )),
    }
}

#[cfg(test)]
mod tests {
    use event::ErrorKind;

    use super::*;

    fn many(text: &str, count: usize) -> Vec<TaskPattern> {
        vec![TaskPattern::parse(text).expect("names tasks"); count]
    }

    #[test]
    fn a_question_without_an_answer_is_refused_before_anything_is_loaded() {
        let check = |change: fn(&mut WatchConfig), expect: Option<ErrorKind>| {
            let mut config = WatchConfig::default();
            change(&mut config);
            assert_eq!(config.to_raw().err().map(|error| error.kind()), expect);
        };
        let refused = Some(ErrorKind::InvalidInput);
        check(|_| (), None);
        check(|config| config.threshold = Duration::ZERO, refused);
        check(|config| config.cpus = Some(vec![]), refused);
        check(|config| config.cpus = Some(vec![Cpu(1024)]), refused);
        check(|config| config.cpus = Some(vec![Cpu(1023)]), None);
        check(|config| config.irqs = Some(vec![1; 9]), refused);
        check(|config| config.softirq = Some(10), refused);
        check(|config| config.targets = Targets::Tasks(vec![]), refused);
        check(
            |config| config.targets = Targets::Tasks(many("jackd", 8)),
            None,
        );
        check(
            |config| config.targets = Targets::Tasks(many("jackd", 9)),
            refused,
        );
        check(
            |config| config.targets = Targets::Tasks(many("7", 65)),
            refused,
        );
        // A name in brackets is itself, and a pattern of others.
        check(
            |config| config.targets = Targets::Tasks(many("rt[0]", 5)),
            refused,
        );
        check(|config| config.end = EndKind::Waiting, refused);
        check(|config| config.max_hits = Some(0), refused);
    }
}
