//! What traces say about budgets.

use event::{TimeRange, Value};
use testkit::waiting::{HOG, WORK, wake_ups};
use testkit::{SyntheticTrace, Task};
use views::{Judgement, Rules, check_budgets};

#[track_caller]
fn check(trace: SyntheticTrace, rule: &str, expect: &str) {
    let rules = Rules::parse(rule).expect("a rule");
    let checked = check_budgets(&trace.build(), &rules, TimeRange::ALL).expect("it is read");
    let finding = &checked.findings[0];
    let found = match &finding.judgement {
        Judgement::Held => "held",
        Judgement::Broken => "broken",
        Judgement::Inconclusive(why) => why.as_str(),
    };
    assert_eq!(found, expect, "{finding:?}");
}

#[test]
fn a_budget_for_all_is_broken_by_one_and_held_up_to_its_limit() {
    check(
        wake_ups(&[5, 50, 20]),
        "wake-up of work within 50us",
        "held",
    );
    check(
        wake_ups(&[5, 51, 20]),
        "wake-up of work within 50us",
        "broken",
    );
    check(
        wake_ups(&[]),
        "wake-up of work within 50us",
        "there is no sample",
    );
}

#[test]
fn a_budget_for_a_share_allows_that_share_and_wants_enough_samples() {
    let one_of_ten = [5, 5, 5, 500, 5, 5, 5, 5, 5, 5];
    check(
        wake_ups(&one_of_ten),
        "wake-up of work within 50us p90",
        "held",
    );
    check(
        wake_ups(&one_of_ten[..5]),
        "wake-up of work within 50us p80",
        "held",
    );
    check(
        wake_ups(&one_of_ten[..4]),
        "wake-up of work within 50us p70",
        "held",
    );
    check(
        wake_ups(&[500, 500, 5, 5]),
        "wake-up of work within 50us p70",
        "broken",
    );
    let few = "it takes 10 samples to tell";
    check(
        wake_ups(&one_of_ten[..4]),
        "wake-up of work within 50us p90",
        few,
    );
    // Six more could not fix it: ten allow one.
    check(
        wake_ups(&[500, 5, 500, 5]),
        "wake-up of work within 50us p90",
        "broken",
    );
}

#[test]
fn a_thread_that_is_woken_and_never_comes_on_a_cpu_is_over_when_the_limit_has_passed() {
    let starved = |after_us: i64| {
        let trace = wake_ups(&[5, 5]).at(50_000).timer_irq().waking(WORK, 0);
        trace.timer_irq_end().after(after_us).nmi(1)
    };
    let rule = "wake-up of work within 50us";
    check(starved(60), rule, "broken");
    check(starved(40), rule, "held");
    let never_ran = SyntheticTrace::new().at(0).run(HOG).at(100);
    let never_ran = never_ran.timer_irq().waking(WORK, 0).timer_irq_end();
    check(never_ran.at(900).nmi(1), rule, "broken");
}

#[test]
fn a_wait_that_ended_in_a_switch_that_was_not_recorded_is_not_judged() {
    let trace = wake_ups(&[5]).at(20_000).timer_irq().waking(WORK, 0);
    // It is on a CPU all at once, and goes.
    let trace = trace.timer_irq_end().at(20_500).block(WORK, HOG);
    let trace = trace.at(30_000).timer_irq().waking(WORK, 0);
    let trace = trace.timer_irq_end().after(5).block(HOG, WORK);
    check(
        trace,
        "wake-up of work within 50us",
        "nobody knows how long 1 of them lasted",
    );
}

#[test]
fn too_many_are_over_whatever_those_were_of_which_nobody_knows() {
    // The end of the last one was not recorded.
    let waits = |latencies_us: &[i64]| {
        let at_us = 10_000 * (latencies_us.len() as i64 + 1);
        let trace = wake_ups(latencies_us).at(at_us).timer_irq().waking(WORK, 0);
        trace.timer_irq_end().at(at_us + 500).block(WORK, HOG)
    };
    let rule = "wake-up of work within 50us p70";
    check(waits(&[500, 500, 5, 500]), rule, "broken");
    // Two of five are too many, two of seven are not: the unknown one decides.
    let unknown = "nobody knows how long 1 of them lasted";
    check(waits(&[5, 500, 5, 500, 5, 5]), rule, unknown);
    check(waits(&[5, 5, 5, 500, 5, 5]), rule, "held");
}

