//! `rtscope cat` on traces with one bad packet between two good ones: what is good is printed, then
//! comes one error that names file and byte; `--keep-going` goes on with the next packet.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Events of the ids 1 (`number`, here called a tick), 2 (a sequence of bytes) and 4 (an array that
/// no packet can hold), of a clock of 1 Hz.
const METADATA: &str = include_str!("../../ctf/tests/bad_input.tsdl");

/// The size of a packet's header and context, and of a tick.
const HEAD_BYTES: usize = 40;
const TICK_BYTES: usize = 13;
/// Where in a packet the ids and sizes are.
const STREAM_ID: usize = 20;
const CONTENT_SIZE: usize = 24;
const PACKET_SIZE: usize = 32;

fn event(id: u8, time_s: u64, payload: &[u8]) -> Vec<u8> {
    [&[id][..], &time_s.to_le_bytes(), payload].concat()
}

fn tick(time_s: u64, n: u32) -> Vec<u8> {
    event(1, time_s, &n.to_le_bytes())
}

fn packet(events: &[u8]) -> Vec<u8> {
    let bits = ((HEAD_BYTES + events.len()) as u64 * 8).to_le_bytes();
    let magic = 0xC1FC_1FC1u32.to_le_bytes();
    [&magic[..], &[7; 16], &[0; 4], &bits, &bits, events].concat()
}

/// A good packet with a tick of number 5, in which the bytes at `at` are others.
fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut changed = packet(&tick(20, 5));
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    changed
}

fn cat(dir: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("cat").args(words).arg(dir);
    command.output().expect("rtscope starts")
}

/// The numbers of the ticks that were printed.
fn ticks(output: &Output) -> Vec<u32> {
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |line: &str| line.split("n = ").nth(1)?.split(' ').next()?.parse().ok();
    text.lines().filter_map(number).collect()
}

/// What is wrong with a packet, and what comes of it.
struct Bad<'a> {
    packet: &'a [u8],
    /// Ticks that are read of it.
    ticks: &'a [u32],
    /// The byte in it that is named, and a part of the reason.
    at: usize,
    reason: &'a str,
    /// Whether reading can go on behind it.
    goes_on: bool,
}

fn check(bad: &Bad<'_>) {
    let folder = tempfile::tempdir().expect("a folder");
    let first = packet(&tick(10, 1));
    let stream = [&first, bad.packet, &packet(&tick(30, 9))].concat();
    fs::write(folder.path().join("metadata"), METADATA).expect("written");
    fs::write(folder.path().join("stream"), stream).expect("written");
    let place = format!("stream at byte {}: ", first.len() + bad.at);

    let output = cat(folder.path(), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    let good = [&[1], bad.ticks].concat();
    assert_eq!(ticks(&output), good, "{}: {said}", bad.reason);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    assert!(said.contains(&place) && said.contains(bad.reason), "{said}");

    let output = cat(folder.path(), &["--keep-going"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let last: &[u32] = if bad.goes_on { &[9] } else { &[] };
    let reason = bad.reason;
    assert_eq!(ticks(&output), [&good, last].concat(), "{reason}: {said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains(&format!("unreadable: {place}")), "{said}");
}

#[test]
fn a_header_without_sense_is_named_and_the_next_packet_is_read() {
    let check = |packet: &[u8], reason: &str| {
        check(&Bad {
            packet,
            ticks: &[],
            at: 0,
            reason,
            goes_on: true,
        });
    };
    check(&changed(0, b"?"), "in place of a packet's magic number");
    check(&changed(STREAM_ID, &[77]), "unknown stream 77");
    let size = |at: usize, bits: u64| changed(at, &bits.to_le_bytes());
    check(&size(PACKET_SIZE, 0), "a packet of 0 bits");
    check(&size(PACKET_SIZE, 425), "a packet of 425 bits");
    check(&size(CONTENT_SIZE, 1 << 20), "1048576 bits of content");
    check(&size(CONTENT_SIZE, u64::MAX), "bits of content");
}

#[test]
fn an_event_without_sense_is_named_and_the_next_packet_is_read() {
    let check = |events: &[u8], reason: &str| {
        check(&Bad {
            packet: &packet(&[&tick(20, 5), events].concat()),
            ticks: &[5],
            at: HEAD_BYTES + TICK_BYTES,
            reason,
            goes_on: true,
        });
    };
    check(&event(200, 6, &[]), "the unknown event id 200");
    let beyond = "beyond the packet's content";
    for length in [u64::MAX, 1 << 61, 1 << 40] {
        check(&event(2, 6, &length.to_le_bytes()), beyond);
    }
    check(&event(4, 6, &[0; 64]), beyond);
    check(&tick(6, 6)[..TICK_BYTES - 1], beyond);
    check(&tick(u64::MAX, 6), "ticks of its clock, beyond all time");
}

#[test]
fn a_packet_that_claims_the_next_one_is_named_and_the_next_one_is_read() {
    check(&Bad {
        packet: &changed(PACKET_SIZE, &(1u64 << 40).to_le_bytes()),
        ticks: &[],
        at: 0,
        reason: "though one begins at byte",
        goes_on: true,
    });
}

#[test]
fn a_foreign_uuid_is_no_reason_to_refuse() {
    let folder = tempfile::tempdir().expect("a folder");
    let stream = packet(&[tick(10, 1), tick(20, 2)].concat());
    let uuid = "byte_order = le; uuid = \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\";";
    let metadata = METADATA.replace("byte_order = le;", uuid);
    fs::write(folder.path().join("metadata"), metadata).expect("written");
    fs::write(folder.path().join("stream"), stream).expect("written");
    let output = cat(folder.path(), &[]);
    assert_eq!(
        (ticks(&output), output.status.code()),
        (vec![1, 2], Some(0))
    );
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn time_that_goes_back_inside_of_a_packet_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = packet(&[tick(10, 1), tick(30, 2), tick(20, 3), tick(25, 4)].concat());
    let stream = [first, packet(&tick(40, 5))].concat();
    fs::write(folder.path().join("metadata"), METADATA).expect("written");
    fs::write(folder.path().join("stream"), stream).expect("written");
    let output = cat(folder.path(), &[]);
    assert_eq!(ticks(&output), [1, 2, 3, 4, 5]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn metadata_that_cannot_be_understood_is_named_with_its_place() {
    let check = |metadata: &str, place: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("metadata"), metadata).expect("written");
        let output = cat(folder.path(), &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("metadata: {place}")), "{said}");
    };
    let long = METADATA.replace("size = 64", "size = 99");
    // What follows the type: only its end says that it is too long.
    let after = long
        .find("size = 99")
        .and_then(|at| Some(at + long[at..].find('}')? + 2));
    let after = after.expect("the type's end");
    check(&long, &format!("byte {after}, line 4: "));
    let block = METADATA.find("trace {").expect("a trace block");
    check(
        &METADATA.replace("minor = 8", "minor = 9"),
        &format!("byte {block}, line 5: version 1.9"),
    );
    check(
        "\x1e{\"type\": \"preamble\", \"version\": 2}\n\x1e{\"type\": \"mystery\"}",
        "fragment 2 at byte 37: the unknown type 'mystery'",
    );
}
