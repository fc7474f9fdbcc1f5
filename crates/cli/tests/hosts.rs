//! `rtscope report hosts` and `criticalpath`: packets of two hosts with a known truth. Needs no
//! privilege.

mod two_hosts;

use std::path::Path;
use std::process::{Command, Output};

use event::Value;
use serde_json::Value as Json;
use two_hosts::*;

fn report(dir: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("report").args(words);
    command.current_dir(dir).output().expect("rtscope starts")
}

/// A request and an answer each 10 ms for ten seconds, 50 us on their way and some more; the
/// hundredth answer takes 3 ms. Some packets are no evidence: sent twice, or lost.
fn conversation() -> (Seen, Seen) {
    let (mut a, mut b) = (Seen::new(), Seen::new());
    for round in 0..1_000 {
        let (seq, v6) = (round as u64 * 10, round % 2 == 1);
        let begin_ns = BEGIN_NS + round * 10_000_000;
        let arrived_ns = begin_ns + 50_000 + round * 7_919 % 30_000;
        let request = packet((1, 2), v6, Of::Tcp(seq));
        a.push((begin_ns, SENT, request.clone()));
        b.push((arrived_ns, RECEIVED, request));
        let way_ns = match round {
            100 => 3_000_000,
            _ => 50_000 + round * 104_729 % 30_000,
        };
        let answer = packet((2, 1), v6, Of::Tcp(seq));
        b.push((arrived_ns + 20_000, SENT, answer.clone()));
        a.push((arrived_ns + 20_000 + way_ns, RECEIVED, answer));
    }
    // Sent again 200 ms later, and only the second one arrives.
    let again = packet((1, 2), false, Of::Tcp(77_777));
    a.push((BEGIN_NS + 1, SENT, again.clone()));
    a.push((BEGIN_NS + 200_000_000, SENT, again.clone()));
    b.push((BEGIN_NS + 200_060_000, RECEIVED, again));
    // Lost on their way.
    a.push((BEGIN_NS + 2, SENT, packet((1, 2), false, Of::Tcp(88_888))));
    a.push((BEGIN_NS + 3, SENT, packet((1, 2), false, Of::Udp(60, 0, 0))));
    (a, b)
}

fn rows<'j>(found: &'j Json, name: &str) -> &'j [Json] {
    let tables = found["windows"][0]["tables"].as_array();
    let table = tables.and_then(|all| all.iter().find(|table| table["table"] == name));
    let rows = table.and_then(|table| table["rows"].as_array());
    rows.unwrap_or_else(|| panic!("no table {name}: {found:#}"))
}

