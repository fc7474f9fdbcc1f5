//! What the verdict claims: who is named, in which order, and when nobody may be.

use analysis::{Diagnosis, Query, TaskFilter, diagnose};
use event::{Duration, ErrorKind, Tid};
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const HOG: Task = Task::rt(200, "burner", 60);
const SECOND: Task = Task::rt(201, "second burner", 70);
const FAIR: Task = Task::fair(300, "compile");

fn ask(trace: SyntheticTrace, query: &Query) -> Diagnosis {
    diagnose(&trace.build(), query).expect("the trace can be diagnosed")
}

fn victim() -> Query {
    let tasks = TaskFilter {
        tids: vec![Tid(VICTIM.tid)],
        ..TaskFilter::default()
    };
    Query {
        tasks,
        ..Query::default()
    }
}

/// The verdict names exactly these tasks, in this order, or says that nothing can be said.
fn check(trace: SyntheticTrace, expect: &[&str], conclusive: bool) {
    let diagnosis = ask(trace, &victim());
    let verdict = diagnosis.verdict().expect("the victim was activated");
    let named: Vec<_> = verdict
        .culprits
        .iter()
        .filter_map(|c| c.kind.task())
        .collect();
    let named: Vec<_> = named.iter().map(|task| task.comm.as_str()).collect();
    assert_eq!(named, expect, "{}", verdict.sentence);
    assert_eq!(verdict.conclusive, conclusive, "{}", verdict.sentence);
}

/// An interrupt at `us` on CPU 0 wakes the victim.
fn interrupt(trace: SyntheticTrace, us: i64) -> SyntheticTrace {
    trace
        .cpu(0)
        .at(us)
        .irq(9, "eth0")
        .after(2)
        .wake(VICTIM)
        .after(2)
        .irq_end(9)
}

fn burning() -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(10).cpu(1).block(FAIR, Task::IDLE);
    trace
        .cpu(0)
        .at(20)
        .block(VICTIM, FAIR)
        .at(500)
        .preempt(FAIR, HOG)
}

#[test]
fn one_hog_is_named_with_its_length_and_share_in_one_sentence() {
    let trace = interrupt(burning(), 1000).at(101_000).block(HOG, VICTIM);
    let diagnosis = ask(trace, &victim());
    let verdict = diagnosis.verdict().expect("the victim was activated");
    assert_eq!(
        verdict.sentence,
        "victim (tid 100, rt 50) was late by 100.000 ms on CPU 0: \
         burner (tid 200, rt 60) ran ahead of it on CPU 0 for 99.995 ms (100.0 %)."
    );
    assert!(verdict.conclusive);
    let commands: Vec<_> = verdict
        .advice
        .iter()
        .map(|advice| advice.command.as_str())
        .collect();
    assert_eq!(commands, ["taskset -apc 1 200", "chrt -r -p 49 200"]);
    assert_eq!(diagnosis.groups[0].signature, "run_queue_wait:burner");
}

#[test]
fn two_hogs_are_named_in_the_order_of_their_share() {
    let trace = interrupt(burning(), 1000).at(40_000).preempt(HOG, SECOND);
    let trace = trace
        .at(101_000)
        .block(SECOND, HOG)
        .at(102_000)
        .block(HOG, VICTIM);
    check(trace, &["second burner", "burner"], true);
}

#[test]
fn a_second_hog_of_a_small_share_is_named_when_it_ran_for_long() {
    let trace = interrupt(burning(), 1000).at(2_000).preempt(HOG, SECOND);
    let trace = trace
        .at(2_900)
        .block(SECOND, HOG)
        .at(301_000)
        .block(HOG, VICTIM);
    check(trace, &["burner", "second burner"], true);
}

#[test]
fn lost_events_forbid_a_verdict() {
    let trace = interrupt(burning(), 1000)
        .lost(2_000, 3_000)
        .at(4_000)
        .preempt(FAIR, HOG);
    check(trace.at(9_000).block(HOG, VICTIM), &["burner"], false);
}

#[test]
fn an_open_wait_is_told_as_a_wait() {
    let trace = interrupt(burning(), 1000).at(9_000).timer_irq();
    let diagnosis = ask(trace, &victim());
    let verdict = diagnosis.verdict().expect("the victim waits");
    assert!(
        verdict
            .sentence
            .starts_with("victim (tid 100, rt 50) still waited 8.000 ms on CPU 0")
    );
    assert!(verdict.conclusive);
}

#[test]
fn activations_of_one_cause_make_one_group_whatever_their_tids() {
    let other = Task::rt(999, "burner", 60);
    let trace = interrupt(burning(), 1000).at(9_000).block(HOG, VICTIM);
    let trace = trace.at(9_500).block(VICTIM, other);
    let trace = interrupt(trace, 10_000).at(15_000).block(other, VICTIM);
    let diagnosis = ask(trace, &victim());
    assert_eq!(diagnosis.groups.len(), 1);
    assert_eq!(diagnosis.groups[0].members, [0, 1]);
}

