//! Kernels' traces of two hosts, opened as one: merged where that is asked for, never taken for one
//! machine. Needs no privilege.

use std::path::Path;
use std::process::{Command, Output};

use ctf::writer::{PayloadWriter, TraceWriter};
use event::{Cpu, Field, FieldType, Instant, Integer};

/// A trace in which interrupt 1 is handled on CPU 0 of `host`, and CPU 0 switches twice.
fn write(dir: &Path, host: &str, begin_ns: i64) {
    let irq = Field::payload("irq", FieldType::Integer(Integer::le(32, true)));
    let ret = Field::payload("ret", FieldType::Integer(Integer::le(32, true)));
    let name = Field::payload("name", FieldType::String);
    let number = |name: &str| Field::payload(name, FieldType::Integer(Integer::le(32, true)));
    let text = |name: &str| Field::payload(name, FieldType::String);
    let switch = vec![
        text("prev_comm"),
        number("prev_tid"),
        number("prev_prio"),
        number("prev_state"),
        text("next_comm"),
        number("next_tid"),
        number("next_prio"),
    ];
    let classes = vec![
        testkit::event_class(0, "irq_handler_entry", vec![irq.clone(), name]),
        testkit::event_class(1, "irq_handler_exit", vec![irq, ret]),
        testkit::event_class(2, "sched_switch", switch),
    ];
    let mut meta = testkit::one_stream_class(classes, 0);
    meta.environment.push(("hostname".into(), host.into()));
    let mut trace = TraceWriter::create(dir, &meta).expect("a trace begins");
    let mut stream = trace.stream(0, Cpu(0)).expect("a stream begins");
    let mut payload = PayloadWriter::new();
    let entry = payload.u32(1).string("card").bytes();
    stream
        .event(0, Instant::from_ns(begin_ns), entry)
        .expect("an event is written");
    let exit = payload.clear().u32(1).u32(1).bytes();
    stream
        .event(1, Instant::from_ns(begin_ns + 2_000), exit)
        .expect("an event is written");
    for (after_ns, prev, next) in [(3_000, 0, 7), (9_000, 7, 0)] {
        let payload = payload.clear().string("a").u32(prev).u32(20).u32(0);
        let switch = payload.string("b").u32(next).u32(20).bytes();
        stream
            .event(2, Instant::from_ns(begin_ns + after_ns), switch)
            .expect("an event is written");
    }
    stream.finish().expect("a stream ends");
}

#[track_caller]
fn check(hosts: [&str; 2], words: &[&str], refused: bool) {
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(words).current_dir(dir.path());
    // Those of one host follow each other.
    let apart_ns = if hosts[0] == hosts[1] { 20_000 } else { 1_000 };
    for (place, (name, host)) in ["a", "b"].into_iter().zip(hosts).enumerate() {
        write(
            &dir.path().join(name),
            host,
            1_000 + place as i64 * apart_ns,
        );
        if words[0] != "diagnose" {
            command.arg(dir.path().join(name));
        }
    }
    if words[0] == "diagnose" {
        command.arg(dir.path());
    }
    let output: Output = command.output().expect("rtscope starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let says = stderr.contains("several machines") && stderr.contains("hosts 'one' and 'two'");
    assert_eq!(says, refused, "{words:?}: {stderr}");
    assert_eq!(
        output.status.code() == Some(1),
        refused,
        "{words:?}: {stderr}"
    );
    if words[0] == "cat" {
        let lines = String::from_utf8_lossy(&output.stdout).lines().count();
        assert_eq!(lines, 8, "an entry, an exit and two switches of each host");
    }
}

#[test]
fn what_follows_a_kernel_refuses_the_kernels_of_two_hosts() {
    check(["one", "two"], &["report", "irqstats"], true);
    check(
        ["one", "two"],
        &["check", "--rule", "wake-up of npt within 1ms"],
        true,
    );
    check(["one", "two"], &["diagnose"], true);
}

#[test]
fn traces_of_one_host_are_one_machine() {
    check(["one", "one"], &["report", "irqstats"], false);
}

#[test]
fn what_only_merges_takes_any_hosts() {
    check(["one", "two"], &["cat"], false);
    check(
        ["one", "two"],
        &["convert", "--to", "json", "-o", "copy"],
        false,
    );
}
