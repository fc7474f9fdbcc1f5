//! Filters of a recording mean in the kernel what they mean everywhere. Needs root.

mod recorded;
mod session;

use std::path::Path;
use std::process::Command;

use recorded::{compile, run};
use session::Night;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// Sleeps, and makes calls that nobody else makes, with numbers that are known.
const PROGRAM: &str = r#"
#include <time.h>
#include <unistd.h>
int main(void)
{
    const int values[] = {3, -100, 4, 5, 3000000, -7, 3};
    struct timespec time = {0, 500000};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        getpgid(values[i]);
        nanosleep(&time, 0);
    }
    return 0;
}
"#;

#[test]
fn the_kernel_records_what_the_filter_means_by_names_numbers_and_patterns() {
    let _alone = testkit::privileged();
    let program = compile("cc", "wordsome", PROGRAM, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let switches =
        "prev_comm == \"words*\" && prev_prio >= 0 && !(prev_comm == \"*5\" || $cpu == 4000)";
    let mut record = Command::new(RTSCOPE);
    record.args(["record", "--events", "sched_switch,syscall_entry_getpgid"]);
    record.args(["--filter", &format!("sched_switch: {switches}")]);
    record.args([
        "--filter",
        "syscall_entry_getpgid: pid == -100 || pid in (3, 5)",
    ]);
    record.args(["--filter", "syscalls:sys_enter_getpgid: pid > 2000000"]);
    run(record.arg("-o").arg(&trace).arg("--").arg(&program));
    let cat = |filter: &str| -> Vec<String> {
        let mut cat = Command::new(RTSCOPE);
        let text = run(cat.arg("cat").arg(&trace).args(["--filter", filter]));
        text.lines().map(str::to_owned).collect()
    };
    let calls = cat("$name == \"syscall_entry_getpgid\"");
    let values: Vec<_> = calls
        .iter()
        .map(|line| line.rsplit("pid = ").next().unwrap_or_default())
        .collect();
    assert_eq!(
        values,
        ["3 }", "-100 }", "5 }", "3000000 }", "3 }"],
        "{calls:?}"
    );
    let all = cat("$name == \"sched_switch\"");
    assert!(all.len() >= 5, "{all:?}");
    assert_eq!(
        cat(&format!("$name == \"sched_switch\" && {switches}")),
        all
    );
    // Who is inferred from it was left out by the filter, and not hidden by the kernel.
    let mut diagnose = Command::new(RTSCOPE);
    diagnose
        .arg("diagnose")
        .arg(&trace)
        .args(["--task", "words*"]);
    let output = diagnose.output().expect("rtscope starts");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("this kernel did not record"), "{said}");
    check_says_filtered(&trace, "sched_switch,syscall_entry_getpgid");
}

fn check_says_filtered(trace: &Path, expect: &str) {
    let mut info = Command::new(RTSCOPE);
    let info = run(info.arg("info").arg(trace));
    let said = info
        .lines()
        .find(|line| line.contains("rtscope_filtered_events"));
    let events = said.and_then(|line| line.split_whitespace().last());
    assert_eq!(events, Some(expect), "{info}");
}

/// Maps memory of no file, of a length that nobody else asks for.
const MAPPER: &str = r#"
#include <sys/mman.h>
int main(void)
{
    return mmap(0, 7777777, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}
"#;

#[test]
fn a_filtered_system_call_reads_as_one_that_was_not_filtered() {
    let _alone = testkit::privileged();
    let program = compile("cc", "mapper", MAPPER, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let mapped = |name: &str, more: &[&str]| {
        let trace = folder.path().join(name);
        let mut record = Command::new(RTSCOPE);
        record
            .args(["record", "--events", "syscall_entry_mmap"])
            .args(more);
        run(record.arg("-o").arg(&trace).arg("--").arg(&program));
        let mut cat = Command::new(RTSCOPE);
        let filter = "$name == \"syscall_entry_mmap\" && len == 7777777";
        let text = run(cat.arg("cat").arg(&trace).args(["--filter", filter]));
        let (_, fields) = text.rsplit_once("{ addr").expect("one call");
        fields.trim().trim_end_matches(" }").to_owned()
    };
    let filtered = mapped(
        "filtered",
        &["--filter", "syscall_entry_mmap: fd == -1 && offset == 0"],
    );
    let plain = mapped("plain", &[]);
    assert!(filtered.contains("fd = -1, offset = 0"), "{filtered}");
    let of_task = "syscall_entry_mmap: $ctx.procname == \"mapper\" && $ctx.tid > 1";
    assert_eq!(mapped("of_task", &["--filter", of_task]), filtered);
    // What BPF read comes behind.
    assert!(plain.starts_with(&filtered), "{plain}\n{filtered}");
}

#[test]
fn archives_and_snapshots_of_a_session_say_that_it_had_a_filter() {
    let _alone = testkit::privileged();
    let filter = [
        "--events",
        "sched_switch,sched_waking",
        "--filter",
        "sched_switch: next_prio < 0",
    ];
    let check = |more: &[&str]| {
        let night = Night::new();
        night.says("start", &[&filter, more].concat());
        if !more.is_empty() {
            night.says("snapshot", &[]);
        }
        night.says("stop", &[]);
        let traces = night.archives();
        assert!(!traces.is_empty());
        for trace in &traces {
            check_says_filtered(trace, "sched_switch");
        }
    };
    check(&[]);
    check(&["--flight"]);
}

#[test]
fn what_the_kernel_cannot_answer_is_refused_before_anything_is_recorded() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let check = |words: &[&str], what: &str, found: &str, fix: &str| {
        let mut command = Command::new(RTSCOPE);
        let output = command.args(words).current_dir(folder.path()).output();
        let output = output.expect("rtscope starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for part in [what, found, fix] {
            assert!(said.contains(part), "{part}: {said}");
        }
    };
    let of_record = |filter: &str, what: &str, found: &str, fix: &str| {
        let event = filter.split(':').next().unwrap_or_default();
        let words = [
            "record",
            "--events",
            event,
            "--filter",
            filter,
            "--duration",
            "1s",
        ];
        check(&words, what, found, fix);
    };
    of_record(
        "sched_switch: next_tid == 1 && next_comm =~ \"^g\"",
        "regular expressions",
        "at column 18",
        "cat TRACE --filter '$name == \"sched_switch\"",
    );
    of_record(
        "sys_enter_openat: filename == \"/etc/*\"",
        "an address in the program's memory",
        "at column 1",
        "cat TRACE --filter '$name == \"syscall_entry_openat\"",
    );
    of_record(
        "sched_switch: next_tidd == 1",
        "no field 'next_tidd'",
        "at column 1",
        "next_tid",
    );
    let from = "syscall_entry_openat/filename == \"/etc/*\"";
    let words = [
        "watch",
        "--from",
        from,
        "--to",
        "syscall_exit_openat",
        "--for",
        "1s",
    ];
    check(
        &words,
        "an address in the program's memory",
        "at column 22",
        "rtscope record",
    );
}
