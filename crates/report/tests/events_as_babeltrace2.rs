//! Our text of events against babeltrace2's, byte for byte, on every CTF 1.8 trace of a corpus.
//!
//! The corpus is not part of the project: name its directory in RTSCOPE_CORPUS. Archives in it are
//! left alone; unpack them into it first.

use std::path::{Path, PathBuf};
use std::process::Command;

use event::TimeRange;
use report::{EventText, EventTextOptions};
use trace::{Item, Trace};

/// The trace on which we differ: its names hold bytes that are not UTF-8, which we replace.
const EXCUSED: &str = "metadata-pass/string-literal-escape";

/// The directories with CTF 1.8 metadata at or below `dir`.
fn find(dir: &Path, found: &mut Vec<PathBuf>) {
    let is_ctf2 = |text: Vec<u8>| text.first() == Some(&0x1e);
    if let Ok(text) = std::fs::read(dir.join("metadata")) {
        if !is_ctf2(text) {
            found.push(dir.to_owned());
        }
        return;
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    dirs.sort();
    dirs.iter()
        .filter(|path| path.is_dir())
        .for_each(|path| find(path, found));
}

/// What we print; nothing for what cannot be opened.
fn ours(dir: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    let Ok(trace) = Trace::open(dir) else {
        return out;
    };
    let mut text = EventText::new(&trace, EventTextOptions::default());
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().unwrap() {
        if let Item::Event(event) = item {
            text.write(&event, &mut out);
        }
    }
    out
}

/// What babeltrace2 prints, and whether it came to the end. It crashes, hangs and eats memory on
/// some traces: it gets a minute and 4 GB.
fn theirs(dir: &Path) -> (Vec<u8>, bool) {
    let script = "ulimit -v 4000000; exec timeout 60 babeltrace2 \"$0\" 2>/dev/null";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(dir)
        .output()
        .unwrap();
    (output.stdout, output.status.success())
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

#[test]
#[ignore = "needs the corpus of traces (RTSCOPE_CORPUS) and babeltrace2"]
fn every_trace_of_the_corpus_prints_as_babeltrace2_prints_it() {
    let corpus = std::env::var_os("RTSCOPE_CORPUS").expect("RTSCOPE_CORPUS names the corpus");
    let mut traces = Vec::new();
    find(Path::new(&corpus), &mut traces);
    assert!(!traces.is_empty(), "no trace below RTSCOPE_CORPUS");
    let (mut equal, mut stale, mut stopped, mut excused) = (0, 0, 0, 0);
    let mut different = Vec::new();
    for dir in &traces {
        let ((theirs, complete), ours) = (theirs(dir), ours(dir));
        match () {
            () if ours == theirs => equal += 1,
            () if complete && equal_but_for_stale_texts(&ours, &theirs) => stale += 1,
            // It gave up; all that it printed before must be ours too.
            () if !complete && ours.starts_with(&theirs) => stopped += 1,
            () if dir.ends_with(EXCUSED) => excused += 1,
            () => different.push(dir.display().to_string()),
        }
    }
    eprintln!(
        "{} traces: {equal} equal, {stale} but for its stale texts, {stopped} where it stops \
         early, {excused} excused",
        traces.len()
    );
    assert!(different.is_empty(), "different: {different:#?}");
}
