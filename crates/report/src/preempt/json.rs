//! The three experiments as JSON, schema rtscope.preempt version 1.

use measure::histogram::Histogram;
use serde_json::{Value, json};

use super::Preempt;
use crate::cyclic::latency_json;

const SCHEMA: &str = "rtscope.preempt";
const SCHEMA_VERSION: u32 = 1;

/// Everything that was found.
pub fn preempt_json(preempt: &Preempt) -> Value {
    let findings = preempt.findings;
    let steps = findings.chains.iter().flat_map(|chain| {
        chain.steps.iter().map(|step| {
            let own = json!({
                "cpu": chain.cpu.0,
                "lost_cpu": chain.lost_cpu,
                "waker_priority": step.waker_prio,
                "wakee_priority": step.wakee_prio,
                "not_at_once": step.not_at_once,
            });
            with_latency(own, &step.latency)
        })
    });
    let locks = findings.locks.iter().flat_map(|(protocol, locks)| {
        locks.iter().map(|lock| {
            let own = json!({
                "cpu": lock.cpu.0,
                "lost_cpu": lock.lost_cpu,
                "protocol": protocol.name(),
                "inversions": lock.inversions,
                "robbed_ns": lock.robbed.as_ns(),
            });
            with_latency(own, &lock.wait)
        })
    });
    let messages = findings.messages.iter().map(|one| {
        let own = json!({
            "mechanism": one.mechanism.name(),
            "between": one.between.name(),
            "sender_cpu": one.sender.0,
            "receiver_cpu": one.receiver.0,
            "lost": one.lost,
            "lost_cpu": one.lost_cpu.is_some(),
        });
        with_latency(own, &one.latency)
    });
    let absent = findings.absent.iter();
    let defects = findings
        .defects()
        .into_iter()
        .map(|defect| json!({"what": defect.what, "found": defect.found, "fix": defect.fix}));
    json!({
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "complete": preempt.complete,
        "elapsed_ns": preempt.elapsed.as_ns(),
        "kernel": preempt.kernel,
        "preemption": preempt.preemption,
        "warnings": preempt.warnings,
        "steps": steps.collect::<Value>(),
        "locks": locks.collect::<Value>(),
        "messages": messages.collect::<Value>(),
        "skipped": absent.map(|(name, why)| json!({"what": name, "why": why})).collect::<Value>(),
        "defects": defects.collect::<Value>(),
        "over_ns": preempt.over.map(event::Duration::as_ns),
        "exceeded": preempt.exceeded(),
    })
}

fn with_latency(mut own: Value, latency: &Histogram) -> Value {
    if let (Value::Object(own), Value::Object(latency)) = (&mut own, latency_json(latency)) {
        own.extend(latency);
    }
    own
}

#[cfg(test)]
mod tests {
    use event::{Cpu, Duration};
    use measure::histogram::Recorder;
    use measure::preempt::Findings;
    use measure::preempt::chain::{Chain, Step};

    use super::super::preempt_text;
    use super::*;

    #[test]
    fn a_step_that_was_not_taken_at_once_is_a_defect_in_text_and_json() {
        let latency = Recorder::new(Duration::from_us(1), 8);
        [2_000, 120_000].into_iter().for_each(|ns| latency.add(ns));
        let step = Step {
            waker_prio: 51,
            wakee_prio: 50,
            latency: latency.read(),
            not_at_once: 1,
        };
        let findings = Findings {
            chains: vec![Chain {
                cpu: Cpu(1),
                steps: vec![step],
                lost_cpu: true,
            }],
            ..Findings::default()
        };
        let preempt = Preempt {
            findings: &findings,
            complete: false,
            over: Some(Duration::from_us(100)),
            elapsed: Duration::from_ms(10),
            kernel: "6.12.1-rt",
            preemption: "rt",
            warnings: &[],
        };
        let json = preempt_json(&preempt);
        assert_eq!(json["steps"][0]["not_at_once"], 1);
        assert_eq!(json["steps"][0]["lost_cpu"], true);
        assert_eq!(json["steps"][0]["max_ns"], 120_000);
        assert_eq!(json["defects"].as_array().map(Vec::len), Some(1));
        assert_eq!(json["exceeded"], true);
        let text = preempt_text(&preempt);
        let expect = [
            "defect: fifo 50 did not preempt fifo 51",
            "exceeded: 120.000 us is more than 100.000 us",
            "interrupted",
        ];
        for part in expect {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
