//! `rtscope check STORE`.

use std::path::Path;

use event::{Error, ErrorKind, Result, TaskPattern};
use monitor::{
    Gate, GateFinding, GateJudgement, GateReport, GateSubject, Store, gate_basis, gate_json,
    gate_reason, gate_text, judge,
};
use report::{Case, CaseOutcome, junit};
use views::{Budget, Rules, Subject};

use crate::exit::{Outcome, print_answer, write_file};
use crate::options::CheckOptions;

/// Judges the budgets over a store.
///
/// # Errors
/// When the store cannot be read, and for a budget that it does not know the samples of.
pub fn check(path: &Path, options: &CheckOptions, rules: &Rules) -> Result<Outcome> {
    let store = Store::open(path)?;
    let gates = rules.budgets.iter().map(|budget| gate(budget, &store));
    let gates = gates.collect::<Result<Vec<_>>>()?;
    let range = match options.last {
        Some(length) => super::last(length),
        None => super::resolve(&options.window, &store)?,
    };
    let report = judge(&store, range, &gates)?;
    if let Some(file) = &options.junit {
        let cases: Vec<Case> = report.findings.iter().map(case).collect();
        let suite = path.display().to_string();
        write_file(file, &junit(&suite, &cases, &gate_basis(&report)))?;
    }
    match options.json {
        true => print_answer(&format!("{:#}\n", gate_json(&report)))?,
        false => print_answer(&gate_text(&report))?,
    }
    Ok(outcome(&report))
}

fn gate(budget: &Budget, store: &Store) -> Result<Gate> {
    let (subject, task) = match &budget.subject {
        Subject::WakeUp(task) => (GateSubject::WakeUp, Some(task.clone())),
        Subject::Timer(task) => (GateSubject::Timer, task.clone()),
        Subject::Period(subject) => tracked(subject, store)?,
        _ => {
            let what = "a monitor's store has no samples of this budget";
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found(format!("'{}'", budget.text))
                .fix("judge 'wake-up of TASK' or 'timer of TASK', or a recording"));
        }
    };
    Ok(Gate {
        text: budget.text.clone(),
        subject,
        task,
        limit: budget.limit,
        over_ppm: budget.over_ppm,
        samples_min: budget.samples_min(),
    })
}

/// What a tracker measured, as in `block_device` or `block_device of TASK`.
fn tracked(subject: &str, store: &Store) -> Result<(GateSubject, Option<TaskPattern>)> {
    let (name, task) = match subject.split_once(" of ") {
        Some((name, task)) => (name.trim(), Some(TaskPattern::parse(task.trim())?)),
        None => (subject, None),
    };
    let kind = store
        .kind_named(name)?
        .filter(|kind| kind.phase().is_none());
    let kind = kind.ok_or_else(|| {
        let what = "a monitor's store has nothing of this budget's name";
        Error::new(ErrorKind::NotFound, what)
            .found(format!("'{name}'"))
            .fix(
                "'rtscope monitor --tracker block' counts block_device; 'rtscope monitor report' \
                 has the names",
            )
    })?;
    Ok((GateSubject::Tracked(kind), task))
}

fn case(finding: &GateFinding) -> Case {
    let outcome = match finding.judgement {
        GateJudgement::Held => CaseOutcome::Passed,
        GateJudgement::Broken => CaseOutcome::Failed,
        GateJudgement::Inconclusive(_) => CaseOutcome::Unsure,
    };
    (finding.gate.text.clone(), outcome, gate_reason(finding))
}

/// A broken budget goes before a doubt.
fn outcome(report: &GateReport) -> Outcome {
    let mut judgements = report.findings.iter().map(|finding| &finding.judgement);
    if judgements
        .clone()
        .any(|judgement| *judgement == GateJudgement::Broken)
    {
        Outcome::Exceeded
    } else if judgements.any(|judgement| *judgement != GateJudgement::Held) {
        Outcome::Inconclusive
    } else {
        Outcome::Fine
    }
}
