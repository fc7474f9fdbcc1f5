//! A monitor's store under the verbs that judge and push, as nightly jobs call them: exit codes,
//! JUnit, JSON; needs no privilege.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use abi::monitor::Phase;
use event::{Cpu, Duration};
use monitor::{Appended, Head, Histogram, Interval, Limits, Run, Scope, Series, Store};

const MINUTE_NS: i64 = 60_000_000_000;
/// 2026-11-09 00:00:00 UTC, a day of intervals of half an hour.
const FIRST_NS: i64 = 1_794_182_400_000_000_000;
const EVERY_NS: i64 = 30 * MINUTE_NS;
const A_DAY: i64 = 48;

struct Place {
    folder: tempfile::TempDir,
    store: PathBuf,
}

/// Two days of 10 us; on the second one every switch is `factor` times as long.
fn place(factor: u64) -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("monitor.db");
    let run = Run {
        host: "h".to_owned(),
        kernel: "6.18".to_owned(),
        boot_id: "b".to_owned(),
        settings: "{\"task\": [\"control\"], \"all\": false}".to_owned(),
        ..Run::default()
    };
    let mut writer = Store::create(&store, &run, 0, Limits::default()).expect("a store");
    for number in 0..2 * A_DAY {
        let us = if number < A_DAY { 10 } else { 10 * factor };
        let appended = writer.append(interval(FIRST_NS + number * EVERY_NS, us));
        assert!(matches!(appended, Appended::Stored));
    }
    Place { folder, store }
}

fn interval(begin_ns: i64, switch_us: u64) -> Interval {
    let series = |phase: Phase, us: u64| {
        let bucket = (0..608).rfind(|bucket| abi::bucket_begin_ns(*bucket) <= us * 1000);
        Series {
            scope: Scope::Named,
            phase: phase.into(),
            cpu: Cpu(0),
            sum: Duration::from_us(us as i64 * 5000),
            min: Duration::from_us(us as i64),
            max: Duration::from_us(us as i64),
            histogram: Histogram(vec![(bucket.expect("a bucket") as u16, 5000)]),
        }
    };
    Interval {
        head: Head {
            begin_ns,
            end_ns: begin_ns + EVERY_NS,
            elapsed: Duration::from_ns(EVERY_NS),
            ..Head::default()
        },
        series: vec![series(Phase::Wakeup, 1), series(Phase::Switch, switch_us)],
        ..Interval::default()
    }
}

fn run(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.env("TZ", "UTC").args(words);
    command.output().expect("rtscope starts")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("utf-8")
}

/// The second day.
const SECOND: [&str; 2] = ["--begin", "2026-11-10 00:00:01"];
const FIRST: [&str; 2] = ["--end", "2026-11-09 23:59:59"];

#[test]
fn a_store_is_judged_by_budgets_in_the_part_that_was_asked_for() {
    let place = place(4);
    let check = |rule: &str, window: &[&str], expect: i32| {
        let words = ["check", text(&place.store), "--rule", rule];
        let output = run(&[&words[..], window].concat());
        assert_eq!(output.status.code(), Some(expect), "{rule}: {output:?}");
    };
    check("wake-up of control within 20us", &FIRST, 0);
    check("wake-up of control within 20us p99.9", &FIRST, 0);
    check("wake-up of control within 20us", &SECOND, 2);
    check("wake-up of control within 20us", &[], 2);
    check("wake-up of control within 20us p40", &[], 0);
    check("wake-up of contrl within 20us", &FIRST, 3);
    check("wake-up of rt within 20us", &FIRST, 3);
    check("timer of control within 20us", &FIRST, 3);
    check("wake-up of control within 20us", &["--last", "1h"], 3);
    // What it has no samples of, and times that are none of a store.
    check("response of control within 20us", &FIRST, 1);
    check("wake-up of control within 20us", &["--begin", "5.5"], 1);
    check(
        "wake-up of control within 20us",
        &["--begin", "08:00:00"],
        1,
    );
    check("wake-up of control within 20us", &["--cpu", "0"], 1);
}

