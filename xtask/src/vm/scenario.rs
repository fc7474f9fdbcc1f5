//! Scenarios: a fault each, and whether the verdict on its snapshot agrees with the truth.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::table;

const TABLE: &str = "tests/vm/scenarios.tsv";
const COLUMNS: &[&str] = &[
    "name",
    "profile",
    "kernels",
    "over_us",
    "victim",
    "fault",
    "kernel fault",
    "culprit",
];
/// In virtual time a term may differ from the truth by so much, or by so many parts in a hundred.
const ERROR_NS_MAX: i64 = 5_000;
/// A program's own log of its fault ends before its way back into the kernel, and off the CPU.
const ERROR_NS_OF_PROGRAM_MAX: i64 = 10_000;
const ERROR_PERCENT_MAX: i64 = 1;

/// Kinds of terms, each beaten by those before it; tasks come after them all.
const STRONGER: [&str; 4] = ["nmi", "hardirq", "wakeup_delivery", "softirq"];

/// One row of the table.
pub struct Scenario {
    /// Names its folder in the result.
    pub name: String,
    kernels: String,
    profile: String,
    /// The cells that the guest needs.
    guest: [String; 5],
    /// None: nobody may be accused.
    culprit: Option<Expectation>,
}

/// What must be true of the first culprit.
struct Expectation {
    kind: String,
    /// Keys of the culprit's JSON and how their values begin.
    claims: Vec<(String, String)>,
}

/// What became of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The culprit, and how much its term differs from the truth in nanoseconds.
    Right {
        term_ns: i64,
        error_ns: i64,
        allowed_ns: i64,
    },
    /// No fault, and nobody was accused.
    Silent,
    /// Somebody else was accused: the sentence.
    Wrong(String),
    /// The fault was not noticed, or nobody was accused: why.
    Missed(String),
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
            victim,
            fault,
            kernel_fault,
            culprit,
        ] = row
        else {
            anyhow::bail!("{} cells", row.len());
        };
        let guest = [name, over_us, victim, fault, kernel_fault].map(Clone::clone);
        Ok(Scenario {
            name: name.clone(),
            kernels: kernels.clone(),
            profile: profile.clone(),
            guest,
            culprit: expectation(culprit).with_context(|| format!("culprit of {name}"))?,
        })
    }

    fn runs_on(&self, kernel: &str) -> bool {
        self.kernels == "all" || self.kernels.split(',').any(|name| name == kernel)
    }

    /// The line that `tests/vm/guest/scenarios.sh` reads.
    pub fn line(&self) -> String {
        self.guest.join("\t")
    }

    /// Compares the diagnoses `hit-N.json` in `folder` with the truth beside them.
    pub fn judge(&self, folder: &Path) -> Result<Answer> {
        let truth = std::fs::read_to_string(folder.join("truth")).unwrap_or_default();
        let diagnoses = diagnoses(folder)?;
        let answers = diagnoses
            .iter()
            .map(|diagnosis| self.compare(diagnosis, &truth));
        // One wrong word is one too many; of several right ones the first counts.
        let found = answers.min_by_key(|answer| match answer {
            Answer::Wrong(_) => 0,
            Answer::Right { .. } => 1,
            Answer::Missed(_) | Answer::Silent => 2,
        });
        Ok(match (found, &self.culprit) {
            (Some(answer), _) => answer,
            (None, Some(_)) => Answer::Missed("the watch saw no late activation".into()),
            (None, None) => Answer::Silent,
        })
    }

    fn compare(&self, diagnosis: &Value, truth: &str) -> Answer {
        let Some((index, activation)) = hit(diagnosis) else {
            return Answer::Missed("the diagnosis does not show the hit".into());
        };
        let Some(verdict) = verdict_on(diagnosis, index) else {
            return Answer::Missed("the diagnosis has no verdict".into());
        };
        let sentence = verdict["sentence"].as_str().unwrap_or_default().to_owned();
        let accused = verdict["culprits"][0].as_object().is_some();
        let conclusive = verdict["conclusive"] == true && accused;
        let Some(expectation) = &self.culprit else {
            return match conclusive {
                true => Answer::Wrong(sentence),
                false => Answer::Silent,
            };
        };
        let culprit = &verdict["culprits"][0];
        if !conclusive {
            return Answer::Missed(sentence);
        }
        let agrees = |(key, value): &(String, String)| attribute(culprit, key).starts_with(value);
        if overlap_ns(truth, activation) == 0 {
            return Answer::Missed(format!("another delay came first: {sentence}"));
        }
        let kind = kind_of(culprit).to_owned();
        if kind != expectation.kind || !expectation.claims.iter().all(agrees) {
            return Answer::Wrong(sentence);
        }
        let term_ns = culprit["duration_ns"].as_i64().unwrap_or_default();
        // The fault's clock ran on while others beat it, and they have their own terms.
        let true_ns = overlap_ns(truth, activation) - taken_by_stronger_ns(activation, &kind);
        let of_program = kind == "run_queue_wait";
        let floor_ns = match of_program {
            true => ERROR_NS_OF_PROGRAM_MAX,
            false => ERROR_NS_MAX,
        };
        Answer::Right {
            term_ns,
            error_ns: term_ns - true_ns,
            allowed_ns: floor_ns.max(term_ns * ERROR_PERCENT_MAX / 100),
        }
    }
}

