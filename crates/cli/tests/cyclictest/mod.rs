//! What tests beside the real cyclictest share.

use std::process::{Command, Output};

/// Our program as cyclictest.
pub fn ours() -> Command {
    let mut ours = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    ours.args(["measure", "cyclic", "--cyclictest"]);
    ours
}

/// Whether cyclictest is there in the version that we are like; else the test `name` is skipped.
pub fn is_there(name: &str) -> bool {
    let help = Command::new("cyclictest").arg("--help").output();
    let is_this = |output: &Output| String::from_utf8_lossy(&output.stdout).contains(" V 2.4");
    let is_there = help.is_ok_and(|output| is_this(&output));
    if !is_there {
        testkit::skip(name, "there is no cyclictest 2.4");
    }
    is_there
}

/// Removes what both leave in shared memory where a signal ends them, once the test is over.
pub struct CleanUp;

impl Drop for CleanUp {
    fn drop(&mut self) {
        let files = std::fs::read_dir("/dev/shm")
            .into_iter()
            .flatten()
            .flatten();
        for file in files {
            let name = file.file_name().to_string_lossy().into_owned();
            let pid = name
                .strip_prefix("cyclictest")
                .and_then(|pid| pid.parse::<u32>().ok());
            // One that still measures keeps its own.
            if pid.is_some_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()) {
                std::fs::remove_file(file.path()).ok();
            }
        }
    }
}

/// Runs of digits as one letter, without the blanks before: what was measured differs each time.
pub fn shape(text: &str) -> String {
    let mut shape = String::new();
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if shape.ends_with('#') => {}
            true => {
                shape.truncate(shape.trim_end_matches(' ').len());
                shape.push('#');
            }
            false => shape.push(letter),
        }
    }
    shape
}
