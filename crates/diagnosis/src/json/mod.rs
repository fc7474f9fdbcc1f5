//! A diagnosis as JSON, versioned.

mod hit;

use event::TimeRange;
use serde_json::{Value, json};

pub use hit::hit_json;
use hit::{stack_json, steps_json, task_json};

use crate::{
    Advice, Basis, Culprit, Diagnosis, Group, LateActivation, Parts, Renamed, SleepsInside, Stack,
    StepCheck, Sum, TaskRef, Term, TermKind, Verdict, WaitedMutex, Warning,
};

/// The version of the schema; it grows when a key changes its meaning or goes.
const VERSION: u32 = 1;

/// A diagnosis as one JSON object of the schema `rtscope.diagnosis`.
pub fn diagnosis_json(diagnosis: &Diagnosis) -> Value {
    let warning = |warning: &Warning| json!({"what": warning.what, "remedy": warning.remedy});
    json!({
        "schema": "rtscope.diagnosis",
        "version": VERSION,
        "verdict": diagnosis.verdict().map(verdict_json),
        "groups": diagnosis.groups.iter().map(group_json).collect::<Vec<_>>(),
        "activations": diagnosis.activations.iter().map(activation_json).collect::<Vec<_>>(),
        "warnings": diagnosis.warnings.iter().map(warning).collect::<Vec<_>>(),
        "basis": basis_json(&diagnosis.basis),
    })
}

fn basis_json(basis: &Basis) -> Value {
    json!({
        "events": basis.events,
        "lost": basis.lost,
        "holes": basis.holes,
        "damaged": basis.damaged,
        "unpaired": basis.unpaired,
        "inferred": basis.inferred,
        "doubted": basis.doubted,
        "locks_known": basis.locks_known,
        "hits": basis.hits,
        "activations": basis.activations,
        "unjudged": basis.unjudged,
        "unwoken": basis.unwoken,
        "start_ups": basis.start_ups,
        "long_start_ups": basis.long_start_ups,
        "unslept": basis.unslept,
        "unknown_wakers": basis.unknown_wakers,
        "stopped_asleep": basis.stopped_asleep,
        "renamed": basis.renamed.as_ref().map(renamed_json),
        "open_call": basis.open_call,
        "sleeps_inside": basis.inside.iter().map(inside_json).collect::<Vec<_>>(),
        "left_out": basis.left_out,
        "until": basis.until.name(),
        "judged": basis.judged.iter().map(judged_json).collect::<Vec<_>>(),
        "window": basis.window.map(range_json),
    })
}

fn judged_json((task, activations): &(TaskRef, u64)) -> Value {
    json!({"task": task_json(task), "activations": activations})
}

fn renamed_json(renamed: &Renamed) -> Value {
    json!({
        "task": task_json(&renamed.task),
        "activations": renamed.activations,
        "longest_ns": renamed.longest.as_ns(),
    })
}

fn inside_json(inside: &SleepsInside) -> Value {
    json!({
        "task": task_json(&inside.task),
        "cycles": inside.cycles,
        "sleeps": inside.sleeps,
        "over": inside.over,
        "worst": range_json(inside.worst),
    })
}

fn parts_json(parts: Parts) -> Value {
    json!({
        "before_ns": parts.before.as_ns(),
        "own_work_ns": parts.own_work.as_ns(),
        "put_off_ns": parts.put_off.as_ns(),
    })
}

fn group_json(group: &Group) -> Value {
    json!({
        "signature": group.signature,
        "members": group.members,
        "worst_ns": group.worst.as_ns(),
        "verdict": verdict_json(&group.verdict),
    })
}

fn verdict_json(verdict: &Verdict) -> Value {
    let stack = |(what, stack): &(String, Stack)| {
        let stack = stack_json(stack);
        json!({"what": what, "stack": stack})
    };
    let excluded =
        |(question, answer): &(&str, String)| json!({"question": question, "answer": answer});
    json!({
        "sentence": verdict.sentence,
        "conclusive": verdict.conclusive,
        "culprits": verdict.culprits.iter().map(culprit_json).collect::<Vec<_>>(),
        "range": range_json(verdict.range),
        "stacks": verdict.stacks.iter().map(stack).collect::<Vec<_>>(),
        "mutexes": verdict.mutexes.iter().map(mutex_json).collect::<Vec<_>>(),
        "excluded": verdict.excluded.iter().map(excluded).collect::<Vec<_>>(),
        "advice": verdict.advice.iter().map(advice_json).collect::<Vec<_>>(),
        "unadvised": verdict.unadvised,
    })
}

