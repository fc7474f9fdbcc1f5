//! Windows and CPUs that are asked for by themselves: their answers add up to those of the whole.

use std::collections::BTreeMap;

use crate::answers::{Answer, Answers, ThreadStates, Told, Wait};
use crate::prove::{Claim, same};
use crate::recording::{Recording, Wakes};
use crate::story::Happening;
use event::Cpu;
use testkit::{SyntheticTrace, Task};
use views::reports::ReportOptions;

/// What is asked of two parts, and of the whole.
fn check<K: Ord + Copy + std::fmt::Debug>(
    what: &str,
    parts: &[BTreeMap<K, i64>],
    whole: &BTreeMap<K, i64>,
) -> Claim {
    let mut sums = BTreeMap::new();
    for (key, ns) in parts.iter().flatten() {
        *sums.entry(*key).or_default() += ns;
    }
    let keys = sums.keys().chain(whole.keys());
    let mut keys: Vec<K> = keys.copied().collect();
    keys.dedup();
    keys.into_iter().try_for_each(|key| {
        let of = |all: &BTreeMap<K, i64>| all.get(&key).copied().unwrap_or(0);
        same(
            &format!("{key:?}, {what}: in parts, in all"),
            of(&sums),
            of(whole),
        )
    })
}

/// A quantity of each thread.
fn of_threads(answers: &Answers, of: fn(&ThreadStates) -> i64) -> BTreeMap<i32, i64> {
    let threads = answers.threads();
    threads.map(|(tid, states)| (*tid, of(states))).collect()
}

