//! Recordings of some tasks alone: the kernel leaves out others but what these do to those that are
//! tracked, and every verb says so. Needs root.

mod recorded;
mod session;

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use recorded::{Running, run};
use session::Night;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");
/// Makes children that run other programs, one of which leaves its session and outlives it.
const FAMILY: &str = "exec 9<&0; /bin/true; (sleep 0.05; cat /proc/self/stat > /dev/null) & \
                      setsid sh -c 'sleep 0.1; cat /etc/hostname > /dev/null' & wait";

fn rtscope(words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(RTSCOPE);
    let output = command.args(words).current_dir(folder).output();
    output.expect("rtscope starts")
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text + &String::from_utf8_lossy(&output.stderr)
}

/// Lines of `cat` that match a filter.
fn cat(trace: &Path, filter: &str) -> Vec<String> {
    let mut cat = Command::new(RTSCOPE);
    let text = run(cat.arg("cat").arg(trace).args(["--filter", filter]));
    text.lines().map(str::to_owned).collect()
}

/// The value of a field in a line of `cat`.
fn value<'l>(line: &'l str, field: &str) -> &'l str {
    let rest = line
        .split(&format!(" {field} = "))
        .nth(1)
        .unwrap_or_default();
    rest.split([',', ' ']).next().unwrap_or_default()
}

/// A second of what these do, as `t` in the folder.
fn record_a_second(whom: &str, folder: &Path) -> Output {
    let words = ["record", "--track", whom, "--events", "sched"];
    rtscope(
        &[&words[..], &["--duration", "1s", "-o", "t"]].concat(),
        folder,
    )
}

#[test]
fn children_that_were_there_before_are_tracked_with_their_parent() {
    let _alone = testkit::privileged();
    let scene = tempfile::tempdir().expect("a folder");
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "sh -c 'while sleep 0.01; do :; done' & echo $!; read x",
    ]);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut parent = Running(shell.spawn().expect("a shell"));
    let mut child = String::new();
    let from = parent.0.stdout.take().expect("its output");
    BufReader::new(from)
        .read_line(&mut child)
        .expect("a number");
    let whom = format!("pid:{}", parent.0.id());
    let recorded = record_a_second(&whom, scene.path());
    run(Command::new("kill").arg(child.trim()));
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded));
    let came = cat(&scene.path().join("t"), "$name == \"sched_switch\"");
    let came = came
        .iter()
        .filter(|line| value(line, "next_tid") == child.trim());
    assert!(came.count() > 3, "{}", said(&recorded));
}

#[test]
fn nobody_else_is_judged_by_the_switches_that_are_there() {
    let _alone = testkit::privileged();
    let scene = tempfile::tempdir().expect("a folder");
    let neighbour = scene.path().join("neighbour");
    std::fs::copy("/bin/sh", &neighbour).expect("a program");
    let busy = "while :; do :; done";
    // One for each CPU that the command may come to.
    let mut others = Vec::new();
    for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
        let mut other = Command::new(&neighbour);
        others.push(Running(other.args(["-c", busy]).spawn().expect("a shell")));
    }
    let words = [
        "record", "--track", "command", "--events", "sched", "-o", "t",
    ];
    let command = ["--", "timeout", "2", "sh", "-c", busy];
    let recorded = rtscope(&[&words[..], &command[..]].concat(), scene.path());
    let judged = |task: &str| said(&rtscope(&["diagnose", "t", "--task", task], scene.path()));
    let none = "; 0 activations of the tasks asked for";
    let (of_other, of_command) = (judged("neighbour"), judged("sh"));
    assert!(of_other.contains(none), "{of_other}{}", said(&recorded));
    assert!(!of_command.contains(none), "{of_command}");
}

/// Tracks the family, which comes on CPUs and leaves them; gives how often each.
fn track_family(folder: &Path, name: &str) -> (PathBuf, usize, usize) {
    let trace = folder.join(name);
    let mut words = vec!["record", "--track", "command", "--events", "sched,syscall"];
    words.extend(["-o", name, "--", "sh", "-c", FAMILY]);
    let recorded = rtscope(&words, folder);
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded));
    let told = |event: &str, field: &str| -> Vec<String> {
        let lines = cat(&trace, &format!("$name == \"{event}\""));
        let values = lines.iter().map(|line| value(line, field).to_owned());
        values.collect()
    };
    let mut family = told("rtscope_tracked", "tid");
    family.extend(told("sched_process_exec", "tid"));
    family.extend(told("sched_process_fork", "child_tid"));
    let switches = cat(&trace, "$name == \"sched_switch\"");
    let is_own = |line: &&String, field| family.iter().any(|tid| tid == value(line, field));
    // Each switch is one of theirs.
    let strangers = |line: &&String| !is_own(line, "prev_tid") && !is_own(line, "next_tid");
    assert_eq!(switches.iter().find(strangers), None);
    let count = |field| switches.iter().filter(|line| is_own(line, field)).count();
    let (came, left) = (count("next_tid"), count("prev_tid"));
    (trace, came, left)
}

