//! What perf recorded opens by the command that our own error names, and by `perf script`; both say
//! the same.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn rtscope(words: &[&str], trace: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(words).arg(trace);
    command.output().expect("rtscope starts")
}

fn shell(script: &str, dir: &Path) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(dir);
    let done = command.output().expect("a shell");
    done.status.success()
}

/// The rows of a report's table, and whether it has all the time of the trace.
fn rows(report: &str, table: &str, trace: &Path) -> Vec<Value> {
    let words = [
        "report",
        report,
        "--json",
        "--limit",
        "0",
        "--no-intersection",
    ];
    let output = rtscope(&words, trace);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let tables = found["windows"][0]["tables"].as_array().cloned();
    let of_table = tables.unwrap_or_default().into_iter();
    let mut of_table = of_table.filter(|found| found["table"] == table);
    let found = of_table.next().map(|table| table["rows"].clone());
    found
        .and_then(|rows| rows.as_array().cloned())
        .unwrap_or_default()
}

/// The commands in an error's last line, with the name that it lets the user choose: what makes a
/// text, and what makes CTF.
fn recipes(said: &str, of_text: &str, of_ctf: &str) -> [String; 2] {
    let line = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("fix:"));
    let line = line.unwrap_or_else(|| panic!("no command: {said}"));
    let (text, ctf) = line.split_once("; or ").expect("two commands");
    let command = |part: &str, new: &str| {
        let command = part.trim().split(", then").next().unwrap_or_default();
        command.replace("NEW", new)
    };
    [command(text, of_text), command(ctf, of_ctf)]
}

#[test]
fn a_recording_of_perf_says_the_same_as_ctf_and_as_text() {
    let _guard = testkit::privileged();
    const NAME: &str = "root_perf";
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let events = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,irq:softirq_entry,\
                  irq:softirq_exit";
    let record = format!("perf record -q -a -k CLOCK_MONOTONIC -e {events} -o perf.data sleep 0.2");
    if !shell(&record, dir) {
        return testkit::skip(NAME, "perf is not here, or may not record");
    }
    let refused = rtscope(&["info"], &dir.join("perf.data"));
    assert_eq!(refused.status.code(), Some(1));
    let [to_text, to_ctf] = recipes(&String::from_utf8_lossy(&refused.stderr), "text", "new");
    if !shell(&to_ctf, dir) {
        return testkit::skip(NAME, "this perf converts nothing to CTF: no libbabeltrace");
    }
    let (ctf, text) = (dir.join("new"), dir.join("text"));
    assert!(shell(&to_text, dir), "{to_text}");
    for (report, table) in [
        ("cputop", "per-process"),
        ("schedtop", "top"),
        ("schedlog", "log"),
        ("states", "cpus"),
    ] {
        let (of_ctf, of_text) = (rows(report, table, &ctf), rows(report, table, &text));
        assert!(!of_ctf.is_empty(), "{report} of {to_ctf}");
        assert_eq!(of_ctf, of_text, "{report}");
    }
    for trace in [&ctf, &text] {
        let words = "diagnose --task * --worst 1 --until switch-in";
        let words: Vec<_> = words.split_whitespace().collect();
        let diagnosed = rtscope(&words, trace);
        let said = String::from_utf8_lossy(&diagnosed.stdout);
        // One that no CPU took before the recording's end may have waited the longest.
        let is_told = said.contains(" was late by ") || said.contains(" still waited ");
        assert!(is_told, "{}: {said}", trace.display());
        let rule = "wake-up of * within 100s";
        let checked = rtscope(&["check", "--json", "--rule", rule], trace);
        let found: Value = serde_json::from_slice(&checked.stdout).expect("JSON");
        assert!(
            found["findings"][0]["samples"].as_u64() > Some(0),
            "{found}"
        );
    }
}
