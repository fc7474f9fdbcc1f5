//! What is wrong when the urgent one did not run at once, in words.

use std::collections::BTreeSet;

use super::chain::{Chain, Step};
use super::inheritance::{Inheritance, Protocol};
use super::messages::Messages;
use event::Cpu;

/// The results of the three experiments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The chains, by CPU.
    pub chains: Vec<Chain>,
    /// What was found at locks, and with which protocol.
    pub locks: Option<(Protocol, Vec<Inheritance>)>,
    /// What messages took.
    pub messages: Vec<Messages>,
    /// Ways that this kernel has not, each with the reason.
    pub absent: Vec<(&'static str, String)>,
    /// CPUs that were taken from us before an experiment on them began.
    pub gone: Vec<Cpu>,
}

/// Something that a real-time kernel does not do, and what would change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Who did not run, and who did instead.
    pub what: String,
    /// How often and for how long.
    pub found: String,
    /// What to change.
    pub fix: String,
}

impl Findings {
    /// Every defect, a sentence each.
    pub fn defects(&self) -> Vec<Defect> {
        let steps = self.chains.iter().flat_map(|chain| {
            let step = |step| not_preempted(chain.cpu, step);
            chain.steps.iter().filter_map(step)
        });
        let locks = self.locks.iter().flat_map(|(protocol, found)| {
            let one = move |one| inverted(*protocol, one);
            found.iter().filter_map(one)
        });
        let lost = self.messages.iter().filter(|found| found.lost).map(lost);
        steps.chain(locks).chain(lost).collect()
    }

    /// The CPUs that the kernel took from our threads, in their order.
    pub fn lost_cpus(&self) -> Vec<Cpu> {
        let chains = self.chains.iter().filter(|chain| chain.lost_cpu);
        let locks = self.locks.iter().flat_map(|(_, found)| found);
        let locks = locks.filter(|found| found.lost_cpu);
        let messages = self.messages.iter().filter_map(|found| found.lost_cpu);
        let lost = chains.map(|chain| chain.cpu);
        let lost = lost.chain(locks.map(|found| found.cpu)).chain(messages);
        let lost: BTreeSet<Cpu> = lost.chain(self.gone.iter().copied()).collect();
        lost.into_iter().collect()
    }
}

fn not_preempted(cpu: Cpu, step: &Step) -> Option<Defect> {
    let &Step {
        waker_prio,
        wakee_prio,
        not_at_once,
        ..
    } = step;
    let fix = if wakee_prio > waker_prio {
        "sudo rtscope watch --task 'rtscope-pre*' --over 100us while it runs says who held the CPU"
            .to_owned()
    } else {
        format!("wake a thread of a priority above {waker_prio}")
    };
    (not_at_once > 0).then(|| Defect {
        what: format!(
            "fifo {wakee_prio} did not preempt fifo {waker_prio}, which woke it on {cpu}"
        ),
        found: format!("{not_at_once} of {} wake-ups", step.latency.samples),
        fix,
    })
}

fn inverted(protocol: Protocol, found: &Inheritance) -> Option<Defect> {
    let fix = match protocol {
        Protocol::Plain => {
            "pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) before the mutex is \
             made"
        }
        Protocol::Inherit => "boot a kernel with CONFIG_FUTEX_PI=y whose rt-mutexes boost",
    };
    (found.inversions > 0).then(|| Defect {
        what: format!(
            "priority inversion on {}: the middle thread ran while the high one waited for the low \
             one's {} mutex",
            found.cpu,
            protocol.name()
        ),
        found: format!(
            "{} of {} rounds, {} in all",
            found.inversions, found.wait.samples, found.robbed
        ),
        fix: fix.to_owned(),
    })
}

fn lost(found: &Messages) -> Defect {
    Defect {
        what: format!(
            "a {} from {} to {} did not arrive",
            found.mechanism.name(),
            found.sender,
            found.receiver
        ),
        found: format!("after {} that did", found.latency.samples),
        fix: "look whether the receiver's CPU is taken: sudo rtscope measure hw".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use event::Duration;

    use super::*;
    use crate::histogram::Recorder;

    #[test]
    fn a_defect_names_who_ran_instead_and_the_change() {
        let latency = Recorder::new(Duration::from_us(1), 4);
        latency.add(1000);
        let step = |waker_prio, wakee_prio, not_at_once| Step {
            waker_prio,
            wakee_prio,
            latency: latency.read(),
            not_at_once,
        };
        let lock = |inversions| Inheritance {
            cpu: Cpu(1),
            wait: latency.read(),
            inversions,
            robbed: Duration::from_us(300),
            lost_cpu: false,
        };
        let chain = |steps| Chain {
            cpu: Cpu(0),
            steps,
            lost_cpu: false,
        };
        let check = |findings: Findings, expect: &[(&str, &str)]| {
            let found = findings.defects();
            assert_eq!(found.len(), expect.len(), "{found:?}");
            for (defect, (what, fix)) in found.iter().zip(expect) {
                assert!(defect.what.contains(what), "{defect:?}");
                assert!(defect.fix.contains(fix), "{defect:?}");
            }
        };
        check(Findings::default(), &[]);
        let fine = Findings {
            chains: vec![chain(vec![step(50, 51, 0)])],
            locks: Some((Protocol::Inherit, vec![lock(0)])),
            ..Findings::default()
        };
        check(fine, &[]);
        let broken = Findings {
            chains: vec![chain(vec![step(50, 51, 0), step(51, 49, 1)])],
            locks: Some((Protocol::Plain, vec![lock(1)])),
            ..Findings::default()
        };
        let expect = [
            ("fifo 49 did not preempt fifo 51", "above 51"),
            ("inversion on CPU 1", "PTHREAD_PRIO_INHERIT"),
        ];
        check(broken, &expect);
    }
}
