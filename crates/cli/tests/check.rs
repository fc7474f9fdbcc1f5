//! `rtscope check` as CI calls it: exit codes, JUnit, JSON; needs no privilege.

use std::path::Path;
use std::process::{Command, Output};

fn run(dir: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("check").arg(dir.join("trace")).args(words);
    command.output().expect("rtscope starts")
}

fn sample() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    testkit::write_sample(&dir.path().join("trace")).expect("the sample is written");
    dir
}

/// Requests of the sample trace: number N takes 10 and N microseconds; a hole lies in the middle.
const REQUEST: &str = "period request : $evt.$name == \"app:request_begin\" : \
                       $evt.$name == \"app:request_end\" && $evt.id == $begin.$evt.id";

#[test]
fn the_exit_code_is_the_judgement() {
    let dir = sample();
    let check = |budget: &str, window: &[&str], expect: i32| {
        let words = [&["--rule", REQUEST, "--rule", budget], window].concat();
        let output = run(dir.path(), &words);
        assert_eq!(output.status.code(), Some(expect), "{budget}: {output:?}");
    };
    check("request within 20us", &[], 2);
    // Nobody knows what the lost events were.
    check("request within 1ms", &[], 3);
    check("request within 1ms", &["--end", "1.01"], 0);
    check("request within 12us", &["--end", "1.01"], 2);
    check("nothing within 12us", &[], 1);
    check("request below 12us", &[], 1);
}

#[test]
fn who_stops_reading_early_still_gets_the_judgement() {
    let dir = sample();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("check").arg(dir.path().join("trace"));
    command.args(["--rule", REQUEST, "--rule", "request within 20us"]);
    let status = command.stdout(writer).status().expect("rtscope starts");
    assert_eq!(status.code(), Some(2));
}

#[test]
fn junit_and_json_say_what_the_text_says() {
    let dir = sample();
    let junit = dir.path().join("result.xml");
    let path = junit.to_str().expect("utf-8");
    let words = ["--rule", REQUEST, "--rule", "request within 20us", "--rule"];
    let rest = ["request within 1ms", "--json", "--junit", path];
    let output = run(dir.path(), &[&words[..], &rest[..]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["schema"], "rtscope.check");
    assert_eq!(json["findings"][0]["judgement"], "broken");
    assert_eq!(json["findings"][1]["judgement"], "inconclusive");
    let xml = std::fs::read_to_string(&junit).expect("it was written");
    assert!(
        xml.contains("tests=\"2\" failures=\"1\" errors=\"1\""),
        "{xml}"
    );
    assert!(
        xml.contains("name=\"request within 20us\"><failure message="),
        "{xml}"
    );
}
