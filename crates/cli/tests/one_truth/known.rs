//! What is said to be known is true, and what the events prove is said.

use crate::answers::Told;
use crate::prove::{Claim, at_least, at_most};
use crate::recording::{Recording, Wakes};
use crate::truth::{Doing, OnCpu};

/// Where wake-ups are shown only when the task is on its run queue, it was woken up to this before.
const DELIVERY_NS: i64 = 1_000;

fn is_of(tid: i32) -> impl Fn(&OnCpu) -> bool {
    move |on: &OnCpu| on.task.is_some_and(|task| task.tid == tid)
}

pub fn no_thread_had_a_cpu_for_longer_than_in_truth(recording: &Recording) -> Claim {
    let answers = recording.answers()?;
    let exits_ns = recording.idle_exits_ns();
    let runs = |doing: &Doing| matches!(doing, Doing::Running { .. });
    for tid in recording.truth.tids() {
        let true_ns = recording.truth.task_ns(tid, answers.window, runs);
        let true_ns = true_ns + exits_ns.get(&tid).copied().unwrap_or(0);
        let states = answers.threads.get(&tid).copied().unwrap_or_default();
        let top_ns = answers.top_ns.get(&tid).copied().unwrap_or(0) - states.inferred_ns;
        at_most(&format!("thread {tid} in cputop"), top_ns, true_ns)?;
        let states_ns = states.on_cpu_ns() - states.inferred_ns;
        at_most(&format!("thread {tid} in states"), states_ns, true_ns)?;
    }
    Ok(())
}

pub fn no_thread_was_in_calls_for_longer_than_in_truth(recording: &Recording) -> Claim {
    let answers = recording.answers()?;
    let exits_ns = recording.idle_exits_ns();
    answers.threads().try_for_each(|(tid, states)| {
        let calls = |doing: &Doing| match doing {
            Doing::Running {
                interrupted,
                in_call,
                ..
            } => *in_call && !interrupted,
            _ => false,
        };
        let true_ns = recording.truth.task_ns(*tid, answers.window, calls);
        let true_ns = true_ns + exits_ns.get(tid).copied().unwrap_or(0);
        let said_ns = states.call_ns - states.inferred_ns;
        at_most(&format!("thread {tid}: calls in states"), said_ns, true_ns)
    })
}

pub fn no_cpu_idled_or_was_interrupted_for_longer_than_in_truth(recording: &Recording) -> Claim {
    let answers = recording.answers()?;
    let (truth, window) = (&recording.truth, answers.window);
    for (cpu, states) in &answers.cpus {
        let idles = |on: &OnCpu| on.task.is_none() && on.handler.is_none();
        let idle_ns = truth.cpu_ns(*cpu, window, idles);
        at_most(&format!("CPU {cpu}: idle"), states.idle_ns, idle_ns)?;
        let handler_ns = truth.cpu_ns(*cpu, window, |on| on.handler.is_some());
        let said_ns = states.irq_ns + states.softirq_ns;
        at_most(&format!("CPU {cpu}: handlers"), said_ns, handler_ns)?;
    }
    Ok(())
}

pub fn no_cpu_was_busy_for_longer_than_in_truth(recording: &Recording) -> Claim {
    let answers = recording.answers()?;
    let exits_ns: i64 = recording.idle_exits_ns().values().sum();
    for cpu in answers.cpus.keys() {
        let works = |on: &OnCpu| on.task.is_some() || on.handler.is_some();
        let busy_ns = recording.truth.cpu_ns(*cpu, answers.window, works) + exits_ns;
        let said_ns = answers.busy_ns.get(cpu).copied().unwrap_or(0);
        at_most(&format!("CPU {cpu}: busy in resources"), said_ns, busy_ns)?;
        let said_ns = answers.top_cpu_ns.get(cpu).copied().unwrap_or(0);
        at_most(&format!("CPU {cpu}: busy in cputop"), said_ns, busy_ns)?;
    }
    Ok(())
}

pub fn no_thread_waited_for_a_cpu_for_longer_than_in_truth(recording: &Recording) -> Claim {
    let answers = recording.answers()?;
    answers.threads().try_for_each(|(tid, states)| {
        let waits = |doing: &Doing| matches!(doing, Doing::Waiting { .. });
        let waiting_ns = recording.truth.task_ns(*tid, answers.window, waits);
        let what = format!("thread {tid}: waiting in states");
        at_most(&what, states.waiting_ns, waiting_ns)
    })
}

