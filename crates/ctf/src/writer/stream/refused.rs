//! Packets for which there is no room where the trace goes on to: their events are losses.

use std::io::ErrorKind;

use event::Result;

use super::{StreamWriter, write_error};

impl StreamWriter {
    /// Events that the producer lost, and those that found no room.
    pub(super) fn lost(&self) -> u64 {
        self.discarded + self.refused
    }

    /// Whether the open packet finds no room.
    pub(super) fn is_refused(&self) -> bool {
        let size_bytes = self.packet.bytes.len() as u64;
        let outlet = self.start.outlet.as_ref();
        outlet.is_some_and(|outlet| !outlet.takes(size_bytes, self.packet_events()))
    }

    /// Throws the open packet away. The next one says that its events are missing.
    pub(super) fn refuse(&mut self) {
        let events = self.packet_events();
        self.events -= events;
        self.refused += events;
        self.packet.clear();
    }

    /// The open packet could not be written. A full disk is no more than a full spool.
    pub(super) fn not_written(&mut self, cause: std::io::Error) -> Result<()> {
        match &self.start.outlet {
            Some(outlet) if cause.kind() == ErrorKind::StorageFull => {
                outlet.lost(self.packet_events());
                self.refuse();
                Ok(())
            }
            _ => Err(write_error(&self.start.path, cause)),
        }
    }

    /// Tells of the packet that was written.
    pub(super) fn tell(&mut self) {
        if let Some(outlet) = &self.start.outlet {
            let events = self.packet_events();
            outlet.wrote(&self.start.path, self.storage.size_bytes(), events);
        }
        self.events_before = self.events;
    }

    fn packet_events(&self) -> u64 {
        self.events.saturating_sub(self.events_before)
    }
}
