//! `check` judges a response as `diagnose` does: from the origin that the events prove, and through
//! stops. What may have begun with whom neither knows, neither calls in time.

use diagnosis::{Query, TaskFilter, Until, diagnose};
use event::{Duration, Instant, Tid, TimeRange};
use testkit::{SyntheticTrace, Task};
use views::{BudgetFinding, Checked, Judgement, Rules, check_budgets};

const LOOP: Task = Task::rt(100, "loop", 50);
const HOP: Task = Task::rt(150, "hop", 60);
const FAIR: Task = Task::fair(200, "producer");
const STOPPER: Task = Task::fair(300, "stopper");
const TRACED: i64 = 8;
const SIGNALLED: i64 = 4;
const LIMIT: &str = "response of loop within 3ms";

/// What is found of a budget.
fn judged(trace: &SyntheticTrace, rule: &str, range: TimeRange) -> BudgetFinding {
    let rules = Rules::parse(rule).expect("a rule");
    let trace = trace.clone().build();
    let mut checked = check_budgets(&trace, &rules, range).expect("it is read");
    checked.findings.remove(0)
}

/// The lengths of what is late in microseconds, the same for both, and what `check` says of it.
#[track_caller]
fn check(trace: &SyntheticTrace, range: TimeRange, late_us: &[i64], expect: Judgement) {
    let query = Query {
        tasks: TaskFilter::from(Tid(LOOP.tid)),
        until: Until::Block,
        threshold: Some(Duration::from_ms(3)),
        range,
        ..Query::default()
    };
    let found = diagnose(&trace.clone().build(), &query).expect("it is diagnosed");
    let lengths = found.activations.iter().map(|late| late.latency());
    let lengths: Vec<i64> = lengths.map(|length| length.as_ns() / 1_000).collect();
    assert_eq!(lengths, late_us, "{found:?}");
    let budget = judged(trace, LIMIT, range);
    assert_eq!(budget.judgement, expect, "{budget:?}");
    assert_eq!(budget.over as usize, late_us.len(), "{budget:?}");
    let all = budget.samples + budget.open;
    assert_eq!(all, found.basis.activations, "{budget:?}");
    assert_eq!(budget.unknown_wakers, found.basis.unknown_wakers);
    let worst = budget.worst.map(|worst| worst.duration().as_ns() / 1_000);
    assert!(late_us.is_empty() || worst == late_us.first().copied());
}

/// `waker` is woken by an interrupt at 1000 us, works for 5 ms and wakes the loop, which works
/// for 100 us.
fn handed_on_by(waker: Task) -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(10).block(LOOP, Task::IDLE);
    let trace = trace.at(1_000).timer_irq().wake(waker).after(1);
    let trace = trace.timer_irq_end().at(1_010).run(waker).at(6_010);
    let trace = trace.wake(LOOP).at(6_020).block(waker, LOOP);
    trace.at(6_120).block(LOOP, Task::IDLE).at(20_000).nmi(1)
}

/// What ends up to an instant in microseconds.
fn up_to(end_us: i64) -> TimeRange {
    TimeRange {
        begin: Instant::MIN,
        end: Instant::from_ns(end_us * 1_000 + 1),
    }
}

#[test]
fn a_response_begins_where_the_chain_does_that_led_to_it() {
    let trace = handed_on_by(HOP);
    check(&trace, TimeRange::ALL, &[5_120], Judgement::Broken);
    // It works still, or waits still, at the end of what is looked at.
    check(&trace, up_to(6_100), &[5_100], Judgement::Broken);
    check(&trace, up_to(6_015), &[5_015], Judgement::Broken);
    // Its wake-up and its own work are what they were.
    let wake_up = judged(&trace, "wake-up of loop within 3ms", TimeRange::ALL);
    assert_eq!(
        wake_up.worst.expect("one").duration(),
        Duration::from_us(10)
    );
    let work = judged(&trace, "work of loop within 3ms", TimeRange::ALL);
    assert_eq!(work.worst.expect("one").duration(), Duration::from_us(100));
    // A fair task hands nothing on.
    check(&handed_on_by(FAIR), TimeRange::ALL, &[], Judgement::Held);
}

