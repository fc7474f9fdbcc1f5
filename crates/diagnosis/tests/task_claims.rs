//! Claims about whose activations are meant, and about users' tasks with the names of kernel
//! threads.

mod ledger;

use diagnosis::{Query, TaskFilter, diagnose};
use event::Value;
use ledger::{FAIR, check};
use testkit::{SyntheticTrace, Task};

const LEADER: Task = Task::rt(10, "jackd", 50);
const CLIENT: Task = Task::rt(11, "Client manageme", 50);
const OTHER: Task = Task::rt(20, "npt", 80);

fn text(text: &'static str) -> Value<'static> {
    Value::Text(text.into())
}

/// A state dump's line about a thread.
fn dumped(trace: SyntheticTrace, task: Task, pid: i32) -> SyntheticTrace {
    trace.event(
        "lttng_statedump_process_state",
        &[
            ("tid", Value::Signed(task.tid.into())),
            ("pid", Value::Signed(pid.into())),
            ("name", text(task.comm)),
        ],
    )
}

fn activated(trace: SyntheticTrace, task: Task) -> SyntheticTrace {
    trace
        .after(10)
        .wake(task)
        .after(10)
        .preempt(FAIR, task)
        .after(10)
        .block(task, FAIR)
}

fn machine(dump: bool) -> SyntheticTrace {
    let mut trace = SyntheticTrace::new().at(1);
    if dump {
        trace = dumped(trace, LEADER, 10);
        trace = dumped(trace, CLIENT, 10);
    }
    let mut trace = trace.after(1).preempt(Task::IDLE, FAIR);
    for task in [LEADER, CLIENT, OTHER] {
        trace = activated(trace, task);
    }
    trace
}

fn meant(trace: SyntheticTrace, patterns: &[&str]) -> Vec<i32> {
    let query = Query {
        tasks: TaskFilter::parse(patterns).expect("names tasks"),
        ..Query::default()
    };
    let diagnosis = diagnose(&trace.build(), &query).expect("a diagnosis");
    let mut tids: Vec<i32> = diagnosis
        .activations
        .iter()
        .map(|late| late.task.tid.0)
        .collect();
    tids.sort_unstable();
    tids
}

#[test]
fn tasks_are_meant_by_name_id_process_and_priority() {
    let check = |patterns: &[&str], expect: &[i32]| {
        assert_eq!(meant(machine(true), patterns), expect, "{patterns:?}");
    };
    check(&[], &[10, 11, 20]);
    check(&["rt"], &[10, 11, 20]);
    check(&["*"], &[10, 11, 20]);
    check(&["jackd"], &[10]);
    check(&["Client management"], &[11]);
    check(&["11", "npt"], &[11, 20]);
    check(&["pid:10"], &[10, 11]);
    check(&["process:jack*"], &[10, 11]);
    check(&["process:Client*"], &[]);
    check(&["prio:50"], &[10, 11]);
    check(&["prio:51-99"], &[20]);
    check(&["-1"], &[]);
    // Of a thread of which no process is known, it counts as the first thread of its own.
    assert_eq!(meant(machine(false), &["process:Client*"]), [11]);
}

#[test]
fn a_state_dump_that_comes_late_counts_from_there_on() {
    let trace = dumped(activated(machine(false), CLIENT), CLIENT, 10);
    assert_eq!(meant(activated(trace, CLIENT), &["pid:10"]), [10, 11]);
}

#[test]
fn a_program_with_the_name_of_a_kernel_thread_is_a_program() {
    let check_one = |comm: &'static str| {
        let thread = Task::rt(12, comm, 50);
        assert_eq!(
            meant(activated(machine(true), thread), &[]),
            [10, 11, 20],
            "{comm}"
        );
        let trace = activated(dumped(machine(true), thread, 10), thread);
        assert_eq!(meant(trace, &[]), [10, 11, 12, 20], "{comm}");
    };
    check_one("irq/36-x");
    check_one("migration/7");
    check_one("ksoftirqd/x");
}

#[test]
fn a_fair_task_called_migration_is_not_of_the_stop_class() {
    let stop = Task::fair(77, "migration/7");
    let trace = SyntheticTrace::new().at(10).preempt(Task::IDLE, stop);
    let trace = trace
        .at(1_000)
        .wake(ledger::VICTIM)
        .at(5_000)
        .preempt(stop, ledger::VICTIM);
    let kept = "preemption off or no preemption point in migration/7 (tid 77, nice 0)";
    check(
        trace,
        &[(kept, 3_999_000), ("wake-up delivery", 1_000)],
        diagnosis::Grade::Complete,
    );
}

/// Something that is called as a thread of the stop class runs ahead of the victim for 4 ms.
fn behind_migration(stop: Task, before: impl Fn(SyntheticTrace) -> SyntheticTrace) -> String {
    let trace = before(SyntheticTrace::new().at(5)).at(10).run(stop);
    let trace = trace.at(1_000).wake(ledger::VICTIM).at(3_000);
    let trace = trace.at(5_000).preempt(stop, ledger::VICTIM);
    let ledger = ledger::worst_ledger(trace);
    ledger.terms[0].kind.to_string()
}

#[test]
fn a_program_called_as_the_stop_class_is_known_by_its_user_code_or_its_parent() {
    let stop = Task::rt(77, "migration/7", 99);
    let (kthreadd, shell) = (Task::fair(2, "kthreadd"), Task::fair(50, "bash"));
    let address = [("address", Value::Unsigned(4096))];
    let kernels = "stop class: migration/7 (tid 77, rt 99)";
    let programs = "run-queue wait behind migration/7 (tid 77, rt 99)";
    assert_eq!(behind_migration(stop, |trace| trace), kernels);
    assert_eq!(behind_migration(stop, |t| t.fork(kthreadd, stop)), kernels);
    assert_eq!(behind_migration(stop, |t| t.fork(shell, stop)), programs);
    let calls = |t: SyntheticTrace| t.run(stop).call("read").block(stop, Task::IDLE);
    assert_eq!(behind_migration(stop, calls), programs);
    let faults = |t: SyntheticTrace| {
        let trace = t.run(stop).event("page_fault_user", &address);
        trace.block(stop, Task::IDLE)
    };
    assert_eq!(behind_migration(stop, faults), programs);
    // A kernel that hides switches seems to have its own threads run user code.
    let hidden = |t: SyntheticTrace| faults(t.fork(kthreadd, stop));
    assert_eq!(behind_migration(stop, hidden), kernels);
}

#[test]
fn a_thread_that_got_the_id_of_one_that_ended_has_its_own_waits() {
    let old = Task::rt(102, "hog", 60);
    let child = Task::rt(102, "npt", 80);
    let trace = SyntheticTrace::new().at(10).run(FAIR).at(100).wake(old);
    // What became of that one is lost.
    let trace = trace.lost(500, 1_000).at(1_100).wake(OTHER);
    let trace = trace.at(2_000).fork(OTHER, child).after(1);
    let trace = trace.wakeup_new(child, 0).at(2_010).block(OTHER, child);
    let trace = trace.at(2_020).block(child, Task::IDLE);
    let query = Query {
        tasks: TaskFilter::from(event::Tid(child.tid)),
        ..Query::default()
    };
    let diagnosis = diagnose(&trace.build(), &query).expect("it can be diagnosed");
    let waits = diagnosis.activations.iter();
    let waits: Vec<i64> = waits.map(|late| late.latency().as_ns() / 1_000).collect();
    assert_eq!(waits, [9], "{diagnosis:?}");
}
