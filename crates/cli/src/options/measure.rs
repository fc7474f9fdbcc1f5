//! What `rtscope measure` was asked to do.

use std::path::PathBuf;

use event::{Cpu, Duration, Error, ErrorKind, Result};
use host::clock::Clock;
use host::task::Policy;
use measure::cyclic::{Plan, ThreadPlan};

use super::{known_cpus, positive_duration};
use crate::flags::{self, ClockName, CyclictestPolicy, PolicyName, Power};

/// Memory of the histograms is 8 bytes a bucket and thread.
const BUCKETS_MAX: i64 = 10_000_000;
/// The histogram that cyclictest keeps when none is asked for: ours is never printed then.
const UNASKED_BUCKETS: usize = 1000;

/// A cyclic measurement, decided.
#[derive(Clone, Debug)]
pub struct CyclicOptions {
    /// What to measure.
    pub plan: Plan,
    /// Whether samples are split into phases.
    pub phases: bool,
    /// End after this.
    pub run_for: Option<Duration>,
    /// How long an idle state may take to leave; none for whatever the machine is set to.
    pub wake_latency: Option<Duration>,
    /// Where we ourselves run; none for wherever no thread of the measurement does.
    pub own_cpus: Option<Vec<Cpu>>,
    /// Whether memory is locked.
    pub lock_memory: bool,
    /// What is printed.
    pub output: CyclicOutput,
}

/// What a cyclic measurement prints.
#[derive(Clone, Debug)]
pub enum CyclicOutput {
    /// Our own table or JSON.
    Own {
        /// JSON instead of the table.
        json: bool,
        /// Explain samples that are longer, with snapshots in this folder.
        explain: Option<(Duration, PathBuf)>,
        /// A histogram file.
        histogram: Option<PathBuf>,
        /// Whether to show figures while it runs.
        live: bool,
    },
    /// As cyclictest prints.
    Cyclictest(CyclictestOutput),
}

/// What cyclictest was asked to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CyclictestOutput {
    /// Whether a histogram is printed, and whether with sums.
    pub histogram: Option<bool>,
    /// The histogram goes here instead of stdout.
    pub histogram_file: Option<PathBuf>,
    /// The result as JSON.
    pub json_file: Option<PathBuf>,
    /// Figures in nanoseconds.
    pub in_ns: bool,
    /// Only the summary.
    pub quiet: bool,
    /// The command line, for the JSON.
    pub command_line: String,
}

impl CyclicOptions {
    /// Whether a thread goes before ordinary tasks, which needs the right to.
    pub fn is_urgent(&self) -> bool {
        let ordinary = |policy| matches!(policy, Policy::Ordinary | Policy::Batch | Policy::Idle);
        let mut threads = self.plan.threads.iter();
        threads.any(|thread| !ordinary(thread.policy))
    }

