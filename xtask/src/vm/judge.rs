//! Compares one diagnosis with the truth about the fault.

use anyhow::{Context, Result};
use serde_json::Value;

/// In virtual time a term may differ from the truth by so much, or by so many parts in a hundred.
const ERROR_NS_MAX: i64 = 5_000;
/// Kinds of terms that the kernel's injector makes, which logs inside what it does.
const OF_KERNEL: [&str; 4] = ["interrupts_off", "preemption_off", "hardirq", "softirq"];
/// A program's own log of its fault ends before its way back into the kernel, and off the CPU.
const ERROR_NS_OF_PROGRAM_MAX: i64 = 10_000;
const ERROR_PERCENT_MAX: i64 = 1;

/// Kinds of terms, each beaten by those before it; tasks come after them all.
const STRONGER: [&str; 4] = ["nmi", "hardirq", "wakeup_delivery", "softirq"];

/// What must be true of one of the culprits.
#[derive(Debug)]
pub struct Expectation {
    kind: String,
    /// Keys of the culprit's JSON and how their values begin.
    claims: Vec<(String, String)>,
    /// Kind of the lines of the truth that count; all without it.
    truth: Option<String>,
    /// A rule whose advice must be given.
    advice: Option<String>,
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

/// Compares `diagnosis` with the `truth`; without expectations nobody may be accused.
pub fn compare(expected: &[Expectation], diagnosis: &Value, truth: &str) -> Answer {
    let Some((index, activation)) = hit(diagnosis) else {
        return Answer::Missed("the diagnosis does not show the hit".into());
    };
    let Some(verdict) = verdict_on(diagnosis, index) else {
        return Answer::Missed("the diagnosis has no verdict".into());
    };
    let sentence = verdict["sentence"].as_str().unwrap_or_default().to_owned();
    let accused = verdict["culprits"][0].as_object().is_some();
    let conclusive = verdict["conclusive"] == true && accused;
    match (expected, conclusive) {
        ([], true) => return Answer::Wrong(sentence),
        ([], false) => return Answer::Silent,
        (_, false) => return Answer::Missed(sentence),
        (_, true) => {}
    }
    let there = |expectation: &Expectation| expectation.overlap_ns(truth, activation) > 0;
    if !expected.iter().all(there) {
        return Answer::Missed(format!("another delay came first: {sentence}"));
    }
    let mut worst = None;
    for (place, expectation) in expected.iter().enumerate() {
        let culprit = &verdict["culprits"][place];
        if expectation.is_left_open(culprit) {
            return Answer::Missed(format!("the name is left open: {sentence}"));
        }
        if !expectation.agrees(culprit) {
            return Answer::Wrong(sentence);
        }
        if !expectation.is_advised(verdict) {
            return Answer::Missed(format!("the advice is not given: {sentence}"));
        }
        let measured = expectation.measure(culprit, truth, activation);
        let excess = |answer: &Answer| match answer {
            Answer::Right {
                error_ns,
                allowed_ns,
                ..
            } => error_ns.abs() - allowed_ns,
            _ => i64::MIN,
        };
        if worst
            .as_ref()
            .is_none_or(|worst| excess(worst) < excess(&measured))
        {
            worst = Some(measured);
        }
    }
    worst.unwrap_or(Answer::Silent)
}

impl Expectation {
    /// `KIND KEY=VALUE…` or `KIND|KIND KEY=VALUE…`, several separated by ` + `; none for `-`.
    pub fn parse(cell: &str) -> Result<Vec<Expectation>> {
        match cell {
            "-" => Ok(Vec::new()),
            _ => cell.split(" + ").map(Expectation::one).collect(),
        }
    }

    fn one(text: &str) -> Result<Expectation> {
        let mut words = text.split(' ');
        let mut expectation = Expectation {
            kind: words.next().context("no kind")?.to_owned(),
            claims: Vec::new(),
            truth: None,
            advice: None,
        };
        for word in words {
            let (key, value) = word.split_once('=').context("not KEY=VALUE")?;
            let value = value.to_owned();
            match key {
                "truth" => expectation.truth = Some(value),
                "advice" => expectation.advice = Some(value),
                _ => expectation.claims.push((key.to_owned(), value)),
            }
        }
        Ok(expectation)
    }

    /// Whether the kind is right, and what should have been named is not there to be wrong.
    fn is_left_open(&self, culprit: &Value) -> bool {
        let mut claims = self.claims.iter();
        self.is_kind(culprit) && claims.any(|(key, _)| culprit.get(key) == Some(&Value::Null))
    }

