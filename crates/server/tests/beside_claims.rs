//! What stands beside the kernel's tracks, as the API tells it: frequencies, idle states, events of
//! applications, counters, columns of one's own.

mod asked;

use asked::{ask, view};
use event::Value;
use server::View;
use server::answers::{Counters, Events, Fields, Info, Names, Tracks};
use testkit::{SyntheticTrace, Task};

const APP: Task = Task::fair(7, "app");

fn story() -> SyntheticTrace {
    let power = |trace: SyntheticTrace, name: &str, cpu: u64, state: u64| {
        let fields = [
            ("state", Value::Unsigned(state)),
            ("cpu_id", Value::Unsigned(cpu)),
        ];
        trace.event(name, &fields)
    };
    let mut trace = SyntheticTrace::new().at(1).block(Task::IDLE, APP);
    for turn in 0..20 {
        trace = power(trace.after(10), "power_cpu_frequency", 1, 1_000_000 + turn);
        trace = power(trace.after(10), "power_cpu_idle", 0, turn % 3);
        let cookie = ("cookie", Value::Unsigned(turn));
        let level = ("level", Value::Signed(turn as i64 - 5));
        trace = trace.in_task(Some(APP.tid)).after(1);
        trace = trace.event("app:frame_begin", &[cookie.clone(), level]);
        trace = trace
            .after(5)
            .event("app:frame_end", &[cookie])
            .in_task(None);
    }
    trace
}

fn check<T: serde::Serialize + serde::de::DeserializeOwned>(
    view: &View,
    path: &str,
    query: &str,
) -> T {
    let answer = ask(view, path, query);
    let read: T = serde_json::from_value(answer.clone()).expect(path);
    assert_eq!(
        serde_json::to_value(&read).expect("json"),
        answer,
        "{path}?{query}"
    );
    read
}

#[test]
fn tracks_beside_the_kernels_are_listed_with_whose_they_are() {
    let view = view(story());
    let info: Info = check(&view, "info", "");
    assert_eq!(
        (info.frequencies, info.idle_states, info.user_tracks),
        (1, 1, 2)
    );
    let ids = |query: &str| -> Vec<String> {
        let found: Tracks = check(&view, "tracks", query);
        found.tracks.into_iter().map(|row| row.id).collect()
    };
    assert_eq!(ids("kind=frequency"), ["f1"]);
    assert_eq!(ids("kind=idle"), ["i0"]);
    assert_eq!(ids("kind=user"), ["u0", "u1"]);
    assert_eq!(ids("kind=user&offset=1"), ["u1"]);
    assert!(ids("kind=user&search=nobody").is_empty());
    let users: Tracks = check(&view, "tracks", "kind=user&search=app");
    let told = users
        .tracks
        .into_iter()
        .filter_map(|row| row.user.zip(Some(row.task.is_some())));
    let told = told.map(|(user, has_task)| (user.tid, user.name, user.lane, has_task));
    let expect = [
        (7, "app".to_owned(), None, true),
        (7, "app".to_owned(), Some(0), true),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expect);
    let names: Names = check(&view, "names", "");
    assert_eq!(
        names.names,
        ["app:frame_begin", "app:frame", "app:frame_end"]
    );
}

#[test]
fn a_counter_has_its_numbers_and_one_that_is_not_there_says_why() {
    let view = view(story());
    let query = "counters=app:frame_begin.level,nothing.at.all,sched_switch.next_comm,level";
    let found: Counters = check(&view, "counters", query);
    let level = &found.counters[0];
    assert_eq!(
        (level.count, level.least, level.most),
        (20, Some(-5), Some(14))
    );
    assert!(level.error.is_none() && !level.cut);
    for other in &found.counters[1..] {
        let why = other.error.as_deref().unwrap_or_default();
        assert!(
            why.contains("no integer field of an event"),
            "{}: {why}",
            other.name
        );
    }
    let tile = |query: &str| {
        view.answer("/api/v1/tile", &format!("{query}&columns=500"))
            .body
    };
    let number = |bytes: &[u8], at: usize| {
        f64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    };
    let one = tile("tracks=n0,n1&counters=nothing.at.all,app:frame_begin.level");
    // One that is not there knows nothing, and stands in no other's way.
    assert_eq!((one[36], one[37], one[40]), (5, 0, 0));
    assert_eq!((one[52], one[53], one[56]), (5, 2, 20));
    assert_eq!([number(&one, 72), number(&one, 72 + 16)], [-5.0, -4.0]);
    assert_eq!(tile("tracks=n9&counters=")[40], 0);
    let fields: Fields = check(&view, "fields", "");
    assert!(
        fields
            .counters
            .contains(&"app:frame_begin.level".to_owned()),
        "{fields:?}"
    );
    assert!(
        !fields
            .counters
            .contains(&"sched_switch.next_comm".to_owned())
    );
    assert!(fields.columns.contains(&"next_comm".to_owned()));
}

