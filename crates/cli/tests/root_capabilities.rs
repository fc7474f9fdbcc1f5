//! What `doctor` says with fewer and fewer capabilities is what happens: each verb that it calls
//! possible runs, each that it calls impossible refuses with the words that it gave. Runs on this
//! kernel and, with RTSCOPE_PROGRAM, in the laboratory's guests.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Given away one after the other, and each alone.
const CAPABILITIES: &[&str] = &[
    "syslog",
    "sys_nice",
    "sys_resource",
    "ipc_lock",
    "sys_ptrace",
    "net_admin",
    "dac_read_search",
    "dac_override",
    "perfmon",
    "bpf",
    "sys_admin",
];
const NOBODY: u32 = 65534;

/// Whose privileges a command has.
struct Privileges {
    /// For messages.
    name: String,
    dropped: Vec<&'static str>,
    uid: u32,
}

impl Privileges {
    fn without(name: &str, dropped: &[&'static str]) -> Privileges {
        Privileges {
            name: name.to_owned(),
            dropped: dropped.to_vec(),
            uid: 0,
        }
    }

    /// Root again and again, with less; then a user without anything. In the core, half of the
    /// capabilities are given away alone, and then half of them together and all.
    fn all() -> Vec<Privileges> {
        let alone = testkit::core_of(CAPABILITIES, CAPABILITIES.len() / 2)
            .iter()
            .map(|name| Privileges::without(&format!("without {name} alone"), &[*name]));
        let count = CAPABILITIES.len();
        let step = if testkit::is_all() { 1 } else { count / 2 };
        let fewer = (1..=count).rev().step_by(step).map(|count| {
            let dropped = &CAPABILITIES[..count];
            Privileges::without(&format!("without {}", dropped.join(", ")), dropped)
        });
        let nobody = Privileges {
            uid: NOBODY,
            ..Privileges::without("nobody", &[])
        };
        let full = Privileges::without("root", &[]);
        [full]
            .into_iter()
            .chain(alone)
            .chain(fewer)
            .chain([nobody])
            .collect()
    }

    fn run(&self, words: &[&str], folder: &Path) -> Output {
        let mut command = Command::new("setpriv");
        if self.uid != 0 {
            command.args(["--reuid", &self.uid.to_string(), "--clear-groups"]);
            command.arg("--inh-caps=-all");
        } else if !self.dropped.is_empty() {
            let dropped: Vec<String> = self.dropped.iter().map(|cap| format!("-{cap}")).collect();
            let dropped = dropped.join(",");
            command.arg(format!("--inh-caps={dropped}"));
            command.arg(format!("--bounding-set={dropped}"));
        }
        command.arg(program()).args(words).current_dir(folder);
        command.output().expect("setpriv starts")
    }
}

fn program() -> String {
    let built = || env!("CARGO_BIN_EXE_rtscope").to_owned();
    std::env::var("RTSCOPE_PROGRAM").unwrap_or_else(|_| built())
}

/// A short run of each verb; none for a verb that is not known here. A shield's plan changes
/// nothing and is open to all: where doctor says no, raising one must be refused.
fn words(verb: &str, possible: bool) -> Option<&'static [&'static str]> {
    Some(match verb {
        "shield" if possible => &["shield", "--cpu", "1"],
        "shield" => &["shield", "--cpu", "1", "--apply"],
        "tune" if !possible => &["tune", "--over", "9s", "chrt -o -p 0 1"],
        "watch" => &["watch", "--over", "9s", "--for", "200ms", "--no-snapshot"],
        "record" => &["record", "--duration", "100ms", "-o", "recording"],
        "measure" => &["measure", "cyclic", "--for", "200ms", "--prio", "60"],
        "demo" => &["demo", "hog"],
        "demo_jack" => &["demo", "jack"],
        "diagnose" => &["diagnose", "../sample"],
        "cat" => &["cat", "../sample"],
        _ => return None,
    })
}

/// These take seconds each, so that they run once for each answer of doctor.
fn is_long(verb: &str) -> bool {
    verb.starts_with("demo")
}

/// A folder that is open to every user, with a recording of this kernel in it.
fn workplace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    open_to_all(folder.path());
    let root = Privileges::without("root", &[]);
    let words = ["record", "--duration", "100ms", "-o", "sample"];
    let output = root.run(&words, folder.path());
    assert!(output.status.success(), "{output:?}");
    let sample = folder.path().join("sample");
    let mut chmod = Command::new("chmod");
    let status = chmod.args(["-R", "a+rX"]).arg(sample).status();
    assert!(status.is_ok_and(|status| status.success()), "chmod");
    folder
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder, open).expect("it is open to all");
}

fn check(privileges: &Privileges, stand: &Value, place: &Path) {
    let verb = stand["verb"].as_str().expect("a verb has a name");
    let possible = !stand["rung"].is_null();
    let Some(words) = words(verb, possible) else {
        return;
    };
    let folder = tempfile::tempdir_in(place).expect("a folder");
    open_to_all(folder.path());
    let output = privileges.run(words, folder.path());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let who = &privileges.name;
    if !possible {
        let lacks = stand["lacks"].as_array().expect("lacks");
        let stops = lacks.iter().find(|lack| lack["effect"] == "stops");
        let lack = stops.unwrap_or_else(|| panic!("{who}: nothing stops {verb}: {stand}"));
        assert_eq!(output.status.code(), Some(1), "{who}: {verb}: {stderr}");
        for part in ["what", "found", "fix"] {
            let text = lack[part].as_str().expect("text");
            assert!(
                stderr.contains(text),
                "{who}: {verb} says no '{text}': {stderr}"
            );
        }
    } else {
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 2 | 3)) && !stderr.contains("error:"),
            "{who}: {verb} should run on {}: {code:?}: {stderr}",
            stand["rung"]
        );
    }
}

#[test]
fn what_doctor_calls_possible_runs_and_what_it_calls_impossible_refuses_in_its_words() {
    let _alone = testkit::privileged();
    let place = workplace();
    if !Privileges::without("root", &["syslog"])
        .run(&["--version"], place.path())
        .status
        .success()
    {
        return testkit::skip("capabilities", "setpriv cannot give capabilities away here");
    }
    let mut seen = BTreeSet::new();
    let mut impossible = 0;
    for privileges in Privileges::all() {
        let output = privileges.run(&["doctor", "--json"], place.path());
        if privileges.uid != 0 && !output.status.success() {
            testkit::skip("capabilities of nobody", "the build folder is closed to it");
            continue;
        }
        let doctor: Value = serde_json::from_slice(&output.stdout).expect("doctor writes JSON");
        for stand in doctor["verbs"].as_array().expect("verbs") {
            let verb = stand["verb"].as_str().unwrap_or_default();
            if words(verb, true).is_none() && seen.insert(verb.to_owned()) {
                let why = "this test knows no command line for it";
                testkit::skip(&format!("capabilities: {verb}"), why);
            }
            impossible += u32::from(stand["rung"].is_null());
            if is_long(verb) && !seen.insert(stand.to_string()) {
                continue;
            }
            check(&privileges, stand, place.path());
        }
    }
    assert!(impossible > 0, "nothing was impossible: nothing was shown");
}
