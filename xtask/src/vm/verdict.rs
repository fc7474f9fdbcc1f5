//! What a diagnosis says of its hit, as `rtscope diagnose --json` writes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::judge;

/// The late activation that a watch recorded, and the verdict on it.
pub struct Verdict {
    activation: Value,
    verdict: Value,
}

impl Verdict {
    /// Of all snapshots that were diagnosed in `folder`.
    pub fn all(folder: &Path) -> Result<Vec<Verdict>> {
        diagnoses(folder)?.iter().map(Verdict::of_hit).collect()
    }

    /// Of the first of them.
    pub fn first(folder: &Path) -> Result<Verdict> {
        let first = Verdict::all(folder)?.into_iter().next();
        first.with_context(|| format!("no diagnosis in {}", folder.display()))
    }

    fn of_hit(diagnosis: &Value) -> Result<Verdict> {
        let (index, activation) = judge::hit(diagnosis).context("no hit in the diagnosis")?;
        let verdict = judge::verdict_on(diagnosis, index).context("no verdict on the hit")?;
        Ok(Verdict {
            activation: activation.clone(),
            verdict: verdict.clone(),
        })
    }

    /// From the activation's origin to its end.
    pub fn latency_ns(&self) -> i64 {
        self.activation["latency_ns"].as_i64().unwrap_or_default()
    }

    /// Whether the activation and this span of time have an instant in common.
    pub fn overlaps(&self, (begin_ns, end_ns): (i64, i64)) -> bool {
        let at = |key: &str| self.activation[key].as_i64().unwrap_or_default();
        at("origin_ns") <= end_ns && begin_ns <= at("end_ns")
    }

    /// The sentence.
    pub fn sentence(&self) -> &str {
        self.verdict["sentence"].as_str().unwrap_or_default()
    }

    /// Whether somebody is accused.
    pub fn is_conclusive(&self) -> bool {
        self.verdict["conclusive"] == true
    }

    /// The first culprit; null when there is none.
    pub fn culprit(&self) -> &Value {
        &self.verdict["culprits"][0]
    }

    /// The term of the first culprit.
    pub fn culprit_ns(&self) -> i64 {
        self.culprit()["duration_ns"].as_i64().unwrap_or_default()
    }

    /// Whether the chain holds these steps, in this order; a step is its kind and its task's name,
    /// or for an interrupt its number.
    pub fn has_steps(&self, expected: &[(&str, &str)]) -> bool {
        let mut steps = self.activation["steps"].as_array().into_iter().flatten();
        expected.iter().all(|(kind, name)| {
            steps.any(|step| {
                let number = step["id"].as_i64().unwrap_or_default();
                step["kind"] == *kind && (step["comm"] == *name || number.to_string() == *name)
            })
        })
    }
}

/// Diagnoses the snapshots in `folder/snapshots` with `program`, and puts the JSON into `folder`,
/// where [`diagnoses`] finds it.
pub fn diagnose(program: &Path, folder: &Path, options: &[&str]) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder.join("snapshots")) else {
        return Ok(()); // nothing was late
    };
    for entry in entries {
        let snapshot = entry?.path();
        if !snapshot.is_dir() {
            continue;
        }
        let mut command = Command::new(program);
        command.args(["diagnose", "--json"]).args(options);
        let output = command.arg(&snapshot).output();
        let name = snapshot.file_name().context("a snapshot without a name")?;
        let to = folder.join(name).with_extension("json");
        std::fs::write(&to, output.context("cannot start rtscope")?.stdout)
            .with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

/// The diagnoses in `folder`, in the order of their snapshots.
pub fn diagnoses(folder: &Path) -> Result<Vec<Value>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("the guest left no {}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_diagnosis = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("hit-") && name.ends_with(".json")
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_diagnosis).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path)?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    };
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_are_found_in_their_order_by_name_or_number() {
        let step = |kind: &str, comm: &str, id: i64| json!({"kind": kind, "comm": comm, "id": id});
        let verdict = Verdict {
            activation: json!({"steps": [
                step("hardirq", "card", 24), step("waking", "irq/24-card", 90),
                step("switch_in", "irq/24-card", 90),
            ]}),
            verdict: Value::Null,
        };
        let check = |steps: &[(&str, &str)], expect: bool| {
            assert_eq!(verdict.has_steps(steps), expect, "{steps:?}");
        };
        check(&[("hardirq", "24"), ("switch_in", "irq/24-card")], true);
        check(&[("switch_in", "irq/24-card"), ("hardirq", "24")], false);
        check(&[("hardirq", "25")], false);
    }

    #[test]
    fn a_span_is_the_last_two_words_of_a_line() {
        let truth = "hog rt-hog 0 100 350\nnonsense\nirqoff f 0 400 500\n";
        let found: Vec<(i64, i64)> = judge::spans(truth).collect();
        assert_eq!(found, [(100, 350), (400, 500)]);
    }
}
