//! Bad input and missing privileges: each a three-part message on stderr and exit code 1, and
//! nothing left behind. Needs root to give privileges away.

use std::path::Path;
use std::process::{Command, Output};

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

fn run(words: &[&str], folder: &Path) -> Output {
    Command::new(RTSCOPE)
        .args(words)
        .current_dir(folder)
        .output()
        .expect("rtscope starts")
}

/// Runs as a user without any privilege.
fn run_as_nobody(words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            "65534",
            "--clear-groups",
            "--inh-caps=-all",
            RTSCOPE,
        ])
        .args(words);
    command
        .current_dir(folder)
        .output()
        .expect("setpriv starts")
}

/// Checks that `output` is a refusal in three parts that says `what`.
fn check_refused(output: &Output, what: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(stderr.contains(what), "no '{what}' in: {stderr}");
    assert!(
        stderr.contains("found:") && stderr.contains("fix:"),
        "{stderr}"
    );
}

#[test]
fn words_without_a_meaning_are_refused_with_a_remedy() {
    let _alone = testkit::privileged();
    let before = testkit::tracefs_instances();
    let folder = tempfile::tempdir().expect("a folder");
    let check = |words: &[&str], what: &str| check_refused(&run(words, folder.path()), what);
    check(&["watch", "--over", "0ms"], "--over of zero");
    check(&["watch", "--over", "25"], "no unit");
    check(&["watch", "--over", "25parsec"], "unknown unit");
    check(&["watch", "--cpu", "8000"], "there is no CPU 8000");
    check(&["watch", "--tid", "4194304"], "there is no such task");
    check(
        &["watch", "--irq", "no such interrupt"],
        "no interrupt has such a name",
    );
    check(&["watch", "--irq", "99999"], "no such interrupt");
    check(&["watch", "--softirq", "disk"], "no such softirq");
    check(
        &["record", "--events", "nonsuch", "--duration", "1s"],
        "no such event",
    );
    check(&["record", "--duration", "0s"], "--duration of zero");
    check(&["record", "--filter", "sched_switch"], "--filter is not");
    check(&["record", "--events", ""], "--events names nothing");
    let session = ["record", "start", "night", "--check-config"];
    check(
        &[&session[..], &["--events", "nonsuch"]].concat(),
        "no such event or set",
    );
    let pair = "from = 'nonsuch'\nto = 'sched_switch'\nkey = 'pid'\n";
    std::fs::write(folder.path().join("pair.toml"), pair).expect("written");
    check(
        &["monitor", "--check-config", "--config", "pair.toml"],
        "no such tracepoint",
    );
    check(
        &["cat", ".", "--filter", "prio =="],
        "the filter cannot be read",
    );
    if testkit::two_cpus("demo hog on a CPU that is not there") {
        check(&["demo", "hog", "--cpu", "8000"], "there is no CPU 8000");
    }
    check(&["check", ".", "--rules", "nonsuch"], "cannot read nonsuch");
    check(
        &["convert", ".", "--to", "csv", "-o", "-"],
        "the format is a directory",
    );
    check(
        &["measure", "cyclic", "--bucket", "1ms", "--range", "1ms"],
        "one bucket is no histogram",
    );
    check(
        &["doctor", "--clean", "--output", "nonsuch"],
        "cannot look into nonsuch",
    );
    assert_eq!(
        testkit::tracefs_instances(),
        before,
        "something is left in tracefs"
    );
}

#[test]
fn a_trace_that_is_none_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    for verb in ["diagnose", "cat"] {
        for trace in ["absent", "empty"] {
            check_refused(&run(&[verb, trace], folder.path()), trace);
        }
    }
}

#[test]
fn an_output_that_is_there_or_read_only_is_refused_and_left_alone() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("taken")).expect("a folder");
    let words = ["record", "-o", "taken", "--duration", "100ms"];
    check_refused(&run(&words, folder.path()), "there already");
    let words = ["record", "-o", "/proc/nowhere/t", "--duration", "100ms"];
    check_refused(&run(&words, folder.path()), "cannot write /proc/nowhere");
    let words = ["watch", "-o", "/proc/nowhere/s", "--for", "100ms"];
    check_refused(&run(&words, folder.path()), "folder of snapshots");
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("listed")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn without_privileges_each_verb_says_what_to_type() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |words: &[&str]| {
        let output = run_as_nobody(words, Path::new("/"));
        check_refused(&output, "cannot run here");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("sudo"),
            "{output:?}"
        );
    };
    if !run_as_nobody(&["--version"], folder.path())
        .status
        .success()
        && !run_as_nobody(&["--version"], Path::new("/"))
            .status
            .success()
    {
        let why = "the build folder is closed to other users";
        return testkit::skip("without_privileges_each_verb_says_what_to_type", why);
    }
    check(&["watch", "--over", "25ms"]);
    check(&["record", "--duration", "1s"]);
    check(&["demo", "hog"]);
    let doctor = run_as_nobody(&["doctor"], Path::new("/"));
    assert!(doctor.status.success(), "{doctor:?}");
}

