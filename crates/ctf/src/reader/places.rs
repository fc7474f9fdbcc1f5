//! Where the top-level fields of a class are, and which headers need no walk.

use std::sync::Arc;

use event::{Field, FieldId, Scope};

use super::bits::Order;
use super::layout::{
    At, BODY, ExtendedHeader, HeaderForm, Load, MemberNode, Node, NodeKind, Place, QuickHeader,
    Role, ScopeLayout,
};
use super::types::{Range, Type, TypeKind, fields};

/// Lists the fields of a class, payload first, with their places.
#[derive(Default)]
pub(super) struct PlaceBuilder {
    pub fields: Vec<Field>,
    pub places: Vec<Place>,
}

impl PlaceBuilder {
    /// With memory for the members of an event's own structures and of the packet's context, no
    /// more and no less.
    pub fn with_room_for(own: [Option<&Type>; 3], packet: Option<&Type>) -> PlaceBuilder {
        let count = |ty: &Type| match &ty.kind {
            TypeKind::Struct(members) => members.len(),
            _ => 0,
        };
        let own = own.into_iter().flatten().map(count).sum();
        PlaceBuilder {
            fields: Vec::with_capacity(own + packet.map_or(0, count)),
            places: Vec::with_capacity(own),
        }
    }

    /// Adds fields without places of their own.
    pub fn add_fields(&mut self, ty: &Type, scope: Scope) {
        if let TypeKind::Struct(members) = &ty.kind {
            self.fields.extend(fields(members, scope));
        }
    }

    pub fn add(
        &mut self,
        body: u8,
        ty: Option<&Type>,
        node: Option<Arc<Node>>,
    ) -> Option<ScopeLayout> {
        let (ty, node) = (ty?, node?);
        let first_field = self.fields.len();
        let NodeKind::Struct(members) = &node.kind else {
            return None;
        };
        self.add_fields(ty, BODY[usize::from(body)]);
        for (place, member) in members.iter().enumerate() {
            let load = Load::of(&member.node);
            let offset = member.offset_bits.and_then(|bits| u32::try_from(bits).ok());
            let at = match offset {
                Some(offset_bits) => At::Scope { body, offset_bits },
                None => At::Walked,
            };
            self.places.push(Place {
                at,
                load,
                body,
                member: place as u16,
            });
        }
        Some(ScopeLayout { node, first_field })
    }
}

/// Where the members of a packet's context are.
pub(super) fn packet_places(context: Option<&Node>) -> Vec<Place> {
    let Some(NodeKind::Struct(members)) = context.map(|node| &node.kind) else {
        return Vec::new();
    };
    let place = |(place, member): (usize, &MemberNode)| Place {
        at: At::Packet,
        load: Load::of(&member.node),
        body: u8::MAX,
        member: place as u16,
    };
    members.iter().enumerate().map(place).collect()
}

/// Recognises LTTng's two headers.
pub(super) fn quick_header(header: &Node) -> Option<QuickHeader> {
    let NodeKind::Struct(members) = &header.kind else {
        return None;
    };
    let [id, v] = &members[..] else { return None };
    let (
        NodeKind::Int(id_int),
        NodeKind::Variant {
            choices, ranges, ..
        },
    ) = (&id.node.kind, &v.node.kind)
    else {
        return None;
    };
    let Range {
        first: 0,
        last,
        choice,
    } = *ranges.first()?
    else {
        return None;
    };
    let NodeKind::Struct(compact) = &choices.get(choice as usize)?.node.kind else {
        return None;
    };
    let [time] = &compact[..] else { return None };
    let NodeKind::Int(time_int) = &time.node.kind else {
        return None;
    };
    let big_endian = match id_int.load.order {
        Order::Little => false,
        Order::Big => true,
        _ => return None,
    };
    let same_order = time_int.load.order == id_int.load.order;
    let timed = matches!(time_int.role, Role::Clock(_)) && same_order;
    if !timed || id_int.role != Role::EventId || id_int.load.signed || time_int.load.signed {
        return None;
    }
    let time_align_bits = time.node.align_bits;
    let whole_bytes = header.align_bits.is_multiple_of(8);
    let form = match (id_int.load.size_bits, time_int.load.size_bits, last) {
        (5, 27, 30) if time_align_bits == 1 && whole_bytes => HeaderForm::Compact,
        (16, 32, 65534) if time_align_bits.is_multiple_of(8) && whole_bytes => {
            HeaderForm::Large { time_align_bits }
        }
        _ => return None,
    };
    let extended = match ranges.get(1) {
        Some(range) if range.first == last + 1 && range.last == range.first => {
            let choice = choices.get(range.choice as usize);
            choice.and_then(|choice| extended_header(&choice.node, id_int.load.order))
        }
        _ => None,
    };
    Some(QuickHeader {
        form,
        align_bits: header.align_bits.max(8),
        big_endian,
        extended,
    })
}

/// LTTng's structure of a large id and the whole time.
fn extended_header(node: &Node, order: Order) -> Option<ExtendedHeader> {
    let NodeKind::Struct(members) = &node.kind else {
        return None;
    };
    let [id, time] = &members[..] else {
        return None;
    };
    let (NodeKind::Int(id_int), NodeKind::Int(time_int)) = (&id.node.kind, &time.node.kind) else {
        return None;
    };
    let is_lttng = id_int.role == Role::EventId
        && matches!(time_int.role, Role::Clock(_))
        && (id_int.load.size_bits, time_int.load.size_bits) == (32, 64)
        && !id_int.load.signed
        && id_int.load.order == order
        && time_int.load.order == order;
    is_lttng.then_some(ExtendedHeader {
        align_bits: node.align_bits,
        time_align_bits: time.node.align_bits,
    })
}

/// The field in which perf's first converters said the CPU: their packets do not.
pub(super) fn cpu_in_event(fields: &[Field]) -> Option<FieldId> {
    let in_packet = |field: &Field| field.scope == Scope::PacketContext && field.name == "cpu_id";
    let in_event = |field: &Field| field.scope == Scope::Payload && field.name == "perf_cpu";
    let place = fields.iter().position(in_event)?;
    (!fields.iter().any(in_packet)).then_some(FieldId(place as u16))
}
