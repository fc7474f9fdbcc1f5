//! What a watch said of a late activation: a line of its JSON.

use serde_json::Value;

use crate::vm::judge;

/// The signature of an activation that its task's own work made long.
const OWN_WORK: &str = "own work";

/// A late activation, and the verdict on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hit {
    /// The late task.
    pub comm: String,
    pub origin_ns: i64,
    pub end_ns: i64,
    /// The ledger's grade.
    pub grade: String,
    /// Whether somebody or something is accused.
    pub conclusive: bool,
    pub culprits: Vec<Culprit>,
    pub sentence: String,
    /// The snapshot's folder.
    pub snapshot: String,
}

/// One whom the verdict names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Culprit {
    /// The kind of the term.
    pub kind: String,
    /// The task, the function without its offset, the interrupt: whatever is known.
    pub names: Vec<String>,
    /// The task's, or that of one of several; 0: there is none.
    pub tid: i64,
    pub duration_ns: i64,
    /// Who of the chain was kept waiting for a CPU, where that is not the late task.
    pub waiter: String,
}

impl Hit {
    /// Of a line of a watch; none for other lines.
    pub fn parse(line: &str) -> Option<Hit> {
        let value: Value = serde_json::from_str(line).ok()?;
        let diagnosis = value.get("diagnosis").filter(|_| value["type"] == "hit")?;
        let found = judge::hit(diagnosis)?;
        let comm = text(&found.1["hit"]["task"]["comm"]);
        let snapshot = text(&value["snapshot"]["path"]);
        Some(Hit::of(diagnosis, found, comm, snapshot))
    }

    /// All late activations that the diagnosis of a recording told.
    pub fn all(diagnosis: &Value, recording: &str) -> Vec<Hit> {
        let activations = diagnosis["activations"].as_array().into_iter().flatten();
        let of = |found: (usize, &Value)| {
            let comm = text(&found.1["task"]["comm"]);
            let mut hit = Hit::of(diagnosis, found, comm, recording.to_owned());
            hit.by_its_own_ledger(found.1, judge::group_of(diagnosis, found.0));
            hit
        };
        activations.enumerate().map(of).collect()
    }

    /// A group has one verdict, in words and in time that of its worst one: of another one its own
    /// ledger says who had how much.
    fn by_its_own_ledger(&mut self, activation: &Value, group: Option<&Value>) {
        let latency_ns = self.end_ns - self.origin_ns;
        let is_worst = group.is_none_or(|group| group["worst_ns"] == latency_ns);
        // Its own work is a cause by itself, and all of it.
        let is_own = |first: &Culprit| first.kind == "own_run";
        if is_worst || self.culprits.first().is_none_or(is_own) {
            return;
        }
        let sums = activation["ledger"]["sums"]
            .as_array()
            .into_iter()
            .flatten();
        let proven = sums.filter(|sum| sum["kind"] != "unexplained");
        self.culprits = proven.map(Culprit::of).collect();
    }

    /// The activation `found`, with its place among all of the diagnosis, of the task called
    /// `comm`.
    fn of(
        diagnosis: &Value,
        (index, activation): (usize, &Value),
        comm: String,
        snapshot: String,
    ) -> Hit {
        let ns = |key: &str| activation[key].as_i64().unwrap_or_default();
        let mut hit = Hit {
            comm,
            origin_ns: ns("origin_ns"),
            end_ns: ns("end_ns"),
            grade: text(&activation["ledger"]["grade"]),
            snapshot,
            ..Hit::default()
        };
        let Some(group) = judge::group_of(diagnosis, index) else {
            return hit;
        };
        let verdict = &group["verdict"];
        hit.sentence = text(&verdict["sentence"]);
        let culprits = verdict["culprits"].as_array().into_iter().flatten();
        hit.culprits = culprits.map(Culprit::of).collect();
        let is_own = text(&group["signature"]).starts_with(OWN_WORK);
        if is_own {
            // Its term names no task.
            hit.culprits.retain(|culprit| culprit.kind != "own_run");
            hit.culprits.insert(
                0,
                Culprit {
                    kind: "own_run".to_owned(),
                    names: vec![hit.comm.clone()],
                    tid: 0,
                    duration_ns: hit.end_ns - hit.origin_ns,
                    waiter: String::new(),
                },
            );
        }
        // Of one that was in time after all it says so, and accuses nobody.
        let in_time = hit.sentence.contains(" was not late ");
        hit.conclusive = verdict["conclusive"] == true && !hit.culprits.is_empty() && !in_time;
        hit
    }

    /// Of a line of `late.ndjson`: the span of a late activation.
    pub fn told(line: &str) -> Option<(i64, i64)> {
        let value: Value = serde_json::from_str(line).ok()?;
        Some((value["origin_ns"].as_i64()?, value["end_ns"].as_i64()?))
    }

