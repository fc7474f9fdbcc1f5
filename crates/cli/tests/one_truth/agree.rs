//! Every two views of one quantity are equal.

use std::collections::{BTreeMap, BTreeSet};

use diagnosis::{Diagnosis, Grade, LateActivation, Query, StepKind, TaskFilter, diagnose};
use event::{Duration, TimeRange};
use trace::Trace;
use views::{BudgetFinding, Rules, check_budgets};

use crate::answers::{Answers, Wait};
use crate::prove::{Claim, same};
use crate::recording::Recording;
use crate::truth::{Doing, Window};

/// The diagnosis of every task; none where the trace has nothing to diagnose.
pub fn diagnosis(trace: &Trace, threshold: Option<Duration>) -> Option<Diagnosis> {
    let tasks = TaskFilter::parse(&["*"]).expect("a pattern");
    let query = Query {
        tasks,
        threshold,
        worst: 0,
        ..Query::default()
    };
    diagnose(trace, &query).ok()
}

/// What `check` says about the wake-ups of the threads of this name.
pub fn checked(trace: &Trace, name: &str, limit: &str) -> Result<BudgetFinding, String> {
    let rules = Rules::parse(&format!("wake-up of {name} within {limit}"));
    let rules = rules.map_err(|error| error.to_string())?;
    let checked = check_budgets(trace, &rules, TimeRange::ALL);
    let findings = checked.map_err(|error| error.to_string())?.findings;
    findings.into_iter().next().ok_or("no finding".to_owned())
}

pub fn a_thread_has_the_same_time_in_cputop_and_states(recording: &Recording) -> Claim {
    let answers = Answers::of(&recording.trace())?;
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

pub fn threads_run_as_long_as_their_cpus_in_states(recording: &Recording) -> Claim {
    let answers = Answers::of(&recording.trace())?;
    let threads = answers.threads.iter().filter(|(tid, _)| **tid != 0);
    let of_threads: i64 = threads
        .map(|(_, states)| states.run_ns + states.call_ns)
        .sum();
    let cpus = answers.cpus.values();
    let of_cpus: i64 = cpus.map(|states| states.run_ns + states.call_ns).sum();
    same("all threads, all CPUs in states", of_threads, of_cpus)
}

pub fn a_thread_waits_for_a_cpu_as_long_in_dependency_as_in_states(recording: &Recording) -> Claim {
    let answers = Answers::of(&recording.trace())?;
    answers.threads().try_for_each(|(tid, states)| {
        let end_ns = answers.window.end_ns;
        let last = Window {
            begin_ns: end_ns - 1,
            end_ns,
        };
        let waits = |doing: &Doing| matches!(doing, Doing::Waiting { .. });
        if recording.truth.task_ns(*tid, last, waits) > 0 {
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
fn diagnosed(diagnosis: &Diagnosis) -> BTreeMap<Wait, bool> {
    let wait = |late: &LateActivation| {
        let tid = late.task.tid.0;
        let mut wakings = late.steps.iter().rev();
        let waking = wakings.find(|step| step.kind == StepKind::Waking && step.id == tid)?;
        let last = late.steps.last()?;
        let wait = Wait {
            tid,
            begin_ns: waking.time.as_ns(),
            end_ns: late.end.as_ns(),
        };
        let came = last.kind == StepKind::SwitchIn;
        came.then_some((wait, late.ledger.grade == Grade::Complete))
    };
    diagnosis.activations.iter().filter_map(wait).collect()
}

pub fn diagnose_splits_the_waits_that_schedlog_lists(recording: &Recording) -> Claim {
    let trace = recording.trace();
    let answers = Answers::of(&trace)?;
    let Some(diagnosis) = diagnosis(&trace, None) else {
        return Ok(());
    };
    let split = diagnosed(&diagnosis);
    for wait in &answers.waits {
        if !split.contains_key(wait) {
            return Err(format!("only in schedlog: {wait:?}"));
        }
    }
    // What is not complete is listed as such, and only there.
    for (wait, _) in split.iter().filter(|(_, is_complete)| **is_complete) {
        if !answers.waits.contains(wait) {
            return Err(format!("only in diagnose: {wait:?}"));
        }
    }
    Ok(())
}

pub fn counts_and_the_worst_wait_are_the_same_in_all_verbs(recording: &Recording) -> Claim {
    let trace = recording.trace();
    let answers = Answers::of(&trace)?;
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

pub fn check_counts_the_wakeups_that_schedstats_counts(recording: &Recording) -> Claim {
    let trace = recording.trace();
    let answers = Answers::of(&trace)?;
    // Names change hands and threads, so that only the sum over all names can be compared.
    let names: BTreeSet<&str> = names(recording);
    let (mut samples, mut worst_ns) = (0, 0);
    for name in names {
        let finding = checked(&trace, name, "100s")?;
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
