//! Whom a call is about, by what ended before it and by what is usual.

use event::{Prio, Tid};

use super::super::usual::testing::{hit, ms};
use super::*;

fn listener() -> Listener {
    let calls = Arc::new(Calls::new().expect("calls"));
    Listener {
        // Task 8 was made 400 ms before the calls of these tests, the others long ago.
        born: |tid| (tid == Tid(8)).then(|| ms(4_600)),
        // Those from 200 on are such threads.
        ordinary: |task| task.tid.0 >= 200,
        ..Listener::new(calls, Duration::from_ms(1_000))
    }
}

fn call(listener: &mut Listener, at_ms: i64) {
    let (at, words) = (ms(at_ms), "late".to_owned());
    listener.calls.add(Call { at, words });
    listener.listen();
}

fn is_rung(listener: &Listener) -> bool {
    rustix::io::read(&listener.calls.bell, &mut [0; 8]).is_ok()
}

/// Who is told, how late, and who beside it.
fn told(answer: Option<(Called, Option<Hit>)>) -> Option<(i32, i64, Vec<i32>)> {
    let (called, hit) = answer?;
    let hit = hit?;
    let beside = called.beside.iter().map(|(task, _)| task.tid.0).collect();
    Some((hit.task.tid.0, hit.latency().as_ns() / 1_000_000, beside))
}

#[test]
fn a_call_is_about_the_worst_of_the_second_before_and_of_what_was_open() {
    let check = |hits: &[(i32, i64, i64)], expect: Option<(i32, i64, Vec<i32>)>| {
        let mut listener = listener();
        let hit = |(tid, end, latency): &(i32, i64, i64)| hit(*tid, *end, *latency);
        listener.ended(hits.iter().map(hit).collect());
        call(&mut listener, 5_000);
        let answer = listener.answer(ms(6_001));
        assert!(answer.is_some(), "in the end it is answered: {hits:?}");
        assert_eq!(told(answer), expect, "{hits:?}");
    };
    check(&[], None);
    check(&[(100, 4_990, 6), (100, 4_995, 2)], Some((100, 6, vec![])));
    // Too long ago, or begun after the call.
    check(&[(100, 3_900, 90), (100, 4_995, 2)], Some((100, 2, vec![])));
    check(&[(100, 5_030, 20)], None);
    // It called inside.
    check(&[(100, 5_004, 8)], Some((100, 8, vec![])));
    // Of several the longest one, whoever it is of.
    check(
        &[(100, 4_990, 9), (7, 4_999, 3), (101, 4_980, 30)],
        Some((101, 30, vec![100, 7])),
    );
    // A real-time one of the same order goes before it.
    check(
        &[(7, 4_970, 16), (101, 4_980, 30)],
        Some((7, 16, vec![101])),
    );
    // Nobody waits for what a real-time program does beside.
    check(
        &[(200, 4_990, 9), (7, 4_999, 3), (201, 4_980, 30)],
        Some((7, 3, vec![201, 200])),
    );
}

#[test]
fn a_tasks_start_is_told_only_where_nothing_else_was_late() {
    let fair = |hit: Hit| Hit {
        task: TaskRef {
            prio: Prio::from_lttng(20),
            ..hit.task.clone()
        },
        ..hit
    };
    let check = |hits: Vec<Hit>, expect_ms: i64| {
        let mut listener = listener();
        listener.ended(hits);
        call(&mut listener, 5_000);
        let found = told(listener.answer(ms(6_001)));
        assert_eq!(found.map(|(_, latency_ms, _)| latency_ms), Some(expect_ms));
    };
    // Its first activation lasts from its making on, before it has its priority.
    let start = || fair(hit(8, 4_613, 12));
    check(vec![start(), hit(8, 4_990, 6)], 6);
    check(vec![start(), fair(hit(8, 4_990, 6))], 6);
    check(vec![start(), hit(100, 4_990, 2)], 2);
    check(vec![start()], 12);
    // As real-time it was late by less: that is what it is about.
    check(vec![fair(hit(7, 4_800, 20)), hit(7, 4_990, 6)], 6);
}

