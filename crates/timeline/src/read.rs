//! The events of a walk, decoded on a thread of their own.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use event::{Result, TimeRange};
use trace::{Batch, Carry, Item, Trace};

/// Batches that wait, at most: memory is bounded, whoever is faster.
const BATCHES: usize = 8;

/// Decodes.
pub(crate) struct Reader<'t> {
    trace: &'t Trace,
    carry: &'t Carry,
    to: SyncSender<Batch>,
    /// Batches that were worked on, for their room.
    emptied: Receiver<Batch>,
}

/// What was decoded.
pub(crate) struct Events<'t> {
    carry: &'t Carry,
    from: Receiver<Batch>,
    emptied: Sender<Batch>,
}

impl<'t> Reader<'t> {
    /// A reader, and where its events come out.
    pub fn new(trace: &'t Trace, carry: &'t Carry) -> (Reader<'t>, Events<'t>) {
        let (to, from) = sync_channel(BATCHES);
        let (back, emptied) = channel();
        let reader = Reader {
            trace,
            carry,
            to,
            emptied,
        };
        let events = Events {
            carry,
            from,
            emptied: back,
        };
        (reader, events)
    }

    /// Reads all of the trace, or until nobody wants more.
    ///
    /// # Errors
    /// As [`trace::Cursor::next`].
    pub fn read(self) -> Result<()> {
        let mut batch = Batch::default();
        let mut cursor = self.trace.cursor(TimeRange::ALL);
        cursor.each_while(|item| {
            batch.take(item, self.carry);
            if !batch.is_full() {
                return true;
            }
            let next = self.emptied.try_recv().unwrap_or_default();
            self.to.send(std::mem::replace(&mut batch, next)).is_ok()
        })?;
        // Who has gone wants no more.
        self.to.send(batch).ok();
        Ok(())
    }
}

impl Events<'_> {
    /// Hands all items to `take` as they come, until that says no.
    pub fn each_while(&self, mut take: impl FnMut(&Item<'_>) -> bool) {
        for mut batch in &self.from {
            if !batch.each_while(self.carry, &mut take) {
                return;
            }
            batch.clear();
            // The reader may be done.
            self.emptied.send(batch).ok();
        }
    }
}
