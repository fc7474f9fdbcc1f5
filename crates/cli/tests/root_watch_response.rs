//! A loop that is late by its own work and knows it: each of its misses is told, whatever the rate.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

const NAME: &str = "response-loop";
const LONG_NS: i64 = 12_000_000;
const LIMIT: &str = "10ms";

fn now_ns() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// What takes the time, by its name.
#[inline(never)]
fn long_callback(until_ns: i64) {
    while now_ns() < until_ns {
        let mut turns = 0;
        while turns < 200_000 {
            turns += 1;
        }
    }
}

/// Six long activations among short ones: when each began and ended, by its own clock.
fn misses() -> Vec<(i64, i64)> {
    let work = || {
        let mut misses = Vec::new();
        for cycle in 1..=30 {
            std::thread::sleep(Duration::from_millis(2));
            let begin_ns = now_ns();
            let is_long = cycle % 5 == 0;
            if is_long {
                long_callback(begin_ns + LONG_NS);
                misses.push((begin_ns, now_ns()));
            }
        }
        // The last one ends with a sleep, too.
        std::thread::sleep(Duration::from_millis(2));
        misses
    };
    let thread = std::thread::Builder::new().name(NAME.to_owned());
    let thread = thread.spawn(work).expect("a thread");
    thread.join().expect("it ends")
}

fn lines(text: &str) -> Vec<Value> {
    let json = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(json).collect()
}

#[test]
fn each_miss_that_a_loop_counts_is_a_line_and_the_rate_limits_snapshots_only() {
    let _privileged = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let snapshots = folder.path().join("snapshots");
    let mut watch = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args([
            "watch", "--json", "--task", NAME, "--over", LIMIT, "--rate", "1/h", "-o",
        ])
        .arg(&snapshots)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rtscope starts");
    let stderr = BufReader::new(watch.stderr.take().expect("piped"));
    let mut said = stderr.lines().map_while(Result::ok);
    let absent = said.next().unwrap_or_default();
    assert!(
        absent.starts_with("no task is called response-loop now"),
        "{absent}"
    );
    assert!(said.any(|line| line.starts_with("watching")), "it is armed");
    std::thread::spawn(move || said.count());
    let misses = misses();
    let pid = rustix::process::Pid::from_raw(watch.id() as i32).expect("an id");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    let output = watch.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let log = std::fs::read_to_string(snapshots.join("late.ndjson")).expect("the log");
    let mut log = lines(&log);
    log.sort_by_key(|line| line["end_ns"].as_i64());
    for (begin_ns, end_ns) in &misses {
        let is_it = |line: &&Value| {
            line["origin_ns"].as_i64() <= Some(*begin_ns)
                && line["end_ns"].as_i64() >= Some(*end_ns)
        };
        assert_eq!(
            log.iter().filter(is_it).count(),
            1,
            "{begin_ns} to {end_ns}: {log:#?}"
        );
    }
    // The first, and whichever was worse than all before.
    let mut worst_ns = None;
    for line in &log {
        let is_worst = line["latency_ns"].as_i64() > worst_ns;
        assert_eq!(is_worst, !line["snapshot"].is_null(), "{log:#?}");
        worst_ns = worst_ns.max(line["latency_ns"].as_i64());
    }
    let mut said = lines(&String::from_utf8_lossy(&output.stdout));
    let end = said.pop().expect("an end");
    // Others may have had the CPU; where it was its own work, the tick has seen where.
    let own = said.iter().map(Value::to_string);
    let own: Vec<String> = own.filter(|hit| hit.contains("it ran itself")).collect();
    let names = |hit: &String| hit.contains("long_callback of root_watch_response");
    assert!(own.is_empty() || own.iter().any(names), "{own:#?}");
    let counts = end["causes"].as_array().expect("causes").iter();
    let counts = counts.filter_map(|cause| cause["count"].as_u64());
    assert_eq!(counts.sum::<u64>(), log.len() as u64, "{end}");
    assert_eq!(end["until"], "block", "{end}");
}