#[test]
fn of_those_that_are_alike_the_last_before_the_call_is_meant() {
    let check = |hits: &[(i32, i64, i64)], expect: (i32, i64, Vec<i32>)| {
        let mut listener = listener();
        let hit = |(tid, end, latency): &(i32, i64, i64)| hit(*tid, *end, *latency);
        listener.ended(hits.iter().map(hit).collect());
        call(&mut listener, 5_000);
        assert_eq!(told(listener.answer(ms(6_001))), Some(expect), "{hits:?}");
    };
    // A hog works for a while, and who waited for it says so.
    check(&[(7, 4_998, 7), (9, 4_999, 6)], (9, 6, vec![7]));
    check(&[(9, 4_999, 6), (7, 4_998, 7)], (9, 6, vec![7]));
    // One that is far shorter is another matter, whenever it ended.
    check(&[(7, 4_600, 7), (9, 4_999, 3)], (7, 7, vec![9]));
    // A task's own last one of two, and not its longest.
    check(
        &[(9, 4_300, 9), (9, 4_999, 6), (7, 4_998, 5)],
        (9, 6, vec![7]),
    );
}

/// An id, a latency and what is usual, in milliseconds.
type Seen = (i32, i64, Option<i64>);

/// Task 7 and 9 are at work each 50 ms, for a millisecond; then these, and a call.
fn after_quiet(late: &[Hit], words: &str) -> (Option<i32>, Vec<Seen>) {
    let mut listener = listener();
    let quiet = |tid| (0..18).map(move |turn| hit(tid, 3_900 + 50 * turn, 1));
    let mut hits: Vec<Hit> = quiet(7).chain(quiet(9)).collect();
    hits.sort_by_key(|hit| hit.end);
    hits.extend(late.iter().cloned());
    listener.ended(hits);
    let (at, words) = (ms(5_000), words.to_owned());
    listener.calls.add(Call { at, words });
    listener.listen();
    let (called, hit) = listener.answer(ms(6_001)).expect("an answer");
    let whole = |duration: Duration| duration.as_ns() / 1_000_000;
    let looked = called.looked_at.iter().map(|looked| {
        let usual = looked.usual.map(whole);
        (looked.task.tid.0, whole(looked.latency), usual)
    });
    (hit.map(|hit| hit.task.tid.0), looked.collect())
}

#[test]
fn nobody_is_named_by_an_activation_that_is_as_long_as_usual() {
    let check = |late: &[Hit], words: &str, expect: Option<i32>| {
        let (told, looked) = after_quiet(late, words);
        assert_eq!(told, expect, "{late:?} {words}");
        assert_eq!(looked.is_empty(), expect.is_some(), "{looked:?}");
    };
    check(&[hit(7, 4_990, 1)], "late", None);
    check(&[hit(7, 4_990, 5)], "late", Some(7));
    // Long before, it has to stand out more.
    check(&[hit(7, 4_770, 3)], "late", None);
    check(&[hit(7, 4_770, 5)], "late", Some(7));
    // Who says how late means nothing far shorter.
    let said = "missed: cycle 150 late, 35.274 ms since the last";
    check(&[hit(7, 4_990, 5)], said, None);
    check(&[hit(7, 4_990, 30)], said, Some(7));
    let (_, looked) = after_quiet(&[hit(7, 4_990, 1)], "late");
    assert_eq!(looked, [(7, 1, Some(1)), (9, 1, Some(1))]);
}

