//! What the verdict claims: who is named, in which order, and when nobody may be.

use diagnosis::{Diagnosis, Query, TaskFilter, diagnose};
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
    let tasks = TaskFilter::from(Tid(VICTIM.tid));
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
         burner (tid 200, rt 60) ran ahead of it for 99.995 ms (100.0 %)."
    );
    assert!(verdict.conclusive);
    check_advice(
        &diagnosis,
        &[
            "taskset -pc 1 200",
            "chrt -f -p 49 200",
            "taskset -pc 0,1 100",
        ],
    );
    assert_eq!(diagnosis.groups[0].signature, "run_queue_wait:burner");
}

#[test]
fn another_cpu_is_offered_where_it_ran_nothing_of_the_victims_priority() {
    let check = |there: Task, offered: bool| {
        let trace = burning().at(600).cpu(1).run(there);
        let trace = interrupt(trace, 1000).at(101_000).block(HOG, VICTIM);
        let diagnosis = ask(trace, &victim());
        let verdict = diagnosis.verdict().expect("the victim was activated");
        let widened = verdict.advice.iter().any(|a| a.rule == "widen-affinity");
        assert_eq!(widened, offered, "{}", there.comm);
    };
    check(Task::fair(301, "link"), true);
    check(SECOND, false);
}

/// The commands that are advised, in order.
fn check_advice(diagnosis: &Diagnosis, expect: &[&str]) {
    let advice = &diagnosis.verdict().expect("something was late").advice;
    let commands: Vec<_> = advice
        .iter()
        .map(|advice| advice.command.as_str())
        .collect();
    assert_eq!(commands, expect);
}

#[test]
fn a_storm_of_short_tasks_of_one_name_is_one_culprit() {
    let mut trace = interrupt(burning(), 1000);
    let mut running = HOG;
    for tid in 400..420 {
        let next = Task::rt(tid, "sh [1]", 60);
        trace = trace.after(1000).block(running, next);
        running = next;
    }
    let diagnosis = ask(trace.after(1000).block(running, VICTIM), &victim());
    let verdict = diagnosis.verdict().expect("the victim was activated");
    assert_eq!(
        verdict.sentence,
        "victim (tid 100, rt 50) was late by 21.005 ms on CPU 0: \
         20 tasks called sh [1] (rt 60) ran ahead of it for 20.000 ms (95.2 %); \
         and burner (tid 200, rt 60) ran ahead of it for 1.000 ms (4.8 %)."
    );
    let storm = &verdict.culprits[0];
    assert_eq!((storm.tasks, storm.duration), (20, Duration::from_ms(20)));
    let ledger = &diagnosis.activations[0].ledger;
    let singles = ledger.terms.iter().filter(|term| {
        let task = term.kind.task();
        task.is_some_and(|task| task.comm == "sh [1]")
    });
    assert_eq!(singles.count(), 20, "the terms stay single");
    let sum: Duration = ledger.sums().iter().map(|sum| sum.duration).sum();
    assert_eq!(sum, ledger.total, "the sums add up");
    check_advice(
        &diagnosis,
        &[
            r"for tid in $(pgrep -w -x 'sh \[1\]'); do taskset -pc 1 $tid; done",
            r"for tid in $(pgrep -w -x 'sh \[1\]'); do chrt -f -p 49 $tid; done",
            "taskset -pc 0,1 100",
        ],
    );
}