    fn agrees(&self, culprit: &Value) -> bool {
        let claim = |(key, value): &(String, String)| attribute(culprit, key).starts_with(value);
        self.is_kind(culprit) && self.claims.iter().all(claim)
    }

    fn is_kind(&self, culprit: &Value) -> bool {
        self.kind.split('|').any(|kind| kind == kind_of(culprit))
    }

    fn is_advised(&self, verdict: &Value) -> bool {
        let rules = verdict["advice"].as_array().into_iter().flatten();
        let advised = |rule: &String| rules.clone().any(|advice| advice["rule"] == *rule.as_str());
        self.advice.as_ref().is_none_or(advised)
    }

    fn measure(&self, culprit: &Value, truth: &str, activation: &Value) -> Answer {
        let term_ns = culprit["duration_ns"].as_i64().unwrap_or_default();
        // The fault's clock ran on while others beat it, and they have their own terms. Of several
        // faults nothing says in which they did.
        let stronger_ns = match self.truth {
            Some(_) => 0,
            None => taken_by_stronger_ns(activation, &self.kind, truth),
        };
        let true_ns = self.overlap_ns(truth, activation) - stronger_ns;
        let floor_ns = match OF_KERNEL.contains(&self.kind.as_str()) {
            true => ERROR_NS_MAX,
            false => ERROR_NS_OF_PROGRAM_MAX,
        };
        Answer::Right {
            term_ns,
            error_ns: term_ns - true_ns,
            allowed_ns: floor_ns.max(term_ns * ERROR_PERCENT_MAX / 100),
        }
    }

