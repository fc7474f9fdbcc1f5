//! Runs all tests and ends with why each failed one did, and with one line that says how many
//! passed, failed and were skipped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::harness::{Failure, Report, Tally};
use crate::run::Profile;
use crate::scenarios;
use crate::scope::Scope;
use crate::vm::{self, End};
use crate::{lock, rules, run};

/// How often a repeated end-to-end test runs, read by the tests.
const RUNS: &str = "RTSCOPE_RUNS";
/// In `make test`, of tests with privilege, and in `make test-all`.
const RUNS_OF_CORE: &str = "4";
const RUNS_OF_ALL: &str = "200";
/// File to which `testkit::skip` appends a line for each test that could not run here.
const SKIPS: &str = "RTSCOPE_SKIPS";

/// Runs everything in `scope`.
pub fn run(root: &Path, scope: Scope) -> Result<ExitCode> {
    rules::quick(root)?;
    let skips = std::env::temp_dir().join(format!("rtscope-skips-{}", std::process::id()));
    std::fs::write(&skips, "").with_context(|| format!("cannot write {}", skips.display()))?;
    let mut stages = Stages::begin();
    let outcome = run_counted(root, scope, &skips, &mut stages);
    let skipped = std::fs::read_to_string(&skips).unwrap_or_default();
    std::fs::remove_file(&skips).ok();
    let mut outcome = outcome?;

    for line in skipped.lines() {
        eprintln!("skipped: {line}");
        // A test that skipped itself returned, so the harness counted it as passed.
        outcome.tally.passed = outcome.tally.passed.saturating_sub(1);
        outcome.tally.skipped += 1;
    }
    let laboratory = laboratory(root, scope);
    stages.end("other kernels");
    let adversaries = adversaries(root, scope);
    stages.end("drawn faults");
    // Behind all that the laboratory prints: who sees only the end of the output sees why.
    print!("{}", outcome.reasons());
    let mut tally = outcome.tally;
    tally.add(laboratory?);
    tally.add(adversaries?);
    println!("took {}", stages.text());
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

/// How long each stage of a run took: who makes it shorter sees where.
struct Stages {
    begin: Instant,
    seconds: Vec<(&'static str, u64)>,
}

impl Stages {
    fn begin() -> Stages {
        Stages {
            begin: Instant::now(),
            seconds: Vec::new(),
        }
    }

    /// The stage that is called so ends now, and another one begins.
    fn end(&mut self, stage: &'static str) {
        self.seconds.push((stage, self.begin.elapsed().as_secs()));
        self.begin = Instant::now();
    }

    fn text(&self) -> String {
        let stages = self.seconds.iter();
        let stages: Vec<String> = stages
            .map(|(stage, seconds)| format!("{stage} {seconds} s"))
            .collect();
        stages.join(", ")
    }
}

/// How all tests ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many.
    pub tally: Tally,
    /// Why tests failed that passed when they were repeated.
    repeated: Vec<Failure>,
    /// Why the others failed.
    failures: Vec<Failure>,
}

impl Outcome {
    /// The failed tests, each with the words that it ended with.
    pub fn reasons(&self) -> String {
        let once = self.repeated.iter();
        let once = once.map(|failure| failure.text("failed once, passed when it was repeated"));
        let failed = self.failures.iter().map(|failure| failure.text("failed"));
        once.chain(failed).collect()
    }

    fn add(&mut self, other: Outcome) {
        self.tally.add(other.tally);
        self.repeated.extend(other.repeated);
        self.failures.extend(other.failures);
    }
}

impl From<Report> for Outcome {
    fn from(report: Report) -> Outcome {
        Outcome {
            tally: report.tally,
            repeated: Vec::new(),
            failures: report.failures,
        }
    }
}

/// The tests of this kernel are built and the lints run while the other tests run, which leave a
/// CPU idle for much of their time.
fn run_counted(root: &Path, scope: Scope, skips: &Path, stages: &mut Stages) -> Result<Outcome> {
    let tests = test_targets(root)?;
    let (with_privilege, without): (Vec<_>, Vec<_>) =
        tests.into_iter().partition(|target| is_privileged(target));

    run::must_succeed(unprivileged(root, &without).arg("--no-run"))?;
    stages.end("build");
    let mut command = unprivileged(root, &without);
    command.env(SKIPS, skips);
    // Those tests' own defaults are the core's.
    if scope == Scope::All && std::env::var_os(RUNS).is_none() {
        command.env(RUNS, RUNS_OF_ALL);
    }
    let mut beside = Vec::new();
    let counted = count(&mut command, || {
        beside.push(start_behind_others(&build_privileged(root, scope))?);
        // In a folder of their own: tests build with cargo, too, and would wait for the lints.
        let mut lints = rules::lint(root);
        lints.env("CARGO_TARGET_DIR", run::target_folder(root).join("lint"));
        beside.push(start_behind_others(&lints)?);
        Ok(())
    });
    for started in beside {
        started.wait()?;
    }
    let again = || {
        let mut command = unprivileged(root, &without);
        command.env(SKIPS, skips).arg("--");
        command
    };
    let mut outcome = repeated_once(counted?.into(), again)?;
    stages.end("tests without privilege");
    if !with_privilege.is_empty() {
        let _held = lock::acquire()?;
        let command = || privileged_command(root, scope, skips);
        let first = count(&mut command(), || Ok(()))?.into();
        outcome.add(repeated_once(first, command)?);
        stages.end("tests of this kernel");
    }
    Ok(outcome)
}

/// Unit tests alone, without what counts for a test run: who waits for a commit runs them.
pub fn units(root: &Path) -> Result<Outcome> {
    let mut command = run::cargo(root);
    command.args(["test", "--workspace", "--lib", "--bins", "--no-fail-fast"]);
    Ok(count(&mut command, || Ok(()))?.into())
}

/// Unit tests, and integration tests that need no privilege.
fn unprivileged(root: &Path, tests: &[String]) -> Command {
    let mut command = run::cargo(root);
    command.args(["test", "--workspace", "--profile", Profile::Tested.name()]);
    command.args(["--lib", "--bins", "--no-fail-fast"]);
    for test in tests {
        command.args(["--test", test]);
    }
    command
}

/// Builds the tests of this kernel, and the program that they run.
fn build_privileged(root: &Path, scope: Scope) -> Command {
    let mut build = run::cargo(root);
    build.args(["test", "--workspace", "--no-run", "--profile"]);
    build.args([scope.profile().name(), "--test", "root_*"]);
    build
}

/// Starts `command` behind whatever else wants a CPU.
fn start_behind_others(command: &Command) -> Result<run::Started> {
    let mut nice = Command::new("nice");
    nice.arg("-n19").arg(command.get_program());
    nice.args(command.get_args());
    let set = command.get_envs();
    nice.envs(set.filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    run::start(&mut nice)
}

/// Repeats those that failed with `command`, when they are few.
fn repeated_once(mut first: Outcome, command: impl Fn() -> Command) -> Result<Outcome> {
    let names = |failures: &[Failure]| -> Vec<String> {
        failures
            .iter()
            .map(|failure| failure.name.clone())
            .collect()
    };
    let failed = names(&first.failures);
    // A test that took its process with it may have left others behind that did not run.
    let repeatable = failed.len() as u64 == first.tally.failed && failed.len() <= REPEATED_MAX;
    if !failed.is_empty() && repeatable {
        eprintln!(
            "repeating once, in case the host disturbed them: {}",
            failed.join(", ")
        );
        let mut again = command();
        again.arg("--exact").args(&failed);
        let second = count(&mut again, || Ok(()))?;
        let still = names(&second.failures);
        if second.tally.failed == still.len() as u64 {
            let is_fixed = |failure: &mut Failure| !still.contains(&failure.name);
            first.repeated = first.failures.extract_if(.., is_fixed).collect();
            first.tally.passed += first.repeated.len() as u64;
            first.tally.failed -= first.repeated.len() as u64;
        }
    }
    Ok(first)
}

/// On a virtual machine the host may take the CPU in the middle of a measurement. So many failures
/// can be its doing; each is repeated once, and said.
const REPEATED_MAX: usize = 3;

/// End-to-end tests on this kernel: alone on the machine, one at a time.
fn privileged_command(root: &Path, scope: Scope, skips: &Path) -> Command {
    let mut command = run::cargo(root);
    command.args([
        "test",
        "--workspace",
        "--profile",
        scope.profile().name(),
        "--no-fail-fast",
        "--test",
        "root_*",
    ]);
    command.args(["--", "--test-threads=1"]);
    command.env(lock::HELD, "1").env(SKIPS, skips);
    if std::env::var_os(RUNS).is_none() {
        command.env(
            RUNS,
            if scope == Scope::All {
                RUNS_OF_ALL
            } else {
                RUNS_OF_CORE
            },
        );
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
    let matrix = vm::test(root, scope)?;
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

/// Faults that are drawn by a seed, here and, in the long run, in guests. A wrong accusation fails.
fn adversaries(root: &Path, scope: Scope) -> Result<Tally> {
    let outcome = scenarios::test(root, scope)?;
    print!("{}", outcome.text);
    Ok(Tally {
        passed: outcome.cells.saturating_sub(outcome.wrong) as u64,
        failed: outcome.wrong as u64,
        skipped: 0,
    })
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

/// Runs a `cargo test`, passes its output on and takes note of it. `begun` is called when the first
/// test begins: from then on cargo does not build, and another one may.
fn count(command: &mut Command, begun: impl FnOnce() -> Result<()>) -> Result<Report> {
    let line = run::show(command);
    eprintln!("+ {line}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| line.clone())?;
    let stdout = child.stdout.take().context("no stdout")?;
    let mut report = Report::default();
    let mut begun = Some(begun);
    for text in BufReader::new(stdout).lines() {
        let text = text?;
        println!("{text}");
        report.line(&text);
        if let Some(begun) = begun.take() {
            begun()?;
        }
    }
    let status = child.wait()?;
    if !status.success() && report.tally.failed == 0 {
        // It did not compile, or a test ended the process before it could report.
        report.tally.failed = 1;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_file_names_its_need_for_privilege() {
        assert!(is_privileged("root_demo"));
        assert!(!is_privileged("help"));
    }
}