#[test]
fn the_offset_of_two_clocks_is_found_within_its_error_and_delays_are_put_right() {
    let dir = tempfile::tempdir().expect("a folder");
    let (a, b) = conversation();
    write(&dir.path().join("a"), "one", a, |at_ns| at_ns, true);
    write(&dir.path().join("b"), "two", b, clock_of_b, true);
    let output = report(dir.path(), &["hosts", "a", "b", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let found: Json = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let clocks = &rows(&found, "clocks")[0];
    assert_eq!(
        (&clocks["a_to_b"], &clocks["b_to_a"]),
        (&1_000.into(), &1_000.into())
    );
    let ns = |row: &Json, key: &str| row[key].as_i64().expect("a number");
    let error_ns = ns(clocks, "error_ns");
    for (key, truth_ns) in [
        ("offset_begin", AHEAD_NS),
        ("offset_end", AHEAD_NS + GAINED_NS),
    ] {
        let off_ns = (ns(clocks, key) - truth_ns).abs();
        assert!(off_ns <= error_ns, "{off_ns}: {clocks}");
    }
    // No more than half of the fastest round trip: nothing in packets says more.
    assert!((1..60_000).contains(&error_ns), "{error_ns}");
    let drift = clocks["drift"].as_f64().expect("a number");
    assert!((drift - GAINS_NS_PER_S as f64).abs() < 5_000.0, "{drift}");
    let counts = serde_json::json!([{"crossed": 2000, "alone": 2, "ambiguous": 1, "left_out": 0}]);
    assert_eq!(rows(&found, "counts"), counts.as_array().expect("rows"));
    let longest = &rows(&found, "packets")[0];
    let names = (&longest["from"], &longest["to"]);
    assert_eq!(names, (&"two".into(), &"one".into()), "{longest}");
    assert!(
        longest["segment"]
            .as_str()
            .is_some_and(|text| text.contains("seq 1000,"))
    );
    let off_ns = (ns(longest, "delay_ns") - 3_000_000).abs();
    assert!(off_ns <= ns(longest, "error_ns"), "{longest}");
}

#[test]
fn datagrams_are_matched_where_their_headers_tell_them_apart_and_counted_where_not() {
    let (mut a, mut b) = (Seen::new(), Seen::new());
    for round in 0..500_u64 {
        let at = |us: i64| BEGIN_NS + round as i64 * 10_000_000 + us * 1_000;
        // A network card fills the checksum in, but a connected socket counts its datagrams. Each
        // tenth is lost.
        let request = |check| packet((1, 2), false, Of::Udp(60, round + 1, check));
        a.push((at(0), SENT, request(0x1234)));
        if round % 10 != 9 {
            b.push((at(50), RECEIVED, request(round * 31)));
        }
        // No number in IPv6: the checksum of the content tells it, as no card does that here.
        let answer = packet((2, 1), true, Of::Udp(80, 0, round * 17));
        b.push((at(100), SENT, answer.clone()));
        a.push((at(160), RECEIVED, answer));
        // The same content each time, and no number.
        let beat = packet((1, 2), true, Of::Udp(20, 0, 99));
        a.push((at(500), SENT, beat.clone()));
        if round % 10 != 9 {
            b.push((at(560), RECEIVED, beat));
        }
    }
    let dir = tempfile::tempdir().expect("a folder");
    write(&dir.path().join("a"), "one", a, |at_ns| at_ns, true);
    write(&dir.path().join("b"), "two", b, clock_of_b, true);
    let output = report(dir.path(), &["hosts", "a", "b", "--json", "--limit", "0"]);
    assert!(output.status.success(), "{output:?}");
    let found: Json = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let counts = serde_json::json!([{"crossed": 950, "alone": 50, "ambiguous": 1, "left_out": 0}]);
    assert_eq!(rows(&found, "counts"), counts.as_array().expect("rows"));
    let clocks = &rows(&found, "clocks")[0];
    let ns = |row: &Json, key: &str| row[key].as_i64().expect("a number");
    let off_ns = (ns(clocks, "offset_begin") - AHEAD_NS).abs();
    assert!(off_ns <= ns(clocks, "error_ns"), "{clocks}");
    // Each was 50 or 60 us on its way: a false pair would be 10 ms off.
    for row in rows(&found, "packets") {
        let truth_ns = match row["from"] == "one" {
            true => 50_000,
            false => 60_000,
        };
        let off_ns = (ns(row, "delay_ns") - truth_ns).abs();
        assert!(off_ns <= ns(row, "error_ns"), "{row}");
    }
    let text = rows(&found, "packets")[0]["segment"].as_str();
    assert!(text.is_some_and(|text| text.contains("UDP of 80 bytes, checksum 0x")));
}

#[test]
fn traces_that_show_no_headers_and_one_host_alone_are_refused_with_the_way_out() {
    let dir = tempfile::tempdir().expect("a folder");
    let (a, b) = conversation();
    let folder = |name: &str| dir.path().join(name);
    write(&folder("one"), "one", a.clone(), |at_ns| at_ns, true);
    write(&folder("bare-one"), "one", a, |at_ns| at_ns, false);
    write(&folder("bare-two"), "two", b, clock_of_b, false);
    let check = |words: &[&str], expect: [&str; 3]| {
        let output = report(dir.path(), words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
        // Warnings of what else is missing stand before it.
        let text = &text[text.find("error: ").expect("an error")..];
        let parts = ["error: ", "found: ", "fix:  "].iter().zip(expect);
        for (part, expect) in parts {
            let line = text
                .lines()
                .find(|line| line.trim_start().starts_with(part));
            assert!(
                line.is_some_and(|line| line.contains(expect)),
                "{expect}: {text}"
            );
        }
    };
    check(
        &["hosts", "bare-one", "bare-two"],
        [
            "on another host",
            "no network_header",
            "lttng enable-event -k",
        ],
    );
    check(
        &["criticalpath", "bare-one", "bare-two", "--tid", "10"],
        [
            "on another host",
            "no network_header",
            "lttng enable-event -k",
        ],
    );
    check(
        &["hosts", "one"],
        ["between two hosts", "one host, 'one'", "report hosts"],
    );
}

const CLIENT: (&str, i64) = ("client", 10);
const SERVER: (&str, i64) = ("server", 20);
const IDLE: (&str, i64) = ("swapper/0", 0);
const ROUNDS: i64 = 100;

fn number(value: i64) -> Value<'static> {
    Value::Signed(value)
}

fn text(text: &'static str) -> Value<'static> {
    Value::Text(text.into())
}

/// A switch to a task; who blocks does so in state 1.
fn switch(prev: (&'static str, i64), next: (&'static str, i64)) -> Vec<Value<'static>> {
    let state = number(i64::from(prev.1 != 0));
    let prev = [text(prev.0), number(prev.1), number(20), state];
    let next = [text(next.0), number(next.1), number(20)];
    prev.into_iter().chain(next).collect()
}

/// The softirq that takes a segment in and wakes who waits for it, over in two microseconds.
fn taken_in(seen: &mut Seen, at_ns: i64, segment: &[Value<'static>], who: (&'static str, i64)) {
    let waking = vec![text(who.0), number(who.1), number(20), number(0)];
    seen.push((at_ns - 1_000, SOFTIRQ, vec![number(3)]));
    seen.push((at_ns, RECEIVED, segment.to_vec()));
    seen.push((at_ns + 1_000, WAKING, waking));
    seen.push((at_ns + 2_000, SOFTIRQ_END, vec![number(3)]));
}

/// Each 10 ms `client` on host one asks `server` on host two, which works for a millisecond. With a
/// `stranger`, a datagram comes between each segment and the wake-up.
fn request_and_answer(stranger: bool) -> (Seen, Seen) {
    let (mut a, mut b) = (Seen::new(), Seen::new());
    a.push((BEGIN_NS, SWITCH, switch(IDLE, CLIENT)));
    b.push((BEGIN_NS, SWITCH, switch(SERVER, IDLE)));
    for round in 0..ROUNDS {
        let at = |us: i64| BEGIN_NS + round * 10_000_000 + us * 1_000;
        let seq = round.unsigned_abs() * 10;
        let (request, answer) = (
            packet((1, 2), false, Of::Tcp(seq)),
            packet((2, 1), false, Of::Tcp(seq)),
        );
        a.push((at(100), SENT, request.clone()));
        a.push((at(120), SWITCH, switch(CLIENT, IDLE)));
        taken_in(&mut b, at(160), &request, SERVER);
        b.push((at(180), SWITCH, switch(IDLE, SERVER)));
        b.push((at(1_170), SENT, answer.clone()));
        b.push((at(1_190), SWITCH, switch(SERVER, IDLE)));
        taken_in(&mut a, at(1_230), &answer, CLIENT);
        a.push((at(1_240), SWITCH, switch(IDLE, CLIENT)));
    }
    if stranger {
        for seen in [&mut a, &mut b] {
            let received = seen.iter().filter(|(_, class, _)| *class == RECEIVED);
            let after = |&(at_ns, ..): &(i64, u32, _)| (at_ns + 500, RECEIVED, datagram());
            let datagrams: Seen = received.map(after).collect();
            seen.extend(datagrams);
        }
    }
    (a, b)
}

fn datagram() -> Vec<Value<'static>> {
    packet((3, 1), false, Of::Udp(60, 0, 0))
}

/// The sums of the path of `client`, as text of the host, the thread and what it did, in us.
fn path(stranger: bool) -> Vec<(String, i64)> {
    let dir = tempfile::tempdir().expect("a folder");
    let (a, b) = request_and_answer(stranger);
    write(&dir.path().join("a"), "one", a, |at_ns| at_ns, true);
    write(&dir.path().join("b"), "two", b, clock_of_b, true);
    let output = report(
        dir.path(),
        &["criticalpath", "a", "b", "--tid", "10", "--json"],
    );
    assert!(output.status.success(), "{output:?}");
    let found: Json = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let window = &found["windows"][0];
    let ns = |value: &Json| value.as_i64().expect("a number");
    let sums = rows(&found, "host_sums");
    let total_ns: i64 = sums.iter().map(|row| ns(&row["total_ns"])).sum();
    let first_ns = ns(&rows(&found, "host_steps")[0]["time_range"]["begin_wall_ns"]);
    assert_eq!(first_ns, ns(&window["begin_wall_ns"]));
    // From the first event of host one to its last: every nanosecond once.
    assert_eq!(total_ns, (ROUNDS - 1) * 10_000_000 + 1_240_000);
    let one = |row: &Json| {
        let word = |value: &Json| value.as_str().unwrap_or("-").to_owned();
        let words = [&row["host"], &row["process"]["comm"], &row["what"]].map(word);
        (words.join(" "), ns(&row["total_ns"]) / 1_000)
    };
    sums.iter().map(one).collect()
}

#[test]
fn the_critical_path_goes_on_in_the_thread_of_the_other_host_that_sent_the_packet() {
    // A round: 990 us of work, 20 and 10 us until a CPU, 41 and 61 us on the way.
    let expect = [
        (
            "one client runs",
            1_200 + (ROUNDS - 1) * 10_000 - ROUNDS * 1_120 + 40,
        ),
        ("two server runs", ROUNDS * 990),
        ("one - packet on its way from two", ROUNDS * 61),
        ("two - packet on its way from one", ROUNDS * 41),
        ("two server waits for a CPU", ROUNDS * 19),
        ("one client waits for a CPU", ROUNDS * 9),
    ];
    let found = path(false);
    assert_eq!(found.len(), expect.len(), "{found:?}");
    for (what, expect_us) in expect {
        let sum = found.iter().find(|(words, _)| words == what);
        let off_us = sum.map(|(_, us)| (us - expect_us).abs());
        // The offset is off by half a microsecond, as both ways are not equally long.
        assert!(
            off_us.is_some_and(|us| us <= ROUNDS),
            "{what} {expect_us}: {found:?}"
        );
    }
}

#[test]
fn a_packet_that_is_not_known_to_have_woken_the_thread_accuses_nobody() {
    let found = path(true);
    let words: Vec<&str> = found.iter().map(|(words, _)| words.as_str()).collect();
    assert!(
        words.contains(&"one client blocked until softirq NET_RX"),
        "{words:?}"
    );
    assert!(
        words.iter().all(|words| words.starts_with("one client")),
        "{words:?}"
    );
}
