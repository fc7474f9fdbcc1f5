//! One ring of a process on its way to its stream: what is new is copied, what is in the file is
//! given back to the process.

use std::collections::VecDeque;

use ctf::writer::StreamWriter;
use event::{Instant, Result};
use ring::{ClockKind, Layout, Losses, Mode, Record, Records, RingFile};

use super::clock::{Converter, CounterClock};
use super::process::total;
use super::scribe::{Scribe, Times, Transcribed};

/// A ring is copied in pieces of this size: each is still in the CPU's nearest cache when its
/// records are laid out.
const PIECE_BYTES: u64 = 32 << 10;
/// Where that much holds no whole record. More than the largest record.
const PIECE_BYTES_MAX: u64 = 1 << 20;
/// A ring that is fuller than one part in this many is not to wait for the disk.
const FULL_PARTS: u64 = 4;
/// Nor one that would be full within so long at its pace: disks stand still now and then.
const STANDSTILL_NS: i64 = 500_000_000;
/// A pace is taken over at least so long: bursts that a ring holds are none.
const PACE_NS: i64 = 100_000_000;
/// A pass reads at most so much of each ring, then others have their turn.
const PASS_BYTES: u64 = 2 << 20;
/// A process can write what it likes into its counters. What it cannot have lost in years is none
/// of its losses, and sums of the others fit into their words.
const LOST_MAX: u64 = 1 << 48;
/// The latest time in a trace: beyond it, readers cannot add the distance to the wall clock.
const LATEST_NS: i64 = i64::MAX / 2;

/// What the counters of a ring said at one moment.
struct Counted {
    /// Up to where the ring was written then.
    head: u64,
    losses: Losses,
    ns: i64,
}

/// How fast a ring is written to.
#[derive(Clone, Copy, Default)]
struct Pace {
    /// Where the ring's head was, and when: the begin of the stretch that is being measured.
    begin: Option<(u64, i64)>,
    /// What was written in the last whole stretch, and how long that was.
    bytes: u64,
    ns: i64,
}

impl Pace {
    /// Takes note of the ring's head.
    fn note(&mut self, head: u64, now_ns: i64) {
        let (begin, begin_ns) = *self.begin.get_or_insert((head, now_ns));
        if now_ns - begin_ns >= PACE_NS {
            *self = Pace {
                begin: Some((head, now_ns)),
                bytes: head.saturating_sub(begin),
                ns: now_ns - begin_ns,
            };
        }
    }

    /// Whether a ring that holds so much may wait for the disk; not before its pace is known.
    fn may_wait(&self, held: u64, ring_bytes: u64) -> bool {
        let until_full = i128::from(ring_bytes.saturating_sub(held)) * i128::from(self.ns);
        self.ns > 0
            && held <= ring_bytes / FULL_PARTS
            && until_full >= i128::from(self.bytes) * i128::from(STANDSTILL_NS)
    }
}

/// One ring on its way to its stream.
pub(super) struct Lane {
    pub ring: u32,
    /// The first offset that was not read.
    pub next: u64,
    /// The first that is not in the file; what lies behind stays in the ring for a recorder that
    /// comes when this one is killed.
    pub kept: u64,
    /// The last time, on the file's clock and on the trace's.
    pub counter: u64,
    pub ns: i64,
    /// The time of the first record that was written.
    pub first_ns: Option<i64>,
    /// Those that lie before what is read next, and when they were counted.
    pub losses: Losses,
    pub losses_ns: i64,
    pub lost_written: u64,
    /// Those that lie further on.
    counted: VecDeque<Counted>,
    /// Losses that others stated, or of before we came.
    pub losses_before: Losses,
    /// Ours that are in the file.
    pub losses_kept: Losses,
    /// The piece that was copied and not laid out yet; it begins at `next`.
    bytes: Vec<u8>,
    pace: Pace,
    /// Up to where this pass reads.
    until: u64,
    /// Whether this pass takes all that was there when it began, and when that was.
    is_drained: bool,
    copied_ns: i64,
    /// No record of this pass was written later.
    pub latest_ns: i64,
    /// Where the recording ends: what lies behind is not read.
    ends_at: Option<u64>,
    /// Up to when its stream was given all that happened.
    pub whole_until: Instant,
    pub stream: Option<StreamWriter>,
}

