//! Scenarios: a fault each, and whether the verdict on its snapshot agrees with the truth.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::judge::{Answer, Expectation, compare, groundless, hit_end_ns};
use super::{table, verdict};

const TABLE: &str = "tests/vm/scenarios.tsv";
/// What `tests/vm/guest/scenarios.sh` calls every victim.
const VICTIM: &str = "lab-victim";
/// A fault of which the victim's own log is the truth.
const HARMS_ITSELF: &str = "self";
/// The step of the clock in `/proc/uptime`.
const CLOCK_STEP_NS: i64 = 10_000_000;
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

    /// Diagnoses the snapshots that were taken while the row's faults were made, with `program`,
    /// and compares with the truth. `result` is what the guest left.
    pub fn judge(&self, program: &Path, result: &Path) -> Result<Answer> {
        let row = result.join(&self.name);
        let watch = self.watch(result)?;
        let window = window(&read(&row.join("window"))?)?;
        let truth = match self.guest[4].as_str() {
            HARMS_ITSELF => read(&watch.join("victim"))?,
            _ => read(&row.join("truth"))?,
        };
        let mut found: Option<Answer> = None;
        for diagnosis in self.diagnoses(program, &watch)? {
            if !hit_end_ns(&diagnosis).is_some_and(|end_ns| window.contains(&end_ns)) {
                continue;
            }
            let answer = compare(&self.expected, &diagnosis, &truth);
            // One wrong word is one too many; of several right ones the first counts.
            let rank = |answer: &Answer| match answer {
                Answer::Wrong(_) => 0,
                Answer::Right { .. } => 1,
                Answer::Missed(_) | Answer::Silent => 2,
            };
            if found
                .as_ref()
                .is_none_or(|found| rank(&answer) < rank(found))
            {
                found = Some(answer);
            }
        }
        Ok(match (found, self.expected.is_empty()) {
            (Some(answer), _) => answer,
            (None, false) => Answer::Missed("the watch saw no late activation".into()),
            (None, true) => Answer::Silent,
        })
    }

    /// What was said of snapshots, taken at any time in the row's watch, that accuses somebody
    /// where no fault of `watched`, the rows of that watch, was. A row that expects nobody to be
    /// accused judges its own window.
    pub fn groundless(&self, watched: &[&Scenario], result: &Path) -> Result<Vec<String>> {
        let watch = self.watch(result)?;
        let mut truth = read(&watch.join("victim"))?;
        let mut judged = Vec::new();
        for row in watched {
            truth += &read(&result.join(&row.name).join("truth"))?;
            if row.expected.is_empty() {
                judged.push(window(&read(&result.join(&row.name).join("window"))?)?);
            }
        }
        let diagnoses = verdict::diagnoses(&watch)?;
        let elsewhere = diagnoses.iter().filter(|diagnosis| {
            let end_ns = hit_end_ns(diagnosis).unwrap_or_default();
            !judged.iter().any(|window| window.contains(&end_ns))
        });
        Ok(elsewhere
            .filter_map(|diagnosis| groundless(diagnosis, &truth))
            .collect())
    }

    /// The folder of the watch that the row shares.
    pub fn watch(&self, result: &Path) -> Result<PathBuf> {
        Ok(result.join(read(&result.join(&self.name).join("watch"))?.trim()))
    }

    /// The diagnoses of the snapshots of a watch; the first row of it makes them.
    fn diagnoses(&self, program: &Path, watch: &Path) -> Result<Vec<Value>> {
        let made = verdict::diagnoses(watch)?;
        if !made.is_empty() {
            return Ok(made);
        }
        let over = format!("{}us", self.guest[1]);
        verdict::diagnose(program, watch, &["--task", VICTIM, "--over", &over])?;
        verdict::diagnoses(watch)
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("the guest left no {}", path.display()))
}

/// Two instants in seconds since the boot, a line each, in nanoseconds. The clock shows hundredths,
/// cut off: the second one may be as much later.
fn window(text: &str) -> Result<std::ops::Range<i64>> {
    let instants: Vec<f64> = text
        .lines()
        .map(|line| line.trim().parse::<f64>())
        .collect::<Result<_, _>>()
        .context("no window")?;
    let [begin_s, end_s] = instants[..] else {
        anyhow::bail!("a window of {} instants", instants.len());
    };
    let ns = |seconds: f64| (seconds * 1e9) as i64;
    Ok(ns(begin_s)..ns(end_s) + CLOCK_STEP_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_two_instants_and_the_clocks_step() {
        assert_eq!(
            window("1.50\n2.25\n").unwrap(),
            1_500_000_000..2_260_000_000
        );
        assert!(window("1.50\n").is_err());
    }

    #[test]
    fn the_table_in_the_tree_is_sound() {
        let root = crate::repository();
        let names = |profile: &str| -> Vec<String> {
            let rows = table(&root, "6.1", profile).unwrap();
            rows.into_iter().map(|row| row.name).collect()
        };
        let mut rows = 0;
        for profile in super::super::profile::PROFILES {
            let mut names = names(profile.name);
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count, "{}", profile.name);
            rows += count;
        }
        assert!(rows > 0);
    }
}
