//! Who made a request late: where the time of a reported interval went, from its snapshot.

use bpf_host::trackers::{KeyKind, Tracker};
use capture::watch::TrackerReport;
use event::evidence::TaskRef;
use event::evidence::tracked::Tracked;
use event::{Duration, Result, TimeRange};
use serde_json::{Value, json};
use trace::Trace;
use views::reports::request::{Did, Explained, Part, Request, explain_request};

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
        Did::Interrupted(name) if name.is_empty() => "is interrupted".to_owned(),
        Did::Interrupted(name) => format!("is interrupted: {name}"),
        Did::Behind(None) => "waits for a CPU".to_owned(),
        Did::Behind(Some(task)) => format!("waits for a CPU, which {task} has"),
        Did::Blocked(by) if by.is_empty() => "is blocked".to_owned(),
        Did::Blocked(by) => format!("is blocked until {by}"),
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
    if explained.is_lossy {
        text += "      events of this time are missing: parts may be another's\n";
    }
    text
}

/// The same, a line for each part.
pub(super) fn lines(explained: &Result<Explained>, whole: Duration) -> Vec<String> {
    let text = text(explained, whole);
    text.lines()
        .skip(1)
        .map(|line| line.trim().to_owned())
        .collect()
}

/// Who was most in the way of the request that `ended_by` ended.
pub(super) fn culprit(explained: &Result<Explained>, ended_by: Option<&TaskRef>) -> Option<String> {
    let parts = &explained.as_ref().ok()?.parts;
    let is_others = |part: &&Part| {
        part.did != Did::Ran || ended_by.is_none_or(|task| task.tid != part.task.tid)
    };
    let part = parts.iter().find(is_others)?;
    Some(match &part.did {
        Did::Behind(Some(task)) => task.to_string(),
        Did::Ran => part.task.to_string(),
        other => did(other),
    })
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
            Did::Interrupted(name) => ("interrupted", name.as_str().into()),
            Did::Behind(who) => ("behind", who.as_ref().map_or(Value::Null, task)),
            Did::Blocked(by) => ("blocked", by.as_str().into()),
            Did::Unknown => ("unknown", Value::Null),
        };
        json!({
            "task": task(&part.task),
            "did": kind,
            "by": by,
            "total_ns": part.total.as_ns(),
            "pieces": part.pieces,
        })
    };
    json!({
        "parts": explained.parts.iter().map(part).collect::<Vec<_>>(),
        "lossy": explained.is_lossy,
    })
}

#[cfg(test)]
mod tests {
    use event::{Prio, Tid};

    use super::*;

    fn part(did: Did, us: i64) -> Part {
        Part {
            task: TaskRef {
                tid: Tid(7),
                comm: "worker".to_owned(),
                prio: Prio::from_rt(5),
            },
            did,
            total: Duration::from_us(us),
            pieces: 1,
        }
    }

    #[test]
    fn a_report_says_where_its_time_went_and_what_is_little_is_left_out() {
        let hog = TaskRef {
            tid: Tid(9),
            comm: "hog".to_owned(),
            prio: Prio::from_rt(50),
        };
        let parts = vec![
            part(Did::Behind(Some(hog)), 700),
            part(Did::Ran, 297),
            part(Did::Blocked(String::new()), 3),
        ];
        let explained = Ok(Explained {
            parts,
            is_lossy: true,
        });
        let text = text(&explained, Duration::from_us(1000));
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "where its time went:",
                "700 us  70 %  worker (tid 7, rt 5) waits for a CPU, which hog (tid 9, rt 50) has",
                "297 us  30 %  worker (tid 7, rt 5) runs",
                "events of this time are missing: parts may be another's",
            ]
        );
        let value = json(&explained);
        assert_eq!(value["parts"][0]["by"]["comm"], "hog");
        assert_eq!(value["lossy"], true);
    }
}
