//! Which fields of a class people see.

use event::{EventClass, Field, FieldId};

/// The fields of a class that say something of the event, each name once: of a name that several
/// scopes have the first, in the order of [`event::Scope`]; none that only describe the packet.
pub fn visible_fields(class: &EventClass) -> impl Iterator<Item = (FieldId, &Field)> {
    let numbered = class.fields.iter().enumerate();
    numbered.filter_map(|(place, field)| {
        let id = FieldId(place as u16);
        let is_first = class.field(&field.name) == Some(id);
        (is_first && !ctf::is_packet_bookkeeping(field)).then_some((id, field))
    })
}
