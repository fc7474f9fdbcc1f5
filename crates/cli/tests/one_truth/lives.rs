//! Small texts of ftrace in which threads change their names, or have one number one after the
//! other: each has a row and a name of its own, the same in all reports.

use testkit::{SyntheticTrace, Task};
use trace::Trace;
use views::Judgement;
use views::reports::{Cell, ReportOptions};

use crate::agree::checked;
use crate::answers::{Answers, rows};
use crate::cases::{IDLE, line, open, switch, wake};

const SH: (&str, i32, i32) = ("sh", 5, 120);
const FIRST: (&str, i32, i32) = ("first", 10, 120);
const SECOND: (&str, i32, i32) = ("second", 10, 120);
const CTRL: Task = Task::rt(101, "ctrl", 50);
const THIRD: (&str, i32, i32) = ("third", 10, 120);

/// The names of the rows of thread 10 in a table of a report, in the order of the alphabet.
fn names(trace: &Trace, report: &str, class: &str) -> Vec<String> {
    let rows = rows(trace, report, class, &ReportOptions::default());
    let name = |row: &Vec<Cell>| match row.first() {
        Some(Cell::Process {
            name: Some(name),
            tid: Some(10),
            ..
        }) => Some(name.clone()),
        _ => None,
    };
    let mut names: Vec<String> = rows.iter().filter_map(name).collect();
    names.sort();
    names
}

/// All reports that have rows of threads name them so.
fn check_names(text: &str, expect: &[&str]) {
    let (_dir, trace, answers) = open(text);
    for (report, class) in [
        ("cputop", "per-process"),
        ("states", "threads"),
        ("schedstats", "per_tid_stats"),
        ("syscallstats", "total"),
        ("dependency", "cpu"),
    ] {
        assert_eq!(names(&trace, report, class), expect, "{report}");
    }
    assert_eq!(answers.threads[&10].rows, expect.len() as i64);
}

/// The events of a thread that is woken, calls and leaves its CPU within a second.
fn life(second: u32, task: (&str, i32, i32), begins: &str, state: &str) -> String {
    let at = |us: u32| format!("{second}.{us:06}");
    let (comm, pid, prio) = task;
    let woken = format!("{begins}: comm={comm} pid={pid} prio={prio} target_cpu=000");
    let text = [
        line(&at(100), IDLE, "d..2.", &woken),
        switch(&at(200), IDLE, "R", task),
        line(
            &at(300),
            task,
            ".....",
            "sys_write(fd: 1, buf: 7f, count: 3)",
        ),
        line(&at(310), task, ".....", "sys_write -> 0x3"),
        switch(&at(1_000), task, state, IDLE),
    ];
    text.concat()
}

fn fork(second: u32) -> String {
    let what = "sched_process_fork: comm=sh pid=5 child_comm=sh child_pid=10";
    line(&format!("{second}.000050"), SH, ".....", what)
}

#[test]
fn threads_that_had_one_number_have_rows_of_their_own() {
    let text = [
        fork(100),
        life(100, FIRST, "sched_wakeup_new", "X"),
        fork(101),
        life(101, SECOND, "sched_wakeup_new", "X"),
        fork(102),
        life(102, THIRD, "sched_wakeup_new", "S"),
    ];
    check_names(&text.concat(), &["first", "second", "third"]);
}

#[test]
fn so_they_have_where_forks_are_not_recorded_but_that_one_ended() {
    let text = [
        life(100, FIRST, "sched_wakeup_new", "X"),
        life(101, SECOND, "sched_wakeup_new", "Z"),
        life(102, THIRD, "sched_wakeup_new", "S"),
    ];
    check_names(&text.concat(), &["first", "second", "third"]);
}

#[test]
fn so_they_have_where_it_is_not_recorded_that_one_ended_but_forks() {
    let text = [
        life(100, FIRST, "sched_wakeup_new", "S"),
        fork(101),
        life(101, SECOND, "sched_wakeup_new", "S"),
    ];
    check_names(&text.concat(), &["first", "second"]);
}

#[test]
fn a_thread_that_waits_for_a_lock_as_it_ends_is_one() {
    let text = [
        life(100, FIRST, "sched_wakeup_new", "Z"),
        life(101, FIRST, "sched_waking", "X"),
    ];
    check_names(&text.concat(), &["first"]);
}

#[test]
fn a_thread_has_its_last_name_in_all_reports() {
    let rename = |at: &str, task, to: &str| {
        let what = format!("task_rename: pid=10 oldcomm=a newcomm={to} oom_score_adj=0");
        line(at, task, ".....", &what)
    };
    let text = [
        life(100, FIRST, "sched_wakeup_new", "S"),
        rename("100.999000", SH, "second"),
        life(101, SECOND, "sched_waking", "S"),
        wake(["101.900000", "101.900001"], IDLE, "d..2.", SECOND),
        switch("101.900100", IDLE, "R", SECOND),
        rename("101.900200", SECOND, "third"),
        switch("101.900300", THIRD, "S", IDLE),
    ];
    check_names(&text.concat(), &["third"]);
}

