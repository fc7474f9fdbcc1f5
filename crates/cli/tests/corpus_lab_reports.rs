//! Each command that lttng-analyses 0.6.1 was run with on the laboratory's traces gives the same
//! text and the same LAMI here, but where the peer errs: `docs/reports.md` has the list. Needs
//! RTSCOPE_CORPUS.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Unpacks an archive of the corpus; none when there is no corpus here.
fn unpack(name: &str, into: &Path) -> Option<PathBuf> {
    let Some(corpus) = std::env::var_os("RTSCOPE_CORPUS").map(PathBuf::from) else {
        testkit::skip("corpus_lab_reports", "RTSCOPE_CORPUS is not set");
        return None;
    };
    let archive = corpus.join(format!("lab/{name}.tar.xz"));
    let mut tar = Command::new("tar");
    let unpacked = tar.arg("-xJf").arg(&archive).arg("-C").arg(into).status();
    let done = unpacked.is_ok_and(|status| status.success());
    assert!(done, "tar -xJf {}", archive.display());
    Some(into.join(name))
}

/// The words of a command line as a shell reads them, with only backslashes as quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut letters = line.trim_end().chars();
    while let Some(letter) = letters.next() {
        let last = words.last_mut().expect("there is one");
        match letter {
            ' ' => words.push(String::new()),
            '\\' => last.extend(letters.next()),
            letter => last.push(letter),
        }
    }
    words
}

fn report(command: &[String], trace: &Path) -> String {
    let words = command.iter().map(|word| match word.as_str() {
        "kernel" => trace.as_os_str().to_owned(),
        word => word.into(),
    });
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    rtscope.arg("report").args(words);
    rtscope.args(["--as", "lttng-analyses"]).env("TZ", "UTC");
    let output = rtscope.output().expect("rtscope starts");
    String::from_utf8(output.stdout).expect("utf-8")
}

/// Runs all commands of one oracle on its trace.
fn check(archive: &str, oracle: &str, trace: &str, commands_expect: usize) {
    let folder = tempfile::tempdir().expect("a folder for the trace");
    let Some(root) = unpack(archive, folder.path()) else {
        return;
    };
    let (oracle, trace) = (root.join(oracle), root.join(trace));
    let commands = std::fs::read_to_string(oracle.join("COMMANDS.tsv")).expect("commands");
    let mut count = 0;
    for line in commands.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (file, command) = (fields[0], words(fields[3]));
        let expect = std::fs::read_to_string(oracle.join(file)).expect("what the peer printed");
        let found = report(&command, &trace);
        match file.ends_with(".json") {
            true => check_lami(&found, &expect, file),
            false => check_text(&found, &expect, file),
        }
        count += 1;
    }
    assert_eq!(count, commands_expect, "commands");
}

fn check_text(found: &str, expect: &str, file: &str) {
    let is_progress = |line: &&str| line.starts_with("Checking the trace");
    let expect = expect.lines().filter(|line| !is_progress(line));
    let expect: Vec<&str> = expect.map(str::trim_end).collect();
    let mut found: Vec<&str> = found.lines().map(str::trim_end).collect();
    if file.starts_with("irqlog") {
        found.retain(|line| !line.contains("SoftIRQ"));
    }
    let mut found = found.into_iter();
    for (place, expect) in expect.iter().enumerate() {
        if expect.starts_with(NETWORK) && file.starts_with("iousagetop") {
            return;
        }
        let found = found.next().unwrap_or_default();
        let same = found == *expect || explained(found, expect, file);
        assert!(same, "{file}: line {}\n  {found}\n  {expect}", place + 1);
    }
    // Softirqs come after all interrupts.
    let rest: Vec<&str> = found.filter(|line| !line.is_empty()).collect();
    assert!(
        rest.is_empty() || file.starts_with("irq"),
        "{file}: {rest:?}"
    );
}

/// The peer does not know the event that newer tracers write for a packet that came in.
const NETWORK: &str = "Network Received Bytes";