#[test]
fn who_works_with_the_tasks_that_were_asked_for_may_be_meant_and_others_only_without_these() {
    let of = |kin: Kin, hit: Hit| Hit { kin, ..hit };
    let check = |late: &[Hit], expect: i32| {
        let (told, _) = after_quiet(late, "XRun");
        assert_eq!(told, Some(expect), "{late:?}");
    };
    // A client of a sound server, whose own thread had a little noise.
    let client = of(Kin::Near, hit(9, 4_985, 14));
    check(&[client.clone(), hit(7, 4_990, 3)], 9);
    // The server waited for it.
    check(&[client, hit(7, 4_986, 14)], 7);
    let stranger = of(Kin::Stranger, hit(9, 4_985, 14));
    check(&[stranger.clone(), hit(7, 4_990, 3)], 7);
    check(&[stranger, hit(7, 4_990, 1)], 9);
}

#[test]
fn a_task_that_is_always_called_late_is_late_however_usual_that_is() {
    let mut listener = listener();
    listener.ended(vec![hit(7, 4_000, 1)]);
    for turn in 0..20 {
        let at_ms = 5_000 + 300 * turn;
        listener.ended(vec![hit(7, at_ms - 10, 9)]);
        call(&mut listener, at_ms);
        let answer = told(listener.answer(ms(at_ms + 60)));
        assert_eq!(answer, Some((7, 9, vec![])), "{turn}");
    }
}

#[test]
fn how_late_a_line_says_it_was_is_read_where_it_is_plain() {
    let check = |words: &str, expect_us: Option<i64>| {
        let found = said(words).map(|said| said.as_ns() / 1_000);
        assert_eq!(found, expect_us, "{words}");
    };
    check(
        "missed: cycle 150 late, 35.274 ms since the last",
        Some(35_274),
    );
    check("JackTimedDriver::Process XRun = 18 usec", Some(18));
    check("XRun of at least 12.5 msecs", Some(12_500));
    check("late by 7ms, of 5ms", Some(5_000));
    check("late (300us)", Some(300));
    check("XRUN 3", None);
    check("missed after 12 s", None);
    check("client = synth was not finished", None);
    check("-3 ms", None);
    check("", None);
}

#[test]
fn a_task_was_made_before_now_and_not_long_ago() {
    let made = std::thread::spawn(|| born(Tid(rustix::thread::gettid().as_raw_nonzero().get())));
    let made = made.join().expect("it ends").expect("known");
    let ago = clock::monotonic() - made;
    assert!(
        ago > Duration::ZERO && ago < Duration::from_ms(60_000),
        "{ago}"
    );
    assert_eq!(born(Tid(i32::MAX)), None);
}

#[test]
fn the_next_call_is_about_what_came_after_the_last() {
    let mut listener = listener();
    listener.ended(vec![hit(100, 4_990, 6)]);
    call(&mut listener, 5_000);
    // Not before what it is inside of may have ended.
    assert_eq!(told(listener.answer(ms(5_010))), None);
    assert_eq!(listener.wait(ms(5_010)), Duration::from_ms(40));
    let first = told(listener.answer(ms(5_060)));
    assert_eq!(first, Some((100, 6, vec![])));
    assert_eq!(listener.wait(ms(5_060)), TAKE_INTERVAL, "nobody waits");
    listener.ended(vec![hit(100, 5_490, 5)]);
    call(&mut listener, 5_500);
    call(&mut listener, 5_501);
    // Until the answer whoever calls wakes nobody.
    listener.calls.call("late".to_owned());
    assert!(!is_rung(&listener));
    let (called, late) = listener.answer(ms(5_560)).expect("an answer");
    listener.calls.call("late".to_owned());
    assert!(is_rung(&listener));
    listener.calls.take();
    assert_eq!((called.more, called.in_short), (1, true));
    assert_eq!(
        late.map(|late| (late.id, late.latency())),
        Some((2, Duration::from_ms(5)))
    );
    // Whatever the rate, one that is worse than all before has its snapshot.
    listener.ended(vec![hit(100, 5_690, 7)]);
    call(&mut listener, 5_700);
    let (called, _) = listener.answer(ms(5_760)).expect("an answer");
    assert!(!called.in_short);
}
