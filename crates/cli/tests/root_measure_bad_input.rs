//! What stands in the way of a measurement is told in three parts, before it begins; what comes in
//! its way meanwhile is told with what was measured until then.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long a measurement may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

fn command(words: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(words.split_whitespace()).current_dir(folder);
    command
}

fn run(words: &str, folder: &Path) -> Output {
    command(words, folder).output().expect("rtscope starts")
}

/// Refused with exit code 1, and all three parts on stderr.
fn check_refused(output: &Output, expect: [&str; 3]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let [what, found, fix] = expect;
    assert!(text.contains(what), "what: {what}: {text}");
    let part = |name: &str, expect: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        assert!(
            line.is_some_and(|line| line.contains(expect)),
            "{name} {expect}: {text}"
        );
    };
    part("found:", found);
    part("fix:", fix);
}

#[test]
fn under_cyclictests_name_files_that_cannot_be_opened_are_told_in_its_words() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let no_file = ": No such file or directory\n";
    // In cyclictest's words, which would measure for ever, and lose the histogram in the end.
    let in_its_words = [
        ("json", 2, "Failed to open '/proc/nowhere/h'\n"),
        ("histfile", 1, "opening histogram file:"),
    ];
    for (option, code, words) in in_its_words {
        let line = format!("measure cyclic --cyclictest -p80 -h10 -q --{option}=/proc/nowhere/h");
        let output = run(&line, folder.path());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(text, format!("{words}{no_file}"), "{line}");
        assert_eq!(output.status.code(), Some(code), "{line}");
    }
}

#[test]
fn cpus_words_and_files_that_cannot_be_are_refused_before_anything_runs() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let check = |words: &str, expect: [&str; 3]| check_refused(&run(words, folder.path()), expect);
    let far = ["there is no CPU 999 here", "'999'", "choose from"];
    check("measure cyclic --cpu 999", far);
    check("measure preempt --cpu 999", far);
    check("measure hw --cpu 999", far);
    check("measure eval --cpu 999", far);
    check("shield --cpu 999", far);
    check(
        "measure cyclic --interval 0us",
        ["--interval of zero", "'0us'", "above zero"],
    );
    let often = [
        "nobody wakes so often",
        "an interval of 1.000 us",
        "--interval 10us",
    ];
    check("measure cyclic --interval 1us", often);
    check("measure preempt --interval 1us", often);
    check("measure eval --interval 1us --load none", often);
    check(
        "measure preempt --prio 2",
        ["priorities end at 2", "--prio 2", "choose --prio"],
    );
    check(
        "measure hw --window 1ms --width 2ms",
        [
            "loop for longer than a window",
            "2.000 ms of 1.000 ms",
            "--width",
        ],
    );
    check(
        "measure cyclic --phases --clock realtime --samples 1",
        [
            "phases are known on the clock",
            "realtime",
            "--clock monotonic",
        ],
    );
    let nowhere = ["cannot write /proc/nowhere/h", "", "a folder that is there"];
    check(
        "measure cyclic --samples 1000000 --histogram /proc/nowhere/h",
        nowhere,
    );
    check(
        "measure eval -o /proc/nowhere",
        ["cannot make /proc/nowhere", "", "-o /tmp/eval"],
    );
    check(
        "measure eval --compare . .",
        ["cannot read ./eval.json", "No such file", "measure eval"],
    );
    std::fs::write(folder.path().join("eval.json"), "{}").expect("written");
    check(
        "measure eval --compare . .",
        ["is no evaluation", "schema null", "measure eval"],
    );
    check(
        "shield --undo",
        ["no shield is up", "rtscope-shield.json", "--apply"],
    );
}

#[test]
fn without_real_time_rights_the_limit_and_the_command_are_named() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let tried = Command::new("setpriv")
        .args(["--inh-caps=-all", "true"])
        .status();
    if !tried.is_ok_and(|status| status.success()) {
        return testkit::skip(
            "measure without rights",
            "setpriv cannot give capabilities away",
        );
    }
    let run = |words: &str| {
        // Who may not take a nice value back keeps it.
        let mut limited = Command::new("nice");
        limited.args(["-n", "5", "prlimit", "--rtprio=0:0"]);
        limited.args(["setpriv", "--bounding-set=-sys_nice"]);
        limited.args(["--inh-caps=-sys_nice", env!("CARGO_BIN_EXE_rtscope")]);
        limited.arg("measure").args(words.split(' '));
        let output = limited.current_dir(folder.path()).output();
        output.expect("nice starts")
    };
    for words in [
        "cyclic",
        "cyclic --policy deadline",
        "preempt",
        "hw",
        "eval",
    ] {
        let output = run(words);
        let expect = ["real-time priorities", "RLIMIT_RTPRIO 0", "sudo"];
        check_refused(&output, expect);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("rtscope measure cannot run here"), "{text}");
    }
    let ordinary = run("cyclic --policy other --samples 10 --quiet");
    assert!(ordinary.status.success(), "{ordinary:?}");
}

