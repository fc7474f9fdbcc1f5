//! Check that a budget is held, broken or left open as its samples say, and never by a guess.

use std::path::PathBuf;

use event::Cpu;

use super::*;
use crate::interval::Series;
use crate::store::{Appended, Limits};
use crate::task::Task;
use crate::test_data::MINUTE_NS;

/// The bucket of a time.
fn bucket(ns: u64) -> u16 {
    let found = (0..608).rfind(|bucket| bucket_begin_ns(*bucket) <= ns);
    found.expect("a bucket") as u16
}

fn series(scope: Scope, phase: Phase, samples_ns: &[(u64, u64)]) -> Series {
    let mut histogram = Histogram::default();
    for (ns, count) in samples_ns {
        histogram.add(&Histogram(vec![(bucket(*ns), *count)]));
    }
    let max_ns = samples_ns.iter().map(|(ns, _)| *ns).max().unwrap_or(0);
    Series {
        scope,
        phase: phase.into(),
        cpu: Cpu(0),
        sum: Duration::ZERO,
        min: Duration::ZERO,
        max: Duration::from_ns(max_ns as i64),
        histogram,
    }
}

/// An interval with wake-ups and switches of these lengths.
fn interval(scope: Scope, wakeups_ns: &[(u64, u64)], switches_ns: &[(u64, u64)]) -> Interval {
    Interval {
        series: vec![
            series(scope, Phase::Wakeup, wakeups_ns),
            series(scope, Phase::Switch, switches_ns),
        ],
        ..Interval::default()
    }
}

struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

/// A store of runs, each with its tasks and intervals.
fn store(runs: &[(&[&str], Vec<Interval>)]) -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monitor.db");
    let mut number = 0;
    for (tasks, intervals) in runs {
        let run = Run {
            settings: serde_json::json!({ "task": tasks, "all": false }).to_string(),
            ..Run::default()
        };
        let mut store = Store::create(&path, &run, 0, Limits::default()).expect("a store");
        for interval in intervals {
            let mut interval = interval.clone();
            interval.head.begin_ns = number * MINUTE_NS;
            interval.head.end_ns = (number + 1) * MINUTE_NS;
            number += 1;
            assert!(matches!(store.append(interval), Appended::Stored));
        }
    }
    Place {
        _folder: folder,
        path,
    }
}

fn gate(task: &str, limit_us: i64, over_ppm: u32) -> Gate {
    Gate {
        text: String::new(),
        subject: GateSubject::WakeUp,
        task: Some(TaskPattern::parse(task).expect("a task")),
        limit: Duration::from_us(limit_us),
        over_ppm,
        samples_min: if over_ppm == 0 { 1 } else { 1000 },
    }
}

fn finding(place: &Place, gate: Gate) -> GateFinding {
    let store = Store::open(&place.path).expect("it opens");
    judge(&store, Range::ALL, &[gate])
        .expect("judged")
        .findings
        .remove(0)
}

fn judged(place: &Place, gate: Gate) -> &'static str {
    match finding(place, gate).judgement {
        GateJudgement::Held => "held",
        GateJudgement::Broken => "broken",
        GateJudgement::Inconclusive(_) => "inconclusive",
    }
}

const US: u64 = 1000;

#[test]
fn what_a_tracker_measured_is_judged_by_its_own_samples_and_losses() {
    let kind = Kind::tracked("block", "device", "");
    let mut counted = interval(Scope::RealTime, &[(US, 900)], &[(98 * US, 900)]);
    let mut tracked = series(
        Scope::RealTime,
        Phase::Timer,
        &[(40 * US, 2000), (90 * US, 1)],
    );
    tracked.phase = kind.clone();
    counted.series.push(tracked);
    counted.head.lost = 1_000_000;
    let of = |limit_us: i64, over_ppm: u32| Gate {
        subject: GateSubject::Tracked(kind.clone()),
        ..gate("rt", limit_us, over_ppm)
    };
    let place = store(&[(&[], vec![counted.clone()])]);
    let check = |place: &Place, limit_us: i64, over_ppm: u32, expect: &str| {
        let found = judged(place, of(limit_us, over_ppm));
        assert_eq!(found, expect, "{limit_us} {over_ppm}");
    };
    check(&place, 95, 0, "held");
    check(&place, 80, 0, "broken");
    check(&place, 80, 1000, "held");
    counted.head.lost_tracked = 5;
    let lossy = store(&[(&[], vec![counted])]);
    check(&lossy, 95, 0, "inconclusive");
    check(&lossy, 80, 1000, "inconclusive");
    // Another phase of the same store is not meant.
    assert_eq!(finding(&place, of(95, 0)).samples, 2001);
}

#[test]
fn a_budget_without_a_share_is_decided_by_the_longest_to_the_nanosecond() {
    let scope = Scope::Named;
    let place = store(&[(
        &["x"],
        vec![interval(scope, &[(US, 900)], &[(98 * US, 900)])],
    )]);
    let check = |limit_us: i64, expect: &str| {
        assert_eq!(judged(&place, gate("x", limit_us, 0)), expect, "{limit_us}");
    };
    // The bucket of 98 us goes from 96 to 100 us: the longest is known better.
    check(99, "held");
    // 98 of the switch is within, 1 + 98 is not known to be one wake-up.
    check(98, "inconclusive");
    check(97, "broken");
    let finding = finding(&place, gate("x", 97, 0));
    assert_eq!((finding.samples, finding.over.0 > 0), (900, true));
}

