//! Taking events back that were written already.

use event::{Instant, Result};

use super::{StreamWriter, write_error};
use crate::reader::{Schema, cut_at};

impl StreamWriter {
    /// Takes all events behind `until` back, out of the file too; a packet of which some events
    /// stay is open again. `schema` is what the trace's metadata say.
    pub(in crate::writer) fn take_back(&mut self, schema: &Schema, until: Instant) -> Result<()> {
        // What it reserved may be what others have no room for.
        self.take_from_file(self.storage.size_bytes())?;
        while self.reopen(until)? {
            self.seal();
            let until_ticks = until.as_ns().max(0) as u64;
            let cut = cut_at(schema, &self.packet.bytes, until_ticks);
            self.events = self.events.saturating_sub(cut.events);
            if instant(self.begin) <= until {
                if let Some(bits) = cut.at_bits {
                    self.packet.truncate(bits);
                }
                self.end = self.end.min(until_ticks);
                return Ok(());
            }
            self.packet.clear();
            let last = self.written.last();
            let (end, lost) = last.map_or((0, 0), |last| (last.end, last.discarded));
            (self.end, self.discarded) = (end, lost.saturating_sub(self.refused));
        }
        Ok(())
    }

    /// Since when the open packet waits for the file.
    pub(in crate::writer) fn waits_since(&self) -> Option<Instant> {
        (!self.packet.bytes.is_empty()).then(|| instant(self.begin))
    }

    /// When the last packet in the file begins.
    pub(in crate::writer) fn written_since(&self) -> Option<Instant> {
        self.written.last().map(|last| instant(last.begin))
    }

    /// Sees to it that a packet is open, if one reaches behind `until`: the last of the file when
    /// none is. False when there is no such packet.
    fn reopen(&mut self, until: Instant) -> Result<bool> {
        if !self.packet.bytes.is_empty() {
            return Ok(instant(self.end) > until);
        }
        let Some(last) = self.written.pop_if(|last| instant(last.end) > until) else {
            return Ok(false);
        };
        let bytes = self.take_from_file(last.offset_bytes)?;
        self.packet.clear();
        self.packet.append(&bytes);
        // It may have been filled up to the end of a block.
        self.packet.truncate(last.content_bits);
        (self.begin, self.end) = (last.begin, last.end);
        self.discarded = last.discarded.saturating_sub(self.refused);
        self.sequence = last.sequence;
        self.events_begin = 0;
        Ok(true)
    }

    fn take_from_file(&mut self, offset: u64) -> Result<Vec<u8>> {
        let taken = self.storage.take_from(offset);
        taken.map_err(|cause| write_error(&self.start.path, cause))
    }
}

fn instant(ns: u64) -> Instant {
    Instant::from_ns(ns.min(i64::MAX as u64) as i64)
}
