//! The benchmarks cannot rot: a small run of each comes out whole. What they measure is not judged.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Runs `subject` small and gives its report.
fn small(subject: &str) -> Option<Value> {
    let _alone = testkit::privileged();
    let hackbench = Command::new("hackbench").arg("--help").output();
    if hackbench.is_err() {
        testkit::skip(&format!("bench {subject}"), "hackbench is not installed");
        return None;
    }
    let bench = Path::new(env!("CARGO_BIN_EXE_bench"));
    let output = Command::new(bench)
        .args([subject, "--small", "--json"])
        .output()
        .expect("bench starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "bench {subject}: {said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["schema"], "rtscope.bench");
    Some(document["reports"][0].clone())
}

/// The report of `subject` has these tables, each with that many rows at least, and every bar has
/// a figure.
fn check(subject: &str, rows_min: &[usize]) {
    let Some(report) = small(subject) else { return };
    let rows = |table: &Value| table.as_array().map_or(0, Vec::len);
    let found: Vec<usize> = report["tables"]
        .as_array()
        .expect("tables")
        .iter()
        .map(rows)
        .collect();
    let enough = found.len() == rows_min.len() && found.iter().zip(rows_min).all(|(a, b)| a >= b);
    assert!(enough, "{subject}: {found:?} rows of {rows_min:?}");
    for bar in report["bars"].as_array().expect("bars") {
        let is_found = bar["found"].is_number();
        // A cold build takes too long, and LTTng-UST need not be installed.
        let is_optional = subject == "build" || bar.to_string().contains("LTTng-UST");
        assert!(is_found || is_optional, "{subject}: {bar}");
    }
}

#[test]
fn calls_are_measured_with_and_without_change_and_rejected() {
    check("calls", &[5, 5]);
}

/// `crowd` is a part of it.
#[test]
fn an_event_of_an_application_is_measured() {
    if !testkit::two_cpus("an_event_of_an_application_is_measured") {
        return;
    }
    check("probe", &[7, 2, 2, 2, 2, 4, 4]);
}

#[test]
fn a_watch_is_accounted_and_compared() {
    check("watch", &[4, 5, 6]);
}

/// Most of its servers need not be there: memcached is, for other tests.
#[test]
fn a_watch_of_a_busy_program_is_accounted_and_compared() {
    check("workloads", &[4]);
}

#[test]
fn snapshots_are_timed_with_and_without_load() {
    check("snapshot", &[6, 2]);
}

#[test]
fn a_hits_own_cost_is_measured_by_the_one_that_is_late() {
    check("hit", &[16]);
}

/// Peers need not be there, nor work on this kernel: bars on them may have no figure.
#[test]
fn recorders_are_compared_under_one_load() {
    let Some(report) = small("record") else {
        return;
    };
    let row = &report["tables"][1][0];
    assert_eq!(row["recorder"], "rtscope record");
    assert!(row["events (median)"].as_f64() > Some(0.0), "{report:#}");
    assert!(report["bars"][2]["found"].is_number(), "{report:#}");
}

#[test]
fn a_trace_is_read_and_its_reader_measured() {
    check("diagnose", &[2]);
}

/// The peer's half needs the peer: without it the first bar has no figure.
#[test]
fn the_reports_are_timed_one_by_one_and_together() {
    let Some(report) = small("reports") else {
        return;
    };
    let rows = report["tables"][0].as_array().map_or(0, Vec::len);
    // Two reports, both passes over all, the critical path and the verdict: those of ours.
    assert!(rows >= 6, "{report:#}");
    let bars = report["bars"].as_array().expect("bars");
    assert!(
        bars[1..].iter().all(|bar| bar["found"].is_number()),
        "{report:#}"
    );
}

#[test]
fn traces_are_read_in_all_ways_beside_the_peer() {
    check("engine", &[6]);
}

#[test]
fn a_build_into_an_empty_folder_is_timed() {
    check("build", &[1]);
}