impl Answer {
    /// Whether the answer is as good as `exact` time allows.
    pub fn holds(&self, exact: bool) -> bool {
        match self {
            Answer::Right {
                error_ns,
                allowed_ns,
                ..
            } => !exact || error_ns.abs() <= *allowed_ns,
            Answer::Silent => true,
            Answer::Wrong(_) | Answer::Missed(_) => false,
        }
    }
}

/// `KIND KEY=VALUE…`, or `-`.
fn expectation(cell: &str) -> Result<Option<Expectation>> {
    if cell == "-" {
        return Ok(None);
    }
    let mut words = cell.split(' ');
    let kind = words.next().context("no kind")?.to_owned();
    let claims = words.map(|word| {
        let (key, value) = word.split_once('=').context("not KEY=VALUE")?;
        Ok((key.to_owned(), value.to_owned()))
    });
    Ok(Some(Expectation {
        kind,
        claims: claims.collect::<Result<_>>()?,
    }))
}

fn diagnoses(folder: &Path) -> Result<Vec<Value>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("the guest left no {}", folder.display()))?;
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.retain(|path| !path.ends_with("watch.json"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path)?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    };
    paths.iter().map(read).collect()
}

/// The late activation that the watch recorded.
fn hit(diagnosis: &Value) -> Option<(usize, &Value)> {
    let activations = diagnosis["activations"].as_array()?;
    let mut numbered = activations.iter().enumerate();
    numbered.find(|(_, activation)| !activation["hit"].is_null())
}

fn verdict_on(diagnosis: &Value, index: usize) -> Option<&Value> {
    let groups = diagnosis["groups"].as_array()?;
    let has = |group: &&Value| {
        let members = group["members"].as_array();
        members.is_some_and(|members| members.iter().any(|member| *member == index))
    };
    Some(&groups.iter().find(has)?["verdict"])
}