#[test]
fn a_cpu_that_is_on_and_not_allowed_is_told_with_what_shows_those_that_are() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let cpusets = Path::new("/sys/fs/cgroup/cpuset");
    let group = &cpusets.join(format!("rtscope-test-allowed-{}", std::process::id()));
    if std::fs::create_dir(group).is_err() {
        return testkit::skip(
            "a CPU that is not allowed",
            "no cpusets of version 1 to try it with",
        );
    }
    let write = |name: &str, text: &str| std::fs::write(group.join(name), text);
    write("cpuset.cpus", "0")
        .and_then(|()| write("cpuset.mems", "0"))
        .expect("configured");
    let entered = Command::new("sh")
        .args(["-c", "echo $$ > \"$0/tasks\" && exec \"$@\""])
        .arg(group)
        .args([
            env!("CARGO_BIN_EXE_rtscope"),
            "measure",
            "cyclic",
            "--cpu",
            "1",
        ])
        .current_dir(folder.path())
        .output();
    std::fs::remove_dir(group).expect("removed");
    check_refused(
        &entered.expect("sh starts"),
        ["cannot run on CPU 1", "", "taskset -p $$"],
    );
}

#[test]
fn a_control_group_without_a_real_time_budget_is_told_with_what_gives_one() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let group = Path::new("/sys/fs/cgroup/cpu/rtscope-test-budget");
    if std::fs::create_dir(group).is_err() {
        return testkit::skip(
            "no real-time budget",
            "no control groups of version 1 for CPU time to try it with",
        );
    }
    let budget = group.join("cpu.rt_runtime_us");
    // A new group has none, unless the kernel was told at boot not to group real-time tasks.
    if std::fs::read_to_string(&budget).map_or(true, |text| text.trim() != "0") {
        std::fs::remove_dir(group).expect("removed");
        return testkit::skip("no real-time budget", "the kernel has no RT_GROUP_SCHED");
    }
    let entered = ["cyclic", "preempt", "hw", "eval"].map(|words| {
        Command::new("sh")
            .args(["-c", "echo $$ > \"$0/tasks\" && exec \"$@\""])
            .arg(group)
            .args([env!("CARGO_BIN_EXE_rtscope"), "measure", words])
            .current_dir(folder.path())
            .output()
    });
    std::fs::remove_dir(group).expect("removed");
    for output in entered {
        let expect = [
            "no real-time budget",
            "cpu.rt_runtime_us is 0",
            "| sudo tee",
        ];
        check_refused(&output.expect("sh starts"), expect);
    }
}

#[test]
fn who_may_not_record_is_told_that_gaps_can_be_found_without() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let words = [
        "--reuid=65534",
        "--clear-groups",
        env!("CARGO_BIN_EXE_rtscope"),
    ];
    let output = Command::new("setpriv")
        .args(words)
        .args(["measure", "hw", "--prio", "0", "--for", "1s"])
        .current_dir(folder.path())
        .output();
    let expect = [
        "kernel events cannot be recorded",
        "/sys/kernel/tracing",
        "--no-events",
    ];
    check_refused(&output.expect("setpriv starts"), expect);
}

/// Whether a thread of `process` that measures has run for 20 ms, or a hundred times.
fn measures(process: &Child) -> bool {
    let threads = format!("/proc/{}/task", process.id());
    let mut threads = std::fs::read_dir(threads).into_iter().flatten().flatten();
    threads.any(|thread| {
        let read = |file| std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let (name, accounts) = (read("comm"), read("schedstat"));
        let accounts = accounts.split_whitespace().map(str::parse);
        let accounts: Vec<u64> = accounts.map_while(Result::ok).collect();
        let [ran_ns, _, times] = accounts[..] else {
            return false;
        };
        name.starts_with("rtscope-") && (ran_ns >= 20_000_000 || times >= 100)
    })
}

/// Starts a measurement of an hour, interrupts it once it measures, and gives what it wrote.
fn interrupted(words: &str, folder: &Path) -> Output {
    let mut command = command(words, folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("rtscope starts");
    let began = Instant::now();
    while !measures(&child) && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("interrupted");
    child.wait_with_output().expect("ended")
}

#[test]
fn an_interrupted_run_has_what_it_measured_and_says_so() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let check = |words: &str, code: i32, samples: &dyn Fn(&Value) -> u64| {
        let output = interrupted(words, folder.path());
        assert_eq!(output.status.code(), Some(code), "{words}: {output:?}");
        let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert_eq!(found["complete"], false, "{words}");
        assert!(samples(&found) > 0, "{words}: {found}");
    };
    let of_threads = |found: &Value| found["threads"][0]["samples"].as_u64().unwrap_or(0);
    check("measure cyclic --for 1h --json", 0, &of_threads);
    check(
        "measure eval --for 1h --load none --no-hw --json",
        0,
        &of_threads,
    );
    check("measure hw --for 1h --no-events --json", 0, &|found| {
        found["cpus"][0]["iterations"].as_u64().unwrap_or(0)
    });
    // It always judges, and what it did not come to it cannot pass.
    check("measure preempt --rounds 100000000 --json", 3, &|found| {
        found["steps"][0]["samples"].as_u64().unwrap_or(0)
    });
    let written = std::fs::read_to_string(folder.path().join("rtscope-eval/report.html"));
    assert!(
        written
            .expect("a report")
            .contains("interrupted: what stands here")
    );
}