    /// From what was typed, on a machine with the CPUs `online`, of which we may use `allowed`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word without a meaning, [`ErrorKind::NotFound`] for a CPU
    /// that is not there.
    pub fn new(typed: &flags::Cyclic, online: &[Cpu], allowed: &[Cpu]) -> Result<Self> {
        let listed = typed.cpu.as_ref().map(|text| known_cpus(text, online));
        let cpus = listed.transpose()?.unwrap_or_else(|| allowed.to_vec());
        let interval = positive_duration("--interval", &typed.interval)?;
        let optional = |flag: &str, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| positive_duration(flag, text)).transpose()
        };
        let distance = typed.distance.as_ref().map(|text| Duration::parse(text));
        let distance = distance.transpose()?.unwrap_or_default();
        let aligned = typed.aligned.as_ref().map(|text| Duration::parse(text));
        let policy = policy(typed.policy, typed.prio, interval);
        // The kernel pins no deadline task: who names CPUs is told so by the kernel's refusal.
        let free = typed.policy == PolicyName::Deadline && typed.cpu.is_none();
        let bucket = positive_duration("--bucket", &typed.bucket)?;
        let range = positive_duration("--range", &typed.range)?;
        let over = optional("--over", &typed.over)?;
        Ok(CyclicOptions {
            plan: Plan {
                threads: match free {
                    true => unpinned(apart(&cpus, policy, interval, distance)),
                    false => apart(&cpus, policy, interval, distance),
                },
                clock: clock(typed.clock),
                samples: typed.samples,
                break_over: optional("--break-over", &typed.break_over)?,
                bucket,
                buckets: buckets(bucket, range)?,
                aligned: aligned.transpose()?,
                phases: None,
            },
            phases: typed.phases,
            run_for: optional("--for", &typed.run_for)?,
            wake_latency: (typed.power == Power::Shallow).then_some(Duration::ZERO),
            own_cpus: None,
            lock_memory: true,
            output: CyclicOutput::Own {
                json: typed.json,
                explain: over.map(|over| (over, typed.output.clone())),
                histogram: typed.histogram.clone(),
                live: !typed.quiet && !typed.json,
            },
        })
    }

    /// From cyclictest's own options.
    ///
    /// # Errors
    /// As [`CyclicOptions::new`], and for options that only cyclictest itself has.
    pub fn cyclictest(
        typed: &flags::Cyclictest,
        command_line: String,
        online: &[Cpu],
        allowed: &[Cpu],
    ) -> Result<Self> {
        if typed.verbose {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "every single sample as text (-v) is not what we print",
            )
            .found("-v")
            .fix("use -h for a histogram, or rtscope record to keep every wake-up"));
        }
        let us = Duration::from_us;
        let histogram = typed.histofall.or(typed.histogram);
        let run_for = typed.duration.as_deref().map(bare_seconds).transpose()?;
        let aligned = typed.secaligned.or(typed.aligned);
        let main_cpus = typed.mainaffinity.as_ref();
        let main_cpus = main_cpus.map(|list| known_cpus(list, online));
        Ok(CyclicOptions {
            plan: Plan {
                threads: cyclictest_threads(typed, online, allowed)?,
                clock: if typed.clock == 1 {
                    Clock::Realtime
                } else {
                    Clock::Monotonic
                },
                samples: (typed.loops > 0).then_some(typed.loops),
                break_over: typed.breaktrace.filter(|&limit| limit > 0).map(us),
                bucket: if typed.nsecs {
                    Duration::from_ns(1)
                } else {
                    us(1)
                },
                buckets: histogram.unwrap_or(UNASKED_BUCKETS),
                aligned: aligned.map(|offset| us(offset.unwrap_or(0))),
                phases: None,
            },
            phases: false,
            run_for,
            wake_latency: (!typed.default_system).then_some(us(typed.latency)),
            own_cpus: main_cpus.transpose()?,
            lock_memory: typed.mlockall,
            output: CyclicOutput::Cyclictest(CyclictestOutput {
                histogram: histogram.map(|_| typed.histofall.is_some()),
                histogram_file: typed.histfile.clone(),
                json_file: typed.json.clone(),
                in_ns: typed.nsecs,
                quiet: typed.quiet,
                command_line,
            }),
        })
    }
}

/// A thread for each CPU, each interval longer than the one before.
fn apart(cpus: &[Cpu], policy: Policy, interval: Duration, distance: Duration) -> Vec<ThreadPlan> {
    let thread = |(number, &cpu): (usize, &Cpu)| ThreadPlan {
        cpu: Some(cpu),
        policy,
        interval: later(interval, distance, number),
    };
    cpus.iter().enumerate().map(thread).collect()
}

/// The same, wherever the scheduler puts them.
fn unpinned(mut threads: Vec<ThreadPlan>) -> Vec<ThreadPlan> {
    threads.iter_mut().for_each(|thread| thread.cpu = None);
    threads
}

fn later(interval: Duration, distance: Duration, number: usize) -> Duration {
    Duration::from_ns(interval.as_ns() + distance.as_ns() * number as i64)
}