/// A property of a culprit as text; `comm` is its task's.
fn attribute(culprit: &Value, key: &str) -> String {
    let value = match key {
        "comm" => &culprit["task"]["comm"],
        other => &culprit[other],
    };
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn kind_of(term: &Value) -> &str {
    term["kind"].as_str().unwrap_or_default()
}

/// What the ledger gives to all that beats a term of this kind.
fn taken_by_stronger_ns(activation: &Value, kind: &str) -> i64 {
    if kind == "interrupts_off" {
        return 0; // nothing runs in such a section
    }
    let rank = STRONGER.iter().position(|stronger| *stronger == kind);
    let stronger = &STRONGER[..rank.unwrap_or(STRONGER.len())];
    let terms = activation["ledger"]["terms"].as_array();
    let those = terms.into_iter().flatten();
    let those = those.filter(|term| stronger.contains(&kind_of(term)));
    those.filter_map(|term| term["duration_ns"].as_i64()).sum()
}

/// How long the faults of `truth` really lasted inside the activation.
fn overlap_ns(truth: &str, activation: &Value) -> i64 {
    let at = |key: &str| activation[key].as_i64().unwrap_or_default();
    let (origin_ns, end_ns) = (at("origin_ns"), at("end_ns"));
    let span = |line: &str| {
        let mut words = line.rsplit(' ').map(|word| word.parse::<i64>().ok());
        let (fault_end_ns, fault_begin_ns) = (words.next()??, words.next()??);
        Some((fault_end_ns.min(end_ns) - fault_begin_ns.max(origin_ns)).max(0))
    };
    truth.lines().filter_map(span).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scenario(culprit: &str) -> Scenario {
        let row = ["a", "exact", "6.1", "10", "-", "-", "-", culprit].map(str::to_owned);
        Scenario::from_row(&row).unwrap()
    }

    fn diagnosis(kind: &str, function: &str, conclusive: bool) -> Value {
        json!({
            "activations": [
                {"hit": null},
                {"hit": {"id": 1}, "origin_ns": 1_000, "end_ns": 101_000},
            ],
            "groups": [{"members": [1], "verdict": {
                "sentence": "so it was", "conclusive": conclusive,
                "culprits": [{"kind": kind, "function": function, "duration_ns": 90_000}],
            }}],
        })
    }

    #[test]
    fn a_verdict_is_right_when_kind_and_name_agree_with_the_row() {
        let truth = "irqoff f 0 0 91000\nirqoff f 0 500000 600000\n";
        let check = |culprit: &str, conclusive: bool, expect: Answer| {
            let diagnosis = diagnosis("interrupts_off", "f+0x1", conclusive);
            assert_eq!(
                scenario(culprit).compare(&diagnosis, truth),
                expect,
                "{culprit}"
            );
        };
        let right = Answer::Right {
            term_ns: 90_000,
            error_ns: 0,
            allowed_ns: 5_000,
        };
        let wrong = || Answer::Wrong("so it was".into());
        check("interrupts_off function=f", true, right);
        check("interrupts_off function=g", true, wrong());
        check("hardirq", true, wrong());
        check("-", true, wrong());
        check("-", false, Answer::Silent);
        check(
            "interrupts_off function=f",
            false,
            Answer::Missed("so it was".into()),
        );
    }

    #[test]
    fn a_task_is_not_charged_with_the_interrupts_in_its_time() {
        let mut diagnosis = diagnosis("run_queue_wait", "", true);
        diagnosis["activations"][1]["ledger"] = json!({"terms": [
            {"kind": "run_queue_wait", "duration_ns": 90_000},
            {"kind": "hardirq", "duration_ns": 7_000},
            {"kind": "wakeup_delivery", "duration_ns": 3_000},
        ]});
        let expect = Answer::Right {
            term_ns: 90_000,
            error_ns: 0,
            allowed_ns: 10_000,
        };
        let truth = "hog h 0 500 900000\n";
        assert_eq!(
            scenario("run_queue_wait").compare(&diagnosis, truth),
            expect
        );
    }

    #[test]
    fn an_answer_holds_in_exact_time_within_what_is_allowed_and_never_when_wrong() {
        let check = |error_ns: i64, exact: bool, expect: bool| {
            let answer = Answer::Right {
                term_ns: 1,
                error_ns,
                allowed_ns: 5_000,
            };
            assert_eq!(answer.holds(exact), expect, "{answer:?}");
        };
        check(-5_000, true, true);
        check(5_001, true, false);
        check(50_000, false, true);
        assert!(!Answer::Wrong(String::new()).holds(false));
        assert!(!Answer::Missed(String::new()).holds(false));
    }

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