#[test]
fn a_command_is_tracked_with_its_children_from_its_first_instruction_on() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    // Theirs are there: some kernels leave out a few of every task's, and of who began before it
    // was tracked the first is not there. Where a kernel left out many, it is recorded again.
    let is_whole = |came: usize, left: usize| came > 5 && came.abs_diff(left) <= 1 + came / 8;
    let mut tries = (0..5).map(|number| track_family(folder.path(), &format!("trace-{number}")));
    let mut found = tries.next().expect("the first");
    while !is_whole(found.1, found.2) {
        let Some(next) = tries.next() else { break };
        found = next;
    }
    let (trace, came, left) = found;
    assert!(is_whole(came, left), "{came} came, {left} left");
    // Its own exec, and those of its children, whoever they became.
    let execs = cat(&trace, "$name == \"sched_process_exec\"");
    let programs: Vec<_> = execs.iter().map(|line| value(line, "filename")).collect();
    for program in ["sh\"", "true\"", "sleep\"", "cat\"", "setsid\""] {
        let is_there = programs.iter().any(|found| found.ends_with(program));
        assert!(is_there, "{program}: {programs:?}");
    }
    // The calls of children, and no others.
    let opened = cat(&trace, "$name == \"syscall_entry_openat\"");
    let opened: Vec<_> = opened.iter().map(|line| value(line, "filename")).collect();
    assert!(opened.contains(&"\"/etc/hostname\""), "{opened:?}");
    every_verb_says_so(&trace, "command");
}

fn every_verb_says_so(trace: &Path, words: &str) {
    let path = trace.to_str().expect("a name");
    let verbs: [&[&str]; 6] = [
        &["info", path],
        &["cat", path],
        &["diagnose", path],
        &["report", "cputop", path],
        &["check", path, "--rule", "wake-up of sh within 1s"],
        &["convert", path, "--to", "json", "-o", "/dev/null"],
    ];
    let expect = format!("--track {words}");
    for verb in verbs {
        let found = said(&rtscope(verb, Path::new("/")));
        assert!(found.contains(&expect), "{verb:?}: {found}");
    }
}

/// A control group that was made for this test, in whatever hierarchy takes one.
fn own_group() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let hierarchies = mounts.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let is_one = matches!(words.get(2), Some(&("cgroup" | "cgroup2")));
        is_one.then(|| PathBuf::from(words[1]))
    });
    let name = format!("rtscope-track-{}", std::process::id());
    let groups = hierarchies.map(|root| root.join(&name));
    // A cpuset takes nobody before it has CPUs.
    let mut groups = groups.filter(|group| !group.to_string_lossy().contains("cpuset"));
    groups.find(|group| std::fs::create_dir(group).is_ok())
}

#[test]
fn who_joins_a_group_later_is_tracked_and_its_session_says_so_in_each_archive() {
    let _alone = testkit::privileged();
    let Some(group) = own_group() else {
        return testkit::skip(
            "tracking of a control group",
            "no hierarchy of control groups that takes a group",
        );
    };
    let night = Night::new();
    let whom = format!(
        "cgroup:{}",
        group.file_name().unwrap_or_default().to_string_lossy()
    );
    night.says("start", &["--events", "sched", "--track", &whom]);
    let procs = group.join("cgroup.procs");
    let joins = format!(
        "echo $$ > {}; sleep 1.5; cat /proc/self/stat",
        procs.display()
    );
    let one = || run(Command::new("sh").args(["-c", &joins]));
    let pid_of = |stat: String| stat.split(' ').next().unwrap_or_default().to_owned();
    let first = pid_of(one());
    night.says("rotate", &[]);
    let second = pid_of(one());
    night.says("stop", &[]);
    std::fs::remove_dir(&group).expect("nobody is in it");
    let archives = night.archives();
    for (archive, tid) in archives.iter().zip([first, second]) {
        let switches = cat(
            archive,
            &format!("$name == \"sched_switch\" && next_tid == {tid}"),
        );
        assert!(!switches.is_empty(), "{tid}: {}", archive.display());
        let forks = format!("$name == \"sched_process_fork\" && child_tid == {tid}");
        assert_eq!(
            cat(archive, &forks).len(),
            1,
            "its parent was found to have joined"
        );
        every_verb_says_so(archive, &whom);
    }
    assert_eq!(archives.len(), 2);
}

