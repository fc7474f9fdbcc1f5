//! `check`, `diagnose` and `diff` answer one question alike: whether a task was late to the end of
//! its work. What none of them can tell, none calls in time.

use diagnosis::{Diagnosis, Grade, LateActivation, Query, TaskFilter, Until, compare, diagnose};
use event::{Duration, Instant, Tid, TimeRange};
use report::{TextStyle, TraceFacts, diagnosis_text};
use testkit::{SyntheticTrace, Task};
use views::{BudgetFinding, Judgement, Rules, check_budgets};

const LOOP: Task = Task::rt(100, "loop", 50);
const HELPER: Task = Task::fair(200, "helper");
const LIMIT: &str = "3ms";

/// The same question to both.
fn asked(trace: SyntheticTrace, range: TimeRange) -> (Diagnosis, BudgetFinding) {
    asked_of(&format!("tid:{}", LOOP.tid), trace, range)
}

/// The same of tasks that are called so.
fn asked_of(who: &str, trace: SyntheticTrace, range: TimeRange) -> (Diagnosis, BudgetFinding) {
    let trace = trace.build();
    let query = Query {
        tasks: TaskFilter::parse(&[who]).expect("a pattern"),
        until: Until::Block,
        threshold: Some(Duration::from_ms(3)),
        range,
        lengths: true,
        ..Query::default()
    };
    let rules = format!("response of {who} within {LIMIT}");
    let rules = Rules::parse(&rules).expect("a rule");
    let mut checked = check_budgets(&trace, &rules, range).expect("it is read");
    let diagnosis = diagnose(&trace, &query).expect("it is diagnosed");
    (diagnosis, checked.findings.remove(0))
}

/// What the period of the loop has.
#[derive(Clone, Copy)]
enum Wait {
    /// `clock_nanosleep`: armed right before each sleep.
    Sleep,
    /// A timer that goes on by itself.
    Interval,
    /// A time-out of each sleep, which others may end before, after so long.
    TimeOut(i64),
    /// The same on a kernel that varies its stacks.
    TimeOutOnVariedStacks(i64),
    /// The same, of a call of `futex`, which lies like the timer of the releases there.
    TimeOutOfFutex(i64),
}

const PERIOD_US: i64 = 10_000;
/// `FUTEX_WAIT_BITSET`.
const WAIT_BITSET: i64 = 9;

impl Wait {
    fn time_out_us(self) -> Option<i64> {
        match self {
            Wait::TimeOut(after_us)
            | Wait::TimeOutOnVariedStacks(after_us)
            | Wait::TimeOutOfFutex(after_us) => Some(after_us),
            Wait::Sleep | Wait::Interval => None,
        }
    }

    /// Where the timer lies that is armed in a turn: of the releases, or of a time-out.
    fn timer(self, turn: i64, base: u64) -> u64 {
        match self {
            Wait::TimeOutOnVariedStacks(_) => base + 16 * (turn * turn) as u64,
            Wait::TimeOutOfFutex(_) => 16 * (turn * turn) as u64 + 256 * base,
            _ => base,
        }
    }
}

/// Ten cycles. In every third one the loop sleeps until its helper wakes it `asleep_us` later.
fn cycles(wait: Wait, asleep_us: i64) -> SyntheticTrace {
    let mut trace = SyntheticTrace::new().at(0).run(LOOP).at(10);
    trace = trace.hrtimer_start(wait.timer(0, 7), PERIOD_US);
    trace = trace.block(LOOP, Task::IDLE);
    for turn in 1..=10 {
        let begin_us = turn * PERIOD_US;
        let release = wait.timer(turn - 1, 7);
        trace = trace.at(begin_us).timer_irq().hrtimer_expire(release);
        trace = trace.wake(LOOP).hrtimer_done(release);
        if let Wait::Interval = wait {
            trace = trace.hrtimer_start(7, begin_us + PERIOD_US);
        }
        trace = trace.after(1).timer_irq_end().after(5).run(LOOP).after(100);
        if turn % 3 == 0 {
            let time_out = wait.timer(turn, 8);
            if let Wait::TimeOutOfFutex(_) = wait {
                trace = trace.futex((WAIT_BITSET, 0, 1));
            }
            if let Some(after_us) = wait.time_out_us() {
                trace = trace.hrtimer_start(time_out, begin_us + after_us);
            }
            trace = trace.block(LOOP, HELPER).after(asleep_us).wake(LOOP);
            trace = trace.after(5).preempt(HELPER, LOOP).after(1);
            if wait.time_out_us().is_some() {
                trace = trace.event(
                    "timer_hrtimer_cancel",
                    &[("hrtimer", event::Value::Unsigned(time_out))],
                );
            }
            if let Wait::TimeOutOfFutex(_) = wait {
                trace = trace.futex_end();
            }
            trace = trace.after(50);
        }
        if !matches!(wait, Wait::Interval) {
            trace = trace.hrtimer_start(wait.timer(turn, 7), begin_us + PERIOD_US);
        }
        trace = trace.block(LOOP, Task::IDLE);
    }
    trace
}

/// Both find so many sleeps and so many cycles over the limit; none: neither finds any.
#[track_caller]
fn check_inside(trace: SyntheticTrace, expect: Option<(u64, u64)>) {
    let (diagnosis, budget) = asked(trace, TimeRange::ALL);
    let inside = diagnosis.basis.inside.first();
    let found = inside.map(|found| (found.sleeps, found.over));
    assert_eq!(found, expect, "diagnose: {:?}", diagnosis.basis);
    let inside = budget.inside.as_ref();
    let found = inside.map(|found| (found.sleeps, found.over));
    assert_eq!(found, expect, "check: {budget:?}");
    let spans = diagnosis.basis.inside.first().map(|found| found.worst);
    assert_eq!(spans, inside.map(|found| found.worst), "{budget:?}");
    let is_held = budget.judgement == Judgement::Held;
    assert_eq!(
        is_held,
        expect.is_none_or(|(_, over)| over == 0),
        "{budget:?}"
    );
    assert!(diagnosis.activations.is_empty(), "{diagnosis:?}");
    let text = report::diagnosis_text(&diagnosis, &report::TextStyle::default());
    assert_eq!(text.starts_with("No activation"), is_held, "{text}");
    let side = std::slice::from_ref(&diagnosis);
    let both = compare(side, side);
    let text = report::comparison_text(&both);
    assert_eq!(text.starts_with("Neither trace"), is_held, "{text}");
    let over = expect.map_or(0, |(_, over)| over);
    assert_eq!(both.unknown, (over, over), "{text}");
}

