//! What the book shows as printed, written anew by the program.

use std::path::Path;

use anyhow::Result;

use crate::run;

/// Read by the tests that hold the book against the program: they write what they find.
const BLESS: &str = "RTSCOPE_BLESS";

/// Writes the reference of flags and reports, the answers and the pictures.
pub fn run(root: &Path) -> Result<()> {
    let words = [
        "test",
        "--package",
        "cli",
        "--test",
        "shown_commands",
        "printed",
    ];
    run::must_succeed(run::cargo(root).args(words).env(BLESS, "1"))
}
