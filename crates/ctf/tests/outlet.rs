//! Packets that find no room where a trace goes on to are losses of their stream, in their place.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ctf::reader::{Step, StreamReader, TraceFiles};
use ctf::writer::{Outlet, TraceMeta, TraceWriter};
use event::{Cpu, Field, FieldType, Instant, Integer};
use testkit::{event_class, one_stream_class};

/// Takes packets by the bits of a number, and counts what it is told.
#[derive(Debug, Default)]
struct Room {
    taken: u64,
    asked: AtomicU64,
    written: AtomicU64,
}

impl Outlet for Room {
    fn takes(&self, _size_bytes: u64, events: u64) -> bool {
        let is_taken = events == 0 || self.taken >> self.asked.load(Ordering::Relaxed) & 1 == 1;
        self.asked
            .fetch_add(u64::from(events > 0), Ordering::Relaxed);
        is_taken
    }

    fn wrote(&self, path: &Path, end_bytes: u64, events: u64) {
        let size_bytes = std::fs::metadata(path).expect("a file").len();
        assert_eq!(size_bytes, end_bytes, "whole packets alone");
        self.written.fetch_add(events, Ordering::Relaxed);
    }

    fn lost(&self, _events: u64) {
        panic!("the disk has room");
    }
}

fn meta() -> TraceMeta {
    let number = Field::payload("number", FieldType::Integer(Integer::le(32, false)));
    one_stream_class(vec![event_class(0, "robot:step", vec![number])], 1_000)
}

/// Writes packets of 2, 3, 4 and 5 events, the third behind 7 that the producer lost. Gives the
/// times of events, and where how many were lost.
fn check(taken: u64, expect: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = TraceWriter::create(folder.path(), &meta()).expect("a trace");
    let room = Arc::new(Room {
        taken,
        ..Room::default()
    });
    writer.tell(Some(Arc::clone(&room) as Arc<dyn Outlet>));
    let mut stream = writer.stream(0, Cpu(0)).expect("a stream");
    let mut ns = 10;
    for (packet, count) in [2, 3, 4, 5].into_iter().enumerate() {
        if packet == 2 {
            stream.discarded(7).expect("room");
        }
        for _ in 0..count {
            let event = stream.event(0, Instant::from_ns(ns), &[0; 4]);
            event.expect("an event");
            ns += 1;
        }
        stream.gap().expect("no room is no error");
        ns += 10;
    }
    let totals = stream.finish().expect("finished");
    assert_eq!(totals.events, room.written.load(Ordering::Relaxed));
    assert_eq!(totals.events + totals.refused, 14);
    assert_eq!(totals.discarded, totals.refused + 7);
    let files = TraceFiles::open(folder.path()).expect("a trace");
    let bytes = std::fs::read(folder.path().join("channel0_0")).expect("a stream");
    let mut reader = StreamReader::new(files.schema(), &bytes);
    let mut found = Vec::new();
    loop {
        match reader.step() {
            Step::Event => found.push(reader.time_ns().to_string()),
            Step::Lost(loss) => found.push(format!("lost {}", loss.events.expect("counted"))),
            Step::End => break,
            other => panic!("{other:?}"),
        }
    }
    // Packets of one are told by their first events.
    assert_eq!(found.join(" "), expect.join(" "), "{taken:b}");
}

#[test]
fn what_finds_no_room_is_lost_where_it_was() {
    let (one, two) = ("10 11", "22 23 24");
    let (three, four) = ("35 36 37 38", "49 50 51 52 53");
    check(0b1111, &[one, two, "lost 7", three, four]);
    check(0b1101, &[one, "lost 10", three, four]);
    check(0b1011, &[one, two, "lost 11", four]);
    check(0b0111, &[one, two, "lost 7", three, "lost 5"]);
    check(0b1110, &["lost 2", two, "lost 7", three, four]);
    check(0b1000, &["lost 16", four]);
    check(0b0000, &["lost 21"]);
}
