//! What `rtscope measure preempt` was asked to do.

use event::{Cpu, Duration, Error, ErrorKind, Result};
use host::clock::Clock;
use measure::preempt::chain::ChainPlan;
use measure::preempt::inheritance::{InheritancePlan, Protocol};
use measure::preempt::messages::{Between, Mechanism, MessagePlan};

use super::{known_cpus, positive_duration};
use crate::flags::{self, MutexName};

/// The histograms: a microsecond each, up to ten milliseconds.
const BUCKET: Duration = Duration::from_us(1);
const BUCKETS: usize = 10_000;
/// The fewest priorities that the experiment with the lock needs: high, middle, low.
const PRIOS_MIN: u32 = 3;
/// The lock's rounds are of two intervals each.
const LOCK_INTERVALS: u64 = 2;

/// The experiments, decided.
#[derive(Clone, Debug)]
pub struct PreemptOptions {
    /// The chain, on one CPU after the other.
    pub chains: Vec<ChainPlan>,
    /// The lock, on all CPUs at the same time.
    pub lock: InheritancePlan,
    /// Messages on one CPU, and between two where there are two; to a thread, and to a process.
    pub messages: Vec<MessagePlan>,
    /// What a latency must not exceed.
    pub over: Option<Duration>,
    /// JSON instead of the tables.
    pub json: bool,
}

impl PreemptOptions {
    /// From what was typed, on a machine with the CPUs `online`, of which we may use `allowed`.
    ///
    /// # Errors
    /// For a word without a meaning, a CPU that is not there, and a priority with too few below.
    pub fn new(typed: &flags::Preempt, online: &[Cpu], allowed: &[Cpu]) -> Result<Self> {
        let listed = typed.cpu.as_ref().map(|text| known_cpus(text, online));
        let cpus = listed.transpose()?.unwrap_or_else(|| allowed.to_vec());
        let &[first, .., last] = cpus.as_slice() else {
            return Self::on(
                typed,
                &cpus,
                &cpus.iter().map(|&cpu| (cpu, cpu)).collect::<Vec<_>>(),
            );
        };
        Self::on(typed, &cpus, &[(last, last), (first, last)])
    }

    fn on(typed: &flags::Preempt, cpus: &[Cpu], ways: &[(Cpu, Cpu)]) -> Result<Self> {
        let prio = typed.prio;
        let needed = typed.threads.max(PRIOS_MIN);
        if prio < needed {
            let what = format!("no {needed} priorities end at {prio}");
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found(format!("--prio {prio} --threads {}", typed.threads))
                .fix(format!("choose --prio {needed} or more")));
        }
        let interval = positive_duration("--interval", &typed.interval)?;
        Clock::Monotonic.check_interval(interval)?;
        let pairs: Vec<(Between, (Cpu, Cpu))> = [Between::Threads, Between::Processes]
            .into_iter()
            .flat_map(|between| ways.iter().map(move |way| (between, *way)))
            .collect();
        let run_for = typed.run_for.as_ref();
        let run_for = run_for.map(|text| positive_duration("--for", text));
        let rounds = match run_for.transpose()? {
            None => typed.rounds,
            Some(all) => {
                let messages = (pairs.len() * Mechanism::ALL.len()) as u64;
                let turns = cpus.len() as u64 + LOCK_INTERVALS + messages;
                (all.as_ns_unsigned() / turns / interval.as_ns_unsigned()).max(1)
            }
        };
        let (bucket, buckets) = (BUCKET, BUCKETS);
        let over = typed.over.as_ref();
        let over = over.map(|text| positive_duration("--over", text));
        let chain = |&cpu: &Cpu| ChainPlan {
            cpu,
            prios: (prio + 1 - typed.threads..=prio).collect(),
            rounds,
            interval,
            bucket,
            buckets,
        };
        let message = |&(between, (sender, receiver)): &(Between, (Cpu, Cpu))| MessagePlan {
            between,
            sender,
            receiver,
            prio,
            rounds,
            interval,
            bucket,
            buckets,
        };
        Ok(PreemptOptions {
            chains: cpus.iter().map(chain).collect(),
            lock: InheritancePlan {
                cpus: cpus.to_vec(),
                prio,
                protocol: match typed.mutex {
                    MutexName::Inherit => Protocol::Inherit,
                    MutexName::Plain => Protocol::Plain,
                },
                rounds,
                interval,
                bucket,
                buckets,
            },
            messages: pairs.iter().map(message).collect(),
            over: over.transpose()?,
            json: typed.json,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(prio: u32, run_for: Option<&str>, cpus: &[Cpu]) -> Result<PreemptOptions> {
        let typed = flags::Preempt {
            cpu: None,
            prio,
            threads: 4,
            rounds: 10,
            run_for: run_for.map(str::to_owned),
            interval: "1ms".into(),
            mutex: MutexName::Inherit,
            over: None,
            json: false,
        };
        PreemptOptions::new(&typed, cpus, cpus)
    }

    #[test]
    fn the_chain_ends_at_the_priority_and_messages_go_between_cpus() {
        let found = options(80, None, &[Cpu(0), Cpu(3)]).expect("decided");
        assert_eq!(found.chains.len(), 2);
        assert_eq!(found.chains[0].prios, [77, 78, 79, 80]);
        let ways: Vec<_> = found
            .messages
            .iter()
            .map(|way| (way.sender.0, way.receiver.0))
            .collect();
        assert_eq!(ways, [(3, 3), (0, 3), (3, 3), (0, 3)]);
        let alone = options(4, None, &[Cpu(2)]).expect("decided");
        assert_eq!(alone.chains[0].prios, [1, 2, 3, 4]);
        let between: Vec<_> = alone.messages.iter().map(|way| way.between).collect();
        assert_eq!(between, [Between::Threads, Between::Processes]);
        assert!(
            options(3, None, &[Cpu(0)]).is_err(),
            "no room for four below 3"
        );
    }

    #[test]
    fn a_duration_is_shared_by_all_experiments() {
        let rounds = |run_for: &str, cpus: &[Cpu]| {
            let found = options(80, Some(run_for), cpus).expect("decided");
            let all = [found.chains[0].rounds, found.lock.rounds];
            assert!(all.iter().all(|one| *one == found.messages[0].rounds));
            all[0]
        };
        // Two chains, the lock, eight mechanisms by four ways: 36 turns of a millisecond.
        assert_eq!(rounds("36s", &[Cpu(0), Cpu(1)]), 1_000);
        assert_eq!(rounds("1ms", &[Cpu(0)]), 1);
    }
}
