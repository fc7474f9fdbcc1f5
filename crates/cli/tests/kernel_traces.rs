//! The reports and the diagnosis over kernels' traces of all kinds: other byte orders, word sizes
//! and generations of names, and traces with something missing. Needs no privilege.

mod story;

use std::process::{Command, Output};

use serde_json::Value;
use story::{Dialect, Field, IDLE, Story, Thread};

const CONTROL: Thread = (10, "control", 9);
const HOG: Thread = (20, "hog", 4);
const SHELL: Thread = (30, "shell", 120);

/// Asked together; each family is there.
const REPORTS: &str = "cputop,schedtop,schedlog,schedstats,schedfreq,irqstats,irqlog,irqfreq,\
                       iousagetop,iolatencytop,iolatencystats,iolatencyfreq,iolog,memtop,\
                       syscallstats,intervals,irqs,states,resources,dependency,futex,criticalpath";

/// `control` wakes from a card's interrupt on CPU 0 and waits for `hog`; `shell` reads a file and
/// takes a futex on CPU 1, is interrupted and gives a page back.
fn work() -> Story {
    let fd = || Field::U32(3);
    let futex = [("uaddr", Field::U64(0xc0de)), ("op", Field::I32(128))];
    let open = [
        ("filename", Field::Text("/etc/motd".into())),
        ("flags", Field::I32(0)),
    ];
    let write = [("fd", fd()), ("count", Field::Long(40))];
    let packet = [
        ("len", Field::U32(1500)),
        ("name", Field::Text("eth0".into())),
    ];
    Story::default()
        .at(0, 0)
        .switch(IDLE, 0, CONTROL)
        .at(1, 1)
        .switch(IDLE, 0, SHELL)
        .at(5, 1)
        .enters("open", &open)
        .at(9, 1)
        .returns("open", 3)
        .at(10, 0)
        .switch(CONTROL, 1, HOG)
        .at(11, 1)
        .enters("write", &write)
        .at(30, 1)
        .returns("write", 40)
        .at(31, 1)
        .enters("write", &write)
        .at(32, 1)
        .returns("write", -28)
        .at(40, 1)
        .softirq("raise", 3)
        .at(42, 1)
        .softirq("entry", 3)
        .event("net_if_receive_skb", &packet)
        .at(50, 1)
        .softirq("exit", 3)
        .event("kmem_mm_page_alloc", &[("order", Field::U32(0))])
        .at(60, 1)
        .enters("futex", &futex)
        .at(62, 1)
        .switch(SHELL, 1, IDLE)
        .at(100, 0)
        .irq(24, "card")
        .wakeup(CONTROL, 0)
        .at(103, 0)
        .irq_end(24)
        .at(150, 0)
        .wakeup(SHELL, 1)
        .at(155, 1)
        .switch(IDLE, 0, SHELL)
        .at(160, 1)
        .returns("futex", 0)
        .at(400, 0)
        .switch(HOG, 1, CONTROL)
        .at(420, 0)
        .switch(CONTROL, 1, IDLE)
        .at(500, 1)
        .enters("close", &[("fd", fd())])
        .at(502, 1)
        .returns("close", 0)
        .at(600, 1)
        .switch(SHELL, 1, IDLE)
}

fn run(story: &Story, dialect: Dialect, words: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a folder");
    let trace = dir.path().join("trace");
    story.write(&trace, dialect);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(words).arg(&trace);
    command.output().expect("rtscope starts")
}

fn report<'a>(names: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["report", names, "--json", "--no-intersection"], more].concat()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn all_generations_byte_orders_and_word_sizes_of_a_trace_give_the_same_answers() {
    let control = ["--procname", "control", "--limit", "0"];
    let questions = [
        report(REPORTS, &["--tid", "10"]),
        report(REPORTS, &control),
        report(
            "cputop,irqstats,iolog,syscallstats,memtop,futex,states",
            &[],
        ),
        vec!["diagnose", "--json", "--task", "control"],
    ];
    for question in &questions {
        let expect = run(&work(), Dialect::TODAY, question);
        assert_eq!(expect.status.code(), Some(0), "{question:?}: {expect:?}");
        for old_names in [false, true] {
            for big_endian in [false, true] {
                for word_bytes in [4, 8] {
                    let dialect = Dialect {
                        big_endian,
                        word_bytes,
                        old_names,
                    };
                    let found = run(&work(), dialect, question);
                    let text =
                        |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
                    assert_eq!(text(&found), text(&expect), "{dialect:?} {question:?}");
                    assert_eq!(found.status.code(), Some(0), "{dialect:?} {found:?}");
                }
            }
        }
    }
}
/// The rows of one table of a report.
fn rows(story: &Story, name: &str, more: &[&str], table: &str) -> Vec<Value> {
    let answer = json(&run(story, Dialect::TODAY, &report(name, more)));
    let tables = answer["windows"][0]["tables"].as_array();
    let wanted = tables
        .into_iter()
        .flatten()
        .find(|found| found["table"] == table);
    let rows = wanted.and_then(|found| found["rows"].as_array());
    rows.unwrap_or_else(|| panic!("no table {table}: {answer:#}"))
        .clone()
}

fn diagnosis(story: &Story, task: &str) -> (Value, Option<i32>) {
    let output = run(
        story,
        Dialect::TODAY,
        &["diagnose", "--json", "--task", task],
    );
    (json(&output), output.status.code())
}

