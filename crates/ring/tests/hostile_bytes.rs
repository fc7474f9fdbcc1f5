//! Check that no bytes of a traced process make the reader panic, loop or read outside.

use std::mem::offset_of;

use abi::rings::{self, Header, Set};
use proptest::prelude::*;
use ring::{Layout, Mode, Records, Table, Window, overwritten_before, readable};

/// Bytes of a header.
const HEADER_BYTES: usize = size_of::<Header>();

/// A header that is sound, as bytes in the order of the C structure.
fn sound_header() -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    let ring_bytes = 64u64 << 10;
    put(0, &rings::MAGIC.to_le_bytes());
    put(
        offset_of!(Header, version),
        &rings::LAYOUT_VERSION.to_le_bytes(),
    );
    put(offset_of!(Header, pid), &77u32.to_le_bytes());
    put(offset_of!(Header, rings_length), &2u32.to_le_bytes());
    put(offset_of!(Header, sets_length), &1u32.to_le_bytes());
    for (at, value) in [
        (offset_of!(Header, controls_offset), 4096u64),
        (offset_of!(Header, switches_offset), 8192),
        (offset_of!(Header, switches_bytes), 4096),
        (offset_of!(Header, filters_offset), 12288),
        (offset_of!(Header, filters_bytes), 2048),
        (offset_of!(Header, objects_offset), 14336),
        (offset_of!(Header, objects_bytes), 2048),
        (offset_of!(Header, table_offset), 16384),
        (offset_of!(Header, table_bytes), 4096),
        (offset_of!(Header, data_offset), 32768),
        (offset_of!(Header, ring_bytes), ring_bytes),
        (offset_of!(Header, subbuffer_bytes), ring_bytes / 8),
    ] {
        put(at, &value.to_le_bytes());
    }
    put(offset_of!(Header, name), b"worker");
    bytes
}

