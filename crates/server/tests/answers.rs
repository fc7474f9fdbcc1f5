//! The types of the page's answers are the server's, and a diagnosis has what the page reads of it.

mod asked;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use asked::ask;
use serde::Serialize;
use serde::de::DeserializeOwned;
use server::View;
use server::answers::{
    Diagnosis, Events, Info, Latencies, Losses, Marks, Moment, Report, Reports, RowAt, Tasks,
    Tracks, for_people, typescript,
};
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const HOG: Task = Task::rt(200, "hog", 60);
const FAIR: Task = Task::fair(300, "fair");

fn view() -> View {
    let mut trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR);
    for turn in 0..4 {
        trace = trace.at(1_000 + turn * 50_000).preempt(FAIR, HOG);
        trace = trace.after(10).irq(9, "eth0").after(2).wake(VICTIM);
        trace = trace.after(2).irq_end(9).after(500).block(HOG, VICTIM);
        trace = trace.after(5).event("syscall_entry_read", &[]);
        trace = trace.after(5).event("syscall_exit_read", &[]);
        trace = trace.after(10).block(VICTIM, FAIR);
    }
    let trace = trace.lost(200, 240).after(60).block(FAIR, HOG);
    asked::view(trace)
}

/// Compares a file with what it should say, or writes it where that is asked for.
fn check_file(path: &str, expect: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if std::env::var_os("RTSCOPE_BLESS").is_some() {
        std::fs::write(root.join(path), expect).expect("room");
    }
    let found = std::fs::read_to_string(root.join(path)).unwrap_or_default();
    assert!(
        found == expect,
        "{path} is not what the server's types say: run cargo xtask reference"
    );
}

#[test]
fn the_types_of_the_page_and_their_description_are_those_of_the_server() {
    check_file("ui/src/answers.ts", &typescript());
    check_file("docs/format/view-answers.md", &for_people());
}

/// An answer has this type, and nothing beside it.
fn check_answer<T: Serialize + DeserializeOwned>(view: &View, path: &str, query: &str) {
    let answer = ask(view, path, query);
    let read: T = serde_json::from_value(answer.clone()).expect(path);
    let again = serde_json::to_value(&read).expect("json");
    assert_eq!(again, answer, "{path}?{query}");
}

#[test]
fn every_answer_has_the_type_that_is_told_of_it() {
    let view = view();
    check_answer::<Info>(&view, "info", "");
    check_answer::<Tracks>(&view, "tracks", "kind=cpu");
    check_answer::<Tracks>(&view, "tracks", "kind=thread");
    check_answer::<Tasks>(&view, "tasks", "ids=0,1,99");
    check_answer::<Losses>(&view, "losses", "");
    for family in ["wakeup", "irq", "softirq", "call"] {
        check_answer::<Latencies>(&view, "latencies", &format!("of={family}&stats=1"));
    }
    check_answer::<Latencies>(&view, "latencies", "");
    check_answer::<Moment>(&view, "moment", "track=c0&at=1003000");
    check_answer::<Events>(&view, "events", "count=40");
    check_answer::<RowAt>(&view, "row", "at=5");
    check_answer::<Marks>(&view, "marks", "filter=cpu_id%3D%3D0&columns=5");
    check_answer::<Reports>(&view, "reports", "");
    for report in [
        "cputop",
        "irqtop",
        "schedlog",
        "states",
        "iolatencytop",
        "prios",
    ] {
        let query = format!("name={report}&tables=freq");
        if view.answer("/api/v1/report", &query).status == 200 {
            check_answer::<Report>(&view, "report", &query);
        }
    }
}

#[test]
fn a_diagnosis_has_what_the_page_reads_of_it() {
    let view = view();
    let late: Diagnosis = serde_json::from_value(ask(&view, "late", "worst=5")).expect("late");
    let first = late.activations.first().expect("one was late");
    assert!(first.ledger.terms.iter().any(|term| term.task.is_some()));
    assert!(!first.steps.is_empty() && !late.groups.is_empty());
    let worst = ask(&view, "latencies", "search=victim&worst=1")["worst"][0].clone();
    let query = format!("task={}&end={}", worst["task"], worst["end_ns"]);
    let ledger: Diagnosis = serde_json::from_value(ask(&view, "ledger", &query)).expect("ledger");
    assert_eq!(ledger.activations.len(), 1);
}

#[test]
fn of_few_99_of_100_take_no_longer_than_the_longest() {
    let view = view();
    for family in ["wakeup", "irq", "call"] {
        let found = ask(&view, "latencies", &format!("of={family}&stats=1&worst=1"));
        let longest = found["worst"][0]["latency_ns"].as_i64().expect("a longest");
        for key in ["median_ns_max", "p99_ns_max", "p999_ns_max"] {
            let ns = found[key].as_i64().expect("a number");
            assert!(ns <= longest, "{family} {key}: {ns} of {longest}");
        }
        for row in found["stats"]["rows"].as_array().expect("rows") {
            assert!(
                row["p99_ns_max"].as_i64() <= row["max_ns"].as_i64(),
                "{row}"
            );
        }
    }
}

#[test]
fn a_script_finds_the_worst_latency_and_its_culprit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listening =
        server::listen(Arc::new(server::Served::new(Arc::new(view()))), 0).expect("it listens");
    let mut script = Command::new("python3");
    script.arg(root.join("examples/python/view_worst.py"));
    let Ok(output) = script.args([&listening.url, "victim"]).output() else {
        return testkit::skip("a script asks the API of a trace's page", "no python3");
    };
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(told.matches("victim (100) waited ").count(), 3, "{told}");
    assert_eq!(
        told.matches("hog (tid 200, rt 60) ran ahead of it").count(),
        3,
        "{told}"
    );
}
