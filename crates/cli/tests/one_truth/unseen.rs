//! Tasks that left a CPU, or came on one, and no event says so: what other events show of it.

use event::Instant;
use testkit::{SyntheticTrace, Task};
use trace::Trace;
use views::Judgement;
use views::reports::ReportOptions;

use crate::agree::checked;
use crate::answers::Answers;

const VIC: Task = Task::rt(101, "vic", 50);
const HOG: Task = Task::rt(102, "hog", 60);
const WAKER: Task = Task::fair(103, "waker");
const MS: i64 = 1_000_000;

/// The victim is scheduled in on CPU 0 in time, at 1 ms, and the waker on CPU 1.
fn begun() -> SyntheticTrace {
    let trace = SyntheticTrace::new().cpus(2).at(0).cpu(0).timer_irq();
    let trace = trace.after(1).timer_irq_end().cpu(1).run(WAKER);
    let trace = trace.at(900).wake_for(VIC, 0);
    trace.cpu(0).at(1_000).run(VIC)
}

/// The waker wakes it at 5 ms, while it seems to have CPU 0.
fn woken() -> SyntheticTrace {
    begun().cpu(1).at(5_000).waking(VIC, 0)
}

fn check(trace: SyntheticTrace, expect: &str) {
    let trace: Trace = trace.build();
    let finding = checked(&trace, "vic", "1ms").expect("a finding");
    let found = match finding.judgement {
        Judgement::Held => "held",
        Judgement::Broken => "broken",
        Judgement::Inconclusive(_) => "inconclusive",
    };
    assert_eq!(found, expect, "{finding:?}");
}

#[test]
fn a_wake_up_of_a_task_that_had_left_its_cpu_unseen_is_not_said_to_be_in_time() {
    let on_queue = || woken().after(1).wakeup(VIC, 0);
    // It had the CPU all the time, and was about to sleep.
    check(on_queue().cpu(0).at(20_000).block(VIC, Task::IDLE), "held");
    // Another one leaves the CPU.
    check(
        on_queue().cpu(0).at(20_000).block(HOG, Task::IDLE),
        "inconclusive",
    );
    // It is scheduled in elsewhere.
    check(
        on_queue().cpu(1).at(20_000).block(WAKER, VIC),
        "inconclusive",
    );
    // It leaves another CPU.
    check(
        on_queue().cpu(1).at(20_000).block(VIC, Task::IDLE),
        "inconclusive",
    );
    // A task that has a CPU is not moved.
    let moved = woken().migrate_from(VIC, 0, 1).after(1).wakeup(VIC, 1);
    check(moved.at(20_000).block(WAKER, VIC), "inconclusive");
}

#[test]
fn a_task_that_was_woken_as_it_left_its_cpu_and_is_not_seen_again_may_wait() {
    // Only first events of wake-ups are recorded, which would be told a second time.
    let waker = || SyntheticTrace::new().at(0).cpu(1).run(WAKER);
    let seen = || waker().cpu(0).at(1_000).run(VIC);
    let woken = |trace: SyntheticTrace| trace.cpu(1).at(5_000).waking(VIC, 0);
    let ends = |trace: SyntheticTrace| trace.cpu(1).at(20_000).block(WAKER, Task::IDLE);
    let left = |trace: SyntheticTrace| trace.cpu(0).at(5_001).block(VIC, Task::IDLE);
    check(ends(left(woken(seen()))), "inconclusive");
    // That it had the CPU is seen only as it leaves it.
    check(
        ends(left(woken(waker().cpu(0).at(10).timer_irq()))),
        "inconclusive",
    );
    // It comes back: then it slept, and waited since it was woken.
    let back = |at_us: i64| {
        let trace = left(woken(seen())).at(at_us).run(VIC);
        ends(trace.after(100).block(VIC, Task::IDLE))
    };
    check(back(5_500), "held");
    check(back(9_000), "broken");
}

