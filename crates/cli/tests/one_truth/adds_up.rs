//! Per CPU and per thread, what is said to be known and what is said to be unknown are the range.

use views::reports::ReportOptions;

use crate::answers::{Answers, Told};
use crate::prove::{Claim, at_least, at_most, same};

pub fn states_of_each_cpu_add_up_to_the_range(told: &impl Told) -> Claim {
    let answers = told.answers()?;
    answers.cpus.iter().try_for_each(|(cpu, states)| {
        let sum_ns = states.busy_ns() + states.idle_ns + states.unknown_ns;
        same(
            &format!("CPU {cpu}: states, range"),
            sum_ns,
            answers.window.ns(),
        )
    })
}

pub fn states_of_each_thread_add_up_to_the_range(told: &impl Told) -> Claim {
    let answers = told.answers()?;
    answers.threads().try_for_each(|(tid, states)| {
        let known_ns = states.on_cpu_ns() + states.waiting_ns + states.blocked_ns;
        same(
            &format!("thread {tid}: states, range"),
            known_ns + states.unknown_ns,
            // Of several threads of one id, each has all of the range.
            answers.window.ns() * states.rows,
        )
    })
}

pub fn a_cpu_is_busy_in_resources_when_it_is_in_states(told: &impl Told) -> Claim {
    let answers = told.answers()?;
    answers.cpus.iter().try_for_each(|(cpu, states)| {
        let busy_ns = answers.busy_ns.get(cpu).copied().unwrap_or(0);
        let what = format!("CPU {cpu}: busy in resources");
        at_least(&what, busy_ns, states.busy_ns())?;
        // Some task may have had the CPU, though nobody knows which.
        at_most(&what, busy_ns, states.busy_ns() + states.unknown_ns)
    })
}

pub fn every_report_says_how_much_is_unknown(told: &impl Told) -> Claim {
    let answers = told.answers()?;
    for (report, unknown_ns) in &answers.unknown_ns {
        for (cpu, states) in &answers.cpus {
            let said_ns = unknown_ns.get(cpu).copied().unwrap_or(0);
            let what = format!("CPU {cpu}: unknown behind {report}");
            at_least(&what, said_ns, states.unknown_ns)?;
            at_most(&what, said_ns, answers.window.ns() - states.idle_ns)?;
        }
        same(
            &format!("unknown behind {report}, {}", answers.unknown_ns[0].0),
            format!("{unknown_ns:?}"),
            format!("{:?}", answers.unknown_ns[0].1),
        )?;
    }
    Ok(())
}

pub fn threads_on_a_cpu_have_at_most_all_of_it_in_cputop(told: &impl Told) -> Claim {
    let trace = told.opened();
    let cpus = told.answers()?.cpus;
    for cpu in cpus.into_keys() {
        let options = ReportOptions {
            cpus: vec![cpu],
            ..told.options(&trace)
        };
        let answers = Answers::asked(&trace, &options)?;
        let sum_ns = answers.top_ns.values().sum();
        let what = format!("CPU {cpu}: the threads in cputop");
        // Each share may be rounded up.
        let slack_ns = answers.top_ns.len() as i64;
        at_most(&what, sum_ns, answers.window.ns() + slack_ns)?;
    }
    Ok(())
}

pub fn a_cpu_that_idles_is_not_busy_in_cputop(told: &impl Told) -> Claim {
    let answers = told.answers()?;
    answers.cpus.iter().try_for_each(|(cpu, states)| {
        let busy_ns = answers.top_cpu_ns.get(cpu).copied().unwrap_or(0);
        let not_idle_ns = answers.window.ns() - states.idle_ns;
        at_most(&format!("CPU {cpu}: busy in cputop"), busy_ns, not_idle_ns)
    })
}
