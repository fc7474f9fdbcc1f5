//! A sleep for a lock of the program is inside of the work where a recording has the calls of
//! `futex`; any other sleep of these ends it. So is one for a page that a program serves, where a
//! recording has these faults.

mod ledger;

use diagnosis::{Query, Until, diagnose};
use ledger::VICTIM;
use testkit::{SyntheticTrace, Task};

const OWNER: Task = Task::fair(150, "owner");
/// What a call of `futex` does, the value that it waits for, its time-out.
type Call = (i64, u64, u64);
const WAIT_PRIVATE: i64 = 128;
const WAIT_BITSET_PRIVATE: i64 = 128 | 9;
const LOCK_PI_PRIVATE: i64 = 128 | 6;
const WAKE_PRIVATE: i64 = 128 | 1;

/// A timer wakes the victim at 1000 us; it sleeps in `call` from 1100 us on, until the owner wakes
/// it at 5000, and has done its work at 5100.
fn trace(call: Call, has_returns: bool) -> SyntheticTrace {
    woken(call, 1, has_returns)
}

/// The same, by a call that wakes so many sleepers.
fn woken(call: Call, sleepers: u64, has_returns: bool) -> SyntheticTrace {
    let trace = SyntheticTrace::new().cpu(1).at(5);
    let trace = trace.block(VICTIM, Task::IDLE).after(1).wake(OWNER);
    let trace = trace.after(1).run(OWNER);
    let trace = trace.cpu(0).at(1_000).timer_irq().wake(VICTIM);
    let trace = trace.after(1).timer_irq_end().at(1_005).run(VICTIM);
    let trace = trace
        .at(1_099)
        .futex(call)
        .at(1_100)
        .block(VICTIM, Task::IDLE);
    let trace = trace.cpu(1).at(4_999).futex((WAKE_PRIVATE, sleepers, 0));
    let trace = trace.at(5_000).waking(VICTIM, 0);
    let trace = trace.cpu(0).after(2).wakeup(VICTIM, 0).after(3).run(VICTIM);
    let trace = match has_returns {
        // It lets go of the lock, and wakes others who may sleep for it.
        true => lets_go(trace.after(1).futex_end()),
        false => trace,
    };
    trace.at(5_100).block(VICTIM, Task::IDLE).at(6_000)
}

fn lets_go(trace: SyntheticTrace) -> SyntheticTrace {
    let trace = trace.after(1).futex((WAKE_PRIVATE, 1, 0));
    trace.after(1).futex_end()
}

/// The longest activations of the victim, in microseconds, and the longest term of the worst.
fn check(trace: SyntheticTrace, lengths_us: &[i64], expect: &str) {
    let query = Query {
        until: Until::Block,
        ..Query::default()
    };
    let diagnosis = diagnose(&trace.build(), &query).expect("diagnosed");
    let activations = diagnosis.activations.iter();
    let of_victim = activations.filter(|late| late.task.tid.0 == VICTIM.tid);
    let found: Vec<i64> = of_victim
        .clone()
        .map(|late| late.latency().as_ns() / 1_000)
        .collect();
    assert_eq!(found, lengths_us);
    let worst = of_victim.clone().next().expect("an activation");
    let terms = &worst.ledger.terms;
    assert_eq!(terms[0].kind.to_string(), expect, "{terms:?}");
    let sum: i64 = terms.iter().map(|term| term.duration.as_ns()).sum();
    assert_eq!(sum, worst.latency().as_ns(), "the terms add up");
}

#[test]
fn a_mutex_that_somebody_else_has_is_no_end_of_the_work() {
    let held = "lock held by owner (tid 150, nice 0)";
    for call in [
        (WAIT_PRIVATE, 2, 0),
        (WAIT_BITSET_PRIVATE, 2, 0),
        (LOCK_PI_PRIVATE, 0, 0),
        (LOCK_PI_PRIVATE, 0, 0x1000),
    ] {
        check(trace(call, true), &[4_100], held);
    }
}

#[test]
fn a_lock_whose_last_reader_wakes_all_may_have_been_others() {
    let readers = "unexplained: it waited for the readers of a lock, nothing says since when the \
                   last of them had it";
    let all = i32::MAX as u64;
    check(woken((WAIT_PRIVATE, 2, 0), all, true), &[4_100], readers);
}