#[test]
fn a_wake_up_of_which_only_the_first_event_is_recorded_is_counted_once() {
    // That it had the CPU is seen only as it leaves it.
    let trace = SyntheticTrace::new().at(0).cpu(1).run(WAKER);
    let trace = trace.cpu(0).at(10).timer_irq().timer_irq_end();
    let trace = trace.cpu(1).at(5_000).waking(VIC, 0);
    let left = || trace.clone().cpu(0).at(5_001).block(VIC, Task::IDLE);
    let counted = |trace: SyntheticTrace| {
        let finding = checked(&trace.build(), "vic", "1ms").expect("a finding");
        finding.samples + finding.unsure + finding.within + finding.open
    };
    let back = || left().at(5_500).run(VIC).after(100).block(VIC, Task::IDLE);
    assert_eq!(counted(back()), 1);
    // It went on and slept then, and is woken again.
    let again = left().cpu(1).at(5_300).waking(VIC, 0).cpu(0);
    assert_eq!(counted(again.at(5_500).run(VIC)), 1);
    // Nothing more is seen of it.
    assert_eq!(
        counted(left().cpu(1).at(20_000).block(WAKER, Task::IDLE)),
        1
    );
    // It was seen elsewhere later, and not to leave that CPU.
    let elsewhere = trace.clone().cpu(0).at(5_001).run(VIC);
    let elsewhere = elsewhere.cpu(1).at(7_000).waking(VIC, 0);
    assert_eq!(counted(elsewhere.at(9_000).block(WAKER, VIC)), 2);
}

#[test]
fn whom_a_cpu_may_have_woken_whose_events_begin_later_waits_since_nobody_knows_when() {
    // Only first events of wake-ups are recorded. The first found it on its CPU, and it came back
    // behind a sleep.
    let slept = |trace: SyntheticTrace| {
        let trace = trace
            .cpu(0)
            .at(1_000)
            .run(VIC)
            .cpu(1)
            .at(14_500)
            .waking(VIC, 0);
        let trace = trace
            .cpu(0)
            .at(15_000)
            .block(VIC, Task::IDLE)
            .at(16_000)
            .run(VIC);
        trace.after(100).block(VIC, Task::IDLE)
    };
    let begun = || SyntheticTrace::new().cpus(3).at(0).cpu(1).run(WAKER);
    let third = |trace: SyntheticTrace, us: i64| trace.cpu(2).at(us).timer_irq().timer_irq_end();
    check(slept(third(begun(), 10)), "broken");
    check(third(slept(begun()), 17_000), "inconclusive");
    check(slept(begun()), "inconclusive");
}

#[test]
fn who_waits_still_for_a_cpu_whose_events_begin_later_may_have_run() {
    let trace = SyntheticTrace::new().at(0).cpu(0).run(WAKER).at(1_000);
    let trace = trace.wake_for(VIC, 1);
    let trace = trace
        .cpu(1)
        .at(6_000)
        .run(HOG)
        .at(16_000)
        .block(HOG, Task::IDLE);
    check(trace.clone(), "inconclusive");
    let diagnosis = crate::agree::diagnosis(&trace.build(), None).expect("a diagnosis");
    let of_vic = diagnosis.groups.iter().filter(|group| {
        let first = &diagnosis.activations[group.members[0]];
        first.task.tid.0 == VIC.tid
    });
    let conclusive: Vec<_> = of_vic.map(|group| group.verdict.conclusive).collect();
    assert_eq!(conclusive, [false], "{diagnosis:?}");
}

#[test]
fn who_was_moved_from_a_cpu_that_it_seemed_to_have_waits_since_nobody_knows_when() {
    let trace = SyntheticTrace::new().at(0).cpu(1).run(WAKER);
    let trace = trace
        .cpu(0)
        .at(1_000)
        .run(VIC)
        .cpu(1)
        .at(5_000)
        .waking(VIC, 0);
    let trace = trace.at(9_000).migrate_from(VIC, 0, 1).at(12_000);
    let trace = trace.block(WAKER, VIC).at(13_000).block(VIC, Task::IDLE);
    let answers = Answers::of(&trace.clone().build()).expect("all reports answer");
    assert!(answers.waits.is_empty(), "{:?}", answers.waits);
    check(trace, "inconclusive");
}