#[test]
fn a_sleep_that_others_end_between_two_timers_takes_the_reassurance_away() {
    check_inside(cycles(Wait::Sleep, 5_000), Some((3, 3)));
    check_inside(cycles(Wait::Interval, 5_000), Some((3, 3)));
}

#[test]
fn a_short_one_does_not() {
    check_inside(cycles(Wait::Sleep, 500), Some((3, 0)));
}

#[test]
fn sleeps_inside_are_those_of_the_name_that_it_had_then() {
    let named = cycles(Wait::Sleep, 5_000).at(109_000).wake(LOOP).after(5);
    let done = Task {
        comm: "done",
        ..LOOP
    };
    let named = named.run(LOOP).after(100).block(done, Task::IDLE);
    for who in ["loop", "tid:100"] {
        let (diagnosis, budget) = asked_of(who, named.clone(), TimeRange::ALL);
        let found = diagnosis.basis.inside.first().map(|found| found.over);
        assert_eq!(found, Some(4), "{who}: {:?}", diagnosis.basis);
        let found = budget.inside.as_ref().map(|found| found.over);
        assert_eq!(found, Some(4), "{who}: {budget:?}");
    }
}

#[test]
fn a_sleep_with_a_time_out_waits_for_the_next_work() {
    check_inside(cycles(Wait::TimeOut(PERIOD_US), 5_000), None);
}

#[test]
fn a_time_out_elsewhere_that_is_no_release_is_one_of_a_lock_or_of_an_answer() {
    // The first cycles tell that the releases have one place.
    check_inside(cycles(Wait::TimeOut(50 * PERIOD_US), 5_000), Some((2, 2)));
    let varied = |after_us| cycles(Wait::TimeOutOnVariedStacks(after_us), 5_000);
    check_inside(varied(50 * PERIOD_US), Some((2, 2)));
    check_inside(varied(PERIOD_US), None);
    let of_futex = |after_us| cycles(Wait::TimeOutOfFutex(after_us), 5_000);
    check_inside(of_futex(50 * PERIOD_US), Some((2, 2)));
    // Nothing else than its call tells it then.
    check_inside(of_futex(PERIOD_US), Some((2, 2)));
}

#[test]
fn a_time_out_elsewhere_that_is_over_is_one_of_a_lock_or_of_an_answer() {
    let mut trace = SyntheticTrace::new().at(0).run(LOOP).at(10);
    trace = trace.hrtimer_start(7, PERIOD_US).block(LOOP, Task::IDLE);
    let comes = |trace: SyntheticTrace, timer: u64, at_us: i64| {
        let trace = trace.at(at_us).timer_irq().hrtimer_expire(timer);
        let trace = trace.wake(LOOP).hrtimer_done(timer).after(1);
        trace.timer_irq_end().after(5).run(LOOP).after(100)
    };
    for turn in 1..=20 {
        let begin_us = turn * PERIOD_US;
        trace = comes(trace, 7, begin_us);
        if turn % 5 == 0 {
            trace = trace.hrtimer_start(8, begin_us + 5_000);
            trace = comes(trace.block(LOOP, Task::IDLE), 8, begin_us + 5_000);
        }
        trace = trace.hrtimer_start(7, begin_us + PERIOD_US);
        trace = trace.block(LOOP, Task::IDLE);
    }
    // The first cycles tell that the releases have one place.
    check_inside(trace, Some((4, 4)));
}

/// The loop wakes up at each of these instants in turn, in microseconds, for which it slept at one
/// place, and works for 100 us there.
fn sleeps_until(instants_us: &[i64]) -> SyntheticTrace {
    let mut trace = SyntheticTrace::new().at(0).run(LOOP).at(10);
    for until_us in instants_us {
        trace = trace.hrtimer_start(7, *until_us).block(LOOP, Task::IDLE);
        trace = trace.at(*until_us).timer_irq().hrtimer_expire(7).wake(LOOP);
        trace = trace.hrtimer_done(7).after(1).timer_irq_end().after(5);
        trace = trace.run(LOOP).after(100);
    }
    let trace = trace.hrtimer_start(7, 10_000_000);
    trace.block(LOOP, Task::IDLE).after(100).nmi(1)
}

#[test]
fn a_sleep_until_an_instant_beside_the_grid_of_its_releases_is_inside_of_the_work() {
    let grid =
        |from: i64, until: i64, period_us: i64| (from..until).map(move |turn| turn * period_us);
    let beside = |instants_us: &[i64]| {
        let begin = grid(1, 13, PERIOD_US).chain(instants_us.iter().map(|us| 120_000 + us));
        let all: Vec<i64> = begin.chain(grid(15, 25, PERIOD_US)).collect();
        sleeps_until(&all)
    };
    // It asks for a lock again and again, each time until 3 ms later.
    check_inside(beside(&[3_000, 6_000, 9_000, 12_000, 15_000]), Some((5, 1)));
    check_inside(beside(&[2_000]), Some((1, 0)));
    check_inside(beside(&[]), None);
    // Each try begins when the one before is over, and every second one ends near the grid.
    let tries = [5_106, 10_212, 15_318, 20_424];
    check_inside(beside(&tries), Some((4, 1)));
    // The same where each release is computed from the time it is: such a grid is no exact one.
    let near = |turn: i64| turn * PERIOD_US + turn % 2 * 40;
    let begin = (1..13).map(near).chain(tries.iter().map(|us| 120_000 + us));
    let all: Vec<i64> = begin.chain((15..25).map(near)).collect();
    check_inside(sleeps_until(&all), Some((4, 1)));
    // It looks for an answer again and again, 200 times, and goes on as before; or it does not.
    let looks: Vec<i64> = (1..=200).map(|turn| turn * 206).collect();
    let back = |until: i64| {
        let begin = (1..13).map(near).chain(looks.iter().map(|us| 120_000 + us));
        sleeps_until(&begin.chain((17..until).map(near)).collect::<Vec<_>>())
    };
    check_inside(back(40), Some((200, 1)));
    check_inside(back(17), None);
    // From then on it has another pace; or it sleeps for so long behind its work.
    let change: Vec<i64> = grid(1, 13, PERIOD_US)
        .chain((1..60).map(|turn| 120_000 + turn * 7_000))
        .collect();
    check_inside(sleeps_until(&change), None);
    let behind: Vec<i64> = (1..40)
        .scan(0, |at_us, turn| {
            *at_us += PERIOD_US + if turn == 20 { 4_500 } else { 100 };
            Some(*at_us)
        })
        .collect();
    check_inside(sleeps_until(&behind), None);
    // Two sleeps in each of its cycles.
    let two: Vec<i64> = grid(1, 40, PERIOD_US)
        .flat_map(|at_us| [at_us, at_us + 2_000])
        .collect();
    check_inside(sleeps_until(&two), None);
}

