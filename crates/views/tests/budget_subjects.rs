//! What traces say about budgets of handlers, timers and system calls, and of wake-ups that no
//! event tells of.

use event::TimeRange;
use testkit::waiting::{HOG, WORK, wake_ups};
use testkit::{SyntheticTrace, Task};
use views::{BudgetFinding, Judgement, Rules, check_budgets};

fn judge(trace: SyntheticTrace, rule: &str) -> BudgetFinding {
    let rules = Rules::parse(rule).expect("a rule");
    let checked = check_budgets(&trace.build(), &rules, TimeRange::ALL).expect("it is read");
    checked.findings[0].clone()
}

/// The judgement, how many samples count, and the longest in microseconds.
#[track_caller]
fn check(trace: SyntheticTrace, rule: &str, expect: (&str, u64, i64)) {
    let finding = judge(trace, rule);
    let judgement = match &finding.judgement {
        Judgement::Held => "held",
        Judgement::Broken => "broken",
        Judgement::Inconclusive(why) => why.as_str(),
    };
    let worst_us = finding
        .worst
        .map_or(0, |worst| worst.duration().as_ns() / 1000);
    assert_eq!(
        (judgement, finding.samples, worst_us),
        expect,
        "{finding:?}"
    );
}

/// Interrupt 36 for 30 us, with a softirq of 50 us behind it; the local timer for 7 us.
fn interrupts() -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(0).run(HOG).at(100);
    let trace = trace.irq(36, "virtio1-req.0").after(30).irq_end(36);
    let trace = trace.softirq(3).after(50).softirq_end(3);
    trace.at(500).timer_irq().after(7).timer_irq_end()
}

#[test]
fn handlers_are_named_by_number_by_name_and_by_pattern() {
    check(interrupts(), "irq 36 within 30us", ("held", 1, 30));
    check(interrupts(), "irq 36 within 29us", ("broken", 1, 30));
    check(
        interrupts(),
        "irq virtio*-req.0 within 30us",
        ("held", 1, 30),
    );
    check(interrupts(), "irq local timer within 6us", ("broken", 1, 7));
    check(interrupts(), "irq * within 30us", ("held", 2, 30));
    check(
        interrupts(),
        "softirq net_rx within 49us",
        ("broken", 1, 50),
    );
    check(interrupts(), "softirq 3 within 50us", ("held", 1, 50));
    let none = ("there is no sample", 0, 0);
    check(interrupts(), "irq 3 within 1us", none);
    check(interrupts(), "irq 36x within 1us", none);
    check(interrupts(), "softirq RCU within 1us", none);
}

#[test]
fn a_handler_that_the_end_cuts_off_is_over_only_when_it_is_over_already() {
    let cut = || {
        interrupts()
            .at(900)
            .irq(36, "virtio1-req.0")
            .after(60)
            .nmi(1)
    };
    check(cut(), "irq 36 within 59us", ("broken", 2, 60));
    check(cut(), "irq 36 within 60us", ("held", 1, 30));
}

#[test]
fn what_is_lost_in_a_handler_makes_it_no_sample() {
    let trace = interrupts().lost_on(Some(0), 110_000, 120_000);
    let finding = judge(trace, "irq 36 within 1us");
    assert_eq!((finding.samples, finding.unsure), (0, 1), "{finding:?}");
}

/// The thread calls the kernel for 200 us and another one for 20 us.
fn calls() -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(0).block(HOG, WORK).at(100);
    let trace = trace.call("futex").after(200).call_end("futex");
    let trace = trace.after(5).block(WORK, HOG).after(5);
    trace.call("futex").after(20).call_end("futex")
}

#[test]
fn system_calls_are_judged_by_name_and_by_thread() {
    check(
        calls(),
        "system call futex within 199us",
        ("broken", 2, 200),
    );
    check(
        calls(),
        "system call fut* of hog within 20us",
        ("held", 1, 20),
    );
    check(
        calls(),
        "system call futex of prio:60 within 1ms",
        ("held", 1, 200),
    );
    check(
        calls(),
        "system call read within 1us",
        ("there is no sample", 0, 0),
    );
    let open = || calls().after(10).call("poll").after(300).nmi(1);
    check(open(), "system call poll within 299us", ("broken", 1, 300));
    // A thread that ends in a call is not late in it.
    let ended = calls()
        .call("exit")
        .after(5)
        .end(HOG, Task::IDLE)
        .after(900)
        .nmi(1);
    check(
        ended,
        "system call exit within 1us",
        ("there is no sample", 0, 0),
    );
}

#[test]
fn calls_of_programs_of_32_bits_are_calls() {
    let trace = SyntheticTrace::new().at(0).block(HOG, WORK).at(100);
    let trace = trace.call_of_32_bits("nanosleep", 300);
    check(
        trace,
        "system call nanosleep within 299us",
        ("broken", 1, 300),
    );
}

#[test]
fn where_entries_of_calls_alone_are_recorded_nobody_knows_when_they_returned() {
    let trace = SyntheticTrace::new().at(0).block(HOG, WORK).at(100);
    let trace = trace.call("getpgid").after(900).nmi(1);
    let finding = judge(trace, "system call getpgid within 100us");
    assert_eq!((finding.over, finding.unsure), (0, 1), "{finding:?}");
}