#[test]
fn a_cpu_does_not_idle_behind_who_came_there_before_events_of_another_one_were_lost() {
    let trace = begun().cpu(0).at(2_000).block(VIC, Task::IDLE);
    let trace = trace.cpu(1).at(5_000).wake_for(HOG, 0);
    let trace = trace.lost(6_000, 9_000).at(7_000).waking(HOG, 0);
    let trace = trace.cpu(0).at(20_000).block(HOG, Task::IDLE);
    let answers = Answers::of(&trace.build()).expect("all reports answer");
    let cpu = answers.cpus[&0];
    assert!(cpu.idle_ns <= 3 * MS + 1_000, "{cpu:?}");
}

#[test]
fn of_several_wakings_on_its_cpu_the_last_begins_the_wait() {
    // Only first events are recorded. After the first it went on; after the second it had left.
    let trace = SyntheticTrace::new().cpus(2).at(0).cpu(1).run(WAKER);
    let trace = trace.cpu(0).at(1_000).run(VIC);
    let trace = trace.cpu(1).at(5_000).waking(VIC, 0);
    let trace = trace.at(19_900).waking(VIC, 0);
    let trace = trace.cpu(0).at(20_000).block(VIC, Task::IDLE);
    let trace = trace.at(20_500).run(VIC).after(100).block(VIC, Task::IDLE);
    let trace = trace.build();
    let answers = Answers::of(&trace).expect("all reports answer");
    let waits: Vec<_> = answers.waits.iter().map(|wait| wait.begin_ns).collect();
    assert_eq!(waits, [19_900_000], "{:?}", answers.waits);
    let diagnosis = crate::agree::diagnosis(&trace, None).expect("a diagnosis");
    let latency = diagnosis.activations.first().map(|late| late.latency());
    assert_eq!(latency.map(|latency| latency.as_ns()), Some(600_000));
}

#[test]
fn a_cpu_that_was_left_unseen_is_unknown_from_its_last_proof_on() {
    // Nobody knows when the victim left CPU 0, on which another one is woken twice.
    let twice = |trace: SyntheticTrace| {
        let trace = trace.at(5_000).wake_for(HOG, 0);
        trace.at(9_000).wake_for(HOG, 0)
    };
    let trace = twice(begun().cpu(1));
    let trace = trace.cpu(0).at(20_000).block(HOG, Task::IDLE).at(21_000);
    let answers = Answers::of(&trace.run(VIC).build()).expect("all reports answer");
    let had_ns = answers.top_ns.get(&VIC.tid).copied().unwrap_or(0);
    assert_eq!(had_ns, 0, "{answers:?}");
    assert_eq!(answers.cpus[&0].unknown_ns, 20 * MS - 1_000, "{answers:?}");
}

#[test]
fn a_cpu_does_not_idle_behind_the_first_task_that_came_there_and_is_gone() {
    let idle = begun().cpu(0).at(2_000).block(VIC, Task::IDLE);
    let came = idle.cpu(1).at(5_000).waking(HOG, 0);
    let came = came.after(1).wakeup(HOG, 0);
    let gone = came.at(9_000).migrate_from(HOG, 0, 1);
    let trace = gone.at(12_000).wake_for(VIC, 0);
    let trace = trace.cpu(0).at(20_000).block(VIC, Task::IDLE);
    let answers = Answers::of(&trace.build()).expect("all reports answer");
    let cpu = answers.cpus[&0];
    assert_eq!(cpu.idle_ns, 3 * MS + 1_000, "{cpu:?}");
    assert_eq!(cpu.unknown_ns, 16 * MS - 2_000, "{cpu:?}");
}