#[test]
fn a_wait_whose_end_is_inferred_is_no_sample_even_where_it_could_be_at_one_instant_only() {
    let trace = SyntheticTrace::new().at(0).cpu(1).block(HOG, Task::IDLE);
    let trace = trace.at(10).cpu(0).waking(WORK, 1).after(1).wakeup(WORK, 1);
    // The CPU still idles at 20 us, and at 20 us the task leaves it.
    let trace = trace.at(20).cpu(1).in_task(Some(0)).timer_irq();
    let trace = trace.timer_irq_end().in_task(None);
    let trace = trace.block(WORK, Task::IDLE).at(30).run(HOG);
    check_inferred(trace.block(WORK, Task::IDLE).at(30).run(HOG));
    // A CPU hides where it stops to idle, and the last event of all is a wake-up there.
    let trace = SyntheticTrace::new().at(0).cpu(1).block(HOG, Task::IDLE);
    let trace = trace.at(10).cpu(0).waking(HOG, 1).after(1).wakeup(HOG, 1);
    let trace = trace.at(20).cpu(1).block(HOG, Task::IDLE);
    check_inferred(trace.at(30).cpu(0).waking(WORK, 1));
}

/// The wait of `work` is known to have been short, and not how short.
#[track_caller]
fn check_inferred(trace: SyntheticTrace) {
    let rules = Rules::parse("wake-up of work within 50us").expect("a rule");
    let checked = check_budgets(&trace.build(), &rules, TimeRange::ALL).expect("it is read");
    let finding = &checked.findings[0];
    assert_eq!((finding.samples, finding.within), (0, 1), "{finding:?}");
}

#[test]
fn what_is_lost_forbids_to_say_held_but_not_to_say_broken() {
    let lost = "events are missing in 1 place";
    let trace = || wake_ups(&[5, 60, 5]).lost(31_000, 32_000);
    check(trace(), "wake-up of work within 70us", lost);
    check(trace(), "wake-up of work within 50us", "broken");
    check(trace(), "wake-up of work within 50us p60", lost);
}

#[test]
fn a_period_that_the_end_cuts_off_is_over_only_when_it_is_over_already() {
    let rules = |limit: &str| {
        format!(
            "period idle : $evt.$name == \"sched_switch\" && $evt.next_tid == 0 :\n  \
             $evt.$name == \"sched_switch\" && $evt.prev_tid == 0\nidle within {limit}"
        )
    };
    let trace = || {
        wake_ups(&[5, 5])
            .after(100)
            .block(HOG, Task::IDLE)
            .after(900)
            .nmi(1)
    };
    check(trace(), &rules("800us"), "broken");
    check(trace(), &rules("1ms"), "held");
}

/// The thread is woken, waits `wait_us`, runs `work_us`, and is put off for `put_off_us` in the
/// middle of it.
fn activation(wait_us: i64, work_us: i64, put_off_us: i64) -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(0).block(WORK, Task::IDLE);
    let trace = trace.at(10_000).timer_irq().wake(WORK).timer_irq_end();
    let trace = trace.after(wait_us).run(WORK).after(work_us / 2);
    let trace = trace.preempt(WORK, HOG).after(put_off_us).block(HOG, WORK);
    trace.after(work_us - work_us / 2).block(WORK, Task::IDLE)
}

#[test]
fn a_response_is_all_of_it_and_work_is_what_the_thread_ran() {
    let trace = || activation(100, 2000, 3000);
    check(trace(), "wake-up of work within 101us", "held");
    check(trace(), "work of work within 2000us", "held");
    check(trace(), "work of work within 1999us", "broken");
    check(trace(), "response of work within 5101us", "held");
    check(trace(), "response of work within 5100us", "broken");
}

