//! The quick gate: rules, format, lint, unit tests. Under a minute when warm.

use std::path::Path;

use anyhow::Result;

use crate::{deps, fuzz, run, test, tidy};

/// Runs every step; the first that fails ends it.
pub fn run(root: &Path) -> Result<()> {
    static_checks(root)?;
    let outcome = test::unprivileged(root, None)?;
    eprint!("{}", outcome.reasons());
    let tally = outcome.tally;
    eprintln!(
        "check: {} passed, {} failed, {} skipped",
        tally.passed, tally.failed, tally.skipped
    );
    anyhow::ensure!(tally.failed == 0, "unit tests failed");
    fuzz::smoke(root)?;
    Ok(())
}

/// All that needs no test to run.
pub fn static_checks(root: &Path) -> Result<()> {
    deps::run(root)?;
    tidy::run(root)?;
    run::must_succeed(run::cargo(root).args(["fmt", "--all", "--check"]))?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ];
    run::must_succeed(run::cargo(root).args(clippy))
}