pub fn no_thread_slept_for_longer_than_in_truth(recording: &Recording) -> Claim {
    let answers = recording.answers()?;
    answers.threads().try_for_each(|(tid, states)| {
        let sleeps = |doing: &Doing| matches!(doing, Doing::Blocked);
        let blocked_ns = recording.truth.task_ns(*tid, answers.window, sleeps);
        let of_it = recording.truth.waits.iter().filter(|wait| wait.tid == *tid);
        // Its wake-up is seen only when it is on its run queue, however late the clock has that.
        let later_ns = of_it.map(|wait| match recording.wakes {
            Wakes::OnlyWakeup => wait.wakeup_ns - wait.waking_ns,
            Wakes::Both | Wakes::OnlyWaking => 0,
        });
        let what = format!("thread {tid}: blocked in states");
        let slack_ns: i64 = later_ns.sum();
        at_most(&what, states.blocked_ns, blocked_ns + slack_ns)
    })
}

pub fn every_wait_that_is_listed_is_a_true_one(recording: &Recording) -> Claim {
    let answers = recording.answers()?;
    answers.waits.iter().try_for_each(|wait| {
        let mut waits = recording.apparent_waits();
        let is_it = waits.any(|(truth, span)| {
            let is_of_it = truth.tid == wait.tid && span.begin_ns == wait.begin_ns;
            let in_time = wait.end_ns <= span.end_ns;
            is_of_it && in_time && recording.may_end_a_wait(wait.tid, wait.end_ns)
        });
        match is_it {
            true => Ok(()),
            false => Err(format!("schedlog lists what never was: {wait:?}")),
        }
    })
}

pub fn nobody_is_said_to_have_had_the_cpu_who_did_not(recording: &Recording) -> Claim {
    let answers = recording.answers()?;
    let exits_ns = recording.idle_exits_ns();
    for ((waiter, behind), ns) in &answers.behind_ns {
        let Some(behind) = behind else { continue };
        let had_it = |on: &OnCpu| on.task.map_or(0, |task| task.tid) == *behind;
        let true_ns = recording.truth.waited_ns(*waiter, answers.window, had_it);
        let waits = recording
            .truth
            .waits
            .iter()
            .filter(|wait| wait.tid == *waiter);
        let slack_ns = waits.count() as i64 * DELIVERY_NS;
        let slack_ns = slack_ns + exits_ns.get(behind).copied().unwrap_or(0);
        let what = format!("thread {waiter} waited for {behind} in dependency");
        at_most(&what, *ns, true_ns + slack_ns)?;
    }
    Ok(())
}

pub fn what_was_not_recorded_is_unknown(recording: &Recording) -> Claim {
    let answers = recording.answers()?;
    answers.cpus.iter().try_for_each(|(cpu, states)| {
        let lost_ns = recording.unknowable_ns(*cpu, answers.window);
        at_least(&format!("CPU {cpu}: unknown"), states.unknown_ns, lost_ns)
    })
}

pub fn what_the_events_prove_is_known(recording: &Recording) -> Claim {
    let answers = recording.answers()?;
    let truth = &recording.truth;
    for (cpu, states) in &answers.cpus {
        let proven = recording.proven(*cpu);
        let idles = |on: &OnCpu| on.task.is_none() && on.handler.is_none();
        let idle = proven
            .iter()
            .map(|stretch| truth.cpu_ns(*cpu, *stretch, idles));
        at_least(&format!("CPU {cpu}: idle"), states.idle_ns, idle.sum())?;
        let handled = |on: &OnCpu| on.handler.is_some();
        let handled = proven
            .iter()
            .map(|stretch| truth.cpu_ns(*cpu, *stretch, handled));
        let said_ns = states.irq_ns + states.softirq_ns;
        at_least(&format!("CPU {cpu}: handlers"), said_ns, handled.sum())?;
    }
    for tid in truth.tids() {
        let had = (0..truth.cpus() as u32).flat_map(|cpu| {
            let proven = recording.proven(cpu);
            let had = proven
                .iter()
                .map(|stretch| truth.cpu_ns(cpu, *stretch, is_of(tid)));
            had.collect::<Vec<_>>()
        });
        let had_ns = had.sum();
        let top_ns = answers.top_ns.get(&tid).copied().unwrap_or(0);
        at_least(&format!("thread {tid} in cputop"), top_ns, had_ns)?;
        let states_ns = answers
            .threads
            .get(&tid)
            .map_or(0, |states| states.on_cpu_ns());
        at_least(&format!("thread {tid} in states"), states_ns, had_ns)?;
    }
    Ok(())
}

pub fn every_wait_of_a_complete_recording_is_listed(recording: &Recording) -> Claim {
    if !recording.is_complete() {
        return Ok(());
    }
    let answers = recording.answers()?;
    recording.true_waits().try_for_each(|(truth, span)| {
        let mut listed = answers.waits.iter();
        let is_it = |wait: &crate::answers::Wait| {
            (wait.tid, wait.begin_ns, wait.end_ns) == (truth.tid, span.begin_ns, span.end_ns)
        };
        match listed.any(is_it) {
            true => Ok(()),
            false => Err(format!("schedlog does not list {truth:?}")),
        }
    })
}
