//! Scenarios: a fault each, and whether the verdict on its snapshot agrees with the truth.

use std::path::Path;

use anyhow::{Context, Result};

use super::judge::{Answer, Expectation, compare};
use super::{table, verdict};

const TABLE: &str = "tests/vm/scenarios.tsv";
/// What `tests/vm/guest/scenarios.sh` calls every victim.
const VICTIM: &str = "lab-victim";
const COLUMNS: &[&str] = &[
    "name",
    "profile",
    "kernels",
    "over_us",
    "watch",
    "victim",
    "fault",
    "kernel fault",
    "culprit",
];
/// One row of the table.
pub struct Scenario {
    /// Names its folder in the result.
    pub name: String,
    kernels: String,
    profile: String,
    /// The cells that the guest needs.
    guest: [String; 6],
    /// In the verdict's order; none: nobody may be accused.
    expected: Vec<Expectation>,
}

/// The rows for a kernel and a profile.
pub fn table(repository: &Path, kernel: &str, profile: &str) -> Result<Vec<Scenario>> {
    let rows = table::read(&repository.join(TABLE), COLUMNS)?;
    let scenarios: Vec<Scenario> = rows
        .iter()
        .map(|row| Scenario::from_row(row))
        .collect::<Result<_>>()
        .context(TABLE)?;
    Ok(scenarios
        .into_iter()
        .filter(|scenario| scenario.profile == profile && scenario.runs_on(kernel))
        .collect())
}

impl Scenario {
    fn from_row(row: &[String]) -> Result<Scenario> {
        let [
            name,
            profile,
            kernels,
            over_us,
            watch,
            victim,
            fault,
            kernel_fault,
            culprit,
        ] = row
        else {
            anyhow::bail!("{} cells", row.len());
        };
        let guest = [name, over_us, watch, victim, fault, kernel_fault].map(Clone::clone);
        Ok(Scenario {
            name: name.clone(),
            kernels: kernels.clone(),
            profile: profile.clone(),
            guest,
            expected: Expectation::parse(culprit).with_context(|| format!("culprit of {name}"))?,
        })
    }

    fn runs_on(&self, kernel: &str) -> bool {
        self.kernels == "all" || self.kernels.split(',').any(|name| name == kernel)
    }

    /// The line that `tests/vm/guest/scenarios.sh` reads.
    pub fn line(&self) -> String {
        self.guest.join("\t")
    }

    /// Diagnoses the snapshots in `folder` with `program` and compares with the truth beside them.
    pub fn judge(&self, program: &Path, folder: &Path) -> Result<Answer> {
        let truth = std::fs::read_to_string(folder.join("truth")).unwrap_or_default();
        let over = format!("{}us", self.guest[1]);
        verdict::diagnose(program, folder, &["--task", VICTIM, "--over", &over])?;
        let diagnoses = verdict::diagnoses(folder)?;
        let answers = diagnoses
            .iter()
            .map(|diagnosis| compare(&self.expected, diagnosis, &truth));
        // One wrong word is one too many; of several right ones the first counts.
        let found = answers.min_by_key(|answer| match answer {
            Answer::Wrong(_) => 0,
            Answer::Right { .. } => 1,
            Answer::Missed(_) | Answer::Silent => 2,
        });
        Ok(match (found, self.expected.is_empty()) {
            (Some(answer), _) => answer,
            (None, false) => Answer::Missed("the watch saw no late activation".into()),
            (None, true) => Answer::Silent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_the_tree_is_sound() {
        let root = crate::repository();
        let names = |profile: &str| -> Vec<String> {
            let rows = table(&root, "6.1", profile).unwrap();
            rows.into_iter().map(|row| row.name).collect()
        };
        for profile in super::super::profile::PROFILES {
            let mut names = names(profile.name);
            let count = names.len();
            names.sort();
            names.dedup();
            assert!(count > 0 && names.len() == count, "{}", profile.name);
        }
    }
}
