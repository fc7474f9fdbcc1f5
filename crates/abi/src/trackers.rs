//! The records of `bpf/trackers/record.h`: same names, same order, same bytes; and what they say.
//!
//! Invariant: plain integers and arrays of them, so that every bit pattern is a value; padding is
//! spelt out. `tests/trackers_layout.rs` compares each offset with what a C compiler says.

#![allow(
    missing_docs,
    reason = "bpf/trackers/record.h documents every field once"
)]

use event::evidence::tracked::{Tracked, TrackedHit};
use event::evidence::{Stack, TaskRef, unnamed};
use event::{Cpu, Error, ErrorKind, Instant, Prio, Result, Tid};

use crate::{raw, text};

pub const SERIES_MAX: usize = 5;
pub const ONLY_MAX: usize = 32;
pub const KEYS_MAX: usize = 2048;
pub const ROWS_BITS: usize = 8;
pub const WIDE_KEYS_MAX: usize = 256;
pub const OPEN_MAX: usize = 16384;
pub const SMALL_FIRST: i64 = -16;
pub const SMALL_KEYS: usize = 512;
pub const SMALL_SERIES: usize = 2;
pub const CALL_OF_32_BITS: usize = 1 << 32;
pub const TRACKED_OPEN: u8 = 1;
pub const PAIR_NUMBERS: usize = 2;
pub const PAIR_ARGUMENTS: usize = 8;
pub const PAIR_SLOTS: usize = 6;
pub const PAIR_TEXT: usize = 48;
pub const PAIR_SITES: usize = 512;
pub const MARK_NOTHING: u8 = 0;
pub const MARK_CONSTANT: u8 = 1;
pub const MARK_REGISTER: u8 = 2;
pub const MARK_MEMORY: u8 = 3;
pub const MARK_NO_REGISTER: u16 = 0xffff;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawTracked {
    pub begin_ns: u64,
    pub end_ns: u64,
    pub key: u64,
    pub detail: u64,
    pub group: u32,
    pub cpu: u32,
    pub series: u8,
    pub flags: u8,
    pub more: u16,
    pub padding: [u8; 4],
    pub task: raw::Task,
    pub other: raw::Task,
    pub label: [u8; raw::COMM_LENGTH],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawHit {
    pub number: u64,
    pub tracked: RawTracked,
    pub stack: raw::Stack,
    pub other_stack: raw::Stack,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawSeries {
    pub count: u64,
    pub sum_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub hits: u64,
    pub suppressed: u64,
    pub worst: RawTracked,
    pub buckets: [u64; raw::BUCKETS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawLosses {
    pub lost: u64,
    pub full: u64,
    pub unpaired: u64,
    pub keys_full: u64,
    pub storage_failures: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawKey {
    pub key: u64,
    pub group: u32,
    pub series: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawSum {
    pub count: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
    pub detail: u64,
    pub label: [u8; raw::COMM_LENGTH],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawRow {
    pub key: RawKey,
    pub sum: RawSum,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawWideSum {
    pub sum: RawSum,
    pub buckets: [u64; raw::BUCKETS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawOpen {
    pub tracked: RawTracked,
    pub issued_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawMarkArgument {
    pub offset: i64,
    pub base: u16,
    pub index: u16,
    pub kind: u8,
    pub shift: u8,
    pub size_bytes: u8,
    pub is_signed: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawMark {
    pub arguments: [RawMarkArgument; PAIR_ARGUMENTS],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawPairKey {
    pub numbers: [u64; PAIR_NUMBERS],
    pub text: [u8; raw::COMM_LENGTH],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawPairOpen {
    pub begin_ns: u64,
    pub task: raw::Task,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawPairFrame {
    pub now_ns: u64,
    pub prio: i64,
    pub key: RawPairKey,
    pub arguments: [u64; PAIR_ARGUMENTS],
    pub slots: [u64; PAIR_SLOTS],
    pub looked_at: [u8; PAIR_TEXT],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawPairCounts {
    pub seen: [u64; 2],
    pub matched: [u64; 2],
    pub alone: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawPairSeen {
    pub key: RawPairKey,
    pub time_ns: u64,
    pub side: u32,
    pub tid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawConfig {
    pub threshold_ns: u64,
    pub waiting_ns: u64,
    pub preempt_count_offset: i64,
    pub prio_max: i32,
    pub only_length: u32,
    pub target_kind: u8,
    pub cpus_filtered: u8,
    pub turns: u8,
    pub stacks: u8,
    pub oracle: u8,
    pub padding: [u8; 3],
    pub name: [u8; raw::COMM_LENGTH],
    pub only: [u64; ONLY_MAX],
}

macro_rules! plain {
    ($($name:ident),*) => { $(
        // SAFETY: repr(C), integers only, padding is named (the layout test checks the size).
        unsafe impl raw::Plain for $name {}
    )* };
}
plain!(
    RawTracked,
    RawHit,
    RawSeries,
    RawLosses,
    RawKey,
    RawSum,
    RawRow,
    RawWideSum,
    RawOpen,
    RawConfig,
    RawMarkArgument,
    RawMark,
    RawPairKey,
    RawPairOpen,
    RawPairFrame,
    RawPairCounts,
    RawPairSeen
);

/// The text of a pair's key.
pub fn key_text(key: &RawPairKey) -> String {
    text(&key.text)
}

/// The name that came with a sum.
pub fn label(sum: &RawSum) -> String {
    text(&sum.label)
}

/// Reads an interval.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when its series cannot be.
pub fn decode_tracked(tracked: &RawTracked) -> Result<Tracked> {
    let series = usize::from(tracked.series);
    if series >= SERIES_MAX {
        return Err(corrupt(format!("series {series}")));
    }
    Ok(Tracked {
        begin: Instant::from_ns(tracked.begin_ns as i64),
        end: Instant::from_ns(tracked.end_ns as i64),
        key: tracked.key,
        group: tracked.group,
        detail: tracked.detail,
        more: tracked.more,
        cpu: Cpu(tracked.cpu),
        series,
        is_open: tracked.flags & TRACKED_OPEN != 0,
        task: task(&tracked.task),
        other: task(&tracked.other),
        label: text(&tracked.label),
    })
}

/// Reads a hit that came through the ring.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when the bytes are too few or make no sense.
pub fn decode_tracked_hit(bytes: &[u8]) -> Result<TrackedHit> {
    let hit: RawHit = raw::read(bytes).ok_or_else(|| {
        let (found, expected) = (bytes.len(), size_of::<RawHit>());
        corrupt(format!("{found} bytes instead of {expected}"))
    })?;
    Ok(TrackedHit {
        tracked: decode_tracked(&hit.tracked)?,
        stack: frames(&hit.stack),
        other_stack: frames(&hit.other_stack),
    })
}

/// What is open for a pair, as an interval that has no end yet.
pub fn open_of_pair(key: &RawPairKey, open: &RawPairOpen) -> RawTracked {
    let mut tracked: RawTracked = raw::zeroed();
    tracked.begin_ns = open.begin_ns;
    [tracked.key, tracked.detail] = key.numbers;
    tracked.label = key.text;
    tracked.task = open.task;
    tracked.other.tid = -1;
    tracked
}

fn task(task: &raw::Task) -> Option<TaskRef> {
    (task.tid >= 0).then(|| TaskRef {
        tid: Tid(task.tid),
        comm: text(&task.comm),
        prio: Prio::from_lttng(task.prio),
    })
}

fn frames(stack: &raw::Stack) -> Stack {
    let length = (stack.length as usize).min(raw::STACK_MAX);
    unnamed(&stack.frames[..length])
}

fn corrupt(found: String) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "a record of a tracker in the kernel makes no sense",
    )
    .found(found)
    .fix("report it: the program and its BPF part were not built together")
}

#[cfg(test)]
mod tests {
    use event::Duration;

    use super::*;

    fn sample() -> RawHit {
        let mut hit: RawHit = raw::zeroed();
        hit.tracked.begin_ns = 1_000;
        hit.tracked.end_ns = 26_000;
        hit.tracked.task.tid = 7;
        hit.tracked.task.comm[..6].copy_from_slice(b"victim");
        hit.tracked.other.tid = -1;
        hit.tracked.label[..3].copy_from_slice(b"vda");
        hit
    }

    #[test]
    fn an_interval_is_read_with_its_length_and_names() {
        let hit = decode_tracked_hit(raw::bytes(&sample())).expect("a hit");
        assert_eq!(hit.tracked.duration(), Duration::from_us(25));
        assert_eq!(hit.tracked.task.expect("a task").comm, "victim");
        assert_eq!((hit.tracked.other, hit.tracked.label), (None, "vda".into()));
        assert!(!hit.tracked.is_open);
    }

    #[test]
    fn lengths_that_lie_are_cut_and_series_that_lie_are_refused() {
        let check = |change: fn(&mut RawHit), expect: bool| {
            let mut hit = sample();
            change(&mut hit);
            assert_eq!(decode_tracked_hit(raw::bytes(&hit)).is_ok(), expect);
        };
        check(|hit| hit.stack.length = u32::MAX, true);
        check(|hit| hit.tracked.series = SERIES_MAX as u8 - 1, true);
        check(|hit| hit.tracked.series = SERIES_MAX as u8, false);
        check(|hit| hit.tracked.label = [0xff; 16], true);
        assert!(decode_tracked_hit(&raw::bytes(&sample())[1..]).is_err());
    }
}