#[test]
fn nobody_knows_how_long_a_cpu_idled_before_one_that_was_not_seen_to_come() {
    let idle = begun().cpu(0).at(2_000).block(VIC, Task::IDLE);
    let came = idle.cpu(1).at(5_000).wake_for(VIC, 0);
    let gone = came.at(9_000).migrate_from(VIC, 0, 1);
    let ends = gone.at(12_000).block(WAKER, VIC);
    let ends = ends.cpu(0).at(20_000).block(HOG, Task::IDLE);
    let answers = Answers::of(&ends.build()).expect("all reports answer");
    let cpu = answers.cpus[&0];
    assert_eq!((cpu.idle_ns, cpu.run_ns), (0, MS), "{cpu:?}");
}

/// Another one waits on the victim's CPU from 5 ms on, is moved at 9 ms and scheduled in at 12 ms.
fn moved_away() -> SyntheticTrace {
    let trace = begun().cpu(1).at(5_000).waking(HOG, 0);
    let trace = trace.at(5_000).wakeup(HOG, 0);
    let trace = trace.at(9_000).migrate_from(HOG, 0, 1);
    trace.cpu(1).at(12_000).block(WAKER, HOG)
}

fn behind_ms(trace: SyntheticTrace, behind: Option<Task>) -> i64 {
    let answers = Answers::of(&trace.build()).expect("all reports answer");
    let key = (HOG.tid, behind.map(|task| task.tid));
    answers.behind_ns.get(&key).copied().unwrap_or(0) / MS
}

#[test]
fn a_task_that_was_moved_away_waited_for_whom_that_cpu_turns_out_to_have_had() {
    // The victim leaves that CPU later: it had it.
    let left = || moved_away().cpu(0).at(20_000).block(VIC, Task::IDLE);
    assert_eq!(behind_ms(left(), Some(VIC)), 4);
    assert_eq!(behind_ms(left(), Some(WAKER)), 3);
    assert_eq!(behind_ms(left(), None), 0);
    // Another one does: since when the victim was gone nobody knows, nor whether the one that was
    // moved ran there meanwhile.
    let other = Task::fair(104, "other");
    let gone = || moved_away().cpu(0).at(20_000).block(other, Task::IDLE);
    for behind in [Some(VIC), Some(WAKER), None] {
        assert_eq!(behind_ms(gone(), behind), 0);
    }
    // It is scheduled in elsewhere: so too.
    let elsewhere = || moved_away().cpu(1).at(20_000).block(HOG, VIC);
    for behind in [Some(VIC), Some(WAKER), None] {
        assert_eq!(behind_ms(elsewhere(), behind), 0);
    }
    // Nothing more is seen of either: it seems to have had it up to the end.
    assert_eq!(behind_ms(moved_away(), Some(VIC)), 4);
}

#[test]
fn who_had_the_cpu_is_unknown_where_a_task_was_moved_unseen() {
    // It waits for CPU 0, and comes on CPU 1.
    let waits = || begun().cpu(1).at(5_000).waking(HOG, 0).wakeup(HOG, 0);
    let came = waits().cpu(1).at(12_000).block(WAKER, HOG);
    let came = || came.clone().cpu(0).at(20_000).block(VIC, Task::IDLE);
    assert_eq!(behind_ms(came(), Some(VIC)), 0);
    assert_eq!(behind_ms(came(), None), 7);
    // It waits for CPU 0, and is moved from CPU 2 to CPU 1.
    let other = Task::fair(104, "other");
    let moved_from = |begins_us: i64| {
        let trace = begun().cpus(3).cpu(2).at(begins_us).run(other).cpu(1);
        trace.at(5_000).waking(HOG, 0).wakeup(HOG, 0)
    };
    let moved = |begins_us: i64| {
        let moved = moved_from(begins_us).cpu(2);
        let moved = moved.at(9_000).migrate_from(HOG, 2, 1);
        let moved = moved.cpu(1).at(12_000).block(WAKER, HOG);
        let moved = moved.cpu(2).at(19_000).block(other, Task::IDLE);
        moved.cpu(0).at(20_000).block(VIC, Task::IDLE)
    };
    assert_eq!(behind_ms(moved(4_000), Some(VIC)), 0);
    assert_eq!(behind_ms(moved(4_000), Some(WAKER)), 3);
    assert_eq!(behind_ms(moved(4_000), None), 4);
    // It may have run on CPU 2 before that one's events begin.
    for behind in [Some(VIC), Some(WAKER), None] {
        assert_eq!(behind_ms(moved(6_000), behind), 0);
    }
    let answers = Answers::of(&moved(6_000).build()).expect("all reports answer");
    assert_eq!(answers.threads[&HOG.tid].waiting_ns, 0);
}