#[test]
fn a_share_is_held_with_all_that_may_be_over_and_broken_without_any() {
    let scope = Scope::Named;
    let switches = [(10 * US, 99_900), (98 * US, 50), (500 * US, 50)];
    let place = store(&[(&["x"], vec![interval(scope, &[(US, 100_000)], &switches)])]);
    let check = |limit_us: i64, over_ppm: u32, expect: &str| {
        let found = judged(&place, gate("x", limit_us, over_ppm));
        assert_eq!(found, expect, "{limit_us} us, {over_ppm} ppm");
    };
    check(200, 1_000, "held");
    check(200, 500, "held");
    check(200, 499, "broken");
    check(50, 1_000, "held");
    check(50, 999, "broken");
    // 98 us lies in the limit's own bucket: 50 or 100 are over.
    check(98, 1_000, "held");
    check(98, 700, "inconclusive");
    check(98, 400, "broken");
}

#[test]
fn long_wake_ups_of_other_samples_make_no_switch_longer() {
    let wakeups = [(US, 10_000), (300 * US, 2)];
    let switches = [(10 * US, 10_000), (350 * US, 2)];
    let place = store(&[(&["x"], vec![interval(Scope::Named, &wakeups, &switches)])]);
    // Both within 500 us by themselves, and together where they met: at most two did.
    let found = finding(&place, gate("x", 500, 0));
    assert_eq!(found.over, (0, 2));
    assert_eq!(judged(&place, gate("x", 500, 200)), "held");
    assert_eq!(judged(&place, gate("x", 650, 0)), "held");
    // A wake-up before the end of an interval, its switch after it.
    let apart = vec![
        interval(Scope::Named, &[(300 * US, 1)], &[(US, 5)]),
        interval(Scope::Named, &[(US, 5)], &[(350 * US, 1)]),
    ];
    let place = store(&[(&["x"], apart)]);
    assert_eq!(judged(&place, gate("x", 500, 0)), "inconclusive");
}

#[test]
fn whose_samples_are_not_counted_alone_holds_no_budget() {
    let fine = || vec![interval(Scope::Named, &[(US, 9)], &[(US, 9)])];
    let check = |runs: &[(&[&str], Vec<Interval>)], task: &str, expect: &str| {
        assert_eq!(judged(&store(runs), gate(task, 500, 0)), expect, "{task}");
    };
    check(&[(&["x"], fine())], "x", "held");
    // A name with a mistake in it.
    check(&[(&["x"], fine())], "y", "inconclusive");
    check(&[(&["x", "y"], fine())], "x", "inconclusive");
    // Only since the settings changed.
    check(&[(&["y"], fine()), (&["x"], fine())], "x", "inconclusive");
    check(&[(&["x"], fine())], "rt", "inconclusive");
    let real_time = vec![interval(Scope::RealTime, &[(US, 9)], &[(US, 9)])];
    check(&[(&["x"], real_time)], "rt", "held");
}

#[test]
fn a_task_that_is_the_longest_of_an_interval_breaks_its_budget() {
    let mut late = interval(Scope::RealTime, &[(US, 9)], &[(900 * US, 9)]);
    let victim = Task {
        tid: 7,
        prio: 49,
        name: "x".to_owned(),
    };
    late.worst = vec![Worst {
        scope: Scope::RealTime,
        phase: Phase::Switch.into(),
        cpu: Cpu(0),
        value: Duration::from_us(900),
        at_ns: 5,
        timer: None,
        parts: [Duration::from_us(1), Duration::from_us(900), Duration::ZERO],
        victim: Some(victim),
        culprit: None,
        call: None,
        function: None,
        mode: abi::monitor::Mode::User,
        stack: Vec::new(),
        key: None,
    }];
    let place = store(&[(&[], vec![late])]);
    assert_eq!(judged(&place, gate("x", 500, 0)), "broken");
    assert_eq!(judged(&place, gate("x", 1000, 0)), "inconclusive");
    assert_eq!(judged(&place, gate("z", 500, 0)), "inconclusive");
    let found = finding(&place, gate("x", 900, 0));
    assert_eq!(found.judgement, GateJudgement::Broken);
    assert_eq!(found.worst, Some((Duration::from_us(901), 5)));
}

#[test]
fn what_was_not_counted_is_no_good_news() {
    let with = |lost: u64, unsaved: u64, samples: u64| {
        let samples_ns = [(US, samples)];
        let samples_ns = &samples_ns[..usize::from(samples > 0)];
        let mut interval = interval(Scope::Named, samples_ns, samples_ns);
        (interval.head.lost, interval.head.unsaved) = (lost, unsaved);
        store(&[(&["x"], vec![interval])])
    };
    let check = |place: &Place, over_ppm: u32, expect: &str| {
        assert_eq!(judged(place, gate("x", 500, over_ppm)), expect);
    };
    check(&with(0, 0, 10_000), 1_000, "held");
    check(&with(5, 0, 10_000), 1_000, "held");
    check(&with(50, 0, 10_000), 1_000, "inconclusive");
    check(&with(1, 0, 10_000), 0, "inconclusive");
    check(&with(0, 1, 10_000), 1_000, "inconclusive");
    check(&with(0, 0, 999), 1_000, "inconclusive");
    check(&with(0, 0, 0), 0, "inconclusive");
}
