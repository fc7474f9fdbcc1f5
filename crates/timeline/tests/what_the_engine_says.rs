//! What a track shows at any instant is what the reports say: of a trace with holes, too.

mod engine;

use std::io::{Read, Seek, Write};

use engine::{check_from, index};
use event::{Cpu, Instant, TimeRange, Value};
use proptest::prelude::*;
use testkit::{SyntheticTrace, Task};
use timeline::{Builder, Index, Kind, State, Track, TrackId};
use trace::Trace;

const TASKS: [Task; 4] = [
    Task::fair(7, "a"),
    Task::rt(8, "b", 60),
    Task::fair(9, "<b>&\u{202e}"),
    Task::IDLE,
];

/// One step of a made-up recording: how long after the one before, on which CPU, what, with whom.
type Step = (i64, u32, u8, usize);

/// Who is on each of two CPUs, so that switches fit together where nothing was left out.
fn recording(steps: &[Step]) -> Trace {
    let mut trace = SyntheticTrace::new();
    let mut on = [Task::IDLE; 2];
    let mut now_us = 10;
    for &(after, cpu, what, who) in steps {
        now_us += after;
        trace = trace.at(now_us).cpu(cpu);
        let task = TASKS[who];
        let here = on[cpu as usize];
        let is_elsewhere = on[1 - cpu as usize] == task && task != Task::IDLE;
        trace = match what {
            0 | 1 if task != here && !is_elsewhere => {
                on[cpu as usize] = task;
                match what {
                    0 => trace.block(here, task),
                    _ => trace.preempt(here, task),
                }
            }
            2 if task != Task::IDLE => trace.waking(task, cpu),
            3 => trace.irq(36, "disk"),
            4 => trace.irq_end(36),
            5 => trace.softirq(1),
            6 => trace.softirq_end(1),
            7 => trace.event("syscall_entry_read", &[("fd", Value::Unsigned(1))]),
            8 => trace.event("syscall_exit_read", &[("ret", Value::Signed(0))]),
            9 => {
                let of = (who > 0).then_some(cpu);
                trace.lost_on(of, (now_us - after / 2) * 1_000, now_us * 1_000)
            }
            // A switch that was not recorded.
            10 => {
                on[cpu as usize] = Task::IDLE;
                trace
            }
            _ => trace,
        };
    }
    trace.build()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((1..40i64, 0..2u32, 0..11u8, 0..TASKS.len()), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// 400 recordings, 25 begins each: 10,000 windows.
    #[test]
    fn from_any_instant_on_a_track_adds_up_to_what_the_report_says(
        steps in steps(),
        begins in prop::collection::vec(0.0..1.0f64, 25),
    ) {
        let trace = recording(&steps);
        let fits_together = steps.iter().all(|(_, _, what, _)| *what != 10);
        let index = index(&trace);
        let whole_ns = index.end_ns - index.begin_ns;
        for begin in begins {
            let begin_ns = index.begin_ns + (whole_ns as f64 * begin) as i64;
            check_from(&trace, &index, begin_ns, fits_together);
        }
    }

    #[test]
    fn what_is_kept_comes_back_and_anything_else_is_refused(
        steps in steps(),
        cut in 0.0..1.0f64,
        flip in 0.0..1.0f64,
    ) {
        let bytes = kept(&recording(&steps));
        let open = |bytes: &[u8], key: &[u8]| Index::open(file_of(bytes), key);
        prop_assert_eq!(open(&bytes, b"key"), Some(index(&recording(&steps))));
        prop_assert_eq!(open(&bytes, b"other"), None);
        let place = |share: f64| (bytes.len() as f64 * share) as usize;
        prop_assert_eq!(open(&bytes[..place(cut)], b"key"), None);
        let mut flipped = bytes.clone();
        // Before what is read first stands no more than what begins each file.
        let head = MAGIC_BYTES.max(place(flip));
        flipped[head] ^= 1;
        prop_assert_eq!(open(&flipped, b"key"), None);
    }
}

const MAGIC_BYTES: usize = 8;

fn file_of(bytes: &[u8]) -> std::fs::File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("room for it");
    file
}

/// The bytes of the file in which an index is kept.
fn kept(trace: &Trace) -> Vec<u8> {
    let mut file = tempfile::tempfile().expect("a file");
    let lent = file.try_clone().expect("another handle");
    let walked = Builder::new(trace).walk_into(lent, |_| true);
    let (index, spilled) = walked.expect("a walk");
    spilled.keep(&index, b"key").expect("room for it");
    let mut bytes = Vec::new();
    file.rewind().expect("it is a file");
    file.read_to_end(&mut bytes).expect("it is there");
    bytes
}

