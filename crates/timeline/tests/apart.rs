//! Recordings that do not overlap, opened together: between them nobody knows what a CPU did.

mod engine;

use std::fmt::Write as _;
use std::path::Path;

use engine::{check_from, index};
use timeline::Kind;
use trace::{OpenOptions, Root, Trace};

const MS_NS: i64 = 1_000_000;

/// ftrace's text of 40 ms from `begin_ms` on: on each CPU a thread runs for 4 of each 10 ms.
fn write(path: &Path, begin_ms: i64, cpus: &[u32]) {
    let mut text = String::from("# tracer: nop\n#\n");
    for at_ms in (0..40).step_by(10) {
        for (ms, is_begin) in [(at_ms, true), (at_ms + 4, false)] {
            for cpu in cpus {
                let (idle, app) = ((format!("swapper/{cpu}"), 0), ("app".to_owned(), 100 + cpu));
                let (prev, next, state) = match is_begin {
                    true => (&idle, &app, "R"),
                    false => (&app, &idle, "S"),
                };
                let (s, ms) = ((begin_ms + ms) / 1000, (begin_ms + ms) % 1000);
                let _ = writeln!(
                    text,
                    "  {0}-{1} [{cpu:03}] d..2. {s}.{ms:03}000: sched_switch: prev_comm={0} \
                     prev_pid={1} prev_prio=120 prev_state={state} ==> next_comm={2} next_pid={3} \
                     next_prio=120",
                    prev.0, prev.1, next.0, next.1
                );
            }
        }
    }
    std::fs::write(path, text).expect("room");
}

/// Opens recordings as one; what a CPU's track says at some instants, in milliseconds.
#[track_caller]
fn check(recordings: &[(i64, &[u32])], expect: &[(u32, i64, Kind)]) {
    let folder = tempfile::tempdir().expect("a folder");
    let roots = recordings.iter().enumerate().map(|(number, recording)| {
        let path = folder.path().join(number.to_string());
        write(&path, recording.0, recording.1);
        Root::from(path)
    });
    let roots: Vec<Root> = roots.collect();
    let trace = Trace::open_all(&roots, &OpenOptions::default()).expect("traces");
    let index = index(&trace);
    for (cpu, at_ms, kind) in expect {
        let state = index.cpus[*cpu as usize].at(at_ms * MS_NS);
        assert_eq!(state.kind(), *kind, "CPU {cpu} at {at_ms} ms");
    }
    // The reports say the same, from anywhere on.
    for place in 0..20 {
        let begin_ns = index.begin_ns + (index.end_ns - index.begin_ns) / 20 * place;
        check_from(&trace, &index, begin_ns, false);
    }
}

#[test]
fn between_two_recordings_no_cpu_is_idle() {
    let both: &[u32] = &[0, 1];
    let during = [(0, 1_002, Kind::Run), (1, 1_007, Kind::Idle)];
    let later = [(0, 9_002, Kind::Run), (1, 9_007, Kind::Idle)];
    let between = [(0, 1_035, Kind::Unknown), (1, 5_000, Kind::Unknown)];
    check(&[(1_000, both)], &during);
    check(
        &[(1_000, both), (9_000, both)],
        &[during, later, between].concat(),
    );
    check(&[(9_000, both), (1_000, both)], &between);
}

#[test]
fn a_cpu_is_unknown_while_the_only_recording_is_of_others() {
    let recordings: [(i64, &[u32]); 2] = [(1_000, &[0, 1]), (1_040, &[0])];
    check(
        &recordings,
        &[(0, 1_047, Kind::Idle), (1, 1_047, Kind::Unknown)],
    );
}
