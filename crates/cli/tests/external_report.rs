//! Reports of other programs under `rtscope report`; needs no privilege.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Speaks LAMI: counts the files of a trace, and says which range it was given.
const PYTHON: &str = r#"
import json, os, sys
if "--metadata" in sys.argv:
    columns = [{"title": "Range", "class": "string"}, {"title": "Files", "class": "number"}]
    table = {"title": "Files of the trace", "column-descriptions": columns}
    print(json.dumps({"title": "Files", "table-classes": {"files": table}}))
else:
    given = " ".join(word for word in sys.argv[1:] if word.startswith("--"))
    count = {"class": "number", "value": len(os.listdir(sys.argv[-1]))}
    print(json.dumps({"results": [{"class": "files", "data": [[given, count]]}]}))
"#;

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    testkit::write_sample(&dir.path().join("trace")).expect("the sample is written");
    std::fs::write(dir.path().join("files.py"), PYTHON).expect("written");
    dir
}

fn program(dir: &Path, name: &str, script: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, script).expect("written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("may run");
    path
}

fn report(dir: &Path, name: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", dir.display()));
    command
        .args(["report", name])
        .arg(dir.join("trace"))
        .args(words);
    command.output().expect("rtscope starts")
}

#[test]
fn a_python_file_and_a_program_in_the_search_path_are_reports() {
    let dir = folder();
    let python = dir.path().join("files.py");
    let script = format!("#!/bin/sh\nexec python3 {} \"$@\"\n", python.display());
    program(dir.path(), "rtscope-report-files", &script);
    for name in [python.to_str().expect("utf-8"), "files"] {
        let output = report(dir.path(), name, &[]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name}: {output:?}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["Files of the trace", "Range  Files"], "{name}");
        let files = std::fs::read_dir(dir.path().join("trace")).expect("a folder");
        assert_eq!(lines[3].trim(), files.count().to_string(), "{name}");
    }
}

#[test]
fn the_range_is_handed_on_in_nanoseconds_since_1970_and_lami_as_it_is() {
    let dir = folder();
    let python = dir.path().join("files.py");
    let words = ["--begin", "1.5", "--lami"];
    let output = report(dir.path(), python.to_str().expect("utf-8"), &words);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("LAMI");
    // The wall clock at the sample's time zero is 1 700 000 000 s.
    assert_eq!(
        json["results"][0]["data"][0][0],
        "--begin=1700000001500000000"
    );
}

#[test]
fn a_program_that_fails_is_an_error_with_its_own_words() {
    let dir = folder();
    let check = |name: &str, script: &str, expect: &str| {
        program(dir.path(), &format!("rtscope-report-{name}"), script);
        let output = report(dir.path(), name, &[]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(talk.contains(expect), "{name}: {talk}");
    };
    let message = "#!/bin/sh\necho '{\"error-message\": \"no such trace\"}'\n";
    check("failing", message, "no such trace");
    check(
        "talking",
        "#!/bin/sh\necho hello\necho oh no >&2\n",
        "oh no",
    );
    check("other", "#!/bin/sh\necho '{}'\n", "results");
    let output = report(dir.path(), "unheard-of", &[]);
    assert_eq!(output.status.code(), Some(1));
}
