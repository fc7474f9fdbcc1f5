//! All verbs about one recording: what two of them say of one quantity is one number.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Nothing waits for so long.
const RULE: &str = "wake-up of * within 100s";
/// A share of a second has more digits than nanoseconds; each is rounded on its way.
const ROUNDING_NS: i64 = 1;

/// What was compared of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// CPUs whose parts add up to the range, and that are as busy in both reports.
    pub cpus: usize,
    /// Threads with the same time on CPUs in both reports.
    pub threads: usize,
    /// Waits for a CPU that all verbs count.
    pub waits: i64,
    /// Of all CPUs, in thousandths of their time.
    pub unknown_permille: i64,
}

pub fn rtscope(words: &[&str], trace: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(words).arg(trace);
    command.output().expect("rtscope starts")
}

fn json(words: &[&str], trace: &Path) -> Value {
    let output = rtscope(words, trace);
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"))
}

/// The rows of one table.
struct Tables(Value);

impl Tables {
    fn rows(&self, report: &str, table: &str) -> Vec<&Value> {
        let windows = self.0["windows"].as_array().into_iter().flatten();
        let of_report = windows.filter(|window| window["report"] == report);
        let tables = of_report.flat_map(|window| window["tables"].as_array().into_iter().flatten());
        let of_table = tables.filter(|found| found["table"] == table);
        of_table
            .flat_map(|table| table["rows"].as_array().into_iter().flatten())
            .collect()
    }

    fn range_ns(&self) -> i64 {
        let window = &self.0["windows"][0];
        ns(window, "end_wall_ns") - ns(window, "begin_wall_ns")
    }
}

fn ns(row: &Value, key: &str) -> i64 {
    row[key]
        .as_i64()
        .unwrap_or_else(|| panic!("{key} of {row}"))
}

fn tid(row: &Value) -> i64 {
    row["process"]["tid"].as_i64().unwrap_or(-1)
}

#[track_caller]
fn same(what: &str, one: i64, other: i64, slack: i64) {
    assert!((one - other).abs() <= slack, "{what}: {one} and {other}");
}

/// Holds all verbs to one truth about a recording; `said` is what its recorder printed.
///
/// # Panics
/// Where two of them differ.
pub fn check(trace: &Path, said: &str) -> Compared {
    let asked = "cputop,states,resources,schedlog,schedstats,schedtop";
    let tables = Tables(json(&["report", asked, "--json", "--limit", "0"], trace));
    let mut compared = Compared::default();
    check_cpus(&tables, &mut compared);
    compared.waits = check_waits(&tables, trace);
    check_diagnosis(trace, said);
    compared
}

/// Time on CPUs: `cputop`, `states`, `resources`.
fn check_cpus(tables: &Tables, compared: &mut Compared) {
    let range_ns = tables.range_ns();
    let mut top_ns: BTreeMap<i64, i64> = BTreeMap::new();
    for row in tables.rows("cputop", "per-process") {
        let share = row["usage"].as_f64().expect("a share");
        *top_ns.entry(tid(row)).or_default() += (share * range_ns as f64).round() as i64;
    }
    let mut states_ns: BTreeMap<i64, i64> = BTreeMap::new();
    for row in tables.rows("states", "threads") {
        let on_cpu_ns = ns(row, "run_ns") + ns(row, "call_ns") + ns(row, "interrupted_ns");
        *states_ns.entry(tid(row)).or_default() += on_cpu_ns;
    }
    assert!(states_ns.len() > 3, "{} threads", states_ns.len());
    for (tid, on_cpu_ns) in states_ns.iter().filter(|(tid, _)| **tid > 0) {
        compared.threads += 1;
        let had_ns = top_ns.get(tid).copied().unwrap_or(0);
        same(
            &format!("thread {tid} in cputop, states"),
            had_ns,
            *on_cpu_ns,
            ROUNDING_NS,
        );
    }
    let busy: BTreeMap<String, i64> = tables
        .rows("resources", "resources")
        .into_iter()
        .map(|row| (row["resource"].as_str().unwrap_or_default().to_owned(), row))
        .map(|(name, row)| (name, ns(row, "busy_ns")))
        .collect();
    let mut all_unknown_ns = 0;
    for row in tables.rows("states", "cpus") {
        let cpu = row["cpu"].as_i64().expect("a CPU");
        let parts = ["run_ns", "call_ns", "irq_ns", "softirq_ns"];
        let busy_ns: i64 = parts.iter().map(|key| ns(row, key)).sum();
        let (idle_ns, unknown_ns) = (ns(row, "idle_ns"), ns(row, "unknown_ns"));
        let what = format!("CPU {cpu}: states, range");
        same(&what, busy_ns + idle_ns + unknown_ns, range_ns, 0);
        compared.cpus += 1;
        all_unknown_ns += unknown_ns;
        let in_resources_ns = busy.get(&format!("CPU {cpu}")).copied().unwrap_or(0);
        assert!(
            (busy_ns..=busy_ns + unknown_ns).contains(&in_resources_ns),
            "CPU {cpu}: busy {in_resources_ns} ns in resources, {busy_ns} and {unknown_ns} unknown"
        );
    }
    let all_ns = range_ns * compared.cpus as i64;
    compared.unknown_permille = all_unknown_ns * 1_000 / all_ns.max(1);
}

/// Waits: `schedlog`, `schedstats`, `schedtop`, `check`.
fn check_waits(tables: &Tables, trace: &Path) -> i64 {
    let listed = tables.rows("schedlog", "log");
    let latencies = listed.iter().map(|row| ns(row, "latency_ns"));
    let worst_ns = latencies.max().expect("something was woken");
    let stats = tables.rows("schedstats", "per_tid_stats");
    let counted: i64 = stats.iter().map(|row| ns(row, "count")).sum();
    same(
        "waits in schedlog, schedstats",
        listed.len() as i64,
        counted,
        0,
    );
    let longest = stats.iter().map(|row| ns(row, "max_latency_ns")).max();
    same(
        "worst in schedlog, schedstats",
        worst_ns,
        longest.unwrap_or(0),
        0,
    );
    let top = tables.rows("schedtop", "top");
    same(
        "worst in schedlog, schedtop",
        worst_ns,
        ns(top[0], "latency_ns"),
        0,
    );
    let checked = json(&["check", "--json", "--rule", RULE], trace);
    let finding = &checked["findings"][0];
    same(
        "waits in schedlog, check",
        counted,
        ns(finding, "samples"),
        0,
    );
    same(
        "worst in schedlog, check",
        worst_ns,
        ns(finding, "worst_ns"),
        0,
    );
    counted
}

/// Late activations: `diagnose`, and the line that `record` ends with.
fn check_diagnosis(trace: &Path, said: &str) {
    let found = json(
        &["diagnose", "--json", "--worst", "1", "--task", "*"],
        trace,
    );
    let sentence = found["verdict"]["sentence"].as_str().expect("a verdict");
    assert!(
        said.contains(sentence),
        "record: {said}\ndiagnose: {sentence}"
    );
    let of_report = Tables(json(&["report", "schedtop", "--json"], trace));
    let worst_ns = ns(of_report.rows("schedtop", "top")[0], "latency_ns");
    let late_ns = ns(&found["activations"][0], "latency_ns");
    // An activation begins with what led to its wake-up.
    assert!(
        late_ns >= worst_ns,
        "diagnose {late_ns}, schedtop {worst_ns}"
    );
}