#[test]
fn who_never_lets_go_may_have_slept_for_its_next_work() {
    // Again and again it sleeps at a word of that value, as workers that are parked there do.
    let mut trace = SyntheticTrace::new().at(5).block(VICTIM, Task::IDLE);
    trace = trace
        .at(500)
        .timer_irq()
        .wake(VICTIM)
        .after(1)
        .timer_irq_end();
    trace = trace.after(5).run(VICTIM).after(100);
    for turn in 1..=5 {
        trace = trace.futex((WAIT_PRIVATE, 2, 0)).after(1);
        trace = trace.block(VICTIM, OWNER).at(turn * 20_000).wake(VICTIM);
        trace = trace.after(5).preempt(OWNER, VICTIM).after(1).futex_end();
        trace = trace.after(100);
    }
    let trace = trace.futex((WAIT_PRIVATE, 2, 0)).after(1);
    let query = Query {
        until: Until::Block,
        threshold: Some(event::Duration::from_ms(3)),
        ..Query::default()
    };
    let trace = trace.block(VICTIM, OWNER).after(9);
    let diagnosis = diagnose(&trace.build(), &query).expect("diagnosed");
    assert!(diagnosis.activations.is_empty(), "{diagnosis:?}");
    // What it did first is over, and was in time; of the second nothing says when it began.
    assert_eq!(diagnosis.basis.doubted, 0, "{:?}", diagnosis.basis);
    assert_eq!(diagnosis.basis.activations, 4, "{:?}", diagnosis.basis);
}

#[test]
fn what_may_be_a_wait_for_work_ends_it() {
    for call in [
        // An event, a counter, a time-out.
        (WAIT_PRIVATE, 0, 0),
        (WAIT_BITSET_PRIVATE, 3, 0),
        (WAIT_PRIVATE, 2, 0x1000),
    ] {
        check(trace(call, true), &[100, 100], "own run");
    }
}

#[test]
fn without_its_returns_nobody_knows_who_is_in_a_call() {
    check(trace((WAIT_PRIVATE, 2, 0), false), &[100, 100], "own run");
}

#[test]
fn a_call_that_returned_is_no_wait_any_more() {
    // It has the lock at once, and sleeps until its next work.
    let trace = SyntheticTrace::new().at(5).block(VICTIM, Task::IDLE);
    let trace = trace
        .at(1_000)
        .timer_irq()
        .wake(VICTIM)
        .after(1)
        .timer_irq_end();
    let trace = trace
        .at(1_005)
        .run(VICTIM)
        .after(1)
        .futex((WAIT_PRIVATE, 2, 0));
    let trace = lets_go(trace.after(1).futex_end())
        .at(1_050)
        .block(VICTIM, Task::IDLE);
    let trace = trace
        .at(5_000)
        .timer_irq()
        .wake(VICTIM)
        .after(1)
        .timer_irq_end();
    let trace = trace
        .at(5_005)
        .run(VICTIM)
        .at(5_040)
        .block(VICTIM, Task::IDLE);
    check(trace.at(6_000), &[50, 40], "own run");
}

/// The same with a page fault in the place of the call; `ended`: its end was recorded before the
/// victim slept.
fn fault(ended: bool) -> SyntheticTrace {
    let address = &[("address", event::Value::Unsigned(0x7f00_1000))];
    let trace = SyntheticTrace::new().cpu(1).at(5);
    let trace = trace.block(VICTIM, Task::IDLE).after(1).wake(OWNER);
    let trace = trace.after(1).run(OWNER);
    let trace = trace.cpu(0).at(1_000).timer_irq().wake(VICTIM);
    let trace = trace.after(1).timer_irq_end().at(1_005).run(VICTIM);
    let trace = trace.at(1_098).event("rtscope_userfault_entry", address);
    let trace = match ended {
        true => trace.at(1_099).event("rtscope_userfault_exit", address),
        false => trace,
    };
    let trace = trace.at(1_100).block(VICTIM, Task::IDLE);
    let trace = trace.cpu(1).at(5_000).waking(VICTIM, 0);
    let trace = trace.cpu(0).after(2).wakeup(VICTIM, 0).after(3).run(VICTIM);
    let trace = trace.after(1).event("rtscope_userfault_exit", address);
    trace.at(5_100).block(VICTIM, Task::IDLE).at(6_000)
}

#[test]
fn a_page_that_a_program_serves_is_waited_for_inside_of_the_work() {
    check(fault(false), &[4_100], "page fault");
    // Behind the fault it sleeps for something else.
    check(fault(true), &[100, 100], "own run");
}
