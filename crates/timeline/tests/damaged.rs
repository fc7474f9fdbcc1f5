//! What a track shows of a file that was damaged is what the reports say of it.

mod engine;

use std::fs;
use std::path::Path;

use ctf::writer::{ClockMeta, HeaderKind, PayloadWriter, StreamMeta, TraceMeta, TraceWriter};
use engine::{check_from, index};
use event::{ClassId, Cpu, EventClass, Field, FieldType, Instant, Integer};
use proptest::prelude::*;
use trace::{OpenOptions, Root, Trace};

const NAMES: [&str; 4] = ["swapper", "a", "b", "c"];
/// Switches of each CPU, a few to a packet.
const SWITCHES: i64 = 400;
const TO_A_PACKET: i64 = 12;

fn class() -> EventClass {
    let number = || FieldType::Integer(Integer::le(32, true));
    let fields = [
        ("prev_comm", FieldType::String),
        ("prev_tid", number()),
        ("prev_prio", number()),
        ("prev_state", number()),
        ("next_comm", FieldType::String),
        ("next_tid", number()),
        ("next_prio", number()),
    ];
    EventClass {
        id: ClassId(0),
        name: "sched_switch".to_owned(),
        stream: 0,
        fields: fields
            .into_iter()
            .map(|(name, ty)| Field::payload(name, ty))
            .collect(),
    }
}

/// Two CPUs, on each of which two threads and the idle task take turns.
fn write(dir: &Path) {
    let meta = TraceMeta {
        uuid: [7; 16],
        clocks: vec![ClockMeta::monotonic(1_700_000_000_000_000_000)],
        streams: vec![StreamMeta {
            name: "kernel".to_owned(),
            header: HeaderKind::Compact,
            classes: vec![class()],
            packet_context: vec![Field::payload(
                "turn",
                FieldType::Integer(Integer::le(32, true)),
            )],
            ..StreamMeta::default()
        }],
        ..TraceMeta::default()
    };
    let mut trace = TraceWriter::create(dir, &meta).expect("a folder");
    for cpu in 0..2u32 {
        let mut stream = trace.stream(0, Cpu(cpu)).expect("a stream");
        let task = |turn: i64| match turn % 3 {
            0 => 0,
            who => who + i64::from(cpu),
        };
        for turn in 0..SWITCHES {
            let values = [event::Value::Signed(turn / TO_A_PACKET)];
            stream.packet_context(&values).expect("a packet");
            let mut payload = PayloadWriter::new();
            for (who, state) in [(task(turn), Some(turn % 2)), (task(turn + 1), None)] {
                payload.string(NAMES[who as usize]);
                payload.i32(who as i32 * 10).i32(20);
                if let Some(state) = state {
                    payload.i32(state as i32);
                }
            }
            let at = Instant::from_ns(10_000 + turn * 7_000 + i64::from(cpu) * 3_000);
            stream.event(0, at, payload.bytes()).expect("room");
        }
        stream.finish().expect("room");
    }
}

/// The files of events, in order.
fn streams(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(dir).expect("a folder").flatten();
    let paths = entries.map(|entry| entry.path());
    let mut found: Vec<_> = paths
        .filter(|path| path.is_file() && !path.ends_with("metadata"))
        .collect();
    found.sort();
    found
}

/// Something that happens to a file.
#[derive(Clone, Debug)]
enum Harm {
    Cut(f64),
    Bytes(f64, Vec<u8>),
    Gone,
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        (0.0..1.0f64).prop_map(Harm::Cut),
        (0.0..1.0f64, prop::collection::vec(any::<u8>(), 1..300))
            .prop_map(|(place, bytes)| Harm::Bytes(place, bytes)),
        Just(Harm::Gone),
    ]
}

fn damage(path: &Path, harm: &Harm) {
    let mut bytes = fs::read(path).expect("a file");
    let at = |place: f64| (bytes.len() as f64 * place) as usize;
    match harm {
        Harm::Cut(place) => bytes.truncate(at(*place)),
        Harm::Bytes(place, other) => {
            let from = at(*place);
            for (byte, other) in bytes.iter_mut().skip(from).zip(other) {
                *byte = *other;
            }
        }
        Harm::Gone => return fs::remove_file(path).expect("it goes"),
    }
    fs::write(path, bytes).expect("room");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// 100 damaged recordings, 20 begins each: 2,000 windows beside those of holes.
    #[test]
    fn of_a_damaged_recording_a_track_adds_up_to_what_the_report_says(
        harms in prop::collection::vec((0..2usize, harm()), 1..4),
        begins in prop::collection::vec(0.0..1.0f64, 20),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("trace");
        write(&dir);
        let files = streams(&dir);
        assert_eq!(files.len(), 2);
        for (place, harm) in &harms {
            if files[*place].is_file() {
                damage(&files[*place], harm);
            }
        }
        // What cannot be opened any more has no page either.
        let Ok(trace) = Trace::open_all(&[Root::from(&dir)], &OpenOptions::default()) else {
            return Ok(());
        };
        let index = index(&trace);
        let whole_ns = index.end_ns - index.begin_ns;
        for begin in begins {
            let begin_ns = index.begin_ns + (whole_ns as f64 * begin) as i64;
            check_from(&trace, &index, begin_ns, false);
        }
    }
}

#[test]
fn the_recording_that_is_damaged_is_whole_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("trace");
    write(&dir);
    let trace = Trace::open_all(&[Root::from(&dir)], &OpenOptions::default()).expect("a trace");
    let index = index(&trace);
    assert_eq!(index.events, 2 * SWITCHES as u64);
    assert_eq!(
        (index.losses.len(), index.damages, index.tasks.len()),
        (0, 0, 4)
    );
    // A damaged one shows it.
    damage(&streams(&dir)[0], &Harm::Bytes(0.5, vec![0xff; 200]));
    let trace = Trace::open_all(&[Root::from(&dir)], &OpenOptions::default()).expect("a trace");
    let harmed = engine::index(&trace);
    assert!(harmed.events < index.events, "{}", harmed.events);
    assert!(!harmed.losses.is_empty(), "{:?}", harmed.losses);
}
