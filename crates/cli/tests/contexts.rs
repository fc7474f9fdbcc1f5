//! Check that events of applications carry the contexts that were asked for, as the kernel tells
//! them, and that filters take them. Needs no privilege.

mod recorded;

use std::path::Path;
use std::process::{Command, Stdio};

use recorded::{BESIDE_RECORDER, Running, Scene, compile_with_probe, run};

/// Once it is recorded it writes its events, says so and waits for its input's end.
const PROGRAM: &str = r#"
int main(int count, char **words)
{
    await_recorder();
    for (int i = 0; i < 10; i++)
        RTSCOPE_EVENT(robot, step, i32("i", i), text("arm", "left"));
    return say_done(words[count - 1]);
}
"#;

/// The lines of the steps in a trace.
fn lines(trace: &Path) -> Vec<String> {
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let text = run(rtscope.arg("cat").arg(trace));
    let lines = text.lines().filter(|line| line.contains("robot:step"));
    lines.map(str::to_owned).collect()
}

/// Records `patterns` of the program, which is 5 nicer than we are; gives the lines of its steps.
fn steps(program: &Path, patterns: &[&str], contexts: &str) -> Vec<String> {
    let scene = Scene::new();
    let mut nice = Command::new("nice");
    nice.args(["-n", "5"]).arg(program);
    let mut words: Vec<&str> = patterns.iter().flat_map(|p| ["--user", p]).collect();
    if !contexts.is_empty() {
        words.extend(["--context", contexts]);
    }
    scene.record_beside(&words, nice);
    scene.check_babeltrace("contexts");
    lines(&scene.trace())
}

/// The program, and the number of our pid namespace.
fn program(name: &str) -> (std::path::PathBuf, String) {
    let source = format!("{BESIDE_RECORDER}{PROGRAM}");
    let own_ns = std::fs::read_link("/proc/self/ns/pid").expect("our namespace");
    let own_ns = own_ns
        .to_string_lossy()
        .replace("pid:[", "")
        .replace(']', "");
    (compile_with_probe(name, &source, &[]), own_ns)
}

/// Whoever runs the tests may have lowered or raised theirs.
fn own_niceness() -> i32 {
    let said = run(&mut Command::new("nice"));
    said.trim().parse().expect("a niceness")
}

/// What `id` says of us.
fn own_id(flag: &str) -> String {
    run(Command::new("id").arg(flag)).trim().to_owned()
}

#[test]
fn events_carry_what_the_kernel_says_of_their_thread_and_filters_take_it() {
    let (program, own_ns) = program("contextual");
    let lines = steps(
        &program,
        &["robot"],
        "procname,prio,policy,pid_ns,veuid,vgid,ip",
    );
    assert_eq!(lines.len(), 10);
    // Nice 0 is 20 on the kernel's scale, and LTTng counts as the kernel does.
    let prio = 20 + own_niceness() + 5;
    let known = format!(
        "procname = \"contextual\", prio = {prio}, policy = ( \"SCHED_OTHER\" : container = 0 ), \
         pid_ns = {own_ns}, veuid = {}, vgid = {}, ip = 0x",
        own_id("-u"),
        own_id("-rg"),
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
    check(&format!("$ctx.vuid == {} && i > 4", own_id("-ru")), 5);
    check("$ctx.vsgid == 4294967294", 0);
}

#[test]
fn a_snapshot_of_a_flight_has_the_contexts_that_the_flight_was_asked_for() {
    let (program, own_ns) = program("flying");
    let scene = Scene::new();
    let rtscope = || {
        let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        rtscope.env("RTSCOPE_DIR", scene.shared());
        rtscope.stdout(Stdio::null()).stderr(Stdio::null());
        rtscope
    };
    let mut flight = rtscope();
    flight.args(["record", "--flight", "--user", "robot"]);
    flight.args(["--context", "procname,pid_ns,prio"]);
    let mut flight = Running(flight.spawn().expect("rtscope record"));
    let done = scene.shared().join("done");
    let mut traced = Command::new(program);
    traced.arg(&done).env("RTSCOPE_DIR", scene.shared());
    let traced = traced.stdin(Stdio::piped()).spawn();
    let mut traced = Running(traced.expect("it starts"));
    while !done.exists() {
        assert_eq!(flight.0.try_wait().expect("its state"), None, "it flies");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    run(rtscope().arg("snapshot").arg("-o").arg(scene.trace()));
    drop(traced.0.stdin.take());
    assert!(traced.0.wait().expect("the program ends").success());
    run(Command::new("kill").args(["-INT", &flight.0.id().to_string()]));
    assert!(flight.0.wait().expect("it ends").success());
    scene.check_babeltrace("flying");

    let found = lines(&scene.trace());
    assert_eq!(found.len(), 10);
    let prio = 20 + own_niceness();
    let known = format!("procname = \"flying\", pid_ns = {own_ns}, prio = {prio}");
    for line in &found {
        assert!(line.contains(&known), "{line}\n{known}");
    }
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
    check(&["--user", "a", "--context", "pthread_id"], "take vtid");
    check(&["--context", "policy"], "add --user");
}