#[test]
fn a_wait_for_a_lock_of_the_program_is_part_of_the_response() {
    const MUTEX: (i64, u64, u64) = (128, 2, 0);
    let trace = |call| {
        let trace = SyntheticTrace::new().at(0).block(WORK, Task::IDLE);
        let trace = trace.at(10_000).timer_irq().wake(WORK).timer_irq_end();
        let trace = trace.run(WORK).after(50).futex(call).after(1);
        let trace = trace.block(WORK, HOG).after(3_000).wake(WORK);
        let trace = trace.preempt(HOG, WORK).after(1).futex_end();
        trace.after(48)
    };
    let lets_go = |trace: SyntheticTrace| {
        let trace = trace.futex((128 | 1, 1, 0)).futex_end();
        trace.block(WORK, Task::IDLE)
    };
    let held = || lets_go(trace(MUTEX));
    check(held(), "response of work within 3110us", "held");
    check(held(), "response of work within 3090us", "broken");
    check(held(), "work of work within 110us", "held");
    // It may have slept for its next work: nobody knows.
    let kept = || trace(MUTEX).block(WORK, Task::IDLE);
    let unknown = "the wake-up of 1 of them was not recorded";
    check(kept(), "response of work within 3090us", unknown);
    // Until its next work.
    let trace = trace((128, 0, 0)).block(WORK, Task::IDLE);
    check(trace, "response of work within 110us", "held");
}

const TIMER: u64 = 7;

/// The thread sets a timer for `due_us` at `set_us`, sleeps, and is woken by it at 13 ms; its work
/// ends 100 µs later.
fn released(set_us: i64, due_us: i64) -> SyntheticTrace {
    released_with_slack(set_us, due_us, due_us)
}

/// The same, of a timer that may run from `due_us` on, and until `last_us`.
fn released_with_slack(set_us: i64, due_us: i64, last_us: i64) -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(set_us - 10).run(WORK);
    let trace = trace
        .at(set_us)
        .hrtimer_start_with_slack(TIMER, due_us, last_us);
    let trace = trace.after(1).block(WORK, HOG);
    let trace = trace.at(13_000).timer_irq().hrtimer_expire(TIMER);
    let trace = trace.wake(WORK).hrtimer_done(TIMER).timer_irq_end();
    trace.preempt(HOG, WORK).at(13_100).block(WORK, Task::IDLE)
}

#[test]
fn a_response_begins_where_the_timer_was_due_that_woke_its_thread() {
    let trace = || released(5_000, 10_000);
    check(trace(), "response of work within 3100us", "held");
    check(trace(), "response of work within 3099us", "broken");
    // Interrupts were off, and nothing of that is a wait for a CPU.
    check(trace(), "wake-up of work within 10us", "held");
    check(trace(), "work of work within 110us", "held");
    // One that is set for an instant that has passed is due at once.
    let trace = || released(12_000, 10_000);
    check(trace(), "response of work within 1100us", "held");
    check(trace(), "response of work within 1099us", "broken");
}

#[test]
fn a_response_begins_before_the_slack_of_its_timer_where_that_is_half_of_its_limit() {
    // The timer runs in its slack, or behind it.
    for last_us in [30_000, 12_000] {
        let trace = || released_with_slack(5_000, 8_000, last_us);
        check(trace(), "response of work within 5100us", "held");
        check(trace(), "response of work within 5099us", "broken");
        check(trace(), "timer of work within 1001us", "held");
    }
    let little = || released_with_slack(5_000, 9_100, 10_000);
    check(little(), "response of work within 3100us", "held");
    check(little(), "response of work within 1500us", "broken");
    let half = || released_with_slack(5_000, 8_000, 10_000);
    check(half(), "response of work within 4900us", "held");
    check(half(), "response of work within 4000us", "broken");
}