#[test]
fn a_counter_is_unknown_behind_a_loss() {
    let number =
        |trace: SyntheticTrace, value: u64| trace.event("app:n", &[("v", Value::Unsigned(value))]);
    let trace = number(SyntheticTrace::new().at(10), 3).lost_on(Some(1), 20_000, 30_000);
    let view = view(number(trace.at(40), u64::MAX));
    let tile = view
        .answer(
            "/api/v1/tile",
            "tracks=n0&counters=app:n.v&columns=50&end=30001",
        )
        .body;
    let number = |at: usize| f64::from_le_bytes(tile[at..at + 8].try_into().expect("eight"));
    let numbers = [(48, 56), (64, 72), (80, 88)].map(|(at, value)| (number(at), number(value)));
    assert_eq!(numbers[0], (0.0, 3.0));
    assert!(
        numbers[1].0 == 10_000.0 && numbers[1].1.is_nan(),
        "{numbers:?}"
    );
    assert_eq!(numbers[2], (30_000.0, i64::MAX as f64));
}

#[test]
fn a_column_has_the_field_of_each_event_that_has_it() {
    let view = view(story());
    let query = "count=5&columns=next_comm,%20state,nothing";
    let found: Events = check(&view, "events", query);
    let told: Vec<(String, Vec<Option<String>>)> = found
        .rows
        .into_iter()
        .map(|row| (row.name, row.cells))
        .collect();
    let cells = |next: Option<&str>, state: Option<&str>| {
        vec![next.map(str::to_owned), state.map(str::to_owned), None]
    };
    assert_eq!(
        told[0],
        ("sched_switch".to_owned(), cells(Some("app"), None))
    );
    let frequency = "power_cpu_frequency".to_owned();
    assert_eq!(told[1], (frequency, cells(None, Some("1000000"))));
    let found: Events = check(&view, "events", "count=1");
    assert!(found.rows[0].cells.is_empty());
    let long = SyntheticTrace::new().event("x", &[("t", Value::Text("y".repeat(9_000).into()))]);
    let found: Events = check(&asked::view(long), "events", "columns=t");
    let cell = found.rows[0].cells[0].clone().unwrap_or_default();
    assert!(
        cell.len() < 3_000 && cell.ends_with("bytes)"),
        "{}",
        cell.len()
    );
}

#[test]
fn of_a_trace_that_has_changed_no_counter_is_read_anew_and_a_known_one_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.txt");
    let line = |us: u32| {
        format!("  a-7 [000] d..2. 1.{us:06}: sched_waking: comm=b pid=8 prio=120 target_cpu=000\n")
    };
    let lines = |from: u32| (from..from + 50).map(line).collect::<String>();
    std::fs::write(&path, format!("# tracer: nop\n#\n{}", lines(100))).expect("room");
    let view =
        View::open(std::slice::from_ref(&path), server::ViewOptions::default()).expect("a trace");
    view.build(&std::sync::atomic::AtomicBool::new(false));
    let query = "tracks=n0,n1&columns=9&counters=sched_waking.prio,sched_waking.tid";
    let known = view.answer("/api/v1/counters", "counters=sched_waking.prio");
    assert_eq!(known.status, 200);
    std::fs::write(&path, format!("# tracer: nop\n#\n{}", lines(500))).expect("room");
    let tile = view.answer("/api/v1/tile", query).body;
    assert_eq!((tile[37], tile[40]), (3, 9), "the one that is known");
    let second = 48 + 9 * 32;
    assert_eq!(
        (tile[second + 5], tile[second + 8]),
        (0, 0),
        "the one that is not"
    );
    let refused = view.answer("/api/v1/counters", "counters=sched_waking.tid");
    assert_eq!(refused.status, 409);
}
