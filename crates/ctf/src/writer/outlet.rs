//! Where the packets of a trace go on to while it is written.

use std::fmt::Debug;
use std::path::Path;

/// Who is told of each packet, and may have no room for it.
pub trait Outlet: Debug + Send + Sync {
    /// Whether a packet of so many bytes and events can be written. When it cannot, it is thrown
    /// away, and its events are losses of the stream. One without events is always taken: what is
    /// missing stands in it.
    fn takes(&self, size_bytes: u64, events: u64) -> bool;

    /// A packet was written; the file at `path` ends behind it.
    fn wrote(&self, path: &Path, end_bytes: u64, events: u64);

    /// A packet that was taken found no room on the disk; its events are losses of the stream.
    fn lost(&self, events: u64);
}
