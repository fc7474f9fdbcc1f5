//! Where reading can go on after a packet whose header makes no sense: at the next magic number.

use super::bits::Order;
use super::layout::{NodeKind, Role};
use super::packet::MAGIC;
use super::schema::Schema;
use super::window::Window;

/// How much of a file is looked through at once.
const PIECE_BYTES: usize = 64 << 10;
const MAGIC_BYTES: usize = size_of::<u32>();

/// The offset of the first packet behind `offset`, as far as its magic number tells; none up to the
/// end of the file, or when packets of this trace have no magic number.
pub(super) fn next_packet(window: &mut Window<'_>, schema: &Schema, offset: u64) -> Option<u64> {
    let magic = magic_bytes(schema)?;
    let mut at = offset.checked_add(1)?;
    loop {
        window.load(at, PIECE_BYTES).ok()?;
        let bytes = window.from(at);
        let bytes = &bytes[..bytes.len().min(PIECE_BYTES)];
        if let Some(place) = bytes.windows(MAGIC_BYTES).position(|word| word == magic) {
            return at.checked_add(place as u64);
        }
        // The number may begin in the last bytes of a piece.
        let passed = bytes.len().checked_sub(MAGIC_BYTES - 1)?;
        at = at.checked_add(passed as u64).filter(|_| passed > 0)?;
    }
}

/// The magic number as it stands at the start of each packet.
fn magic_bytes(schema: &Schema) -> Option<[u8; MAGIC_BYTES]> {
    let NodeKind::Struct(members) = &schema.packet_header.as_ref()?.kind else {
        return None;
    };
    let NodeKind::Int(int) = &members.first()?.node.kind else {
        return None;
    };
    let is_magic = int.role == Role::Magic && usize::from(int.load.size_bits) == MAGIC_BYTES * 8;
    match int.load.order {
        Order::Little if is_magic => Some(MAGIC.to_le_bytes()),
        Order::Big if is_magic => Some(MAGIC.to_be_bytes()),
        _ => None,
    }
}
