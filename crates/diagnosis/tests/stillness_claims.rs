//! What other CPUs' beats say of a CPU that seems to have had interrupts off: nobody is accused of
//! what a host that stood still took, and a real section keeps its name.

use diagnosis::{Query, TaskFilter, Verdict, diagnose};
use event::Tid;
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const FAIR: Task = Task::fair(300, "compile");
const SECTION: [&str; 2] = ["_raw_spin_unlock_irq+0x1f", "up_write+0x9c"];
/// Of all beats.
const PERIOD_US: i64 = 2_000;
/// The timer of the victim expires, and is served.
const EXPIRY_US: i64 = 21_000;
const SERVED_US: i64 = 81_000;

/// Beats on CPU 1 from `begin_us` until before `end_us`.
fn beats(mut trace: SyntheticTrace, begin_us: i64, end_us: i64) -> SyntheticTrace {
    for us in (begin_us..end_us).step_by(PERIOD_US as usize) {
        trace = trace.cpu(1).at(us).timer_irq().after(3).timer_irq_end();
    }
    trace
}

/// CPU 1 idles; a task has CPU 0, and the victim waits for its timer.
fn begun() -> SyntheticTrace {
    let trace = SyntheticTrace::new()
        .environment("rtscope_virtualised", "1")
        .environment("rtscope_steal", "not reported");
    let trace = trace.cpu(1).at(10).block(FAIR, Task::IDLE);
    trace
        .cpu(0)
        .at(20)
        .block(VICTIM, FAIR)
        .at(30)
        .hrtimer_start(0x1000, EXPIRY_US)
}

fn beating() -> SyntheticTrace {
    begun()
        .environment("rtscope_heartbeat_ns", &(PERIOD_US * 1_000).to_string())
        .environment("rtscope_heartbeat_cpus", "0,1")
}

/// The timer is served late, and the evidence shows where interrupts came back on.
fn served(trace: SyntheticTrace) -> SyntheticTrace {
    let trace = trace.cpu(0).at(SERVED_US);
    let trace = trace.late_timer(EXPIRY_US, FAIR, 0, 0, &SECTION);
    let trace = trace.timer_irq().hrtimer_expire(0x1000).wake(VICTIM);
    let trace = trace.hrtimer_done(0x1000).after(4).timer_irq_end();
    trace.after(2).preempt(FAIR, VICTIM)
}

fn verdict(trace: SyntheticTrace) -> Verdict {
    let tasks = TaskFilter::from(Tid(VICTIM.tid));
    let query = Query {
        tasks,
        ..Query::default()
    };
    let diagnosis = diagnose(&trace.build(), &query).expect("the trace can be diagnosed");
    diagnosis.verdict().expect("the victim was late").clone()
}

fn check(trace: SyntheticTrace, conclusive: bool, says: &str, says_not: &str) {
    let verdict = verdict(trace);
    let sentence = &verdict.sentence;
    assert_eq!(verdict.conclusive, conclusive, "{sentence}");
    assert!(sentence.contains(says), "'{says}': {sentence}");
    assert!(!sentence.contains(says_not), "not '{says_not}': {sentence}");
}

const STILL: &str = "every CPU stood still at once";
const NAMED: &str = "up_write, run by compile (tid 300, nice 0), kept interrupts off for 60.0";
const CAVEAT: &str = "reports no steal, and no other CPU shows";

#[test]
fn a_section_in_which_every_other_cpu_missed_its_beats_accuses_nobody() {
    // CPU 1 comes back a little before, or after, or only when the trace is over.
    for back_us in [SERVED_US - 2, SERVED_US + 30] {
        let trace = served(beats(beating(), 1_000, EXPIRY_US));
        check(beats(trace, back_us, back_us + 1), false, STILL, CAVEAT);
    }
    check(
        served(beats(beating(), 1_000, EXPIRY_US)),
        false,
        STILL,
        CAVEAT,
    );
}

#[test]
fn a_section_during_which_another_cpu_went_on_beating_keeps_its_name() {
    let trace = served(beats(beating(), 1_000, SERVED_US));
    check(trace, true, NAMED, CAVEAT);
}

#[test]
fn a_host_that_stood_still_for_a_small_part_of_a_section_leaves_it_the_verdict() {
    let trace = beats(beating(), 1_000, 40_000);
    check(served(beats(trace, 50_000, SERVED_US)), true, STILL, CAVEAT);
}

#[test]
fn a_cpu_on_which_something_happened_did_not_stand_still_with_the_others() {
    let ticks = |mut trace: SyntheticTrace| {
        for us in (22_000..80_000).step_by(1_000) {
            trace = trace.cpu(0).at(us).irq(9, "eth0").after(3).irq_end(9);
        }
        trace
    };
    let trace = ticks(beats(beating(), 1_000, EXPIRY_US));
    let sentence = verdict(served(trace)).sentence;
    assert!(!sentence.contains(STILL), "{sentence}");
}

#[test]
fn where_no_other_cpu_can_tell_the_verdict_stands_and_says_so() {
    check(served(begun()), true, CAVEAT, STILL);
    // Its beats are not in the trace: their absence means nothing.
    check(served(beating()), true, CAVEAT, STILL);
    let alone = beating().environment("rtscope_heartbeat_cpus", "0");
    check(served(beats(alone, 1_000, EXPIRY_US)), true, CAVEAT, STILL);
}

#[test]
fn a_hypervisor_that_reports_steal_needs_no_caveat() {
    let trace = begun().environment("rtscope_steal", "reported");
    check(served(trace), true, NAMED, CAVEAT);
}
