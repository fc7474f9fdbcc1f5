//! `rtscope record` onto a disk that fills up: it ends by itself, what was written before can be
//! read, and nothing is left in shared memory or in tracefs.

mod recorded;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use recorded::{Scene, compile, libraries, probe};

/// Writes so many events and is gone, or, told none, writes events until its input ends.
const PROGRAM: &str = r#"
#include <poll.h>
#include <stdlib.h>
#include <rtscope/event.h>
int main(int count, char **words)
{
    struct pollfd input = {0, POLLIN, 0};
    int end = count > 1 ? atoi(words[1]) : 0;
    for (int i = 0; end ? i < end : i % 64 || poll(&input, 1, 1) == 0; i++)
        RTSCOPE_EVENT(robot, step, i32("i", i));
    return 0;
}
"#;

/// In a mount namespace of its own: a small disk, the recording, its exit code, and what it kept.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=1m none "$1" || { echo no disk; exit; }
shift
trace=$1 rtscope=$2 && shift 2
if [ $# -gt 1 ]; then
    # Before the recorder: its rings are those of a process that is gone.
    RTSCOPE_EVENTS=robot "$@" <&3
    set -- cat
fi
timeout 120 "$rtscope" record --user robot -o "$trace" -- "$@" <&3
echo "code $?"
"$rtscope" cat "$trace"
"$rtscope" info "$trace"
echo end
"#;

/// Stops the recorder, its parent, until the program has ended: whoever is faster.
const BEFORE_THE_RECORDER: &str = r#"kill -STOP $PPID; "$0" 100000; kill -CONT $PPID"#;

fn check(name: &str, is_ended: bool) {
    let _held = testkit::privileged();
    let include = format!("-I{}", probe().join("include").display());
    let library = libraries().join("librtscope-probe.a");
    let library = library.to_str().expect("a path in UTF-8");
    let program = compile("cc", name, PROGRAM, &[&include, library, "-ldl"]);
    let scene = Scene::new();
    let disk = scene.trace().parent().expect("a folder").to_owned();
    let mut shell = Command::new("unshare");
    shell.args(["-m", "--propagation", "private", "sh", "-c"]);
    shell.arg(format!("exec 3<&0; {SCRIPT}")).arg("sh");
    shell.arg(disk).arg(scene.trace());
    shell.arg(env!("CARGO_BIN_EXE_rtscope"));
    if is_ended {
        shell.args(["sh", "-c", BEFORE_THE_RECORDER]);
    }
    shell.arg(program);
    shell.env("RTSCOPE_DIR", scene.shared());
    shell.env("RTSCOPE_RING_SIZE", "4M");
    shell.stdin(Stdio::piped());
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = shell.spawn().expect("unshare starts");
    // The program, whose standard output is the shell's, goes on until this is dropped: the
    // recorder has ended before, or its time is up.
    let input = shell.stdin.take();
    let stdout = shell.stdout.take().expect("its output");
    let mut text = String::new();
    let mut numbers = Vec::new();
    for line in std::io::BufRead::lines(std::io::BufReader::new(stdout)) {
        let line = line.expect("text");
        if line == "end" {
            break;
        }
        if let Some((_, behind)) = line.split_once("{ i = ") {
            let number = behind.split(' ').next().expect("a word");
            numbers.push(number.parse::<u64>().expect("a number"));
        } else if !line.contains("lttng_ust_statedump") {
            text += &line;
        }
    }
    drop(input);
    let ended = shell.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    if text.contains("no disk") {
        return testkit::skip(name, "no tmpfs can be mounted here");
    }
    assert!(text.contains("code 1"), "{text}{said}");
    assert!(said.contains("ended when its disk was full"), "{said}");
    assert!(said.contains("what came before is in"), "{said}");
    assert!(said.contains("free some space"), "{said}");
    assert!(!numbers.is_empty(), "something was kept: {text}{said}");
    let expect: Vec<u64> = (0..numbers.len() as u64).collect();
    assert_eq!(numbers, expect, "from the first event on, in order");
    assert!(text.contains("lost     an unknown number"), "{text}{said}");
    let left = std::fs::read_dir(scene.shared()).expect("shared memory");
    let left = left.map(|entry| entry.expect("an entry").file_name());
    let left: Vec<_> = left
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    // The rings stay of a program that recorders left before its end.
    let is_of_recording = |name: &String| name.starts_with("session") || is_ended;
    assert!(!left.iter().any(is_of_recording), "{left:?}");
}

#[test]
fn a_full_disk_ends_the_recording_of_a_program_that_goes_on() {
    check("full-going-on", false);
}

#[test]
fn a_full_disk_leaves_no_rings_of_a_program_that_ended() {
    check("full-ended", true);
}

/// The same of these events of the kernel, while a load makes many until its file is gone.
const KERNEL: &str = r#"
mount -t tmpfs -o size=3m none "$1" || { echo no disk; exit; }
trace=$1/trace rtscope=$2 going=$3 events=$4
echo > "$going"
timeout 120 "$rtscope" record --events "$events" -o "$trace" \
    -- sh -c 'while [ -e "$0" ]; do /bin/true; done' "$going"
echo "code $?"
rm "$going"
"$rtscope" info "$trace"
"$rtscope" cat "$trace" --filter '$name == "lttng_statedump_process_state"' | head -n 1
ls -A "$1"
"#;

fn check_kernel(events: &str, kept: &str) {
    let _held = testkit::privileged();
    let instances = || {
        let entries = std::fs::read_dir("/sys/kernel/tracing/instances").into_iter();
        let names = entries.flatten().flatten().map(|entry| entry.file_name());
        names.collect::<Vec<_>>()
    };
    let before = instances();
    let scene = Scene::new();
    let disk = scene.beside("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let mut shell = Command::new("unshare");
    shell.args(["-m", "--propagation", "private", "sh", "-c", KERNEL, "sh"]);
    shell.arg(&disk).arg(env!("CARGO_BIN_EXE_rtscope"));
    let output = shell.arg(scene.beside("going")).arg(events).output();
    let output = output.expect("unshare starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    if text.contains("no disk") {
        return testkit::skip(&format!("full-{events}"), "no tmpfs can be mounted here");
    }
    assert!(text.contains("code 1"), "{text}{said}");
    assert!(said.contains("ended when its disk was full"), "{said}");
    assert!(said.contains("what came before is in"), "{said}");
    assert!(said.contains("free some space"), "{said}");
    // Events are missing behind the end of the streams, and readers say so.
    assert!(text.contains("lost     an unknown number"), "{text}{said}");
    assert!(text.contains(kept), "{kept}: {text}");
    assert!(text.contains("lttng_statedump_process_state: "), "{text}");
    assert!(text.ends_with("\ntrace\n"), "nothing else is there: {text}");
    assert_eq!(instances(), before, "nothing is left");
}

// Each channel by itself: of both, one may fill the disk before the other has written a packet.

#[test]
fn a_full_disk_ends_a_recording_of_the_scheduler_and_what_came_before_is_a_trace() {
    check_kernel("sched", "sched_switch");
}

#[test]
fn a_full_disk_ends_a_recording_of_system_calls_and_what_came_before_is_a_trace() {
    check_kernel("syscall", "syscall_entry_");
}

#[test]
fn a_limit_of_file_sizes_is_a_full_disk_and_ends_nobody() {
    let _held = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let mut shell = Command::new("sh");
    // In blocks of 512 bytes: less than any recording needs.
    shell.args([
        "-c",
        "ulimit -f 8; exec \"$0\" record --duration 100ms -o t",
    ]);
    shell.arg(env!("CARGO_BIN_EXE_rtscope"));
    let ended = shell.current_dir(folder.path()).output();
    let ended = ended.expect("a shell");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("ulimit -f unlimited"), "{said}");
    let left = std::fs::read_dir(folder.path())
        .expect("the folder")
        .count();
    assert_eq!(left, 0, "no part of a recording stays");
}

#[test]
fn a_recording_whose_folder_is_removed_ends_by_itself_and_says_so() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let below = folder.path().join("below");
    let mut record = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    record.args(["record", "--events", "sched_switch", "--duration", "10m"]);
    record.arg("-o").arg(below.join("trace"));
    record.stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = record.spawn().expect("rtscope starts");
    let mut said = BufReader::new(child.stderr.take().expect("its words"));
    let mut text = String::new();
    while !text.contains("recording ") {
        assert_ne!(said.read_line(&mut text).expect("text"), 0, "{text}");
    }
    // It may write a file into it meanwhile.
    while std::fs::remove_dir_all(&below).is_err() {}
    said.read_to_string(&mut text).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(1), "{text}");
    assert!(
        text.contains("was removed: nothing is left of it"),
        "{text}"
    );
    assert!(text.contains("found:") && text.contains("fix:"), "{text}");
    assert!(!below.exists());
}
