//! Records of a ring as bytes of a trace's events.

use std::collections::HashMap;
use std::time::Instant as StdInstant;

use ctf::writer::{PayloadWriter, Run, StreamWriter, WINDOW_BYTES};
use event::{Cpu, Instant, Result};
use ring::{ClockKind, Record, Records, RingFile};

use super::classes;
use super::clock::Converter;
use super::contexts::{Context, Contexts, Origin};
use super::filter::ByRecorder;
use super::lane::time_ns;

/// Clocks of two CPUs differ by less; a time that is further ahead was never read from one.
const IMPOSSIBLE_NS: i64 = 1_000_000;
/// Places for what is known of the records of an event. Those of two events, as the begin and the
/// end of a piece of work, come in turn.
const KNOWN: usize = 16;

/// The memory in which records are laid out; used again and again.
#[derive(Default)]
pub(super) struct Desk {
    /// For each event of the table: how many bytes the fields of each record take, where all take
    /// as many. Such fields are copied as they are.
    sizes: Vec<Option<usize>>,
    known: [Known; KNOWN],
    fields: PayloadWriter,
}

impl Desk {
    /// Takes note of the events that the table has gained.
    pub fn learn(&mut self, file: &RingFile) {
        let new = file.table().events.iter().skip(self.sizes.len());
        self.sizes
            .extend(new.map(ring::EventDescription::fields_bytes));
    }

    /// Writes the next of `records` for as long as all is known of them that a copy takes; gives
    /// how many. Where a recorder is fast: all that changes is in registers, nothing is called.
    #[inline(never)]
    fn copy_known(
        &self,
        records: &mut Records<'_>,
        run: &mut Run<'_>,
        times: &mut Times<'_>,
    ) -> u64 {
        let mut copied = 0;
        while let Some(record) = records.peek() {
            let known = &self.known[slot(&record)];
            let (true, Some(fields_bytes)) = (known.is_quick(&record), known.fields_bytes) else {
                break;
            };
            let Some(mut alike) = records.alike() else {
                break;
            };
            let windows_bytes = fields_bytes.next_multiple_of(WINDOW_BYTES);
            let mut last_ns = times.last_ns;
            let next = || {
                let (time, windows) = alike.next_window(windows_bytes)?;
                let ns = times.near_ns(time)?.max(last_ns);
                last_ns = ns;
                Some((Instant::from_ns(ns), windows))
            };
            let count = run.alike(known.class, known.contexts.bytes(), fields_bytes, next);
            times.last_ns = last_ns;
            if count == 0 {
                break;
            }
            records.skip(&alike, count);
            copied += count as u64;
        }
        copied
    }

    /// Forgets what becomes old.
    fn forget(&mut self) {
        for known in &mut self.known {
            known.alike = 0;
        }
    }
}

/// What the records of one event and thread have in common.
#[derive(Default)]
struct Known {
    /// What they have of [`Record::alike`]; 0 is that of no record.
    alike: u64,
    /// Which bits of it are meant: with the size, where all records have the same.
    mask: u64,
    class: u32,
    contexts: PayloadWriter,
    /// Whether somebody knows them all.
    is_whole: bool,
    /// How many bytes of the payload are fields, where they are copied.
    fields_bytes: Option<usize>,
}

/// Without the size of a record.
const SIZE_LEFT_OUT: u64 = !0xffff;

impl Known {
    #[inline(always)]
    fn is_of(&self, record: &Record<'_>) -> bool {
        record.alike & self.mask == self.alike && self.alike != 0
    }

    /// Whether it is one of these, and all is known that they have in common.
    #[inline(always)]
    fn is_quick(&self, record: &Record<'_>) -> bool {
        record.alike == self.alike && self.is_whole
    }

    /// The fields of a record of these, where they are copied.
    #[inline(always)]
    fn fields<'b>(&self, record: &Record<'b>) -> Option<&'b [u8]> {
        record.payload.get(..self.fields_bytes?)
    }
}

/// Where what is known of records like this is.
#[inline(always)]
fn slot(record: &Record<'_>) -> usize {
    usize::from(record.id) % KNOWN
}

/// What becomes of the records of one ring on their way into the trace, in one pass.
pub(super) struct Scribe<'p> {
    file: &'p RingFile,
    ring: u32,
    wanted: &'p [Context],
    now: StdInstant,
    contexts: &'p mut Contexts,
    filters: &'p mut HashMap<usize, ByRecorder>,
    desk: &'p mut Desk,
}

/// The times of records, on their way from the file's clock to the trace's.
pub(super) struct Times<'c> {
    pub clock: ClockKind,
    pub converter: Converter<'c>,
    /// The first of them, and the last, in nanoseconds of CLOCK_MONOTONIC.
    pub first_ns: Option<i64>,
    pub last_ns: i64,
    /// None was written later: one that says so gets this time, and is counted.
    pub latest_ns: i64,
    pub impossible: u64,
}

impl Times<'_> {
    /// When a record of this time was written, where that takes no search: between the two pairs of
    /// the last search.
    #[inline(always)]
    fn near_ns(&self, time: u64) -> Option<i64> {
        let ns = match self.clock {
            ClockKind::Counter => self.converter.near_ns(time),
            ClockKind::Monotonic => i64::try_from(time).ok(),
        };
        ns.filter(|ns| *ns <= self.latest_ns)
    }

    /// When a record was written; never before the last.
    #[inline(always)]
    fn of(&mut self, record: &Record<'_>) -> Instant {
        let said_ns = time_ns(self.clock, &mut self.converter, record);
        let ns = said_ns.min(self.latest_ns);
        self.impossible += u64::from(said_ns - ns > IMPOSSIBLE_NS);
        self.last_ns = self.last_ns.max(ns);
        self.first_ns.get_or_insert(self.last_ns);
        Instant::from_ns(self.last_ns)
    }
}