#[test]
fn where_begins_alone_are_recorded_nobody_knows_how_long_it_takes() {
    let check = |trace: SyntheticTrace, rule: &str| {
        let finding = judge(trace, rule);
        assert_eq!(finding.over, 0, "{rule}: {finding:?}");
        assert!(finding.unsure > 0, "{rule}: {finding:?}");
    };
    let softirqs = SyntheticTrace::new().at(0).block(HOG, WORK).at(100);
    let softirqs = softirqs.softirq(9).at(900).nmi(1);
    check(softirqs, "softirq RCU within 100us");
    let wakes = || SyntheticTrace::new().at(100).wake(HOG).at(900).nmi(1);
    check(wakes(), "wake-up of hog within 100us");
    check(wakes(), "response of hog within 100us");
}

/// A thread sets a timer that is 40 us late; its function sets it anew, and that is 10 us late.
fn timers() -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(0).block(HOG, WORK).at(100);
    let trace = trace.hrtimer_start(0xa0, 1000).after(5).block(WORK, HOG);
    let trace = trace.at(1030).timer_irq().after(10).hrtimer_expire(0xa0);
    let trace = trace
        .hrtimer_done(0xa0)
        .hrtimer_start(0xa0, 2000)
        .timer_irq_end();
    let trace = trace.at(2010).timer_irq().hrtimer_expire(0xa0);
    trace.hrtimer_done(0xa0).timer_irq_end()
}

#[test]
fn a_timer_is_late_from_its_instant_to_its_function_and_stays_the_timer_of_who_set_it() {
    check(timers(), "timer within 40us", ("held", 2, 40));
    check(timers(), "timer within 39us", ("broken", 2, 40));
    check(timers(), "timer of work within 39us", ("broken", 2, 40));
    check(
        timers(),
        "timer of hog within 1us",
        ("there is no sample", 0, 0),
    );
    // Set behind its instant, it is due when it is set.
    let behind = SyntheticTrace::new().at(0).block(HOG, WORK).at(5000);
    let behind = behind.hrtimer_start(0xa0, 1000).at(5020).timer_irq();
    check(
        behind.hrtimer_expire(0xa0),
        "timer within 1ms",
        ("held", 1, 20),
    );
    // Nobody knows whether it was set anew where events are missing.
    let lost = timers().lost(500, 600);
    assert_eq!(judge(lost, "timer within 1us").samples, 1);
}

#[test]
fn a_wake_up_of_which_no_event_tells_is_counted_and_forbids_to_say_held() {
    // It sleeps, and is there again.
    let unwoken = || {
        let trace = wake_ups(&[5, 5]).after(100).block(HOG, WORK);
        trace.after(50).block(WORK, Task::IDLE)
    };
    let why = "the wake-up of 1 of them was not recorded";
    check(unwoken(), "wake-up of work within 50us", (why, 2, 5));
    check(unwoken(), "response of work within 120us", (why, 2, 105));
    // It has not slept for so long.
    check(unwoken(), "response of work within 500us", ("held", 2, 105));
    check(unwoken(), "wake-up of work within 4us", ("broken", 2, 5));
    check(unwoken(), "wake-up of work within 50us p50", ("held", 2, 5));
    let finding = judge(unwoken(), "response of work within 120us");
    assert_eq!((finding.unseen, finding.unwoken), (0, 1), "{finding:?}");
    // What is preempted goes on without one.
    let preempted = wake_ups(&[5, 5]).after(100).block(HOG, WORK);
    let finding = judge(
        preempted.after(1).preempt(WORK, HOG),
        "work of hog within 1s",
    );
    assert_eq!(finding.unwoken, 0, "{finding:?}");
}

#[test]
fn who_never_sleeps_is_judged_by_each_of_its_waits_for_a_cpu() {
    let trace = || {
        let trace = SyntheticTrace::new().at(0).run(WORK).at(5_000);
        let trace = trace.preempt(WORK, HOG).at(37_000).block(HOG, WORK);
        let trace = trace.at(40_000).preempt(WORK, HOG).after(5);
        trace.block(HOG, WORK).after(5).nmi(1)
    };
    check(
        trace(),
        "response of work within 10ms",
        ("broken", 2, 32_000),
    );
    check(trace(), "response of work within 33ms", ("held", 2, 32_000));
    // It is no work of its own, and nobody woke it.
    check(
        trace(),
        "work of work within 10ms",
        ("there is no sample", 0, 0),
    );
    check(
        trace(),
        "wake-up of work within 10ms",
        ("there is no sample", 0, 0),
    );
}

#[test]
fn who_came_on_its_cpu_unseen_may_have_worked_for_all_of_its_activation() {
    // Only its end is recorded on CPU 0.
    let trace = || {
        let trace = SyntheticTrace::new().at(0).block(HOG, Task::IDLE);
        let trace = trace.cpu(1).at(1_000).wake_for(WORK, 0);
        trace.cpu(0).at(20_000).block(WORK, Task::IDLE)
    };
    let unknown = ("nobody knows how long 1 of them lasted", 0, 0);
    check(trace(), "work of work within 1ms", unknown);
    check(trace(), "work of work within 25ms", ("held", 0, 0));
}
