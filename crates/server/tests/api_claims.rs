//! The API without a network: what it answers, and that nothing that is asked brings it down.

mod asked;

use std::sync::atomic::AtomicBool;

use asked::{ask, view};
use proptest::prelude::*;
use serde_json::Value;
use server::{ForeignReport, View, ViewOptions};
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const HOG: Task = Task::rt(200, "<img src=x>\u{202e}", 60);
const FAIR: Task = Task::fair(300, "fair");

/// Every 50 ms an interrupt wakes the victim, behind a hog.
fn story(turns: i64) -> SyntheticTrace {
    let mut trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR);
    for turn in 0..turns {
        trace = trace.at(1_000 + turn * 50_000).preempt(FAIR, HOG).after(10);
        trace = trace
            .irq(9, "eth0")
            .after(2)
            .wake(VICTIM)
            .after(2)
            .irq_end(9);
        trace = trace.after(500 + turn % 7).block(HOG, VICTIM);
        trace = trace.after(20).block(VICTIM, FAIR);
    }
    trace
}

#[test]
fn a_latency_leads_to_the_ledger_that_names_the_hog() {
    let view = view(story(20));
    let info = ask(&view, "info", "");
    assert_eq!(info["progress"]["done"], true);
    let found = ask(&view, "latencies", "search=victim&worst=3");
    let worst = &found["worst"][0];
    let query = format!("task={}&end={}", worst["task"], worst["end_ns"]);
    let ledger = ask(&view, "ledger", &query);
    let late = &ledger["activations"][0];
    assert_eq!(late["end_ns"], worst["end_ns"]);
    let terms = late["ledger"]["terms"].as_array().expect("terms");
    assert_eq!(terms[0]["kind"], "run_queue_wait");
    assert_eq!(terms[0]["task"]["tid"], 200);
    let sum: i64 = terms
        .iter()
        .filter_map(|term| term["duration_ns"].as_i64())
        .sum();
    assert_eq!(late["latency_ns"].as_i64(), Some(sum));
    assert_eq!(ledger["groups"][0]["verdict"]["conclusive"], true);
}

#[test]
fn any_part_of_the_table_of_events_is_what_a_walk_finds_there() {
    let view = view(story(1_500));
    let all = ask(&view, "events", "first=0&count=1");
    let total = all["total"].as_u64().expect("a total");
    assert!(total > 8_192, "{total}");
    let times = |first: u64, count: u64, filter: &str| -> Vec<(u64, i64)> {
        let query = format!("first={first}&count={count}&filter={filter}");
        let found = ask(&view, "events", &query);
        let rows = found["rows"].as_array().cloned().expect("rows");
        let row = |row: &Value| (row["row"].as_u64(), row["time_ns"].as_i64());
        rows.iter()
            .filter_map(|found| row(found).0.zip(row(found).1))
            .collect()
    };
    let whole: Vec<_> = (0..total)
        .step_by(1000)
        .flat_map(|at| times(at, 1000, ""))
        .collect();
    assert_eq!(whole.len() as u64, total);
    assert!(whole.is_sorted());
    for first in [0, 1, 4_090, 4_096, 8_191, total - 3] {
        assert_eq!(
            times(first, 5, ""),
            whole[first as usize..(first as usize + 5).min(whole.len())]
        );
    }
    let filter = "%24name%3D%3D%22irq_handler_entry%22";
    let wakes: Vec<_> = (0..3)
        .flat_map(|page| times(page * 500, 500, filter))
        .collect();
    assert_eq!(wakes.len(), 1_500);
    assert!(wakes.is_sorted());
    let at = wakes[700].1;
    let row = ask(&view, "row", &format!("at={at}&filter={filter}"));
    assert_eq!(row["row"], 700);
    let row = ask(&view, "row", &format!("at={at}"));
    assert_eq!(whole[row["row"].as_u64().expect("a row") as usize].1, at);
}

