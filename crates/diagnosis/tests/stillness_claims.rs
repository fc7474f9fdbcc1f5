//! What other CPUs' beats say of a CPU that seems to have had interrupts off: nobody is accused of
//! what a host that stood still took, and a real section keeps its name.

use diagnosis::{Query, TaskFilter, Until, Verdict, diagnose};
use event::{Tid, Value};
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const FAIR: Task = Task::fair(300, "compile");
const FAIR_TOO: Task = Task::fair(301, "link");
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

const UNSEEN: &str = "no CPU shows that the machine did not stand still";

#[test]
fn a_section_during_which_no_other_cpu_did_anything_accuses_nobody() {
    check(served(begun()), false, UNSEEN, CAVEAT);
    // Its beats are not in the trace: their absence means nothing.
    check(served(beating()), false, UNSEEN, STILL);
    let alone = beating().environment("rtscope_heartbeat_cpus", "0");
    check(served(beats(alone, 1_000, EXPIRY_US)), false, UNSEEN, STILL);
    // A host that reports steal reports none of some stalls.
    let reported = begun().environment("rtscope_steal", "reported");
    check(served(reported), false, UNSEEN, CAVEAT);
}

#[test]
fn a_section_during_which_another_cpu_was_busy_keeps_its_name() {
    let other = Task::fair(400, "other");
    const THIRD: Task = Task::fair(401, "third");
    let check_busy = |busy: fn(SyntheticTrace, Task, i64) -> SyntheticTrace| {
        let mut trace = begun().environment("rtscope_steal", "reported");
        trace = trace.cpu(1).at(500).run(other);
        for us in (EXPIRY_US - 9_000..SERVED_US).step_by(10_000) {
            trace = busy(trace.cpu(1).at(us), other, us);
        }
        check(served(trace), true, NAMED, CAVEAT);
    };
    check_busy(|trace, other, _| trace.preempt(other, THIRD).after(9).block(THIRD, other));
    check_busy(|trace, _, _| trace.irq(9, "eth0").after(3).irq_end(9));
    check_busy(|trace, _, us| {
        trace.event(
            "page_fault_user",
            &[("address", Value::Unsigned(us as u64))],
        )
    });
}

#[test]
fn where_there_is_no_other_cpu_the_verdict_stands_and_says_so() {
    let trace = SyntheticTrace::new()
        .environment("rtscope_virtualised", "1")
        .environment("rtscope_steal", "not reported")
        .at(20)
        .block(VICTIM, FAIR)
        .hrtimer_start(0x1000, EXPIRY_US);
    check(served(trace), true, CAVEAT, UNSEEN);
}

#[test]
fn on_bare_metal_a_section_needs_no_witness() {
    let trace = SyntheticTrace::new()
        .cpu(1)
        .at(10)
        .block(FAIR, Task::IDLE)
        .cpu(0)
        .at(20)
        .block(VICTIM, FAIR)
        .hrtimer_start(0x1000, EXPIRY_US);
    check(served(trace), true, NAMED, CAVEAT);
}