#[test]
fn of_a_trace_with_one_cpu_only_that_cpu_is_answered_for_and_no_other() {
    let first = work().without_cpu(1);
    let (found, code) = diagnosis(&first, "control");
    let sentence = found["verdict"]["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.contains("hog (tid 20, rt 95) ran ahead of it"),
        "{sentence}"
    );
    // Events name CPU 1, which has none: what was late there is unknown, and nobody says that it
    // was free.
    assert_eq!(code, Some(3));
    assert!(
        !found["verdict"]["advice"].to_string().contains("CPU 1"),
        "{found:#}"
    );
    let other = &rows(&first, "states", &[], "cpus")[1];
    assert_eq!(other["unknown_ns"], 420_000, "{other}");
    // Its wake-up is on the other CPU, of which nothing is known: nor is how long it was blocked.
    let second = work().without_cpu(0);
    let waits = rows(&second, "dependency", &["--procname", "shell"], "blocked");
    assert!(waits.is_empty(), "{waits:?}");
    let (found, code) = diagnosis(&second, "shell");
    assert_eq!((&found["verdict"], code), (&Value::Null, Some(3)));
}

#[test]
fn losses_in_the_middle_leave_no_culprit_and_are_said() {
    let story = work().at(200, 0).loses(7);
    let (found, code) = diagnosis(&story, "control");
    let verdict = &found["verdict"];
    assert_eq!(
        (&verdict["conclusive"], code),
        (&Value::Bool(false), Some(3))
    );
    let late = &found["activations"][0]["ledger"];
    assert_eq!(late["grade"], "lossy", "{late:#}");
    let output = run(&story, Dialect::TODAY, &report("schedtop,cputop", &[]));
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("7 events were lost in 1 place:"), "{said}");
    assert_eq!(json(&output)["lost_events"], 7);
}

#[test]
fn on_a_clock_that_stands_still_nothing_takes_time_and_nobody_is_late() {
    let story = work().at_once();
    let output = run(&story, Dialect::TODAY, &report(REPORTS, &["--tid", "10"]));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    json(&output);
    for cpu in rows(&story, "states", &[], "cpus") {
        let times = cpu.as_object().into_iter().flatten();
        for (key, value) in times.filter(|(key, _)| key.ends_with("_ns")) {
            assert_eq!(*value, 0, "{key}");
        }
    }
    let (found, code) = diagnosis(&story, "control");
    let sentence = found["verdict"]["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("was not late"), "{sentence}");
    assert_eq!(code, Some(0));
}

/// A thread of the id 77 comes, opens a file that bears its name, sleeps and is gone.
fn lives(story: Story, begin_us: u64, name: &'static str) -> Story {
    let thread: Thread = (77, name, 120);
    let fork = [
        ("parent_comm", Field::Comm("shell".into())),
        ("parent_tid", Field::I32(30)),
        ("parent_pid", Field::I32(30)),
        ("child_comm", Field::Comm(name.into())),
        ("child_tid", Field::I32(77)),
        ("child_pid", Field::I32(77)),
    ];
    let open = [
        ("filename", Field::Text(format!("/tmp/{name}"))),
        ("flags", Field::I32(0)),
    ];
    let at = |story: Story, us: u64| story.at(begin_us + us, 0);
    let story = at(story, 0)
        .event("sched_process_fork", &fork)
        .wakeup(thread, 0);
    let story = at(at(story, 2).switch(IDLE, 0, thread), 10).enters("open", &open);
    let story = at(at(story, 12).returns("open", 3), 20).switch(thread, 1, IDLE);
    let story = at(at(story, 30).wakeup(thread, 0), 33).switch(IDLE, 0, thread);
    at(story, 50).switch(thread, 64, IDLE)
}

#[test]
fn two_threads_that_had_the_same_id_one_after_the_other_are_two() {
    let story = lives(lives(Story::default(), 10, "first"), 100, "second");
    let names = |name: &str, table: &str, key: &str| -> Vec<String> {
        let all = rows(&story, name, &["--limit", "0"], table);
        let named = all
            .iter()
            .map(|row| row[key]["comm"].as_str().unwrap_or("?").to_owned());
        named.filter(|name| name != "swapper").collect()
    };
    for (report, table, key) in [
        ("cputop", "per-process", "process"),
        ("schedstats", "per_tid_stats", "process"),
        ("states", "threads", "process"),
        ("syscallstats", "total", "process"),
    ] {
        assert_eq!(names(report, table, key), ["first", "second"], "{report}");
    }
    let opened = rows(&story, "iolog", &[], "log");
    let found: Vec<_> = opened
        .iter()
        .map(|row| (&row["process"]["comm"], &row["path"]))
        .collect();
    let expect = [("first", "/tmp/first"), ("second", "/tmp/second")];
    let expect = expect.map(|(name, path)| (Value::from(name), Value::from(path)));
    assert_eq!(found, expect.each_ref().map(|(name, path)| (name, path)));
    for name in ["first", "second"] {
        let (found, _) = diagnosis(&story, name);
        assert_eq!(found["activations"][0]["task"]["comm"], name, "{found:#}");
    }
}

#[test]
fn a_trace_without_events_is_answered_with_what_it_lacks() {
    let output = run(
        &Story::default(),
        Dialect::TODAY,
        &report(REPORTS, &["--tid", "10"]),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("no sched_switch") && said.contains("fix:"),
        "{said}"
    );
    let output = run(&Story::default(), Dialect::TODAY, &["diagnose"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("no sched_switch events") && said.contains("fix:"),
        "{said}"
    );
}

#[test]
fn bounds_between_which_nothing_lies_are_refused() {
    for (bounds, said) in [
        (["--min", "5", "--max", "2"], "between --min and --max"),
        (
            ["--minsize", "5", "--maxsize", "2"],
            "between --minsize and --maxsize",
        ),
        (
            ["--min-duration", "1ms", "--max-duration", "2us"],
            "and --max-duration",
        ),
    ] {
        let output = run(&work(), Dialect::TODAY, &report("iolog", &bounds));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(said) && stderr.contains("fix:"), "{stderr}");
    }
}
