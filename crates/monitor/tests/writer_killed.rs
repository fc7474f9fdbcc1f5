//! Check that a writer that is killed at any moment loses no interval that it had closed, and that
//! months of intervals stay as small and as quick to read as promised.

mod made_up;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration as Time, Instant};

use made_up::{A_DAY, Chance, EVERY_NS};
use monitor::{Appended, Interval, Limits, PageQuestion, Range, Run, Store, page_json};

/// Names the store to the process that is killed.
const STORE: &str = "RTSCOPE_TEST_STORE";
/// RTSCOPE_MONITOR_KILLS has another number.
const KILLS: u64 = 20;
/// The last moment at which a writer is killed, after its first interval.
const KILL_US_MAX: u64 = 20_000;

/// The interval of this number.
fn interval(number: i64) -> Interval {
    let mut chance = Chance(number as u64 * 2 + 1);
    made_up::interval(number * EVERY_NS, &mut chance)
}

fn create(path: &Path) -> Store {
    Store::create(path, &Run::default(), 0, Limits::default()).expect("a store")
}

/// The process that is killed: says each interval's number once it is stored. Does nothing when it
/// is run as the test that it looks like.
#[test]
fn writer_that_is_killed() {
    let Some(path) = std::env::var_os(STORE) else {
        return;
    };
    let mut store = create(Path::new(&path));
    let mut number = 0;
    store
        .read(Range::ALL, |_, _| {
            number += 1;
            Ok(())
        })
        .expect("it reads");
    loop {
        assert!(matches!(store.append(interval(number)), Appended::Stored));
        println!("stored {number}");
        std::io::stdout().flush().expect("somebody listens");
        number += 1;
    }
}

/// Starts a writer, kills it a while after its first interval; the number of the last one that it
/// said to have stored.
fn write_and_kill(path: &Path, after: Time) -> i64 {
    let program = std::env::current_exe().expect("this program");
    let mut writer = Command::new(program)
        .args(["--exact", "writer_that_is_killed", "--nocapture"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(writer.stdout.take().expect("a pipe")).lines();
    let mut stored = || {
        // What a killed process was about to say may end anywhere.
        lines.by_ref().map_while(Result::ok).find_map(|line| {
            let number = line.rsplit_once("stored ")?.1;
            number.parse::<i64>().ok()
        })
    };
    let mut last = stored().expect("a first one");
    std::thread::sleep(after);
    writer.kill().expect("it runs");
    writer.wait().expect("it ends");
    while let Some(number) = stored() {
        last = number;
    }
    last
}

#[test]
fn a_writer_that_is_killed_at_any_moment_loses_no_closed_interval() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monitor.db");
    let mut chance = Chance(7);
    let mut known = 0;
    let kills = std::env::var("RTSCOPE_MONITOR_KILLS").ok();
    let kills = kills.and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    for kill in 0..kills {
        let after = Time::from_micros(chance.below(KILL_US_MAX));
        let said = write_and_kill(&path, after);
        let store = Store::open(&path).expect("it opens");
        let mut count = 0;
        let read = store.read(Range::ALL, |_, stored| {
            if count >= known {
                assert_eq!(stored, interval(count), "kill {kill}");
            }
            count += 1;
            Ok(())
        });
        read.expect("it reads");
        assert!(
            count > said,
            "kill {kill}: {said} was said, {count} are there"
        );
        known = count;
    }
}

/// `RTSCOPE_MONITOR_DAYS=90` for the figures of docs/benchmarks.md.
#[test]
fn a_day_of_intervals_is_less_than_a_megabyte() {
    let days = std::env::var("RTSCOPE_MONITOR_DAYS").ok();
    let days = days.and_then(|days| days.parse().ok()).unwrap_or(1);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monitor.db");
    let mut store = create(&path);
    let begun = Instant::now();
    for number in 0..days * A_DAY {
        assert!(matches!(store.append(interval(number)), Appended::Stored));
    }
    let written = begun.elapsed();
    let bytes = store.bytes().expect("a size");
    assert!(
        bytes <= days as u64 * (1 << 20),
        "{bytes} bytes for {days} days"
    );
    drop(store);
    let store = Store::open(&path).expect("it opens");
    let time = |range: Range| {
        let begun = Instant::now();
        let mut count = 0;
        let read = store.read(range, |_, _| {
            count += 1;
            Ok(())
        });
        read.expect("it reads");
        (count, begun.elapsed())
    };
    let hour_ns = 3_600_000_000_000;
    let middle_ns = days * 12 * hour_ns;
    let hour = time(Range {
        begin_ns: middle_ns + 1,
        end_ns: middle_ns + hour_ns - 1,
    });
    assert_eq!(hour.0, 12);
    let all = time(Range::ALL);
    assert_eq!(all.0, days * A_DAY);
    let begun = Instant::now();
    let month = PageQuestion {
        range: Range {
            begin_ns: (days - 30).max(0) * 24 * hour_ns,
            ..Range::ALL
        },
        scope: None,
        phase: None,
    };
    let page = page_json(&store, month).expect("a page");
    let shown = begun.elapsed();
    assert!(
        page["intervals"].as_i64() >= Some(days.min(30) * A_DAY),
        "{}",
        page["intervals"]
    );
    println!(
        "{days} days: {bytes} bytes, written in {written:?}, an hour {hour:?}, all {all:?}, \
         the page of a month {shown:?}"
    );
}