/// A quantity of a thread.
type Quantity = (&'static str, fn(&ThreadStates) -> i64);

/// All of them; waits for a CPU last.
const QUANTITIES: [Quantity; 5] = [
    ("own run", |states| states.run_ns),
    ("calls", |states| states.call_ns),
    ("interrupted", |states| states.interrupted_ns),
    ("blocked", |states| states.blocked_ns),
    ("waiting", |states| states.waiting_ns),
];

/// What threads and CPUs did in the parts adds up to what they did in all.
fn add_up(parts: &[Answers], whole: &Answers, quantities: &[Quantity]) -> Claim {
    for (what, of) in quantities {
        let parts: Vec<_> = parts.iter().map(|part| of_threads(part, *of)).collect();
        check(what, &parts, &of_threads(whole, *of))?;
    }
    let idle = |answers: &Answers| -> BTreeMap<u32, i64> {
        let cpus = answers.cpus.iter();
        cpus.map(|(cpu, states)| (*cpu, states.idle_ns)).collect()
    };
    let busy = |answers: &Answers| -> BTreeMap<u32, i64> {
        let cpus = answers.cpus.iter();
        cpus.map(|(cpu, states)| (*cpu, states.busy_ns())).collect()
    };
    let of_parts =
        |of: &dyn Fn(&Answers) -> BTreeMap<u32, i64>| -> Vec<_> { parts.iter().map(of).collect() };
    check("idle", &of_parts(&idle), &idle(whole))?;
    check("busy", &of_parts(&busy), &busy(whole))?;
    let resources = |answers: &Answers| answers.busy_ns.clone();
    check("busy in resources", &of_parts(&resources), &whole.busy_ns)
}

pub fn the_cpus_asked_one_by_one_add_up_to_all(told: &impl Told) -> Claim {
    let trace = told.opened();
    let whole = told.answers()?;
    let of_cpu = |cpu: &Cpu| {
        let options = ReportOptions {
            cpus: vec![cpu.0],
            ..told.options(&trace)
        };
        Answers::asked(&trace, &options)
    };
    // Where all happens at one instant, no CPU has any time, and is in no table.
    let parts: Vec<Answers> = trace
        .info()
        .cpus
        .iter()
        .map(of_cpu)
        .collect::<Answer<_>>()?;
    add_up(&parts, &whole, &QUANTITIES)?;
    let behind: Vec<_> = parts.iter().map(|part| part.behind_ns.clone()).collect();
    check("dependency", &behind, &whole.behind_ns)?;
    let waits = |answers: &Answers| -> Vec<Wait> { answers.waits.clone() };
    let mut listed: Vec<Wait> = parts.iter().flat_map(waits).collect();
    let mut expect = waits(&whole);
    listed.sort();
    expect.sort();
    same(
        "waits that are listed: by CPU, in all",
        format!("{listed:?}"),
        format!("{expect:?}"),
    )
}

/// From when on each CPU had two switches: who had it before the first is told behind the run that
/// this begins.
fn all_switched_ns(recording: &Recording) -> Option<i64> {
    let second = |cpu: u32| {
        let mut switches = recording
            .kept
            .iter()
            .filter(|record| record.cpu == cpu && matches!(record.what, Happening::Switch { .. }));
        switches.nth(1).map(|record| record.at_ns)
    };
    let mut all = (0..recording.truth.cpus() as u32).map(second);
    all.try_fold(i64::MIN, |last_ns, second_ns| Some(last_ns.max(second_ns?)))
}

/// What is asked for ends with an event, and so does its begin: all before it, it, and all behind
/// it. Of waits that are open at an end `dependency` tells none, and `states` none
/// for an idle CPU. Before each CPU had its switches, nobody knows yet who
/// has it.
pub fn windows_that_touch_add_up_to_all(recording: &Recording) -> Claim {
    let (Some(asked), Some(all)) = (recording.asked, recording.window()) else {
        return Ok(());
    };
    if recording.wakes != Wakes::Both {
        // What a first event found its task doing is told by what comes behind it.
        return Ok(());
    }
    let from_ns = all_switched_ns(recording).map(|ns| ns.max(asked.begin_ns));
    let mut events = recording.kept.iter().map(|record| record.at_ns);
    let cut_ns = from_ns.and_then(|from_ns| events.find(|at_ns| *at_ns >= from_ns));
    let Some(cut_ns) = cut_ns.filter(|at_ns| all.begin_ns < *at_ns && *at_ns < all.end_ns) else {
        return Ok(());
    };
    let trace = recording.trace();
    let part = |begin_ns: Option<i64>, end_ns: Option<i64>| {
        let options = ReportOptions {
            begin_ns,
            end_ns,
            ..ReportOptions::default()
        };
        Answers::asked(&trace, &options)
    };
    let parts = [part(None, Some(cut_ns))?, part(Some(cut_ns), None)?];
    let no_waits = &QUANTITIES[..QUANTITIES.len() - 1];
    add_up(&parts, &part(None, None)?, no_waits)
}

#[test]
fn a_window_that_begins_in_a_wait_has_only_those_that_had_the_cpu_since() {
    let [vic, hog] = [Task::rt(101, "vic", 50), Task::rt(102, "hog", 60)];
    let [waker, waits] = [Task::fair(103, "waker"), Task::fair(104, "waits")];
    let trace = SyntheticTrace::new().cpus(2).at(0).cpu(1).run(waker);
    let trace = trace.cpu(0).at(1_000).run(vic).cpu(1).at(2_000);
    let trace = trace.wake_for(waits, 0).cpu(0).at(5_000);
    let trace = trace.preempt(vic, hog).at(6_000).block(hog, vic).cpu(1);
    let trace = trace.at(9_000).timer_irq().after(1).timer_irq_end();
    let trace = trace.cpu(0).at(10_000).block(vic, waits);
    let trace = trace.at(11_000).block(waits, Task::IDLE).build();
    let behind_us = |begin_us: i64| {
        let options = ReportOptions {
            begin_ns: Some(begin_us * 1_000),
            ..ReportOptions::default()
        };
        let answers = Answers::asked(&trace, &options).expect("all reports answer");
        [vic, hog].map(|task| {
            let ns = answers.behind_ns.get(&(waits.tid, Some(task.tid)));
            ns.map_or(0, |ns| ns / 1_000)
        })
    };
    assert_eq!(behind_us(0), [7_000, 1_000]);
    assert_eq!(behind_us(9_000), [1_000, 0]);
    assert_eq!(behind_us(5_000), [4_000, 1_000]);
}
