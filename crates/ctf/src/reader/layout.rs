//! Types with their references resolved, their sizes and offsets worked out: all that decoding
//! needs, made once at open.

use std::collections::HashMap;
use std::sync::Arc;

use event::{ClassId, FieldId, Name, Scope, WideEncoding};

use super::bits::IntLoad;
use super::sizes::BodySteps;
use super::types::{Mapping, Range, shown};

/// A type as the decoder walks it.
#[derive(Debug)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub align_bits: u32,
    /// The size after alignment, when it does not depend on data.
    pub size_bits: Option<u64>,
    /// Whether walking it keeps a value: for a later reference, or for the decoder itself.
    pub keeps: bool,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Int(IntNode),
    Float {
        load: IntLoad,
    },
    String,
    Wide {
        encoding: WideEncoding,
        span: Span,
    },
    Blob(Span),
    Struct(Vec<MemberNode>),
    Array {
        element: Box<Node>,
        count: u64,
        text: bool,
    },
    Sequence {
        element: Box<Node>,
        slot: u16,
        text: bool,
    },
    Variant {
        slot: u16,
        signed: bool,
        choices: Vec<MemberNode>,
        ranges: Vec<Range>,
    },
    Optional {
        slot: u16,
        signed: bool,
        content: Box<Node>,
        /// Selector values that mean that it is there; none: all but zero.
        ranges: Option<Vec<(i128, i128)>>,
    },
}

/// How many bytes a text or blob has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Span {
    Terminated,
    Bytes(u64),
    /// As many as the slot's value.
    Slot(u16),
}

#[derive(Debug)]
pub(crate) struct IntNode {
    pub load: IntLoad,
    /// Where the value is kept for a later length or selector of the same scope.
    pub slot: Option<u16>,
    /// The same for those of later scopes.
    pub later_slot: Option<u16>,
    pub role: Role,
    pub shows: Shows,
    pub mappings: Option<Arc<[Mapping]>>,
}

/// What an integer's value is to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    Number,
    Label,
    Truth,
    Flags,
}

/// What an integer means to the decoder itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    None,
    EventId,
    /// The value of the clock of this index.
    Clock(u32),
    /// The clock's value at the packet's end.
    PacketEnd,
    Magic,
    StreamClassId,
    StreamId,
    PacketBits,
    ContentBits,
    Discarded,
    Sequence,
    Cpu,
}

#[derive(Debug)]
pub(crate) struct MemberNode {
    /// As the metadata spells it.
    pub name: Name,
    /// Whether the name's first underscore only keeps it from being a keyword.
    pub escaped: bool,
    pub node: Node,
    /// From the start of the structure, while everything before has a fixed size.
    pub offset_bits: Option<u64>,
}

impl MemberNode {
    /// The name as people see it.
    pub fn shown(&self) -> &str {
        if self.escaped {
            shown(&self.name)
        } else {
            &self.name
        }
    }
}

/// The scopes of an event's body, in the order of their bytes.
pub(crate) const BODY: [Scope; 3] = [Scope::StreamContext, Scope::EventContext, Scope::Payload];

/// An event class as the decoder uses it.
#[derive(Clone, Debug)]
pub(crate) struct ClassLayout {
    pub class: ClassId,
    pub body: Arc<BodyLayout>,
}

/// What follows the header of an event, the same for all classes that declare the same.
#[derive(Debug)]
pub(crate) struct BodyLayout {
    /// The structures of [`BODY`]; the stream's own context is shared by all of its classes.
    pub scopes: [Option<ScopeLayout>; 3],
    /// Where each field of the class is, but for those of the packet's context behind them.
    pub places: Vec<Place>,
    /// What makes walking needless.
    pub packed: Option<Packed>,
    /// What makes walking needless where it is not packed.
    pub steps: Option<BodySteps>,
    /// Where each event says its CPU, because its packet does not.
    pub cpu: Option<FieldId>,
}

/// Scopes of fixed sizes in whole bytes: all places follow from where the first begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    /// 8, or 1 when there is nothing to align.
    pub align_bits: u32,
    pub size_bytes: usize,
}

impl BodyLayout {
    pub fn new(scopes: [Option<ScopeLayout>; 3], mut places: Vec<Place>) -> Self {
        let offsets = Offsets::of(&scopes);
        offsets.place(&mut places);
        let packed = offsets.all;
        let steps = match packed {
            Some(_) => None,
            None => BodySteps::of(&scopes),
        };
        BodyLayout {
            scopes,
            places,
            packed,
            steps,
            cpu: None,
        }
    }
}

/// Where the scopes of a body begin, and how large it is, as far as no data needs to be looked at.
#[derive(Debug, Default)]
struct Offsets {
    /// In bits from where the body begins.
    scopes_bits: [Option<u32>; 3],
    all: Option<Packed>,
}

impl Offsets {
    /// Up to the first scope that does not begin or end with a byte, or whose size depends on data.
    fn of(scopes: &[Option<ScopeLayout>; 3]) -> Offsets {
        let mut offsets = Offsets::default();
        let (mut align_bits, mut all_bits, mut keeps) = (1, 0u32, false);
        for (scope, offset_bits) in scopes.iter().zip(&mut offsets.scopes_bits) {
            let Some(scope) = scope else { continue };
            let node = &scope.node;
            // What is aligned to less could begin inside of a byte.
            if node.align_bits != 8 && (node.align_bits > 8 || node.size_bits != Some(0)) {
                return offsets;
            }
            *offset_bits = Some(all_bits);
            let size = node.size_bits.filter(|size| size.is_multiple_of(8));
            let size = size.and_then(|size| u32::try_from(size).ok());
            let Some(end) = size.and_then(|size| all_bits.checked_add(size)) else {
                return offsets;
            };
            all_bits = end;
            align_bits = align_bits.max(node.align_bits);
            keeps |= node.keeps;
        }
        offsets.all = (!keeps).then_some(Packed {
            align_bits,
            size_bytes: all_bits as usize / 8,
        });
        offsets
    }