/// A thread that is renamed by `renamed` is scheduled in unseen after its next wake-up: a rule of
/// its new name is not said to be held, and one of its old name is.
fn check_unseen_switch(renamed: impl Fn(SyntheticTrace) -> SyntheticTrace) {
    let worker = Task {
        comm: "worker",
        ..CTRL
    };
    let waker = Task::fair(103, "waker");
    let trace = SyntheticTrace::new().cpus(2).at(0).cpu(0).timer_irq();
    let trace = trace.after(1).timer_irq_end().cpu(1).run(waker);
    let trace = trace.at(10).wake_for(CTRL, 0).cpu(0).at(20).run(CTRL);
    let trace = renamed(trace.at(30));
    let trace = trace.cpu(1).at(500).wake_for(worker, 0);
    let trace = trace.at(900).wake_for(worker, 0).cpu(0);
    let trace = trace.at(910).run(worker).at(950).block(worker, Task::IDLE);
    let trace = trace.build();
    let is_held = |name| {
        let finding = checked(&trace, name, "100us").expect("a finding");
        finding.judgement == Judgement::Held
    };
    assert_eq!((is_held("worker"), is_held("ctrl")), (false, true));
}

#[test]
fn a_renamed_thread_has_its_new_name_before_a_switch_says_so() {
    // It leaves its CPU unseen, or is seen to.
    check_unseen_switch(|trace| trace.rename(CTRL, "worker"));
    check_unseen_switch(|trace| trace.block(CTRL, Task::IDLE).rename(CTRL, "worker"));
    // Nothing but its wake-ups tells of the new name.
    check_unseen_switch(|trace| trace.block(CTRL, Task::IDLE));
}

#[test]
fn who_renames_itself_where_it_is_not_seen_to_have_a_cpu_has_waited_under_its_old_name() {
    let worker = Task {
        comm: "worker",
        ..CTRL
    };
    let hog = Task::rt(102, "hog", 60);
    let trace = SyntheticTrace::new().cpus(1).at(0).cpu(0).timer_irq();
    let trace = trace.after(1).timer_irq_end().at(10).wake_for(CTRL, 0);
    let trace = trace.at(20).run(CTRL).at(30).block(CTRL, hog);
    // It comes on the CPU unseen, after 950 us.
    let trace = trace
        .at(50)
        .wake_for(CTRL, 0)
        .at(1_000)
        .rename(CTRL, "worker");
    let trace = trace
        .at(1_010)
        .wake_for(hog, 0)
        .at(1_020)
        .block(worker, hog);
    let trace = trace.at(1_030).block(hog, Task::IDLE).build();
    for (name, limit) in [("ctrl", "100us"), ("worker", "100us")] {
        let finding = checked(&trace, name, limit).expect("a finding");
        assert_ne!(finding.judgement, Judgement::Held, "{finding:?}");
    }
}

#[test]
fn a_cpu_idles_no_longer_than_in_truth_where_somebody_renames_itself_there_unseen() {
    // It idles for 807 ns, and the interrupts on it tell who does not: ctrl comes at 5.911 us.
    let hog = Task::rt(102, "hog", 60);
    let trace = SyntheticTrace::new()
        .cpus(1)
        .cpu(0)
        .at_ns(1_000)
        .timer_irq();
    let trace = trace
        .at_ns(1_500)
        .timer_irq_end()
        .at_ns(1_701)
        .irq(24, "sound");
    let trace = trace
        .at_ns(2_401)
        .waking(hog, 0)
        .at_ns(2_801)
        .wakeup(hog, 0);
    let trace = trace.at_ns(3_301).irq_end(24).at_ns(3_402).run(hog);
    let trace = trace.at_ns(3_503).irq(24, "sound").at_ns(3_604).irq_end(24);
    let trace = trace.at_ns(3_705).block(hog, Task::IDLE);
    let trace = trace.at_ns(3_806).irq(24, "sound").at_ns(3_907).irq_end(24);
    let trace = trace
        .at_ns(4_008)
        .irq(24, "sound")
        .at_ns(4_708)
        .waking(CTRL, 0);
    let trace = trace.at_ns(5_108).wakeup(CTRL, 0).at_ns(5_608).irq_end(24);
    let trace = trace
        .at_ns(6_214)
        .irq(24, "sound")
        .at_ns(6_416)
        .waking(hog, 0);
    let trace = trace.at_ns(6_816).wakeup(hog, 0).at_ns(6_917).irq_end(24);
    let trace = trace.at_ns(7_018).rename(CTRL, "worker");
    let trace = trace.at_ns(21_018).block(hog, Task::IDLE).build();
    let answers = Answers::of(&trace).expect("all reports answer");
    let idle_ns = answers.cpus[&0].idle_ns;
    assert!(idle_ns <= 807, "{:?}", answers.cpus[&0]);
}
