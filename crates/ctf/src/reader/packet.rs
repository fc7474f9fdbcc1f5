//! A packet's header and context: which stream, how long, since when, on which CPU.

use super::bits::{IntLoad, align_up};
use super::layout::{MemberNode, Node, NodeKind, StreamLayout};
use super::schema::Schema;
use super::walk::{Content, State};

/// CTF's magic number at the start of every packet.
const MAGIC: u64 = 0xC1FC_1FC1;

/// An open packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub layout: &'a StreamLayout,
    /// From the first byte of the packet.
    pub content: Content<'a>,
    /// The whole packet with its padding, if it says so and is cut or not.
    pub size_bytes: u64,
    pub facts: PacketFacts,
    /// Where the first event begins.
    pub events_at_bits: u64,
}

/// What the packet's context says, in the clock's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketFacts {
    pub begin: Option<u64>,
    pub end: Option<u64>,
    /// The counter of discarded events, and the mask of its width.
    pub discarded: Option<(u64, u64)>,
    pub sequence: Option<u64>,
    pub cpu: Option<u32>,
    content_bits: Option<u64>,
    packet_bits: Option<u64>,
    stream_id: Option<u64>,
}

/// Reads the packet at the start of `bytes`; the positions of its context's members go to
/// `positions`.
///
/// # Errors
/// What is wrong, and how many bytes into the packet.
pub(crate) fn read<'a>(
    schema: &'a Schema,
    bytes: &'a [u8],
    state: &mut State,
    positions: &mut Vec<u64>,
) -> Result<Packet<'a>, (u64, String)> {
    let mut facts = PacketFacts::default();
    let mut content = Content {
        bytes,
        end_bits: bytes.len() as u64 * 8,
    };
    state.refuel(content.end_bits.min(1 << 16));
    positions.clear();
    let mut position = 0;
    if let Some(header) = &schema.packet_header {
        position = members(header, position, |member, start| {
            header_member(&content, member, start, &mut facts)?;
            content
                .skip(&member.node, start, state)
                .map_err(|stop| stop.to_string())
        })?;
    }
    let layout = match facts.stream_id {
        Some(id) => schema
            .streams
            .get(&id)
            .ok_or_else(|| (0, format!("unknown stream {id}")))?,
        None if schema.streams.len() == 1 => schema
            .streams
            .values()
            .next()
            .ok_or_else(|| (0, "no stream".to_owned()))?,
        None => return Err((0, "a packet that does not say its stream".to_owned())),
    };
    if let Some(context) = &layout.packet_context {
        position = members(context, position, |member, start| {
            positions.push(start);
            context_member(&content, member, start, &mut facts);
            content
                .skip(&member.node, start, state)
                .map_err(|stop| stop.to_string())
        })?;
    }
    let size_bits = facts
        .packet_bits
        .or(facts.content_bits)
        .unwrap_or(content.end_bits);
    let content_bits = facts.content_bits.unwrap_or(size_bits);
    let found = || format!("a packet of {size_bits} bits with {content_bits} bits of content");
    if size_bits % 8 != 0 || size_bits == 0 || content_bits > size_bits || content_bits < position {
        return Err((0, found()));
    }
    content.end_bits = content_bits.min(content.end_bits);
    state.refuel(content.end_bits);
    Ok(Packet {
        layout,
        content,
        size_bytes: size_bits / 8,
        facts,
        events_at_bits: position,
    })
}

/// Walks the members of a scope's structure; `each` gets a member and its start and returns its
/// end.
fn members(
    node: &Node,
    position: u64,
    mut each: impl FnMut(&MemberNode, u64) -> Result<u64, String>,
) -> Result<u64, (u64, String)> {
    let mut position = align_up(position, node.align_bits);
    let NodeKind::Struct(members) = &node.kind else {
        return Ok(position);
    };
    for member in members {
        let start = align_up(position, member.node.align_bits);
        position = each(member, start).map_err(|reason| (position / 8, reason))?;
    }
    Ok(position)
}

fn header_member(
    content: &Content<'_>,
    member: &MemberNode,
    start: u64,
    facts: &mut PacketFacts,
) -> Result<(), String> {
    match (member.shown(), &member.node.kind) {
        ("magic", NodeKind::Int(int)) => {
            let magic = content
                .int(int.load, start)
                .map_err(|stop| stop.to_string())?;
            if magic != MAGIC {
                return Err(format!("{magic:#x} in place of a packet's magic number"));
            }
        }
        ("stream_id", NodeKind::Int(int)) => {
            facts.stream_id = content.int(int.load, start).ok();
        }
        _ => {}
    }
    Ok(())
}

fn context_member(content: &Content<'_>, member: &MemberNode, start: u64, facts: &mut PacketFacts) {
    let NodeKind::Int(int) = &member.node.kind else {
        return;
    };
    let Ok(value) = content.int(int.load, start) else {
        return;
    };
    match member.shown() {
        "timestamp_begin" => facts.begin = Some(value),
        "timestamp_end" => facts.end = Some(value),
        "content_size" => facts.content_bits = Some(value),
        "packet_size" => facts.packet_bits = Some(value),
        "events_discarded" => facts.discarded = Some((value, mask(int.load))),
        "packet_seq_num" => facts.sequence = Some(value),
        "cpu_id" => facts.cpu = u32::try_from(value).ok(),
        _ => {}
    }
}

fn mask(load: IntLoad) -> u64 {
    u64::MAX >> (64 - u32::from(load.size_bits))
}