#[test]
fn releases_that_pass_while_it_is_late_are_no_budgets_share_of_one() {
    // Forty cycles of 10 ms; in one the work takes so long.
    let cycles = |long_us: i64| {
        let mut trace = SyntheticTrace::new().at(10).block(WORK, HOG);
        let mut due_us = 10_000;
        for turn in 0..40 {
            let works_us = if turn == 20 { long_us } else { 100 };
            trace = trace.hrtimer_start(TIMER, due_us).at(due_us).timer_irq();
            trace = trace.hrtimer_expire(TIMER).wake(WORK).hrtimer_done(TIMER);
            trace = trace.after(1).timer_irq_end().after(5);
            trace = trace.preempt(HOG, WORK);
            trace = trace.after(works_us).block(WORK, HOG);
            due_us += (works_us / 10_000 + 1) * 10_000;
        }
        trace
    };
    let share = "response of work within 5ms p90";
    check(cycles(100), share, "held");
    check(cycles(34_000), share, "held");
    // Of 46 jobs 6 were late: one, which is told, and five that it caught up with.
    let why = "5 more releases of its timer passed in those that are over";
    check(cycles(64_000), share, why);
    check(cycles(64_000), "response of work within 5ms", "broken");
}

#[test]
fn a_timer_that_wakes_somebody_else_releases_nobody() {
    const OTHER: u64 = 8;
    let asleep = || {
        let trace = SyntheticTrace::new().at(4_990).run(WORK);
        let trace = trace.at(5_000).hrtimer_start(TIMER, 10_000);
        let trace = trace.hrtimer_start(OTHER, 13_000);
        trace.after(1).block(WORK, HOG).at(13_000).timer_irq()
    };
    let works = |trace: SyntheticTrace| {
        let trace = trace.timer_irq_end().preempt(HOG, WORK);
        trace.at(13_100).block(WORK, Task::IDLE)
    };
    // By the interrupt behind that timer's function; by another timer, which was in time; where the
    // end of the timer's function was not recorded, once its CPU was seen at something else.
    let behind = || {
        let trace = asleep().hrtimer_expire(TIMER).hrtimer_done(TIMER);
        works(trace.wake(WORK))
    };
    let beside = || {
        let trace = asleep().hrtimer_expire(TIMER).hrtimer_expire(OTHER);
        works(trace.wake(WORK))
    };
    let later = || {
        let trace = asleep().hrtimer_expire(TIMER).timer_irq_end();
        let trace = trace.block(HOG, Task::IDLE).timer_irq();
        let trace = trace.wake(WORK).timer_irq_end().run(WORK);
        trace.at(13_100).block(WORK, Task::IDLE)
    };
    for trace in [&behind as &dyn Fn() -> SyntheticTrace, &beside, &later] {
        check(trace(), "response of work within 101us", "held");
        check(trace(), "response of work within 90us", "broken");
    }
}

#[test]
fn a_timer_that_came_late_and_whose_thread_still_waits_breaks_the_response() {
    let trace = || {
        let trace = SyntheticTrace::new().at(0).run(WORK);
        let trace = trace.at(5_000).hrtimer_start(TIMER, 10_000);
        let trace = trace.after(1).block(WORK, HOG).at(13_000).timer_irq();
        let trace = trace.hrtimer_expire(TIMER).wake(WORK);
        trace.hrtimer_done(TIMER).timer_irq_end().after(10).nmi(1)
    };
    check(trace(), "response of work within 3ms", "broken");
    check(trace(), "wake-up of work within 3ms", "there is no sample");
}