#[test]
fn what_an_application_says_is_late_is_told_with_its_words_and_its_activation() {
    let _privileged = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    // It is busy between two waits, and says so before the second.
    let app = "sleep 0.1; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo 'cycle 7 LATE'; \
               sleep 0.1; echo on";
    let output = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args(["watch", "--json", "--trigger", "line:LATE", "-o"])
        .arg(folder.path().join("snapshots"))
        .args(["--", "sh", "-c", app])
        .stdin(Stdio::null())
        .output()
        .expect("rtscope runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let (objects, printed): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with('{'));
    assert_eq!(
        printed,
        ["cycle 7 LATE", "on"],
        "it prints as without a watch"
    );
    let objects = lines(&objects.join("\n"));
    let hits: Vec<_> = objects
        .iter()
        .filter(|line| line["type"] == "hit")
        .collect();
    assert_eq!(hits.len(), 1, "{text}");
    assert_eq!(hits[0]["trigger"]["words"], "cycle 7 LATE");
    assert_eq!(hits[0]["hit"]["task"]["comm"], "sh");
    let snapshot = hits[0]["snapshot"]["path"].as_str().expect("a snapshot");
    assert!(std::path::Path::new(snapshot).is_dir(), "{text}");
}

#[test]
fn who_feeds_a_real_time_task_of_the_command_is_told_where_that_one_only_waited() {
    let _privileged = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    // Who reads says that a number came late; who writes it was at work.
    let write = "i=0; while [ $i -lt 60 ]; do sleep 0.02; i=$((i+1)); \
                 if [ $i = 50 ]; then k=0; while [ $k -lt 60000 ]; do k=$((k+1)); done; fi; \
                 echo $i; done";
    let read = "while read n; do if [ $n = 50 ]; then echo LATE; fi; done";
    let app = format!("({write}) | chrt -f 50 sh -c '{read}'");
    let output = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args(["watch", "--json", "--trigger", "line:LATE", "-o"])
        .arg(folder.path().join("snapshots"))
        .args(["--", "sh", "-c", &app])
        .stdin(Stdio::null())
        .output()
        .expect("rtscope runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let objects = text.lines().filter(|line| line.starts_with('{'));
    let objects = lines(&objects.collect::<Vec<_>>().join("\n"));
    let mut hits = objects.iter().filter(|line| line["type"] == "hit");
    let hit = &hits.next().unwrap_or_else(|| panic!("{output:?}"))["hit"];
    assert_eq!(hit["task"]["prio"], 20, "{hit}");
    assert!(hit["latency_ns"].as_i64() > Some(20_000_000), "{hit}");
}

#[test]
fn a_real_time_task_of_another_process_that_one_of_a_named_process_wakes_is_told_too() {
    let _privileged = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["conductor", "player"] {
        std::fs::copy("/bin/sh", folder.path().join(name)).expect("a shell");
    }
    let mut watch = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args([
            "watch",
            "--json",
            "--process",
            "conductor",
            "--over",
            "20ms",
            "-o",
        ])
        .arg(folder.path().join("snapshots"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rtscope starts");
    let stderr = BufReader::new(watch.stderr.take().expect("piped"));
    let mut said = stderr.lines().map_while(Result::ok);
    assert!(said.any(|line| line.starts_with("watching")), "it is armed");
    std::thread::spawn(move || said.count());
    let app = "chrt -f 50 ./conductor -c 'i=0; while [ $i -lt 30 ]; do i=$((i+1)); sleep 0.02; \
               echo $i; done' | chrt -f 40 ./player -c 'while read n; do if [ $n = 20 ]; then k=0; \
               while [ $k -lt 60000 ]; do k=$((k+1)); done; fi; done'";
    let mut ran = Command::new("sh");
    let ran = ran.args(["-c", app]).current_dir(folder.path()).status();
    assert!(ran.expect("it runs").success());
    let pid = rustix::process::Pid::from_raw(watch.id() as i32).expect("an id");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    let output = watch.wait_with_output().expect("it ends");
    let objects = lines(&String::from_utf8_lossy(&output.stdout));
    let mut hits = objects.iter().filter(|line| line["type"] == "hit");
    let found = hits.find(|line| line["hit"]["task"]["comm"] == "player");
    let found = found.unwrap_or_else(|| panic!("{output:?}"));
    assert_eq!(found["hit"]["kin"], "near");
    let verdict = &found["diagnosis"]["groups"][0]["verdict"];
    let sentence = verdict["sentence"].as_str().unwrap_or_default();
    assert!(sentence.contains("woken by conductor) needed"), "{verdict}");
}

#[test]
fn a_call_at_which_nothing_stands_out_accuses_nobody_then_and_later() {
    let _privileged = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let snapshots = folder.path().join("snapshots");
    // The same at each of its turns; what it says is not true.
    let app = "import os,time\nos.sched_setscheduler(0,os.SCHED_FIFO,os.sched_param(50))\n\
               for i in range(1000):\n time.sleep(.005)\n\
               \x20sum(range(20000))\n if i in (500,900): print('LATE',flush=True)\n";
    let output = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args(["watch", "--json", "--trigger", "line:LATE", "-o"])
        .arg(&snapshots)
        .args(["--", "python3", "-c", app])
        .stdin(Stdio::null())
        .output()
        .expect("rtscope runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let objects = text.lines().filter(|line| line.starts_with('{'));
    let objects = lines(&objects.collect::<Vec<_>>().join("\n"));
    let mut calls = objects.iter().filter(|line| line["type"] == "call");
    let call = calls.next().unwrap_or_else(|| panic!("{output:?}"));
    assert_eq!(call["trigger"]["looked_at"][0]["comm"], "python3", "{call}");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let snapshot = call["snapshot"]["path"].as_str().expect("a snapshot");
    let later = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args(["diagnose", snapshot])
        .output()
        .expect("rtscope runs");
    let said = String::from_utf8_lossy(&later.stdout);
    assert_eq!(later.status.code(), Some(3), "{later:?}");
    assert!(
        said.starts_with("Inconclusive: the application said: LATE."),
        "{said}"
    );
    assert!(!said.contains("do:"), "{said}");
}

#[test]
fn what_a_command_leaves_in_the_background_is_named_and_not_called_in_time() {
    let _privileged = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let watch = |app: &str, tracker: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_rtscope"))
            .arg("watch")
            .args(tracker)
            .args(["--over", "10s", "--", "sh", "-c", app])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("rtscope runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    // Its parent ends at once, and it leaves the terminal.
    let daemon = "(setsid sleep 2 >/dev/null 2>&1 &); sleep 0.1";
    for tracker in [&[][..], &["syscall"]] {
        let (code, said) = watch(daemon, tracker);
        let names = said.contains("sleep (pid ") && said.contains("rtscope watch --pid ");
        assert!(code == Some(3) && names, "{code:?} {said}");
        let (code, said) = watch("sleep 0.1", tracker);
        assert!(
            code == Some(0) && !said.contains("(pid "),
            "{code:?} {said}"
        );
    }
}

#[test]
fn a_task_is_not_late_by_what_its_parent_did_before_it_was_born() {
    let _privileged = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let snapshots = folder.path().join("snapshots");
    // The parent is at work for long, and what it bears is not.
    let app = "sleep 0.1; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; (exit 0) & wait; \
               sleep 0.1";
    let watched = "watch --json --over 10ms --rate 1000/s -o";
    let output = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args(watched.split(' '))
        .arg(&snapshots)
        .args(["--", "chrt", "-f", "50", "sh", "-c", app])
        .stdin(Stdio::null())
        .output()
        .expect("rtscope runs");
    let log = std::fs::read_to_string(snapshots.join("late.ndjson")).unwrap_or_default();
    let log = lines(&log);
    let mut late: Vec<_> = log
        .iter()
        .map(|line| line["task"]["tid"].as_i64())
        .collect();
    late.dedup();
    assert_eq!(late.len(), 1, "{log:#?} {output:?}");
}

#[test]
fn a_command_that_computes_is_judged_to_the_switch_in_by_its_waits() {
    let _privileged = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let last = std::thread::available_parallelism().map_or(0, |cpus| cpus.get() - 1);
    let cpu = last.to_string();
    // It is woken as it is started, and then sleeps no more.
    let computes = [
        "taskset",
        "-c",
        &cpu,
        "timeout",
        "3.5",
        "sh",
        "-c",
        "while :; do :; done",
    ];
    let watch = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args([
            "watch",
            "--json",
            "--until",
            "switch-in",
            "--over",
            "10ms",
            "-o",
        ])
        .arg(folder.path().join("snapshots"))
        .arg("--")
        .args(computes)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rtscope starts");
    std::thread::sleep(Duration::from_millis(2_500));
    let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let hog = [
        "-k", "1", "5", "taskset", "-c", &cpu, "chrt", "-f", "40", "sh", "-c", work,
    ];
    let hog = Command::new("timeout").args(hog).status().expect("it runs");
    assert!(hog.success(), "{hog:?}");
    let output = watch.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let objects = lines(&text);
    let of_it = objects.iter().filter(|line| {
        let steps = line["hit"]["steps"].as_array();
        let first = steps.and_then(|steps| steps.first());
        first.is_some_and(|step| step["kind"] == "preempted") && line["hit"]["task"]["comm"] == "sh"
    });
    assert!(of_it.count() > 0, "{text}");
    assert_eq!(output.status.code(), Some(2), "{text}");
}

#[test]
fn what_is_not_over_as_the_watch_ends_may_be_the_worst_of_all() {
    let _privileged = testkit::privileged();
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .expect("it starts");
    let output = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args(["watch", "--json", "--over", "100ms", "--for", "1s"])
        .args(["--no-snapshot", "--pid", &busy.id().to_string()])
        .stdin(Stdio::null())
        .output();
    busy.kill().expect("killed");
    busy.wait().expect("it ends");
    let output = output.expect("rtscope runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = lines(&text);
    let of_type = |kind: &str| lines.iter().find(|line| line["type"] == kind);
    let hit = &of_type("hit").unwrap_or_else(|| panic!("{text}"))["hit"];
    let end = of_type("end").expect("an end");
    let latency_ns = hit["end_ns"].as_i64().zip(hit["origin_ns"].as_i64());
    let latency_ns = latency_ns.map(|(end_ns, origin_ns)| end_ns - origin_ns);
    assert!(latency_ns.is_some(), "{hit}");
    assert_eq!(end["worst_ns"].as_i64(), latency_ns, "{end}");
}

#[test]
fn a_program_that_only_computes_is_said_not_to_be_judged_though_others_of_its_command_were() {
    let _privileged = testkit::privileged();
    let computes = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let watch = |app: &str, until: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_rtscope"))
            .args(["watch", "--json", "--no-snapshot", "--over", "20ms"])
            .args(["--for", "2s", "--until", until, "--", "sh", "-c", app])
            .stdin(Stdio::null())
            .output()
            .expect("rtscope runs");
        let said = lines(&String::from_utf8_lossy(&output.stdout));
        let end = said.last().expect("an end").clone();
        (output.status.code(), end["unslept"].as_u64(), end)
    };
    // The first shell sleeps until the second, which never does, has ended.
    let app = format!("sleep 0.01; sh -c '{computes}'; true");
    let (code, unslept, end) = watch(&app, "block");
    assert!(end["samples"].as_u64() > Some(0), "{end}");
    assert_eq!(unslept, Some(1), "{end}");
    let hits = end["hits"].as_u64();
    assert_eq!(code, Some(if hits > Some(0) { 2 } else { 3 }), "{end}");
    assert_eq!(watch("sleep 0.01; sh -c true; true", "block").1, Some(0));
    assert_eq!(watch(&app, "switch-in").1, Some(0));
    // It is still at it as the watch ends.
    let app = "sleep 0.01; timeout 5 sh -c 'while :; do :; done'; true";
    assert_eq!(watch(app, "block").1, Some(1));
}

/// Works for milliseconds between sleeps, with a name of its own where it is given one.
fn worker(name: Option<&str>, turns: u32) -> String {
    let named = name.map_or(String::new(), |name| {
        format!("printf {name} > /proc/$$/comm; ")
    });
    let work = "sleep 0.01; i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done";
    format!("{named}j=0; while [ $j -lt {turns} ]; do j=$((j+1)); {work}; done")
}

#[test]
fn a_name_beside_a_command_means_its_tasks_of_that_name_and_no_others() {
    let _privileged = testkit::privileged();
    let foreign = worker(Some("asked-for"), 10_000);
    let mut foreign = Command::new("chrt")
        .args(["-f", "3", "sh", "-c", &foreign])
        .spawn()
        .expect("it starts");
    let (asked, other) = (worker(Some("asked-for"), 20), worker(Some("other"), 20));
    let app = format!("chrt -f 3 sh -c '{asked}' & sh -c '{other}'; wait");
    let watch = |whom: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_rtscope"))
            .args(["watch", "--json", "--no-snapshot", "--over", "1ms"])
            .args(["--rate", "1000/s", "--task", whom, "--", "sh", "-c", &app])
            .stdin(Stdio::null())
            .output()
            .expect("rtscope runs");
        lines(&String::from_utf8_lossy(&output.stdout))
    };
    let found = ["asked-for", "process:asked-for", "prio:3"].map(|whom| (whom, watch(whom)));
    let foreign_tid = foreign.id();
    foreign.kill().expect("killed");
    foreign.wait().expect("it ends");
    for (whom, said) in found {
        let tasks = said.iter().filter(|line| line["type"] == "hit");
        let tasks: Vec<_> = tasks.map(|line| &line["hit"]["task"]).collect();
        assert!(!tasks.is_empty(), "{whom}: {said:#?}");
        for task in tasks {
            assert_eq!(task["comm"], "asked-for", "{whom}: {task}");
            assert_ne!(task["tid"], foreign_tid, "{whom}: {task}");
        }
    }
}

#[test]
fn a_process_that_calls_itself_otherwise_is_watched_by_its_programs_file() {
    let _privileged = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let daemon = folder.path().join("a-daemon");
    std::fs::copy("/bin/sh", &daemon).expect("copied");
    let begin = || {
        Command::new(&daemon)
            .args(["-c", &worker(Some("renamed"), 10_000)])
            .spawn()
            .expect("it starts")
    };
    for is_there_before in [true, false] {
        let before = is_there_before.then(begin);
        // It takes its name.
        std::thread::sleep(Duration::from_millis(50));
        let mut watch = Command::new(env!("CARGO_BIN_EXE_rtscope"))
            .args(["watch", "--json", "--no-snapshot", "--over", "1ms"])
            .args(["--max-hits", "2", "--for", "20s", "--process", "a-daemon"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("rtscope starts");
        let stderr = BufReader::new(watch.stderr.take().expect("piped"));
        let mut said = stderr.lines().map_while(Result::ok);
        assert!(said.any(|line| line.starts_with("watching")), "it is armed");
        std::thread::spawn(move || said.count());
        let mut daemon = before.unwrap_or_else(begin);
        let output = watch.wait_with_output().expect("it ends");
        daemon.kill().expect("killed");
        daemon.wait().expect("it ends");
        let said = lines(&String::from_utf8_lossy(&output.stdout));
        let hits = said.iter().filter(|line| line["type"] == "hit");
        let names: Vec<_> = hits.map(|line| &line["hit"]["task"]["comm"]).collect();
        let is_it = |name: &&Value| **name == "renamed";
        assert!(names.iter().any(is_it), "{is_there_before}: {said:#?}");
    }
}
