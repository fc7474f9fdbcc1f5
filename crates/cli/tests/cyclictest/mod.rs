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
