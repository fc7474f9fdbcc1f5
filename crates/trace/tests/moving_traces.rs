//! Traces whose files move under the reader: rotated by their tracer, still being written, or with
//! an index of other packets.

use std::fs;
use std::ops::Range;
use std::path::Path;

use ctf::writer::{PayloadWriter, TraceWriter};
use event::{Cpu, Field, FieldType, Instant, Integer, TimeRange};
use testkit::{event_class, one_stream_class};
use trace::{Cursor, Item, OpenOptions, Trace};

/// The stream file of the only CPU.
const STREAM: &str = "channel0_0";
/// What [`write`] writes.
const WHOLE: [&str; 5] = ["1", "lost 2 1-5", "5", "lost 3 5-9", "9"];

/// A trace of three packets, an event in each, with losses between them; returns where in the
/// stream file each packet lies.
fn write(dir: &Path) -> [Range<usize>; 3] {
    write_at(dir, 0)
}

/// The same, some nanoseconds later.
fn write_at(dir: &Path, begin_ns: i64) -> [Range<usize>; 3] {
    let value = Field::payload("value", FieldType::Integer(Integer::le(64, true)));
    let mut meta = one_stream_class(vec![event_class(0, "tick", vec![value])], 0);
    let between = (ctf::LOSSES_KEY.to_owned(), ctf::LOSSES_BETWEEN.into());
    meta.environment.push(between);
    let mut trace = TraceWriter::create(dir, &meta).unwrap();
    let mut stream = trace.stream(0, Cpu(0)).unwrap();
    for (time, lost) in [(1, 0), (5, 2), (9, 5)] {
        stream.discarded(lost).unwrap();
        let mut payload = PayloadWriter::new();
        let payload = payload.i64(time);
        stream
            .event(0, Instant::from_ns(begin_ns + time), payload.bytes())
            .unwrap();
    }
    stream.finish().unwrap();
    let bytes = fs::read(dir.join(STREAM)).unwrap();
    let magic = bytes[..4].to_vec();
    let starts = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&magic));
    let starts: Vec<usize> = starts.collect();
    let [first, second, third] = starts[..] else {
        panic!("three packets, not at {starts:?}")
    };
    [first..second, second..third, third..bytes.len()]
}

/// Items to come, a word each: an event's time, a loss, or damage.
fn rest(cursor: &mut Cursor<'_>) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(item) = cursor.next().unwrap() {
        words.push(match item {
            Item::Event(event) => event.time().as_ns().to_string(),
            Item::Lost(lost) => {
                let (begin, end) = (lost.range.begin.as_ns(), lost.range.end.as_ns());
                match lost.count {
                    Some(count) => format!("lost {count} {begin}-{end}"),
                    None => format!("{:?} {begin}-{end}", lost.cause),
                }
            }
            Item::Damage(damage) => format!("damage {}", damage.offset_bytes),
        });
    }
    words
}

fn walk(dir: &Path) -> Vec<String> {
    let trace = Trace::open(dir).unwrap();
    rest(&mut trace.cursor(TimeRange::ALL))
}

#[test]
fn files_that_a_tracer_rotated_are_one_stream_with_the_losses_between_them() {
    let root = tempfile::tempdir().unwrap();
    let packets = write(root.path());
    assert_eq!(walk(root.path()), WHOLE);
    let bytes = fs::read(root.path().join(STREAM)).unwrap();
    fs::remove_file(root.path().join(STREAM)).unwrap();
    // The tenth file comes before the ninth by name, the oldest is gone.
    for (number, packet) in [(9, &packets[1]), (10, &packets[2])] {
        let path = root.path().join(format!("{STREAM}_{number}"));
        fs::write(path, &bytes[packet.clone()]).unwrap();
    }
    assert_eq!(walk(root.path()), WHOLE[2..]);
}

/// Puts the packets of each range into a directory of its own, as one trace's.
fn split(whole: &Path, root: &Path, parts: &[Range<usize>]) {
    let bytes = fs::read(whole.join(STREAM)).unwrap();
    for (number, part) in parts.iter().enumerate() {
        let dir = root.join(format!("{number}/kernel"));
        fs::create_dir_all(&dir).unwrap();
        fs::copy(whole.join("metadata"), dir.join("metadata")).unwrap();
        fs::write(dir.join(STREAM), &bytes[part.clone()]).unwrap();
    }
}

