//! What `measure` writes is what its published schema promises, to a validator that is not ours.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const SCHEMA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/format/measure.schema.json"
);
/// Says what is wrong with the object on stdin; nothing when it is right.
const VALIDATOR: &str = "\
import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
which = {'$ref': '#/$defs/' + sys.argv[2], '$defs': schema['$defs']}
jsonschema.Draft202012Validator.check_schema(schema)
value = json.load(sys.stdin)
jsonschema.Draft202012Validator(schema).is_valid(value) or print('none of them')
for error in jsonschema.Draft202012Validator(which).iter_errors(value):
    print(list(error.absolute_path), error.message[:200])
";

/// What the validator has against `value` as the definition called `which`.
fn objections(which: &str, value: &Value) -> String {
    let mut python = Command::new("python3");
    python.args(["-c", VALIDATOR, SCHEMA, which]);
    let mut child = python
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(value.to_string().as_bytes())
        .expect("python reads");
    drop(stdin);
    let output = child.wait_with_output().expect("python ends");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn measured(words: &str, folder: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("measure").args(words.split_whitespace());
    let output = command.current_dir(folder).output().expect("starts");
    // A late sample is no failure here.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn every_object_of_measure_is_as_its_schema_says() {
    let _alone = testkit::privileged();
    let has = Command::new("python3")
        .args(["-c", "import jsonschema"])
        .status();
    if !has.is_ok_and(|status| status.success()) {
        return testkit::skip("the schema of measure", "python3 has no jsonschema");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let check = |which: &str, words: &str| {
        let found = measured(words, folder.path());
        assert_eq!(objections(which, &found), "", "{words}: {found}");
        found
    };
    check("cyclic", "cyclic --samples 50 --json");
    check("cyclic", "cyclic --samples 50 --phases --json");
    let late = check("cyclic", "cyclic --cpu 0 --for 2s --over 1us --json");
    // Nobody wakes within a microsecond.
    assert!(late["late"]["explained"].as_u64() > Some(0), "{late}");
    assert!(late["late"]["cost_ns"].as_u64() > Some(0), "{late}");
    let ledger = &late["late"]["samples"][0]["diagnosis"];
    assert!(ledger.is_object(), "{}", late["late"]);
    check("gaps", "hw --for 1s --over 1us --json");
    check("gaps", "hw --for 1s --no-events --json");
    check("preempt", "preempt --rounds 50 --json");
    check("deadline", "deadline --for 200ms --json");
    check("queuelat", "queuelat --for 200ms --json");
    check("ssdd", "ssdd --forks 2 --iters 100 --json");
    check("eval", "eval --for 4s --load none --budget 1s --json");

    let mut broken = check("cyclic", "cyclic --samples 5 --json");
    broken["threads"][0]["min_ns"] = "soon".into();
    assert!(objections("cyclic", &broken).contains("min_ns"));
}
