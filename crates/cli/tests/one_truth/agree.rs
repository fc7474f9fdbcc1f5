//! Every two views of one quantity are equal.

use std::collections::{BTreeMap, BTreeSet};

use diagnosis::{Diagnosis, Grade, LateActivation, Query, StepKind, TaskFilter, diagnose};
use event::{Duration, TimeRange};
use trace::Trace;
use views::{BudgetFinding, Rules, check_budgets};

use crate::answers::{Answers, Told, Wait};
use crate::prove::{Claim, same};
use crate::recording::{Recording, Wakes};

/// The diagnosis of every task; none where the trace has nothing to diagnose.
pub fn diagnosis(trace: &Trace, threshold: Option<Duration>) -> Option<Diagnosis> {
    diagnosis_in(trace, threshold, TimeRange::ALL)
}

/// The same of a window.
pub fn diagnosis_in(
    trace: &Trace,
    threshold: Option<Duration>,
    range: TimeRange,
) -> Option<Diagnosis> {
    let tasks = TaskFilter::parse(&["*"]).expect("a pattern");
    let query = Query {
        tasks,
        threshold,
        range,
        worst: 0,
        ..Query::default()
    };
    diagnose(trace, &query).ok()
}

/// What `check` says about the wake-ups of the threads of this name.
pub fn checked(trace: &Trace, name: &str, limit: &str) -> Result<BudgetFinding, String> {
    found(trace, &format!("wake-up of {name} within {limit}"))
}

/// What `check` finds of one rule.
pub fn found(trace: &Trace, rule: &str) -> Result<BudgetFinding, String> {
    found_in(trace, rule, TimeRange::ALL)
}

/// The same of a window.
pub fn found_in(trace: &Trace, rule: &str, range: TimeRange) -> Result<BudgetFinding, String> {
    let rules = Rules::parse(rule);
    let rules = rules.map_err(|error| error.to_string())?;
    let checked = check_budgets(trace, &rules, range);
    let findings = checked.map_err(|error| error.to_string())?.findings;
    findings.into_iter().next().ok_or("no finding".to_owned())
}

pub fn a_thread_has_the_same_time_in_cputop_and_states(told: &impl Told) -> Claim {
    let answers = told.answers()?;
    let tids: BTreeSet<_> = answers
        .top_ns
        .keys()
        .chain(answers.threads.keys())
        .collect();
    tids.into_iter()
        .filter(|tid| **tid > 0)
        .try_for_each(|tid| {
            let top_ns = answers.top_ns.get(tid).copied().unwrap_or(0);
            let states_ns = answers
                .threads
                .get(tid)
                .map_or(0, |states| states.on_cpu_ns());
            same(&format!("thread {tid}: cputop, states"), top_ns, states_ns)
        })
}

pub fn threads_run_as_long_as_their_cpus_in_states(told: &impl Told) -> Claim {
    let answers = told.answers()?;
    let threads = answers.threads.iter().filter(|(tid, _)| **tid != 0);
    let of_threads: i64 = threads
        .map(|(_, states)| states.run_ns + states.call_ns)
        .sum();
    let cpus = answers.cpus.values();
    let of_cpus: i64 = cpus.map(|states| states.run_ns + states.call_ns).sum();
    same("all threads, all CPUs in states", of_threads, of_cpus)
}

pub fn a_thread_waits_for_a_cpu_as_long_in_dependency_as_in_states(told: &impl Told) -> Claim {
    let answers = told.answers()?;
    answers.threads().try_for_each(|(tid, states)| {
        if told.waits_at(*tid, answers.window.end_ns) {
            // A wait that is open at the end has nobody yet who left the CPU to it.
            return Ok(());
        }
        let behind = answers
            .behind_ns
            .iter()
            .filter(|((waiter, _), _)| waiter == tid);
        let behind_ns: i64 = behind.map(|(_, ns)| ns).sum();
        same(
            &format!("thread {tid}: dependency, states"),
            behind_ns,
            states.waiting_ns,
        )
    })
}

/// The waits from wake-up to switch-in that a diagnosis splits into terms, with whether all of
/// their time is recorded.
fn diagnosed(trace: &Trace, diagnosis: &Diagnosis) -> BTreeMap<Wait, bool> {
    let wait = |late: &LateActivation| {
        let tid = late.task.tid.0;
        let mut wakings = late.steps.iter().rev();
        let waking = wakings.find(|step| step.kind == StepKind::Waking && step.id == tid)?;
        let last = late.steps.last()?;
        let wait = Wait {
            tid,
            begin_ns: trace.wall_ns(waking.time),
            end_ns: trace.wall_ns(late.end),
        };
        let came = last.kind == StepKind::SwitchIn;
        came.then_some((wait, late.ledger.grade == Grade::Complete))
    };
    diagnosis.activations.iter().filter_map(wait).collect()
}

