//! Tasks that left a CPU, or came on one, and no event says so: what other events show of it.

use testkit::{SyntheticTrace, Task};
use trace::Trace;
use views::Judgement;

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
    let trace = trace.at(900).waking(VIC, 0).after(1).wakeup(VIC, 0);
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
        let trace = trace.at(5_000).waking(HOG, 0).after(1).wakeup(HOG, 0);
        trace.at(9_000).waking(HOG, 0).after(1).wakeup(HOG, 0)
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
    let trace = gone.at(12_000).waking(VIC, 0).after(1).wakeup(VIC, 0);
    let trace = trace.cpu(0).at(20_000).block(VIC, Task::IDLE);
    let answers = Answers::of(&trace.build()).expect("all reports answer");
    let cpu = answers.cpus[&0];
    assert_eq!(cpu.idle_ns, 3 * MS + 1_000, "{cpu:?}");
    assert_eq!(cpu.unknown_ns, 16 * MS - 2_000, "{cpu:?}");
}