#[test]
fn who_is_woken_by_others_alone_has_activations_of_its_own() {
    let mut trace = SyntheticTrace::new().at(0).block(LOOP, HELPER);
    for turn in 1..=20 {
        trace = trace.at(turn * 5_000).wake(LOOP).after(5);
        trace = trace.preempt(HELPER, LOOP).after(100).block(LOOP, HELPER);
    }
    check_inside(trace, None);
}

#[test]
fn a_timer_that_does_not_come_steadily_is_no_release() {
    let mut trace = SyntheticTrace::new().at(0).block(LOOP, HELPER);
    let mut at_us = 0;
    for turn in 1..=20_i64 {
        at_us += 3_000 + turn * turn * 777;
        trace = trace.at(at_us).timer_irq().hrtimer_expire(7).wake(LOOP);
        trace = trace.hrtimer_done(7).timer_irq_end().after(5);
        trace = trace.preempt(HELPER, LOOP).after(100).block(LOOP, HELPER);
        trace = trace.after(9_000).wake(LOOP).after(5);
        trace = trace.preempt(HELPER, LOOP).after(100).block(LOOP, HELPER);
        at_us += 9_300;
    }
    check_inside(trace, None);
}

#[test]
fn a_loop_that_never_wakes_again_from_a_sleep_inside_is_not_in_time() {
    let trace = cycles(Wait::Sleep, 500).at(110_000).timer_irq();
    let trace = trace.hrtimer_expire(7).wake(LOOP).hrtimer_done(7);
    let trace = trace.timer_irq_end().after(5).run(LOOP).after(100);
    let trace = trace
        .block(LOOP, HELPER)
        .at(150_000)
        .block(HELPER, Task::IDLE);
    check_inside(trace, Some((4, 1)));
}

#[test]
fn a_loop_that_is_killed_while_it_waits_for_its_timer_was_not_at_work_until_then() {
    for wait in [Wait::Sleep, Wait::Interval] {
        let trace = cycles(wait, 500).at(150_000).wake(LOOP).after(5);
        let trace = trace.run(LOOP).after(100).end(LOOP, HELPER);
        let trace = trace.at(900_000).block(HELPER, Task::IDLE);
        check_inside(trace, Some((3, 0)));
    }
}

/// Microseconds of the trace's clock.
fn from_to(begin_us: i64, end_us: i64) -> TimeRange {
    TimeRange {
        begin: Instant::from_ns(begin_us * 1_000),
        end: Instant::from_ns(end_us * 1_000 + 1),
    }
}

#[test]
fn work_that_goes_on_where_a_switch_was_not_recorded_is_no_verdict() {
    let other = Task::fair(300, "other");
    // The helper leaves the CPU that another one seems to have: nobody knows since when.
    let hidden = SyntheticTrace::new().at(0).run(other);
    let hidden = hidden.at(100).block(HELPER, Task::IDLE).at(200);
    let hidden = hidden.run(LOOP).at(300).block(LOOP, Task::IDLE);
    let shown = SyntheticTrace::new().at(0).run(other);
    let shown = shown.at(100).block(other, Task::IDLE).at(200);
    let shown = shown.run(LOOP).at(300).block(LOOP, Task::IDLE);
    let works = |trace: SyntheticTrace| {
        let trace = trace.at(1000).timer_irq().wake(LOOP).after(1);
        let trace = trace.timer_irq_end().at(1010).run(LOOP).at(5900).nmi(1);
        trace.at(7010).block(LOOP, Task::IDLE).at(20_000).nmi(1)
    };
    // It waits for a task that may have left the CPU to it unseen.
    let hog = Task::rt(400, "hog", 60);
    let waits = |trace: SyntheticTrace| {
        let trace = trace.at(900).run(hog).at(1000).timer_irq().wake(LOOP);
        let trace = trace.timer_irq_end().at(5900).nmi(1).at(7010);
        trace.block(hog, LOOP).at(20_000).nmi(1)
    };
    for scene in [works(hidden.clone()), waits(hidden)] {
        for begin_us in [0, 2000, 5000] {
            let (diagnosis, budget) = asked(scene.clone(), from_to(begin_us, 6000));
            let verdict = diagnosis.verdict().expect("it is late as far as is seen");
            assert!(!verdict.conclusive, "{}", verdict.sentence);
            assert_ne!(budget.judgement, Judgement::Broken, "{budget:?}");
        }
    }
    for scene in [works(shown.clone()), waits(shown)] {
        let (diagnosis, budget) = asked(scene, from_to(2000, 6000));
        let verdict = diagnosis.verdict().expect("it is late");
        assert!(verdict.conclusive, "{}", verdict.sentence);
        assert_eq!(budget.judgement, Judgement::Broken, "{budget:?}");
    }
}

/// An activation from 1000 µs that works until 7010 µs.
fn work_of_six_ms() -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(10).block(LOOP, Task::IDLE);
    let trace = trace.at(1000).timer_irq().wake(LOOP).after(1);
    let trace = trace.timer_irq_end().at(1010).run(LOOP).at(2000).nmi(1);
    trace.at(7010).block(LOOP, Task::IDLE).at(20_000).nmi(1)
}