#[test]
fn a_judged_store_is_told_as_json_and_as_junit() {
    let place = place(4);
    let junit = place.folder.path().join("result.xml");
    let rules = [
        "--rule",
        "wake-up of control within 20us",
        "--rule",
        "wake-up of x within 1ms",
    ];
    let words = [
        "check",
        text(&place.store),
        "--json",
        "--junit",
        text(&junit),
    ];
    let output = run(&[&words[..], &rules[..]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["schema"], "rtscope.monitor.check");
    assert_eq!(json["intervals"], 2 * A_DAY);
    assert_eq!(json["findings"][0]["judgement"], "broken");
    assert_eq!(json["findings"][0]["over_min"], 5000 * A_DAY);
    assert_eq!(json["findings"][1]["judgement"], "inconclusive");
    let xml = std::fs::read_to_string(&junit).expect("it was written");
    assert!(
        xml.contains("tests=\"2\" failures=\"1\" errors=\"1\""),
        "{xml}"
    );
}

#[test]
fn a_day_is_compared_with_the_day_before_and_a_slower_one_is_told() {
    let check = |factor: u64, turned: bool, expect: i32, word: &str| {
        let place = place(factor);
        let day = "2026-11-09T23:59:59";
        let words = match turned {
            false => ["--end", day, "--after-begin", day],
            true => ["--begin", day, "--after-end", day],
        };
        let store = text(&place.store);
        let output = run(&[&["diff", store, "--after", store], &words[..]].concat());
        assert_eq!(output.status.code(), Some(expect), "{factor}: {output:?}");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.contains(word), "{told}");
    };
    check(4, false, 2, "SLOWER       named switch");
    check(4, true, 0, "faster       named switch");
    check(1, false, 0, "not resolved named switch");
}

#[test]
fn what_cannot_be_compared_is_refused_or_inconclusive() {
    let place = place(1);
    let store = text(&place.store);
    let trace = place.folder.path().join("trace");
    testkit::write_sample(&trace).expect("a trace");
    let check = |words: &[&str], expect: i32| {
        let output = run(words);
        assert_eq!(output.status.code(), Some(expect), "{words:?}: {output:?}");
    };
    // Nothing was counted this week, by the clock of this machine.
    check(&["diff", store, "--last", "1h"], 3);
    check(&["diff", store], 1);
    check(&["diff", store, text(&trace)], 1);
    check(&["diff", text(&trace), text(&trace), "--last", "7d"], 1);
    check(&["diff", store, store, "--over", "1ms"], 1);
    check(
        &[
            "check",
            store,
            text(&trace),
            "--rule",
            "wake-up of x within 1ms",
        ],
        1,
    );
}

#[test]
fn report_tells_of_a_store_what_monitor_report_does() {
    let place = place(4);
    let output = run(&["report", text(&place.store), FIRST[0], FIRST[1]]);
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        told.contains("48 intervals from 2026-11-09T00:00:00Z"),
        "{told}"
    );
    assert!(told.contains("named") && told.contains("240000"), "{told}");
}

#[test]
fn an_export_to_parquet_is_a_fleet_of_one_and_needs_no_other_folder() {
    let place = place(1);
    let (store, out) = (text(&place.store), place.folder.path().join("tables"));
    let words = ["monitor", "export", "--store", store, "--to", "parquet"];
    let without = run(&words);
    assert_eq!(without.status.code(), Some(1), "{without:?}");
    let output = run(&[&words[..], &["-o", text(&out)]].concat());
    assert!(output.status.success(), "{output:?}");
    let fleet = place.folder.path().join("fleet");
    std::fs::create_dir(&fleet).expect("made");
    let push = ["monitor", "push", "--store", store, "--to", text(&fleet)];
    assert!(run(&push).status.success());
    for table in ["interval", "phase", "day"] {
        for date in ["2026-11-09", "2026-11-10"] {
            let below = format!("v1/{table}/date={date}/host=h");
            let names = |folder: &Path| {
                let files = std::fs::read_dir(folder.join(&below)).expect("a folder");
                let file = files.map(|file| file.expect("a file"));
                let read = file.map(|file| (file.file_name(), std::fs::read(file.path()).ok()));
                read.collect::<Vec<_>>()
            };
            // The same bytes under the same names.
            assert_eq!(names(&out), names(&fleet), "{below}");
        }
    }
}

#[test]
fn a_push_needs_a_folder_that_is_there_and_is_done_once() {
    let place = place(1);
    let (store, fleet) = (text(&place.store), place.folder.path().join("fleet"));
    let push = |more: &[&str]| {
        run(&[
            &["monitor", "push", "--store", store, "--to", text(&fleet)],
            more,
        ]
        .concat())
    };
    let away = push(&[]);
    assert_eq!(away.status.code(), Some(1), "{away:?}");
    std::fs::create_dir(&fleet).expect("made");
    let told = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told(&push(&[])).starts_with("96 intervals in 6 files"));
    assert!(told(&push(&[])).starts_with("0 intervals in 0 files"));
    assert!(told(&push(&["--again"])).starts_with("96 intervals in 6 files"));
    let below = fleet.join("v1/phase/date=2026-11-10/host=h");
    assert_eq!(std::fs::read_dir(below).expect("a folder").count(), 1);
    let other = run(&["monitor", "push", "--store", store, "--to", "s3://bucket"]);
    assert_eq!(other.status.code(), Some(1), "{other:?}");
}
