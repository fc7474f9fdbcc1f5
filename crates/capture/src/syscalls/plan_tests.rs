//! Plans over records that are written by hand.

use super::*;
use crate::syscalls::table;

fn classes(name: &str, compat: bool) -> CallClasses {
    let call = table::calls().find(|call| call.name == name);
    CallClasses::compile(&call.expect("a row of the table"), compat)
}

/// Names of the fields, and the payload of a record whose contents are `contents`.
fn run(
    (plan, class): &(CallPlan, EventClass),
    record: RawSyscall,
    contents: &[&[u8]],
) -> (String, Vec<u8>) {
    let mut record = record;
    let mut bytes = Vec::new();
    for (length, content) in record.lengths.iter_mut().zip(contents) {
        *length = content.len() as u16;
        bytes.extend_from_slice(content);
    }
    let mut out = PayloadWriter::new();
    plan.run(&record, &bytes, &mut out);
    let names: Vec<_> = class
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    (names.join(" "), out.bytes().to_vec())
}

/// Numbers and texts, one behind the other.
fn bytes(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn an_entry_has_its_arguments_as_wide_as_lttng_writes_them_and_its_path() {
    let arguments = [-100i64 as u64, 0x7000, 0o2000002, 0o644, 5, 6];
    let record = RawSyscall {
        arguments,
        ..RawSyscall::default()
    };
    let entry = classes("openat", false).entry;
    assert_eq!(entry.1.name, "syscall_entry_openat");
    let (names, payload) = run(&entry, record, &[b"/etc/passwd\0"]);
    assert_eq!(names, "dfd filename flags mode flags_names");
    let expect = bytes(&[
        &(-100i32).to_le_bytes(),
        b"/etc/passwd\0",
        &0o2000002i32.to_le_bytes(),
        &0o644u16.to_le_bytes(),
        b"O_RDWR|O_CLOEXEC\0",
    ]);
    assert_eq!(payload, expect);
}

#[test]
fn an_exit_names_its_error_and_shows_the_head_of_what_was_read() {
    let exit = classes("read", false).exit;
    let check = |result: i64, content: &[u8], error: &[u8], head: &[u8]| {
        let record = RawSyscall {
            result,
            arguments: [3, 0x1000, 100, 0, 0, 0],
            ..RawSyscall::default()
        };
        let (names, payload) = run(&exit, record, &[content]);
        assert_eq!(names, "ret error buf buf_head");
        let buffer = 0x1000u64.to_le_bytes();
        assert_eq!(
            payload,
            bytes(&[&result.to_le_bytes(), error, &buffer, head])
        );
    };
    check(3, b"a\n\0", b"\0", b"a\n\\x00\0");
    check(2, "é".as_bytes(), b"\0", b"\\xc3\\xa9\0");
    check(1, b"\\", b"\0", b"\\\0");
    check(0, b"", b"\0", b"\0");
    check(-11, b"", b"EAGAIN\0", b"\0");
}

#[test]
fn a_time_that_is_not_given_is_no_time() {
    let entry = classes("nanosleep", false).entry;
    let check = |content: &[u8], expect: i64| {
        let (_, payload) = run(&entry, RawSyscall::default(), &[content]);
        assert_eq!(payload[8..], expect.to_le_bytes());
    };
    let time = |seconds: i64, ns: i64| [seconds.to_le_bytes(), ns.to_le_bytes()].concat();
    check(&time(1, 5), 1_000_000_005);
    check(&time(i64::MAX, 5), i64::MAX);
    check(b"", NO_TIME_NS);
    check(&time(1, 5)[..15], NO_TIME_NS);
}

#[test]
fn programs_of_other_words_have_the_texts_and_not_the_structures() {
    let class = |name| classes(name, true).entry.1;
    assert_eq!(class("openat").name, "compat_syscall_entry_openat");
    let names = |name| {
        let class = class(name);
        let names: Vec<_> = class
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .collect();
        names.join(" ")
    };
    assert_eq!(names("openat"), "dfd filename flags mode flags_names");
    assert_eq!(names("writev"), "fd vec vlen");
    assert_eq!(names("write"), "fd buf count buf_head");
}

#[test]
fn no_record_is_read_beyond_its_end() {
    for call in table::calls() {
        for compat in [false, true] {
            let classes = CallClasses::compile(&call, compat);
            for (plan, _) in [&classes.entry, &classes.exit] {
                assert!(plan.contents.len() <= raw::CONTENTS_MAX, "{}", call.name);
                for lengths in [
                    [0; raw::CONTENTS_MAX],
                    [40; raw::CONTENTS_MAX],
                    [raw::UNREADABLE; 3],
                ] {
                    let record = RawSyscall {
                        lengths,
                        ..RawSyscall::default()
                    };
                    plan.run(&record, &[2; 41], &mut PayloadWriter::new());
                    plan.run(&record, &[], &mut PayloadWriter::new());
                }
            }
        }
    }
}
