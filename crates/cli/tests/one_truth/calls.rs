//! System calls over a loss of events, or over the begin of a recording: who may have returned
//! unseen is not said to be in one, and none that was long is left out.

use testkit::{SyntheticTrace, Task};
use views::Judgement;

use crate::agree::found;
use crate::answers::Answers;

const VIC: Task = Task::rt(101, "vic", 50);
const HOG: Task = Task::rt(102, "hog", 60);
const WAKER: Task = Task::fair(103, "waker");

/// The victim has CPU 0 from 1 ms on, and is in a call since 2 ms.
fn in_call() -> SyntheticTrace {
    let trace = SyntheticTrace::new().cpus(3).at(0).cpu(1).timer_irq();
    let trace = trace.after(1).timer_irq_end().cpu(2).run(WAKER);
    trace.cpu(0).at(1_000).run(VIC).at(2_000).call("read")
}

/// It is woken at 10 ms, is scheduled in at once and blocks again at 12 ms.
fn comes_back(trace: SyntheticTrace) -> SyntheticTrace {
    let trace = trace.cpu(2).at(10_000).wake_for(VIC, 0);
    let trace = trace.cpu(0).after(9).run(VIC);
    trace.at(12_000).block(VIC, Task::IDLE)
}

/// How many microseconds `states` gives to calls of the victim, and to the rest of its run.
fn check(trace: SyntheticTrace, expect_us: (i64, i64)) {
    let answers = Answers::of(&trace.build()).expect("all reports answer");
    let states = answers.threads[&VIC.tid];
    let said_us = (states.call_ns / 1_000, states.run_ns / 1_000);
    assert_eq!(said_us, expect_us, "{states:?}");
}

#[test]
fn who_may_have_returned_from_a_call_in_a_loss_is_not_said_to_be_in_it() {
    let sleeps = || in_call().at(3_000).block(VIC, Task::IDLE);
    let lost = |trace: SyntheticTrace| trace.lost_on(Some(1), 5_000_000, 6_000_000);
    check(comes_back(sleeps()), (2_990, 1_000));
    check(comes_back(lost(sleeps())), (1_000, 2_990));
    // It waited for a CPU meanwhile.
    let preempted = |trace: SyntheticTrace| {
        let back = trace.cpu(0).at(10_010).block(HOG, VIC);
        back.at(12_000).block(VIC, Task::IDLE)
    };
    let waits = || in_call().at(3_000).preempt(VIC, HOG);
    check(preempted(waits()), (2_990, 1_000));
    check(preempted(lost(waits())), (1_000, 2_990));
    // The loss began before it left its CPU, and was over later.
    let across = || sleeps().lost_on(Some(1), 2_500_000, 6_000_000);
    check(comes_back(across()), (1_000, 2_990));
    // It is in a call that begins behind the loss.
    let again = comes_back(lost(sleeps())).cpu(2).at(13_000);
    let again = again.wake_for(VIC, 0).cpu(0);
    let again = again.at(14_000).run(VIC).at(14_500).call("write");
    check(again.at(15_000).block(VIC, Task::IDLE), (1_500, 3_490));
}

#[test]
fn a_loss_elsewhere_ends_no_call_of_who_keeps_its_cpu() {
    let runs = |trace: SyntheticTrace| trace.cpu(0).at(9_000).block(VIC, Task::IDLE);
    check(runs(in_call()), (7_000, 1_000));
    check(
        runs(in_call().lost_on(Some(1), 5_000_000, 6_000_000)),
        (7_000, 1_000),
    );
    // On its own CPU nobody knows who had it from there on.
    check(
        runs(in_call().lost_on(Some(0), 5_000_000, 6_000_000)),
        (3_000, 1_000),
    );
}

/// How many calls a rule was broken by, and how many were not judged, and whether it is held.
fn check_rule(trace: SyntheticTrace, rule: &str, expect: (u64, u64, bool)) {
    let finding = found(&trace.build(), rule).expect("a finding");
    let is_held = finding.judgement == Judgement::Held;
    assert_eq!(
        (finding.over, finding.unseen, is_held),
        expect,
        "{finding:?}"
    );
}

/// A recording of two CPUs that begins while the victim reads, from which it returns at 8 ms.
fn begins_in_a_call() -> SyntheticTrace {
    let trace = SyntheticTrace::new().cpus(2).at(0).cpu(1).run(WAKER);
    let trace = trace.cpu(0).at(2_000).run(VIC);
    trace.at(8_000).call_end("read")
}

/// Two more calls, in time.
fn goes_on(trace: SyntheticTrace) -> SyntheticTrace {
    let trace = trace.at(8_100).call("read").at(8_200).call_end("read");
    let trace = trace.at(8_300).call("write").at(8_400).call_end("write");
    trace.at(9_000).block(VIC, Task::IDLE)
}

#[test]
fn a_call_that_the_recording_begins_in_is_over_where_what_was_seen_of_it_is() {
    let whole = || goes_on(begins_in_a_call());
    check_rule(whole(), "system call read within 5ms", (1, 0, false));
    check_rule(whole(), "system call read of vic within 5ms", (1, 0, false));
    // Nobody knows how long it was before.
    check_rule(whole(), "system call read within 7ms", (0, 1, true));
    // It is another call, and of another thread.
    check_rule(whole(), "system call write within 5ms", (0, 0, true));
    check_rule(
        whole(),
        "system call read of waker within 5ms",
        (0, 0, false),
    );
}

#[test]
fn a_thread_returns_from_the_call_that_made_it() {
    let made = |name| {
        let trace = SyntheticTrace::new().cpus(1).at(0).cpu(0).run(VIC);
        goes_on(trace.at(8_000).call_end(name))
    };
    check_rule(made("clone"), "system call clone within 1ms", (0, 0, false));
    check_rule(
        made("nanosleep"),
        "system call nanosleep within 1ms",
        (1, 0, false),
    );
}

#[test]
fn a_call_of_which_only_the_return_is_unnamed_may_be_any() {
    let trace = SyntheticTrace::new().cpus(1).at(0).cpu(0).run(VIC);
    let trace = goes_on(trace.at(8_000).event("exit_syscall", &[]));
    check_rule(trace, "system call read within 1ms", (0, 1, true));
}
