//! Frequencies, idle states, and what applications did: each holds until something else is told,
//! and where events were lost nobody knows.

use event::{ClassId, Cpu, EventClass, Field, FieldType, Instant, Integer, Scope, Value};
use testkit::SyntheticTrace;
use timeline::{Builder, Index, Kind, TrackId, UserWhat};
use trace::{MemoryEvent, MemoryTrace, Trace};

fn index(trace: SyntheticTrace) -> Index {
    of(&trace.build())
}

fn of(trace: &Trace) -> Index {
    let index = Builder::new(trace).walk(|_| true).expect("a walk");
    let file = tempfile::tempfile().expect("a file");
    let lent = file.try_clone().expect("another handle");
    let walked = Builder::new(trace).walk_into(lent, |_| true);
    let (kept, spilled) = walked.expect("a walk");
    assert_eq!(kept, index, "what is in a file says the same");
    spilled.keep(&kept, b"key").expect("room for it");
    let again = Index::open(file, b"key");
    assert_eq!(again.as_ref(), Some(&index), "its bytes say the same");
    index
}

fn power(trace: SyntheticTrace, name: &str, cpu: u32, state: u64) -> SyntheticTrace {
    let fields = [("state", state), ("cpu_id", cpu.into())];
    trace.event(
        name,
        &fields.map(|(name, value)| (name, Value::Unsigned(value))),
    )
}

#[test]
fn a_frequency_holds_until_the_next_one_and_is_unknown_behind_a_loss() {
    let mut trace = SyntheticTrace::new();
    for (us, cpu, khz) in [(10, 0, 800_000), (20, 1, 900_000), (30, 0, 2_400_000)] {
        trace = power(trace.at(us).cpu(1), "power_cpu_frequency", cpu, khz);
    }
    trace = trace.lost_on(Some(1), 40_000, 50_000);
    let index = index(power(trace.at(60), "power_cpu_frequency", 0, 1_000_000));
    let check = |cpu: u32, us: i64, expect: Option<i64>| {
        let series = index.series(TrackId::Frequency(cpu)).expect("a series");
        let at_ns = index.begin_ns + (us - 10) * 1_000;
        assert_eq!(series.at(at_ns), expect, "CPU {cpu} at {us}");
    };
    check(0, 9, None);
    check(0, 29, Some(800_000));
    check(0, 30, Some(2_400_000));
    check(0, 39, Some(2_400_000));
    // Another CPU may have set it meanwhile.
    check(0, 41, None);
    check(1, 41, None);
    check(0, 60, Some(1_000_000));
    check(1, 60, None);
}

#[test]
fn an_idle_state_ends_where_its_cpu_leaves_it_and_a_loss_elsewhere_says_nothing() {
    let mut trace = SyntheticTrace::new();
    for (us, cpu, state) in [(10, 0, 3), (20, 0, 0xffff_ffff), (30, 1, 1)] {
        trace = power(trace.at(us).cpu(cpu), "power_cpu_idle", cpu, state);
    }
    let index = index(
        trace
            .lost_on(Some(1), 40_000, 50_000)
            .at(60)
            .event("x", &[]),
    );
    let check = |cpu: u32, us: i64, expect: Option<i64>| {
        let series = index.series(TrackId::IdleState(cpu)).expect("a series");
        let at_ns = index.begin_ns + (us - 10) * 1_000;
        assert_eq!(series.at(at_ns), expect, "CPU {cpu} at {us}");
    };
    check(0, 15, Some(3));
    check(0, 25, Some(-1));
    check(0, 45, Some(-1));
    check(1, 35, Some(1));
    check(1, 45, None);
}

/// A thread's rows of spans at an instant, by name; `-`: there is none, `?`: nobody knows.
fn spans(index: &Index, tid: i32, us: i64) -> String {
    let at_ns = index.begin_ns + (us - 10) * 1_000;
    let of_thread = index.users.iter().filter(|user| user.tid == tid);
    let told = of_thread.filter_map(|user| match &user.what {
        UserWhat::Events(_) => None,
        UserWhat::Spans(_, track) => Some(track.at(at_ns)),
    });
    let told = told.map(|state| match (state.kind(), state.detail()) {
        (Kind::Run, Some(name)) => index.user_names[name as usize].clone(),
        (Kind::Idle, _) => "-".to_owned(),
        _ => "?".to_owned(),
    });
    told.collect::<Vec<_>>().join(" ")
}

fn mark(trace: SyntheticTrace, us: i64, tid: i32, name: &str, cookie: u64) -> SyntheticTrace {
    let cookie = [("cookie", Value::Unsigned(cookie))];
    trace.at(us).in_task(Some(tid)).event(name, &cookie)
}

/// Events of applications: when, of which process and thread, what, with which cookie.
fn of_processes(events: &[(i64, i64, i64, &str, i64)]) -> Trace {
    let mut trace = MemoryTrace::default();
    for (us, pid, tid, name, cookie) in events {
        let known = trace.classes.iter().find(|class| class.name == *name);
        let class = known.map_or(ClassId(trace.classes.len() as u32), |class| class.id);
        if class.0 as usize == trace.classes.len() {
            let field = |(name, scope): (&str, Scope)| Field {
                scope,
                ..Field::payload(name, FieldType::Integer(Integer::le(64, true)))
            };
            let (here, context) = (Scope::Payload, Scope::StreamContext);
            let fields = [("cookie", here), ("vpid", context), ("vtid", context)];
            trace.classes.push(EventClass {
                id: class,
                name: (*name).to_owned(),
                stream: 0,
                fields: fields.map(field).into(),
            });
        }
        trace.events.push(MemoryEvent {
            time: Instant::from_ns(us * 1_000),
            cpu: Some(Cpu(0)),
            class,
            values: [cookie, pid, tid].map(|value| Value::Signed(*value)).into(),
        });
    }
    trace.into_trace()
}

