//! What is judged as a test suite, which CI systems read.

use std::fmt::Write;

use crate::xml::escaped;

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// It is as it should be.
    Passed,
    /// It is not.
    Failed,
    /// Nobody can say.
    Unsure,
}

/// A test: its name, what became of it, and why.
pub type Case = (String, CaseOutcome, String);

/// A suite with these tests; `basis` is what all of them rest on.
pub fn junit(suite: &str, cases: &[Case], basis: &str) -> String {
    let count = |wanted: CaseOutcome| {
        let all = cases.iter();
        all.filter(|(_, outcome, _)| *outcome == wanted).count()
    };
    let (failures, errors) = (count(CaseOutcome::Failed), count(CaseOutcome::Unsure));
    let (suite, tests) = (escaped(suite), cases.len());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{suite}\" tests=\"{tests}\" \
         failures=\"{failures}\" errors=\"{errors}\">\n"
    );
    for (name, outcome, why) in cases {
        let (name, why) = (escaped(name), escaped(why));
        let inside = match outcome {
            CaseOutcome::Passed => format!("<system-out>{why}</system-out>"),
            CaseOutcome::Failed => format!("<failure message=\"{why}\"/>"),
            CaseOutcome::Unsure => format!("<error message=\"{why}\"/>"),
        };
        let _ = writeln!(
            out,
            "  <testcase classname=\"{suite}\" name=\"{name}\">{inside}</testcase>"
        );
    }
    let _ = writeln!(
        out,
        "  <system-out>{}</system-out>\n</testsuite>",
        escaped(basis)
    );
    out
}