/// How many activations both judge in a window, how many of them are late, and for how long the
/// longest of those lasted, in microseconds.
#[track_caller]
fn check_window(trace: SyntheticTrace, range: TimeRange, expect: (u64, u64, Option<i64>)) {
    let (diagnosis, budget) = asked(trace, range);
    let late = diagnosis.activations.iter().map(|late| late.latency());
    let found = (
        diagnosis.basis.activations,
        late.clone().count() as u64,
        late.max().map(|longest| longest.as_ns() / 1000),
    );
    assert_eq!(found, expect, "diagnose: {diagnosis:?}");
    let worst = budget.worst.map(|worst| worst.duration().as_ns() / 1000);
    let worst = worst.filter(|_| budget.over > 0);
    let found = (budget.samples + budget.open, budget.over, worst);
    assert_eq!(found, expect, "check: {budget:?}");
}

#[test]
fn work_that_goes_on_at_the_end_of_the_window_is_as_long_as_it_was_seen() {
    let check = |end_us: i64, expect| check_window(work_of_six_ms(), from_to(0, end_us), expect);
    check(3000, (1, 0, None));
    // Up to the end of the window, also where nothing happens before it.
    check(5000, (1, 1, Some(4000)));
    check(7009, (1, 1, Some(6009)));
    check(7010, (1, 1, Some(6010)));
    check(20_000, (1, 1, Some(6010)));
}

#[test]
fn what_ends_in_the_window_is_as_long_as_it_was_wherever_it_began() {
    let check = |begin_us: i64, expect| {
        check_window(work_of_six_ms(), from_to(begin_us, 20_000), expect);
    };
    check(1005, (1, 1, Some(6010)));
    check(6900, (1, 1, Some(6010)));
    check(7010, (1, 1, Some(6010)));
    check(7011, (0, 0, None));
}

#[test]
fn the_start_up_of_a_thread_is_no_cycle_of_it() {
    let maker = Task::fair(99, "maker");
    let early = Task::fair(LOOP.tid, "main");
    let trace = |named: Task| {
        let trace = SyntheticTrace::new().at(10).run(maker);
        let trace = trace.wakeup_new(named, 0).at(20).block(maker, named);
        // It works for long before it waits for the first time, and has its name by then.
        let trace = trace.at(9_000).block(LOOP, Task::IDLE);
        let trace = trace.at(20_000).timer_irq().wake(LOOP).after(1);
        let trace = trace.timer_irq_end().after(5).run(LOOP).after(100);
        trace.block(LOOP, Task::IDLE)
    };
    // By number both names are meant: it is judged to its switch-in.
    check_window(trace(early), TimeRange::ALL, (2, 0, None));
    check_window(trace(LOOP), TimeRange::ALL, (2, 0, None));
    // Where it waits for a CPU for too long, that is late.
    let starved = SyntheticTrace::new().at(10).run(maker).wakeup_new(LOOP, 0);
    let starved = starved.at(5_010).block(maker, LOOP).at(9_000);
    let starved = starved.block(LOOP, Task::IDLE);
    check_window(starved, TimeRange::ALL, (1, 1, Some(5_000)));
    // The window ends in its start-up.
    check_window(trace(LOOP), from_to(0, 8_000), (1, 0, None));
}

#[test]
fn a_start_up_is_one_whatever_the_thread_was_called_then() {
    let maker = Task::fair(99, "maker");
    let early = Task::fair(LOOP.tid, "python3");
    let trace = SyntheticTrace::new().at(10).run(maker).wakeup_new(early, 0);
    // The kernel does not record that another one has its CPU meanwhile.
    let current = [("tid", event::Value::Signed(HELPER.tid.into()))];
    let trace = trace.at(20).block(maker, early).at(300);
    let trace = trace
        .event("rtscope_current", &current)
        .timer_irq()
        .after(1);
    let trace = trace.timer_irq_end().at(400).preempt(HELPER, early);
    let trace = trace.at(500).block_for_device(early, HELPER).after(9);
    let trace = trace.block(HELPER, Task::IDLE).at(2_000);
    // A device wakes it, and in the work behind that it takes its name.
    let trace = trace.timer_irq().wake(early).after(1).timer_irq_end();
    let trace = trace.after(5).run(early).at(42_000).block(LOOP, Task::IDLE);
    let trace = trace.at(50_000).timer_irq().wake(LOOP).after(1);
    let trace = trace.timer_irq_end().after(5).run(LOOP).after(100);
    let trace = trace.block(LOOP, Task::IDLE);
    for who in ["loop", "tid:100"] {
        let (diagnosis, budget) = asked_of(who, trace.clone(), TimeRange::ALL);
        let basis = &diagnosis.basis;
        assert!(diagnosis.activations.is_empty(), "{who}: {diagnosis:?}");
        assert_eq!((basis.unwoken, basis.long_start_ups), (0, 1), "{who}");
        assert_eq!(budget.judgement, Judgement::Held, "{who}: {budget:?}");
        assert_eq!((budget.over, budget.long_start_ups), (0, 1), "{who}");
    }
}

/// The loop, which was just made where that is said, sleeps at a word as if for a lock, until so
/// long after its begin, and then for its timer, without letting go.
fn never_lets_go(made: bool, until_us: i64) -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(10);
    let trace = match made {
        true => {
            let trace = trace.run(HELPER).wakeup_new(LOOP, 0);
            trace.at(1_000).block(HELPER, LOOP)
        }
        false => {
            let trace = trace.block(LOOP, Task::IDLE).at(990).timer_irq();
            trace
                .wake(LOOP)
                .after(1)
                .timer_irq_end()
                .at(1_000)
                .run(LOOP)
        }
    };
    let trace = trace.at(1_100).futex((WAIT_BITSET, 2, 0)).after(1);
    let trace = trace.block(LOOP, HELPER).at(1_000 + until_us).wake(LOOP);
    let trace = trace.after(5).preempt(HELPER, LOOP).after(1).futex_end();
    trace.after(50).block(LOOP, HELPER).after(100)
}

