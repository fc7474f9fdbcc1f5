//! What a packet says of itself.

/// What a packet's header and context say, times in the clock's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketFacts {
    /// With the high bits that its field may lack.
    pub begin: Option<u64>,
    /// With the high bits that its field may lack.
    pub end: Option<u64>,
    /// The counter of discarded events, and the mask of its width.
    pub discarded: Option<(u64, u64)>,
    pub sequence: Option<u64>,
    pub cpu: Option<u32>,
    pub magic: Option<u64>,
    pub stream_class: Option<u64>,
    /// Of several streams of one class.
    pub stream: Option<u64>,
    pub content_bits: Option<u64>,
    pub packet_bits: Option<u64>,
}
