//! The three experiments on this machine, and a defect injected into two of them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use event::{Cpu, Duration};
use measure::preempt::chain::{self, ChainPlan};
use measure::preempt::inheritance::{self, InheritancePlan, Protocol};
use measure::preempt::messages::{self, Between, Mechanism, MessagePlan};

const ROUNDS: u64 = 50;

fn go_on() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

fn chain(prios: &[u32]) -> Vec<(u64, u64)> {
    let plan = ChainPlan {
        cpu: Cpu(0),
        prios: prios.to_vec(),
        rounds: ROUNDS,
        interval: Duration::from_ms(1),
        bucket: Duration::from_us(1),
        buckets: 1000,
    };
    let chain = chain::run(&plan, &go_on()).expect("the chain runs");
    assert!(!chain.lost_cpu);
    let figures = |step: &chain::Step| (step.latency.samples, step.not_at_once);
    chain.steps.iter().map(figures).collect()
}

#[test]
fn a_more_urgent_thread_preempts_its_waker_and_a_less_urgent_one_is_found() {
    let _alone = testkit::privileged();
    assert_eq!(chain(&[50, 51, 52]), [(ROUNDS, 0), (ROUNDS, 0)]);
    assert_eq!(chain(&[50, 52, 51]), [(ROUNDS, 0), (ROUNDS, ROUNDS)]);
}

#[test]
fn a_mutex_that_does_not_inherit_is_found() {
    let _alone = testkit::privileged();
    let check = |protocol: Protocol, expect_inversions: u64| {
        let plan = InheritancePlan {
            cpus: vec![Cpu(0)],
            prio: 60,
            protocol,
            rounds: ROUNDS,
            interval: Duration::from_ms(1),
            bucket: Duration::from_us(1),
            buckets: 1000,
        };
        let found = inheritance::run(&plan, &go_on()).expect("the groups run");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].wait.samples, ROUNDS, "{}", protocol.name());
        assert_eq!(
            found[0].inversions,
            expect_inversions,
            "{}",
            protocol.name()
        );
        assert_eq!(found[0].robbed > Duration::ZERO, expect_inversions > 0);
    };
    check(Protocol::Inherit, 0);
    check(Protocol::Plain, ROUNDS);
}

#[test]
fn every_message_arrives_by_every_way() {
    let _alone = testkit::privileged();
    let cpus = rustix::thread::sched_getaffinity(None).expect("CPUs");
    let other = u32::from(cpus.is_set(1));
    for mechanism in Mechanism::ALL {
        let ways = [
            (Between::Threads, Cpu(0)),
            (Between::Threads, Cpu(other)),
            (Between::Processes, Cpu(0)),
            (Between::Processes, Cpu(other)),
        ];
        for (between, receiver) in ways {
            let plan = MessagePlan {
                between,
                sender: Cpu(0),
                receiver,
                prio: 60,
                rounds: ROUNDS,
                interval: Duration::from_us(500),
                bucket: Duration::from_us(1),
                buckets: 1000,
            };
            let found = messages::run(mechanism, &plan, &go_on()).expect("it is there");
            let what = format!("{} between {}", mechanism.name(), between.name());
            assert!(!found.lost, "{what}");
            assert_eq!(found.latency.samples, ROUNDS, "{what}");
            assert!(
                found
                    .latency
                    .extremes
                    .is_some_and(|one| one.min > Duration::ZERO)
            );
        }
    }
}
