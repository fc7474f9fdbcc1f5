//! `rtscope convert` as people type it; needs no privilege.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ctf::writer::{PayloadWriter, TraceMeta, TraceWriter};
use event::{Cpu, Field, FieldType, Instant, Integer};
use rustix::process::{Pid, Signal, kill_process};
use testkit::{event_class, one_stream_class};

/// On each of two CPUs a wake-up at 10 µs × CPU and interrupt 24 five later; 7 events are lost
/// between the two on CPU 1.
fn write(dir: &Path) {
    let tid = FieldType::Integer(Integer::le(32, true));
    let comm = FieldType::Text { size_bytes: 16 };
    let waking = vec![
        Field::payload("comm", comm),
        Field::payload("tid", tid.clone()),
    ];
    let classes = vec![
        event_class(0, "sched_waking", waking),
        event_class(1, "irq_handler_entry", vec![Field::payload("irq", tid)]),
    ];
    let meta = TraceMeta {
        environment: vec![("hostname".to_owned(), "vm".into())],
        ..one_stream_class(classes, 1_000_000_000)
    };
    let mut trace = TraceWriter::create(dir, &meta).expect("a trace");
    for cpu in [0, 1] {
        let mut stream = trace.stream(0, Cpu(cpu)).expect("a stream");
        let mut payload = PayloadWriter::new();
        payload.text16("say \"a\", b").i32(7);
        let at = |us: i64| Instant::from_ns((i64::from(cpu) * 10 + us) * 1_000);
        stream.event(0, at(0), payload.bytes()).expect("written");
        if cpu == 1 {
            stream.discarded(7).expect("written");
        }
        let irq = payload.clear().i32(-24);
        stream.event(1, at(5), irq.bytes()).expect("written");
        stream.finish().expect("written");
    }
}

/// A folder with `trace` in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    write(&trace);
    (folder, trace)
}

fn convert(trace: &Path, output: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("convert").arg(trace).arg("-o").arg(output);
    command.args(words).output().expect("rtscope starts")
}

/// Names in a directory, in order.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<String> = entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn each_event_and_loss_is_a_line_of_json() {
    let (folder, trace) = folder();
    let output = folder.path().join("events.json");
    let done = convert(&trace, &output, &["--to", "json"]);
    assert_eq!(done.status.code(), Some(3), "a loss is said: {done:?}");
    let text = fs::read_to_string(&output).expect("the output");
    let lines: Vec<&str> = text.lines().collect();
    let head: serde_json::Value = serde_json::from_str(lines[0]).expect("JSON");
    assert_eq!(head["schema"], "rtscope.events");
    assert_eq!(head["environment"]["hostname"], "vm");
    let event = |us: i64, cpu: u32, rest: &str| {
        let (ns, wall) = (us * 1_000, 1_000_000_000 + us * 1_000);
        format!("{{\"time_ns\":{ns},\"wall_ns\":{wall},\"cpu\":{cpu},\"name\":{rest}")
    };
    let waking = r#""sched_waking","fields":{"comm":"say \"a\", b","tid":7}}"#;
    let irq = r#""irq_handler_entry","fields":{"irq":-24}}"#;
    let lost = r#""begin_ns":10000,"cause":"discarded","count":7,"cpu":1,"end_ns":15000"#;
    let expect = [
        event(0, 0, waking),
        event(5, 0, irq),
        event(10, 1, waking),
        format!("{{\"lost\":{{{lost}}}}}"),
        event(15, 1, irq),
    ];
    assert_eq!(lines[1..], expect);
}

#[test]
fn each_event_class_is_a_table_and_so_are_the_losses() {
    let (folder, trace) = folder();
    let output = folder.path().join("tables");
    convert(&trace, &output, &["--to", "csv"]);
    let files = ["__losses.csv", "irq_handler_entry.csv", "sched_waking.csv"];
    assert_eq!(names(&output), files);
    let check = |file: &str, expect: &str| {
        let text = fs::read_to_string(output.join(file)).expect(file);
        assert_eq!(text.replace("\r\n", "\n"), expect, "{file}");
    };
    check(
        "sched_waking.csv",
        "time_ns,wall_ns,cpu,comm,tid\n\
         0,1000000000,0,\"say \"\"a\"\", b\",7\n\
         10000,1000010000,1,\"say \"\"a\"\", b\",7\n",
    );
    check(
        "__losses.csv",
        "begin_ns,end_ns,cpu,count,cause\n10000,15000,1,7,discarded\n",
    );
}