#[test]
fn of_who_slept_for_a_lock_and_never_let_go_nobody_knows_since_when_it_worked() {
    for (made, until_us, is_known) in [
        (false, 500, true),
        (false, 9_000, false),
        (true, 500, true),
        (true, 9_000, true),
    ] {
        let (diagnosis, budget) = asked(never_lets_go(made, until_us), TimeRange::ALL);
        let basis = &diagnosis.basis;
        let context = format!("{made} {until_us}: {basis:?} {budget:?}");
        assert!(diagnosis.activations.is_empty(), "{context}");
        assert_eq!(basis.doubted + basis.unwoken == 0, is_known, "{context}");
        assert_eq!(
            (budget.over, budget.unwoken == 0),
            (0, is_known),
            "{context}"
        );
        assert_ne!(budget.judgement, Judgement::Broken, "{context}");
        let long = u64::from(made && until_us > 3_000);
        let found = (basis.long_start_ups, budget.long_start_ups);
        assert_eq!(found, (long, long), "{context}");
    }
}

#[test]
fn a_long_start_up_is_not_called_in_time() {
    let maker = Task::rt(11, "starter", 70);
    let check = |end_us: i64, range: TimeRange, expect: (u64, bool)| {
        let trace = SyntheticTrace::new().at(10).run(maker).wakeup_new(LOOP, 0);
        let trace = trace.at(20).block(maker, LOOP).at(end_us);
        let trace = trace.block(LOOP, Task::IDLE);
        let (diagnosis, budget) = asked(trace.at(20_000).nmi(1), range);
        let basis = &diagnosis.basis;
        assert!(diagnosis.activations.is_empty());
        assert_eq!((basis.long_start_ups, basis.is_of_start_ups()), expect);
        let text = diagnosis_text(&diagnosis, &TextStyle::default());
        let said = text.contains("1 start-up took longer");
        assert_eq!(said, expect.0 > 0, "{text}");
        assert_eq!(budget.long_start_ups, expect.0, "{budget:?}");
        let is_open = matches!(budget.judgement, Judgement::Inconclusive(_));
        let is_unknown = basis.is_of_start_ups() || basis.activations == 0;
        assert_eq!(is_open, is_unknown, "{budget:?}");
    };
    check(500, TimeRange::ALL, (0, false));
    check(9_000, TimeRange::ALL, (1, true));
    // It goes on at the end of the window.
    check(9_000, from_to(0, 8_000), (1, true));
    // Waits inside of it are no work that was in time.
    let waits = |until_us: i64| {
        let trace = SyntheticTrace::new().at(10).run(maker).wakeup_new(LOOP, 0);
        let trace = trace.at(20).block(maker, LOOP).at(2_000);
        let trace = trace.preempt(LOOP, HELPER).at(until_us);
        trace.preempt(HELPER, LOOP).at(9_000)
    };
    // They are late where the task never sleeps, and a part of its start-up where it does.
    for (sleeps, expect) in [(false, 1), (true, 0)] {
        let trace = match sleeps {
            true => waits(8_000).block(LOOP, Task::IDLE),
            false => waits(8_000),
        };
        let (diagnosis, budget) = asked(trace.at(20_000).nmi(1), TimeRange::ALL);
        assert_eq!(diagnosis.activations.len(), expect, "{diagnosis:?}");
        assert_eq!(budget.over, expect as u64, "{budget:?}");
        assert_eq!(budget.long_start_ups, 1, "{budget:?}");
    }
    // Also where somebody else was seen to leave its CPU meanwhile.
    let trace = SyntheticTrace::new().at(10).run(maker).wakeup_new(LOOP, 0);
    let trace = trace.at(20).block(maker, LOOP).at(500);
    let trace = trace.preempt(HELPER, maker).at(600).block(maker, LOOP);
    let trace = trace.at(2_000).preempt(LOOP, HELPER);
    let trace = trace.at(8_000).preempt(HELPER, LOOP).at(9_000).nmi(1);
    let (diagnosis, budget) = asked(trace, TimeRange::ALL);
    assert_eq!(
        (diagnosis.activations.len(), budget.over),
        (1, 1),
        "{diagnosis:?} {budget:?}"
    );
    let (diagnosis, budget) = asked(waits(2_100).nmi(1), TimeRange::ALL);
    let basis = &diagnosis.basis;
    assert_eq!((basis.activations, basis.start_ups), (2, 2));
    assert!(basis.is_of_start_ups());
    assert_eq!((budget.samples, budget.long_start_ups), (2, 1));
    let is_open = matches!(budget.judgement, Judgement::Inconclusive(_));
    assert!(is_open, "{budget:?}");
    check(9_000, from_to(0, 2_000), (0, false));
    // It ends before, or had begun before: what it did then is not asked for, or not judged.
    check(9_000, from_to(9_500, 30_000), (0, false));
    check(9_000, from_to(5_000, 30_000), (1, true));
}

#[test]
fn who_never_slept_is_not_called_in_time_beside_others_that_were() {
    let maker = Task::rt(LOOP.tid, "loop", 70);
    let child = Task::rt(101, "loop", 50);
    let check = |sleeps: bool, expect: u64| {
        let trace = SyntheticTrace::new().at(0).block(maker, HELPER).at(10);
        let trace = trace.wake(maker).after(1).preempt(HELPER, maker).after(10);
        let trace = trace.wakeup_new(child, 0).after(10).block(maker, child);
        let trace = trace.at(9_000);
        let trace = match sleeps {
            true => trace.block(child, HELPER),
            false => trace.end(child, HELPER),
        };
        let trace = trace.at(20_000).nmi(1).build();
        let query = Query {
            tasks: TaskFilter::parse(&["loop"]).expect("a pattern"),
            until: Until::Block,
            threshold: Some(Duration::from_ms(3)),
            ..Query::default()
        };
        let basis = diagnose(&trace, &query).expect("it is diagnosed").basis;
        assert!(!basis.is_of_start_ups(), "{basis:?}");
        assert_eq!((basis.unslept, basis.unknown()), (expect, expect));
        let rules = Rules::parse("response of loop within 3ms").expect("a rule");
        let checked = check_budgets(&trace, &rules, TimeRange::ALL).expect("it is read");
        let budget = &checked.findings[0];
        assert_eq!((budget.unslept, budget.long_start_ups), (expect, 1));
        let is_held = budget.judgement == Judgement::Held;
        assert_eq!(is_held, expect == 0, "{budget:?}");
    };
    check(true, 0);
    check(false, 1);
}

