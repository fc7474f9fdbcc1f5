//! LTTng's packet index (`index/FILE.idx`, version 1.1): big-endian, one record per packet.

const MAGIC: u32 = 0xC1F1_DCC1;
const MAJOR: u32 = 1;
const MINOR: u32 = 1;
const RECORD_BYTES: u32 = 9 * 8;

/// What a packet's record and its packet context share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketFacts {
    pub offset_bytes: u64,
    pub size_bits: u64,
    pub content_bits: u64,
    pub begin: u64,
    pub end: u64,
    pub discarded: u64,
    pub stream_id: u32,
    pub instance_id: u64,
    pub sequence: u64,
}

/// The bytes of a whole index file.
pub(crate) fn encode(packets: &[PacketFacts]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + packets.len() * RECORD_BYTES as usize);
    for word in [MAGIC, MAJOR, MINOR, RECORD_BYTES] {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    for packet in packets {
        let words = [
            packet.offset_bytes,
            packet.size_bits,
            packet.content_bits,
            packet.begin,
            packet.end,
            packet.discarded,
            u64::from(packet.stream_id),
            packet.instance_id,
            packet.sequence,
        ];
        for word in words {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
    }
    bytes
}
