//! `rtscope cat --filter` on a trace of two CPUs, as people type it; needs no privilege.

use std::path::Path;
use std::process::{Command, Output};

use ctf::writer::{PayloadWriter, TraceWriter};
use event::{Cpu, Field, FieldType, Instant, Integer};
use testkit::{event_class, one_stream_class};

fn integer(name: &str) -> Field {
    Field::payload(name, FieldType::Integer(Integer::le(32, true)))
}

fn comm(name: &str) -> Field {
    Field::payload(name, FieldType::Text { size_bytes: 16 })
}

/// On each CPU a switch from idle to a task at 10 × CPU, and interrupt 24 five later.
fn write(dir: &Path) {
    let switch = vec![
        comm("prev_comm"),
        integer("prev_tid"),
        integer("prev_prio"),
        comm("next_comm"),
        integer("next_tid"),
        integer("next_prio"),
    ];
    let classes = vec![
        event_class(0, "sched_switch", switch),
        event_class(1, "irq_handler_entry", vec![integer("irq")]),
    ];
    let meta = one_stream_class(classes, 0);
    let mut trace = TraceWriter::create(dir, &meta).expect("a trace");
    for (cpu, task) in [(0, "jackd"), (1, "hog")] {
        let mut stream = trace.stream(0, Cpu(cpu)).expect("a stream");
        let mut switch = PayloadWriter::new();
        switch
            .text16("swapper")
            .i32(0)
            .i32(20)
            .text16(task)
            .i32(7)
            .i32(-61);
        let mut irq = PayloadWriter::new();
        irq.i32(24);
        let at = |us: i64| Instant::from_ns((i64::from(cpu) * 10 + us) * 1_000);
        stream.event(0, at(0), switch.bytes()).expect("written");
        stream.event(1, at(5), irq.bytes()).expect("written");
        stream.finish().expect("written");
    }
}

fn cat(dir: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command
        .args(["cat", "--clock-seconds"])
        .arg(dir)
        .args(words);
    command.output().expect("rtscope starts")
}

/// Checks that `words` leave the events at these microseconds.
fn check(words: &[&str], expect: &[u32]) {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    write(&trace);
    let output = cat(&trace, words);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{words:?}: {output:?}"
    );
    let text = String::from_utf8(output.stdout).expect("utf-8");
    let times: Vec<String> = text.lines().map(|line| line[1..12].to_owned()).collect();
    let expect: Vec<String> = expect
        .iter()
        .map(|us| format!("0.0000{us:02}000"))
        .collect();
    assert_eq!(times, expect, "{words:?}: {text}");
}

#[test]
fn only_events_that_match_are_printed() {
    check(&["--filter", "next_comm == \"j*\""], &[0]);
    check(&["--filter", "irq == 24"], &[5, 15]);
    check(&["--filter", "irq == 24", "--cpu", "1"], &[15]);
    check(&["--filter", "$time >= 10us && !(irq present)"], &[10]);
    check(&["--filter", "irq == 25"], &[]);
    check(&["--filter", "$procname == \"hog\" && $prio < 0"], &[15]);
}

#[test]
fn a_mistake_is_shown_at_its_column_before_the_trace_is_opened() {
    let output = cat(Path::new("nowhere"), &["--filter", "irq == "]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr.contains("    irq == \n           ^\n"), "{stderr}");
}

#[test]
fn a_name_that_the_trace_does_not_have_is_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    write(&trace);
    let output = cat(&trace, &["--filter", "next_pid == 7"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    assert!(stderr.contains("perhaps 'next_tid' is meant"), "{stderr}");
}