#[test]
fn a_victim_that_nothing_can_go_below_is_advised_to_rise() {
    let behind = |victim: Task, hog: Task| {
        let trace = SyntheticTrace::new().at(10).cpu(1).block(FAIR, Task::IDLE);
        let trace = trace.cpu(0).at(20).block(victim, FAIR).at(500);
        let trace = trace.preempt(FAIR, hog).at(1000).irq(9, "eth0").after(2);
        let trace = trace.wake(victim).after(2).irq_end(9);
        let query = Query {
            tasks: TaskFilter::from(Tid(victim.tid)),
            ..Query::default()
        };
        ask(trace.at(9_000).block(hog, victim), &query)
    };
    let lowest = behind(Task::rt(100, "jackd", 1), HOG);
    check_advice(
        &lowest,
        &[
            "taskset -pc 1 200",
            "chrt -f -p 61 100",
            "taskset -pc 0,1 100",
        ],
    );
    let because = &lowest.groups[0].verdict.advice[1].because;
    assert!(because.contains("Check first"), "{because}");
    let top = Task::rt(200, "watchdog", 99);
    check_advice(
        &behind(Task::rt(100, "jackd", 1), top),
        &["taskset -pc 1 200", "taskset -pc 0,1 100"],
    );
    let polite = behind(Task::fair(100, "audio"), Task::nice(200, "burner", -20));
    check_advice(
        &polite,
        &[
            "taskset -pc 1 200",
            "renice -n 19 -p 200",
            "renice -n -20 -p 100",
        ],
    );
}

#[test]
fn advice_on_priorities_looks_at_the_whole_chain() {
    let irq_thread = |rt| Task::rt(400, "irq/9-eth0", rt);
    let check = |thread_rt: i32, victim_rt: i32, expect: &str| {
        let (thread, late) = (irq_thread(thread_rt), Task::rt(100, "victim", victim_rt));
        let trace = SyntheticTrace::new().shows_timers().at(10).cpu(1);
        let trace = trace.block(FAIR, Task::IDLE);
        let trace = trace.cpu(0).at(20).block(late, FAIR).at(500);
        let trace = trace.preempt(FAIR, HOG).at(1_000).irq(9, "eth0").after(2);
        let trace = trace.wake(thread).after(2).irq_end(9);
        let trace = trace.at(9_000).block(HOG, thread).after(20).wake(late);
        let diagnosis = ask(trace.after(5).block(thread, late), &victim());
        let verdict = diagnosis.verdict().expect("it was late");
        let ahead = format!("ahead of irq/9-eth0 (tid 400, rt {thread_rt}), which it waits for,");
        assert!(verdict.sentence.contains(&ahead), "{}", verdict.sentence);
        let advice = &verdict.advice;
        let priorities = ["lower-task", "raise-victim"];
        let advice = advice
            .iter()
            .filter(|advice| priorities.contains(&advice.rule));
        let commands: Vec<_> = advice.map(|advice| advice.command.as_str()).collect();
        assert_eq!(commands, [expect]);
    };
    // The hog is below the victim, and above the thread that wakes it.
    check(50, 70, "chrt -f -p 49 200");
    check(50, 40, "chrt -f -p 39 200");
    check(50, 1, "chrt -f -p 61 400 && chrt -f -p 61 100");
    // The victim is above already: raised to 61 it would be lowered.
    check(1, 70, "chrt -f -p 61 400");
}

#[test]
fn the_check_uses_the_watchs_own_threshold() {
    let check = |trace: SyntheticTrace, expect: &str| {
        let diagnosis = ask(trace, &victim());
        let advice = &diagnosis.groups[0].verdict.advice[0];
        assert_eq!(advice.then_check, expect);
    };
    let late = || interrupt(burning(), 1000).at(101_000).block(HOG, VICTIM);
    check(late(), "rtscope watch --task victim --over 50ms");
    let steps = [
        (1_002_000, 7, 0, VICTIM.tid),
        (101_000_000, 8, 0, VICTIM.tid),
    ];
    check(
        late().hit(1, VICTIM, HOG, &steps),
        "rtscope watch --task victim --over 1ms",
    );
}

#[test]
fn a_verdict_says_what_it_leaves_unexplained() {
    let trace = burning().hrtimer_start(0x1000, 1_000);
    let trace = trace.at(31_000).late_timer(1_000, HOG, 1, 0, &[]);
    let trace = trace.timer_irq().hrtimer_expire(0x1000).wake(VICTIM);
    let trace = trace.hrtimer_done(0x1000).timer_irq_end();
    let diagnosis = ask(trace.at(101_000).block(HOG, VICTIM), &victim());
    let verdict = &diagnosis.groups[0].verdict;
    assert!(verdict.conclusive);
    assert_eq!(
        verdict.sentence,
        "victim (tid 100, rt 50) was late by 100.000 ms on CPU 0: \
         burner (tid 200, rt 60) ran ahead of it for 69.999 ms (70.0 %); \
         30.000 ms are unexplained (a late timer while user code ran)."
    );
}