#[test]
fn archives_and_snapshots_of_one_session_are_one_trace_below_their_root() {
    let whole = tempfile::tempdir().unwrap();
    let [first, second, third] = write(whole.path());
    let check = |parts: &[Range<usize>]| {
        let root = tempfile::tempdir().unwrap();
        split(whole.path(), root.path(), parts);
        assert_eq!(walk(root.path()), WHOLE, "{parts:?}");
    };
    // Archives of a rotated session: what was lost between them counts.
    check(&[first.clone(), second.clone(), third.clone()]);
    check(&[first.clone(), second.start..third.end]);
    // Snapshots that overlap: what is in several is read once.
    check(&[first.start..second.end, first.start..third.end]);
    check(&[first.start..third.end, first.start..third.end]);
}

#[test]
fn counters_that_begin_anew_are_no_loss() {
    let root = tempfile::tempdir().unwrap();
    write_at(&root.path().join("1"), 0);
    write_at(&root.path().join("2"), 100);
    let later = ["101", "lost 2 101-105", "105", "lost 3 105-109", "109"];
    assert_eq!(walk(root.path()), [WHOLE, later].concat());
}

#[test]
fn traces_that_are_named_one_by_one_are_not_taken_for_copies() {
    let root = tempfile::tempdir().unwrap();
    let dirs = ["a", "b"].map(|name| root.path().join(name));
    for dir in &dirs {
        write(dir);
    }
    let roots = dirs.map(trace::Root::from);
    let trace = Trace::open_all(&roots, &OpenOptions::default()).unwrap();
    let found = rest(&mut trace.cursor(TimeRange::ALL));
    assert_eq!(found.len(), 2 * WHOLE.len(), "{found:?}");
}

#[test]
fn a_trace_that_is_still_being_written_is_read_as_far_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let packets = write(root.path());
    let path = root.path().join(STREAM);
    let bytes = fs::read(&path).unwrap();
    // A packet that is there in part is named; the next opening has it whole.
    let in_part = packets[1].start + 40;
    fs::write(&path, &bytes[..in_part]).unwrap();
    let found = walk(root.path());
    assert_eq!(found[0], "1");
    assert!(found[1].starts_with("damage "), "{found:?}");
    assert_eq!(found[2..], ["Cut 1-2"]);

    fs::write(&path, &bytes[..packets[1].start]).unwrap();
    let trace = Trace::open(root.path()).unwrap();
    let mut cursor = trace.cursor(TimeRange::ALL);
    assert!(matches!(cursor.next().unwrap(), Some(Item::Event(_))));
    fs::write(&path, &bytes).unwrap();
    let more = rest(&mut cursor);
    assert_eq!(more, WHOLE[1..1 + more.len()], "no damage, nothing twice");
    assert_eq!(walk(root.path()), WHOLE);
}

#[test]
fn what_is_not_written_yet_is_no_loss_while_somebody_writes() {
    let check = |dir: &Path, expect_ended: &str| {
        let open = |live| {
            let options = OpenOptions {
                live,
                ..OpenOptions::default()
            };
            let trace = Trace::open_with(dir, &options).unwrap();
            let words = rest(&mut trace.cursor(TimeRange::ALL));
            let is_loss = |word: &String| !word.starts_with("damage ");
            words.into_iter().filter(is_loss).collect::<Vec<_>>()
        };
        let ended = open(false);
        assert!(ended.contains(&expect_ended.to_owned()), "{ended:?}");
        assert_eq!(open(true), ["1"]);
    };
    let root = tempfile::tempdir().unwrap();
    let packets = write(root.path());
    let path = root.path().join(STREAM);
    let bytes = fs::read(&path).unwrap();
    // Part of a packet's header, and of its context.
    for in_part in [2, 40] {
        fs::write(&path, &bytes[..packets[1].start + in_part]).unwrap();
        check(root.path(), "Cut 1-2");
    }
    // The first thread on another CPU: its stream has a name and no packet.
    fs::write(&path, &bytes[..packets[0].end]).unwrap();
    fs::write(root.path().join("channel0_1"), []).unwrap();
    check(root.path(), "Missing 1-2");
}

#[test]
fn an_index_file_that_is_wrong_or_absent_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    write(root.path());
    let index = root.path().join(format!("index/{STREAM}.idx"));
    let sound = fs::read(&index).unwrap();
    // Its records begin after 16 bytes with the packet's offset in the file.
    let mut elsewhere = sound.clone();
    elsewhere[16..24].fill(0xff);
    for bytes in [&elsewhere[..], &sound[..20], b"no index"] {
        fs::write(&index, bytes).unwrap();
        assert_eq!(walk(root.path()), WHOLE);
    }
    fs::remove_dir_all(root.path().join("index")).unwrap();
    assert_eq!(walk(root.path()), WHOLE);
}