#[test]
fn what_runs_for_a_user_is_tracked_and_nobody_else() {
    const USER: u32 = 54_321;
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let mut shell = Command::new("sh");
    shell.args(["-c", "while sleep 0.05; do :; done"]);
    let _theirs = Running(shell.uid(USER).current_dir("/").spawn().expect("a shell"));
    // Somebody else's, at the same time.
    let mut other = Command::new("sh");
    other.args(["-c", "while /bin/true; do sleep 0.05; done"]);
    let _others = Running(other.spawn().expect("a shell"));
    let whom = format!("user:{USER}");
    let recorded = record_a_second(&whom, folder.path());
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded));
    let trace = folder.path().join("t");
    let execs = cat(&trace, "$name == \"sched_process_exec\"");
    let programs: Vec<_> = execs.iter().map(|line| value(line, "filename")).collect();
    assert!(programs.len() > 3, "{programs:?}");
    assert!(
        programs.iter().all(|program| program.ends_with("sleep\"")),
        "{programs:?}"
    );
    every_verb_says_so(&trace, &whom);
}

#[test]
fn what_tracks_nobody_is_refused_and_what_judges_nobody_says_why() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let check = |words: &[&str], code: i32, expect: &str| {
        let output = rtscope(&[&["record", "-o", "trace"], words].concat(), folder.path());
        let found = said(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {found}");
        assert!(found.contains(expect), "{words:?}: {found}");
        let _ = std::fs::remove_dir_all(folder.path().join("trace"));
    };
    let short = ["--duration", "200ms"];
    check(
        &["--track", "command"],
        1,
        "rtscope record --track command -- COMMAND",
    );
    check(&["--track", "prio:x"], 1, "found:");
    check(&["--track", "user:no-such-one"], 1, "no such user");
    let nobody = ["--track", "process:no-such-one"];
    check(
        &[&nobody[..], &short].concat(),
        0,
        "no such task ran of those of --track",
    );
    let switches = ["--events", "sched:sched_switch"];
    check(
        &[&switches[..], &short].concat(),
        0,
        "wake-ups were not recorded",
    );
    let filter = ["--filter", "sched_switch: next_prio < -1000"];
    check(
        &[&filter[..], &short].concat(),
        0,
        "a filter left out events of sched_switch",
    );
}

#[test]
fn system_calls_alone_have_their_tasks_for_those_that_are_tracked_too() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let mut words = vec!["record", "--track", "command", "--events", "syscall"];
    words.extend(["-o", "calls", "--", "/bin/ls", "/"]);
    let recorded = rtscope(&words, folder.path());
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded));

    let trace = folder.path().join("calls");
    let entries = cat(&trace, "$name == \"syscall_entry_*\"");
    assert!(!entries.is_empty(), "{}", said(&recorded));
    let known = cat(&trace, "$name == \"syscall_entry_*\" && $tid > 0");
    // The first ones may come before the first switch.
    assert!(known.len() * 10 >= entries.len() * 9, "{entries:#?}");
}

/// So often a task gave its CPU away.
fn switches(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let count = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count
        .and_then(|count| count.trim().parse().ok())
        .expect("a count")
}

#[test]
fn a_running_session_is_told_whom_to_track_and_whom_no_more_and_each_archive_says_so() {
    let _alone = testkit::privileged();
    let night = Night::new();
    let words = ["--events", "sched_switch,syscall", "--track", "nobody"];
    night.says("start", &words);
    let mut child = Command::new("sh");
    child.args(["-c", "while :; do /bin/true; done"]);
    let mut child = child.spawn().expect("sh starts");
    let whom = format!("pid:{}", child.id());
    assert!(night.says("track", &[&whom]).contains(&whom));
    night.await_status(|status| status["events"].as_u64() > Some(100));
    assert_eq!(night.status()["tracks"], serde_json::json!([whom]));
    assert!(
        night
            .says("save", &[])
            .contains(&format!("track = [\"{whom}\"]"))
    );
    night.fails("untrack", &["jackd"]);
    night.says("untrack", &["--all"]);
    night.says("rotate", &[]);
    let until = switches(child.id()) + 200;
    while switches(child.id()) < until {
        std::thread::yield_now();
    }
    night.says("stop", &[]);
    child.kill().and_then(|()| child.wait()).expect("it ends");
    let archives = night.archives();
    let said = archives.iter().map(|archive| {
        let info = rtscope(
            &["info", &archive.to_string_lossy()],
            night.output().as_path(),
        );
        let info = String::from_utf8_lossy(&info.stdout).into_owned();
        let line = info
            .lines()
            .find(|line| line.contains("rtscope_tracked_tasks"));
        let words = line.and_then(|line| line.split_once("= "));
        (
            words.expect("words").1.to_owned(),
            cat(archive, "$name == \"sched_switch\"").len(),
        )
    });
    let said: Vec<_> = said.collect();
    let words: Vec<&str> = said.iter().map(|(words, _)| words.as_str()).collect();
    assert_eq!(words, ["nobody", &whom, "nobody", "nobody"]);
    assert!(said[1].1 > 0, "{said:?}");
    assert_eq!((said[0].1, said[3].1), (0, 0), "{said:?}");
}