#[test]
fn a_window_that_ends_before_a_cpu_is_left_takes_it_for_what_it_seems_so_far() {
    let trace = moved_away()
        .cpu(0)
        .at(20_000)
        .block(VIC, Task::IDLE)
        .build();
    let behind_ms = |begin_ms: Option<i64>, end_ms: Option<i64>| {
        let wall_ns = |ms: i64| trace.wall_ns(Instant::from_ns(ms * MS));
        let options = ReportOptions {
            begin_ns: begin_ms.map(wall_ns),
            end_ns: end_ms.map(wall_ns),
            ..ReportOptions::default()
        };
        let answers = Answers::asked(&trace, &options).expect("all reports answer");
        let of = |task: Task| {
            let ns = answers.behind_ns.get(&(HOG.tid, Some(task.tid)));
            ns.copied().unwrap_or(0) / MS
        };
        (of(VIC), of(WAKER))
    };
    assert_eq!(behind_ms(None, None), (4, 3));
    assert_eq!(behind_ms(None, Some(13)), (4, 3));
    // It begins with the event of 9 ms.
    assert_eq!(behind_ms(Some(7), None), (0, 3));
    assert_eq!(behind_ms(Some(15), None), (0, 0));
}

#[test]
fn a_cpu_of_a_number_that_no_kernel_has_is_none() {
    let trace = begun().cpu(0).at(20_000).block(VIC, Task::IDLE);
    let trace = trace.also_of_cpu(3).also_of_cpu(u32::MAX).build();
    let answers = Answers::of(&trace).expect("all reports answer");
    let cpus: Vec<u32> = answers.cpus.into_keys().collect();
    assert_eq!(cpus, [0, 1, 2, 3]);
}

#[test]
fn a_task_that_is_moved_again_and_again_waits_for_all_of_them() {
    // CPU 0 has the victim, CPU 1 the waker; both leave their CPUs long after the wait's end.
    let mut trace = begun().cpu(1).at(5_000).waking(HOG, 0).wakeup(HOG, 0);
    for turn in 0..4_000 {
        let (from, to) = if turn % 2 == 0 { (0, 1) } else { (1, 0) };
        trace = trace.at(6_000 + turn * 10).migrate_from(HOG, from, to);
    }
    let trace = trace.at(6_000 + 4_000 * 10).migrate_from(HOG, 0, 1);
    let trace = trace.cpu(1).at(50_000).block(WAKER, HOG);
    let trace = trace.cpu(0).at(60_000).block(VIC, Task::IDLE);
    let answers = Answers::of(&trace.build()).expect("all reports answer");
    let of_it = answers
        .behind_ns
        .iter()
        .filter(|((waiter, _), _)| *waiter == HOG.tid);
    let sum_ns: i64 = of_it.clone().map(|(_, ns)| ns).sum();
    assert_eq!(sum_ns, 45 * MS, "{:?}", of_it.collect::<Vec<_>>());
    let known = answers.behind_ns.get(&(HOG.tid, Some(VIC.tid)));
    assert!(
        known.is_some_and(|ns| *ns > 5 * MS && *ns <= 21 * MS),
        "{known:?}"
    );
}

