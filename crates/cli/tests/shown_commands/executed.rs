//! Every command of the pages that reads a trace is run, on the book's recording under the names
//! that the pages use. What needs a device, privileges or a session of others is parsed only.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use crate::pages::{page, pages, root, shown_in_page, words};

/// Verbs that need nothing but files.
const READING: &[&str] = &[
    "cat", "info", "convert", "report", "check", "diagnose", "diff",
];

/// Commands of these verbs that are parsed only, by a word of theirs, and why.
const PARSED_ONLY: &[(&str, &str)] = &[
    ("--live", "follows a recording that goes on"),
    ("./lttng-cputop-mi", "is another program"),
    ("parquet", "an optional feature of the build"),
    ("--after-begin", "wants the store of a monitor"),
    ("hosts", "wants packets that two hosts saw"),
];

/// Names under which the pages read a recording.
const TRACES: &[&str] = &[
    "TRACE",
    "trace",
    "SNAPSHOT",
    "OLD",
    "NEW",
    "OLD-1",
    "OLD-2",
    "OLD-3",
    "NEW-1",
    "NEW-2",
    "NEW-3",
    "TRACE-A",
    "TRACE-B",
    "hit-0001",
    "before",
    "after",
    "jack/trace",
    "late-loop.txt",
    "rtscope-snapshots/hit-0001",
    "FOLDER/NAME",
    "nightly",
];

/// What stands for something of the reader's own.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("NAME", "ctrl_loop"),
    ("TASK", "ctrl_loop"),
    ("DUR", "1ms"),
    ("FILE", "page.html"),
    ("N", "1"),
    (
        "NAME within 1ms p99.9",
        "wake-up of ctrl_loop within 1ms p99.9",
    ),
];

/// The book's recording.
const RECORDING: &str = "docs/recordings/late-loop.txt";

/// A folder in which the pages' commands find what they name.
fn scene() -> tempfile::TempDir {
    let scene = tempfile::tempdir().expect("a folder");
    let recording = root()
        .join(RECORDING)
        .canonicalize()
        .expect("the recording");
    // Who reads two at once is to have what two recorded. A text does not say whose kernel it is
    // of: the other one is of another CPU.
    let other = scene.path().join("other.txt");
    let text = std::fs::read_to_string(&recording).expect("the book's recording");
    std::fs::write(&other, text.replace("[000]", "[001]")).expect("room");
    for name in TRACES {
        let place = scene.path().join(name);
        std::fs::create_dir_all(place.parent().expect("a parent")).expect("a folder");
        let recording = if *name == "TRACE-B" {
            &other
        } else {
            &recording
        };
        symlink(recording, place).expect("a link");
    }
    std::fs::create_dir(scene.path().join("fleet")).expect("a folder");
    let budget = "wake-up of ctrl_loop within 1ms p99.9\n";
    std::fs::write(scene.path().join("budgets.txt"), budget).expect("budgets");
    scene
}

/// Why the command is parsed only; nothing where it is run.
fn parsed_only(words: &[String]) -> Option<&'static str> {
    let verb = words.get(1)?.as_str();
    if !READING.contains(&verb) {
        return Some("another verb");
    }
    // A sentence may name a verb without what it reads.
    let reads = |word: &String| TRACES.contains(&word.as_str()) || word == "list";
    if !words.iter().any(reads) {
        return Some("names no trace");
    }
    let mut exceptions = PARSED_ONLY.iter();
    let found = exceptions.find(|(part, _)| words.iter().any(|word| word.contains(part)));
    found.map(|(_, why)| *why)
}

fn run(folder: &Path, words: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    for pair in words.windows(2) {
        let (before, word) = (&pair[0], &pair[1]);
        let found = PLACEHOLDERS.iter().find(|(name, _)| name == word);
        command.arg(match found {
            Some((_, stands_for)) => stands_for,
            // The recording's machine has one.
            None if before == "--cpu" => "0",
            None => word,
        });
    }
    command
        .current_dir(folder)
        .output()
        .expect("rtscope starts")
}

#[test]
fn every_command_of_the_pages_that_reads_a_trace_ends_with_an_answer() {
    let (mut executed, mut only_parsed) = (0, 0);
    let mut problems = Vec::new();
    for path in pages() {
        // What a page writes, its next command may read; and no other page's.
        let scene = scene();
        for command in shown_in_page(&page(&path)) {
            let words = words(&command);
            if parsed_only(&words).is_some() {
                only_parsed += 1;
                continue;
            }
            executed += 1;
            let output = run(scene.path(), &words);
            // Over a threshold and inconclusive are answers: the recording is not the page's.
            if !matches!(output.status.code(), Some(0 | 2 | 3)) {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                problems.push(format!("{path}: {command}: {said}"));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    println!("{executed} commands were run, {only_parsed} parsed only");
    assert!(executed > 60, "{executed} commands were run");
}

#[test]
fn each_exception_is_one_of_a_command_that_is_there() {
    let commands: Vec<_> = pages()
        .iter()
        .flat_map(|path| shown_in_page(&page(path)))
        .map(|command| words(&command))
        .collect();
    for (part, why) in PARSED_ONLY {
        let is_there = commands
            .iter()
            .any(|words| words.iter().any(|word| word.contains(part)));
        assert!(is_there, "no command has {part}: {why}");
    }
    for name in TRACES {
        let is_there = commands.iter().flatten().any(|word| word == name);
        assert!(is_there, "no command reads {name}");
    }
}
