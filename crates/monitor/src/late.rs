//! Activations that were over a limit: what a watch beside the monitor said of each, with its
//! ledger and the snapshot that proves it.

use event::{Cpu, Duration, Prio};
use serde_json::{Value, json};

use crate::task::Task;

/// The longest of an interval that stay; the others are in the watch's log.
pub(crate) const LATE_MAX: usize = 32;
/// Lines of a ledger and of advice that stay.
const LINES_MAX: usize = 16;
/// Letters of a text that stay.
const TEXT_MAX: usize = 1024;
/// The watch and the monitor read the clock one after the other, and learn at different times by
/// how much the wall clock is ahead.
const APART_MAX: Duration = Duration::from_ms(1);

/// An activation over the limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Late {
    /// When it ended, on the wall clock.
    pub at_ns: i64,
    /// From its origin to there.
    pub latency: Duration,
    /// Who was late.
    pub victim: Option<Task>,
    /// Where it ended.
    pub cpu: Option<Cpu>,
    /// The signature of its cause: the same of all that were late for this reason.
    pub cause: String,
    /// Whether the ledger proves it.
    pub proven: bool,
    /// Who did it, in a sentence.
    pub sentence: String,
    /// Where its time went, in words, the longest first.
    pub ledger: Vec<(String, Duration)>,
    /// What to change: commands.
    pub advice: Vec<String>,
    /// The folder of its snapshot.
    pub snapshot: Option<String>,
}

impl Late {
    /// Of a line of `rtscope watch --json`, when it is a hit; `wall_ns` is what the wall clock is
    /// ahead of CLOCK_MONOTONIC.
    pub fn of_hit(line: &Value, wall_ns: i64) -> Option<Late> {
        let hit = (line["type"] == "hit").then(|| &line["hit"])?;
        // Whoever still waits is told again when it is over.
        if hit["end_kind"] == "waiting" {
            return None;
        }
        let diagnosis = &line["diagnosis"];
        let mut activations = diagnosis["activations"].as_array().into_iter().flatten();
        let found = activations
            .position(|late| late["hit"]["id"] == hit["id"])
            .map(|place| (place, &diagnosis["activations"][place]));
        let group = found.and_then(|(place, _)| {
            let mut groups = diagnosis["groups"].as_array()?.iter();
            let has = |member: &Value| member.as_u64() == Some(place as u64);
            groups.find(|group| {
                group["members"]
                    .as_array()
                    .is_some_and(|m| m.iter().any(has))
            })
        });
        let (verdict, cause) = match group {
            Some(group) => (&group["verdict"], group["signature"].as_str()),
            None => (&Value::Null, None),
        };
        let ledger = found.map_or(&Value::Null, |(_, late)| &late["ledger"]["sums"]);
        let term = |sum: &Value| {
            let ns = sum["duration_ns"].as_i64()?;
            Some((text(&sum["text"]), Duration::from_ns(ns)))
        };
        let mut ledger: Vec<_> = list(ledger).filter_map(term).collect();
        ledger.sort_by_key(|(_, duration)| std::cmp::Reverse(*duration));
        ledger.truncate(LINES_MAX);
        let commands = list(&verdict["advice"]).map(|advice| text(&advice["command"]));
        let steps = list(&hit["steps"]);
        let cpu = steps.last().and_then(|step| step["cpu"].as_u64());
        Some(Late {
            at_ns: hit["end_ns"].as_i64()?.saturating_add(wall_ns),
            latency: Duration::from_ns(hit["latency_ns"].as_i64()?),
            victim: victim(&hit["task"]),
            cpu: cpu.map(|cpu| Cpu(cpu as u32)),
            cause: cause.unwrap_or_default().to_owned(),
            proven: verdict["conclusive"] == true,
            sentence: text(&verdict["sentence"]),
            ledger,
            advice: commands
                .filter(|one| !one.is_empty())
                .take(LINES_MAX)
                .collect(),
            snapshot: line["snapshot"]["path"].as_str().map(str::to_owned),
        })
    }

    /// The ledger as the store and the export have it: pairs of words and nanoseconds.
    pub(crate) fn ledger_json(&self) -> Value {
        let terms = self.ledger.iter();
        terms
            .map(|(text, time)| json!([text, time.as_ns()]))
            .collect()
    }

    /// What [`Late::ledger_json`] wrote; what is none is left out.
    pub(crate) fn ledger_of(text: &str) -> Vec<(String, Duration)> {
        let pairs: Value = serde_json::from_str(text).unwrap_or_default();
        let pair = |pair: &Value| {
            let ns = pair[1].as_i64()?;
            Some((pair[0].as_str()?.to_owned(), Duration::from_ns(ns)))
        };
        list(&pairs).filter_map(pair).collect()
    }

