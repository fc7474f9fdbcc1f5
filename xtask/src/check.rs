//! The quick gate: rules, format, lint, unit tests. Under a minute when warm.

use std::path::Path;

use anyhow::Result;

use crate::{fuzz, rules, test};

/// Runs every step; the first that fails ends it.
pub fn run(root: &Path) -> Result<()> {
    rules::check(root)?;
    let outcome = test::units(root)?;
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