    /// From its origin to its end.
    pub fn span(&self) -> (i64, i64) {
        (self.origin_ns, self.end_ns)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Of the last line of a watch: how many activations it lost, or could not judge.
pub fn counted(line: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(line).ok()?;
    (value["type"] == "end").then_some(())?;
    let counts = ["lost", "dropped", "untracked", "unplaced", "unmeant"];
    let count = |key: &&str| value.get(*key)?.as_u64();
    Some(counts.iter().filter_map(count).sum())
}

/// The same of the diagnosis of a recording.
pub fn unjudged(diagnosis: &Value) -> u64 {
    let counts = ["unjudged", "unwoken", "unpaired", "unknown_wakers"];
    let count = |key: &&str| diagnosis["basis"].get(*key)?.as_u64();
    counts.iter().filter_map(count).sum()
}

impl Culprit {
    fn of(term: &Value) -> Culprit {
        let values = [&term["task"]["comm"], &term["name"], &term["function"]];
        let names = values.into_iter().filter_map(|value| value.as_str());
        let bare = |name: &str| {
            let bare = name.split("+0x").next().unwrap_or(name);
            bare.to_owned()
        };
        Culprit {
            kind: term["kind"].as_str().unwrap_or_default().to_owned(),
            names: names.map(bare).collect(),
            tid: term["task"]["tid"].as_i64().unwrap_or_default(),
            duration_ns: term["duration_ns"].as_i64().unwrap_or_default(),
            waiter: text(&term["waiter"]["comm"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(signature: &str, culprits: &Value) -> String {
        json!({"type": "hit", "snapshot": {"path": "s/hit-0001"}, "diagnosis": {
            "activations": [{"hit": {"task": {"comm": "v"}}, "origin_ns": 10, "end_ns": 90,
                "ledger": {"grade": "complete"}}],
            "groups": [{"members": [0], "signature": signature, "verdict":
                {"conclusive": true, "sentence": "so", "culprits": culprits}}],
        }})
        .to_string()
    }

    #[test]
    fn a_line_is_a_hit_with_all_names_of_those_whom_it_names() {
        let culprits = json!([{"kind": "preemption_off", "function": "f+0x1/0x2 [m]",
            "task": {"comm": "hog"}, "duration_ns": 70}]);
        let hit = Hit::parse(&line("preemption_off:f", &culprits)).unwrap();
        assert_eq!(hit.culprits[0].names, ["hog", "f"]);
        assert_eq!((hit.span(), hit.conclusive), ((10, 90), true));
        assert_eq!(hit.snapshot, "s/hit-0001");
        assert_eq!(Hit::parse(r#"{"type": "end"}"#), None);
    }

    #[test]
    fn what_a_watch_could_not_judge_is_counted_at_its_end() {
        assert_eq!(
            counted(r#"{"type": "end", "lost": 1, "unmeant": 2}"#),
            Some(3)
        );
        assert_eq!(counted(r#"{"type": "hit", "lost": 1}"#), None);
        assert_eq!(counted("no JSON"), None);
    }

    #[test]
    fn of_a_recording_each_activation_has_its_own_time_and_those_who_took_it() {
        let sum = |comm: &str, ns: i64| -> Value {
            let task = json!({"comm": comm});
            json!({"kind": "run_queue_wait", "task": task, "duration_ns": ns})
        };
        let one = |end_ns: i64, comm: &str| {
            json!({"task": {"comm": "v"}, "origin_ns": 0, "end_ns": end_ns,
                "ledger": {"sums": [sum(comm, end_ns - 5)]}})
        };
        let verdict = json!({"conclusive": true, "sentence": "so", "culprits": [sum("a", 85)]});
        let diagnosis = json!({"activations": [one(90, "a"), one(60, "b")], "groups": [
            {"members": [0, 1], "signature": "x", "worst_ns": 90, "verdict": verdict}]});
        let hits = Hit::all(&diagnosis, "recording");
        let found: Vec<_> = hits
            .iter()
            .map(|hit| (&*hit.culprits[0].names[0], hit.culprits[0].duration_ns))
            .collect();
        assert_eq!(found, [("a", 85), ("b", 55)]);
        assert!(hits.iter().all(|hit| hit.conclusive && hit.comm == "v"));
    }

    #[test]
    fn own_work_is_the_victims_own_doing() {
        let culprits = json!([{"kind": "own_run", "duration_ns": 70}]);
        let hit = Hit::parse(&line("own work", &culprits)).unwrap();
        assert!(hit.conclusive);
        let kinds: Vec<_> = hit.culprits.iter().map(|one| one.kind.as_str()).collect();
        assert_eq!(kinds, ["own_run"]);
        let nobody = Hit::parse(&line("unexplained", &json!([]))).unwrap();
        assert!(!nobody.conclusive);
    }
}
