//! trace.dat files made by hand: every version, byte order, width and compression reads the same;
//! damaged ones give their good part, then one clear item.

use std::path::Path;

use event::{Duration, TimeRange};
use testkit::dat::{self, DatEvent, DatPacking, SyntheticDat};
use trace::{Item, OpenOptions, Root, Trace};

/// An event as the reader shows it.
#[derive(Debug, PartialEq)]
struct Seen {
    cpu: u32,
    name: String,
    event: DatEvent,
}

/// The events, and what else was met, a line each.
type Found = (Vec<Seen>, Vec<String>);

fn open(dir: &Path, bytes: &[u8]) -> event::Result<Trace> {
    let path = dir.join("no-name-that-says-what-it-is");
    std::fs::write(&path, bytes).expect("a file");
    Trace::open(&path)
}

fn walk(trace: &Trace, range: TimeRange) -> Found {
    let (mut events, mut others) = (Vec::new(), Vec::new());
    let mut cursor = trace.cursor(range);
    while let Some(item) = cursor.next().expect("a file that can be read") {
        match item {
            Item::Event(event) => {
                let class = &trace.classes()[event.class().0 as usize];
                let field = |name: &str| class.field(name).expect(name);
                let text = |name: &str| String::from_utf8_lossy(event.text(field(name))).into();
                events.push(Seen {
                    cpu: event.cpu().map_or(u32::MAX, |cpu| cpu.0),
                    name: text("procname"),
                    event: DatEvent {
                        time_ns: event.time().as_ns() as u64,
                        tid: event.i64(field("tid")) as i32,
                        number: event.i64(field("number")),
                        text: text("text"),
                    },
                });
            }
            Item::Lost(lost) => others.push(format!("lost {:?} on {:?}", lost.count, lost.cpu)),
            Item::Damage(damage) => {
                others.push(format!(
                    "{} at {}: {}",
                    damage.file, damage.offset_bytes, damage.reason
                ));
            }
        }
    }
    (events, others)
}

/// What a file should show: all its events in the order of their times.
fn expected(dat: &SyntheticDat) -> Vec<Seen> {
    let lanes = dat.cpus.iter().enumerate();
    let lanes = lanes.chain(dat.instance.iter().map(|(_, events)| (0, events)));
    let mut seen = Vec::new();
    for (cpu, events) in lanes {
        seen.extend(events.iter().map(|event| Seen {
            cpu: cpu as u32,
            name: match event.tid {
                100 => "first task".to_owned(),
                101 => "second".to_owned(),
                _ => "<...>".to_owned(),
            },
            event: event.clone(),
        }));
    }
    seen.sort_by_key(|seen| seen.event.time_ns);
    seen
}

fn check(dat: &SyntheticDat, others: &[&str]) {
    let dir = tempfile::tempdir().expect("a directory");
    let trace = open(dir.path(), &dat.bytes()).expect("a sound file");
    let (events, found) = walk(&trace, TimeRange::ALL);
    assert_eq!(events, expected(dat), "{dat:?}");
    assert_eq!(found, others, "{dat:?}");
}

#[test]
fn every_version_order_width_and_compression_reads_the_same() {
    for version in [6, 7] {
        for big_endian in [false, true] {
            for long_bytes in [4, 8] {
                for packing in [DatPacking::None, DatPacking::Zlib, DatPacking::Zstd] {
                    let dat = SyntheticDat {
                        version,
                        big_endian,
                        long_bytes,
                        packing,
                        cpus: vec![dat::events(0, 300), dat::events(1, 30), Vec::new()],
                        ..SyntheticDat::default()
                    };
                    check(&dat, &[]);
                }
            }
        }
    }
}

#[test]
fn lost_events_stand_at_their_place_with_their_number() {
    for (long_bytes, big_endian) in [(4, true), (8, false)] {
        let dat = SyntheticDat {
            long_bytes,
            big_endian,
            missed: Some(17),
            cpus: vec![dat::events(0, 200)],
            ..SyntheticDat::default()
        };
        check(&dat, &["lost Some(17) on Some(Cpu(0))"]);
    }
}

#[test]
fn instances_are_read_beside_the_top_one() {
    for version in [6, 7] {
        let mut other = dat::events(0, 20);
        other.iter_mut().for_each(|event| event.time_ns += 3);
        let dat = SyntheticDat {
            version,
            instance: Some(("mine".to_owned(), other)),
            packing: DatPacking::Zstd,
            ..SyntheticDat::default()
        };
        check(&dat, &[]);
        let dir = tempfile::tempdir().expect("a directory");
        let trace = open(dir.path(), &dat.bytes()).expect("a sound file");
        let files: Vec<_> = trace.parts()[0]
            .streams
            .iter()
            .map(|s| s.file.clone())
            .collect();
        assert!(files.contains(&"mine/cpu0".to_owned()), "{files:?}");
    }
}

#[test]
fn what_the_file_says_of_its_machine_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    for version in [6, 7] {
        let dat = SyntheticDat {
            version,
            ..SyntheticDat::default()
        };
        let trace = open(dir.path(), &dat.bytes()).expect("a sound file");
        let info = trace.info();
        assert_eq!(info.clock, event::Clock::Monotonic);
        assert_eq!(info.environment["hostname"], "host");
        assert_eq!(info.environment["kernel_release"], "6.1");
        assert_eq!(info.cpus, [event::Cpu(0), event::Cpu(1)]);
        assert_eq!(trace.symbols().lookup(0xffff_0010), Some(("function", 16)));
        let part = &trace.parts()[0];
        assert_eq!(
            (part.format, part.format_version),
            ("trace.dat", ["6", "7"][version as usize - 6])
        );
    }
}

