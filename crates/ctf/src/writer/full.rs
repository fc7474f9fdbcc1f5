//! The end of a trace whose disk is full: no stream goes on behind what another one lost.

use event::{Duration, Error, ErrorKind, Instant, Result};

use super::{StreamWriter, TraceWriter};
use crate::reader::read_schema;

impl TraceWriter {
    /// Ends all `streams` of this trace at `until`, up to which each of them was given all that
    /// happened, and brings what they hold to the files. The newest packet makes room for an older
    /// one that finds none: the trace then ends earlier. Returns when.
    ///
    /// # Errors
    /// What the operating system says when metadata or events that were written cannot be read or
    /// removed.
    pub fn end_at(&self, streams: &mut [&mut StreamWriter], until: Instant) -> Result<Instant> {
        let schema = read_schema(&self.dir.join("metadata"))?;
        let mut until = until;
        loop {
            for stream in &mut *streams {
                stream.take_back(&schema, until)?;
                if stream.waits_since().is_some() {
                    stream.covers(until)?;
                }
            }
            let Some((since, error)) = write_oldest_first(streams) else {
                return Ok(until);
            };
            let newest = streams.iter().filter_map(|stream| stream.written_since());
            let newest = newest.max().filter(|newest| *newest > since);
            let first_lost = match error.kind() {
                ErrorKind::StorageFull => newest.unwrap_or(since),
                _ => since,
            };
            until = first_lost - Duration::from_ns(1);
        }
    }
}

/// Closes the open packets up to the first that cannot be written; gives its begin, and why.
fn write_oldest_first(streams: &mut [&mut StreamWriter]) -> Option<(Instant, Error)> {
    streams.sort_by_key(|stream| stream.waits_since());
    streams.iter_mut().find_map(|stream| {
        let since = stream.waits_since()?;
        stream.gap().err().map(|error| (since, error))
    })
}