#[test]
fn a_hostile_name_is_data_and_a_long_text_is_cut() {
    let long = "x".repeat(65_536);
    let text = event::Value::Text(long.into());
    let view = view(story(2).event("note", &[("msg", text)]));
    let found = ask(&view, "tracks", "kind=thread&search=img");
    assert_eq!(found["tracks"][0]["facts"]["name"], "<img src=x>?");
    let found = ask(
        &view,
        "events",
        "first=0&count=1000&filter=%24name%3D%3D%22note%22",
    );
    let text = found["rows"][0]["text"].as_str().expect("text");
    assert!(
        text.len() < 3_000 && text.ends_with("bytes)"),
        "{}",
        text.len()
    );
}

#[test]
fn every_report_answers_over_a_range_and_counts_what_lies_in_it() {
    let view = view(story(20));
    let names = ask(&view, "reports", "");
    let names = names["reports"].as_array().expect("names");
    assert!(names.len() > 20, "{}", names.len());
    for name in names {
        let name = name["name"].as_str().expect("a name");
        let answer = view.answer("/api/v1/report", &format!("name={name}"));
        assert!(
            [200, 400, 422].contains(&answer.status),
            "{name}: {}",
            answer.status
        );
    }
    // Two of the twenty turns, of 50 ms each.
    let found = ask(
        &view,
        "report",
        "name=schedlog&begin=90000000&end=190000000&tasks=victim",
    );
    let rows = found["tables"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{found}");
    assert_eq!(view.answer("/api/v1/report", "name=none").status, 404);
}

#[test]
fn a_report_on_periods_is_about_those_that_the_question_defines() {
    let view = view(story(20));
    let switch =
        |who: &str| format!("$evt.$name == \"sched_switch\" && $evt.{who}_comm == \"victim\"");
    let turn = format!("turn : {} : {}", switch("next"), switch("prev"));
    let of_turn = format!("inner(turn) : {}", switch("next"));
    let asked = |lines: &[&str]| {
        let lines = lines.join("\n");
        let escaped: String = lines.bytes().map(|byte| format!("%{byte:02x}")).collect();
        format!("name=periodlog&begin=90000000&end=190000000&periods={escaped}")
    };
    let found = ask(&view, "report", &asked(&[&turn, "", &of_turn]));
    let rows = found["tables"][0]["rows"].as_array().expect("rows");
    let turns = rows.iter().filter(|row| row[3] == "turn");
    assert_eq!(turns.count(), 2, "two of the twenty turns: {found}");
    let no_parent = "inner(none) : $evt.$name == \"a\"";
    for (bad, expect) in [("turn", 400), ("a : b : c : d", 400), (no_parent, 404)] {
        let answer = view.answer("/api/v1/report", &asked(&[bad]));
        assert_eq!(answer.status, expect, "{bad}");
    }
}

#[test]
fn a_hundred_thousand_threads_come_a_page_at_a_time() {
    let mut trace = SyntheticTrace::new();
    for thread in 0..100_000 {
        trace = trace
            .at(10 + thread)
            .waking(Task::fair(1_000 + thread as i32, "w"), 0);
    }
    let view = view(trace);
    let found = ask(
        &view,
        "tracks",
        "kind=thread&limit=50&offset=70000&sort=name",
    );
    assert_eq!(found["total"], 100_000);
    assert_eq!(found["tracks"].as_array().map(Vec::len), Some(50));
    let found = ask(&view, "tracks", "kind=thread&search=100999");
    assert_eq!(found["tracks"][0]["facts"]["tid"], 100_999);
}

#[test]
fn traces_of_no_event_and_of_one_answer_everything() {
    for trace in [SyntheticTrace::new(), SyntheticTrace::new().at(5).run(FAIR)] {
        let view = view(trace);
        for path in [
            "info",
            "tracks",
            "tasks",
            "losses",
            "latencies",
            "events",
            "row",
        ] {
            ask(&view, path, "");
        }
        assert_eq!(view.answer("/api/v1/tile", "tracks=c0").status, 200);
    }
}

#[test]
fn an_index_that_was_kept_is_taken_until_the_trace_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cache, trace) = (folder.path().join("cache"), folder.path().join("trace"));
    testkit::write_sample(&trace).expect("a trace");
    let open = || {
        let options = ViewOptions {
            cache: Some(cache.clone()),
            build: "a build".to_owned(),
            ..ViewOptions::default()
        };
        let view = View::open(std::slice::from_ref(&trace), options).expect("it opens");
        view.build(&AtomicBool::new(false));
        view
    };
    let first = open();
    assert_eq!(ask(&first, "info", "")["progress"]["from_cache"], false);
    let events = ask(&first, "info", "")["events"].clone();
    let second = ask(&open(), "info", "");
    assert_eq!(second["progress"]["from_cache"], true);
    assert_eq!(second["events"], events);
    std::fs::write(trace.join("more"), "x").expect("room");
    assert_eq!(ask(&first, "info", "")["stale"], true);
    assert_eq!(ask(&open(), "info", "")["progress"]["from_cache"], false);
    std::fs::remove_dir_all(&trace).expect("it goes");
    assert_eq!(ask(&first, "info", "")["stale"], true);
    ask(&first, "tracks", "");
    for path in ["events", "row", "late", "ledger"] {
        let answer = first.answer(&format!("/api/v1/{path}"), "");
        assert_eq!(answer.status, 409, "{path}");
    }
}