#[test]
fn a_range_begins_and_ends_where_it_says() {
    let dir = tempfile::tempdir().expect("a directory");
    for packing in [DatPacking::None, DatPacking::Zstd] {
        let dat = SyntheticDat {
            packing,
            cpus: vec![dat::events(0, 3000), dat::events(1, 2000)],
            ..SyntheticDat::default()
        };
        let trace = open(dir.path(), &dat.bytes()).expect("a sound file");
        let all = expected(&dat);
        for (first, last) in [(0, 10), (777, 900), (4000, 4999), (10, 10)] {
            let range = TimeRange {
                begin: event::Instant::from_ns(all[first].event.time_ns as i64),
                end: event::Instant::from_ns(all[last].event.time_ns as i64),
            };
            assert_eq!(walk(&trace, range).0, all[first..last], "{first} to {last}");
        }
    }
}

#[test]
fn a_file_that_was_cut_gives_its_good_part_and_says_where_it_ends() {
    let dir = tempfile::tempdir().expect("a directory");
    let dat = SyntheticDat {
        version: 6,
        cpus: vec![dat::events(0, 300)],
        ..SyntheticDat::default()
    };
    let bytes = dat.bytes();
    let trace = open(dir.path(), &bytes[..bytes.len() - 5000]).expect("its head is whole");
    let (events, others) = walk(&trace, TimeRange::ALL);
    let all = expected(&dat);
    assert!(events.len() > 100 && events.len() < all.len());
    assert_eq!(events, all[..events.len()]);
    assert_eq!(others[1..], ["lost None on Some(Cpu(0))"], "{others:?}");
    assert!(others[0].starts_with("cpu0 at "), "{others:?}");
    assert!(
        others[0].contains("expected a page of 4096 bytes, found"),
        "{others:?}"
    );
}

#[test]
fn a_stream_that_claims_more_than_the_file_has_ends_with_the_file() {
    const TABLE: &[u8] = b"flyrecord\0";
    let dir = tempfile::tempdir().expect("a directory");
    let dat = SyntheticDat {
        version: 6,
        cpus: vec![dat::events(0, 300)],
        ..SyntheticDat::default()
    };
    let mut bytes = dat.bytes();
    let table_at = bytes.windows(TABLE.len()).position(|at| at == TABLE);
    // Where the pages of the first CPU are, and how many bytes of them.
    let size_at = table_at.expect("a table") + TABLE.len() + 8;
    let claimed_bytes = 1u64 << 45;
    bytes[size_at..size_at + 8].copy_from_slice(&claimed_bytes.to_le_bytes());
    let trace = open(dir.path(), &bytes).expect("its head is whole");
    let (events, others) = walk(&trace, TimeRange::ALL);
    assert_eq!(events, expected(&dat));
    assert!(
        others[0].contains("expected a page of 4096 bytes, found 0"),
        "{others:?}"
    );
    trace.losses(TimeRange::ALL).expect("it ends");
}

#[test]
fn a_file_that_was_cut_anywhere_is_read_in_part_or_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    for version in [6, 7] {
        let dat = SyntheticDat {
            version,
            cpus: vec![dat::events(0, 3)],
            packing: DatPacking::Zlib,
            ..SyntheticDat::default()
        };
        let bytes = dat.bytes();
        for length in (10..bytes.len()).step_by(13) {
            if let Ok(trace) = open(dir.path(), &bytes[..length]) {
                walk(&trace, TimeRange::ALL);
            }
        }
    }
}

#[test]
fn a_recording_stands_beside_a_ctf_trace_in_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let ctf = dir.path().join("ctf");
    testkit::write_sample(&ctf).expect("a trace");
    let dat = dir.path().join("recording");
    std::fs::write(&dat, SyntheticDat::default().bytes()).expect("a file");
    let single = Trace::open(&ctf).expect("a trace");
    let count = |trace: &Trace| {
        let (mut count, mut last) = (0, i64::MIN);
        let mut cursor = trace.cursor(TimeRange::ALL);
        while let Some(item) = cursor.next().expect("readable") {
            if let Item::Event(event) = item {
                assert!(event.time().as_ns() >= last);
                last = event.time().as_ns();
                assert!((event.class().0 as usize) < trace.classes().len());
                count += 1;
            }
        }
        count
    };
    let alone = count(&single);
    let roots = [
        Root::from(ctf),
        Root {
            path: dat,
            clock_offset: Duration::from_ns(5),
        },
    ];
    let both = Trace::open_all(&roots, &OpenOptions::default()).expect("both");
    assert_eq!(both.parts().len(), 2);
    assert_eq!(count(&both), alone + 70);
    let class = both.classes().iter().find(|class| class.name == "tick");
    let class = class.expect("the recording's class");
    assert_eq!(both.part_of(class.id), 1);
    assert_eq!(both.environment_of(class.id)["tracer_name"], "trace-cmd");
}
