//! What `rtscope measure` was asked to do.

use std::path::PathBuf;

use event::{Cpu, Duration, Error, ErrorKind, Result};
use host::clock::Clock;
use host::task::Policy;
use measure::cyclic::{Begin, Plan, Sleep, ThreadPlan};
use measure::histogram::OVERFLOWS_NAMED;

use super::cyclictest_output::CyclictestOutput;
use super::{LONGEST, duration, known_cpus, positive_duration};
use crate::flags::{self, ClockName, PolicyName, Power};

/// Memory of the histograms is 8 bytes a bucket and thread.
const BUCKETS_MAX: i64 = 10_000_000;

/// A cyclic measurement, decided.
#[derive(Clone, Debug)]
pub struct CyclicOptions {
    /// What to measure.
    pub plan: Plan,
    /// Whether samples are split into phases.
    pub phases: bool,
    /// End after this.
    pub run_for: Option<Duration>,
    /// Measure for so long before anything counts.
    pub warm_up: Option<Duration>,
    /// How long an idle state may take to leave; none for whatever the machine is set to.
    pub wake_latency: Option<Duration>,
    /// The deepest idle state that measured CPUs may enter, by its number; -1 for none at all.
    pub deepest_idle: Option<i64>,
    /// Where we ourselves run; none for wherever no thread of the measurement does.
    pub own_cpus: Option<Vec<Cpu>>,
    /// Whether memory is locked.
    pub lock_memory: bool,
    /// What is printed.
    pub output: CyclicOutput,
}

/// What is done at each late sample that is explained, beside its snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// A command, with the sample's JSON on stdin.
    pub exec: Option<String>,
    /// A BPF object whose function the kernel calls.
    pub bpf_action: Option<PathBuf>,
}

impl Actions {
    /// From what was typed; without a threshold there is nothing to do them at.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] where `over` is none.
    pub fn new(typed: &flags::Actions, over: Option<Duration>) -> Result<Actions> {
        let actions = Actions {
            exec: typed.exec.clone(),
            bpf_action: typed.bpf_action.clone(),
        };
        if over.is_none() && actions != Actions::default() {
            let what = "no sample is late without a threshold";
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found("an action and neither --over nor --budget")
                .fix("say from when on it is done, as in --over 100us"));
        }
        Ok(actions)
    }
}

/// The late samples that are explained.
#[derive(Clone, Debug)]
pub struct ExplainOptions {
    /// Longer ones are late.
    pub over: Duration,
    /// Where their snapshots go.
    pub output: PathBuf,
    /// So many of the longest.
    pub worst: usize,
    /// What is done at each.
    pub actions: Actions,
}

/// What a cyclic measurement prints.
#[derive(Clone, Debug)]
pub enum CyclicOutput {
    /// Our own table or JSON.
    Own {
        /// JSON instead of the table.
        json: bool,
        /// Which samples are explained.
        explain: Option<ExplainOptions>,
        /// A histogram file.
        histogram: Option<PathBuf>,
        /// Whether to show figures while it runs.
        live: bool,
    },
    /// As cyclictest prints.
    Cyclictest(CyclictestOutput),
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
        let distance = typed.distance.as_ref();
        let distance = distance.map(|text| duration("--distance", text));
        let distance = distance.transpose()?.unwrap_or_default();
        let aligned = typed.aligned.as_ref();
        let aligned = aligned.map(|text| duration("--aligned", text));
        let policy = policy(typed.policy, typed.prio, interval);
        // The kernel pins no deadline task: who names CPUs is told so by the kernel's refusal.
        let free = typed.policy == PolicyName::Deadline && typed.cpu.is_none();
        let bucket = positive_duration("--bucket", &typed.bucket)?;
        let range = positive_duration("--range", &typed.range)?;
        let over = optional("--over", &typed.over)?;
        let actions = Actions::new(&typed.actions, over)?;
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
                begin: Begin {
                    at_second: typed.aligned.is_some(),
                    apart: aligned.transpose()?.unwrap_or_default(),
                    ..Begin::default()
                },
                sampled_for: None,
                sleep: Sleep::Until,
                kept: 0,
                overflows_named: OVERFLOWS_NAMED,
                kept_over: None,
                called: None,
                mark: None,
                phases: None,
            },
            phases: typed.phases,
            run_for: optional("--for", &typed.run_for)?,
            warm_up: optional("--warm-up", &typed.warm_up)?,
            wake_latency: (typed.power == Power::Shallow).then_some(Duration::ZERO),
            deepest_idle: None,
            own_cpus: None,
            lock_memory: true,
            output: CyclicOutput::Own {
                json: typed.json,
                explain: over.map(|over| ExplainOptions {
                    over,
                    output: typed.output.clone(),
                    worst: typed.worst,
                    actions,
                }),
                histogram: typed.histogram.clone(),
                live: !typed.quiet && !typed.json,
            },
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
    let after_ns = distance.as_ns().saturating_mul(number as i64);
    Duration::from_ns(interval.as_ns().saturating_add(after_ns)).min(LONGEST)
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
