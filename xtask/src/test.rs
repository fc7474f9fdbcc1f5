//! Runs all tests and ends with one line that says how many passed, failed and were skipped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::vm::{self, End};
use crate::{check, lock, run};

/// How much to test.
#[derive(Clone, Copy, PartialEq)]
pub enum Scope {
    /// The core: within 25 minutes cold on two cores.
    Core,
    /// Long stresses and many repetitions too.
    All,
}

/// Tests counted by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// They did what they claim.
    pub passed: u64,
    /// They did not.
    pub failed: u64,
    /// They did not run.
    pub skipped: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// How often a repeated end-to-end test runs, read by the tests.
const RUNS: &str = "RTSCOPE_RUNS";
/// File to which `testkit::skip` appends a line for each test that could not run here.
const SKIPS: &str = "RTSCOPE_SKIPS";

/// Runs everything in `scope`.
pub fn run(root: &Path, scope: Scope) -> Result<ExitCode> {
    check::static_checks(root)?;
    let skips = std::env::temp_dir().join(format!("rtscope-skips-{}", std::process::id()));
    std::fs::write(&skips, "").with_context(|| format!("cannot write {}", skips.display()))?;
    let outcome = run_counted(root, scope, &skips);
    let skipped = std::fs::read_to_string(&skips).unwrap_or_default();
    std::fs::remove_file(&skips).ok();
    let mut tally = outcome?;

    for line in skipped.lines() {
        eprintln!("skipped: {line}");
        // A test that skipped itself returned, so the harness counted it as passed.
        tally.passed = tally.passed.saturating_sub(1);
        tally.skipped += 1;
    }
    tally.add(laboratory(root, scope)?);
    println!(
        "{} passed, {} failed, {} skipped",
        tally.passed, tally.failed, tally.skipped
    );
    Ok(if tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run_counted(root: &Path, scope: Scope, skips: &Path) -> Result<Tally> {
    let mut tally = unprivileged(root, Some(skips))?;
    tally.add(privileged(root, scope, skips)?);
    Ok(tally)
}

/// Unit tests, and integration tests that need no privilege; those that skip themselves append
/// their reason to `skips`.
pub fn unprivileged(root: &Path, skips: Option<&Path>) -> Result<Tally> {
    let mut command = run::cargo(root);
    command.envs(skips.map(|path| (SKIPS, path)));
    command.args(["test", "--workspace", "--lib", "--bins", "--no-fail-fast"]);
    for target in test_targets(root)?
        .iter()
        .filter(|target| !is_privileged(target))
    {
        command.args(["--test", target]);
    }
    Ok(count(&mut command)?.0)
}

/// End-to-end tests on this kernel: alone on the machine, one at a time, with the binary that the
/// demo uses.
fn privileged(root: &Path, scope: Scope, skips: &Path) -> Result<Tally> {
    if !test_targets(root)?
        .iter()
        .any(|target| is_privileged(target))
    {
        return Ok(Tally::default());
    }
    let mut build = run::cargo(root);
    build.args([
        "test",
        "--workspace",
        "--release",
        "--no-run",
        "--test",
        "root_*",
    ]);
    run::must_succeed(&mut build)?;

    let _held = lock::acquire()?;
    let mut command = privileged_command(root, scope, skips);
    let (mut tally, failed) = count(&mut command)?;
    // A test that took its process with it has no name to repeat.
    let repeatable = failed.len() as u64 == tally.failed && failed.len() <= REPEATED_MAX;
    if !failed.is_empty() && repeatable {
        eprintln!(
            "repeating once, in case the host disturbed them: {}",
            failed.join(", ")
        );
        let mut again = privileged_command(root, scope, skips);
        again.arg("--exact").args(&failed);
        let (second, still) = count(&mut again)?;
        for name in failed.iter().filter(|name| !still.contains(name)) {
            eprintln!("repeated: {name} failed once and passed when it was repeated");
        }
        if second.failed == still.len() as u64 {
            let mended = (failed.len() - still.len()) as u64;
            tally.passed += mended;
            tally.failed -= mended;
        }
    }
    Ok(tally)
}

/// On a virtual machine the host may take the CPU in the middle of a measurement. So many failures
/// can be its doing; each is repeated once, and said.
const REPEATED_MAX: usize = 3;

fn privileged_command(root: &Path, scope: Scope, skips: &Path) -> Command {
    let mut command = run::cargo(root);
    command.args([
        "test",
        "--workspace",
        "--release",
        "--no-fail-fast",
        "--test",
        "root_*",
    ]);
    command.args(["--", "--test-threads=1"]);
    command.env(lock::HELD, "1").env(SKIPS, skips);
    if std::env::var_os(RUNS).is_none() {
        command.env(RUNS, if scope == Scope::All { "200" } else { "20" });
    }
    command
}

/// A test file that needs root, tracefs or BPF says so in its name.
fn is_privileged(target: &str) -> bool {
    target.starts_with("root_")
}

/// The laboratory's core set, or all of it: other kernels under an emulator. A claim that held is
/// counted as a test, and so is a cell that failed or could not run.
fn laboratory(root: &Path, scope: Scope) -> Result<Tally> {
    let matrix = vm::test(root, scope == Scope::Core)?;
    print!("{}", matrix.text());
    let mut tally = Tally::default();
    for cell in matrix.cells() {
        tally.add(match &cell.end {
            End::Passed => Tally {
                passed: cell.held as u64,
                ..Tally::default()
            },
            End::Failed(_) => Tally {
                failed: 1,
                ..Tally::default()
            },
            End::Skipped(_) => Tally {
                skipped: 1,
                ..Tally::default()
            },
        });
    }
    Ok(tally)
}

/// The names of all integration tests of the workspace.
fn test_targets(root: &Path) -> Result<Vec<String>> {
    let mut command = run::cargo(root);
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = command.output().context("cannot run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> = list(&metadata["packages"])
        .iter()
        .flat_map(|package| list(&package["targets"]))
        .filter(|target| target["kind"][0] == "test")
        .filter_map(|target| target["name"].as_str().map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Runs a `cargo test`, passes its output on, adds up its result lines and names what failed.
fn count(command: &mut Command) -> Result<(Tally, Vec<String>)> {
    let line = run::show(command);
    eprintln!("+ {line}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| line.clone())?;
    let stdout = child.stdout.take().context("no stdout")?;
    let mut tally = Tally::default();
    let mut failed = Vec::new();
    for text in BufReader::new(stdout).lines() {
        let text = text?;
        println!("{text}");
        tally.add(result_line(&text).unwrap_or_default());
        failed.extend(failed_line(&text).map(str::to_owned));
    }
    let status = child.wait()?;
    if !status.success() && tally.failed == 0 {
        // It did not compile, or a test ended the process before it could report.
        tally.failed = 1;
    }
    Ok((tally, failed))
}

/// Reads `test a::name ... FAILED`.
fn failed_line(text: &str) -> Option<&str> {
    text.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn result_line(text: &str) -> Option<Tally> {
    let counts = text.strip_prefix("test result: ")?.split_once(". ")?.1;
    let of = |name: &str| {
        let part = counts.split("; ").find(|part| part.ends_with(name))?;
        part.split(' ').next()?.parse().ok()
    };
    Some(Tally {
        passed: of("passed")?,
        failed: of("failed")?,
        skipped: of("ignored")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_line_is_counted_and_other_lines_are_not() {
        let check = |text: &str, expect: Option<(u64, u64, u64)>| {
            let expect = expect.map(|(passed, failed, skipped)| Tally {
                passed,
                failed,
                skipped,
            });
            assert_eq!(result_line(text), expect, "{text}");
        };
        let end = "0 measured; 0 filtered out; finished in 0.00s";
        check(
            &format!("test result: ok. 3 passed; 0 failed; 1 ignored; {end}"),
            Some((3, 0, 1)),
        );
        check(
            &format!("test result: FAILED. 3 passed; 2 failed; 0 ignored; {end}"),
            Some((3, 2, 0)),
        );
        check("test time::works ... ok", None);
        check("test result: garbage", None);
    }

    #[test]
    fn a_failed_test_is_known_by_its_line() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(failed_line(text), expect);
        check("test time::works ... FAILED", Some("time::works"));
        check("test time::works ... ok", None);
        check("test result: FAILED. 1 passed; 1 failed; 0 ignored", None);
    }

    #[test]
    fn a_test_file_names_its_need_for_privilege() {
        assert!(is_privileged("root_demo"));
        assert!(!is_privileged("help"));
    }
}