#[test]
fn handlers_and_system_calls_are_timed_and_counted_by_what_they_are() {
    let mut trace = story(20).after(10).run(FAIR);
    for _ in 0..3 {
        trace = trace.after(5).event("syscall_entry_read", &[]);
        trace = trace.after(40).event("syscall_exit_read", &[]);
    }
    let view = view(trace.after(5).run(FAIR));
    let found = ask(&view, "latencies", "of=irq&stats=1&worst=2");
    assert_eq!(found["count"], 20);
    let irq = &found["stats"]["rows"][0];
    assert_eq!((&irq["key"], &irq["name"]), (&9.into(), &"eth0".into()));
    assert_eq!(
        (&irq["count"], &irq["max_ns"], &irq["total_ns"]),
        (&20.into(), &5_000.into(), &100_000.into())
    );
    let found = ask(&view, "latencies", "of=call&stats=1");
    let call = &found["stats"]["rows"][0];
    assert_eq!(
        (&call["name"], &call["count"], &call["min_ns"]),
        (&"read".into(), &3.into(), &40_000.into())
    );
    assert_eq!(found["worst"][0]["facts"]["name"], "fair");
    for (search, expect) in [("read", 3), ("fair", 3), ("write", 0)] {
        let found = ask(&view, "latencies", &format!("of=call&search={search}"));
        assert_eq!(found["count"], expect, "{search}");
    }
    let found = ask(&view, "latencies", "of=wakeup&stats=1&search=victim");
    assert_eq!(found["stats"]["total"], 1);
    assert_eq!(found["stats"]["rows"][0]["facts"]["tid"], 100);
    assert_eq!(view.answer("/api/v1/latencies", "of=x").status, 400);
}

#[test]
fn a_moment_has_the_call_and_the_interrupt_by_name() {
    let trace = SyntheticTrace::new().at(10).run(FAIR);
    let trace = trace.at(20).event("syscall_entry_read", &[]);
    let trace = trace.at(30).irq(9, "eth0").at(36).irq_end(9);
    let trace = trace
        .at(50)
        .event("syscall_exit_read", &[])
        .at(60)
        .run(FAIR);
    let view = view(trace);
    let tracks = ask(&view, "tracks", "kind=thread&search=fair");
    let thread = tracks["tracks"][0]["id"].as_str().expect("an id");
    let name = |track: &str, us: i64, what: &str| {
        let found = ask(&view, "moment", &format!("track={track}&at={}", us * 1_000));
        found[what]["name"].as_str().map(str::to_owned)
    };
    // Of a trace that begins at 10 us.
    assert_eq!(name("c0", 22, "irq").as_deref(), Some("eth0"));
    assert_eq!(name("c0", 27, "irq"), None);
    assert_eq!(name("c0", 15, "irq"), None);
    assert_eq!(name(thread, 15, "call").as_deref(), Some("read"));
    assert_eq!(name(thread, 22, "call").as_deref(), Some("read"));
    assert_eq!(name(thread, 5, "call"), None);
    assert_eq!(name(thread, 45, "call"), None);
    assert_eq!(view.answer("/api/v1/moment", "track=x&at=1").status, 400);
}

