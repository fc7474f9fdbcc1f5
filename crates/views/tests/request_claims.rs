//! What the reports on files must find of calls that older tracers did not know.

mod tables;

use event::Value;
use tables::{rows, ticks};
use testkit::{SyntheticTrace, Task};
use views::reports::{Cell, ReportOptions};

const A: Task = Task::fair(7, "a");

/// A call of `a` that takes 2 us and returns `ret`.
fn call(trace: SyntheticTrace, name: &str, fields: &[(&str, i64)], ret: i64) -> SyntheticTrace {
    let numbers = fields
        .iter()
        .map(|(key, number)| (*key, Value::Signed(*number)));
    with(trace, name, &numbers.collect::<Vec<_>>(), ret)
}

fn opened(trace: SyntheticTrace, name: &str, path: (&str, &str), fd: i64) -> SyntheticTrace {
    let text = Value::Text(path.1.to_owned().into());
    with(trace, name, &[(path.0, text)], fd)
}

fn with(
    trace: SyntheticTrace,
    name: &str,
    fields: &[(&str, Value<'static>)],
    ret: i64,
) -> SyntheticTrace {
    let trace = trace
        .after(1)
        .event(&format!("syscall_entry_{name}"), fields);
    let returned = [("ret", Value::Signed(ret))];
    trace
        .after(2)
        .event(&format!("syscall_exit_{name}"), &returned)
}

/// `a` opens `/from` as 3 and `/to` as 4 by calls that name no flags.
fn two_files() -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(0).run(A);
    let trace = opened(trace, "openat2", ("filename", "/from"), 3);
    opened(trace, "creat", ("pathname", "/to"), 4)
}

/// Bytes of each file, read and written.
fn sizes(trace: SyntheticTrace) -> [Vec<(String, u64)>; 2] {
    let trace = trace.after(1).block(A, Task::IDLE).build();
    let ticks = ticks(&trace, "iousagetop", &ReportOptions::default());
    let of_files = ticks[0]
        .tables
        .iter()
        .filter(|table| table.class.name == "per-file-top");
    let size = |row: &Vec<Cell>| match row.as_slice() {
        [Cell::Path(path), Cell::Size(size), ..] => (path.clone(), *size),
        other => panic!("not a file: {other:?}"),
    };
    let sizes: Vec<Vec<_>> = of_files
        .map(|table| table.rows.iter().map(size).collect())
        .collect();
    sizes.try_into().expect("read and written")
}

fn of(path: &str, size: u64) -> Vec<(String, u64)> {
    vec![(path.to_owned(), size)]
}

#[test]
fn what_goes_from_file_to_file_was_read_from_one_and_written_to_the_other() {
    let check = |name: &str, [from, to]: [&str; 2]| {
        let trace = call(two_files(), name, &[(from, 3), (to, 4)], 700);
        // One that failed moves nothing.
        let trace = call(trace, name, &[(from, 3), (to, 4)], -11);
        assert_eq!(sizes(trace), [of("/from", 700), of("/to", 700)], "{name}");
    };
    check("sendfile64", ["in_fd", "out_fd"]);
    check("sendfile", ["in_fd", "out_fd"]);
    check("splice", ["fd_in", "fd_out"]);
    check("tee", ["fdin", "fdout"]);
    check("copy_file_range", ["fd_in", "fd_out"]);
}

#[test]
fn newer_ways_to_read_and_write_are_counted() {
    let mut trace = two_files();
    for (name, fd, size) in [
        ("read", 3, 1),
        ("preadv", 3, 10),
        ("preadv2", 3, 100),
        ("write", 4, 2),
        ("pwritev", 4, 20),
        ("pwritev2", 4, 200),
    ] {
        trace = call(trace, name, &[("fd", fd)], size);
    }
    assert_eq!(sizes(trace), [of("/from", 111), of("/to", 222)]);
}

#[test]
fn the_log_names_both_files_of_a_transfer_and_it_is_a_read_and_a_write() {
    let trace = call(two_files(), "splice", &[("fd_in", 3), ("fd_out", 4)], 700);
    let trace = trace.after(1).block(A, Task::IDLE).build();
    let options = ReportOptions::default();
    let log = rows(&trace, "iolog", &options, "log");
    let last = log.last().expect("a request");
    let expect = [Cell::Syscall("splice".into()), Cell::Size(700)];
    assert_eq!(last[3..5], expect);
    assert_eq!(last[6], Cell::Path("/from -> /to".into()));
    let stats = rows(&trace, "iolatencystats", &options, "syscall-latency-stats");
    let counts: Vec<_> = stats.iter().map(|row| row[1].clone()).collect();
    assert_eq!(counts, [2, 1, 1, 0].map(Cell::Count));
}

#[test]
fn a_descriptor_that_is_opened_again_is_another_file_though_nobody_saw_it_closed() {
    let trace = call(two_files(), "read", &[("fd", 3)], 10);
    let trace = call(trace, "close_range", &[("fd", 3), ("max_fd", 3)], 0);
    let trace = opened(trace, "openat2", ("filename", "/later"), 3);
    let trace = call(trace, "read", &[("fd", 3)], 5);
    let [read, _] = sizes(trace);
    assert_eq!(read, [of("/from", 10), of("/later", 5)].concat());
}

#[test]
fn a_descriptor_that_fcntl_copies_is_the_same_file() {
    for cmd in [0, 1030] {
        let trace = call(two_files(), "fcntl", &[("fd", 3), ("cmd", cmd)], 9);
        let [read, _] = sizes(call(trace, "read", &[("fd", 9)], 6));
        assert_eq!(read, of("/from", 6), "{cmd}");
    }
}