/// The rules of cyclictest 2.x: `-S` is `-t -a`, all threads have one priority but with
/// `--priospread`, a histogram makes the distance zero, `-t` without `-a` pins nobody. `-t 0` is
/// `-t`.
fn cyclictest_threads(
    typed: &flags::Cyclictest,
    online: &[Cpu],
    allowed: &[Cpu],
) -> Result<Vec<ThreadPlan>> {
    let cpus = match &typed.affinity {
        Some(Some(list)) => cyclictest_cpus(list, online, allowed)?,
        _ => allowed.to_vec(),
    };
    let pinned = typed.smp || typed.affinity.is_some();
    let wanted = match typed.threads {
        Some(Some(number @ 1..)) => number,
        Some(Some(0) | None) => allowed.len(),
        None if typed.smp => allowed.len(),
        None => 1,
    };
    let has_histogram = typed.histogram.is_some() || typed.histofall.is_some();
    let distance = Duration::from_us(if has_histogram { 0 } else { typed.distance });
    let highest = cyclictest_prio(typed, wanted);
    let interval = Duration::from_us(typed.interval);
    if typed.interval <= 0 {
        let error = Error::new(ErrorKind::InvalidInput, "-i is no interval");
        return Err(error.found(typed.interval.to_string()).fix("-i 1000"));
    }
    let thread = |number: usize| {
        let below = if typed.priospread { number as u32 } else { 0 };
        ThreadPlan {
            cpu: pinned.then(|| cpus[number % cpus.len()]),
            policy: cyclictest_policy(typed, highest, highest.saturating_sub(below)),
            interval: later(interval, distance, number),
        }
    };
    Ok((0..wanted).map(thread).collect())
}

/// CPUs as cyclictest reads them: `all`, a list, or with `!` all that we may use but those.
fn cyclictest_cpus(list: &str, online: &[Cpu], allowed: &[Cpu]) -> Result<Vec<Cpu>> {
    if list == "all" {
        return Ok(allowed.to_vec());
    }
    let Some(list) = list.strip_prefix('!') else {
        return known_cpus(list, online);
    };
    let without = known_cpus(list, online)?;
    let kept = allowed.iter().filter(|cpu| !without.contains(cpu));
    let kept: Vec<Cpu> = kept.copied().collect();
    if kept.is_empty() {
        let error = Error::new(ErrorKind::InvalidInput, "-a leaves no CPU");
        return Err(error.found(format!("'!{list}'")).fix("-a all"));
    }
    Ok(kept)
}

/// The priority of the first thread: a real-time policy without one gets what leaves each thread
/// its own.
fn cyclictest_prio(typed: &flags::Cyclictest, threads: usize) -> u32 {
    let urgent = [Some(CyclictestPolicy::Fifo), Some(CyclictestPolicy::Rr)];
    let spread = u32::try_from(threads + 1).unwrap_or(99).min(99);
    match typed.priority {
        0 if urgent.contains(&typed.policy) => spread,
        prio => prio,
    }
}

/// A priority makes a policy real-time, whichever was named.
fn cyclictest_policy(typed: &flags::Cyclictest, highest: u32, prio: u32) -> Policy {
    match (typed.policy, highest) {
        // Spread over so many threads that nothing is left.
        (_, 1..) if prio == 0 => Policy::Ordinary,
        (Some(CyclictestPolicy::Rr), 1..) => Policy::RoundRobin(prio),
        (_, 1..) => Policy::Fifo(prio),
        (Some(CyclictestPolicy::Batch), 0) => Policy::Batch,
        (Some(CyclictestPolicy::Idle), 0) => Policy::Idle,
        (_, 0) => Policy::Ordinary,
    }
}

/// A length as cyclictest reads it: seconds, or with `s`, `m`, `h`, `d`.
fn bare_seconds(text: &str) -> Result<Duration> {
    let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
    let text = if has_unit {
        text.to_owned()
    } else {
        format!("{text}s")
    };
    positive_duration("-D", &text)
}