#[test]
fn who_leaves_a_cpu_that_another_one_had_meanwhile_has_waited() {
    // Only first events of wake-ups are recorded. The victim leaves CPU 0, which another one came
    // on after that wake-up, or before.
    let left = |hog_us: i64, limit: &str| {
        let trace = SyntheticTrace::new().cpus(2).at(0).cpu(1).run(WAKER);
        let waking = |trace: SyntheticTrace| trace.cpu(1).at(5_000).waking(VIC, 0).cpu(0);
        let came = |trace: SyntheticTrace| trace.cpu(0).at(hog_us).run(HOG);
        let trace = match hog_us < 5_000 {
            true => waking(came(trace)),
            false => came(waking(trace.cpu(0).timer_irq().timer_irq_end())),
        };
        let trace = trace.at(9_000).block(VIC, Task::IDLE);
        let trace = trace.cpu(1).at(9_100).waking(VIC, 0);
        let trace = trace.cpu(0).at(9_101).run(VIC).at(9_200);
        let trace = trace.block(VIC, Task::IDLE);
        checked(&trace.build(), "vic", limit).expect("a finding")
    };
    assert_eq!(left(6_000, "1ms").unsure, 1);
    assert_eq!(left(6_000, "5ms").within, 1);
    // It may have had the CPU at its wake-up, and then there was no wait.
    assert_eq!(left(4_000, "1ms").unsure, 1);
    assert_eq!(left(4_000, "5ms").within, 0);
    assert_eq!(left(4_000, "5ms").unsure, 0);
}

#[test]
fn an_idle_cpu_may_have_had_a_task_before_a_wake_up_that_no_second_event_tells_of() {
    // Who leaves CPU 0 at the end was never seen to sleep.
    let trace = SyntheticTrace::new().cpus(2).at(0).cpu(0).timer_irq();
    let trace = trace.after(1).timer_irq_end().cpu(1).run(WAKER);
    let trace = trace.cpu(0).at(1_000).run(VIC);
    let trace = trace.at(2_000).block(VIC, Task::IDLE);
    let only_waking = |trace: SyntheticTrace| trace.cpu(1).at(9_000).waking(HOG, 0);
    let trace = only_waking(trace).cpu(0).at(20_000).block(HOG, Task::IDLE);
    let answers = Answers::of(&trace.build()).expect("all reports answer");
    assert_eq!(answers.cpus[&0].idle_ns, 0, "{answers:?}");
    assert_eq!(
        answers.cpus[&0].unknown_ns,
        18 * MS + 999_000,
        "{answers:?}"
    );
}

#[test]
fn a_wake_up_whose_second_event_may_be_lost_is_none_yet() {
    // It had the CPU, and slept later; the loss may hold the event that it is on a run queue.
    let trace = woken().lost_on(Some(1), 5_000_500, 6_000_000).cpu(0);
    let trace = trace.at(7_000).block(VIC, Task::IDLE).at(20_000).run(HOG);
    let answers = Answers::of(&trace.build()).expect("all reports answer");
    let states = answers.threads[&VIC.tid];
    assert_eq!((states.waiting_ns, states.blocked_ns), (100_000, 0));
}

#[test]
fn who_leaves_a_cpu_first_was_not_there_while_it_slept() {
    // Its sleep on CPU 1 is seen, and its wake-up; CPU 0 has no switch before.
    let trace = SyntheticTrace::new().cpus(2).at(0).cpu(1).run(VIC);
    let trace = trace.at(1_000).block(VIC, WAKER).cpu(0).at(5_000);
    let trace = trace.timer_irq().at(9_000).timer_irq_end().cpu(1);
    let trace = trace.waking(VIC, 0).cpu(0).at(9_100);
    let trace = trace.block(VIC, Task::IDLE).cpu(1).at(9_200);
    let answers = Answers::of(&trace.wakeup(VIC, 0).build()).expect("all reports answer");
    let states = answers.threads[&VIC.tid];
    let all_ns = states.on_cpu_ns() + states.waiting_ns + states.blocked_ns + states.unknown_ns;
    assert_eq!(all_ns, 9_200 * 1_000, "{states:?}");
}