#[test]
fn a_part_of_a_trace_is_a_trace_again_in_both_dialects() {
    let (folder, trace) = folder();
    for to in ["ctf1", "ctf2"] {
        let output = folder.path().join(to);
        convert(&trace, &output, &["--to", to, "--begin", "+2us"]);
        let again = folder.path().join(format!("{to}.json"));
        convert(&output, &again, &["--to", "json"]);
        let text = fs::read_to_string(&again).expect("the output");
        let events = text.lines().filter(|line| line.contains("time_ns"));
        assert_eq!(events.count(), 3, "{to}: {text}");
        assert!(text.contains(r#""count":7,"cpu":1"#), "{to}: {text}");
        assert!(text.contains(r#""hostname":"vm""#), "{to}: {text}");
    }
}

#[test]
fn the_part_that_was_asked_for_is_converted() {
    let check = |words: &[&str], expect: usize| {
        let (folder, trace) = folder();
        let output = folder.path().join("events.json");
        let done = convert(&trace, &output, &[&["--to", "json"], words].concat());
        let text = fs::read_to_string(&output).unwrap_or_else(|_| panic!("{words:?}: {done:?}"));
        let events = text.lines().filter(|line| line.contains("time_ns"));
        assert_eq!(events.count(), expect, "{words:?}: {text}");
    };
    check(&[], 4);
    check(&["--cpu", "1"], 2);
    check(&["--filter", "irq present"], 2);
    check(&["--begin", "+12us"], 1);
    check(&["--end", "+6us", "--filter", "irq == -24"], 1);
    check(&["--filter", "irq == 25"], 0);
}

#[test]
fn two_traces_become_one_in_the_order_of_time() {
    let (folder, trace) = folder();
    let second = folder.path().join("second");
    write(&second);
    let words = [second.to_str().expect("utf-8"), "--to", "json"];
    let done = convert(&trace, Path::new("-"), &words);
    let text = String::from_utf8(done.stdout).expect("utf-8");
    let events: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter(|line: &serde_json::Value| line["time_ns"].is_number())
        .collect();
    let times: Vec<i64> = events
        .iter()
        .filter_map(|e| e["time_ns"].as_i64())
        .collect();
    assert_eq!(times, [0, 0, 5000, 5000, 10000, 10000, 15000, 15000]);
    assert_ne!(events[0]["trace"], events[1]["trace"]);
}

#[test]
fn an_output_that_exists_is_refused_and_kept() {
    let (folder, trace) = folder();
    let output = folder.path().join("out");
    for to in ["json", "csv", "ctf1", "ctf2"] {
        fs::write(&output, "of somebody else").expect("written");
        let done = convert(&trace, &output, &["--to", to]);
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{to}: {done:?}");
        assert!(stderr.contains("the output is there already"), "{stderr}");
        assert_eq!(fs::read(&output).expect("kept"), b"of somebody else");
    }
    assert_eq!(names(folder.path()), ["out", "trace"], "nothing is left");
}

/// `count` wake-ups on one CPU.
fn write_many(dir: &Path, count: i64) {
    let tid = Field::payload("tid", FieldType::Integer(Integer::le(32, true)));
    let classes = vec![
        event_class(0, "sched_waking", vec![tid]),
        event_class(1, "never", Vec::new()),
    ];
    let mut trace = TraceWriter::create(dir, &one_stream_class(classes, 0)).expect("a trace");
    let mut stream = trace.stream(0, Cpu(0)).expect("a stream");
    let mut payload = PayloadWriter::new();
    for ns in 0..count {
        let waking = payload.clear().i32(7);
        let written = stream.event(0, Instant::from_ns(ns), waking.bytes());
        written.expect("written");
    }
    stream.finish().expect("written");
}

/// Whether a process handles SIGINT and SIGTERM itself: it takes them over in this order.
fn handles_interrupts(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & (1 << (Signal::TERM.as_raw() - 1)) != 0)
}

/// Interrupts `rtscope` with these words on its way; none when it was over before.
fn interrupt(words: &[&OsStr]) -> Option<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("rtscope starts");
    let pid = Pid::from_child(&child);
    while !handles_interrupts(child.id()) && child.try_wait().expect("a child").is_none() {
        std::thread::yield_now();
    }
    kill_process(pid, Signal::INT).ok();
    let done = child.wait_with_output().expect("a child");
    (!done.status.success()).then_some(done)
}

/// Interrupts `rtscope TRACE` with more words on its way through a trace of many events, and
/// returns what it said and what it left beside the trace.
fn interrupt_reading(more: impl Fn(&Path) -> Vec<OsString>) -> (Output, Vec<String>) {
    // Longer, where the walk was faster than the signal.
    for count in [1 << 20, 1 << 22, 1 << 24] {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("trace");
        write_many(&trace, count);
        let words = more(folder.path());
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        if let Some(done) = interrupt(&words) {
            let mut left = names(folder.path());
            left.retain(|name| name != "trace");
            return (done, left);
        }
    }
    panic!("no walk was met on its way");
}

fn check_is_interrupted(done: &Output) {
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("stopped before the end"), "{done:?}");
    assert_eq!(done.status.code(), Some(1), "{done:?}");
}

#[test]
fn the_first_interrupt_ends_a_conversion_that_passes_over_everything_and_leaves_nothing() {
    let (done, left) = interrupt_reading(|folder| {
        let mut words: Vec<OsString> = ["convert", "--to", "json", "--filter"]
            .map(Into::into)
            .into();
        words.push("name == \"never\"".into());
        words.extend([folder.join("trace").into(), "-o".into()]);
        words.push(folder.join("events.json").into());
        words
    });
    check_is_interrupted(&done);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_first_interrupt_ends_info_which_does_not_pass_a_part_off_as_the_whole() {
    let (done, _) = interrupt_reading(|folder| vec!["info".into(), folder.join("trace").into()]);
    check_is_interrupted(&done);
    assert!(done.stdout.is_empty(), "{done:?}");
}

/// Lent rt 80, low runs ahead of vic, which was moved to its CPU; it is called slow by then.
fn lent_and_renamed() -> String {
    let (low, vic, idle) = (("low", 60), ("vic", 44), ("swapper/0", 0));
    let mut text = "# tracer: nop\n#\n".to_owned();
    let mut line = |at: &str, (comm, tid): (&str, i32), what: &str| {
        text += &format!("{comm:>16}-{tid:<7} [000] d..2. 100.{at}: {what}\n");
    };
    let switch = |prev: (&str, i32, i32), state: &str, next: (&str, i32, i32)| {
        format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio={} prev_state={state} ==> \
             next_comm={} next_pid={} next_prio={}",
            prev.0, prev.1, prev.2, next.0, next.1, next.2
        )
    };
    let vic_is = "comm=vic pid=44 prio=49";
    line(
        "000000",
        idle,
        &switch(("swapper/0", 0, 120), "R", ("low", 60, 120)),
    );
    line(
        "000050",
        low,
        "sched_pi_setprio: comm=low pid=60 oldprio=120 newprio=19",
    );
    line(
        "000060",
        low,
        "task_rename: pid=60 oldcomm=low newcomm=slow oom_score_adj=0",
    );
    line(
        "000100",
        low,
        &format!("sched_waking: {vic_is} target_cpu=000"),
    );
    line(
        "000101",
        low,
        &format!("sched_migrate_task: {vic_is} orig_cpu=1 dest_cpu=0"),
    );
    line(
        "000102",
        low,
        &format!("sched_wakeup: {vic_is} target_cpu=000"),
    );
    line(
        "020000",
        low,
        "sched_pi_setprio: comm=slow pid=60 oldprio=19 newprio=120",
    );
    line(
        "020010",
        low,
        &switch(("slow", 60, 120), "R", ("vic", 44, 49)),
    );
    line(
        "020100",
        vic,
        &switch(("vic", 44, 49), "S", ("slow", 60, 120)),
    );
    text
}

#[test]
fn what_changes_for_a_task_is_in_perfettos_format_too_so_that_its_diagnosis_is_the_same() {
    let text = lent_and_renamed();
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, copy) = (folder.path().join("t.txt"), folder.path().join("t.pftrace"));
    fs::write(&trace, &text).expect("written");
    assert!(
        convert(&trace, &copy, &["--to", "perfetto"])
            .status
            .success()
    );
    let run = |words: &[&str], trace: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        let output = command
            .args(words)
            .arg(trace)
            .output()
            .expect("rtscope starts");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let sentence = |trace: &Path| {
        let said = run(&["diagnose", "--task", "vic"], trace);
        said.lines().next().unwrap_or_default().to_owned()
    };
    assert!(
        sentence(&trace).contains("slow (tid 60, rt 80) ran ahead"),
        "{text}"
    );
    assert_eq!(sentence(&copy), sentence(&trace));
    let events = run(&["cat"], &copy);
    for name in ["sched_pi_setprio", "task_rename", "sched_migrate_task"] {
        let count = |text: &str| text.matches(&format!("{name}:")).count();
        assert_eq!(count(&events), count(&text), "{events}");
    }
}
