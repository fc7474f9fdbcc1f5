//! A packet's header and context: which stream, how long, since when, on which CPU.

use super::bits::align_up;
use super::layout::{Node, NodeKind, StreamLayout};
use super::packet_facts::PacketFacts;
use super::schema::Schema;
use super::walk::{Content, State, Stop};

/// CTF's magic number at the start of every packet.
pub(super) const MAGIC: u32 = 0xC1FC_1FC1;

/// An open packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub layout: &'a StreamLayout,
    /// Bits with a meaning, from the first byte of the packet.
    pub content_bits: u64,
    /// The whole packet with its padding, whether the file holds it whole or not.
    pub size_bytes: u64,
    pub facts: PacketFacts,
    /// Where the first event begins.
    pub events_at_bits: u64,
}

/// Why a packet cannot be opened.
pub(crate) enum Refusal {
    /// The bytes that are in memory end inside of its header.
    NeedsMore,
    /// What is wrong, and how many bytes into the packet.
    Wrong(u64, String),
}

/// Reads the packet at the start of `bytes`, of `rest_bytes` up to the end of the file; the
/// positions of its context's members go to `positions`.
pub(crate) fn read<'a>(
    schema: &'a Schema,
    bytes: &[u8],
    rest_bytes: u64,
    state: &mut State,
    positions: &mut Vec<u64>,
) -> Result<Packet<'a>, Refusal> {
    let rest_bits = rest_bytes.saturating_mul(8);
    let content = Content {
        bytes,
        end_bits: rest_bits.min(bytes.len() as u64 * 8),
    };
    let whole = bytes.len() as u64 >= rest_bytes;
    let stopped = |(at, stop): (u64, Stop)| match stop {
        Stop::Truncated if !whole => Refusal::NeedsMore,
        stop => Refusal::Wrong(at / 8, stop.to_string()),
    };
    state.refuel(rest_bits.min(1 << 16));
    state.facts = PacketFacts::default();
    positions.clear();
    let mut position = 0;
    if let Some(header) = &schema.packet_header {
        position = members(&content, header, position, state, positions).map_err(stopped)?;
        check_magic(state)?;
    }
    positions.clear();
    let layout = stream_layout(schema, state.facts.stream_class)?;
    if let Some(context) = &layout.packet_context {
        state.clock_is_set = false;
        position = members(&content, context, position, state, positions).map_err(stopped)?;
        state.facts.begin = state.clock_is_set.then_some(state.clock);
        state.facts.end = state
            .end
            .map(|(load_bits, end)| state.extended(load_bits, end));
        state.end = None;
    }
    let facts = state.facts;
    let size_bits = facts
        .packet_bits
        .or(facts.content_bits)
        .unwrap_or(rest_bits);
    let content_bits = facts.content_bits.unwrap_or(size_bits);
    if !size_bits.is_multiple_of(8)
        || size_bits == 0
        || content_bits > size_bits
        || content_bits < position
    {
        let found = format!("a packet of {size_bits} bits with {content_bits} bits of content");
        return Err(Refusal::Wrong(0, found));
    }
    Ok(Packet {
        layout,
        content_bits,
        size_bytes: size_bits / 8,
        facts,
        events_at_bits: position,
    })
}

/// Walks the members of a scope's structure and notes where each begins; returns the end.
fn members(
    content: &Content<'_>,
    node: &Node,
    position: u64,
    state: &mut State,
    positions: &mut Vec<u64>,
) -> Result<u64, (u64, Stop)> {
    let mut position = align_up(position, node.align_bits);
    let NodeKind::Struct(members) = &node.kind else {
        return Ok(position);
    };
    for member in members {
        let start = align_up(position, member.node.align_bits);
        positions.push(start);
        position = content
            .skip(&member.node, start, state)
            .map_err(|stop| (start, stop))?;
    }
    Ok(position)
}

/// The magic number must be right. The UUID need not be the metadata's: real traces were put
/// together from parts, and every reader accepts them.
fn check_magic(state: &State) -> Result<(), Refusal> {
    match state.facts.magic {
        Some(magic) if magic != u64::from(MAGIC) => {
            let found = format!("{magic:#x} in place of a packet's magic number");
            Err(Refusal::Wrong(0, found))
        }
        _ => Ok(()),
    }
}

fn stream_layout(schema: &Schema, id: Option<u64>) -> Result<&StreamLayout, Refusal> {
    let only = match id {
        Some(id) => {
            let unknown = || Refusal::Wrong(0, format!("unknown stream {id}"));
            return schema.streams.get(&id).ok_or_else(unknown);
        }
        None => schema.streams.values().next(),
    };
    // A packet that does not say its stream class is of class 0, or of the only one.
    let zero = schema
        .streams
        .get(&0)
        .or(only.filter(|_| schema.streams.len() == 1));
    zero.ok_or_else(|| Refusal::Wrong(0, "a packet that does not say its stream".to_owned()))
}