#[test]
fn marks_count_every_event_that_matches_once() {
    let view = view(story(40));
    let filter = "%24name%3D%3D%22irq_handler_entry%22";
    let length = ask(&view, "info", "")["length_ns"]
        .as_i64()
        .expect("a length");
    let marks = |query: &str| ask(&view, "marks", &format!("filter={filter}&{query}"));
    let sum = |found: &Value| {
        let counts = found["counts"].as_array().expect("counts");
        counts.iter().filter_map(Value::as_u64).sum::<u64>()
    };
    let whole = marks(&format!("end={}&columns=7", length + 1));
    assert_eq!((sum(&whole), whole["total"].as_u64()), (40, Some(40)));
    let mut parts = 0;
    for part in 0..10 {
        let (begin, end) = (length / 10 * part, length / 10 * (part + 1));
        parts += sum(&marks(&format!("begin={begin}&end={end}&columns=3")));
    }
    assert_eq!(parts, 40);
    assert_eq!(ask(&view, "marks", "")["total"], 0);
    assert_eq!(
        view.answer("/api/v1/marks", "filter=%24name%3D%3D").status,
        400
    );
}

#[test]
fn a_page_for_the_ticket_names_victim_and_culprit_and_needs_nothing_else() {
    let view = view(story(20));
    let worst = ask(&view, "latencies", "search=victim&worst=1")["worst"][0].clone();
    let query = format!("task={}&end={}", worst["task"], worst["end_ns"]);
    let answer = view.answer("/api/v1/incident", &query);
    let page = String::from_utf8(answer.body).expect("text");
    assert_eq!(answer.status, 200, "{page}");
    assert!(
        page.starts_with("<!doctype html>") && page.contains("<svg"),
        "{page}"
    );
    assert!(page.contains("victim was late by") && page.contains("&lt;img src=x&gt;"));
    assert!(
        !page.contains("<img") && page.len() < 1 << 20,
        "{}",
        page.len()
    );
    assert_eq!(view.answer("/api/v1/incident", "task=99&end=0").status, 404);
}

#[test]
fn threads_are_sorted_and_grouped_as_asked() {
    let view = view(story(20));
    let names = |query: &str| -> Vec<String> {
        let found = ask(&view, "tracks", &format!("kind=thread&{query}"));
        let rows = found["tracks"].as_array().expect("rows").iter();
        rows.map(|row| row["facts"]["tid"].to_string()).collect()
    };
    // The fair one ran most, the hog's priority is the highest, and only the victim waits long.
    assert_eq!(names("sort=run"), ["300", "200", "100"]);
    assert_eq!(names("sort=prio"), ["200", "100", "300"]);
    assert_eq!(names("sort=tid"), ["100", "200", "300"]);
    assert_eq!(names("sort=waits")[..2], ["300", "100"]);
    assert_eq!(names("group=process").len(), 3);
    let found = ask(&view, "tracks", "kind=thread&search=fair&end=1000000");
    let sums = found["tracks"][0]["sums_ns"].as_array().expect("sums");
    assert_eq!(
        sums.iter().filter_map(Value::as_u64).sum::<u64>(),
        1_000_000
    );
}