#[test]
fn of_damaged_bytes_nobody_knows_and_nothing_else_is_told() {
    let trace = recording(&many_steps());
    let (whole, bytes) = (index(&trace), kept(&trace));
    assert_eq!(Index::open(file_of(&bytes), b"key"), Some(whole.clone()));
    let (mut refused, mut unknown) = (0, 0);
    for place in (MAGIC_BYTES..bytes.len()).step_by(41) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        let Some(found) = Index::open(file_of(&damaged), b"key") else {
            refused += 1;
            continue;
        };
        for (track, told) in found.cpus.iter().zip(&whole.cpus) {
            let told: Vec<_> = told.segments(i64::MIN, i64::MAX).collect();
            for segment in track.segments(i64::MIN, i64::MAX) {
                let is_unknown = segment.state == State::UNKNOWN;
                assert!(
                    is_unknown || told.contains(&segment),
                    "{place}: {segment:?}"
                );
            }
            unknown += usize::from(track.segments(i64::MIN, i64::MAX).count() < told.len());
            // It is looked at in other ways, too.
            let whole_ns = found.begin_ns..found.end_ns;
            let sums = track.sums(whole_ns.start, whole_ns.end);
            assert!(sums.iter().sum::<u64>() >= whole_ns.end.abs_diff(whole_ns.start));
        }
        let tracks = [TrackId::Cpu(0), TrackId::Thread(1)];
        found.tile(&tracks, (found.begin_ns, found.end_ns), 50);
    }
    assert!(refused > 3 && unknown > 3, "{refused} {unknown}");
}

/// Looked up one stretch after the other.
fn plain_sums(track: &Track, begin_ns: i64, end_ns: i64) -> [u64; Kind::COUNT] {
    let mut sums = [0; Kind::COUNT];
    let mut known = 0;
    for segment in track.segments(i64::MIN, i64::MAX) {
        let ns = segment.end_ns.min(end_ns) - segment.begin_ns.max(begin_ns);
        if ns > 0 && segment.state != State::UNKNOWN {
            sums[segment.state.kind() as usize] += ns as u64;
            known += ns as u64;
        }
    }
    sums[0] = (end_ns - begin_ns) as u64 - known;
    sums
}

/// Enough that tracks have many blocks.
fn many_steps() -> Vec<Step> {
    (0..6_000u64)
        .map(|turn| {
            let mixed = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let what = [0, 1, 2, 3, 4, 5, 6, 7, 8][(mixed >> 8) as usize % 9];
            (
                1 + mixed as i64 % 30,
                mixed as u32 >> 4 & 1,
                what,
                mixed as usize >> 16 & 3,
            )
        })
        .collect()
}

