//! What the book shows as printed, written anew by the program.

use std::path::Path;

use anyhow::Result;

use crate::run;

/// Read by the tests that hold the book against the program: they write what they find.
const BLESS: &str = "RTSCOPE_BLESS";

/// Writes the reference of flags and reports, the answers, the pictures and the types of the
/// API.
pub fn run(root: &Path) -> Result<()> {
    let tests = [
        ["cli", "--test", "shown_commands", "printed"],
        ["server", "--test", "answers", "the_types_of_the_page"],
    ];
    for test in tests {
        let cargo = &mut run::cargo(root);
        let asked = cargo.args(["test", "--package"]).args(test);
        run::must_succeed(asked.env(BLESS, "1"))?;
    }
    Ok(())
}
