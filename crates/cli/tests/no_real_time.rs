//! A trace without a real-time task, asked about by somebody who names nobody.

use std::process::{Command, Output};

const TRACE: &str = "\
# tracer: nop
 swapper-0 [001] d..2. 1.000000: sched_switch: \
    prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> \
    next_comm=build next_pid=50 next_prio=120
 build-50 [001] dN.3. 1.010000: sched_wakeup: comm=server pid=60 prio=120 target_cpu=001
 build-50 [001] d..2. 1.013000: sched_switch: \
    prev_comm=build prev_pid=50 prev_prio=120 prev_state=R ==> \
    next_comm=server next_pid=60 next_prio=120
 server-60 [001] d..2. 1.013500: sched_switch: \
    prev_comm=server prev_pid=60 prev_prio=120 prev_state=S ==> \
    next_comm=build next_pid=50 next_prio=120
 build-50 [001] d..2. 1.030000: sched_switch: \
    prev_comm=build prev_pid=50 prev_prio=120 prev_state=S ==> \
    next_comm=swapper/1 next_pid=0 next_prio=120
";

fn diagnose(words: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.txt");
    std::fs::write(&file, TRACE).expect("a file");
    let mut program = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let output = program.arg("diagnose").arg(&file).args(words).output();
    output.expect("it runs")
}

#[test]
fn every_task_is_judged_where_no_real_time_task_was_activated_and_that_is_said() {
    const SAID: &str = "no real-time task was activated there: every task was judged";
    let check = |words: &[&str], begins: &str, is_said: bool, code: i32| {
        let output = diagnose(words);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.starts_with(begins), "{words:?}: {text}");
        assert_eq!(text.contains(SAID), is_said, "{words:?}: {text}");
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
    };
    let late = "server (tid 60, nice 0) needed 3.500 ms to the end of its work on CPU 1: build \
                (tid 50, nice 0) ran ahead of it for 3.000 ms";
    check(&[], late, true, 0);
    check(&["--task", "server"], late, false, 0);
    check(&["--over", "1ms"], late, true, 2);
    // Who is named is meant, and nobody else.
    check(&["--task", "rt"], "Nothing to judge", false, 3);
}