#[test]
fn who_waited_as_the_recording_began_is_not_called_in_time() {
    let check = |came_us: i64, expect: u64| {
        let trace = SyntheticTrace::new().at(0).nmi(1).at(10).run(HELPER);
        let trace = trace.at(came_us).preempt(HELPER, LOOP).after(100);
        let trace = trace.block(LOOP, HELPER).at(20_000).wake(LOOP).after(1);
        let trace = trace.preempt(HELPER, LOOP).after(100);
        let trace = trace.block(LOOP, Task::IDLE).build();
        let query = Query {
            tasks: TaskFilter::from(Tid(LOOP.tid)),
            until: Until::SwitchIn,
            threshold: Some(Duration::from_ms(3)),
            ..Query::default()
        };
        let diagnosis = diagnose(&trace, &query).expect("it is diagnosed");
        assert_eq!(diagnosis.basis.unwoken, expect, "{:?}", diagnosis.basis);
        let rules = Rules::parse("wake-up of loop within 3ms").expect("a rule");
        let checked = check_budgets(&trace, &rules, TimeRange::ALL).expect("it is read");
        let budget = &checked.findings[0];
        assert_eq!((budget.samples, budget.unwoken), (1, expect), "{budget:?}");
        let text = diagnosis_text(&diagnosis, &TextStyle::default());
        let said = text.contains("1 activation may be late: their wake-up was not recorded");
        assert_eq!(said, expect > 0, "{text}");
    };
    check(2_900, 0);
    check(3_100, 1);
}

#[test]
fn what_had_begun_before_the_recording_is_not_in_time_where_what_was_seen_is_late() {
    let check = |end_us: i64, expect: u64| {
        let trace = SyntheticTrace::new().at(0).nmi(1).at(10).run(HELPER);
        let trace = trace.at(1_000).preempt(HELPER, LOOP).at(end_us);
        let trace = trace.block(LOOP, HELPER).at(20_000).wake(LOOP).after(1);
        let trace = trace.preempt(HELPER, LOOP).after(100);
        let (diagnosis, budget) = asked(trace.block(LOOP, Task::IDLE), TimeRange::ALL);
        let basis = &diagnosis.basis;
        assert_eq!((basis.unwoken, basis.unjudged), (expect, 1 - expect));
        assert_eq!((budget.unwoken, budget.unseen), (expect, 1 - expect));
        let is_held = budget.judgement == Judgement::Held;
        assert_eq!(is_held, expect == 0, "{budget:?}");
        // Nor is it where it ends before what is asked for.
        let trace = SyntheticTrace::new()
            .at(0)
            .nmi(1)
            .at(10)
            .run(LOOP)
            .at(end_us);
        let trace = trace.block(LOOP, HELPER).at(20_000).wake(LOOP).after(1);
        let trace = trace.preempt(HELPER, LOOP).after(100);
        let trace = trace.block(LOOP, Task::IDLE);
        let (diagnosis, budget) = asked(trace, from_to(19_000, 30_000));
        let basis = &diagnosis.basis;
        assert_eq!((basis.unwoken, basis.unjudged), (0, 0));
        assert_eq!((budget.unwoken, budget.unseen), (0, 0));
    };
    check(2_900, 0);
    check(3_100, 1);
}

#[test]
fn an_activation_of_which_only_the_switch_in_was_not_recorded_is_as_long_as_it_was() {
    let trace = |begin_us: i64, end_us: i64| {
        let trace = SyntheticTrace::new().at(10).block(LOOP, HELPER);
        let trace = trace.at(begin_us).timer_irq().wake(LOOP).after(1);
        // The tracer says who has the CPU, and no event says since when.
        let trace = trace.timer_irq_end().at(end_us - 5);
        let current = [("tid", event::Value::Signed(LOOP.tid.into()))];
        let trace = trace.event("rtscope_current", &current).at(end_us);
        trace.block(LOOP, HELPER)
    };
    check_window(trace(1000, 1070), TimeRange::ALL, (1, 0, None));
    check_window(trace(1000, 5000), TimeRange::ALL, (1, 1, Some(4000)));
    // Its wake-up was not seen either: neither knows how long it was.
    let unseen = trace(1000, 1070).lost(900, 1050);
    check_window(unseen, TimeRange::ALL, (0, 0, None));
}

#[test]
fn an_event_of_the_switch_itself_does_not_bring_back_who_leaves() {
    // What other programs do at a switch is done in the name of who leaves, behind its event.
    let found = |is_told: bool| {
        let trace = SyntheticTrace::new().at(10).block(LOOP, HELPER);
        let trace = trace.at(1_000).timer_irq().wake(LOOP).after(1);
        let trace = trace.timer_irq_end().after(5).preempt(HELPER, LOOP);
        let trace = trace.at(2_000).block(LOOP, HELPER).after(11);
        let current = |tid: i32| [("tid", event::Value::Signed(tid.into()))];
        let trace = match is_told {
            true => trace.event("rtscope_current", &current(LOOP.tid)),
            false => trace,
        };
        let trace = trace.at(20_000);
        let trace = match is_told {
            // The first event since then is of another one again.
            true => trace.event("rtscope_current", &current(HELPER.tid)),
            false => trace,
        };
        let trace = trace.timer_irq().wake(LOOP).after(1);
        let trace = trace.timer_irq_end().after(5).preempt(HELPER, LOOP);
        let (diagnosis, budget) = asked(trace.at(24_000).block(LOOP, HELPER), TimeRange::ALL);
        let (basis, late) = (&diagnosis.basis, diagnosis.activations.len());
        assert_eq!((late, budget.over), (1, 1), "{is_told}");
        let unknown = (basis.unwoken, basis.unjudged, basis.doubted);
        (unknown, budget.unwoken, budget.unseen, budget.unsure)
    };
    assert_eq!(found(true), found(false));
}