#[test]
fn a_report_of_others_is_run_over_the_range_and_its_failure_is_told() {
    use report::{LamiColumn, LamiTable};
    use views::reports::{Cell, Kind};
    let column = |title: &str, kind: Kind, unit: Option<&str>| LamiColumn {
        title: title.to_owned(),
        kind,
        unit: unit.map(str::to_owned),
    };
    let columns = vec![
        column("who", Kind::Text, None),
        column("long", Kind::Duration, Some("turns")),
        column("at", Kind::Time, None),
        column("when", Kind::Range, None),
        column("count", Kind::Number, Some("turns")),
    ];
    let report = move |(begin_ns, end_ns): (i64, i64)| {
        if end_ns - begin_ns > 1_000_000 {
            return Err(event::Error::new(
                event::ErrorKind::InvalidInput,
                "too long for it",
            ));
        }
        Ok(vec![LamiTable {
            title: "a table".to_owned(),
            columns: columns.clone(),
            rows: vec![vec![
                Cell::Text("<b>".to_owned()),
                Cell::Duration(end_ns - begin_ns),
                Cell::Time(end_ns),
                Cell::Range(begin_ns, end_ns),
                Cell::Number(7),
            ]],
        }])
    };
    let folder = tempfile::tempdir().expect("a folder");
    testkit::write_sample(&folder.path().join("trace")).expect("a trace");
    let options = ViewOptions {
        foreign: vec![ForeignReport::new("./mine", report)],
        ..ViewOptions::default()
    };
    let view = View::open(&[folder.path().join("trace")], options).expect("it opens");
    view.build(&AtomicBool::new(false));
    let names = ask(&view, "reports", "").to_string();
    assert!(names.contains("./mine"), "{names}");
    let found = ask(&view, "report", "name=./mine&begin=5&end=25");
    let table = &found["tables"][0];
    // Times are the page's: after the first event. A row with one leads to the timeline.
    let range = serde_json::json!({ "begin_ns": 5, "end_ns": 25 });
    assert_eq!(
        table["rows"][0],
        serde_json::json!(["<b>", 20, 25, range, 7])
    );
    let told = |key: &str| -> Vec<&str> {
        let columns = table["columns"].as_array().expect("columns");
        columns.iter().filter_map(|one| one[key].as_str()).collect()
    };
    assert_eq!(told("unit"), ["", "ns", "time", "", ""]);
    assert_eq!(told("title")[1..], ["long", "at", "when", "count (turns)"]);
    assert_eq!(
        view.answer("/api/v1/report", "name=./mine&end=9000000")
            .status,
        400
    );
}

#[test]
fn what_there_is_not_is_refused_and_never_taken_for_something_else() {
    let view = view(story(5));
    let check = |question: &str, fix: &str| {
        let (path, query) = question.split_once('?').expect("a question");
        let answer = view.answer(&format!("/api/v1/{path}"), query);
        let text = String::from_utf8(answer.body).expect("text");
        assert_eq!(answer.status, 400, "{question}: {text}");
        assert!(text.contains(fix), "{question}: {text}");
    };
    check("tracks?kind=foo", "cpu, thread, frequency, idle, user");
    check(
        "tracks?kind=thread&sort=foo",
        "run, waits, blocked, prio, name, tid",
    );
    check("tracks?kind=thread&group=foo", "process");
    check("report?name=cputop&tables=foo", "freq");
    check("latencies?of=foo", "wakeup, irq, softirq or call");
    check("tile?tracks=c0,foo", "/api/v1/tracks");
    check("tasks?ids=0,foo", "/api/v1/tracks");
    check("ledger?end=5", "an integer");
    check("incident?end=5", "an integer");
}

const PATHS: [&str; 20] = [
    "counters",
    "fields",
    "names",
    "moment",
    "marks",
    "incident",
    "reports",
    "report",
    "info",
    "tracks",
    "tasks",
    "tile",
    "losses",
    "latencies",
    "ledger",
    "late",
    "events",
    "row",
    "../../etc/passwd",
    "",
];
const KEYS: [&str; 29] = [
    "counters", "periods", "tables", "of", "stats", "track", "group", "by", "name", "begin", "end",
    "columns", "tracks", "kind", "search", "sort", "offset", "limit", "ids", "task", "tasks",
    "worst", "first", "count", "filter", "at", "token", "", "%",
];

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        (-5..2_000_000i64).prop_map(|number| number.to_string()),
        Just("c0,t1,t99999999,c4294967295,x,,".to_owned()),
        Just("%24name%3D%3D%22irq_*%22".to_owned()),
        Just("thread".to_owned()),
        Just("call".to_owned()),
        Just("t1".to_owned()),
        Just("cputop".to_owned()),
        Just("frequency".to_owned()),
        Just("sched_switch.next_prio,n0,foo".to_owned()),
        "[a-z0-9%&=(),.*<>\"' ]{0,40}",
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_question_brings_it_down(
        path in prop::sample::select(&PATHS[..]),
        words in prop::collection::vec((prop::sample::select(&KEYS[..]), value()), 0..5),
    ) {
        static VIEW: std::sync::LazyLock<View> = std::sync::LazyLock::new(|| view(story(5)));
        let words: Vec<_> = words.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let answer = VIEW.answer(&format!("/api/v1/{path}"), &words.join("&"));
        prop_assert!([200, 400, 404, 422].contains(&answer.status), "{}", answer.status);
        prop_assert!(answer.body.len() < 16 << 20);
    }
}
