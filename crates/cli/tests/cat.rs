//! `rtscope cat` beside babeltrace2, word for word, and on damaged traces; needs no privilege.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Words that both programs take.
const WAYS: [&[&str]; 24] = [
    &[],
    &["--clock-cycles"],
    &["--clock-date"],
    &["--clock-gmt"],
    &["--clock-date", "--clock-gmt"],
    &["--clock-seconds"],
    &["--clock-offset=5"],
    &["--clock-offset=-5"],
    &["--clock-offset-ns=-7"],
    &["--no-delta"],
    &["--names=none"],
    &["--names=payload"],
    &["--names=context,header"],
    &["--names=scope"],
    &["--names=all", "--clock-cycles"],
    &["--fields=trace"],
    &["--fields=trace:hostname,trace:domain"],
    &["--fields=trace:procname,trace:vpid,loglevel,emf"],
    &["--fields=all", "--names=all", "--no-delta"],
    &["--stream-intersection"],
    &["--begin=1700000001.05"],
    &["--end=1700000001.05"],
    &["--begin=22:13:21.02", "--end=22:13:21.03", "--clock-gmt"],
    &[
        "--begin=2023-11-14 22:13:21.02",
        "--clock-gmt",
        "--color=never",
    ],
];

fn cat(words: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("cat").args(words).arg(dir);
    command.output().expect("rtscope starts")
}

#[test]
fn each_word_prints_as_babeltrace2_prints_it() {
    let folder = tempfile::tempdir().expect("a folder");
    testkit::write_sample(folder.path()).expect("a trace");
    for words in WAYS {
        let theirs = Command::new("babeltrace2")
            .args(words)
            .arg(folder.path())
            .output();
        let Ok(theirs) = theirs else {
            return testkit::skip("cat as babeltrace2", "babeltrace2 is not installed");
        };
        assert!(theirs.status.success(), "{words:?}: {theirs:?}");
        let ours = cat(words, folder.path());
        // The sample has lost events, where the words include them; stderr tells.
        let code = if ours.stderr.is_empty() { 0 } else { 3 };
        assert_eq!(ours.status.code(), Some(code), "{words:?}");
        let lines = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!theirs.stdout.is_empty(), "{words:?}");
        assert_eq!(lines(&ours), lines(&theirs), "{words:?}");
    }
}

/// On one CPU one thread writes all lines, on several each those of some streams.
#[test]
fn as_many_threads_as_there_are_cpus_print_the_same() {
    let what = "cat on one CPU and on several";
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return testkit::skip(what, "there is one CPU");
    }
    let folder = tempfile::tempdir().expect("a folder");
    testkit::write_sample(folder.path()).expect("a trace");
    for words in [&[][..], &["--clock-cycles"], &["--cpu=1"]] {
        let mut alone = Command::new("taskset");
        alone.args(["-c", "0", env!("CARGO_BIN_EXE_rtscope"), "cat"]);
        let Ok(alone) = alone.args(words).arg(folder.path()).output() else {
            return testkit::skip(what, "taskset is not installed");
        };
        assert!(!alone.stdout.is_empty(), "{words:?}: {alone:?}");
        assert_eq!(cat(words, folder.path()), alone, "{words:?}");
    }
}

#[test]
fn colours_are_for_those_who_insist() {
    let folder = tempfile::tempdir().expect("a folder");
    testkit::write_sample(folder.path()).expect("a trace");
    let check = |words: &[&str], expect: bool| {
        let output = cat(words, folder.path());
        let found = output.stdout.contains(&0x1b);
        assert_eq!(found, expect, "{words:?}");
    };
    check(&[], false);
    check(&["--color=always"], true);
    check(&["--color=never"], false);
}

#[test]
fn a_time_outside_of_the_trace_is_said_with_the_times_that_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    testkit::write_sample(folder.path()).expect("a trace");
    let check = |word: &str, expect: bool| {
        let judge = ["check", "--rule", "response of rt within 1ms"];
        for verb in [&["cat"][..], &["diagnose"], &judge] {
            let mut program = Command::new(env!("CARGO_BIN_EXE_rtscope"));
            let output = program.args(verb).arg(word).arg(folder.path()).output();
            let output = output.expect("it runs");
            let stderr = String::from_utf8_lossy(&output.stderr);
            let found = stderr.contains("no event lies in the time range");
            assert_eq!(found, expect, "{verb:?} {word}: {output:?}");
        }
    };
    check("--begin=+1h", true);
    check("--end=0.001", true);
    check("--begin=+1us", false);
}

#[test]
fn each_trace_may_have_an_offset_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let dirs = ["a", "b"].map(|name| folder.path().join(name));
    for dir in &dirs {
        testkit::write_sample(dir).expect("a trace");
    }
    let b = dirs[1].display().to_string();
    let words = ["--clock-seconds", "--clock-offset=2:-10", "--no-delta", &b];
    let check = |words: &[&str], first: &str, last: &str| {
        let text = cat(words, &dirs[0]).stdout;
        let text = String::from_utf8_lossy(&text);
        assert!(text.starts_with(first), "{text}");
        assert!(
            text.lines().last().unwrap_or("").starts_with(last),
            "{text}"
        );
    };
    // The trace that is named last here is the second one.
    check(&words, "[1699999991.000000000]", "[1700000001.099");
    check(&words[..1], "[1700000001.000000000]", "[1700000001.099");
}

#[test]
fn a_damaged_trace_gives_its_good_part_then_one_error_with_file_and_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    testkit::write_sample(folder.path()).expect("a trace");
    let whole = cat(&[], folder.path()).stdout;
    let stream = fs::read_dir(folder.path())
        .expect("listed")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with("_1"))
        .expect("a stream");
    let bytes = fs::read(&stream).expect("read");
    fs::write(&stream, &bytes[..bytes.len() - 100]).expect("cut");
    let output = cat(&[], folder.path());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!output.stdout.is_empty() && whole.starts_with(&output.stdout));
    let said = String::from_utf8_lossy(&output.stderr);
    let name = stream.file_name().expect("a name").to_string_lossy();
    let place = format!("{name} at byte ");
    let errors = said.lines().filter(|line| line.contains("error:"));
    assert!(errors.count() == 1 && said.contains(&place), "{said}");
    let offset = said
        .split(&place)
        .nth(1)
        .and_then(|rest| rest.split(':').next());
    let offset: usize = offset.expect("an offset").parse().expect("a number");
    assert!(
        (bytes.len() - 200..=bytes.len() - 100).contains(&offset),
        "{said}"
    );
    let output = cat(&["--keep-going"], folder.path());
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&place));
    assert!(output.stdout.len() > whole.len() / 2);
}