pub fn diagnose_splits_the_waits_that_schedlog_lists(told: &impl Told) -> Claim {
    let trace = told.opened();
    let answers = told.answers()?;
    let Some(diagnosis) = diagnosis_in(&trace, None, told.range()) else {
        return Ok(());
    };
    let split = diagnosed(&trace, &diagnosis);
    let listed: BTreeSet<&Wait> = answers.waits.iter().collect();
    if let Some(wait) = answers.waits.iter().find(|wait| !split.contains_key(wait)) {
        return Err(format!("only in schedlog: {wait:?}"));
    }
    // What is not complete is listed as such, and only there.
    let mut complete = split.iter().filter(|(_, is_complete)| **is_complete);
    match complete.find(|(wait, _)| !listed.contains(wait)) {
        Some((wait, _)) => Err(format!("only in diagnose: {wait:?}")),
        None => Ok(()),
    }
}

pub fn counts_and_the_worst_wait_are_the_same_in_all_verbs(told: &impl Told) -> Claim {
    let answers = told.answers()?;
    let mut listed: BTreeMap<i32, (u64, i64)> = BTreeMap::new();
    for wait in &answers.waits {
        let (count, worst_ns) = listed.entry(wait.tid).or_default();
        *count += 1;
        *worst_ns = (*worst_ns).max(wait.end_ns - wait.begin_ns);
    }
    for (tid, (count, worst_ns)) in &listed {
        let stats = answers.stats.get(tid).copied().unwrap_or_default();
        same(
            &format!("thread {tid}: schedlog, schedstats"),
            *count,
            stats.count,
        )?;
        let what = format!("thread {tid}: the worst in schedlog, schedstats");
        same(&what, *worst_ns, stats.max_ns)?;
    }
    let stats: u64 = answers.stats.values().map(|stats| stats.count).sum();
    same(
        "all in schedlog, schedstats",
        answers.waits.len() as u64,
        stats,
    )?;
    let worst_ns = listed
        .values()
        .map(|(_, worst_ns)| *worst_ns)
        .max()
        .unwrap_or(0);
    let top_ns = answers
        .longest
        .first()
        .map_or(0, |wait| wait.end_ns - wait.begin_ns);
    same("the worst in schedlog, schedtop", worst_ns, top_ns)
}

pub fn check_counts_the_wakeups_that_schedstats_counts(told: &impl Told) -> Claim {
    let trace = told.opened();
    let answers = told.answers()?;
    // Names change hands and threads, so that only the sum over all names can be compared.
    let (mut samples, mut worst_ns) = (0, 0);
    for name in told.names() {
        let rule = format!("wake-up of {name} within 100s");
        let finding = found_in(&trace, &rule, told.range())?;
        samples += finding.samples;
        let worst = finding.worst.map_or(0, |range| range.duration().as_ns());
        worst_ns = worst_ns.max(worst);
    }
    let counted: u64 = answers.stats.values().map(|stats| stats.count).sum();
    same("all wake-ups in check, schedstats", samples, counted)?;
    let worst = answers.stats.values().map(|stats| stats.max_ns).max();
    same(
        "the worst in check, schedstats",
        worst_ns,
        worst.unwrap_or(0),
    )
}

/// All names that threads have in a recording.
pub fn names(recording: &Recording) -> BTreeSet<&'static str> {
    let kept = recording.kept.iter().chain(&recording.hidden);
    kept.flat_map(|record| record.names()).collect()
}

/// What all verbs say, as one text.
fn said(trace: &Trace) -> Result<String, String> {
    let answers = format!("{:?}", Answers::of(trace)?);
    let diagnosed = diagnosis(trace, None).map(|found| format!("{:?}", found.activations));
    Ok(answers + &diagnosed.unwrap_or_default())
}

pub fn what_perf_recorded_says_what_lttng_says(recording: &Recording) -> Claim {
    let lttng = said(&recording.trace())?;
    same("LTTng, perf", lttng, said(&recording.trace_of_perf())?)
}

pub fn a_wake_up_event_that_never_happens_changes_nothing(recording: &Recording) -> Claim {
    let (absent, like) = match recording.wakes {
        Wakes::Both => return Ok(()),
        Wakes::OnlyWaking => ("sched_wakeup", "sched_waking"),
        Wakes::OnlyWakeup => ("sched_waking", "sched_wakeup"),
    };
    let without = said(&recording.trace())?;
    let declared = recording.trace_with(absent, like);
    same("not declared, declared", without, said(&declared)?)
}