#[test]
fn what_the_hypervisor_may_have_done_accuses_no_handler() {
    // The timer's interrupt holds the CPU for 5 ms.
    let late = |trace: SyntheticTrace, us: i64| {
        let trace = trace.hrtimer_start(0x1000, 1_000).at(1_000).timer_irq();
        let trace = trace.hrtimer_expire(0x1000).wake(VICTIM);
        let trace = trace.hrtimer_done(0x1000).after(us).timer_irq_end();
        trace.after(2).preempt(HOG, VICTIM)
    };
    let check = |trace: SyntheticTrace, expect: Option<&str>| {
        let diagnosis = ask(trace, &victim());
        let verdict = &diagnosis.groups[0].verdict;
        assert_eq!(verdict.conclusive, expect.is_none(), "{}", verdict.sentence);
        assert!(
            verdict.sentence.contains(expect.unwrap_or("")),
            "{}",
            verdict.sentence
        );
    };
    let guest = || burning().environment("rtscope_virtualised", "1");
    check(late(burning(), 5_000), None);
    check(late(guest(), 5_000), Some("may have stood still for 5.00"));
    check(late(guest(), 200), None);
    let stolen = |us: i64| {
        late(guest(), 200)
            .at(9_000)
            .late_timer(8_000, HOG, 1, us, &[])
    };
    check(
        stolen(150),
        Some("up to 150.000 us of it may have gone to the hypervisor"),
    );
    check(stolen(50), None);
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

/// A watch's hit of a wait of 8 ms, in which events were left out for `lost_us` at its begin.
fn paused(lost_us: i64) -> SyntheticTrace {
    let trace = interrupt(burning(), 1000).lost(1_500, 1_500 + lost_us);
    let steps = [
        (1_000_000, 3, 0, 9),
        (1_002_000, 7, 0, VICTIM.tid),
        (9_000_000, 8, 0, VICTIM.tid),
    ];
    let trace = trace.at(2_600).preempt(HOG, SECOND).after(10);
    let trace = trace.block(SECOND, HOG).at(9_000).block(HOG, VICTIM);
    trace.hit(1, VICTIM, HOG, &steps)
}

#[test]
fn what_a_recorder_leaves_out_for_a_short_time_forbids_no_verdict_on_the_rest_of_a_hit() {
    check(paused(500), &["burner"], true);
    // More than a tenth.
    check(paused(900), &["burner"], false);
    // Without a watch nobody knows where it begins and ends.
    let trace = interrupt(burning(), 1000).lost(1_500, 2_000);
    let trace = trace.at(2_600).preempt(HOG, SECOND).after(10);
    let trace = trace.block(SECOND, HOG).at(9_000).block(HOG, VICTIM);
    check(trace, &["burner"], false);
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
fn a_trace_without_switches_is_refused_with_the_command_that_fixes_it() {
    let trace = SyntheticTrace::new().at(1).irq(9, "eth0").build();
    let error = diagnose(&trace, &Query::default()).expect_err("nothing to rest on");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error
            .fixed_by()
            .is_some_and(|fix| fix.starts_with("rtscope record"))
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
        interrupt(burning(), 1000)
            .at(5_000)
            .late_timer(4_900, HOG, 1, 900, &[])
            .at(9_000)
            .block(HOG, VICTIM),
        "up to 900.000 us of the 8.000 ms on CPU 0 went to the hypervisor",
    );
    check(burning().lost(600, 700), "events were lost in 1 place (");
    check(burning(), "the trace has no sched_waking");
    check(
        interrupt(burning(), 1000).at(9_000).timer_irq(),
        "outside the window",
    );
}