/// The same with so many sets, behind each other.
fn with_sets(count: u32) -> Vec<u8> {
    let mut bytes = sound_header();
    let length = offset_of!(Header, sets_length);
    bytes[length..length + 4].copy_from_slice(&count.to_le_bytes());
    for place in 0..rings::SETS_MAX - 1 {
        let at = offset_of!(Header, more) + place * size_of::<Set>();
        let data_offset = 32768 + (place as u64 + 1) * (128 << 10);
        for (field, value) in [
            (offset_of!(Set, data_offset), data_offset),
            (offset_of!(Set, ring_bytes), 64 << 10),
            (offset_of!(Set, subbuffer_bytes), 8 << 10),
        ] {
            bytes[at + field..at + field + 8].copy_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

fn layout() -> Layout {
    Layout::parse(&sound_header(), 1 << 20)
        .expect("a sound header")
        .expect("a complete header")
}

#[test]
fn a_sound_header_is_understood() {
    let layout = layout();
    assert_eq!(layout.name, "worker");
    assert_eq!(layout.pid, 77);
    assert_eq!(layout.rings, 2);
}

#[test]
fn rings_may_be_as_large_as_is_promised_in_as_few_sub_buffers_as_can_be() {
    for subbuffers in [2, 8, rings::SUBBUFFERS_MAX] {
        let mut bytes = sound_header();
        for (at, value) in [
            (offset_of!(Header, ring_bytes), rings::RING_BYTES_MAX),
            (
                offset_of!(Header, subbuffer_bytes),
                rings::RING_BYTES_MAX / subbuffers,
            ),
        ] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let layout = Layout::parse(&bytes, 32768 + 2 * rings::RING_BYTES_MAX);
        let layout = layout.expect("sound").expect("complete");
        assert_eq!(layout.ring_bytes / layout.subbuffer_bytes, subbuffers);
    }
}

#[test]
fn a_file_has_one_to_four_sets_of_rings_and_that_of_a_probe_of_before_one() {
    for count in 1..=4 {
        let layout = Layout::parse(&with_sets(count), 1 << 20);
        let layout = layout.expect("sound").expect("complete");
        assert_eq!((layout.sets(), layout.has_sets()), (count, true));
        let set = layout.of_set(count - 1);
        assert_eq!((set.set, set.ring_bytes), (count - 1, 64 << 10));
    }
    let mut before = sound_header();
    let version = offset_of!(Header, version);
    before[version..version + 4].copy_from_slice(&rings::LAYOUT_VERSION_ONE_SET.to_le_bytes());
    // What stands behind its header is not part of it.
    before[offset_of!(Header, sets_length)..].fill(0xff);
    let layout = Layout::parse(&before, 1 << 20);
    let layout = layout.expect("sound").expect("complete");
    assert_eq!((layout.sets(), layout.has_sets()), (1, false));
}

#[test]
fn a_header_is_refused_with_its_reason() {
    let check = |at: usize, value: u64, expect: &str| {
        let mut bytes = sound_header();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let error = Layout::parse(&bytes, 1 << 20).expect_err("a broken header");
        assert!(error.to_string().contains(expect), "{error}");
    };
    check(0, 7, "another magic number: 0x7");
    check(8, 9, "version 9, known are 5 to 7");
    let outside = "an area that is not in the file";
    check(offset_of!(Header, switches_offset), u64::MAX - 8, outside);
    check(offset_of!(Header, switches_bytes), 4100, outside);
    check(offset_of!(Header, filters_bytes), 1 << 40, outside);
    check(offset_of!(Header, objects_offset), 0, outside);
    check(offset_of!(Header, data_offset), 1 << 40, outside);
    check(offset_of!(Header, ring_bytes), 100, "impossible rings");
    check(offset_of!(Header, subbuffer_bytes), 0, "impossible rings");
    let sets = "an impossible number of sets of rings";
    check(offset_of!(Header, sets_length), 0, sets);
    check(offset_of!(Header, sets_length), 5, sets);
    // A second set without rings.
    check(offset_of!(Header, sets_length), 2, "impossible rings");
    check(
        offset_of!(Header, rings_length),
        0,
        "an impossible number of rings",
    );
    let error = Layout::parse(&sound_header(), 40_000).expect_err("a truncated file");
    assert!(error.to_string().contains("not in the file"));
    let unfinished = Layout::parse(&[0; HEADER_BYTES], 1 << 20).expect("no error");
    assert_eq!(unfinished, None);
}

#[test]
fn a_stretch_is_read_as_written_and_resumed_where_it_was_cut() {
    let record = |id: u64, time: u64, words: &[u64]| -> Vec<u8> {
        let first = (words.len() as u64 + 2) | id << 16 | 9 << 32;
        let all = [&[first, time], words].concat();
        all.iter().flat_map(|word| word.to_le_bytes()).collect()
    };
    let mut bytes = record(1, 10, &[7]);
    bytes.extend(record(2, 11, &[]));
    let whole = bytes.len();
    bytes.extend(&record(3, 12, &[1, 2, 3])[..24]);
    let mut records = Records::new(&bytes, 4096, 4096, 0);
    let read: Vec<_> = records.by_ref().map(|r| (r.id, r.tid, r.time)).collect();
    assert_eq!(read, [(1, 9, 10), (2, 9, 11)]);
    assert_eq!(records.position(), 4096 + whole as u64);
    assert_eq!(records.malformed(), 0);
}

#[test]
fn a_stretch_that_is_cut_inside_of_padding_is_resumed_before_it() {
    let mut bytes: Vec<u8> = [2 | 1 << 16, 100u64].map(u64::to_le_bytes).concat();
    bytes.resize(4096, 0);
    // What an earlier turn left behind the padding's first word.
    bytes[24..32].copy_from_slice(&(2u64 | 7 << 16).to_le_bytes());
    bytes[32..40].copy_from_slice(&200u64.to_le_bytes());
    let read = |end: usize, begin: usize| {
        let mut records = Records::new(&bytes[begin..end], 4096 + begin as u64, 4096, 0);
        let count = records.by_ref().count();
        (count, records.position() - 4096, records.malformed())
    };
    assert_eq!(read(24, 0), (1, 16, 0));
    assert_eq!(read(4095, 0), (1, 16, 0));
    assert_eq!(read(4096, 16), (0, 4096, 0));
}

#[test]
fn a_time_that_falls_and_a_record_over_a_boundary_are_malformed() {
    let check = |first: u64, time: u64| {
        let mut bytes: Vec<u8> = [2 | 1 << 16, 100u64].map(u64::to_le_bytes).concat();
        bytes.extend(first.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.resize(8192, 0);
        let mut records = Records::new(&bytes, 0, 4096, 0);
        assert_eq!(records.by_ref().count(), 1);
        assert_eq!(records.malformed(), 1);
        assert_eq!(records.position(), 8192);
    };
    check(2 | 1 << 16, 99);
    check(600 | 1 << 16, 101);
    check(1 | 1 << 16, 101);
}

/// A writer of sub-buffers of its own, simpler than the real one: marks what may be destroyed.
/// An entry of the table.
fn entry(kind: u32, text: &[u8]) -> Vec<u8> {
    let bytes = (size_of::<rings::Entry>() + text.len()).next_multiple_of(8);
    let mut entry = vec![0; size_of::<rings::Entry>()];
    entry[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
    entry[4..8].copy_from_slice(&(text.len() as u32).to_le_bytes());
    entry[12..16].copy_from_slice(&kind.to_le_bytes());
    entry.extend_from_slice(text);
    entry.resize(bytes, 0);
    entry
}

#[test]
fn a_note_is_read_whole_or_not_at_all_and_steers_no_terminal() {
    let mut table = Table::default();
    let whole = entry(
        rings::ENTRY_NOTE,
        b"npt\0loop\0no loops\0it \x1b[2J stands\0go\0",
    );
    let cut = entry(rings::ENTRY_NOTE, b"npt\0loop\0no loops\0it stands\0go");
    table.extend(&[whole, cut].concat());
    let [note] = &table.notes[..] else {
        panic!("one note: {:?}", table.notes);
    };
    assert_eq!((&*note.provider, &*note.name), ("npt", "loop"));
    assert_eq!((&*note.what, &*note.fix), ("no loops", "go"));
    assert_eq!(note.found, "it ?[2J stands");
    assert_eq!((table.events.len(), table.problems.len()), (0, 1));
}

#[test]
fn what_may_be_overwritten_is_never_readable() {
    let layout = layout();
    let (ring, sub) = (layout.ring_bytes, layout.subbuffer_bytes);
    for head in (0..4 * ring).step_by(8 * 131) {
        let window = Window { head, tail: 0 };
        let range = readable(&layout, Mode::Overwrite, window).expect("a sound window");
        assert_eq!(range.end, head);
        // An aborted write destroys at most the rest of the head's sub-buffer.
        let destroyed = (head / sub + 1) * sub;
        assert!(range.start + ring >= destroyed, "{head}");
        assert!(range.start.is_multiple_of(sub));
        assert!(range.start == 0 || head - range.start >= ring - 2 * sub);
        assert_eq!(range.start, overwritten_before(&layout, head));
    }
}

proptest! {
    #[test]
    fn any_header_is_refused_or_bounded(
        at in 0usize..HEADER_BYTES - 8,
        value: u64,
        size in 0u64..(1 << 22),
    ) {
        let mut bytes = with_sets(4);
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        if let Ok(Some(layout)) = Layout::parse(&bytes, size) {
            prop_assert!(layout.table_offset + layout.table_bytes <= size);
            let sets = (0..layout.sets()).map(|set| layout.of_set(set).ring_bytes);
            prop_assert!(u64::from(layout.rings) * sets.sum::<u64>() <= size);
        }
    }

    #[test]
    fn any_stretch_ends(bytes in prop::collection::vec(any::<u8>(), 0..20_000), base in 0u64..4) {
        let mut records = Records::new(&bytes, base * 8, 4096, 0);
        let count = records.by_ref().count();
        prop_assert!(count <= bytes.len() / 16);
        prop_assert!(records.position() <= base * 8 + bytes.len() as u64);
        prop_assert!(records.malformed() <= 1 + bytes.len() as u64 / 4096 + 1);
    }

    #[test]
    fn any_table_is_read_to_its_end(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        let mut table = Table::default();
        table.extend(&bytes);
        prop_assert!(table.events.len() <= bytes.len() / 24);
        for event in &table.events {
            event.split(&bytes, |_, _| ());
        }
    }

    #[test]
    fn any_window_is_refused_or_within_the_ring(head: u64, tail: u64) {
        let layout = layout();
        let window = Window { head, tail };
        for mode in [Mode::Discard, Mode::Overwrite, Mode::Block] {
            if let Some(range) = readable(&layout, mode, window) {
                prop_assert!(range.end - range.start <= layout.ring_bytes);
            }
        }
    }
}