#[test]
fn who_is_seen_first_as_it_is_scheduled_in_may_have_waited_since_the_begin() {
    let seen = |at_us: i64| {
        let trace = SyntheticTrace::new().cpus(2).at(0).cpu(0).run(HOG);
        let trace = trace.at(at_us).block(HOG, VIC).after(10);
        let trace = trace
            .block(VIC, Task::IDLE)
            .cpu(1)
            .at(8_000)
            .wake_for(VIC, 0);
        trace
            .cpu(0)
            .after(1)
            .run(VIC)
            .after(10)
            .block(VIC, Task::IDLE)
    };
    check(seen(900), "held");
    check(seen(5_000), "inconclusive");
}

#[test]
fn a_wake_up_without_second_event_that_may_have_found_its_task_on_a_cpu_may_have_been_late() {
    // Nobody saw when the victim came on the CPU: before its wake-up, in which case it never
    // waited, or up to when it leaves.
    let trace = |leaves_us| {
        let trace = SyntheticTrace::new().cpus(1).cpu(0).at(0).timer_irq();
        let trace = trace.after(1).timer_irq_end().at(90).run(HOG);
        let trace = trace.at(100).irq(24, "sound").after(1).waking(VIC, 0);
        let trace = trace.after(1).irq_end(24);
        // The next one is seen, and in time.
        let trace = trace.at(leaves_us).block(VIC, Task::IDLE);
        let trace = trace.after(10).irq(24, "sound").after(1).waking(VIC, 0);
        let trace = trace.after(1).irq_end(24).after(1).run(VIC);
        trace.after(10).block(VIC, Task::IDLE)
    };
    check(trace(1_102), "inconclusive");
    check(trace(1_100), "held");
}

#[test]
fn of_several_that_came_on_an_idle_cpu_while_it_handled_an_interrupt_any_may_have_run_first() {
    let [net, last] = [Task::nice(107, "net", -5), Task::fair(108, "last")];
    let answers = |first: Task| {
        let trace = begun().cpu(0).at(2_000).block(VIC, Task::IDLE);
        let trace = trace.at(5_000).irq(24, "sound").wake_for(first, 0);
        let trace = trace.wake_for(net, 0).wake_for(last, 0).irq_end(24);
        // Who came there first is hidden.
        let trace = trace.at(20_000).block(first, last);
        let trace = trace.at(21_000).block(last, Task::IDLE).build();
        Answers::of(&trace).expect("all reports answer")
    };
    let had_ms = |answers: &Answers, task: Task| {
        let behind = answers.behind_ns.get(&(last.tid, Some(task.tid)));
        let had_ns = answers.top_ns.get(&task.tid);
        (
            behind.map_or(0, |ns| ns / MS),
            had_ns.map_or(0, |ns| ns / MS),
        )
    };
    let build = Task::fair(104, "build");
    assert_eq!(had_ms(&answers(build), build), (0, 0));
    // Nobody else takes the CPU before one that has a real-time priority.
    assert_eq!(had_ms(&answers(HOG), HOG), (14, 14));
}

#[test]
fn who_is_woken_where_nobody_knows_who_has_the_cpu_may_have_it() {
    let trace = || {
        let trace = SyntheticTrace::new().cpus(2).at(0).cpu(0).timer_irq();
        trace.after(1).timer_irq_end().cpu(1).run(WAKER).at(5_000)
    };
    let ends = |trace: SyntheticTrace| trace.at(20_000).block(WAKER, Task::IDLE);
    let waiting_ns = |trace: SyntheticTrace| {
        let answers = Answers::of(&trace.build()).expect("all reports answer");
        let states = answers.threads.get(&VIC.tid);
        states.map_or(0, |states| states.waiting_ns)
    };
    let woken = || ends(trace().wake_for(VIC, 0));
    check(woken(), "inconclusive");
    assert_eq!(waiting_ns(woken()), 0);
    // One that is new has had none.
    let new = || ends(trace().wakeup_new(VIC, 0));
    check(new(), "broken");
    assert_eq!(waiting_ns(new()), 15 * MS);
}
