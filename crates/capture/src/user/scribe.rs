//! Records of a ring as bytes of a trace's events.

use std::collections::HashMap;
use std::time::Instant as StdInstant;

use ctf::writer::PayloadWriter;
use event::Cpu;
use ring::{Record, RingFile};

use super::classes;
use super::contexts::{Context, Contexts, Origin};
use super::filter::ByRecorder;

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

    /// Forgets what becomes old.
    fn forget(&mut self) {
        for known in &mut self.known {
            known.payload_bytes = NOTHING;
        }
    }
}

/// No record's payload has so many bytes.
const NOTHING: usize = usize::MAX;

/// What the records of one event, thread and length have in common.
struct Known {
    id: u16,
    tid: i32,
    payload_bytes: usize,
    class: u32,
    contexts: PayloadWriter,
    /// Whether somebody knows them all.
    is_whole: bool,
    /// How many bytes of the payload are fields, where they are copied.
    fields_bytes: Option<usize>,
}

impl Default for Known {
    fn default() -> Self {
        Known {
            id: 0,
            tid: 0,
            payload_bytes: NOTHING,
            class: 0,
            contexts: PayloadWriter::new(),
            is_whole: true,
            fields_bytes: None,
        }
    }
}

impl Known {
    #[inline]
    fn is_of(&self, record: &Record<'_>) -> bool {
        (self.id, self.tid) == (record.id, record.tid) && self.payload_bytes == record.payload.len()
    }
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
    /// Events with contexts that nobody knows.
    pub unknown: u64,
}

/// What one record became.
pub(super) enum LaidOut<'b> {
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
            unknown: 0,
        }
    }

    /// Lays out a record.
    #[inline]
    pub fn lay_out<'b>(&'b mut self, record: &Record<'b>) -> LaidOut<'b> {
        let slot = usize::from(record.id) % KNOWN;
        if !self.desk.known[slot].is_of(record) && !self.learn(slot, record) {
            return LaidOut::Malformed;
        }
        if !self.filters.is_empty()
            && let Some(dropped) = self.drop_by_filter(record, self.desk.known[slot].class as usize)
        {
            return dropped;
        }
        let known = &self.desk.known[slot];
        self.unknown += u64::from(!known.is_whole);
        let fields = match known
            .fields_bytes
            .and_then(|size| record.payload.get(..size))
        {
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
        known.id = record.id;
        known.tid = record.tid;
        known.payload_bytes = payload_bytes;
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
