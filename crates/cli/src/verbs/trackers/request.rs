//! Who made a request late: where the time of a reported interval went, from its snapshot.

use bpf_host::trackers::{KeyKind, Tracker};
use capture::watch::TrackerReport;
use event::evidence::TaskRef;
use event::evidence::tracked::Tracked;
use event::{Duration, Result, TimeRange};
use serde_json::{Value, json};
use trace::Trace;
use views::reports::request::{Did, Explained, LateBy, Part, Request, explain_request};

/// So many parts are printed.
const PARTS_SHOWN: usize = 6;
/// What is shorter is not.
const SHARE_SHOWN_MIN: f64 = 0.005;

/// The interval as a request, where it is the work of threads and is over.
fn request(tracker: &Tracker, tracked: &Tracked) -> Option<Request> {
    let ended_by = match tracker.key {
        // Who ended it, in whichever thread it began.
        KeyKind::Pair(_) => tracked.other.as_ref(),
        KeyKind::Call | KeyKind::Address => tracked.task.as_ref(),
        _ => None,
    };
    let ended_by = ended_by
        .filter(|task| !tracked.is_open && task.tid.0 > 0)?
        .tid;
    let range = TimeRange {
        begin: tracked.begin,
        end: tracked.end,
    };
    Some(Request { range, ended_by })
}

/// Where the time of a report went; none without a snapshot to say so, and for intervals that are
/// no thread's work.
pub(super) fn explained(report: &TrackerReport) -> Option<Result<Explained>> {
    let path = report.snapshot.as_ref()?;
    let request = request(report.tracker, &report.hit.tracked)?;
    Some(Trace::open(&**path).and_then(|trace| explain_request(&trace, &request)))
}

/// `waits for a CPU, which hog (tid 7, rt 50) has`.
fn did(did: &Did) -> String {
    match did {
        Did::Ran => "runs".to_owned(),
        Did::Interrupted { name, .. } if name.is_empty() => "is interrupted".to_owned(),
        Did::Interrupted { name, .. } => format!("is interrupted: {name}"),
        Did::Behind(None) => "waits for a CPU".to_owned(),
        Did::Behind(Some(task)) => format!("waits for a CPU, which {task} has"),
        Did::Idle => "waits for a CPU that idles".to_owned(),
        Did::Blocked { by, .. } if by.is_empty() => "is blocked".to_owned(),
        Did::Blocked { by, .. } => format!("is blocked until {by}"),
        Did::Unknown => "not known: not in the snapshot".to_owned(),
    }
}

/// The lines below a report.
pub(super) fn text(explained: &Result<Explained>, whole: Duration) -> String {
    let explained = match explained {
        Ok(explained) => explained,
        Err(error) => return format!("    where its time went is not known: {error}\n"),
    };
    let is_shown = |part: &&Part| part.total.share_of(whole) >= SHARE_SHOWN_MIN;
    let shown = explained.parts.iter().filter(is_shown).take(PARTS_SHOWN);
    let mut text = "    where its time went:\n".to_owned();
    for part in shown {
        text += &format!(
            "    {:>10} {:>3.0} %  {} {}\n",
            part.total.short(),
            part.total.share_of(whole) * 100.0,
            part.task,
            did(&part.did)
        );
    }
    let terms = explained.terms().into_iter();
    let terms: Vec<_> = terms
        .map(|(term, total)| format!("{} {}", term.tag(), total.short()))
        .collect();
    text += &format!("    terms: {}\n", terms.join(", "));
    text += &match explained.late_by() {
        _ if explained.is_lossy => {
            "    events of this time are missing: parts may be another's\n".to_owned()
        }
        Some((by, total)) => format!("    late by {}: {}\n", late_by(&by), total.short()),
        None => "    late by nobody that the events prove\n".to_owned(),
    };
    text
}

fn late_by(by: &LateBy) -> String {
    match by {
        LateBy::OwnWork => "its own work".to_owned(),
        LateBy::Task(task) => task.to_string(),
        LateBy::Handler(name) if name.is_empty() => "a handler".to_owned(),
        LateBy::Handler(name) => name.clone(),
        LateBy::Awaited(by) if by.is_empty() => "what it was blocked for".to_owned(),
        LateBy::Awaited(by) => format!("a wait for {by}"),
    }
}

/// The same, a line for each part.
pub(super) fn lines(explained: &Result<Explained>, whole: Duration) -> Vec<String> {
    let text = text(explained, whole);
    text.lines()
        .skip(1)
        .map(|line| line.trim().to_owned())
        .collect()
}

/// Who made the request late; its own work is nobody's.
pub(super) fn culprit(explained: &Result<Explained>) -> Option<String> {
    match explained.as_ref().ok()?.late_by()? {
        (LateBy::OwnWork, _) => None,
        (by, _) => Some(late_by(&by)),
    }
}

fn task(task: &TaskRef) -> Value {
    json!({ "tid": task.tid.0, "comm": task.comm, "priority": task.prio.to_string() })
}