#[test]
fn spans_are_paired_by_their_cookies_and_overlapping_ones_lie_in_rows() {
    let trace = of_processes(&[
        (10, 1, 7, "app:frame_begin", 1),
        (20, 1, 7, "app:frame_begin", 2),
        (25, 2, 9, "app:frame_end", 1),
        (30, 1, 8, "app:frame_end", 1),
        (40, 1, 7, "app:frame_begin", 3),
        (50, 1, 7, "app:frame_end", 2),
        (60, 1, 7, "app:frame_end", 3),
        (65, 1, 7, "app:frame_end", 9),
        (70, 1, 7, "app:frame_begin", 4),
        (80, 1, 8, "app:note", 0),
    ]);
    let index = of(&trace);
    let check = |us: i64, expect: &str| assert_eq!(spans(&index, 7, us), expect, "at {us}");
    check(15, "app:frame ?");
    // The cookie of another process is another one.
    check(27, "app:frame app:frame");
    check(35, "- app:frame");
    check(45, "app:frame app:frame");
    check(55, "app:frame -");
    check(67, "- -");
    // It has not ended when the recording does.
    check(75, "app:frame -");
    assert_eq!(
        spans(&index, 8, 75),
        "",
        "who ends a span of another has none"
    );
    let events = index.users.iter().filter_map(|user| match &user.what {
        UserWhat::Events(series) => Some((user.pid, user.tid, series.len())),
        UserWhat::Spans(..) => None,
    });
    let expect = [(Some(1), 7, 7), (Some(1), 8, 2), (Some(2), 9, 1)];
    assert_eq!(events.collect::<Vec<_>>(), expect);
}

#[test]
fn spans_without_a_cookie_nest_in_their_thread() {
    let mut trace = SyntheticTrace::new();
    let at = |trace: SyntheticTrace, us: i64, tid: i32, name: &str| {
        trace.at(us).in_task(Some(tid)).event(name, &[])
    };
    for (us, tid, name) in [
        (10, 7, "app:outer_entry"),
        (20, 7, "app:inner_start"),
        (25, 8, "app:inner_stop"),
        (30, 7, "app:inner_stop"),
        (40, 7, "app:outer_exit"),
        (50, 7, "app:alone_begin"),
        (60, 7, "app:x"),
    ] {
        trace = at(trace, us, tid, name);
    }
    let index = index(trace);
    let check = |us: i64, expect: &str| assert_eq!(spans(&index, 7, us), expect, "at {us}");
    check(15, "app:outer ?");
    check(27, "app:outer app:inner");
    check(35, "app:outer -");
    // No event ends `alone`: it begins no span.
    check(55, "- -");
}

#[test]
fn no_span_reaches_across_a_loss() {
    let mut trace = SyntheticTrace::new();
    trace = mark(trace, 10, 7, "app:frame_begin", 1);
    trace = mark(trace, 20, 8, "app:frame_begin", 2);
    trace = mark(trace, 30, 8, "app:frame_end", 2);
    trace = trace.lost_on(None, 40_000, 50_000);
    trace = mark(trace, 60, 7, "app:frame_end", 1);
    trace = mark(trace, 70, 7, "app:frame_begin", 1);
    trace = mark(trace, 80, 7, "app:frame_end", 1);
    let index = index(trace);
    let check = |tid: i32, us: i64, expect: &str| {
        assert_eq!(spans(&index, tid, us), expect, "{tid} at {us}");
    };
    check(7, 35, "app:frame");
    check(7, 45, "?");
    check(7, 65, "?");
    check(7, 75, "app:frame");
    check(8, 35, "-");
    check(8, 45, "?");
}

#[test]
fn a_tile_draws_numbers_as_they_are_or_by_columns_with_their_least_and_greatest() {
    let mut trace = SyntheticTrace::new();
    for turn in 0..1_000 {
        let khz = 1_000_000 + u64::from(turn == 500) * 1_000_000;
        trace = power(trace.at(10 + turn), "power_cpu_frequency", 0, khz);
    }
    let index = index(trace);
    let range = (index.begin_ns, index.end_ns + 1);
    let number = |tile: &[u8], at: usize| {
        f64::from_le_bytes(tile[at..at + 8].try_into().expect("eight bytes"))
    };
    let tile = index.tile(&[TrackId::Frequency(0)], range, 10);
    assert_eq!(
        (tile[36], tile[37], tile[40]),
        (2, 3, 10),
        "columns of numbers"
    );
    let most: Vec<f64> = (0..10)
        .map(|column| number(&tile, 48 + column * 32 + 8))
        .collect();
    assert_eq!(
        most.iter().filter(|most| **most == 2e6).count(),
        1,
        "{most:?}"
    );
    let near = (index.begin_ns + 500_000, index.begin_ns + 502_000);
    let tile = index.tile(&[TrackId::Frequency(0), TrackId::Frequency(9)], near, 10);
    assert_eq!((tile[37], tile[40]), (2, 2), "numbers as they are");
    assert_eq!([number(&tile, 48), number(&tile, 56)], [500_000.0, 2e6]);
}