#[test]
fn who_has_the_cpu_in_an_interrupt_right_behind_its_switch_has_come_back() {
    let hog = Task::rt(300, "hog", 50);
    // The kernel does not record that the helper leaves the CPU to the hog again.
    let trace = SyntheticTrace::new().at(10).block(LOOP, hog).at(900);
    let trace = trace.block(hog, HELPER).cpu(1).waking(hog, 0).cpu(0);
    let current = [("tid", event::Value::Signed(hog.tid.into()))];
    let trace = trace.after(31).event("rtscope_current", &current);
    let trace = trace.timer_irq().after(1).timer_irq_end();
    let trace = trace.at(1_000).timer_irq().wake(LOOP).after(1);
    let trace = trace.timer_irq_end().at(21_000).block(hog, LOOP);
    let (diagnosis, _) = asked(trace.after(100).block(LOOP, HELPER), TimeRange::ALL);
    let verdict = diagnosis.verdict().expect("it is late");
    let said = &verdict.sentence;
    assert!(said.contains("hog (tid 300, rt 50) ran ahead"), "{said}");
}

#[test]
fn what_was_lost_sight_of_has_no_waits_that_are_activations() {
    // It leaves its CPU unseen in the midst of its work, and works on until it sleeps.
    let scene = |task: Task| {
        let trace = SyntheticTrace::new().at(10).run(task).at(20);
        let trace = trace.block(task, Task::IDLE).at(1_000).timer_irq();
        let trace = trace.wake(task).after(1).timer_irq_end().at(1_010);
        let trace = trace.run(task).at(1_500).block(HELPER, Task::IDLE);
        let mut trace = trace.at(2_000).run(task);
        for turn in 0..4 {
            trace = trace.at(2_100 + 4_000 * turn).preempt(task, HELPER);
            trace = trace.after(3_900).preempt(HELPER, task);
        }
        trace.at(20_000).block(task, Task::IDLE).at(30_000).nmi(1)
    };
    let (diagnosis, budget) = asked(scene(LOOP), TimeRange::ALL);
    assert!(diagnosis.activations.is_empty(), "{diagnosis:?}");
    assert_eq!((budget.samples, diagnosis.basis.activations), (0, 0));
    assert!(diagnosis.basis.doubted + diagnosis.basis.unwoken > 0);
    let is_doubt = matches!(budget.judgement, Judgement::Inconclusive(_));
    assert!(is_doubt, "{budget:?}");
    // A deadline begins anew with each runtime.
    let (diagnosis, budget) = asked(scene(Task { prio: -1, ..LOOP }), TimeRange::ALL);
    assert!(!diagnosis.activations.is_empty(), "{diagnosis:?}");
    assert_ne!(budget.judgement, Judgement::Held, "{budget:?}");
}

#[test]
fn who_just_became_a_deadline_task_may_have_given_up_its_runtime() {
    // Nobody knows how much of it was left as a tick came: it may have yielded right then.
    let (before, deadline) = (Task::fair(LOOP.tid, LOOP.comm), Task { prio: -1, ..LOOP });
    let verdict = |came_as: Task, left_us: i64| {
        let trace = SyntheticTrace::new().at(10).run(came_as).at(left_us);
        let trace = trace.timer_irq().after(1).timer_irq_end().after(2);
        let trace = trace.preempt(deadline, HELPER).at(left_us + 10_000);
        let trace = trace.preempt(HELPER, deadline).at(20_000).nmi(1);
        let (diagnosis, budget) = asked(trace, TimeRange::ALL);
        let verdict = diagnosis.verdict().expect("it was put off");
        (verdict.conclusive, budget.judgement == Judgement::Broken)
    };
    assert_eq!(verdict(before, 400), (false, false));
    assert_eq!(verdict(deadline, 400), (true, true));
    // It worked for long enough to use up any.
    assert_eq!(verdict(before, 4_000), (true, true));
}

#[test]
fn who_gives_up_the_rest_of_its_runtime_again_and_again_breaks_no_budget() {
    let deadline = Task { prio: -1, ..LOOP };
    let mut trace = SyntheticTrace::new().at(10).run(deadline);
    for turn in 1..=10 {
        trace = trace.at(turn * PERIOD_US).preempt(deadline, HELPER);
        let next_us = (turn + 1) * PERIOD_US - 500;
        trace = trace.at(next_us).preempt(HELPER, deadline);
    }
    let (diagnosis, budget) = asked(trace, TimeRange::ALL);
    assert_eq!(budget.over, 0, "{budget:?}");
    assert_ne!(budget.judgement, Judgement::Held, "{budget:?}");
    let verdict = diagnosis.verdict().expect("it was put off");
    assert!(!verdict.conclusive, "{}", verdict.sentence);
}

#[test]
fn what_the_kernel_did_not_record_is_not_called_a_loss() {
    // It is woken where it seems to be, and another one leaves that CPU.
    let trace = || {
        let trace = SyntheticTrace::new().at(10).run(LOOP).at(5_000).timer_irq();
        let trace = trace.wake(LOOP).after(1).timer_irq_end();
        trace.at(20_000).block(HELPER, Task::IDLE)
    };
    let said = |trace: SyntheticTrace| {
        let rules = Rules::parse("wake-up of loop within 3ms").expect("a rule");
        let checked = check_budgets(&trace.build(), &rules, TimeRange::ALL);
        let checked = checked.expect("it is read");
        assert_eq!(checked.findings[0].unsure, 1);
        report::budgets_text(&checked)
    };
    let text = said(trace());
    assert!(
        text.contains("1 not counted: switches were not recorded"),
        "{text}"
    );
    assert!(text.ends_with("none lost\n"), "{text}");
    let text = said(trace().lost(21_000, 22_000));
    assert!(text.contains("1 not counted: events are missing"), "{text}");
}

