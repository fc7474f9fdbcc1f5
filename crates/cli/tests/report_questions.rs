//! Questions to which a trace has no answer: said, and never printed as an empty success. Needs no
//! privilege.

use std::process::{Command, Output};

/// Runs `report` over the sample trace, which holds requests of an application and no kernel's
/// events; what it says on stderr has these parts.
#[track_caller]
fn check(words: &[&str], code: i32, said: &[&str]) {
    let dir = tempfile::tempdir().expect("a folder");
    let trace = dir.path().join("trace");
    testkit::write_sample(&trace).expect("the sample is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("report").args(words).arg(&trace);
    let output: Output = command.output().expect("rtscope starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {stderr}");
    for part in said {
        assert!(stderr.contains(part), "{words:?}: {stderr}");
    }
    if said.is_empty() {
        assert_eq!(stderr, "", "{words:?}");
    }
}

/// The sample's events up to its hole.
const WHOLE: [&str; 2] = ["--end", "1.01"];
const REQUEST: &str = "a : $evt.$name == \"app:request_begin\" : \
                       $evt.$name == \"app:request_end\" && $evt.id == $begin.$evt.id";
const ENDLESS: &str = "a : $evt.$name == \"app:request_begin\" : $evt.$name == \"never\"";
const NEVER: &str = "a : $evt.$name == \"never\" : $evt.$name == \"app:request_end\"";

#[test]
fn a_period_that_never_closes_or_never_begins_is_said() {
    let periods = |period: &'static str| [&["periodtop", "--period", period], &WHOLE[..]].concat();
    check(&periods(REQUEST), 0, &[]);
    check(&periods(ENDLESS), 3, &["began and none ended", "fix:"]);
    check(&periods(NEVER), 3, &["no period began", "fix:"]);
}

#[test]
fn a_range_outside_of_the_trace_is_said_with_the_traces_own() {
    let beyond = ["intervals", "--begin", "100"];
    check(
        &beyond,
        3,
        &["no event lies in the time range", "goes from"],
    );
    check(
        &["intervals", "--begin", "2", "--end", "1"],
        1,
        &["is empty"],
    );
}

#[test]
fn a_name_that_no_thread_has_is_said() {
    let dependency = ["dependency", "--procname", "nobody"];
    check(&dependency, 3, &["no thread of the trace is 'nobody'"]);
    let rule = ["rtcheck", "--rt", "nobody:20ms:1ms"];
    check(&rule, 3, &["no thread of the trace is 'nobody'"]);
}

#[test]
fn a_filter_on_a_field_that_no_event_has_is_said() {
    let odd = ["intervals", "--filter", "nosuch == 1"];
    let words = [&odd[..], &WHOLE].concat();
    check(&words, 3, &["no event of the trace has a field 'nosuch'"]);
    let odd = ["intervals", "--filter", "$name == \"nosuch\""];
    let words = [&odd[..], &WHOLE].concat();
    check(&words, 3, &["no event of the trace is called 'nosuch'"]);
    let known = ["intervals", "--filter", "$name == \"app:*\""];
    check(&[&known[..], &WHOLE].concat(), 0, &[]);
}
