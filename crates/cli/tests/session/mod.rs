//! A session called `night`, with a runtime folder of its own; stopped when a test ends.

#![allow(dead_code)] // each test file uses its part

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::recorded::Scene;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

pub struct Night {
    pub scene: Scene,
}

impl Night {
    pub fn new() -> Night {
        Night {
            scene: Scene::new(),
        }
    }

    /// The folder of its archives.
    pub fn output(&self) -> PathBuf {
        self.scene.beside("archives")
    }

    /// Its archives, the first one first.
    pub fn archives(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.output()).expect("archives");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut archives: Vec<_> = paths.filter(|path| path.is_dir()).collect();
        archives.sort();
        archives
    }

    /// Where sessions are found again.
    pub fn runtime(&self) -> PathBuf {
        self.scene.beside("runtime/sessions")
    }

    /// `rtscope record` with these words.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(RTSCOPE);
        command.arg("record").args(words);
        self.in_scene(command)
    }

    fn in_scene(&self, mut command: Command) -> Command {
        command.env("RTSCOPE_DIR", self.scene.shared());
        command.env("RTSCOPE_RUNTIME_DIR", self.scene.beside("runtime"));
        command.env_remove("RTSCOPE_EVENTS");
        command
    }

    /// The exit code of a verb, and what it said.
    pub fn ends(&self, verb: &str, words: &[&str]) -> (i32, String) {
        let mut command = self.command(&[verb, "night"]);
        if verb == "start" {
            command.arg("-o").arg(self.output());
        }
        let output = command.args(words).output().expect("rtscope starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap_or(-1), text + &said)
    }

    /// What a verb says that must succeed.
    pub fn says(&self, verb: &str, words: &[&str]) -> String {
        let (code, said) = self.ends(verb, words);
        assert_eq!(code, 0, "{verb}: {said}");
        said
    }

    /// What a verb says that must fail, in three parts.
    pub fn fails(&self, verb: &str, words: &[&str]) -> String {
        let (code, said) = self.ends(verb, words);
        assert_eq!(code, 1, "{verb}: {said}");
        assert!(said.contains("found:") && said.contains("fix:"), "{said}");
        said
    }

    /// What another verb says in the scene; losses may have been found.
    pub fn rtscope(&self, words: &[&str]) -> String {
        let mut command = Command::new(RTSCOPE);
        command.args(words);
        let output = self.in_scene(command).output().expect("rtscope starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// How it is.
    pub fn status(&self) -> Value {
        let (code, said) = self.ends("status", &["--json"]);
        let status: Value = serde_json::from_str(&said).expect("JSON");
        let expect = if status["error"].is_null() { 0 } else { 3 };
        assert_eq!(code, expect, "{said}");
        assert_eq!(status["schema"], "rtscope.session");
        status
    }

    /// How it is as soon as it is so.
    pub fn await_status(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        loop {
            let status = self.status();
            if is_so(&status) {
                return status;
            }
        }
    }

    /// Waits until what happened before now is on the disk.
    pub fn await_written(&self) {
        let now = monotonic_ns();
        let written = || {
            let entries = std::fs::read_dir(self.output()).into_iter().flatten();
            entries.flatten().find_map(|entry| {
                let bytes = std::fs::read(entry.path().join(".written-until")).ok()?;
                Some(i64::from_le_bytes(bytes.try_into().ok()?))
            })
        };
        while written().is_none_or(|until| until < now) {
            std::thread::yield_now();
        }
    }

    /// Waits until its process is gone.
    pub fn await_death(&self) {
        while self.ends("status", &[]).0 == 0 {
            std::thread::yield_now();
        }
    }

    /// babeltrace2 reads an archive without a warning.
    pub fn check_babeltrace(&self, test: &str, archive: &str) {
        let path = self.output().join(archive);
        let Ok(output) = Command::new("babeltrace2").arg(&path).output() else {
            testkit::skip(test, "babeltrace2 is not installed");
            return;
        };
        assert!(output.status.success(), "{archive}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{archive}");
    }
}

/// CLOCK_MONOTONIC, in nanoseconds.
pub fn monotonic_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// No session outlives its test.
impl Drop for Night {
    fn drop(&mut self) {
        let _ = self.command(&["stop", "night"]).output();
    }
}

/// The numbers in a trace, in its order.
pub fn numbers(trace: &Path) -> Vec<u64> {
    let output = Command::new(RTSCOPE).arg("cat").arg(trace).output();
    let output = output.expect("rtscope cat");
    // 3: there are losses.
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 3)), "{code:?}: {trace:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |line: &str| {
        let (_, behind) = line.split_once("{ i = ")?;
        behind.split(' ').next()?.parse().ok()
    };
    text.lines().filter_map(number).collect()
}