    /// Counts places from the body's begin on, where that is known.
    fn place(&self, places: &mut [Place]) {
        for place in places {
            let At::Scope { body, offset_bits } = place.at else {
                continue;
            };
            let Some(scope_bits) = self.scopes_bits[usize::from(body)] else {
                continue;
            };
            // Places of a scope lie inside of it; only where its size is unknown this may be too
            // large.
            let Some(offset_bits) = scope_bits.checked_add(offset_bits) else {
                continue;
            };
            if self.all.is_some() {
                place.at = At::Body { offset_bits };
            }
            let offset_bytes = offset_bits / 8;
            match place.load {
                Load::Bytes(load) => place.load = Load::Body { load, offset_bytes },
                Load::Text { size_bytes } => {
                    if let Ok(size_bytes) = u32::try_from(size_bytes) {
                        place.load = Load::BodyText {
                            size_bytes,
                            offset_bytes,
                        };
                    }
                }
                _ => {}
            }
        }
    }
}

/// The structure of one scope.
#[derive(Debug)]
pub(crate) struct ScopeLayout {
    pub node: Arc<Node>,
    /// The class's field that the first member is.
    pub first_field: usize,
}

/// A top-level field: where its bits begin and how they are loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub at: At,
    pub load: Load,
    /// The scope, as an index into [`BODY`].
    pub body: u8,
    /// The member of the scope's structure.
    pub member: u16,
}

/// Where a field's bits begin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    /// At an offset from the start of the body of a packed class.
    Body { offset_bits: u32 },
    /// At an offset from the start of a scope of [`BODY`].
    Scope { body: u8, offset_bits: u32 },
    /// Where the walk over the event met it.
    Walked,
    /// In the packet's context, where the walk over that met it.
    Packet,
}

/// How a field is loaded without looking at its type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    Int(IntLoad),
    /// The same, little-endian and always at a byte's border.
    Bytes(IntLoad),
    /// The same, so many bytes into the event's body.
    Body {
        load: IntLoad,
        offset_bytes: u32,
    },
    String,
    Text {
        size_bytes: u64,
    },
    /// The same, so many bytes into the event's body.
    BodyText {
        size_bytes: u32,
        offset_bytes: u32,
    },
    Other,
}

impl Load {
    pub fn of(node: &Node) -> Load {
        match &node.kind {
            NodeKind::Int(int) if int.load.is_little() && node.align_bits.is_multiple_of(8) => {
                Load::Bytes(int.load)
            }
            NodeKind::Int(int) => Load::Int(int.load),
            NodeKind::String => Load::String,
            NodeKind::Array {
                count, text: true, ..
            } => Load::Text { size_bytes: *count },
            _ => Load::Other,
        }
    }

    /// The integer at bit `position`; none where it is no integer or lies outside of the bytes.
    #[inline]
    pub fn integer(self, bytes: &[u8], position: u64) -> Option<u64> {
        match self {
            Load::Bytes(load) | Load::Body { load, .. } => {
                load.read_bytes(bytes, usize::try_from(position / 8).ok()?)
            }
            Load::Int(load) => load.read(bytes, position),
            _ => None,
        }
    }
}

/// A stream class as the decoder uses it.
#[derive(Debug)]
pub(crate) struct StreamLayout {
    pub header: Option<Node>,
    pub quick_header: Option<QuickHeader>,
    pub packet_context: Option<Node>,
    /// Where the fields of the packet's context are, which stand behind those of each class.
    pub packet_places: Vec<Place>,
    /// Indexed by event id when ids are small; the rest in the map.
    pub by_id: Vec<Option<ClassLayout>>,
    pub by_large_id: HashMap<u64, ClassLayout>,
    /// The id of an event that says none: that of the only class.
    pub unsaid_id: u64,
    /// The clock that its timestamps are on.
    pub clock: Option<u32>,
    pub slot_count: usize,
    pub field_count: usize,
}

/// LTTng's headers, decoded without a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuickHeader {
    pub form: HeaderForm,
    pub align_bits: u32,
    pub big_endian: bool,
    /// What follows the greatest id; a walk when it is not LTTng's.
    pub extended: Option<ExtendedHeader>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum HeaderForm {
    /// 5 bits of id, 27 bits of time.
    Compact,
    /// 16 bits of id, 32 bits of time.
    Large { time_align_bits: u32 },
}

/// 32 bits of id, 64 bits of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtendedHeader {
    /// Of the structure of both.
    pub align_bits: u32,
    pub time_align_bits: u32,
}

/// The id of an event that says none where classes are several.
pub(crate) const UNSAID_ID: u64 = u64::MAX;

/// Ids below this are looked up in a list.
const LISTED_IDS: u64 = 1 << 16;

impl StreamLayout {
    /// Adds a class; false when its id is taken.
    pub fn add(&mut self, id: u64, layout: ClassLayout) -> bool {
        let before = if id < LISTED_IDS {
            let place = id as usize;
            if self.by_id.len() <= place {
                self.by_id.resize(place + 1, None);
            }
            self.by_id[place].replace(layout)
        } else {
            self.by_large_id.insert(id, layout)
        };
        before.is_none()
    }

    /// The class of an id.
    #[inline]
    pub fn class(&self, id: u64) -> Option<&ClassLayout> {
        match self.by_id.get(id as usize) {
            Some(class) if id < LISTED_IDS => class.as_ref(),
            _ => self.by_large_id.get(&id),
        }
    }
}
