//! A futex has the name of the object that it is in, by the map of its process and this disk's file
//! of the program. Needs a C compiler, no privilege.

mod story;

use std::path::Path;
use std::process::Command;

use diagnosis::{Query, diagnose};
use event::Value;
use report::{TextStyle, diagnosis_json, diagnosis_text};
use story::{Dialect, Field, IDLE, Story, Thread};
use symbols::UserSymbols;
use testkit::{SyntheticTrace, Task};

const WAITER: Thread = (30, "waiter", 120);
const HOLDER: Thread = (31, "holder", 120);
/// Where the library lies in the traced process.
const BASE: u64 = 0x7f00_0000_0000;

/// A library with a lock at a fixed place, 16 bytes into what it belongs to.
const LIBRARY: &str = "struct queue { long used[2]; int lock; };\n\
                       static struct queue __attribute__((used)) work_queue = { { 1, 2 }, 3 };\n";

/// Builds it; where the queue is in it.
fn build(library: &Path) -> u64 {
    let source = library.with_extension("c");
    std::fs::write(&source, LIBRARY).expect("written");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-Wl,--build-id", "-o"])
        .arg(library);
    assert!(cc.arg(&source).status().expect("cc runs").success());
    let symbols = Command::new("nm").arg(library).output().expect("nm runs");
    let symbols = String::from_utf8(symbols.stdout).expect("text");
    let line = symbols.lines().find(|line| line.ends_with(" work_queue"));
    let address = line
        .and_then(|line| line.split(' ').next())
        .expect("the queue");
    u64::from_str_radix(address, 16).expect("an address")
}

/// The process tells its map, as LTTng-UST's statedump does; the library ends after 64 KiB.
fn map(library: &Path) -> Story {
    let path = Field::Text(library.display().to_string());
    let fields = [
        ("vpid", Field::I32(WAITER.0)),
        ("baddr", Field::U64(BASE)),
        ("memsz", Field::U64(0x10000)),
        ("path", path),
    ];
    let start = [("vpid", Field::I32(WAITER.0))];
    let story = Story::default()
        .at(1, 0)
        .event("lttng_ust_statedump:start", &start);
    story
        .at(2, 0)
        .event("lttng_ust_statedump:bin_info", &fields)
}

/// The waiter waits at each of these addresses for 100 us, until the holder wakes it.
fn waits(addresses: &[u64]) -> Story {
    let mut story = Story::default().at(5, 0).switch(IDLE, 0, WAITER);
    story = story.at(6, 1).switch(IDLE, 0, HOLDER);
    for (place, address) in (0..).zip(addresses) {
        let begin_us = 10 + 1_000 * place;
        let futex = [("uaddr", Field::U64(*address)), ("op", Field::I32(128))];
        story = story.at(begin_us, 0).enters("futex", &futex);
        story = story.at(begin_us + 1, 0).switch(WAITER, 1, IDLE);
        story = story.at(begin_us + 98, 1).wakeup(WAITER, 0);
        story = story.at(begin_us + 99, 0).switch(IDLE, 0, WAITER);
        story = story.at(begin_us + 100, 0).returns("futex", 0);
    }
    story
}

#[test]
fn a_futex_has_the_name_of_the_object_that_it_is_in_and_no_other_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("libqueue.so");
    let queue = BASE + build(&library);
    let heap = 0x5555_0000_1000;
    let (past, traces) = (queue + 0x2000, folder.path().join("traces"));
    map(&library).write(&traces.join("ust"), Dialect::TODAY);
    waits(&[queue, queue + 16, past, heap]).write(&traces.join("kernel"), Dialect::TODAY);
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    rtscope
        .args(["report", "futex", "--no-intersection"])
        .arg(&traces);
    let output = rtscope.output().expect("rtscope starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let named = |address: u64, name: &str| {
        let expect = format!("  {name} ({address:#x}) in 30 ");
        assert_eq!(
            text.replace('\n', "\n  ").matches(&expect).count(),
            2,
            "{expect}: {text}"
        );
    };
    named(queue, "work_queue");
    named(queue + 16, "work_queue+0x10");
    for address in [past, heap] {
        assert!(
            text.contains(&format!("\n{address:#x} in 30 ")),
            "{address:#x}: {text}"
        );
    }
}

/// A watch's snapshot: a second thread of the waiter's process waits for the mutex at `address`
/// from 1.1 to 3.1 ms, which the owner keeps; the process has told its map.
fn snapshot(library: &Path, address: u64) -> SyntheticTrace {
    let (victim, owner) = (Task::rt(100, "victim", 50), Task::rt(200, "owner", 30));
    let steps = [
        (1_000_000, 7, 0, victim.tid),
        (1_010_000, 8, 0, victim.tid),
        (3_152_000, 10, 0, victim.tid),
    ];
    let group = [
        ("tid", Value::Signed(victim.tid.into())),
        ("pid", Value::Signed(WAITER.0.into())),
    ];
    let object = [
        ("vpid", Value::Signed(WAITER.0.into())),
        ("baddr", Value::Unsigned(BASE)),
        ("memsz", Value::Unsigned(0x10000)),
        ("path", Value::Text(library.display().to_string().into())),
    ];
    let trace = SyntheticTrace::new()
        .event("lttng_statedump_process_state", &group)
        .event("lttng_ust_statedump:bin_info", &object);
    let trace = trace.at(10).block(victim, Task::IDLE).after(10).wake(owner);
    let trace = trace.after(10).run(owner).at(1000).timer_irq().wake(victim);
    let trace = trace
        .after(1)
        .timer_irq_end()
        .at(1010)
        .preempt(owner, victim);
    let trace = trace
        .at(1100)
        .blocked_at(address, victim, 3, Some(owner), &[]);
    let trace = trace.block(victim, owner).at(3100).wake(victim);
    let trace = trace.after(1).preempt(owner, victim).at(3152);
    trace
        .block(victim, Task::IDLE)
        .hit(1, victim, owner, &steps)
}

#[test]
fn a_diagnosis_names_the_mutex_that_the_late_task_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("libqueue.so");
    let lock = BASE + build(&library) + 16;
    let trace = snapshot(&library, lock).build();
    let mut diagnosis = diagnose(&trace, &Query::default()).expect("diagnosed");
    let mut symbols = UserSymbols::read(&trace).expect("read");
    diagnosis
        .name_mutexes(|tid, at, address| symbols.object(symbols.process_of(tid.0), at, address));
    let style = TextStyle {
        verbose: true,
        ..TextStyle::default()
    };
    let text = diagnosis_text(&diagnosis, &style);
    let expect = format!("the mutex that victim waited for: work_queue+0x10 ({lock:#x})\n");
    assert!(text.contains(&expect), "{text}");
    assert!(
        text.contains("owner (tid 200, rt 30) held a lock"),
        "{text}"
    );
    let name = &diagnosis_json(&diagnosis)["verdict"]["mutexes"][0]["name"];
    assert_eq!(name, "work_queue+0x10");
}