/// Whether the peer's line lacks what this one knows.
fn explained(found: &str, expect: &str, file: &str) -> bool {
    let before = |mark: &str| {
        let (expect, _) = expect.split_once(mark)?;
        Some(!expect.is_empty() && found.starts_with(expect.trim_end()))
    };
    // It searches descriptors that were used again from the wrong end.
    let path = file.starts_with("iolog") || file.starts_with("iolatencytop");
    // It learns a process only when a thread calls on files.
    let pid = file.starts_with("syscallstats");
    path && before("unknown (fd=") == Some(true) || pid && before("?, TID") == Some(true)
}

fn check_lami(found: &str, expect: &str, file: &str) {
    let read = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    let (mut found, expect) = (read(found), read(expect));
    if expect.get("table-classes").is_some() {
        assert_same(&found["table-classes"], &expect["table-classes"], file);
        return;
    }
    let tables = found["results"].as_array_mut().expect("tables");
    for table in tables.iter_mut() {
        let rows = table["data"].as_array_mut().expect("rows");
        let is_soft = |cell: &Value| cell["hard"] == Value::Bool(false);
        rows.retain(|row| !row.as_array().expect("cells").iter().any(is_soft));
    }
    let is_soft = |table: &Value| table["class"]["title"].to_string().contains("_SOFTIRQ");
    tables.retain(|table| !table["data"].as_array().expect("rows").is_empty() && !is_soft(table));
    let mut tables = tables.iter();
    for expect in expect["results"].as_array().expect("tables") {
        let found = tables.next().expect("as many tables");
        let is_network = |table: &Value| table.to_string().contains("per-netif-top");
        if !(is_network(found) && is_network(expect)) {
            assert_same(found, expect, file);
        }
    }
    assert!(tables.all(|table| table.to_string().contains("per-netif-top")));
}

/// The same, but for the last digit of computed numbers and for what the peer does not know.
#[track_caller]
fn assert_same(found: &Value, expect: &Value, file: &str) {
    match (found, expect) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).for_each(|(a, b)| assert_same(a, b, file));
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter()
                .zip(b)
                .for_each(|((_, a), (_, b))| assert_same(a, b, file));
        }
        // A process that the peer does not know yet.
        (Value::Object(a), Value::Object(b)) if a.contains_key("pid") && !b.contains_key("pid") => {
            let mut without = a.clone();
            without.remove("pid");
            assert!(
                file.starts_with("syscallstats") && without == *b,
                "{file}: {a:?}"
            );
        }
        // A path that the peer does not find.
        (Value::Object(a), Value::Object(b)) if b.get("class") == Some(&"unknown".into()) => {
            assert_eq!(a.get("class"), Some(&"path".into()), "{file}");
        }
        // "Out of range" is unknown to the peer when there is no range.
        (Value::Bool(false), Value::Null) => {}
        (Value::String(a), Value::String(b)) => assert!(
            a == b || b.contains("(?, TID") && file.starts_with("syscallstats"),
            "{file}: {a} {b}"
        ),
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().expect("finite"), b.as_f64().expect("finite"));
            assert!((a - b).abs() <= a.abs() * 1e-12, "{file}: {a} {b}");
        }
        (a, b) => assert_eq!(a, b, "{file}"),
    }
}

const COMMANDS: usize = 48;

#[test]
fn a_trace_of_files_and_network_gives_what_the_peer_gave() {
    check(
        "mixed-rt61-lttng-kernel",
        "oracle",
        "trace/kernel",
        COMMANDS,
    );
}

#[test]
fn a_trace_with_contexts_gives_what_the_peer_gave() {
    check("combined-rt61-lttng", "oracle", "trace/kernel", COMMANDS);
}

#[test]
fn a_snapshot_gives_what_the_peer_gave() {
    check(
        "jack-rt61-lttng-snapshot",
        "oracle-xrun",
        "trace/xrun/kernel",
        COMMANDS,
    );
}

#[test]
fn a_snapshot_with_its_state_dump_gives_what_the_peer_gave() {
    check(
        "jack-rt61-lttng-snapshot",
        "oracle-withdump",
        "trace/withdump/kernel",
        COMMANDS,
    );
}