#[test]
fn a_response_begins_no_earlier_than_the_sleep_of_its_thread() {
    // The loop runs beside the hop, on another CPU, and sleeps for 2 ms only.
    let trace = SyntheticTrace::new()
        .at(0)
        .cpu(1)
        .run(LOOP)
        .cpu(0)
        .at(1_000);
    let trace = trace.timer_irq().wake(HOP).after(1).timer_irq_end();
    let trace = trace
        .at(1_010)
        .run(HOP)
        .at(2_900)
        .cpu(1)
        .block(LOOP, Task::IDLE);
    let trace = trace
        .cpu(0)
        .at(4_900)
        .waking(LOOP, 1)
        .after(1)
        .wakeup(LOOP, 1);
    let trace = trace.cpu(1).at(4_910).run(LOOP).after(100);
    let trace = trace.block(LOOP, Task::IDLE).at(20_000).nmi(1);
    check(&trace, TimeRange::ALL, &[], Judgement::Held);
    let judged = judged(&trace, LIMIT, TimeRange::ALL);
    let worst = judged.worst.expect("one").duration();
    assert_eq!(worst, Duration::from_us(2_110));
}

#[test]
fn who_may_have_handed_it_on_is_a_doubt_for_both() {
    // Nothing shows what interrupts tasks: a timer may have woken the loop.
    let trace = SyntheticTrace::new().at(10).block(LOOP, Task::IDLE);
    let hog = Task::rt(160, "hog", 40);
    let trace = trace.at(1_000).wake(hog).after(5).run(hog).at(7_000);
    let trace = trace.wake(LOOP).after(10).preempt(hog, LOOP).after(100);
    let trace = trace.block(LOOP, hog);
    check(&trace, TimeRange::ALL, &[], since_when());
}

/// One activation may have begun long before.
fn since_when() -> Judgement {
    let why = "1 more may have been over: nothing shows who woke them, or since when";
    Judgement::Inconclusive(why.to_owned())
}

#[test]
fn what_a_task_hands_on_that_was_stopped_in_its_sleep_is_a_doubt_for_both() {
    // The loop waits for the hop, through another one, and the stop may have kept it from that.
    let next = Task::rt(170, "next", 45);
    let trace = SyntheticTrace::new().at(10).block(LOOP, Task::IDLE);
    let trace = trace.shows_timers().at(1_000).run(STOPPER).after(10);
    let trace = trace.wake(HOP).after(5).preempt(STOPPER, HOP).after(10);
    let trace = trace.leave(HOP, SIGNALLED, STOPPER).at(21_000).wake(HOP);
    let trace = trace.after(5).preempt(STOPPER, HOP).after(50).wake(next);
    let trace = trace.after(5).block(HOP, next).after(50).wake(LOOP);
    let trace = trace.after(5).block(next, LOOP).after(100);
    let trace = trace.block(LOOP, STOPPER).at(30_000).nmi(1);
    check(&trace, TimeRange::ALL, &[], since_when());
    // Whoever else is asked for.
    let asked = |tasks: &[&str]| Query {
        tasks: TaskFilter::parse(tasks).expect("names"),
        until: Until::Block,
        threshold: Some(Duration::from_ms(3)),
        ..Query::default()
    };
    let found = diagnose(&trace.build(), &asked(&["loop", "hop", "next"])).expect("diagnosed");
    assert!(found.activations.is_empty(), "{found:?}");
    let basis = &found.basis;
    assert_eq!((basis.unknown_wakers, basis.stopped_asleep), (2, 1));
}

/// The loop is stopped for its tracer now, for 12 ms.
fn stopped(trace: SyntheticTrace) -> SyntheticTrace {
    let trace = trace.leave(LOOP, TRACED, STOPPER).after(12_000);
    trace.wake(LOOP).after(5).preempt(STOPPER, LOOP)
}

