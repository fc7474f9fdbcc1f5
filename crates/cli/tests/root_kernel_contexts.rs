//! Events of the kernel carry what ftrace notes beside each of them, as babeltrace2 and we read it.
//! Needs root.

mod recorded;
mod session;

use std::path::Path;
use std::process::Command;

use recorded::run;
use session::Night;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");
const CONTEXTS: &str =
    "tid,pid,interruptible,preemptible,preempt_count,migratable,need_reschedule,irq_context";

/// The lines of a trace that `filter` lets through.
fn lines(trace: &Path, filter: &str) -> Vec<String> {
    let mut cat = Command::new(RTSCOPE);
    let text = run(cat.arg("cat").arg(trace).args(["--filter", filter]));
    text.lines().map(str::to_owned).collect()
}

/// The number behind `name = ` in a line.
fn number(line: &str, name: &str) -> i64 {
    let found = line.split_once(&format!(" {name} = "));
    let digits = found.and_then(|(_, rest)| rest.split([',', ' ']).next());
    let number = digits.and_then(|digits| digits.parse().ok());
    number.unwrap_or_else(|| panic!("no {name}: {line}"))
}

/// What the contexts say does not contradict what the events are.
fn check(trace: &Path) {
    let switches = lines(trace, "$name == \"sched_switch\"");
    assert!(switches.len() > 10, "{} switches", switches.len());
    for line in &switches {
        assert_eq!(number(line, "tid"), number(line, "prev_tid"), "{line}");
        assert_eq!(number(line, "interruptible"), 0, "{line}");
        assert_eq!(number(line, "preemptible"), 0, "{line}");
        assert!(line.contains("irq_context = ( \"task\""), "{line}");
    }
    let timers = lines(trace, "$name == \"timer_hrtimer_expire_entry\"");
    assert!(timers.len() > 10, "{} timers", timers.len());
    for line in &timers {
        assert_eq!(number(line, "interruptible"), 0, "{line}");
        assert_eq!(number(line, "preemptible"), 0, "{line}");
        assert!(!line.contains("irq_context = ( \"task\""), "{line}");
    }
    // Some event of a task with nothing off: a timer that is set up.
    let open = "$name == \"timer_*\" && irq_context == \"task\" && interruptible == 1";
    assert!(!lines(trace, open).is_empty());

    let mut babeltrace = Command::new("babeltrace2");
    let text = run(babeltrace.arg(trace.join("kernel")));
    let theirs = text.lines().filter(|line| line.contains(" sched_switch:"));
    let theirs = theirs.filter(|line| line.contains("irq_context = ( \"task\""));
    assert_eq!(theirs.count(), switches.len());
}

/// Sleeps again and again.
const PROGRAM: &str = r#"
#include <time.h>
int main(void)
{
    struct timespec time = {0, 500000};
    for (int i = 0; i < 100; i++)
        nanosleep(&time, 0);
    return 0;
}
"#;

const ASKED: [&str; 4] = ["--events", "sched_switch,timer", "--context", CONTEXTS];

#[test]
fn a_recording_says_beside_each_event_whose_it_is_and_what_was_off() {
    let _alone = testkit::privileged();
    let program = recorded::compile("cc", "contexts", PROGRAM, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let mut record = Command::new(RTSCOPE);
    record.arg("record").args(ASKED).arg("-o").arg(&trace);
    run(record.arg("--").arg(&program));
    check(&trace);
}

#[test]
fn so_do_a_session_and_a_flight_recorder() {
    let _alone = testkit::privileged();
    let program = recorded::compile("cc", "contexts", PROGRAM, &[]);
    for in_flight in [false, true] {
        let night = Night::new();
        let flight: &[&str] = if in_flight { &["--flight"] } else { &[] };
        night.says("start", &[&ASKED, flight].concat());
        run(&mut Command::new(&program));
        if in_flight {
            night.says("snapshot", &[]);
        }
        night.says("stop", &[]);
        let traces = night.archives();
        assert!(!traces.is_empty());
        traces.iter().for_each(|trace| check(trace));
    }
}

/// Sleeps again and again in `inner`, which `outer` calls.
const CALLS: &str = r#"
#include <sys/syscall.h>
#include <time.h>
static const struct timespec pause = {0, 500000};
__attribute__((noinline)) long inner(void)
{
    long ret;
    __asm__ volatile("syscall" : "=a"(ret) : "a"(SYS_nanosleep), "D"(&pause), "S"(0)
                     : "rcx", "r11", "memory");
    return ret;
}
__attribute__((noinline)) long outer(void) { return inner() + 1; }
int main(void)
{
    for (int i = 0; i < 1000; i++)
        outer();
    return 0;
}
"#;

#[test]
fn call_stacks_stand_beside_the_events_that_happened_in_them() {
    let _alone = testkit::privileged();
    let flags = ["-O0", "-fno-omit-frame-pointer"];
    let program = recorded::compile("cc", "call-stacks", CALLS, &flags);
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let mut record = Command::new(RTSCOPE);
    record.args(["record", "--events", "sched_switch"]);
    record.args(["--context", "callstack-kernel,callstack-user,tid"]);
    // What it has in its memory is not known before it runs.
    run(record.arg("-o").arg(&trace).arg("--").arg(&program));

    let switches = "$name == \"sched_switch\" && prev_comm == \"call-stacks\"";
    let mut cat = Command::new(RTSCOPE);
    cat.args(["cat", "--debug-info", "--filter", switches]);
    let text = run(cat.arg(&trace));
    assert!(text.lines().count() > 10, "{text}");
    let tid = text.lines().next().map(|line| number(line, "prev_tid"));
    // One that was preempted was elsewhere.
    let slept = |line: &&str| line.contains("prev_state = 1");
    for line in text.lines().filter(slept) {
        let in_order = |names: &[&str]| {
            let places: Option<Vec<_>> = names.iter().map(|name| line.find(name)).collect();
            places.is_some_and(|places| places.is_sorted())
        };
        assert!(
            in_order(&["schedule+", "do_nanosleep+", "do_syscall_64+"]),
            "{line}"
        );
        assert!(in_order(&["\"inner+", "\"outer+", "\"main+"]), "{line}");
    }

    let mut report = Command::new(RTSCOPE);
    let stacks = run(report.args(["report", "flamegraph"]).arg(&trace));
    let begin = format!("call-stacks ({});", tid.expect("a line"));
    let counted = |line: &str| {
        let (stack, count) = line.rsplit_once(' ')?;
        let is_it = stack.starts_with(&begin)
            && stack.contains(";main;outer;inner;")
            && stack.contains(";do_nanosleep;")
            && stack.ends_with(";__schedule;sched_switch");
        is_it.then(|| count.parse::<usize>().expect("a number"))
    };
    let counted: usize = stacks.lines().filter_map(counted).sum();
    // One that was woken before it had left did not sleep, and stands there too.
    let there = |line: &&str| line.contains("do_nanosleep+") && line.contains("\"inner+");
    assert_eq!(counted, text.lines().filter(there).count(), "{stacks}");

    let mut babeltrace = Command::new("babeltrace2");
    let theirs = run(babeltrace.arg(trace.join("kernel")));
    // But for the time since the line before: they print all events.
    let body = |line: &str| line.split_once(") ").map(|(_, body)| body.to_owned());
    let theirs = theirs.lines().filter(|line| line.contains("sched_switch:"));
    let ours = lines(&trace, "$name == \"sched_switch\"");
    let theirs: Vec<_> = theirs.map(body).collect();
    let ours: Vec<_> = ours.iter().map(|line| body(line)).collect();
    assert_eq!(ours, theirs);
}
