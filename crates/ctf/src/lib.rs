//! The Common Trace Format: reader of 1.8 and 2, writer.
//!
//! # Design constraints
//! - The writer lays traces out as LTTng does, so that every reader of LTTng's traces reads ours.
//! - The reader never panics, loops or allocates without bound on hostile bytes.
//! - Decoding is pure over byte slices; files are opened and read in pieces by a thin layer around
//!   it.
//! - No file is mapped: one that is cut while it is mapped would end the process.

mod keywords;
pub mod reader;
pub mod writer;

use event::{Field, Scope};

/// The key of the `env` block by which our writer says where losses lie.
pub const LOSSES_KEY: &str = "rtscope_losses";
/// Its value: a loss lies between two packets, not somewhere inside of the second.
pub const LOSSES_BETWEEN: &str = "between_packets";

/// The fields of packet contexts that describe the packet itself.
const PACKET_BOOKKEEPING: [&str; 7] = [
    "timestamp_begin",
    "timestamp_end",
    "content_size",
    "packet_size",
    "packet_seq_num",
    "events_discarded",
    "cpu_id",
];

/// Whether a field describes its packet and not its event: readers use it, writers make their own.
pub fn is_packet_bookkeeping(field: &Field) -> bool {
    field.scope == Scope::PacketContext && PACKET_BOOKKEEPING.contains(&field.name.as_str())
}
