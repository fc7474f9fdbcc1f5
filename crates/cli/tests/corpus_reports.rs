//! The reports' text is that of lttng-analyses 0.6.1, character by character. Needs RTSCOPE_CORPUS.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn corpus(test: &str) -> Option<PathBuf> {
    let path = std::env::var_os("RTSCOPE_CORPUS").map(PathBuf::from);
    if path.is_none() {
        testkit::skip(test, "RTSCOPE_CORPUS is not set");
    }
    path
}

fn report(words: &[&str], trace: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("report").args(words);
    command.args(["--as", "lttng-analyses", "--gmt"]).arg(trace);
    command.output().expect("rtscope starts")
}

/// Reads a file of the corpus, compressed or not.
fn expected(path: &Path) -> String {
    let zipped = PathBuf::from(format!("{}.gz", path.display()));
    if !zipped.exists() {
        return std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let output = Command::new("gzip").arg("-dc").arg(&zipped).output();
    String::from_utf8(output.expect("gzip starts").stdout).expect("utf-8")
}

/// Lines without the blanks at their ends, which the peer's own tests do not look at.
fn lines(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

#[track_caller]
fn check(found: &str, expect: &str, what: &str) {
    let (found, expect) = (lines(found), lines(expect));
    let differs = |(a, b): (&&str, &&str)| a != b;
    let place = found.iter().zip(&expect).position(differs);
    if let Some(place) = place {
        panic!(
            "{what}: line {}\n  found:  {}\n  expect: {}",
            place + 1,
            found[place],
            expect[place]
        );
    }
    assert_eq!(found.len(), expect.len(), "{what}: number of lines");
}

#[test]
fn the_integration_tests_of_the_peer_have_their_text() {
    let Some(corpus) = corpus("corpus_reports") else {
        return;
    };
    let folder = corpus.join("lttng-analyses");
    for (words, trace, file) in [
        (&["cputop"][..], "CpuTest.test_cputop", "cputop"),
        (&["iousagetop"], "IoTest.test_iousagetop", "iousagetop"),
        (
            &["iolatencytop"],
            "IoTest.test_iolatencytop",
            "iolatencytop",
        ),
        (
            &["irqstats", "--no-intersection"],
            "IntersectTest.test_disable_intersect",
            "disable_intersect",
        ),
    ] {
        let output = report(words, &folder.join("traces").join(trace));
        let text = String::from_utf8(output.stdout).expect("utf-8");
        let expect = expected(&folder.join(format!("expected/{file}.txt")));
        check(&text, &expect, file);
    }
    let apart = folder.join("traces/IntersectTest.test_no_intersection");
    let output = report(&["lttng-irqstats"], &apart);
    let text = String::from_utf8(output.stderr).expect("utf-8");
    let expect = expected(&folder.join("expected/no_intersection.txt"));
    let (found, expect) = (text.to_lowercase(), expect.to_lowercase());
    assert!(found.contains(expect.trim()), "{found}");
    assert_eq!(output.status.code(), Some(1));
}

/// The peer does not know the names that softirqs have since LTTng 2.8; see `irq` below.
const SAME: [&str; 12] = [
    "cputop",
    "schedtop",
    "schedlog",
    "schedstats",
    "schedfreq",
    "iousagetop",
    "iolatencytop",
    "iolatencystats",
    "iolatencyfreq",
    "iolog",
    "memtop",
    "syscallstats",
];

#[test]
fn a_real_trace_has_the_text_of_the_peer() {
    let Some(corpus) = corpus("corpus_reports") else {
        return;
    };
    let trace = corpus.join("tracecompass/many-threads");
    for name in SAME {
        let output = report(&[name], &trace);
        let text = String::from_utf8(output.stdout).expect("utf-8");
        let expect = expected(&corpus.join(format!("expected/many-threads/text/{name}.txt")));
        check(&text, &expect, name);
    }
}

#[test]
fn interrupts_are_those_of_the_peer_and_softirqs_come_on_top() {
    let Some(corpus) = corpus("corpus_reports") else {
        return;
    };
    let trace = corpus.join("tracecompass/many-threads");
    for (name, softirq) in [("irqstats", "Soft IRQ"), ("irqlog", "SoftIRQ")] {
        let output = report(&[name], &trace);
        let text = String::from_utf8(output.stdout).expect("utf-8");
        assert!(text.contains(softirq), "{name}");
        let hard = match name {
            "irqstats" => text
                .split("\nSoft IRQ")
                .next()
                .expect("a first part")
                .to_owned(),
            _ => text
                .lines()
                .filter(|line| !line.contains(softirq))
                .fold(String::new(), |all, line| all + line + "\n"),
        };
        let expect = expected(&corpus.join(format!("expected/many-threads/text/{name}.txt")));
        check(&hard, &expect, name);
    }
}
