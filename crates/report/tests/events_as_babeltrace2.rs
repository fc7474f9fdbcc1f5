//! Our text of events against babeltrace2's, byte for byte, on every CTF 1.8 trace of a corpus, by
//! default and with each of its options.
//!
//! The corpus is not part of the project: name its directory in RTSCOPE_CORPUS; archives in it are
//! read too.

use std::path::{Path, PathBuf};
use std::process::Command;

use event::TimeRange;
use report::{EventClock, EventLines, EventNames, EventOrigin, EventText, EventTextOptions};
use testkit::Corpus;
use trace::{Item, Trace};

/// The trace on which we differ: its names hold bytes that are not UTF-8, which we replace.
const EXCUSED: &str = "metadata-pass/string-literal-escape";

/// Whether babeltrace2 before 2.1 knows its metadata.
fn is_ctf1(dir: &Path) -> bool {
    let text = std::fs::read(dir.join("metadata"));
    text.is_ok_and(|text| text.first() != Some(&0x1e))
}

/// What we print; nothing for what cannot be opened.
fn ours(dir: &Path, options: EventTextOptions) -> Vec<u8> {
    let mut out = EventLines::default();
    let Ok(trace) = Trace::open(dir) else {
        return Vec::new();
    };
    let mut text = EventText::new(&trace, options);
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().unwrap() {
        if let Item::Event(event) = item {
            text.write(&event, &mut out);
        }
    }
    out.text().to_vec()
}

/// What babeltrace2 prints, and whether it came to the end. It crashes, hangs and eats memory on
/// some traces: it gets a minute and 4 GB.
fn theirs(dir: &Path, words: &[&str]) -> (Vec<u8>, bool) {
    let script = "ulimit -v 4000000; exec timeout 60 babeltrace2 \"$@\" 2>/dev/null";
    let color = match words.contains(&"--color=always") {
        true => "ALWAYS",
        false => "NEVER",
    };
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .args(words)
        .arg(dir)
        .env("TERM", "xterm")
        .env("BABELTRACE_TERM_COLOR", color)
        .output()
        .unwrap();
    let mut text = output.stdout;
    // It resets the terminal when it ends, whether it printed a line or not.
    while color == "ALWAYS" && text.ends_with(b"\x1b[0m") {
        text.truncate(text.len() - 4);
    }
    (text, output.status.success())
}

/// Traces with more bytes are compared by default options only: they take minutes otherwise.
const WAYS_BYTES_MAX: u64 = 1 << 20;

fn size_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|status| status.len())
        .sum()
}

/// Equal but for texts that are empty here: babeltrace2 2.0 prints an empty text as the text that
/// the field held before.
fn equal_but_for_stale_texts(ours: &[u8], theirs: &[u8]) -> bool {
    let lines = |text: &[u8]| {
        text.split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    };
    let (ours, theirs): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (lines(ours), lines(theirs));
    let empty = |line: &[u8]| line.windows(2).any(|pair| pair == b"\"\"");
    ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(o, t)| o == t || empty(o))
}

/// Words for babeltrace2.
const WAYS: [&str; 19] = [
    "",
    "--clock-cycles",
    "--clock-date",
    "--clock-gmt",
    "--clock-seconds",
    "--no-delta",
    "--names=none",
    "--names=payload",
    "--names=context",
    "--names=header",
    "--names=scope",
    "--fields=trace",
    "--fields=trace:domain",
    "--fields=loglevel",
    "--fields=emf",
    "--fields=all --names=all",
    "--fields=all --no-delta",
    "--color=always",
    "--color=always --fields=all --names=all",
];

/// What such words mean here.
fn meaning(words: &[&str]) -> EventTextOptions {
    let mut options = EventTextOptions::default();
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "--clock-cycles" => options.clock = EventClock::Cycles,
            "--clock-date" => options.clock = EventClock::Date,
            "--clock-seconds" => options.clock = EventClock::WallSeconds,
            "--clock-gmt" => options.utc = true,
            "--no-delta" => options.no_delta = true,
            "--color" => options.color = value == "always",
            "--names" => options.names = names(value),
            _ => options.origin = origin(value),
        }
    }
    options
}

fn names(word: &str) -> EventNames {
    match word {
        "all" => EventNames::ALL,
        _ => EventNames {
            payload: word == "payload",
            context: word == "context",
            header: word == "header",
            scope: word == "scope",
        },
    }
}

fn origin(word: &str) -> EventOrigin {
    match word {
        "all" => EventOrigin::ALL,
        _ => EventOrigin {
            trace: word == "trace",
            domain: word == "trace:domain",
            log_level: word == "loglevel",
            emf: word == "emf",
            ..EventOrigin::NONE
        },
    }
}

#[test]
#[ignore = "needs the corpus of traces (RTSCOPE_CORPUS) and babeltrace2"]
fn every_trace_of_the_corpus_prints_as_babeltrace2_prints_it() {
    let Some(corpus) = Corpus::find("events as babeltrace2 prints them") else {
        return;
    };
    let traces = corpus.ctf_traces().into_iter().map(|(_, dir)| dir);
    let traces: Vec<PathBuf> = traces.filter(|dir| is_ctf1(dir)).collect();
    assert!(!traces.is_empty(), "no trace below RTSCOPE_CORPUS");
    let mut different = Vec::new();
    for way in WAYS {
        let words: Vec<&str> = way.split_whitespace().collect();
        let options = meaning(&words);
        let (mut equal, mut stale, mut stopped, mut excused) = (0, 0, 0, 0);
        let is_wanted = |dir: &&PathBuf| words.is_empty() || size_bytes(dir) <= WAYS_BYTES_MAX;
        for dir in traces.iter().filter(is_wanted) {
            let ((theirs, complete), ours) = (theirs(dir, &words), ours(dir, options));
            match () {
                () if ours == theirs => equal += 1,
                () if complete && equal_but_for_stale_texts(&ours, &theirs) => stale += 1,
                // It gave up; all that it printed before must be ours too.
                () if !complete && ours.starts_with(&theirs) => stopped += 1,
                () if dir.ends_with(EXCUSED) => excused += 1,
                () => different.push(format!("{} '{way}'", dir.display())),
            }
        }
        eprintln!(
            "'{way}': {equal} equal, {stale} but for its stale texts, {stopped} where it stops \
             early, {excused} excused"
        );
    }
    assert!(different.is_empty(), "different: {different:#?}");
}
