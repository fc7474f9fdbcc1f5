//! Hits and cost, as `--json` shows them.

use bpf_host::ProgramCost;
use capture::watch::{HitReport, Snapshot, Status};
use diagnosis::Diagnosis;
use report::{diagnosis_json, hit_json};
use serde_json::{Value, json};

use super::called::call_json;
use super::explained::diagnosis;

/// A hit with its explanation, as a line shows it.
pub fn hit_value(report: &HitReport) -> Value {
    hit_line(report, diagnosis(report).as_ref().ok())
}

/// The key of why nobody explained a hit.
pub const NOT_EXPLAINED: &str = "not_explained";

/// The same without an explanation, and why it has none.
pub fn hit_unexplained(report: &HitReport, why: &str) -> Value {
    let mut line = hit_line(report, None);
    line[NOT_EXPLAINED] = why.into();
    line
}

/// The same with an explanation that is there already, if there is one.
pub(super) fn hit_line(report: &HitReport, diagnosis: Option<&Diagnosis>) -> Value {
    let mut line = json!({ "type": "hit", "hit": hit_json(&report.hit) });
    if report.replaces {
        line["replaces"] = report.hit.id.into();
    }
    if let Some(tid) = report.seen_as {
        line["tid_here"] = tid.0.into();
    }
    if let Some(called) = &report.called {
        line["trigger"] = call_json(called);
    }
    if let Some(snapshot) = &report.snapshot {
        line["snapshot"] = snapshot_json(snapshot);
    }
    if let Some(failure) = &report.failure {
        line["snapshot_error"] = failure.to_string().into();
    }
    if let Some(diagnosis) = diagnosis {
        line["diagnosis"] = diagnosis_json(diagnosis);
    }
    line
}

/// Where a snapshot is, and how soon it was there.
pub(super) fn snapshot_json(snapshot: &Snapshot) -> Value {
    let timing = &snapshot.timing;
    json!({
        "path": snapshot.path.display().to_string(),
        "events": snapshot.summary.events(),
        "discarded": snapshot.summary.discarded(),
        "stopped_by_kernel": timing.stopped_by_kernel,
        "stopped_after_ns": timing.stopped_after.as_ns(),
        "running_after_ns": timing.running_after.as_ns(),
        "on_disk_after_ns": timing.on_disk_after.as_ns(),
    })
}

/// Our own cost; of the time in which the kernel measured, its part program by program.
pub(super) fn cost_json(status: &Status) -> Value {
    let program = |program: &ProgramCost| {
        let (name, calls, run_ns) = (&program.program, program.calls, program.run_ns);
        json!({ "program": name, "calls": calls, "run_ns": run_ns })
    };
    json!({
        "share": status.cost.share(),
        "programs_ns": status.cost.programs.as_ns(),
        "process_ns": status.cost.process.as_ns(),
        "available_ns": status.cost.available.as_ns(),
        "measured_ns": status.spent.measured.as_ns(),
        "programs": status.spent.programs.iter().map(program).collect::<Vec<_>>(),
    })
}