#[test]
fn threshold_number_and_order_choose_the_activations() {
    let trace = || -> SyntheticTrace {
        let mut trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR);
        for (place, lateness_us) in [100, 300, 200].into_iter().enumerate() {
            let begin_us = 1_000 * (place as i64 + 1);
            trace = trace.at(begin_us - 50).preempt(FAIR, HOG);
            trace = interrupt(trace, begin_us)
                .at(begin_us + lateness_us)
                .block(HOG, VICTIM);
            trace = trace.after(10).block(VICTIM, FAIR);
        }
        trace
    };
    let latencies = |query: Query| -> Vec<i64> {
        let found = ask(trace(), &query).activations;
        found
            .iter()
            .map(|late| late.latency().as_ns() / 1_000)
            .collect()
    };
    assert_eq!(latencies(victim()), [300, 200, 100]);
    assert_eq!(
        latencies(Query {
            worst: 1,
            ..victim()
        }),
        [300]
    );
    let over = |us| Query {
        threshold: Some(Duration::from_us(us)),
        worst: 0,
        ..victim()
    };
    assert_eq!(latencies(over(200)), [300, 200]);
    assert_eq!(latencies(over(301)), [0i64; 0]);
    assert_eq!(
        latencies(Query {
            cpus: vec![event::Cpu(1)],
            ..victim()
        }),
        [0i64; 0]
    );
}

#[test]
fn a_hit_is_reproduced_exactly_and_the_skew_between_the_sources_makes_no_terms() {
    // The kernel trace stamps each event up to 2 µs after the hit's own steps.
    let trace = SyntheticTrace::new()
        .at(10)
        .cpu(1)
        .block(FAIR, Task::IDLE)
        .cpu(0)
        .at(20);
    let trace = trace.block(VICTIM, Task::IDLE).at(500).run(HOG);
    let trace = trace
        .at_ns(1_003_400)
        .timer_irq()
        .at_ns(1_005_000)
        .waking(VICTIM, 0);
    let trace = trace
        .at_ns(1_006_000)
        .wakeup(VICTIM, 0)
        .at_ns(1_008_000)
        .timer_irq_end();
    let trace = trace.at_ns(9_001_700).block(HOG, VICTIM);
    let steps = [
        (1_001_000, 1, 0, 7),
        (1_003_000, 3, 0, -1),
        (1_004_000, 4, 0, 7),
        (1_004_500, 7, 0, VICTIM.tid),
        (9_000_000, 8, 0, VICTIM.tid),
    ];
    let trace = trace.at_ns(9_000_000).hit(1, VICTIM, HOG, &steps);
    let diagnosis = ask(trace, &Query::default());
    let late = &diagnosis.activations[0];
    let hit = late.hit.as_ref().expect("the hit is there");
    let found: Vec<_> = hit
        .steps
        .iter()
        .map(|s| (s.time.as_ns(), s.kind as u8, s.cpu.0, s.id))
        .collect();
    assert_eq!(found, steps);
    assert_eq!(late.steps, hit.steps);
    assert_eq!(
        (late.origin.as_ns(), late.end.as_ns()),
        (1_001_000, 9_000_000)
    );
    let deltas: Vec<_> = late
        .checks
        .iter()
        .map(|check| check.delta.map(Duration::as_ns))
        .collect();
    assert_eq!(deltas, [Some(400), None, Some(500), Some(1_700)]);
    let terms: Vec<_> = late
        .ledger
        .terms
        .iter()
        .map(|t| (t.kind.tag(), t.duration.as_ns()))
        .collect();
    assert_eq!(terms[0], ("run_queue_wait", 7_992_000));
    assert_eq!(
        terms.iter().map(|(_, ns)| ns).sum::<i64>(),
        late.latency().as_ns()
    );
    let tags: Vec<_> = terms.iter().map(|(tag, _)| *tag).collect();
    assert_eq!(
        tags,
        [
            "run_queue_wait",
            "hardirq",
            "unexplained",
            "wakeup_delivery"
        ]
    );
}

#[test]
fn a_trace_without_switches_is_refused_with_the_command_that_mends_it() {
    let trace = SyntheticTrace::new().at(1).irq(9, "eth0").build();
    let error = diagnose(&trace, &Query::default()).expect_err("nothing to rest on");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error
            .mended_by()
            .is_some_and(|mend| mend.starts_with("rtscope record"))
    );
}

#[test]
fn what_makes_a_result_doubtful_is_said_with_its_remedy() {
    let check = |trace: SyntheticTrace, expect: &str| {
        let diagnosis = ask(trace, &victim());
        let found = diagnosis
            .warnings
            .iter()
            .find(|warning| warning.what.contains(expect));
        assert!(
            found.is_some_and(|found| !found.remedy.is_empty()),
            "{:?}",
            diagnosis.warnings
        );
    };
    check(
        burning().environment("rtscope_virtualised", "1"),
        "the machine is virtual",
    );
    check(
        burning().late_timer(100, HOG, 1, 30, &[]),
        "the hypervisor took 30.000 us",
    );
    check(burning().lost(600, 700), "events were lost in 1 places");
    check(burning(), "the trace has no sched_waking");
    check(
        interrupt(burning(), 1000).at(9_000).timer_irq(),
        "outside the window",
    );
}
