//! What is checked without running a test.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{deps, run, tidy};

/// All that needs no test to run.
pub fn check(root: &Path) -> Result<()> {
    quick(root)?;
    run::must_succeed(&mut lint(root))
}

/// What takes seconds: nothing is compiled.
pub fn quick(root: &Path) -> Result<()> {
    deps::run(root)?;
    tidy::run(root)?;
    run::must_succeed(run::cargo(root).args(["fmt", "--all", "--check"]))
}

/// What the compiler's lints say of all that there is.
pub fn lint(root: &Path) -> Command {
    let mut command = run::cargo(root);
    command.args(["clippy", "--workspace", "--all-targets", "--quiet"]);
    command.args(["--", "-D", "warnings"]);
    command
}
