//! An application of the user's in the place of the threads that sleep.

use event::Duration;
use serde_json::{Value, json};

use super::units::us;

/// What was seen of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Its command, word by word.
    pub command: Vec<String>,
    /// Its activations that were judged.
    pub judged: u64,
    /// The longest of them.
    pub longest: Option<Duration>,
    /// To a bucket's width.
    pub median: Option<Duration>,
    /// The same.
    pub p99: Option<Duration>,
    /// How often it said itself that it was late; none where it was not listened to.
    pub said_late: Option<u64>,
    /// Activations that were over the threshold and are not known.
    pub unseen: u64,
    /// Times from release to release, with sleeps that may have been inside the work, that were
    /// over the threshold: no activation tells of them.
    pub slept: u64,
    /// How long it ran while it was watched.
    pub elapsed: Duration,
    /// How long it was to run.
    pub asked: Duration,
    /// How it ended by itself, when it did.
    pub ended: Option<String>,
    /// Whether that was a failure.
    pub failed: bool,
}

impl Workload {
    /// Whether it ended by itself with more than a tenth of the time to go: what it did proves
    /// nothing of the rest.
    fn is_short(&self) -> bool {
        let most_ns = self.asked.as_ns() / 10 * 9;
        self.ended.is_some() && self.elapsed.as_ns() < most_ns
    }

    /// What it says of a budget, or of its own deadline where it was listened to.
    pub(super) fn keeps(&self, budget: Option<Duration>) -> &'static str {
        let is_over = budget.is_some_and(|budget| self.longest.is_some_and(|one| one > budget));
        let has_limit = budget.is_some() || self.said_late.is_some();
        match self.said_late {
            Some(1..) => "fail",
            // It knows its deadline, and says when it is late.
            None if is_over => "fail",
            _ if self.failed || self.unseen > 0 || self.slept > 0 => "inconclusive",
            _ if self.judged == 0 || self.is_short() => "inconclusive",
            _ if has_limit => "pass",
            _ => "none",
        }
    }

    pub(super) fn json(&self, budget: Option<Duration>) -> Value {
        let ns = |one: Option<Duration>| one.map(Duration::as_ns);
        json!({
            "command": self.command,
            "verdict": self.keeps(budget),
            "activations": self.judged,
            "max_ns": ns(self.longest),
            "median_ns": ns(self.median),
            "p99_ns": ns(self.p99),
            "said_late": self.said_late,
            "unseen": self.unseen,
            "slept_over": self.slept,
            "elapsed_ns": self.elapsed.as_ns(),
            "asked_ns": self.asked.as_ns(),
            "short": self.is_short(),
            "ended": self.ended,
            "failed": self.failed,
        })
    }
}

/// An object that is there; what it lacks is null then, also in a file that somebody cut.
pub(super) fn present(value: &Value) -> Option<&Value> {
    value.is_object().then_some(value)
}

/// An application of an evaluation's object as a sentence; none where there was none.
pub(super) fn sentence(evaluation: &Value) -> Option<String> {
    let found = present(&evaluation["workload"])?;
    let words = found["command"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str);
    let command: Vec<&str> = words.collect();
    let mut text = format!(
        "{}: {} activations, the longest {} us",
        command.join(" "),
        found["activations"],
        us(&found["max_ns"])
    );
    if let Some(times) = found["said_late"].as_u64() {
        text += &format!("; it said {times} times that it was late");
    }
    if let Some(ended) = found["ended"].as_str() {
        text += &format!("; it ended by itself: {ended}");
    }
    Some(text)
}

/// Why it proves nothing.
pub(super) fn complaint(evaluation: &Value) -> Option<String> {
    let found = present(&evaluation["workload"])?;
    let why = match (found["failed"].as_bool(), found["unseen"].as_u64()) {
        (Some(true), _) => "the application failed".to_owned(),
        (_, Some(unseen @ 1..)) => {
            format!("{unseen} activations of it could not be judged: late ones may be among them")
        }
        _ if found["slept_over"].as_u64() > Some(0) => format!(
            "it slept between releases, and {} times from one to the end of its work were over the \
             limit if that was inside of it: --until or --trigger",
            found["slept_over"]
        ),
        _ if found["activations"] == 0 => "no activation of the application was judged: it has no \
                                           real-time thread, or --task names none"
            .to_owned(),
        _ if found["short"] == true => format!(
            "the application ended by itself after {} of {}: give --for as long as it runs",
            seconds(&found["elapsed_ns"]),
            seconds(&found["asked_ns"])
        ),
        _ => return None,
    };
    Some(why)
}

fn seconds(ns: &Value) -> String {
    format!("{:.1} s", ns.as_f64().unwrap_or(0.0) / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(longest_us: i64) -> Workload {
        Workload {
            command: vec!["./loop".into(), "-x".into()],
            judged: 10,
            longest: Some(Duration::from_us(longest_us)),
            ..Workload::default()
        }
    }

    #[test]
    fn an_application_is_judged_by_the_budget_or_by_what_it_says_itself() {
        let budget = Some(Duration::from_us(50));
        let check = |workload: Workload, budget: Option<Duration>, expect: &str| {
            assert_eq!(workload.keeps(budget), expect, "{workload:?}");
        };
        check(workload(50), budget, "pass");
        check(workload(51), budget, "fail");
        check(workload(51), None, "none");
        let said = |times: u64| Workload {
            said_late: Some(times),
            ..workload(51)
        };
        check(said(0), None, "pass");
        check(said(0), budget, "pass");
        check(said(1), None, "fail");
        // An application that runs for as long as the evaluation ends a little before it.
        let ended_after = |ms: i64| Workload {
            ended: Some("exit status: 0".into()),
            elapsed: Duration::from_ms(ms),
            asked: Duration::from_ms(3_000),
            ..workload(5)
        };
        check(ended_after(2_950), budget, "pass");
        let unlike = [
            Workload {
                failed: true,
                ..workload(5)
            },
            Workload {
                unseen: 1,
                ..workload(5)
            },
            Workload {
                slept: 1,
                ..workload(5)
            },
            Workload {
                judged: 0,
                longest: None,
                ..workload(5)
            },
            ended_after(2_000),
        ];
        for one in unlike {
            check(one.clone(), budget, "inconclusive");
            let complaint = complaint(&json!({"workload": one.json(budget)}));
            assert!(complaint.is_some(), "{one:?}");
        }
    }

    #[test]
    fn an_application_is_told_with_its_command_and_how_it_ended() {
        let mut one = workload(51);
        one.said_late = Some(2);
        one.ended = Some("exit status: 0".into());
        let told = sentence(&json!({"workload": one.json(None)}));
        let expect = "./loop -x: 10 activations, the longest 51.0 us; it said 2 times that it was \
                      late; it ended by itself: exit status: 0";
        assert_eq!(told.as_deref(), Some(expect));
        assert_eq!(sentence(&json!({"workload": null})), None);
    }
}