/// CPU 1's timer expires a little before the victim's and is served a little before it.
fn other_was_late(mode: i64, steal_us: i64, stack: &[&'static str], begin_us: i64) -> Verdict {
    let other = Task::fair(400, "other");
    let mut trace = begun().environment("rtscope_steal", "reported");
    trace = trace.cpu(1).at(500).run(other).at(SERVED_US - 200);
    trace = trace.late_timer(begin_us, other, mode, steal_us, stack);
    verdict(served(trace.timer_irq().after(3).timer_irq_end()))
}

#[test]
fn another_cpus_late_timer_of_the_same_time_shows_what_the_host_did() {
    let check = |mode: i64, steal_us: i64, stack: &[&'static str], says: &str| {
        let verdict = other_was_late(mode, steal_us, stack, EXPIRY_US - 300);
        let sentence = verdict.sentence;
        assert!(!verdict.conclusive && sentence.contains(says), "{sentence}");
    };
    // Nothing that it ran keeps interrupts off.
    check(1, 0, &[], STILL);
    check(2, 0, &[], STILL);
    check(3, 0, &[], STILL);
    check(
        0,
        0,
        &["exc_page_fault+0xd7", "asm_exc_page_fault+0x22"],
        STILL,
    );
    // The host took that CPU, by its own account.
    check(0, 60_000, &SECTION, "perhaps the hypervisor's doing");
    // Both had interrupts off, one perhaps waiting for the other: nobody saw that they ran.
    check(0, 0, &SECTION, UNSEEN);
}

#[test]
fn another_cpus_short_lateness_within_a_section_says_nothing_of_it() {
    let verdict = other_was_late(1, 0, &[], SERVED_US - 300);
    assert!(!verdict.sentence.contains(STILL), "{}", verdict.sentence);
}

#[test]
fn a_cpu_that_waits_for_a_lock_with_interrupts_off_is_not_to_blame() {
    let contended = |begin_us: i64, end_us: i64, flags: u64| {
        let mut trace = begun();
        for us in (EXPIRY_US..SERVED_US).step_by(5_000) {
            trace = trace.cpu(1).at(us).irq(9, "eth0").after(3).irq_end(9);
        }
        let flags = [
            ("lock_addr", Value::Unsigned(7)),
            ("flags", Value::Unsigned(flags)),
        ];
        let end = [("lock_addr", Value::Unsigned(7)), ("ret", Value::Signed(0))];
        let trace = trace.cpu(0).at(begin_us).event("contention_begin", &flags);
        served(trace.at(end_us).event("contention_end", &end))
    };
    let owner = "it waited for a lock, nothing proves whose";
    check(
        contended(EXPIRY_US - 50, SERVED_US - 50, 1),
        false,
        owner,
        CAVEAT,
    );
    // Not for all of the time, and not with the CPU in hand.
    check(
        contended(EXPIRY_US - 50, EXPIRY_US + 50, 1),
        true,
        NAMED,
        owner,
    );
    check(
        contended(EXPIRY_US - 50, SERVED_US - 50, 2),
        true,
        NAMED,
        owner,
    );
}

#[test]
fn a_late_timer_at_the_entry_of_a_page_fault_shows_user_code() {
    let trace = beats(beating(), 1_000, SERVED_US).cpu(0).at(SERVED_US);
    let stack = ["exc_page_fault+0xd7", "asm_exc_page_fault+0x22"];
    let trace = trace.late_timer(EXPIRY_US, FAIR, 0, 0, &stack);
    let trace = trace.timer_irq().hrtimer_expire(0x1000).wake(VICTIM);
    let trace = trace.hrtimer_done(0x1000).after(4).timer_irq_end();
    let trace = trace.after(2).preempt(FAIR, VICTIM);
    check(trace, false, "while user code ran", CAVEAT);
}

/// A hog runs ahead of the victim until `SERVED_US`, and CPU 1's timer, in user code, was late for
/// `late_us` before that.
fn behind_hog(hog_us: i64, late_us: i64) -> Verdict {
    let (hog, other) = (Task::rt(200, "hog", 60), Task::fair(400, "other"));
    let trace = begun().cpu(1).at(500).run(other);
    let trace = trace.cpu(0).at(SERVED_US - hog_us - 10).preempt(FAIR, hog);
    let trace = trace
        .at(SERVED_US - hog_us)
        .irq(9, "eth0")
        .wake(VICTIM)
        .irq_end(9);
    let trace = trace.cpu(1).at(SERVED_US - 10);
    let trace = trace.late_timer(SERVED_US - late_us, other, 1, 0, &[]);
    let trace = trace.timer_irq().after(3).timer_irq_end();
    verdict(trace.cpu(0).at(SERVED_US).block(hog, VICTIM))
}

#[test]
fn a_hog_is_not_blamed_for_what_the_host_took_while_it_had_the_cpu() {
    let check = |hog_us: i64, late_us: i64, conclusive: bool| {
        let verdict = behind_hog(hog_us, late_us);
        assert_eq!(verdict.conclusive, conclusive, "{}", verdict.sentence);
        assert_eq!(verdict.sentence.contains(UNSEEN), !conclusive);
    };
    check(7_000, 6_800, false);
    check(7_000, 6_500, false);
    // The host took the other CPU for a small part of it only.
    check(7_000, 300, true);
    check(50_000, 7_000, true);
}

/// The victim is woken at 20 ms, waits for a device from 20.1 ms on and has its answer at 60 ms.
/// The CPU that it left beats until `here_us`, and CPU 1 until `other_us`.
fn waits_for_device(here_us: i64, other_us: i64) -> SyntheticTrace {
    let mut trace = SyntheticTrace::new()
        .environment("rtscope_heartbeat_ns", &(PERIOD_US * 1_000).to_string())
        .environment("rtscope_heartbeat_cpus", "0,1");
    trace = trace.cpu(1).at(5).timer_irq().timer_irq_end();
    trace = trace.cpu(0).at(10).block(VICTIM, Task::IDLE);
    for us in (1_000..60_000).step_by(PERIOD_US as usize) {
        if us < other_us {
            trace = trace.cpu(1).at(us).timer_irq().after(3).timer_irq_end();
        }
        trace = match us {
            19_000 => {
                let woken = trace.cpu(0).at(20_000).timer_irq().wake(VICTIM);
                let runs = woken.after(1).timer_irq_end().at(20_010).run(VICTIM);
                let waits = runs
                    .at(20_100)
                    .blocked(VICTIM, 1, None, &["io_schedule+0x1"]);
                waits.block(VICTIM, Task::IDLE)
            }
            us if us < here_us => trace.cpu(0).at(us).timer_irq().after(3).timer_irq_end(),
            _ => trace,
        };
    }
    let trace = trace.cpu(0).at(60_000).irq(24, "disk").wake(VICTIM);
    let trace = trace.irq_end(24).after(1).run(VICTIM);
    let tid = VICTIM.tid;
    let steps = [
        (20_000_000, 7, 0, tid),
        (20_010_000, 8, 0, tid),
        (60_100_000, 10, 0, tid),
    ];
    let trace = trace.at(60_100).block(VICTIM, Task::IDLE);
    trace.hit(1, VICTIM, FAIR, &steps)
}

#[test]
fn a_device_is_not_blamed_where_only_lost_events_would_show_that_the_machine_stood_still() {
    // How many microseconds of the wait are the device's, the host's, and perhaps the host's.
    let check = |trace: SyntheticTrace, expect: [i64; 3]| {
        let tasks = TaskFilter::from(Tid(VICTIM.tid));
        let query = Query {
            tasks,
            ..Query::default()
        };
        let found = diagnose(&trace.build(), &query).expect("the trace can be diagnosed");
        let terms = &found.activations[0].ledger.terms;
        let names = ["waiting for a device", STILL, "whose events are known"];
        let of = |name: &str| {
            let named = terms
                .iter()
                .filter(|term| term.kind.to_string().contains(name));
            named.map(|term| term.duration.as_ns() / 1_000).sum::<i64>()
        };
        assert_eq!(names.map(of), expect, "{terms:?}");
    };
    check(waits_for_device(60_000, 60_000), [39_900, 0, 0]);
    // From the beat on that both missed.
    check(waits_for_device(30_000, 30_000), [10_900, 29_000, 0]);
    let lost = |here_us: i64, from_us: i64, until_us: i64| {
        let trace = waits_for_device(here_us, from_us);
        trace.lost_on(Some(1), from_us * 1_000, until_us * 1_000)
    };
    check(lost(30_000, 3_000, 90_000), [8_903, 0, 30_997]);
    // The CPU that it left went on beating.
    check(lost(60_000, 3_000, 90_000), [39_900, 0, 0]);
    check(lost(30_000, 3_000, 40_000), [8_903, 20_000, 10_997]);
    // It had no event at all.
    let unseen = waits_for_device(30_000, 0).lost_on(Some(1), 6_000, 90_000_000);
    check(unseen, [8_903, 0, 30_997]);
}

/// The victim works from 20 ms until 81 ms; its own timer is late by 60 ms, and CPU 1's by
/// `late_us`, in user code.
fn works(late_us: i64) -> Verdict {
    let other = Task::fair(400, "other");
    let trace = begun().cpu(1).at(500).run(other);
    let trace = trace.cpu(0).at(20_000).irq(9, "eth0").after(3).wake(VICTIM);
    let trace = trace.after(2).irq_end(9).after(2).preempt(FAIR, VICTIM);
    let trace = trace.cpu(1).at(SERVED_US - 200);
    let trace = trace.late_timer(SERVED_US - 200 - late_us, other, 1, 0, &[]);
    let trace = trace.timer_irq().after(3).timer_irq_end().cpu(0);
    let trace = trace
        .at(SERVED_US)
        .late_timer(EXPIRY_US, VICTIM, 0, 0, &SECTION);
    let trace = trace.timer_irq().after(3).timer_irq_end();
    let trace = trace.after(200).block(VICTIM, FAIR);
    let query = Query {
        tasks: TaskFilter::from(Tid(VICTIM.tid)),
        until: Until::Block,
        ..Query::default()
    };
    let diagnosis = diagnose(&trace.build(), &query).expect("the trace can be diagnosed");
    diagnosis.verdict().expect("the victim was late").clone()
}

#[test]
fn what_the_host_took_from_a_task_at_work_is_not_its_own_work() {
    let stood_still = works(50_000);
    assert!(!stood_still.conclusive, "{}", stood_still.sentence);
    assert!(
        stood_still.sentence.contains(STILL),
        "{}",
        stood_still.sentence
    );
    let worked = works(5_000);
    assert!(!worked.sentence.contains(STILL), "{}", worked.sentence);
}

/// A recording: the victim works from 20 ms until 81 ms, and its CPU's timer comes 60 ms late; that
/// of CPU 1 by `late_us`, with a switch there at `other_us`.
fn recorded(late_us: i64, other_us: i64) -> Verdict {
    let other = Task::fair(400, "other");
    let trace = SyntheticTrace::new().at(10).cpu(1).block(FAIR, Task::IDLE);
    let trace = trace.at(500).run(other).cpu(0).at(600).block(VICTIM, FAIR);
    let trace = trace.hrtimer_start(0x1, EXPIRY_US);
    let trace = trace
        .cpu(1)
        .at(700)
        .hrtimer_start(0x2, SERVED_US - 200 - late_us);
    let trace = trace.cpu(0).at(20_000).irq(9, "eth0").after(3).wake(VICTIM);
    let trace = trace.after(2).irq_end(9).after(2).preempt(FAIR, VICTIM);
    let trace = trace.cpu(1).at(other_us).preempt(other, FAIR_TOO);
    let trace = trace.at(SERVED_US - 200).timer_irq().hrtimer_expire(0x2);
    let trace = trace.hrtimer_done(0x2).after(3).timer_irq_end().cpu(0);
    let trace = trace.at(SERVED_US).timer_irq().hrtimer_expire(0x1);
    let trace = trace.hrtimer_done(0x1).after(3).timer_irq_end();
    let query = Query {
        tasks: TaskFilter::from(Tid(VICTIM.tid)),
        until: Until::Block,
        ..Query::default()
    };
    let trace = trace.after(200).block(VICTIM, FAIR).build();
    let diagnosis = diagnose(&trace, &query).expect("the trace can be diagnosed");
    diagnosis.verdict().expect("the victim was late").clone()
}

#[test]
fn timers_overdue_on_two_silent_cpus_at_once_show_that_the_machine_stood_still() {
    let check = |late_us: i64, other_us: i64, is_still: bool| {
        let verdict = recorded(late_us, other_us);
        let sentence = &verdict.sentence;
        assert_eq!(sentence.contains(STILL), is_still, "{sentence}");
        assert_eq!(verdict.conclusive, !is_still, "{sentence}");
    };
    check(58_000, 19_000, true);
    check(1_000, 19_000, false);
    // Something happened there meanwhile.
    check(58_000, 50_000, false);
}