/// Events are lost up to this instant, at which the loop is woken; how many of its activations are
/// of a known length.
#[track_caller]
fn check_loss(loss_ns: (i64, i64), expect: u64) {
    let trace = SyntheticTrace::new().at(10).block(LOOP, HELPER);
    let trace = trace.lost_on(Some(0), loss_ns.0, loss_ns.1);
    let trace = trace.at(900).run(HELPER).at(1000).wake(LOOP).after(1);
    let trace = trace.at(1010).preempt(HELPER, LOOP);
    let trace = trace.at(7010).block(LOOP, Task::IDLE).at(20_000).nmi(1);
    let (diagnosis, budget) = asked(trace, TimeRange::ALL);
    assert_eq!(
        (budget.samples, budget.over),
        (expect, expect),
        "{budget:?}"
    );
    let whole = |late: &&LateActivation| late.ledger.grade != Grade::Lossy;
    let late = diagnosis.activations.iter().filter(whole);
    assert_eq!(late.count() as u64, expect, "{diagnosis:?}");
}

#[test]
fn what_begins_at_the_very_end_of_a_loss_is_known() {
    const END_NS: i64 = 1_000_000;
    check_loss((800_000, END_NS), 1);
    check_loss((800_000, END_NS - 1), 1);
    check_loss((800_000, END_NS + 1), 0);
    // Nobody knows which of the two came first.
    check_loss((END_NS, END_NS), 0);
    check_loss((END_NS - 1, END_NS - 1), 1);
}

/// What is missing: a place for each CPU without a stream, which `info` names, too.
#[track_caller]
fn check_streams(trace: SyntheticTrace, missing: &[u32]) {
    let facts = TraceFacts::gather(&trace.clone().build(), TimeRange::ALL, &[], |_, _| {});
    let facts = facts.expect("it is read");
    let unrecorded: Vec<u32> = facts.unrecorded.iter().map(|cpu| cpu.0).collect();
    assert_eq!(unrecorded, missing);
    let places = missing.len() as u64;
    assert_eq!(facts.losses.uncounted_places, places);
    let (diagnosis, budget) = asked(trace.clone(), TimeRange::ALL);
    assert_eq!(diagnosis.basis.holes, places);
    let verdict = diagnosis.verdict().expect("it seems late");
    assert_eq!(
        verdict.conclusive,
        missing.is_empty(),
        "{}",
        verdict.sentence
    );
    let is_broken = budget.judgement == Judgement::Broken;
    assert_eq!(is_broken, missing.is_empty(), "{budget:?}");
    // Where nothing seems late, too.
    let (diagnosis, budget) = asked(trace, from_to(0, 3000));
    let is_held = budget.judgement == Judgement::Held;
    assert!(!is_held, "it goes on: {budget:?}");
    let text = report::diagnosis_text(&diagnosis, &report::TextStyle::default());
    let is_limited = text.contains("What is missing in");
    assert_eq!(is_limited, !missing.is_empty(), "{text}");
}

#[test]
fn a_cpu_that_events_name_and_that_has_no_stream_is_missing_in_every_verb() {
    let lttng = |trace: SyntheticTrace| trace.environment("tracer_name", "lttng-modules");
    let moved = |cpu: u32| {
        let trace = SyntheticTrace::new().at(5).migrate_from(HELPER, 0, cpu);
        let trace = trace.at(10).block(LOOP, Task::IDLE).at(1000).timer_irq();
        let trace = trace.wake(LOOP).after(1).timer_irq_end().at(1010).run(LOOP);
        trace.at(7010).block(LOOP, Task::IDLE).at(20_000).nmi(1)
    };
    // The trace has streams of CPU 0 and 1.
    check_streams(lttng(moved(1)), &[]);
    check_streams(lttng(moved(2)), &[2]);
    check_streams(lttng(moved(2).at(25_000).waking(HELPER, 3)), &[2, 3]);
    // A number that no CPU has was damaged.
    check_streams(lttng(moved(1 << 20)), &[]);
    // Who has a stream there needs no event.
    check_streams(lttng(moved(2).also_of_cpu(2)), &[]);
    // Other tracers write none of a CPU without events; or it is said which were recorded.
    check_streams(moved(2), &[]);
    check_streams(lttng(moved(2).environment("rtscope_cpus", "0,1")), &[]);
}

/// A daemon that calls itself and its child otherwise than its program, and both late once.
/// `says` tells which program it runs.
fn daemon(says: impl Fn(SyntheticTrace) -> SyntheticTrace) -> SyntheticTrace {
    let child = Task::rt(101, "child", 50);
    let mut trace = says(SyntheticTrace::new().at(0).run(LOOP).after(10));
    trace = trace.fork(LOOP, child).after(10).wakeup_new(child, 0);
    trace = trace.after(10).block(LOOP, child).after(10);
    trace = trace.block(child, Task::IDLE);
    for (begin_us, task) in [(10_000, LOOP), (20_000, child), (30_000, HELPER)] {
        trace = trace.at(begin_us).timer_irq().wake(task).after(1);
        trace = trace.timer_irq_end().after(5).run(task);
        trace = trace.at(begin_us + 5_000).block(task, Task::IDLE);
    }
    trace
}

#[test]
fn a_process_is_called_by_its_programs_file_whatever_its_threads_call_themselves() {
    let by_exec = |trace: SyntheticTrace| {
        let begun = Task {
            comm: "a-daemon",
            ..LOOP
        };
        trace.exec(LOOP, "a-daemon").after(5).rename(begun, "loop")
    };
    let by_dump = |trace: SyntheticTrace| {
        let program = event::Value::Text("a-daemon".into());
        let fields = [("tgid", event::Value::Signed(100)), ("program", program)];
        trace.event("rtscope_statedump_task", &fields)
    };
    let check = |who: &str, trace: SyntheticTrace, expect: usize| {
        let (diagnosis, budget) = asked_of(who, trace, TimeRange::ALL);
        assert_eq!(diagnosis.activations.len(), expect, "{who}");
        assert_eq!(budget.over, expect as u64, "{who}: {budget:?}");
    };
    for trace in [daemon(by_exec), daemon(by_dump)] {
        check("process:a-daemon", trace.clone(), 2);
        check("process:a-dae*", trace.clone(), 2);
        // By the names of their first threads.
        check("process:loop", trace.clone(), 1);
        check("process:child", trace.clone(), 1);
        // No thread is called so.
        check("a-daemon", trace.clone(), 0);
        check("process:a-daemo", trace, 0);
    }
    check("process:a-daemon", daemon(|trace| trace), 0);
}