#[test]
fn who_is_stopped_as_soon_as_its_timer_woke_it_was_due_for_both() {
    let woken = |by_timer: bool| {
        let trace = SyntheticTrace::new().at(10).block(LOOP, Task::IDLE);
        let trace = match by_timer {
            true => trace.hrtimer_start(7, 1_000).at(1_000).timer_irq(),
            false => trace.at(1_000).timer_irq(),
        };
        let trace = match by_timer {
            true => trace.hrtimer_expire(7).wake(LOOP).hrtimer_done(7),
            false => trace.wake(LOOP),
        };
        let trace = trace.after(1).timer_irq_end().at(1_010).run(LOOP);
        stopped(trace.after(20)).after(500).block(LOOP, STOPPER)
    };
    check(&woken(true), TimeRange::ALL, &[12_536], Judgement::Broken);
    // Woken by something else it may have been stopped in its sleep.
    let finding = judged(&woken(false), LIMIT, TimeRange::ALL);
    assert_eq!((finding.over, finding.unsure, finding.stopped), (0, 1, 1));
    let text = report::budgets_text(&Checked {
        findings: vec![finding],
        ..Checked::default()
    });
    assert!(text.contains("1 not counted: they were stopped"), "{text}");
    assert!(!text.contains("switches were not recorded"), "{text}");
}

/// Ten cycles of 10 ms; then the loop sleeps without a timer, is stopped in that sleep, works for
/// so long as it goes on, sleeps again and is woken to end.
fn stopped_in_its_last_sleep(works_us: i64) -> SyntheticTrace {
    let mut trace = SyntheticTrace::new().at(0).run(LOOP).at(10);
    trace = trace.hrtimer_start(7, 10_000).block(LOOP, Task::IDLE);
    for turn in 1..=10 {
        trace = trace.at(turn * 10_000).timer_irq().hrtimer_expire(7);
        trace = trace.wake(LOOP).hrtimer_done(7).after(1).timer_irq_end();
        trace = trace.after(5).run(LOOP).after(100);
        if turn < 10 {
            trace = trace.hrtimer_start(7, (turn + 1) * 10_000);
        }
        trace = trace.block(LOOP, Task::IDLE);
    }
    trace = trace
        .at(170_000)
        .run(STOPPER)
        .after(100)
        .wake(LOOP)
        .after(5);
    trace = trace.preempt(STOPPER, LOOP).after(15);
    trace = stopped(trace).after(works_us).block(LOOP, STOPPER);
    trace = trace.after(300).wake(LOOP).after(5).preempt(STOPPER, LOOP);
    trace.after(200).end(LOOP, STOPPER).at(200_000).nmi(1)
}

#[test]
fn a_stop_in_a_sleep_is_no_sleep_inside_of_the_work() {
    let sleeps = |works_us: i64| {
        let finding = judged(&stopped_in_its_last_sleep(works_us), LIMIT, TimeRange::ALL);
        finding.inside.map(|inside| (inside.sleeps, inside.over))
    };
    assert_eq!(sleeps(12), None);
    // It did some work: the signal may have ended the sleep.
    assert_eq!(sleeps(500), Some((1, 1)));
}

/// Twenty cycles of 10 ms by absolute sleeps. In the fifth a signal ends the sleep, and the loop
/// sleeps for something else until `until_us` after the instant that it had slept for, which it
/// then sleeps for again: where that is past, it leaves its CPU for it, or not.
fn overdue(until_us: i64, leaves: bool) -> SyntheticTrace {
    let mut trace = SyntheticTrace::new().at(0).run(LOOP).at(10);
    trace = trace.hrtimer_start(7, 10_000).block(LOOP, FAIR);
    let sleeps = |trace: SyntheticTrace, now_us: i64, due_us: i64| match now_us > due_us && !leaves
    {
        true => (trace, true),
        false => (trace.block(LOOP, FAIR), false),
    };
    let (mut now_us, mut stays) = (0, false);
    for turn in 1..=20 {
        let due_us = turn * 10_000;
        if turn == 5 {
            trace = trace.at(due_us - 5_000).wake(LOOP).after(5);
            trace = trace.preempt(FAIR, LOOP).hrtimer_cancel(7).after(20);
            trace = trace.block(LOOP, FAIR).at(due_us + until_us).wake(LOOP);
            trace = trace.after(5).preempt(FAIR, LOOP).after(20);
            now_us = due_us + until_us + 27;
            (trace, stays) = sleeps(trace.hrtimer_start(7, due_us), now_us, due_us);
        }
        now_us = due_us.max(now_us + 3) + 107;
        trace = trace.at(now_us - 107).timer_irq().hrtimer_expire(7);
        trace = trace.wake(LOOP).hrtimer_done(7).after(1).timer_irq_end();
        trace = match stays {
            true => trace.after(105),
            false => trace.after(5).preempt(FAIR, LOOP).after(100),
        };
        let next_us = due_us + 10_000;
        (trace, stays) = sleeps(trace.hrtimer_start(7, next_us), now_us, next_us);
    }
    trace.at(250_000).nmi(1)
}