/// What became of some records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transcribed {
    pub events: u64,
    /// Those that are not what their descriptions say.
    pub malformed: u64,
    /// Events with contexts that nobody knows.
    pub unknown: u64,
}

/// What one record became.
enum LaidOut<'b> {
    /// An event of this class: its contexts, its fields.
    As(u32, &'b [u8], &'b [u8]),
    /// None: a filter of the recorder dropped it.
    Filtered,
    /// It is not what its description says.
    Malformed,
}

impl<'p> Scribe<'p> {
    /// For records that were read now; each event gets the contexts `wanted`.
    pub fn new(
        (file, ring): (&'p RingFile, u32),
        (contexts, wanted): (&'p mut Contexts, &'p [Context]),
        filters: &'p mut HashMap<usize, ByRecorder>,
        desk: &'p mut Desk,
    ) -> Scribe<'p> {
        desk.forget();
        Scribe {
            file,
            ring,
            wanted,
            now: StdInstant::now(),
            contexts,
            filters,
            desk,
        }
    }

    /// Writes all `records` as events of `stream`, at their `times`; adds to `total` what became of
    /// them, also of those before an error. A recorder spends most of its time here.
    ///
    /// # Errors
    /// What the disk says.
    pub fn transcribe<'c>(
        &mut self,
        records: &mut Records<'_>,
        stream: &mut StreamWriter,
        mut times: Times<'c>,
        total: &mut Transcribed,
    ) -> Result<Times<'c>> {
        let mut done = Transcribed::default();
        let mut failed = Ok(());
        let mut run = stream.run();
        loop {
            if self.filters.is_empty() {
                done.events += self.desk.copy_known(records, &mut run, &mut times);
            }
            let Some(record) = records.next() else {
                break;
            };
            let time = times.of(&record);
            match self.lay_out(&record, &mut done.unknown) {
                LaidOut::As(class, contexts, fields) => {
                    if !run.event(class, time, contexts, fields) {
                        run = match run.any_event(class, time, contexts, fields) {
                            Ok(run) => run,
                            Err(error) => {
                                failed = Err(error);
                                break;
                            }
                        };
                    }
                    done.events += 1;
                }
                LaidOut::Filtered => (),
                LaidOut::Malformed => done.malformed += 1,
            }
        }
        total.events += done.events;
        total.malformed += done.malformed;
        total.unknown += done.unknown;
        failed.map(|()| times)
    }

    /// Lays out a record; counts it as `unknown` when nobody knows its contexts.
    #[inline(never)]
    fn lay_out<'b>(&'b mut self, record: &Record<'b>, unknown: &mut u64) -> LaidOut<'b> {
        let slot = slot(record);
        if !self.desk.known[slot].is_of(record) && !self.learn(slot, record) {
            return LaidOut::Malformed;
        }
        if !self.filters.is_empty()
            && let Some(dropped) = self.drop_by_filter(record, self.desk.known[slot].class as usize)
        {
            return dropped;
        }
        let known = &self.desk.known[slot];
        *unknown += u64::from(!known.is_whole);
        let fields = match known.fields(record) {
            Some(fields) => fields,
            None => {
                let event = &self.file.table().events[known.class as usize];
                self.desk.fields.clear();
                if !classes::encode(event, record.payload, &mut self.desk.fields) {
                    return LaidOut::Malformed;
                }
                self.desk.fields.bytes()
            }
        };
        LaidOut::As(known.class, known.contexts.bytes(), fields)
    }

    /// Finds out what records like this one have in common. False when it is not what its
    /// description says.
    #[cold]
    fn learn(&mut self, slot: usize, record: &Record<'_>) -> bool {
        let Some(place) = self.file.table().place_of(record.id) else {
            return false;
        };
        let fields_bytes = self.desk.sizes.get(place).copied().flatten();
        let payload_bytes = record.payload.len();
        if fields_bytes.is_some_and(|size| payload_bytes.wrapping_sub(size) >= 8) {
            return false;
        }
        let origin = self.origin(record, place);
        let known = &mut self.desk.known[slot];
        let contexts = known.contexts.clear();
        contexts.i32(origin.pid).i32(origin.tid);
        known.is_whole = self
            .contexts
            .encode(self.wanted, origin, self.now, contexts);
        known.mask = match fields_bytes {
            Some(_) => !0,
            None => SIZE_LEFT_OUT,
        };
        known.alike = record.alike & known.mask;
        known.class = place as u32;
        known.fields_bytes = fields_bytes;
        true
    }

    /// What a filter of the recorder's makes of a record that it does not let pass.
    fn drop_by_filter(&mut self, record: &Record<'_>, place: usize) -> Option<LaidOut<'static>> {
        let origin = self.origin(record, place);
        let filter = self.filters.get_mut(&place)?;
        let event = &self.file.table().events[place];
        let fields = self.desk.fields.clear();
        if !classes::encode(event, record.payload, fields) {
            return Some(LaidOut::Malformed);
        }
        self.contexts
            .encode(filter.contexts(), origin, self.now, fields);
        (!filter.passes(fields, Cpu(self.ring))).then_some(LaidOut::Filtered)
    }

    fn origin(&self, record: &Record<'_>, place: usize) -> Origin {
        Origin {
            pid: self.file.layout().pid,
            tid: record.tid,
            ring: self.ring,
            code_address: self.file.table().events[place].code_address,
        }
    }
}
