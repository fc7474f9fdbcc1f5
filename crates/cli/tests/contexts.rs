//! Check that events of applications carry the contexts that were asked for, as the kernel tells
//! them, and that filters take them. Needs no privilege.

mod recorded;

use std::process::{Command, Stdio};

use recorded::{Scene, compile, libraries, probe, run};

/// Once it is recorded it writes its events, says so and waits for its input's end.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <rtscope/event.h>
#include <unistd.h>
/* Fields are looked at when the event is recorded. */
static int recorded;
static int tell(void)
{
    return ++recorded;
}
int main(int count, char **words)
{
    char byte;
    while (count == 2 && !recorded) {
        RTSCOPE_EVENT(robot, waits, i32("count", tell()));
        usleep(1000);
    }
    for (int i = 0; i < 10; i++)
        RTSCOPE_EVENT(robot, step, i32("i", i), text("arm", "left"));
    close(creat(words[1], 0600));
    return (int)read(0, &byte, 1);
}
"#;

/// Records `patterns` of the program, which is 5 nicer than we are; gives the lines of its steps.
fn steps(program: &std::path::Path, patterns: &[&str], contexts: &str) -> Vec<String> {
    let scene = Scene::new();
    let folder = tempfile::tempdir().expect("a folder");
    let is_ready = folder.path().join("ready");
    let mut traced = Command::new("nice")
        .args(["-n", "5"])
        .arg(program)
        .arg(&is_ready)
        .env("RTSCOPE_DIR", scene.shared())
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let wait = format!("until test -e {}; do sleep 0.01; done", is_ready.display());
    let mut words: Vec<&str> = patterns.iter().flat_map(|p| ["--user", p]).collect();
    if !contexts.is_empty() {
        words.extend(["--context", contexts]);
    }
    scene.record(&words, &["sh", "-c", &wait]);
    drop(traced.stdin.take());
    assert!(traced.wait().expect("the program ends").success());
    scene.check_babeltrace("contexts");
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let text = run(rtscope.arg("cat").arg(scene.trace()));
    let lines = text.lines().filter(|line| line.contains("robot:step"));
    lines.map(str::to_owned).collect()
}

/// Whoever runs the tests may have lowered or raised theirs.
fn own_niceness() -> i32 {
    let said = run(&mut Command::new("nice"));
    said.trim().parse().expect("a niceness")
}

#[test]
fn events_carry_what_the_kernel_says_of_their_thread_and_filters_take_it() {
    let include = format!("-I{}", probe().join("include").display());
    let library = libraries().join("librtscope-probe.a");
    let library = library.to_str().expect("a path in UTF-8");
    let program = compile("cc", "contextual", PROGRAM, &[&include, library, "-ldl"]);
    let own_ns = std::fs::read_link("/proc/self/ns/pid").expect("our namespace");
    let own_ns = own_ns
        .to_string_lossy()
        .replace("pid:[", "")
        .replace(']', "");

    let lines = steps(&program, &["robot"], "procname,prio,policy,pid_ns,ip");
    assert_eq!(lines.len(), 10);
    // Nice 0 is 20 on the kernel's scale, and LTTng counts as the kernel does.
    let prio = 20 + own_niceness() + 5;
    let known = format!(
        "procname = \"contextual\", prio = {prio}, policy = ( \"SCHED_OTHER\" : container = 0 ), \
         pid_ns = {own_ns}, ip = 0x"
    );
    for line in &lines {
        assert!(line.contains(&known), "{line}\n{known}");
    }

    let check = |filter: &str, expect: usize| {
        let pattern = format!("robot:step {filter}");
        let lines = steps(&program, &["robot:waits", &pattern], "");
        assert_eq!(lines.len(), expect, "{filter}");
    };
    check("$ctx.procname == \"context*\" && i < 3", 3);
    check(&format!("$ctx.prio == {prio} && arm == \"left\""), 10);
    check("$ctx.prio < 0 || $ctx.policy == 1", 0);
    check(&format!("$ctx.pid_ns == {own_ns} && i == 7"), 1);
    check("$ctx.pid_ns == 1", 0);
}

#[test]
fn what_is_no_context_or_cannot_be_one_here_is_refused_with_what_can() {
    let check = |words: &[&str], expect: &str| {
        let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        let output = rtscope.arg("record").args(words).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains(expect), "{words:?}: {said}");
    };
    check(&["--user", "a", "--context", "colour"], "one of vpid, vtid");
    check(
        &["--user", "a", "--context", "perf:thread:cycles"],
        "perf stat",
    );
    check(&["--context", "prio"], "--user");
}
