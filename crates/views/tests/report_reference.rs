//! The reports agree with a slow reference in Python on random traces.

use std::io::Write;
use std::process::{Command, Stdio};

use event::Value;
use serde_json::{Value as Json, json};
use testkit::SyntheticTrace;
use trace::Trace;
use views::reports::{Cell, REPORTS, Report, ReportOptions, Table, run_reports};

/// A generator of numbers that are the same in every run (Knuth's constants).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

const TASKS: [(i64, &str); 5] = [
    (0, "swapper"),
    (11, "one"),
    (12, "two"),
    (13, "three"),
    (14, "four"),
];
const CALLS: [&str; 2] = ["futex", "nanosleep"];
const CPUS: usize = 2;

/// A trace of random events in which only switches make sense, and the same as lines of JSON.
struct Story {
    random: Random,
    trace: SyntheticTrace,
    lines: String,
    now_ns: i64,
    on: [usize; CPUS],
}

impl Story {
    fn new(seed: u64) -> Story {
        Story {
            random: Random(seed),
            trace: SyntheticTrace::new(),
            lines: String::new(),
            now_ns: 1_000,
            on: [0; CPUS],
        }
    }

    fn event(mut self, cpu: usize, name: &str, fields: &[(&str, Value<'static>)]) -> Story {
        let plain = |(key, value): &(&str, Value<'static>)| {
            let value = match value {
                Value::Text(text) => json!(text),
                value => json!(value.as_i64()),
            };
            ((*key).to_owned(), value)
        };
        let plain: serde_json::Map<String, Json> = fields.iter().map(plain).collect();
        let line = json!([self.now_ns, cpu, name, plain]);
        self.lines.push_str(&format!("{line}\n"));
        let trace = self.trace.cpu(cpu as u32).at_ns(self.now_ns);
        self.trace = trace.event(name, fields);
        self
    }

    fn step(mut self) -> Story {
        // Sometimes two events share an instant.
        self.now_ns += self.random.below(4) as i64 * 100;
        let cpu = self.random.below(CPUS as u64) as usize;
        let number = self.random.below(2);
        let int = |value: i64| Value::Signed(value);
        match self.random.below(8) {
            0 | 1 => self.switch(cpu),
            2 => {
                let (tid, comm) = TASKS[1 + self.random.below(4) as usize];
                let target = int(cpu as i64);
                let fields = [
                    ("comm", Value::Text(comm.into())),
                    ("tid", int(tid)),
                    ("prio", int(20)),
                    ("target_cpu", target),
                ];
                self.event(cpu, "sched_waking", &fields)
            }
            3 => {
                let name = ["irq_handler_entry", "irq_handler_exit"][self.random.below(2) as usize];
                self.event(cpu, name, &[("irq", int(number as i64))])
            }
            4 | 5 => {
                let what = ["raise", "raise", "entry", "exit"][self.random.below(4) as usize];
                let name = format!("irq_softirq_{what}");
                self.event(cpu, &name, &[("vec", int(number as i64))])
            }
            _ => {
                let call = CALLS[number as usize];
                match self.random.below(2) {
                    0 => self.event(cpu, &format!("syscall_entry_{call}"), &[("x", int(0))]),
                    _ => {
                        let ret = int(self.random.below(3) as i64 - 1);
                        self.event(cpu, &format!("syscall_exit_{call}"), &[("ret", ret)])
                    }
                }
            }
        }
    }

    fn switch(mut self, cpu: usize) -> Story {
        let free = |place: &usize| *place == 0 || !self.on.contains(place);
        let choices: Vec<usize> = (0..TASKS.len()).filter(free).collect();
        let next = choices[self.random.below(choices.len() as u64) as usize];
        let prev = std::mem::replace(&mut self.on[cpu], next);
        let side = |prefix: &str, place: usize| {
            let (tid, comm) = TASKS[place];
            [
                (format!("{prefix}_comm"), Value::Text(comm.into())),
                (format!("{prefix}_tid"), Value::Signed(tid)),
                (format!("{prefix}_prio"), Value::Signed(20)),
            ]
        };
        let state = Value::Signed(self.random.below(2) as i64);
        let all: Vec<_> = side("prev", prev)
            .into_iter()
            .chain([("prev_state".to_owned(), state)])
            .chain(side("next", next))
            .collect();
        let fields: Vec<_> = all
            .iter()
            .map(|(key, v)| (key.as_str(), v.clone()))
            .collect();
        self.event(cpu, "sched_switch", &fields)
    }
}

fn reference(lines: &str) -> Option<Json> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/reports.py");
    let mut python = Command::new("python3");
    python
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = python.spawn().ok()?;
    let stdin = child.stdin.take();
    stdin
        .expect("it has an input")
        .write_all(lines.as_bytes())
        .expect("it reads all");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "the reference failed");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn tables(trace: &Trace, name: &str) -> Vec<Table> {
    let named = REPORTS.iter().find(|named| named.name == name);
    let report: Report = named.expect("there is such a report").report;
    // The reference counts as the peer does, and its random wake-ups are none that a kernel makes.
    let options = ReportOptions {
        as_lttng_analyses: true,
        ..ReportOptions::default()
    };
    let mut tables = Vec::new();
    run_reports(trace, &[report], &options, |tick| {
        tables.extend(tick.tables);
        Ok(())
    })
    .expect("a trace in memory can be walked");
    tables
}

fn tid(cell: &Cell) -> i32 {
    match cell {
        Cell::Process { tid: Some(tid), .. } => *tid,
        _ => 0,
    }
}

fn time(cell: &Cell) -> Json {
    match cell {
        Cell::Time(ns) | Cell::Duration(ns) => json!(ns),
        _ => Json::Null,
    }
}

/// Task, count and sum of waits, whatever ended them; the count is in this column.
fn sums(table: &Table, column: usize) -> Vec<Json> {
    let mut sums = std::collections::BTreeMap::new();
    for row in &table.rows {
        let (Cell::Count(count), Cell::Duration(ns)) = (&row[column], &row[column + 1]) else {
            panic!("{row:?}");
        };
        let sum: &mut (u64, i64) = sums.entry(tid(&row[0])).or_default();
        *sum = (sum.0 + count, sum.1 + ns);
    }
    let sum = |(tid, (count, ns))| json!([tid, count, ns]);
    sums.into_iter().map(sum).collect()
}

/// Number, CPU, count and mean period of interrupts that came twice.
fn periods(table: &Table) -> Vec<Json> {
    let row = |row: &Vec<Cell>| match &row[..5] {
        [
            Cell::Irq { hard: true, nr, .. },
            Cell::Cpu(cpu),
            Cell::Count(count),
            _,
            Cell::DurationFloat(mean),
        ] => Some(json!([nr, cpu, count, mean])),
        _ => None,
    };
    table.rows.iter().filter_map(row).collect()
}

/// The same answers from the reports.
fn found(trace: &Trace) -> Json {
    let cpu = tables(trace, "cputop");
    let whole = cpu[0].end_ns - cpu[0].begin_ns;
    let mut shares: Vec<(i32, i64)> = cpu[0]
        .rows
        .iter()
        .filter(|row| tid(&row[0]) != 0)
        .map(|row| match row[3] {
            Cell::Ratio(share) => (tid(&row[0]), (share * whole as f64).round() as i64),
            _ => (0, 0),
        })
        .collect();
    shares.sort();
    let scheduling = tables(trace, "schedlog");
    let waits = scheduling[0]
        .rows
        .iter()
        .map(|row| json!([time(&row[0]), time(&row[1]), tid(&row[5]), tid(&row[6])]));
    let (mut interrupts, mut softirqs) = (Vec::new(), Vec::new());
    for row in &tables(trace, "irqlog")[0].rows {
        if let [
            Cell::Range(begin, end),
            raised,
            Cell::Cpu(cpu),
            Cell::Irq { hard, nr, .. },
        ] = &row[..]
        {
            match hard {
                true => interrupts.push(json!([begin, end, cpu, nr])),
                false => softirqs.push(json!([time(raised), begin, end, cpu, nr])),
            }
        }
    }
    json!({
        "blocked": sums(&tables(trace, "dependency")[0], 3),
        "waiting": sums(&tables(trace, "dependency")[1], 2),
        "periods": periods(&tables(trace, "irqs")[0]),
        "shares": shares,
        "waits": waits.collect::<Vec<Json>>(),
        "interrupts": interrupts,
        "softirqs": softirqs,
    })
}

/// Count, least and greatest duration of each task's calls.
fn call_sums(trace: &Trace) -> Vec<Json> {
    let tables = tables(trace, "syscallstats");
    let (total, by_task) = tables.split_last().expect("there is a total");
    let mut sums = Vec::new();
    for (task, table) in total.rows.iter().zip(by_task) {
        for row in &table.rows {
            if let [Cell::Syscall(call), Cell::Count(count), min, _, max, ..] = &row[..] {
                sums.push(json!([tid(&task[0]), call, count, time(min), time(max)]));
            }
        }
    }
    sums.sort_by_key(Json::to_string);
    sums
}

/// The same from the reference's list.
fn summed(calls: &Json) -> Vec<Json> {
    let mut sums = std::collections::BTreeMap::new();
    for call in calls.as_array().expect("a list") {
        let key = (call[0].as_i64(), call[1].as_str().map(str::to_owned));
        let durations: &mut Vec<i64> = sums.entry(key).or_default();
        durations.push(call[2].as_i64().expect("a duration"));
    }
    let sum = |((tid, call), durations): ((Option<i64>, Option<String>), Vec<i64>)| {
        let (min, max) = (durations.iter().min(), durations.iter().max());
        json!([tid, call, durations.len(), min, max])
    };
    let mut sums: Vec<Json> = sums.into_iter().map(sum).collect();
    sums.sort_by_key(Json::to_string);
    sums
}

/// Threads and their sums, without how many rows they are of.
fn totals(sums: &Json) -> Vec<(Json, Json)> {
    let rows = sums.as_array().into_iter().flatten();
    rows.map(|row| (row[0].clone(), row[2].clone())).collect()
}

#[test]
fn random_traces_give_what_the_slow_reference_finds() {
    let mut answers = 0;
    for seed in 0..20 {
        let mut story = Story::new(seed);
        for _ in 0..150 {
            story = story.step();
        }
        let (trace, lines) = (story.trace.build(), story.lines);
        let Some(expect) = reference(&lines) else {
            return testkit::skip("report_reference", "python3 does not start");
        };
        let found = found(&trace);
        for answer in [
            "shares",
            "waits",
            "interrupts",
            "softirqs",
            "blocked",
            "periods",
        ] {
            assert_eq!(found[answer], expect[answer], "seed {seed}: {answer}");
            answers += found[answer].as_array().map_or(0, Vec::len);
        }
        // A wait behind two tasks has two rows.
        let (waits, expect_waits) = (totals(&found["waiting"]), totals(&expect["waiting"]));
        assert_eq!(waits, expect_waits, "seed {seed}: waiting");
        assert_eq!(
            call_sums(&trace),
            summed(&expect["calls"]),
            "seed {seed}: calls"
        );
    }
    assert!(answers > 300, "only {answers} answers were compared");
}
