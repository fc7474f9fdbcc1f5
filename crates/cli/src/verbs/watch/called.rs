//! What is said of a call: the application's own words, and who else was late then.

use capture::watch::{CallReport, Called, Looked};
use diagnosis::quoted;
use event::Duration;
use event::evidence::LateOne;
use serde_json::{Value, json};

use crate::options::{Trigger, WatchOptions};

/// A line that somebody prints is shown to so many letters.
const WORDS_MAX: usize = 200;

/// When a watch with triggers reports, in words.
pub(super) fn when_called(options: &WatchOptions) -> String {
    let way = |trigger: &Trigger| match trigger {
        Trigger::Line(text) => format!("a line with {}", quoted(text)),
        Trigger::Signal => format!("kill -USR1 {}", std::process::id()),
    };
    let ways: Vec<String> = options.triggers.iter().map(way).collect();
    let over = options.over.map(|over| format!(" over {over:#}"));
    format!(
        "until the application says that it was late ({}): then its worst activation{}",
        ways.join(", "),
        over.unwrap_or_default()
    )
}

/// The call that a hit is the answer to.
pub(super) fn called_text(called: &Called) -> String {
    let mut text = words(called);
    let beside = called.beside.iter().map(|(task, latency)| {
        let (comm, tid) = (&task.comm, task.tid);
        format!("{comm} (tid {tid}) {latency}")
    });
    let beside: Vec<String> = beside.collect();
    if !beside.is_empty() {
        text += &format!("the worst of others then: {}\n", beside.join(", "));
    }
    text + &inside_text(called)
}

/// What else the application may mean: nobody knows whether such a sleep is part of its work.
fn inside_text(called: &Called) -> String {
    let lines = called.inside.iter().map(|found| {
        let in_what = match found.by_others {
            true => "between two waits for work, which took",
            false => "in a cycle of its timer that took",
        };
        format!(
            "perhaps it means another: {} also slept {in_what} {} to the end of its last work, \
             from {}\n",
            found.task,
            found.worst.duration(),
            found.worst.begin
        )
    });
    lines.collect()
}

/// A call at which nothing was late.
pub(super) fn nothing_late_text(report: &CallReport, whom: &str) -> String {
    let mut text = format!("\n{}", words(&report.called));
    let looked: Vec<String> = report.called.looked_at.iter().map(looked_text).collect();
    text += &match looked.is_empty() {
        true => format!(
            "  nothing that ended in the second before is late among {whom}: was it another task, \
             or was the line kept back in a buffer (stdbuf -oL)?\n"
        ),
        false => format!(
            "  nobody is named: nothing that ended in the second before was longer than is usual \
             for its task, among {whom}: {}\n  how to find it: --task NAME or --process NAME of \
             who else may be late; rtscope watch --over 1ms (every real-time task); or the line \
             was kept back in a buffer (stdbuf -oL)\n",
            looked.join(", ")
        ),
    };
    text += &inside_text(&report.called);
    match (&report.snapshot, &report.failure) {
        (Some(snapshot), _) => {
            let path = quoted(&snapshot.path.display().to_string());
            text += &format!("  look: rtscope diagnose {path}\n");
        }
        (None, Some(failure)) => text += &format!("  no snapshot: {failure}\n"),
        (None, None) => {}
    }
    text
}

fn looked_text(looked: &Looked) -> String {
    let Looked {
        task,
        latency,
        usual,
    } = looked;
    let usual = usual.map(|usual| format!(" (else up to {usual})"));
    format!("{task} {latency}{}", usual.unwrap_or_default())
}

fn words(called: &Called) -> String {
    let said: String = called.call.words.chars().take(WORDS_MAX).collect();
    let more = match called.more {
        0 => String::new(),
        more => format!(" (and {more} more times)"),
    };
    format!("the application said: {said}{more}\n")
}

/// The same for programs.
pub(super) fn call_json(called: &Called) -> Value {
    let beside = called.beside.iter().map(|(task, latency)| {
        json!({ "tid": task.tid.0, "comm": task.comm, "latency_ns": latency.as_ns() })
    });
    json!({
        "at_ns": called.call.at.as_ns(),
        "words": called.call.words,
        "more": called.more,
        "beside": beside.collect::<Value>(),
        "looked_at": called.looked_at.iter().map(looked_json).collect::<Value>(),
    })
}

fn looked_json(looked: &Looked) -> Value {
    let task = &looked.task;
    json!({
        "tid": task.tid.0,
        "comm": task.comm,
        "latency_ns": looked.latency.as_ns(),
        "usual_ns": looked.usual.map(Duration::as_ns),
    })
}

/// A call that the limits held back, for programs: what was late in short, or that nothing was.
pub(super) fn held_back_json(called: &Called, late: Option<&LateOne>) -> Value {
    let late = late.map(|late| {
        let task = &late.task;
        json!({
            "task": { "tid": task.tid.0, "comm": task.comm, "prio": task.prio.lttng() },
            "origin_ns": late.origin.as_ns(),
            "end_ns": late.end.as_ns(),
            "latency_ns": late.latency().as_ns(),
            "cause": late.seen(),
        })
    });
    json!({ "type": "call", "in_short": true, "trigger": call_json(called), "late": late })
}

#[cfg(test)]
mod tests {
    use capture::watch::Call;
    use event::evidence::TaskRef;
    use event::{Instant, Prio, Tid};

    use super::*;

    #[test]
    fn a_call_is_told_in_the_applications_words_and_with_the_others_of_then() {
        let task = TaskRef {
            tid: Tid(7),
            comm: "gui".to_owned(),
            prio: Prio::from_lttng(20),
        };
        let call = Call {
            at: Instant::from_ns(5),
            words: "XRUN 3".to_owned(),
        };
        let mut called = Called {
            call,
            more: 0,
            beside: vec![],
            looked_at: vec![],
            in_short: false,
            inside: vec![],
        };
        assert_eq!(called_text(&called), "the application said: XRUN 3\n");
        called.more = 2;
        called.beside = vec![(task, Duration::from_ms(15))];
        assert_eq!(
            called_text(&called),
            "the application said: XRUN 3 (and 2 more times)\n\
             the worst of others then: gui (tid 7) 15.000 ms\n"
        );
        let line = held_back_json(&called, None);
        assert_eq!(
            (&line["late"], &line["in_short"]),
            (&Value::Null, &json!(true))
        );
        assert_eq!(line["trigger"]["more"], 2);
        let report = CallReport {
            called,
            snapshot: None,
            failure: None,
        };
        let text = nothing_late_text(&report, "tasks called synth");
        assert!(text.contains("among tasks called synth"), "{text}");
        assert!(!text.contains("look:"), "{text}");
        let mut report = report;
        report.called.looked_at = vec![Looked {
            task: report.called.beside[0].0.clone(),
            latency: Duration::from_us(1_354),
            usual: Some(Duration::from_us(1_200)),
        }];
        let text = nothing_late_text(&report, "tasks called synth");
        let looked = "among tasks called synth: gui (tid 7, nice 0) 1.354 ms (else up to 1.200 ms)";
        assert!(text.contains(looked), "{text}");
        assert!(text.contains("how to find it: --task NAME"), "{text}");
    }
}