    /// Whether it is the activation of this task that went on, or ended, at this instant.
    pub(crate) fn is_of(&self, victim: Option<&Task>, at_ns: i64) -> bool {
        let (Some(own), Some(victim)) = (&self.victim, victim) else {
            return false;
        };
        let (slack, end) = (APART_MAX.as_ns(), self.at_ns);
        let begin = end.saturating_sub(self.latency.as_ns());
        let during = begin.saturating_sub(slack)..=end.saturating_add(slack);
        own.tid == victim.tid && during.contains(&at_ns)
    }
}

/// As pages and exports have it.
pub(crate) fn late_json(late: &Late) -> Value {
    json!({
        "at_ns": late.at_ns,
        "latency_ns": late.latency.as_ns(),
        "victim": late.victim.as_ref().map(task_json),
        "cpu": late.cpu.map(|cpu| cpu.0),
        "cause": late.cause,
        "proven": late.proven,
        "sentence": late.sentence,
        "ledger": late.ledger_json(),
        "advice": late.advice,
        "snapshot": late.snapshot,
    })
}

/// A task as pages and exports have it.
pub(crate) fn task_json(task: &Task) -> Value {
    json!({ "tid": task.tid, "prio": task.prio, "name": task.name })
}

fn victim(task: &Value) -> Option<Task> {
    Some(Task {
        tid: i32::try_from(task["tid"].as_i64()?).ok()?,
        prio: Prio::from_lttng(i32::try_from(task["prio"].as_i64()?).ok()?).0,
        name: text(&task["comm"]),
    })
}

fn list(value: &Value) -> std::slice::Iter<'_, Value> {
    value
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_default()
        .chars()
        .take(TEXT_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Value {
        let task = json!({ "tid": 7, "comm": "loop", "prio": -51, "priority": "rt 50" });
        json!({
            "type": "hit",
            "hit": {
                "id": 3, "end_kind": "switch_in", "end_ns": 5_000_000, "latency_ns": 2_000_000,
                "task": task, "steps": [{ "cpu": 0 }, { "cpu": 1 }],
            },
            "snapshot": { "path": "/s/hit-0003" },
            "diagnosis": {
                "activations": [{ "hit": null }, {
                    "hit": { "id": 3 },
                    "ledger": { "sums": [
                        { "text": "wait", "duration_ns": 100_000 },
                        { "text": "hog ran", "duration_ns": 1_900_000 },
                    ] },
                }],
                "groups": [
                    { "signature": "other", "members": [0], "verdict": {} },
                    { "signature": "run_queue_wait:hog", "members": [1], "verdict": {
                        "sentence": "hog ran ahead of it", "conclusive": true,
                        "advice": [{ "command": "taskset -pc 0 9" }, { "command": null }],
                    } },
                ],
            },
        })
    }

    #[test]
    fn a_hit_of_a_watch_keeps_its_ledger_its_advice_and_its_snapshot() {
        let late = Late::of_hit(&line(), 1_000).expect("a hit");
        assert_eq!(
            (late.at_ns, late.latency),
            (5_001_000, Duration::from_ms(2))
        );
        let victim = late.victim.clone().expect("a task");
        assert_eq!(
            (victim.tid, victim.prio, victim.name.as_str()),
            (7, 49, "loop")
        );
        assert_eq!((late.cpu, late.proven), (Some(Cpu(1)), true));
        assert_eq!(late.cause, "run_queue_wait:hog");
        assert_eq!(
            late.ledger[0],
            ("hog ran".to_owned(), Duration::from_us(1900))
        );
        assert_eq!(late.advice, ["taskset -pc 0 9"]);
        assert_eq!(late.snapshot.as_deref(), Some("/s/hit-0003"));
        assert_eq!(
            Late::ledger_of(&late.ledger_json().to_string()),
            late.ledger
        );
    }

    #[test]
    fn a_hit_without_a_snapshot_proves_nothing_and_other_lines_are_none() {
        let mut line = line();
        line["diagnosis"] = Value::Null;
        line["snapshot"] = Value::Null;
        let late = Late::of_hit(&line, 0).expect("a hit");
        assert!(!late.proven && late.ledger.is_empty() && late.snapshot.is_none());
        line["hit"]["end_kind"] = "waiting".into();
        assert_eq!(Late::of_hit(&line, 0), None);
        assert_eq!(Late::of_hit(&json!({ "type": "end" }), 0), None);
        assert_eq!(Late::of_hit(&json!([1]), 0), None);
    }
}
