//! Check that a traced thread makes no system call, as the kernel's own events say: they are
//! recorded by the same command as the thread's. no_system_call.rs asks strace.

mod recorded;

use std::path::Path;

use event::TimeRange;
use recorded::{Scene, scratch};
use testkit::{Traced, build_traced};
use trace::{Item, Trace};

/// The kernel's numbers of the system calls that the traced thread made between its first event
/// and its last, and how many events of its own were there.
fn calls_between(trace: &Trace) -> (Vec<i64>, u64) {
    // The thread with the markers, while it runs: it stays on one CPU.
    let mut thread = None;
    // Calls since the thread was last known to run.
    let mut suspects = Vec::new();
    let (mut calls, mut events) = (Vec::new(), 0);
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("sound") {
        let event = match item {
            Item::Event(event) => event,
            other => panic!("{other:?}"),
        };
        let class = &trace.classes()[event.class().0 as usize];
        let number = |name: &str| class.field(name).map(|field| event.i64(field));
        if class.name == "quiet:begin" {
            thread = Some((event.cpu(), number("vtid").expect("a thread"), true));
            continue;
        }
        let Some((cpu, tid, runs)) = &mut thread else {
            continue;
        };
        if *cpu != event.cpu() {
            continue;
        }
        match class.name.as_str() {
            // A switch that the kernel left out shows here: the calls were another one's.
            "sched_switch" => {
                let ran = number("prev_tid") == Some(*tid);
                calls.extend(suspects.drain(..).filter(|_| ran));
                *runs = number("next_tid") == Some(*tid);
            }
            "sys_enter" if *runs => suspects.push(number("id").expect("a number")),
            "quiet:loop" => {
                *runs = true;
                events += 1;
            }
            "quiet:end" => {
                calls.append(&mut suspects);
                return (calls, events);
            }
            _ => {}
        }
    }
    panic!("the thread's last event is not in the trace");
}

fn recorded(program: &Path, words: &[&str]) -> (Vec<i64>, u64) {
    let scene = Scene::new();
    let program = program.to_str().expect("UTF-8");
    let kernel = "sched:sched_switch,raw_syscalls:sys_enter";
    scene.record(
        &["--user", "quiet", "--events", kernel, "--buffer", "16M"],
        &[&[program], words].concat(),
    );
    calls_between(&Trace::open(scene.trace()).expect("a trace"))
}

#[test]
fn the_kernel_sees_no_system_call_of_a_thread_between_its_first_event_and_its_last() {
    let _alone = testkit::privileged();
    let source = Traced::c(include_str!("quiet/main.c"));
    let program = build_traced(&scratch(), "quiet", source);
    assert_eq!(recorded(&program, &["50000"]), (Vec::new(), 50_000));
    let control = (vec![libc::SYS_getppid], 1);
    assert_eq!(recorded(&program, &["1", "call"]), control);
}