/// Runs `rtscope WORDS` in a mount namespace of its own, after the shell commands `before`.
fn run_after(before: &str, words: &[&str], folder: &Path) -> Output {
    let script = format!("set -e; {before}; exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &script, RTSCOPE])
        .args(words);
    command
        .current_dir(folder)
        .output()
        .expect("unshare starts")
}

#[test]
fn without_tracefs_a_recording_is_refused_and_a_watch_may_go_without_snapshots() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let unmount = "umount -l -a -t tracefs";
    let check = |words: &[&str]| {
        let output = run_after(unmount, words, folder.path());
        check_refused(&output, "tracefs is not mounted");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("mount -t tracefs"), "{stderr}");
    };
    check(&["record", "--duration", "100ms"]);
    check(&["demo", "hog"]);
    let watch = |more: &[&str], note: bool| {
        let words = [&["watch", "--for", "100ms"], more].concat();
        let output = run_after(unmount, &words, folder.path());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = "a hit has no snapshot: tracefs is not mounted";
        assert_eq!(stderr.contains(said), note, "{stderr}");
    };
    watch(&[], true);
    watch(&["--no-snapshot"], false);
    // Somebody who asks for snapshots gets them, or none of it.
    check(&["watch", "--for", "100ms", "-o", "snapshots"]);
}

#[test]
fn without_btf_a_watch_is_refused_and_a_recording_is_not() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let hide = "touch empty; mount --bind empty /sys/kernel/btf/vmlinux";
    let output = run_after(hide, &["watch", "--for", "100ms"], folder.path());
    check_refused(&output, "BTF");
    let words = ["record", "-o", "t", "--duration", "100ms"];
    let output = run_after(hide, &words, folder.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn where_too_few_files_may_be_open_a_watch_says_so() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["watch", "syscall", "--for", "1s"];
    let refused = run_after("ulimit -n 16", &words, folder.path());
    check_refused(&refused, "the limit is 16");
}

#[test]
fn a_disk_that_is_full_or_read_only_is_said_at_once_and_keeps_what_was_recorded_alone() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("disk")).expect("a folder");
    let check = |mount: &str, words: &[&str], what: &str, expect: Option<&str>| {
        // What is left is counted inside the namespace, where the disk is.
        let script = format!(
            "mount -t tmpfs -o {mount} none disk; \"$0\" \"$@\" && code=0 || code=$?; \
             test -z \"$(ls -A disk | grep -v filler)\" || echo left: $(ls -A disk) >&2; \
             exit $code"
        );
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", &script, RTSCOPE])
            .args(words);
        let output = command
            .current_dir(folder.path())
            .output()
            .expect("unshare starts");
        check_refused(&output, what);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let left = stderr.lines().find_map(|line| line.strip_prefix("left: "));
        assert_eq!(left, expect, "{stderr}");
    };
    let record = ["record", "-o", "disk/t", "--duration", "200ms"];
    let watch = ["watch", "-o", "disk/s", "--over", "1s", "--for", "200ms"];
    check("ro", &record, "ead-only", None);
    check("ro", &watch, "ead-only", None);
    check("size=4k,nr_inodes=2", &record, "No space left", None);
    let full = "size=4k none disk; head -c 4096 /dev/zero > disk/filler; true";
    check(full, &watch, "No space left", None);
    // Two bytes at a time: far more events than fit, in mid-stream.
    let busy = [
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=2",
        "count=400000",
        "status=none",
    ];
    let mut words = vec!["record", "-o", "disk/t", "--events", "sched,syscall", "--"];
    words.extend(busy);
    check("size=3m", &words, "No space left", Some("t"));
}

#[test]
fn a_watch_outlives_its_task_and_a_cpu_without_events_is_no_mistake() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let mut sleeper = Command::new("sleep")
        .arg("0.3")
        .spawn()
        .expect("sleep starts");
    let tid = sleeper.id().to_string();
    let words = ["watch", "--tid", &tid, "--for", "600ms", "--json"];
    let output = run(&words, folder.path());
    sleeper.wait().expect("reaped");
    // It was named and judged nothing: no statement.
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("\"type\":\"end\""),
        "{output:?}"
    );

    let quiet = [
        "record",
        "-o",
        "quiet",
        "--events",
        "task:task_prctl_unknown",
    ];
    let output = run(
        &[&quiet[..], &["--duration", "200ms"]].concat(),
        folder.path(),
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = run(&["cat", "quiet"], folder.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // Nobody can say who was late where no switch was recorded.
    check_refused(
        &run(&["diagnose", "quiet"], folder.path()),
        "cannot be diagnosed",
    );
}

#[test]
fn a_truncated_trace_is_read_as_far_as_it_goes_and_says_so() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["record", "-o", "t", "--duration", "300ms"];
    assert_eq!(run(&words, folder.path()).status.code(), Some(0));
    let stream = largest_stream(&folder.path().join("t/kernel"));
    let length = std::fs::metadata(&stream).expect("there").len();
    let file = std::fs::File::options()
        .write(true)
        .open(&stream)
        .expect("opens");
    file.set_len(length * 2 / 3 + 1).expect("truncated");
    let output = run(&["cat", "t"], folder.path());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(" at byte ") && said.contains("--keep-going"),
        "{said}"
    );
    let output = run(&["cat", "t", "--keep-going"], folder.path());
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("warning: unreadable: "), "{said}");
    let output = run(&["diagnose", "t"], folder.path());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("could not be read"), "{said}");
}

/// The largest file below `folder` that is no metadata.
fn largest_stream(folder: &Path) -> std::path::PathBuf {
    let entries = std::fs::read_dir(folder).expect("listed").flatten();
    let files = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_file());
    let streams = files.filter(|path| path.file_name().is_some_and(|name| name != "metadata"));
    let size = |path: &std::path::PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
    streams.max_by_key(size).expect("a stream")
}
