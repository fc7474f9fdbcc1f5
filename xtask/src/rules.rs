//! What is checked without running a test.

use std::path::Path;

use anyhow::Result;

use crate::{deps, run, tidy};

/// All that needs no test to run.
pub fn check(root: &Path) -> Result<()> {
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
