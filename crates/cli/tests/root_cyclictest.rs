//! Under cyclictest's name the same as cyclictest: each command line is given to both.

use std::process::{Command, Output};

mod cyclictest;

use cyclictest::{ours, shape};

/// Command lines of its own manual, of other programs and of documents.
const LINES: &str = include_str!("cyclictest/lines.txt");
/// Further ones, as they were found in public: `-n` of 1.x is taken by ours and means nothing.
const FOUND: &str = include_str!("cyclictest/found.txt");
/// These are waited for where not all are run: one of each kind.
const CORE: usize = 8;

/// Exit code, threads, the shape of what is printed, and what is said of it.
#[derive(Debug, PartialEq)]
struct Ran {
    code: Option<i32>,
    threads: Vec<String>,
    printed: Vec<String>,
    said: Vec<String>,
}

fn ran(output: &Output) -> Ran {
    let text = String::from_utf8_lossy(&output.stdout);
    let is_usage = text.contains("Usage:") || text.contains("options, read and answered");
    let lines = text.lines().filter(|_| !is_usage);
    // Number, priority and interval.
    let thread = |line: &str| -> Option<String> {
        let (number, rest) = line.strip_prefix("T:")?.split_once('(')?;
        let (rest, _) = rest.split_once(") ")?.1.split_once("C:")?;
        Some(format!("{number}{rest}"))
    };
    // Numbers of samples over the histogram's end: some, or none.
    let said = String::from_utf8_lossy(&output.stderr);
    let is_said = |line: &&str| {
        let begins = ["cyclictest:", "WARN:", "FATAL:", "defaulting", "policy and"];
        begins.iter().any(|begin| line.starts_with(begin))
    };
    let mut printed: Vec<String> = lines.clone().map(shape).collect();
    printed.retain(|line| !line.starts_with("# Thread#:"));
    printed.dedup();
    Ran {
        code: output.status.code(),
        threads: lines.filter_map(thread).collect(),
        printed,
        said: said.lines().filter(is_said).map(shape).collect(),
    }
}

fn run(program: &mut Command, line: &str) -> Ran {
    let words = line.split_whitespace().map(|word| match word {
        "-h_3500" => "-h 3500",
        word => word,
    });
    program.args(words);
    // Not behind an option that would take the first for its value, alone or among letters.
    let last = line.split_whitespace().last().unwrap_or_default();
    let is_letters = last.starts_with('-') && !last.starts_with("--");
    if last != "--policy" && !(is_letters && last.ends_with('p')) {
        program.args(["-q", "-D", "0", "-l", "3"]);
    }
    ran(&program.output().expect("it starts"))
}

/// The same words without the option `-n`, alone or among others, which 2.4 refuses.
fn without_n(line: &str) -> String {
    let word = |word: &str| match word.strip_prefix('-') {
        Some("n") => String::new(),
        Some(letters) if ["nq", "vmn"].contains(&letters) => {
            format!("-{}", letters.replace('n', ""))
        }
        _ => word.to_owned(),
    };
    let words: Vec<String> = line.split_whitespace().map(word).collect();
    words.join(" ")
}

/// Which lines there are while it measures.
fn unquiet(program: &mut Command) -> std::collections::BTreeSet<String> {
    program.args(["-t2", "-p", "80", "-i", "20000", "-l", "20"]);
    let output = program.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    // The load is what it is.
    let line = |line: &str| line.split("loadavg").next().map(shape).unwrap_or_default();
    text.lines().map(line).collect()
}

#[test]
fn the_same_command_line_has_the_same_threads_output_and_complaints() {
    let _alone = testkit::privileged();
    let _clean = cyclictest::CleanUp;
    let name = "command lines beside cyclictest's";
    if !cyclictest::is_there(name) {
        return;
    }
    if !testkit::two_cpus(name) {
        return;
    }
    let lines = LINES.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<&str> = lines
        .filter_map(|line| Some(line.split_once(" => ")?.0))
        .collect();
    let every = lines.len() / CORE;
    let mut order: Vec<&str> = lines.iter().copied().step_by(every).collect();
    order.extend(
        lines
            .iter()
            .filter(|line| !order.contains(line))
            .copied()
            .collect::<Vec<_>>(),
    );
    assert_eq!(
        unquiet(&mut Command::new("cyclictest")),
        unquiet(&mut ours())
    );
    let mut unlike = Vec::new();
    let found = FOUND
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let found: Vec<&str> = found.collect();
    let of_found = testkit::core_of(&found, CORE);
    for line in testkit::core_of(&order, CORE).iter().chain(of_found) {
        let theirs = run(&mut Command::new("cyclictest"), &without_n(line));
        let ours = run(&mut ours(), line);
        if ours != theirs {
            unlike.push(format!("{line}:\n  theirs {theirs:?}\n  ours   {ours:?}"));
        }
    }
    assert!(unlike.is_empty(), "{}", unlike.join("\n"));
}

#[test]
fn every_measuring_thread_is_called_as_cyclictests_are() {
    let _alone = testkit::privileged();
    let _clean = cyclictest::CleanUp;
    let mut child = ours()
        .args(["-q", "-D", "20", "-i", "10000"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let tasks = format!("/proc/{}/task", child.id());
    let names = || {
        let folders = std::fs::read_dir(&tasks).expect("tasks").flatten();
        let comm = |path: std::path::PathBuf| std::fs::read_to_string(path.join("comm")).ok();
        let names = folders.filter_map(|folder| comm(folder.path()));
        names.filter(|name| name == "cyclictest\n").count()
    };
    let mut patience = 1_000;
    while names() < 1 && patience > 0 {
        patience -= 1;
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let found = names();
    child.kill().expect("killed");
    child.wait().expect("reaped");
    assert_eq!(found, 1);
}

#[test]
fn where_each_sample_is_printed_nothing_waits_for_the_end() {
    let _alone = testkit::privileged();
    let output = ours().args(["-v", "-q", "-l", "2"]).output();
    let output = output.expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let place = |text: &str| printed.lines().position(|line| line.contains(text));
    let (limited, thread) = (place("cpu_dma_latency"), place("Thread 0 Interval"));
    assert!(thread.is_some() && limited < thread, "{printed}");
}

#[test]
fn the_thread_that_has_its_samples_first_ends_it_for_all() {
    let _alone = testkit::privileged();
    let mut ours = ours();
    ours.args(["-q", "-t", "2", "-d", "5000000", "-l", "3"]);
    let output = ours.output().expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let counts = printed.lines().filter_map(|line| line.split("C:").nth(1));
    let counts: Vec<&str> = counts
        .filter_map(|rest| rest.split_whitespace().next())
        .collect();
    assert!(matches!(counts[..], ["3", "0" | "1"]), "{printed}");
}

#[test]
fn a_pipe_that_cannot_be_made_is_said_in_its_words_and_ends_nothing() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "kept").expect("written");
    let check = |path: &std::path::Path, why: &str| {
        let mut ours = ours();
        ours.args(["-q", "-l", "3", "-F"]).arg(path);
        let output = ours.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        let expect = format!("Error creating fifo {}: {why}\n", path.display());
        assert_eq!((output.status.code(), &*said), (Some(0), &*expect));
        assert!(String::from_utf8_lossy(&output.stdout).contains("T: 0"));
    };
    check(
        &folder.path().join("none/pipe"),
        "No such file or directory",
    );
    // cyclictest removes it.
    check(&file, "File exists");
    assert_eq!(std::fs::read(&file).expect("there"), b"kept");
}