/// The same in a line of JSON.
pub(super) fn json(explained: &Result<Explained>) -> Value {
    let explained = match explained {
        Ok(explained) => explained,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let part = |part: &Part| {
        let (kind, by) = match &part.did {
            Did::Ran => ("ran", Value::Null),
            Did::Interrupted { name, .. } => ("interrupted", name.as_str().into()),
            Did::Behind(who) => ("behind", who.as_ref().map_or(Value::Null, task)),
            Did::Idle => ("idle", Value::Null),
            Did::Blocked { by, .. } => ("blocked", by.as_str().into()),
            Did::Unknown => ("unknown", Value::Null),
        };
        json!({
            "task": task(&part.task),
            "did": kind,
            "by": by,
            "term": part.term.tag(),
            "total_ns": part.total.as_ns(),
            "pieces": part.pieces,
        })
    };
    let terms = explained.terms().into_iter();
    let terms = terms.map(|(term, total)| json!({ "term": term.tag(), "total_ns": total.as_ns() }));
    let late = explained.late_by().map(|(by, total)| {
        let (kind, who) = match &by {
            LateBy::OwnWork => ("own_work", Value::Null),
            LateBy::Task(who) => ("task", task(who)),
            LateBy::Handler(name) => ("handler", name.as_str().into()),
            LateBy::Awaited(by) => ("awaited", by.as_str().into()),
        };
        json!({ "kind": kind, "who": who, "total_ns": total.as_ns() })
    });
    json!({
        "total_ns": explained.total().as_ns(),
        "terms": terms.collect::<Vec<_>>(),
        "parts": explained.parts.iter().map(part).collect::<Vec<_>>(),
        "late_by": late,
        "lossy": explained.is_lossy,
    })
}

#[cfg(test)]
mod tests {
    use event::{Prio, Tid};
    use views::reports::request::Term;

    use super::*;

    fn part(did: Did, term: Term, us: i64) -> Part {
        Part {
            task: TaskRef {
                tid: Tid(7),
                comm: "worker".to_owned(),
                prio: Prio::from_rt(5),
            },
            did,
            term,
            total: Duration::from_us(us),
            pieces: 1,
        }
    }

    fn explained(is_lossy: bool) -> Result<Explained> {
        let hog = TaskRef {
            tid: Tid(9),
            comm: "hog".to_owned(),
            prio: Prio::from_rt(50),
        };
        let blocked = Did::Blocked {
            by: String::new(),
            disk: false,
        };
        let parts = vec![
            part(Did::Behind(Some(hog)), Term::RunQueueWait, 700),
            part(Did::Ran, Term::OwnRun, 297),
            part(blocked, Term::Blocked, 3),
        ];
        Ok(Explained { parts, is_lossy })
    }

    #[test]
    fn a_report_says_where_its_time_went_and_what_is_little_is_left_out() {
        let text = |is_lossy| text(&explained(is_lossy), Duration::from_us(1000));
        let found = text(false);
        let lines: Vec<_> = found.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "where its time went:",
                "700 us  70 %  worker (tid 7, rt 5) waits for a CPU, which hog (tid 9, rt 50) has",
                "297 us  30 %  worker (tid 7, rt 5) runs",
                "terms: run_queue_wait 700 us, own_run 297 us, blocked 3.00 us",
                "late by hog (tid 9, rt 50): 700 us",
            ]
        );
        assert!(text(true).ends_with("are missing: parts may be another's\n"));
        assert!(!text(true).contains("late by"));
    }

    #[test]
    fn in_json_the_terms_and_the_parts_add_up_to_the_request() {
        let value = json(&explained(false));
        for list in ["terms", "parts"] {
            let all = value[list].as_array().expect("a list").iter();
            let sum: i64 = all.filter_map(|one| one["total_ns"].as_i64()).sum();
            assert_eq!(Some(sum), value["total_ns"].as_i64(), "{list}");
        }
        assert_eq!(value["parts"][0]["by"]["comm"], "hog");
        assert_eq!(value["parts"][0]["term"], "run_queue_wait");
        assert_eq!(value["late_by"]["who"]["tid"], 9);
        assert_eq!(json(&explained(true))["late_by"], Value::Null);
    }

    #[test]
    fn a_term_of_a_request_is_called_as_in_a_ledger() {
        use diagnosis::{Reason, TermKind};
        let task = part(Did::Ran, Term::OwnRun, 1).task;
        let hardirq = TermKind::Hardirq {
            irq: 1,
            name: String::new(),
        };
        let behind = task.clone();
        for (term, kind) in [
            (Term::OwnRun, TermKind::OwnRun),
            (Term::Upstream, TermKind::Upstream { task: task.clone() }),
            (Term::Hardirq, hardirq),
            (Term::Softirq, TermKind::Softirq { vector: 3 }),
            (Term::RunQueueWait, TermKind::RunQueueWait { behind }),
            (Term::StopClass, TermKind::StopClass { task }),
            (Term::Switch, TermKind::Switch),
            (Term::IdleExit, TermKind::IdleExit),
            (Term::BlockIo, TermKind::BlockIo),
            (Term::Unexplained, TermKind::Unexplained(Reason::LostEvents)),
        ] {
            assert_eq!(term.tag(), kind.tag());
        }
    }
}