impl Lane {
    pub fn new(ring: u32, next: u64) -> Lane {
        Lane {
            ring,
            next,
            kept: next,
            counter: 0,
            ns: 0,
            first_ns: None,
            losses: Losses::default(),
            losses_ns: 0,
            lost_written: 0,
            counted: VecDeque::new(),
            losses_before: Losses::default(),
            losses_kept: Losses::default(),
            bytes: Vec::new(),
            pace: Pace::default(),
            until: next,
            is_drained: false,
            copied_ns: 0,
            latest_ns: LATEST_NS,
            ends_at: None,
            whole_until: Instant::MIN,
            stream: None,
        }
    }

    /// With all that a ring holds; none when there is no ring.
    pub fn look(file: &RingFile, ring: u32, malformed: &mut u64) -> Result<Option<Lane>> {
        let Some((window, losses)) = file.control(ring)? else {
            return Ok(None);
        };
        let mode = file.mode()?;
        let Some(range) = ring::readable(file.layout(), mode, window) else {
            *malformed += 1;
            return Ok(None);
        };
        // All of it is in our memory at once: holes, which are in nobody's, are not.
        if range.end - range.start > file.memory_bytes()? {
            *malformed += 1;
            return Ok(None);
        }
        let mut lane = Lane::new(ring, range.start);
        lane.losses = losses.map(|lost| if lost > LOST_MAX { 0 } else { lost });
        *malformed += u64::from(lane.losses != losses);
        lane.losses_ns = file.layout().begin_ns.min(LATEST_NS as u64) as i64;
        file.copy(ring, range.clone(), &mut lane.bytes)?;
        if mode == Mode::Overwrite
            && let Some((window, _)) = file.control(ring)?
        {
            // What the writer reached meanwhile is no more what was copied.
            let kept = ring::overwritten_before(file.layout(), window.head);
            lane.next = kept.clamp(range.start, range.end);
            lane.bytes.drain(..(lane.next - range.start) as usize);
        }
        lane.until = range.end;
        Ok(Some(lane))
    }

    /// Notes how far the stream got with what was copied: all of it was written, or not.
    pub fn note_whole(&mut self, all: bool) {
        let end = self.stream.as_ref().map_or(Instant::MIN, StreamWriter::end);
        let reached = match all && self.is_drained {
            true => end.max(Instant::from_ns(self.copied_ns)),
            false => end,
        };
        self.whole_until = self.whole_until.max(reached);
    }

    /// Takes note that the stream was ended at `until`, with all behind it.
    pub fn ended_at(&mut self, until: Instant) {
        self.ns = self.ns.min(until.as_ns());
        // Not even a packet without events is left of it: the file says nothing.
        self.stream.take_if(|stream| stream.is_new());
    }

