//! How much of a packet lies behind an instant.

use std::sync::Arc;

use super::{Schema, Step, StreamReader};

/// Where a packet is to be cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Where the first event behind the instant begins, in bits from the packet's begin; none when
    /// no event is behind it.
    pub at_bits: Option<u64>,
    /// Events behind the instant.
    pub events: u64,
}

/// Finds the events of a whole `packet` that are behind `until`, in ticks of its clock.
pub(crate) fn cut_at(schema: &Schema, packet: &[u8], until: u64) -> Cut {
    // All are wanted, one by one: of what is read ahead nobody knows the ends.
    let mut reader = StreamReader::new(schema, packet).with_wanted(Arc::from([]));
    let mut cut = Cut::default();
    let mut end = None;
    while reader.step() == Step::Event {
        let first = reader.packet.as_ref().map_or(0, |open| open.events_at_bits);
        if reader.ticks() > until {
            cut.at_bits.get_or_insert(end.unwrap_or(first));
            cut.events += 1;
        }
        end = Some(reader.base * 8 + reader.position);
    }
    cut
}