#[test]
fn who_slept_for_something_else_as_its_timer_was_due_is_not_called_in_time() {
    let check = |until_us: i64, leaves: bool, expect: Option<(u64, u64)>| {
        let trace = overdue(until_us, leaves);
        let finding = judged(&trace, LIMIT, TimeRange::ALL);
        let inside = finding.inside.as_ref();
        let found = inside.map(|inside| (inside.sleeps, inside.over));
        assert_eq!(found, expect, "{leaves} {finding:?}");
        let is_held = finding.judgement == Judgement::Held;
        assert_eq!(is_held, expect.is_none_or(|(_, over)| over == 0));
        let longest = inside.map(|inside| inside.worst.duration());
        // Who goes on without a sleep works until the next timer is served.
        let more_us = if !leaves && until_us > 10_000 { 4 } else { 0 };
        let late = Duration::from_us(until_us + 30 + 107 + more_us);
        assert_eq!(longest, expect.map(|_| late));
    };
    for leaves in [true, false] {
        check(6_000, leaves, Some((1, 1)));
        check(1_000, leaves, Some((1, 0)));
        // It catches up with what it missed.
        check(56_000, leaves, Some((6, 6)));
    }
    // It sleeps until then as it should.
    check(-3_000, true, None);
}

#[test]
fn who_may_have_run_before_was_in_time_where_all_of_it_was() {
    // Both are woken on an idle CPU; the tracer says who has it, and the loop may have had it
    // before, and have slept again.
    let found = |until_us: i64| {
        let trace = SyntheticTrace::new().at(5).block(HOP, LOOP).at(10);
        let trace = trace.block(LOOP, Task::IDLE).at(1_000).timer_irq();
        let trace = trace.wake(LOOP).after(1).wake(HOP).after(1).timer_irq_end();
        let current = [("tid", event::Value::Signed(HOP.tid.into()))];
        let trace = trace.at(1_030).event("rtscope_current", &current);
        let trace = trace.at(until_us).block(HOP, LOOP).after(100);
        let trace = trace.block(LOOP, Task::IDLE).at(20_000).nmi(1);
        let finding = judged(&trace, LIMIT, TimeRange::ALL);
        (finding.within, finding.unsure, finding.over)
    };
    assert_eq!(found(2_000), (1, 0, 0));
    assert_eq!(found(5_000), (0, 1, 0));
}

#[test]
fn who_was_woken_before_it_slept_is_late_since_its_timer_was_due_for_both() {
    // It asks for an instant that is past, and is woken before it has left its CPU.
    let trace = SyntheticTrace::new().at(0).run(LOOP).at(8_000);
    let trace = trace.hrtimer_start(7, 2_000).after(5).timer_irq();
    let trace = trace.hrtimer_expire(7).waking(LOOP, 0).hrtimer_done(7);
    let trace = trace.after(1).timer_irq_end().after(3).block(LOOP, FAIR);
    let trace = trace.after(2).wakeup(LOOP, 0).after(5).preempt(FAIR, LOOP);
    let trace = trace.after(100).block(LOOP, FAIR).at(30_000).nmi(1);
    check(&trace, TimeRange::ALL, &[6_116], Judgement::Broken);
}
