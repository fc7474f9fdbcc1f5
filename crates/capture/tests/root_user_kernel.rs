//! Check that events of an application and of the kernel are on one clock: each event lies between
//! the system calls of its thread that surround it. Needs root and the kernel's system call events.

use std::path::Path;

use capture::{EventSelection, RecordConfig, UserConfig, capabilities, record};
use event::TimeRange;
use ftrace::Tracefs;
use testkit::{Traced, build_traced};
use trace::{Item, Trace};

/// A system call that nobody else makes, then an event, over and over.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <rtscope/event.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 2000; i++) {
        syscall(SYS_getsid, 0);
        RTSCOPE_EVENT(border, here, i32("i", i));
    }
    syscall(SYS_getsid, 0);
    return 0;
}
"#;

const ENTRY: &str = "syscalls:sys_enter_getsid";
const EXIT: &str = "syscalls:sys_exit_getsid";
const CALLS: u64 = 2001;

#[test]
fn each_user_event_lies_between_the_system_calls_around_it() {
    let _alone = testkit::privileged();
    let available = Tracefs::find().and_then(|tracefs| tracefs.available_events());
    let available = available.expect("the kernel's events");
    if !available.iter().any(|event| event.to_string() == ENTRY) {
        testkit::skip(
            "root_user_kernel",
            "this kernel has no events of system calls",
        );
        return;
    }
    let program = build_traced(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        "border",
        Traced::c(PROGRAM),
    );
    let folder = tempfile::tempdir().expect("a folder");
    let shared = tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory");
    let directory = format!("RTSCOPE_DIR={}", shared.path().display());
    let user = UserConfig::new(&["border".to_owned()]).expect("a pattern");
    let config = RecordConfig {
        events: EventSelection::new([ENTRY, EXIT]),
        user: Some(user.in_directory(shared.path())),
        command: Some(vec!["env".into(), directory.into(), program.into()]),
        ..RecordConfig::new(folder.path().join("trace"))
    };
    let summary = record(&config, &capabilities::gather(), "test").expect("it records");
    assert_eq!((summary.lost(), summary.user.lost()), (0, 0));
    // What was there at the begin is told too.
    assert!(summary.events() >= 2 * CALLS, "{}", summary.events());
    assert_eq!(summary.user.events(), CALLS - 1);

    let trace = Trace::open(&summary.path).expect("a trace");
    let (mut calls, mut events, mut error_ns) = (Vec::new(), Vec::new(), 0);
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("sound") {
        let Item::Event(event) = item else {
            panic!("{item:?}");
        };
        let class = &trace.classes()[event.class().0 as usize];
        if class.name == "border:here" {
            events.push(event.time().as_ns());
            let environment = trace.environment_of(event.class());
            error_ns = environment["rtscope_clock_error_ns"]
                .parse()
                .expect("a number");
        } else if class.name.contains("getsid") {
            calls.push(event.time().as_ns());
        }
    }
    assert_eq!(
        (calls.len() as u64, events.len() as u64),
        (2 * CALLS, CALLS - 1)
    );
    // entry, exit, then the event, then entry, exit, …
    for (place, event) in events.iter().enumerate() {
        let (exit, entry) = (calls[2 * place + 1], calls[2 * place + 2]);
        let between = exit - error_ns..=entry + error_ns;
        assert!(
            between.contains(event),
            "{place}: {event} of {between:?}, ±{error_ns} ns"
        );
    }
}
