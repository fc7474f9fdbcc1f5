//! Records of a ring as bytes of a trace's events.

use std::collections::HashMap;
use std::time::Instant as StdInstant;

use ctf::writer::PayloadWriter;
use event::Cpu;
use ring::{Record, RingFile};

use super::classes;
use super::contexts::{Context, Contexts, Origin};
use super::filter::ByRecorder;

/// The memory in which records are laid out; used again and again.
#[derive(Default)]
pub(super) struct Desk {
    /// For each event of the table: how many bytes the fields of each record take, where all take
    /// as many. Such fields are copied as they are.
    sizes: Vec<Option<usize>>,
    contexts: PayloadWriter,
    fields: PayloadWriter,
}

impl Desk {
    /// Takes note of the events that the table has gained.
    pub fn learn(&mut self, file: &RingFile) {
        let new = file.table().events.iter().skip(self.sizes.len());
        self.sizes
            .extend(new.map(ring::EventDescription::fields_bytes));
    }
}

/// What becomes of the records of one ring on their way into the trace, in one pass.
pub(super) struct Scribe<'p> {
    pub file: &'p RingFile,
    pub ring: u32,
    /// Contexts that each event gets.
    pub wanted: &'p [Context],
    /// When the records were read.
    pub now: StdInstant,
    pub contexts: &'p mut Contexts,
    pub filters: &'p mut HashMap<usize, ByRecorder>,
    pub desk: &'p mut Desk,
    /// Whose contexts are on the desk: the thread and the event; and whether they are known. Most
    /// records are by the thread and of the event of the one before.
    pub last: Option<(i32, usize, bool)>,
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

impl Scribe<'_> {
    /// Lays out a record.
    #[inline]
    pub fn lay_out<'b>(&'b mut self, record: &Record<'b>) -> LaidOut<'b> {
        let Some(place) = self.file.table().place_of(record.id) else {
            return LaidOut::Malformed;
        };
        if !self.filters.is_empty()
            && let Some(dropped) = self.drop_by_filter(record, place)
        {
            return dropped;
        }
        match self.last {
            Some((tid, last, is_known)) if (tid, last) == (record.tid, place) => {
                self.unknown += u64::from(!is_known);
            }
            _ => self.lay_out_contexts(record, place),
        }
        let fields = match self.desk.sizes.get(place) {
            Some(Some(size)) if record.payload.len().wrapping_sub(*size) < 8 => {
                &record.payload[..*size]
            }
            Some(None) => {
                let event = &self.file.table().events[place];
                self.desk.fields.clear();
                if !classes::encode(event, record.payload, &mut self.desk.fields) {
                    return LaidOut::Malformed;
                }
                self.desk.fields.bytes()
            }
            _ => return LaidOut::Malformed,
        };
        LaidOut::As(place as u32, self.desk.contexts.bytes(), fields)
    }

    fn lay_out_contexts(&mut self, record: &Record<'_>, place: usize) {
        let origin = self.origin(record, place);
        let contexts = self.desk.contexts.clear();
        contexts.i32(origin.pid).i32(origin.tid);
        let is_known = self
            .contexts
            .encode(self.wanted, origin, self.now, contexts);
        self.unknown += u64::from(!is_known);
        self.last = Some((record.tid, place, is_known));
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