#[test]
fn a_column_of_a_tile_has_the_shares_of_its_time() {
    let index = index(&recording(&many_steps()));
    let whole_ns = index.end_ns - index.begin_ns;
    let mut looked_at = 0;
    for (begin_ns, length_ns, columns) in [
        (-1_000, whole_ns + 5_000, 97),
        (0, whole_ns, 3),
        (whole_ns / 3, whole_ns / 2, 40),
        (whole_ns / 2, whole_ns / 40, 20),
        (whole_ns * 2, whole_ns, 5),
    ] {
        let begin_ns = index.begin_ns + begin_ns;
        for id in [TrackId::Cpu(0), TrackId::Cpu(1), TrackId::Thread(1)] {
            let track = index.track(id).expect("a track");
            let tile = index.tile(&[id], (begin_ns, begin_ns + length_ns), columns);
            if tile[37] == 0 {
                continue;
            }
            for column in 0..i64::from(columns) {
                let edge = |column: i64| begin_ns + length_ns * column / i64::from(columns);
                let (from_ns, until_ns) = (edge(column), edge(column + 1));
                let sums = track.sums(from_ns, until_ns);
                let bytes = &tile[48 + column as usize * 12..][..12];
                for (kind, ns) in sums.iter().enumerate() {
                    let share = (ns * 255 / until_ns.abs_diff(from_ns)).max(u64::from(*ns > 0));
                    assert_eq!(u64::from(bytes[kind]), share, "{id:?} {column} {kind}");
                }
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 300, "{looked_at}");
}

#[test]
fn sums_over_many_blocks_are_those_of_the_stretches() {
    let index = index(&recording(&many_steps()));
    let whole_ns = index.end_ns - index.begin_ns;
    for track in index.cpus.iter().chain(&index.threads) {
        for probe in 0..400 {
            let begin_ns = index.begin_ns - 1_000 + whole_ns * (probe * 37 % 400) / 400;
            let end_ns = begin_ns + 1 + whole_ns * (probe * 53 % 97) / 90;
            let expect = plain_sums(track, begin_ns, end_ns);
            assert_eq!(track.sums(begin_ns, end_ns), expect, "{begin_ns} {end_ns}");
            let here = track.segments(begin_ns, begin_ns + 1).next();
            let state = here.map_or(State::UNKNOWN, |segment| segment.state);
            assert_eq!(track.at(begin_ns), state);
        }
    }
    assert!(index.cpus[0].len() > 600, "{}", index.cpus[0].len());
}

#[test]
fn a_hole_is_unknown_and_is_not_filled() {
    let trace = SyntheticTrace::new();
    let trace = trace
        .at(10)
        .run(TASKS[0])
        .at(50)
        .lost(30, 50)
        .block(TASKS[0], TASKS[1]);
    let trace = trace.at(70).block(TASKS[1], Task::IDLE).build();
    let index = index(&trace);
    let at = |us: i64| index.cpus[0].at(index.begin_ns + (us - 10) * 1_000).kind();
    assert_eq!(
        [at(20), at(40), at(60)],
        [Kind::Run, Kind::Unknown, Kind::Run]
    );
    assert_eq!(index.losses.len(), 1);
    assert_eq!(index.losses[0].cpu, Some(0));
}

#[test]
fn traces_of_no_event_and_of_one_have_an_index_and_tiles() {
    let check = |trace: Trace, events: u64| {
        let index = index(&trace);
        assert_eq!(index.events, events);
        assert_eq!(index.begin_ns, index.end_ns);
        let tracks = [
            TrackId::Cpu(0),
            TrackId::Cpu(4_000_000_000),
            TrackId::Thread(9),
        ];
        for range in [
            (index.begin_ns, index.end_ns),
            (i64::MIN, i64::MAX),
            (5, -5),
        ] {
            let tile = index.tile(&tracks, range, 100);
            assert_eq!(&tile[..4], b"RTVT");
        }
    };
    check(SyntheticTrace::new().build(), 0);
    check(SyntheticTrace::new().at(5).run(TASKS[0]).build(), 1);
}

#[test]
fn hundreds_of_cpus_have_a_track_each() {
    let mut trace = SyntheticTrace::new();
    for cpu in 0..512 {
        trace = trace
            .at(10 + i64::from(cpu))
            .cpu(cpu)
            .run(Task::fair(1_000 + cpu as i32, "w"));
    }
    let index = index(&trace.build());
    assert_eq!(index.cpus.len(), 512);
    let busy = |track: &&Track| track.at(index.end_ns - 1).kind() == Kind::Run;
    assert_eq!(index.cpus.iter().filter(busy).count(), 511);
}

#[test]
fn a_checkpoint_leads_to_the_event_of_its_row() {
    let mut trace = SyntheticTrace::new();
    // Three events of one instant each, so that checkpoints fall between them.
    for turn in 0..5_000 {
        trace = trace
            .at(10 + turn)
            .waking(TASKS[0], 0)
            .waking(TASKS[1], 0)
            .waking(TASKS[2], 0);
    }
    let trace = trace.build();
    let index = index(&trace);
    let offset_ns = trace.info().wall_offset.as_ns();
    for row in [0, 1, 4_095, 4_096, 4_097, 8_191, 8_192, 12_345, 14_999] {
        let (at_ns, skip) = index.place_of(row).expect("it is there");
        let range = TimeRange {
            begin: Instant::from_ns(at_ns - offset_ns),
            end: Instant::MAX,
        };
        let mut cursor = trace.cursor(range);
        for _ in 0..skip {
            cursor.next().expect("an item");
        }
        cursor.next().expect("an item");
        let event = cursor.event().expect("an event");
        assert_eq!(event.time().as_ns(), (10 + row as i64 / 3) * 1_000);
        assert_eq!(event.cpu(), Some(Cpu(0)));
    }
    assert_eq!(index.place_of(20_000), None);
}

#[test]
fn an_index_on_the_way_says_of_the_past_what_the_last_one_says() {
    let mut trace = SyntheticTrace::new();
    for turn in 0..40_000 {
        trace = trace.at(10 + turn * 4).run(TASKS[0]);
        trace = trace.at(12 + turn * 4).block(TASKS[0], Task::IDLE);
    }
    let trace = trace.build();
    let mut on_the_way = None;
    let whole = Builder::new(&trace).walk(|walked| {
        on_the_way = Some(walked.index());
        true
    });
    let (whole, early) = (whole.expect("a walk"), on_the_way.expect("a look"));
    assert!(early.events < whole.events);
    let until_ns = early.end_ns;
    for (early, whole) in early.cpus.iter().zip(&whole.cpus) {
        let begin_ns = until_ns - 100_000_000;
        assert_eq!(
            early.sums(begin_ns, until_ns),
            whole.sums(begin_ns, until_ns)
        );
    }
}