    /// Brings what was read to the file, and says so in the ring.
    pub fn keep(&mut self, file: &RingFile) -> Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        stream.gap()?;
        if self.next > self.kept {
            self.kept = self.next;
            file.consumed(self.ring, self.kept)?;
        }
        // What was read of the counters and is in no packet yet comes with the next.
        let lost = total(&self.losses);
        if lost == self.lost_written && self.losses != self.losses_kept {
            self.losses_kept = self.losses;
            let mut all = self.losses_before;
            for (all, ours) in all.iter_mut().zip(self.losses) {
                *all = all.saturating_add(ours);
            }
            file.stated(self.ring, &all)?;
        }
        Ok(())
    }

    /// Ends its stream; gives its size in bytes, and the events that found no room.
    pub fn finish(&mut self, end: Instant) -> Result<(u64, u64)> {
        let Some(mut stream) = self.stream.take() else {
            return Ok((0, 0));
        };
        stream.covers(end.max(Instant::from_ns(self.ns)))?;
        let totals = stream.finish()?;
        Ok((totals.size_bytes, totals.refused))
    }

    /// Takes what it counted for what others have: its next stream begins with none.
    pub fn begin_anew(&mut self) {
        let ours = std::mem::take(&mut self.losses);
        for (before, ours) in self.losses_before.iter_mut().zip(ours) {
            *before = before.saturating_add(ours);
        }
        for counted in &mut self.counted {
            for (lost, ours) in counted.losses.iter_mut().zip(ours) {
                *lost = lost.saturating_sub(ours);
            }
        }
        (self.losses_kept, self.lost_written) = (Losses::default(), 0);
        self.first_ns = None;
    }

    /// Leaves out what was written before `since`: of what was copied for a look.
    pub fn leave_out_before(&mut self, since: Instant, layout: &Layout, clock: &CounterClock) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut records = Records::new(&bytes, self.next, layout.subbuffer_bytes, self.counter);
        let mut converter = clock.converter();
        let mut begin = self.next;
        while let Some(record) = records.next() {
            if time_ns(layout.clock, &mut converter, &record) >= since.as_ns() {
                break;
            }
            begin = records.position();
        }
        let skipped = begin.saturating_sub(self.next).min(bytes.len() as u64);
        self.bytes = bytes[skipped as usize..].to_vec();
        self.next += skipped;
    }

    /// The time of its first event; the end of time without one.
    pub fn begin(&self) -> Instant {
        let first = self.first_ns.map(Instant::from_ns);
        first.unwrap_or(Instant::MAX)
    }

    /// The time of the first record that was copied.
    pub fn first_held(&self, layout: &Layout, clock: &CounterClock) -> Option<Instant> {
        let size = layout.subbuffer_bytes;
        let first = Records::new(&self.bytes, self.next, size, self.counter).next()?;
        let ns = time_ns(layout.clock, &mut clock.converter(), &first);
        Some(Instant::from_ns(ns.min(self.latest_ns)))
    }

    /// Whether there is something to lay out.
    pub fn holds(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Says in the stream what was lost before this pass; whether that is news.
    pub fn say_losses(&mut self) -> Result<bool> {
        // A loss lies before the end of the packet that counts it.
        let lost = total(&self.losses);
        let is_news = lost > self.lost_written;
        self.lost_written = lost;
        if let Some(stream) = &mut self.stream {
            stream.discarded(lost)?;
        }
        Ok(is_news)
    }

    /// Lets the packet that counts a loss reach up to where it was counted.
    pub fn end_loss(&mut self) -> Result<()> {
        self.ns = self.ns.max(self.losses_ns);
        match &mut self.stream {
            Some(stream) => stream.covers(Instant::from_ns(self.ns)),
            None => Ok(()),
        }
    }

    /// Writes what this pass reads to the stream, piece by piece.
    pub fn transcribe(
        &mut self,
        file: &RingFile,
        scribe: &mut Scribe<'_>,
        mut converter: Converter<'_>,
        total: &mut Transcribed,
    ) -> Result<()> {
        let layout = file.layout();
        while let (true, Some(stream)) = (self.holds(), &mut self.stream) {
            let bytes = std::mem::take(&mut self.bytes);
            let mut records = Records::new(&bytes, self.next, layout.subbuffer_bytes, self.counter);
            let times = Times {
                clock: layout.clock,
                converter,
                first_ns: self.first_ns,
                last_ns: self.ns,
                latest_ns: self.latest_ns,
                impossible: 0,
            };
            let times = scribe.transcribe(&mut records, stream, times, total)?;
            (self.first_ns, self.ns) = (times.first_ns, times.last_ns);
            converter = times.converter;
            total.malformed += records.malformed() + times.impossible;
            self.counter = records.time_max();
            let position = records.position();
            total.malformed += self.go_on(bytes, position, file)?;
        }
        Ok(())
    }

    /// Copies the next piece of this pass into the memory of the last, `bytes`, of which all before
    /// `position` was laid out. Gives how many stretches were passed by.
    fn go_on(&mut self, mut bytes: Vec<u8>, position: u64, file: &RingFile) -> Result<u64> {
        let is_stuck = position <= self.next;
        let piece_bytes = bytes.len() as u64;
        bytes.clear();
        self.bytes = bytes;
        self.next = self.next.max(position);
        let left = self.until.saturating_sub(self.next);
        match is_stuck {
            // No record is so large, and none fills up so much: on behind its sub-buffer.
            true if piece_bytes >= PIECE_BYTES_MAX => {
                let size = file.layout().subbuffer_bytes;
                let end = (self.next / size).saturating_add(1).saturating_mul(size);
                self.next = end.min(self.until);
                self.copy_piece(file, PIECE_BYTES).map(|()| 1)
            }
            // What is left there is no whole record.
            true if piece_bytes >= left => Ok(0),
            true => self.copy_piece(file, PIECE_BYTES_MAX).map(|()| 0),
            false => self.copy_piece(file, PIECE_BYTES).map(|()| 0),
        }
    }

    fn copy_piece(&mut self, file: &RingFile, most: u64) -> Result<()> {
        let end = self.until.min(self.next.saturating_add(most));
        file.copy(self.ring, self.next..end.max(self.next), &mut self.bytes)
    }

    /// Takes note of where the ring is written to: what comes later is not read.
    pub fn end_at_head(&mut self, file: &RingFile) {
        // A ring that cannot be read any more ends where it is.
        let head = file.control(self.ring).ok().flatten();
        let head = head.map_or(self.next, |(window, _)| window.head);
        self.ends_at.get_or_insert(head);
    }

    /// How much this pass reads.
    pub fn of_this_pass(&self) -> u64 {
        self.until.saturating_sub(self.next)
    }

    /// Begins a pass over what is new, over `most` bytes of it at most; returns how much the ring
    /// held.
    pub fn copy(&mut self, file: &RingFile, most: u64, malformed: &mut u64) -> Result<u64> {
        self.copied_ns = crate::clock::monotonic().as_ns();
        self.is_drained = true;
        let Some((window, losses)) = file.control(self.ring)? else {
            return Ok(0);
        };
        if losses.iter().any(|lost| *lost > LOST_MAX) {
            *malformed += 1;
        }
        self.count(window.head, &losses);
        self.pace.note(window.head, self.copied_ns);
        let window = ring::Window {
            tail: self.next,
            ..window
        };
        let Some(range) = ring::readable(file.layout(), Mode::Discard, window) else {
            // The process broke its own ring: on from where it says that it is.
            *malformed += 1;
            self.next = window.head & !7;
            self.kept = self.next;
            return file.consumed(self.ring, self.next).map(|()| 0);
        };
        // What was lost until the counters were read lies before what came later.
        let counted = self.counted.front();
        let end = self
            .ends_at
            .unwrap_or(range.end)
            .clamp(range.start, range.end);
        let range = range.start..end;
        let before = counted.map_or(range.end, |counted| {
            counted.head.clamp(range.start, range.end)
        });
        let most = PASS_BYTES.min(most);
        self.until = before.min(range.start.saturating_add(most));
        self.is_drained = self.until == range.end;
        self.copy_piece(file, PIECE_BYTES)?;
        let held = range.end - range.start;
        if let Some(stream) = &mut self.stream {
            stream.may_wait(self.pace.may_wait(held, file.layout().ring_bytes));
        }
        if self.until == before
            && let Some(counted) = self.counted.pop_front()
        {
            (self.losses, self.losses_ns) = (counted.losses, counted.ns);
        }
        Ok(held)
    }

    /// Whether there is more to read behind this pass.
    pub fn is_behind(&self) -> bool {
        !self.is_drained
    }

    /// Takes note of what the counters say beside this head of the ring.
    fn count(&mut self, head: u64, now: &Losses) {
        let before = self.counted.back().map_or(self.losses, |last| last.losses);
        let mut losses = before;
        for (lost, (now, others)) in losses.iter_mut().zip(now.iter().zip(self.losses_before)) {
            let of_ours = now.saturating_sub(others);
            if *now <= LOST_MAX {
                *lost = (*lost).max(of_ours);
            }
        }
        if losses != before {
            self.counted.push_back(Counted {
                head,
                losses,
                ns: self.copied_ns,
            });
        }
    }
}