fn buckets(bucket: Duration, range: Duration) -> Result<usize> {
    if range <= bucket {
        let error = Error::new(ErrorKind::InvalidInput, "one bucket is no histogram");
        return Err(error
            .found(format!("--bucket {bucket}, --range {range}"))
            .fix("choose a narrower --bucket or a longer --range"));
    }
    let buckets = (range.as_ns() + bucket.as_ns() - 1) / bucket.as_ns();
    if buckets > BUCKETS_MAX {
        let error = Error::new(
            ErrorKind::InvalidInput,
            "the histograms have too many buckets",
        );
        return Err(error
            .found(format!("{buckets} of {bucket} up to {range}"))
            .fix("choose a wider --bucket or a shorter --range"));
    }
    Ok(buckets as usize)
}

fn clock(name: ClockName) -> Clock {
    match name {
        ClockName::Monotonic => Clock::Monotonic,
        ClockName::Realtime => Clock::Realtime,
        ClockName::Tai => Clock::Tai,
    }
}

fn policy(name: PolicyName, prio: u32, interval: Duration) -> Policy {
    match name {
        PolicyName::Fifo => Policy::Fifo(prio),
        PolicyName::Rr => Policy::RoundRobin(prio),
        PolicyName::Other => Policy::Ordinary,
        PolicyName::Batch => Policy::Batch,
        PolicyName::Idle => Policy::Idle,
        PolicyName::Deadline => Policy::Deadline {
            runtime: Duration::from_ns(interval.as_ns() / 10),
            deadline: interval,
            period: interval,
        },
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    const CPUS: [Cpu; 4] = [Cpu(0), Cpu(1), Cpu(2), Cpu(3)];

    fn cyclictest(words: &str) -> CyclicOptions {
        let words = std::iter::once("cyclictest").chain(words.split_whitespace());
        let typed = flags::Cyclictest::try_parse_from(words).expect("parses");
        CyclicOptions::cyclictest(&typed, String::new(), &CPUS, &CPUS).expect("has a meaning")
    }

    /// CPU (-1: any), priority and interval in us of each thread.
    fn check(words: &str, expect: &[(i64, u32, i64)]) {
        let threads = cyclictest(words).plan.threads;
        let found: Vec<_> = threads
            .iter()
            .map(|thread| {
                let cpu = thread.cpu.map_or(-1, |cpu| i64::from(cpu.0));
                (cpu, thread.policy.prio(), thread.interval.as_ns() / 1000)
            })
            .collect();
        assert_eq!(found, expect, "{words}");
    }

    #[test]
    fn threads_are_laid_out_as_cyclictest_lays_them() {
        check("", &[(-1, 0, 1000)]);
        check("-p 80 -t 2", &[(-1, 80, 1000), (-1, 80, 1500)]);
        check("-p80 -t2 --priospread", &[(-1, 80, 1000), (-1, 79, 1500)]);
        check("-p80 -t2 -d0 -i250", &[(-1, 80, 250), (-1, 80, 250)]);
        check("-p 80 -t2 -a 2-3 -h100", &[(2, 80, 1000), (3, 80, 1000)]);
        check(
            "-S -p 95 -m",
            &[(0, 95, 1000), (1, 95, 1500), (2, 95, 2000), (3, 95, 2500)],
        );
        check(
            "-S -h 100",
            &[(0, 0, 1000), (1, 0, 1000), (2, 0, 1000), (3, 0, 1000)],
        );
        check("-a 1 -t2 -p 1", &[(1, 1, 1000), (1, 1, 1500)]);
        check("-a all -t1", &[(0, 0, 1000)]);
        check("-a !0,1 -t2", &[(2, 0, 1000), (3, 0, 1500)]);
        check("-t 0 -d0", &[(-1, 0, 1000); 4]);
        // A real-time policy without a priority gets one.
        check("-t2 --policy=rr", &[(-1, 3, 1000), (-1, 3, 1500)]);
        check("--policy=other -p 80", &[(-1, 80, 1000)]);
    }

    #[test]
    fn a_length_without_a_unit_is_in_seconds() {
        let check = |words: &str, expect_ms: i64| {
            let found = cyclictest(words).run_for;
            assert_eq!(found, Some(Duration::from_ms(expect_ms)), "{words}");
        };
        check("-D 10", 10_000);
        check("-D 2m", 120_000);
        check("--duration=1h", 3_600_000);
    }
}