#[test]
fn a_timer_whose_clock_was_set_forward_is_late_by_that_clock() {
    const WALL_US: i64 = 1_700_000_000_000_000;
    // It sleeps until so long after now by the wall clock, which is then set forward.
    let sleeps = |trace: SyntheticTrace, [begin_us, end_us, set_us, by_us]: [i64; 4]| {
        let due_us = WALL_US + end_us;
        let trace = trace.at(begin_us).hrtimer_start(TIMER, due_us);
        let trace = trace.after(1).block(WORK, HOG).at(set_us).timer_irq();
        let now = Value::Signed((WALL_US + set_us + by_us) * 1_000);
        let timer = [("hrtimer", Value::Unsigned(TIMER)), ("now", now)];
        let trace = trace.event("timer_hrtimer_expire_entry", &timer);
        let trace = trace.wake(WORK).hrtimer_done(TIMER).timer_irq_end();
        trace.after(5).preempt(HOG, WORK)
    };
    let set = || {
        let trace = SyntheticTrace::new().at(100_000).run(WORK);
        let trace = sleeps(trace, [100_100, 110_000, 110_020, 0]);
        let trace = sleeps(trace, [120_000, 130_000, 125_000, 60_000]);
        trace.at(125_100).block(WORK, HOG).after(10).nmi(1)
    };
    check(set(), "timer of work within 55ms", "held");
    check(set(), "timer of work within 54ms", "broken");
    check(set(), "response of work within 55101us", "held");
    check(set(), "response of work within 55ms", "broken");
    // Set in the past, and nobody touched the clock: due at once.
    let past = || {
        let trace = SyntheticTrace::new().at(100_000).run(WORK);
        let trace = sleeps(trace, [100_100, 110_000, 110_020, 0]);
        let trace = sleeps(trace, [120_000, 60_000, 120_050, 0]);
        trace.at(120_150).block(WORK, HOG).after(10).nmi(1)
    };
    check(past(), "timer of work within 50us", "held");
}

/// The thread is woken and runs.
fn at_work() -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(0).block(WORK, Task::IDLE);
    let trace = trace.at(10_000).timer_irq().wake(WORK);
    trace.timer_irq_end().run(WORK)
}

#[test]
fn a_sleep_in_the_kernel_does_not_end_a_response() {
    let trace = || {
        let trace = at_work().after(100).block_uninterruptible(WORK, Task::IDLE);
        let trace = trace.after(5000).wake(WORK).run(WORK);
        trace.after(100).block(WORK, Task::IDLE)
    };
    check(trace(), "response of work within 5100us", "broken");
    check(trace(), "work of work within 210us", "held");
}

#[test]
fn a_response_that_is_not_over_is_broken_when_its_limit_has_passed() {
    let trace = || at_work().after(900).nmi(1);
    check(trace(), "response of work within 800us", "broken");
    check(trace(), "response of work within 2ms", "there is no sample");
    check(trace(), "work of work within 800us", "broken");
}

#[test]
fn what_began_before_the_trace_is_counted_and_not_judged() {
    let check = |end_us: i64, expect: (u64, u64)| {
        let trace = SyntheticTrace::new().at(0).run(WORK).at(end_us);
        let trace = trace.block(WORK, Task::IDLE);
        let rules = Rules::parse("response of work within 1ms").expect("a rule");
        let checked = check_budgets(&trace.build(), &rules, TimeRange::ALL).expect("it is read");
        let finding = &checked.findings[0];
        assert_eq!(finding.samples, 0);
        assert_eq!((finding.unseen, finding.unwoken), expect);
    };
    check(900, (1, 0));
    // It was not in time: what was seen of it took longer.
    check(9000, (0, 1));
}

#[test]
fn a_wait_for_a_page_begins_nothing_where_the_begin_was_not_seen() {
    let check = |before_us: i64, expect: (u64, u64, u64)| {
        let trace = SyntheticTrace::new().at(0).run(HOG).after(before_us);
        let trace = trace.block(HOG, WORK).after(10);
        let trace = trace.block_uninterruptible(WORK, Task::IDLE).after(50);
        let trace = trace.wake(WORK).after(10).run(WORK).after(10);
        let trace = trace.block(WORK, Task::IDLE);
        // The next one is seen whole.
        let trace = trace.after(50).wake(WORK).after(10).run(WORK).after(10);
        let trace = trace.block(WORK, Task::IDLE);
        let rules = Rules::parse("response of work within 1ms").expect("a rule");
        let checked = check_budgets(&trace.build(), &rules, TimeRange::ALL).expect("it is read");
        let finding = &checked.findings[0];
        assert_eq!(
            (finding.samples, finding.unseen, finding.unwoken),
            expect,
            "{finding:?}"
        );
    };
    check(500, (1, 1, 0));
    check(9000, (1, 0, 1));
}