/// The time of a record, in nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub(super) fn time_ns(clock: ClockKind, converter: &mut Converter<'_>, record: &Record<'_>) -> i64 {
    match clock {
        ClockKind::Counter => converter.ns(record.time),
        ClockKind::Monotonic => record.time.min(i64::MAX as u64) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_waits_for_the_disk_where_it_has_room_for_what_comes_meanwhile() {
        const MS: i64 = 1_000_000;
        let check = |heads: &[(u64, i64)], held: u64, expect: bool| {
            let mut pace = Pace::default();
            for (head, ms) in heads {
                pace.note(*head, ms * MS);
            }
            let found = pace.may_wait(held, 8 << 20);
            assert_eq!(found, expect, "{heads:?}, {held} held");
        };
        // 8 MiB at 10 and at 100 MB a second.
        check(&[(0, 7), (1_000_000, 107)], 200_000, true);
        check(&[(0, 7), (10_000_000, 107)], 2_000_000, false);
        // A burst within a stretch, and one that makes all of it fast.
        check(&[(0, 0), (1_000, 100), (1_500_000, 120)], 1_500_000, true);
        check(&[(0, 0), (1_000, 100), (2_000_000, 200)], 1_500_000, false);
        // Nothing comes; but what is there is much.
        check(&[(8, 0), (8, 100)], 2 << 20, true);
        check(&[(8, 0), (8, 100)], (2 << 20) + 8, false);
        // Not long enough to know.
        check(&[], 0, false);
        check(&[(0, 5), (8, 104)], 8, false);
        // A process may write what it likes into its head.
        check(&[(u64::MAX, 0), (0, 100)], 0, true);
        check(&[(0, 0), (u64::MAX, 100)], 0, false);
    }
}