fn mutex_json(mutex: &WaitedMutex) -> Value {
    json!({
        "waiter": task_json(&mutex.waiter),
        "since_ns": mutex.since.as_ns(),
        "address": mutex.address,
        "name": mutex.name,
    })
}

fn culprit_json(culprit: &Culprit) -> Value {
    let mut object = kind_json(&culprit.kind);
    object["duration_ns"] = json!(culprit.duration.as_ns());
    object["tasks"] = json!(culprit.tasks);
    object["share"] = json!(culprit.share);
    object["cpu"] = json!(culprit.cpu.0);
    object["range"] = range_json(culprit.range);
    if let Some(waiter) = &culprit.waiter {
        object["waiter"] = task_json(waiter);
    }
    object
}

fn advice_json(advice: &Advice) -> Value {
    json!({
        "rule": advice.rule,
        "because": advice.because,
        "command": advice.command,
        "then_check": advice.then_check,
        "alone": advice.alone,
    })
}

fn activation_json(late: &LateActivation) -> Value {
    let terms: Vec<_> = late
        .ledger
        .terms
        .iter()
        .map(|term| term_json(late, term))
        .collect();
    let sums = late.ledger.sums();
    let sums: Vec<_> = sums.iter().map(|sum| sum_json(late, sum)).collect();
    json!({
        "task": task_json(&late.task),
        "origin_ns": late.origin.as_ns(),
        "end_ns": late.end.as_ns(),
        "latency_ns": late.latency().as_ns(),
        "parts": late.parts().map(parts_json),
        "cpu": late.cpu.0,
        "page_faults": late.page_faults,
        "free_meanwhile": late.free_meanwhile.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
        "stolen_max_ns": late.stolen_max.as_ns(),
        "steps": steps_json(&late.steps),
        "steps_left_out": late.steps_left_out,
        "hit": late.hit.as_ref().map(hit_json),
        "checks": late.checks.iter().map(check_json).collect::<Vec<_>>(),
        "ledger": {
            "grade": late.ledger.grade.name(),
            "good": late.ledger.is_good(),
            "total_ns": late.ledger.total.as_ns(),
            "unexplained_ns": late.ledger.unexplained().as_ns(),
            "terms": terms,
            "sums": sums,
        },
    })
}

/// Terms of one name and priority together; the task is the one that took most of it.
fn sum_json(late: &LateActivation, sum: &Sum) -> Value {
    let mut object = kind_json(&sum.kind);
    object["tasks"] = json!(sum.tasks);
    object["duration_ns"] = json!(sum.duration.as_ns());
    object["share"] = json!(sum.duration.share_of(late.latency()));
    object
}

fn check_json(check: &StepCheck) -> Value {
    json!({"step": check.step, "delta_ns": check.delta.map(event::Duration::as_ns)})
}

fn term_json(late: &LateActivation, term: &Term) -> Value {
    let mut object = kind_json(&term.kind);
    object["duration_ns"] = json!(term.duration.as_ns());
    object["share"] = json!(term.duration.share_of(late.latency()));
    object["pieces"] = json!(term.pieces);
    object["cpu"] = json!(term.cpu.0);
    object["range"] = range_json(term.range);
    object
}

/// What a term is: its stable tag, its text, and the parts that it has.
fn kind_json(kind: &TermKind) -> Value {
    let mut object = json!({"kind": kind.tag(), "text": kind.to_string()});
    if let Some(task) = kind.task() {
        object["task"] = task_json(task);
    }
    match kind {
        TermKind::InterruptsOff { function, .. } => object["function"] = json!(function),
        TermKind::PreemptionOff {
            function, model, ..
        } => {
            object["function"] = json!(function);
            object["model"] = json!(model.name());
        }
        TermKind::Hardirq { irq, name } => {
            object["irq"] = json!(irq);
            object["name"] = json!(name);
        }
        TermKind::PriorityInversion { owner, .. } => object["owner"] = task_json(owner),
        TermKind::Softirq { vector } => object["vector"] = json!(vector),
        TermKind::Unexplained(reason) => object["reason"] = json!(reason.to_string()),
        _ => {}
    }
    object
}

fn range_json(range: TimeRange) -> Value {
    json!({"begin_ns": range.begin.as_ns(), "end_ns": range.end.as_ns()})
}
