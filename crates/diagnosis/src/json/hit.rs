//! A hit as JSON: the same for the live watch and for a snapshot.

use crate::{Hit, Stack, Step, StepKind, TaskRef};
use serde_json::{Value, json};

/// A hit as one JSON object. `prio` is on LTTng's scale, as in the trace; `priority` is for people.
pub fn hit_json(hit: &Hit) -> Value {
    json!({
        "id": hit.id,
        "end_kind": hit.end_kind.name(),
        "origin_ns": hit.origin.as_ns(),
        "end_ns": hit.end.as_ns(),
        "latency_ns": hit.latency().as_ns(),
        "threshold_ns": hit.threshold.as_ns(),
        "task": task_json(&hit.task),
        "preemptions": hit.preemptions,
        "steps_left_out": hit.overflow,
        "stale": hit.stale,
        "unseen": hit.unseen,
        "kin": hit.kin.name(),
        "ordinary": hit.ordinary,
        "repaired": hit.repaired,
        "cost_ns": hit.cost.as_ns(),
        "culprit": hit.culprit.as_ref().map(task_json),
        "steps": steps_json(&hit.steps),
        "waker_stack": stack_json(&hit.waker_stack),
        "wakee_stack": stack_json(&hit.wakee_stack),
        "culprit_stack": stack_json(&hit.culprit_stack),
    })
}

/// A task as a JSON object.
pub(crate) fn task_json(task: &TaskRef) -> Value {
    json!({
        "tid": task.tid.0,
        "comm": task.comm,
        "prio": task.prio.lttng(),
        "priority": task.prio.to_string(),
    })
}

/// Steps as a JSON array.
pub(crate) fn steps_json(steps: &[Step]) -> Value {
    steps.iter().map(step_json).collect()
}

fn step_json(step: &Step) -> Value {
    let mut object = json!({
        "time_ns": step.time.as_ns(),
        "kind": step.kind.name(),
        "cpu": step.cpu.0,
        "id": step.id,
        "comm": step.comm,
    });
    let of_task = matches!(
        step.kind,
        StepKind::Waking
            | StepKind::SwitchIn
            | StepKind::UserReturn
            | StepKind::Blocked
            | StepKind::Preempted
    );
    if of_task {
        object["prio"] = json!(step.prio.lttng());
    }
    object
}

/// A stack as a JSON array, innermost frame first.
pub(crate) fn stack_json(stack: &Stack) -> Value {
    let frame = |frame: &crate::Frame| {
        let address = format!("{:#x}", frame.address);
        json!({"address": address, "symbol": frame.symbol})
    };
    stack.iter().map(frame).collect()
}

#[cfg(test)]
mod tests {
    use crate::EndKind;
    use event::{Cpu, Duration, Instant, Prio, Tid};

    use super::*;

    #[test]
    fn a_hit_keeps_its_instants_as_integers_and_priorities_on_the_traces_scale() {
        let task = TaskRef {
            tid: Tid(7),
            comm: "a b".into(),
            prio: Prio(39),
        };
        let step = |kind, id, ns| Step {
            time: Instant::from_ns(ns),
            kind,
            cpu: Cpu(1),
            id,
            prio: Prio(39),
            comm: String::new(),
        };
        let hit = Hit {
            id: 3,
            end_kind: EndKind::SwitchIn,
            origin: Instant::from_ns(1_000),
            end: Instant::from_ns(5_000),
            threshold: Duration::from_ns(10),
            task: task.clone(),
            preemptions: 0,
            overflow: 0,
            stale: false,
            repaired: false,
            unseen: false,
            kin: Default::default(),
            ordinary: false,
            culprit: Some(task),
            steps: vec![
                step(StepKind::Hardirq, -1, 1_000),
                step(StepKind::SwitchIn, 7, 5_000),
            ],
            cost: Duration::from_ns(12),
            waker_stack: vec![],
            wakee_stack: vec![],
            culprit_stack: vec![crate::Frame {
                address: 0x10,
                symbol: "f+0x1".into(),
            }],
        };
        let json = hit_json(&hit);
        assert_eq!(json["latency_ns"], 4_000);
        assert_eq!(json["task"]["prio"], -61);
        assert_eq!(json["task"]["priority"], "rt 60");
        assert_eq!(json["steps"][0]["kind"], "hardirq");
        assert_eq!(json["steps"][0].get("prio"), None);
        assert_eq!(json["steps"][1]["prio"], -61);
        assert_eq!(json["culprit_stack"][0]["address"], "0x10");
    }
}