    /// How long the faults of `truth` really lasted inside the activation.
    fn overlap_ns(&self, truth: &str, activation: &Value) -> i64 {
        let at = |key: &str| activation[key].as_i64().unwrap_or_default();
        let (origin_ns, end_ns) = (at("origin_ns"), at("end_ns"));
        let counts = |line: &&str| match &self.truth {
            Some(kind) => line.split(' ').next() == Some(kind.as_str()),
            None => true,
        };
        let span = |line: &str| {
            let mut words = line.rsplit(' ').map(|word| word.parse::<i64>().ok());
            let (fault_end_ns, fault_begin_ns) = (words.next()??, words.next()??);
            Some((fault_end_ns.min(end_ns) - fault_begin_ns.max(origin_ns)).max(0))
        };
        truth.lines().filter(counts).filter_map(span).sum()
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

/// The sentence that accuses somebody of an activation during which there was no fault; none when
/// it accuses nobody, or when one of `truth` was there.
pub fn groundless(diagnosis: &Value, truth: &str) -> Option<String> {
    let (index, activation) = hit(diagnosis)?;
    let verdict = verdict_on(diagnosis, index)?;
    let accuses = verdict["conclusive"] == true && verdict["culprits"][0].is_object();
    let at = |key: &str| activation[key].as_i64().unwrap_or_default();
    let (origin_ns, end_ns) = (at("origin_ns"), at("end_ns"));
    let mut faults = spans(truth);
    let there = faults.any(|(begin_ns, over_ns)| begin_ns <= end_ns && origin_ns <= over_ns);
    let sentence = verdict["sentence"].as_str().unwrap_or_default();
    (accuses && !there).then(|| sentence.to_owned())
}

/// When the late activation that the watch recorded ended.
pub fn hit_end_ns(diagnosis: &Value) -> Option<i64> {
    hit(diagnosis)?.1["end_ns"].as_i64()
}

/// The late activation that the watch recorded.
pub fn hit(diagnosis: &Value) -> Option<(usize, &Value)> {
    let activations = diagnosis["activations"].as_array()?;
    let mut numbered = activations.iter().enumerate();
    numbered.find(|(_, activation)| !activation["hit"].is_null())
}

/// The verdict on the activation with this index.
pub fn verdict_on(diagnosis: &Value, index: usize) -> Option<&Value> {
    Some(&group_of(diagnosis, index)?["verdict"])
}

/// The group of the activation with this index: its verdict and its signature.
pub fn group_of(diagnosis: &Value, index: usize) -> Option<&Value> {
    let groups = diagnosis["groups"].as_array()?;
    let has = |group: &&Value| {
        let members = group["members"].as_array();
        members.is_some_and(|members| members.iter().any(|member| *member == index))
    };
    groups.iter().find(has)
}

/// Begin and end of each fault in the injectors' log, in nanoseconds.
pub fn spans(truth: &str) -> impl Iterator<Item = (i64, i64)> + '_ {
    truth.lines().filter_map(|line| {
        let mut words = line.rsplit(' ').map(|word| word.parse::<i64>().ok());
        let (end_ns, begin_ns) = (words.next()??, words.next()??);
        Some((begin_ns, end_ns))
    })
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

/// What the ledger gives to all that beats a term of this kind while a fault lasted. Of a term of
/// several pieces it says only where they lie together.
fn taken_by_stronger_ns(activation: &Value, kind: &str, truth: &str) -> i64 {
    if kind == "interrupts_off" {
        return 0; // nothing runs in such a section
    }
    let rank = STRONGER.iter().position(|stronger| *stronger == kind);
    let stronger = &STRONGER[..rank.unwrap_or(STRONGER.len())];
    let terms = activation["ledger"]["terms"].as_array();
    let those = terms.into_iter().flatten();
    let those = those.filter(|term| stronger.contains(&kind_of(term)));
    let is_beside = |term: &&Value| {
        let at = |key: &str| term["range"][key].as_i64();
        let (Some(begin_ns), Some(end_ns)) = (at("begin_ns"), at("end_ns")) else {
            return true;
        };
        spans(truth).any(|(fault_ns, over_ns)| begin_ns < over_ns && fault_ns < end_ns)
    };
    let those = those.filter(is_beside);
    those.filter_map(|term| term["duration_ns"].as_i64()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
                compare(&Expectation::parse(culprit).unwrap(), &diagnosis, truth),
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
        let right = Answer::Right {
            term_ns: 90_000,
            error_ns: 0,
            allowed_ns: 10_000,
        };
        check("preemption_off|interrupts_off function=f", true, right);
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
    fn a_name_that_is_left_open_is_a_fault_missed_and_nobody_wronged() {
        let mut diagnosis = diagnosis("preemption_off", "", true);
        diagnosis["groups"][0]["verdict"]["culprits"][0]["function"] = Value::Null;
        let expected = Expectation::parse("preemption_off function=f").unwrap();
        let answer = compare(&expected, &diagnosis, "preemptoff f 0 0 91000\n");
        assert!(matches!(answer, Answer::Missed(_)), "{answer:?}");
    }

    #[test]
    fn two_faults_are_right_in_the_verdicts_order_each_with_its_own_truth() {
        let mut diagnosis = diagnosis("run_queue_wait", "", true);
        diagnosis["groups"][0]["verdict"]["culprits"] = json!([
            {"kind": "run_queue_wait", "duration_ns": 60_000},
            {"kind": "interrupts_off", "duration_ns": 30_000},
        ]);
        diagnosis["groups"][0]["verdict"]["advice"] = json!([{"rule": "move-task"}]);
        let truth = "irqoff f 0 0 31000\nhog h 0 32000 92000\n";
        let right = |culprit: &str| {
            let expected = Expectation::parse(culprit).unwrap();
            matches!(
                compare(&expected, &diagnosis, truth),
                Answer::Right { error_ns: 0, .. }
            )
        };
        let (hog, section) = ("run_queue_wait truth=hog", "interrupts_off truth=irqoff");
        assert!(right(&format!("{hog} + {section}")));
        assert!(right(&format!("{hog} advice=move-task + {section}")));
        assert!(!right(&format!("{hog} advice=pray + {section}")));
        assert!(!right(&format!("{section} + {hog}")));
    }

    #[test]
    fn a_task_is_not_charged_with_the_interrupts_in_its_time() {
        let check = |irq_range: Value, truth: &str, expect_ns: i64| {
            let mut diagnosis = diagnosis("run_queue_wait", "", true);
            diagnosis["activations"][1]["ledger"] = json!({"terms": [
                {"kind": "run_queue_wait", "duration_ns": 90_000},
                {"kind": "hardirq", "duration_ns": 7_000, "range": irq_range},
                {"kind": "wakeup_delivery", "duration_ns": 3_000},
            ]});
            let expect = Answer::Right {
                term_ns: 90_000,
                error_ns: expect_ns,
                allowed_ns: 10_000,
            };
            let expectation = Expectation::parse("run_queue_wait").unwrap();
            assert_eq!(compare(&expectation, &diagnosis, truth), expect, "{truth}");
        };
        let (all, later) = ("hog h 0 500 900000\n", "hog h 0 8000 900000\n");
        check(json!(null), all, 0);
        let before = json!({"begin_ns": 1_000, "end_ns": 8_000});
        check(before.clone(), all, 0);
        // Its clock did not run yet, and then 3 us are the delivery's.
        check(before, later, 0);
        check(json!({"begin_ns": 7_000, "end_ns": 9_000}), later, 7_000);
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
}
