//! From declared types to layouts: references resolved, offsets worked out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use event::{ClassId, Error, ErrorKind, EventClass, Field, Result, Scope};

use super::bits::{IntLoad, Order, align_up};
use super::layout::{
    BodyLayout, ClassLayout, IntNode, MemberNode, Node, NodeKind, Role, Shows, Span, StreamLayout,
    UNSAID_ID,
};
use super::places::{PlaceBuilder, cpu_in_event, packet_places, quick_header};
use super::references::{Frame, Target};
use super::schema::{ClockInfo, Declarations, EventDeclaration, Schema, StreamDeclaration};
use super::types::{
    Extent, IntType, Mapping, Member, Range, Reference, Storage, Type, TypeKind, shown,
};

pub(super) fn refuse(found: String) -> Error {
    Error::new(ErrorKind::Corrupt, "cannot understand the trace's metadata")
        .found(found)
        .fix("copy the trace again: its file 'metadata' is cut or damaged")
}

/// Layouts of everything that was declared.
pub(super) fn compile(mut declared: Declarations, format_version: &'static str) -> Result<Schema> {
    let mut classes = Vec::new();
    let (mut has_payload, mut remarks) = (Vec::new(), Vec::new());
    let mut streams = BTreeMap::new();
    let mut packet_header = None;
    let mut events: BTreeMap<u64, Vec<&EventDeclaration>> = BTreeMap::new();
    add_default_clock(&mut declared);
    for event in &declared.events {
        if !declared.streams.contains_key(&event.stream_id) {
            let found = format!(
                "event '{}' of the unknown stream {}",
                event.name, event.stream_id
            );
            return Err(refuse(found));
        }
        events.entry(event.stream_id).or_default().push(event);
    }
    for (id, stream) in &declared.streams {
        let events = events.get(id).map_or(&[][..], Vec::as_slice);
        let first_class = classes.len();
        let mut layout = None;
        // References from an event into the shared scopes are rare: keep their values only then.
        for keep_shared in [false, true] {
            classes.truncate(first_class);
            let mut compiler = Compiler::new(&declared, keep_shared);
            compiler.names_choices = format_version != "2";
            let header = declared.packet_header.as_deref();
            packet_header = header
                .map(|ty| compiler.scope(Scope::PacketHeader, ty))
                .transpose()?;
            layout = Some(compiler.stream(*id, stream, events, &mut classes)?);
            if !compiler.missed_shared {
                break;
            }
        }
        streams.extend(layout.map(|layout| (*id, layout)));
        has_payload.extend(events.iter().map(|event| event.fields.is_some()));
        remarks.extend(events.iter().map(|event| event.remarks.clone()));
    }
    let Declarations {
        environment,
        clocks,
        uuid,
        violations,
        ..
    } = declared;
    Ok(Schema {
        format_version,
        has_payload,
        remarks,
        environment,
        clocks,
        uuid,
        classes: classes.into(),
        streams,
        packet_header,
        violations,
    })
}

/// Timestamps without a clock are read as nanoseconds of a clock without a name.
fn add_default_clock(declared: &mut Declarations) {
    let timed = |stream: &StreamDeclaration| {
        let has = |ty: &Option<Arc<Type>>, name| ty.as_deref().is_some_and(|ty| holds(ty, name));
        has(&stream.header, "timestamp") || has(&stream.packet_context, "timestamp_begin")
    };
    if declared.clocks.is_empty() && declared.streams.values().any(timed) {
        declared.clocks.push(ClockInfo {
            name: "default".to_owned(),
            frequency_hz: 1_000_000_000,
            offset_s: 0,
            offset_cycles: 0,
        });
    }
}

/// Whether a part of a structure or variant has this name in TSDL.
fn holds(ty: &Type, name: &str) -> bool {
    let parts = match &ty.kind {
        TypeKind::Struct(members) => members,
        TypeKind::Variant { choices, .. } => choices,
        _ => return false,
    };
    let is_it = |part: &Member| part.escaped && part.shown() == name || holds(&part.ty, name);
    parts.iter().any(is_it)
}

pub(super) struct Compiler<'d> {
    pub(super) declared: &'d Declarations,
    pub(super) keep_shared: bool,
    /// A reference into a shared scope whose values were not kept.
    pub(super) missed_shared: bool,
    pub(super) scope: Scope,
    /// Members of the structures that are being built, outermost first.
    pub(super) frames: Vec<Frame>,
    /// Names, slots and signs of all integers of the shared scopes, with dots between.
    pub(super) shared: HashMap<(Scope, String), Target>,
    pub(super) slots: u16,
    /// Whether references name the choices of the variants on their way, as those of TSDL do.
    pub(super) names_choices: bool,
    /// Bodies of events of the stream that have no context of their own, by their payload's type.
    bodies: HashMap<*const Type, Body>,
    /// Whether the shared scopes are those of an event with a context of its own.
    has_context: bool,
    pub(super) clock: Option<u32>,
}

/// What the declarations of an event say of its body.
#[derive(Clone)]
struct Body {
    fields: Arc<[Field]>,
    layout: Arc<BodyLayout>,
    /// How many values are kept while it is walked, those of the shared scopes among them.
    slots: u16,
}

impl<'d> Compiler<'d> {
    fn new(declared: &'d Declarations, keep_shared: bool) -> Self {
        Compiler {
            declared,
            keep_shared,
            missed_shared: false,
            scope: Scope::PacketHeader,
            frames: Vec::new(),
            shared: HashMap::new(),
            slots: 0,
            names_choices: true,
            bodies: HashMap::new(),
            has_context: false,
            clock: None,
        }
    }

    fn stream(
        &mut self,
        id: u64,
        stream: &StreamDeclaration,
        events: &[&EventDeclaration],
        classes: &mut Vec<EventClass>,
    ) -> Result<StreamLayout> {
        let mut shared = |scope, ty: &Option<Arc<Type>>| {
            ty.as_deref().map(|ty| self.scope(scope, ty)).transpose()
        };
        let packet_context = shared(Scope::PacketContext, &stream.packet_context)?;
        let header = shared(Scope::EventHeader, &stream.header)?;
        let event_context = shared(Scope::StreamContext, &stream.event_context)?;
        let quick_header = header
            .as_ref()
            .filter(|_| !self.keep_shared)
            .and_then(quick_header);
        let event_context = event_context.map(Arc::new);
        let mut layout = StreamLayout {
            header,
            quick_header,
            packet_places: packet_places(packet_context.as_ref()),
            packet_context,
            by_id: Vec::new(),
            by_large_id: HashMap::new(),
            unsaid_id: match events {
                [only] => only.id,
                _ => UNSAID_ID,
            },
            clock: self.clock,
            slot_count: 0,
            field_count: 0,
        };
        let (shared_slots, mut slot_count) = (self.slots, self.slots);
        for event in events {
            self.slots = shared_slots;
            let body = self.known_body(stream, event, event_context.as_ref())?;
            slot_count = slot_count.max(body.slots);
            layout.field_count = layout.field_count.max(body.fields.len());
            let class = ClassId(classes.len() as u32);
            classes.push(EventClass {
                id: class,
                name: event.name.clone(),
                stream: id as u32,
                fields: body.fields,
            });
            let body = body.layout;
            if !layout.add(event.id, ClassLayout { class, body }) {
                return Err(refuse(format!("event id {} twice in one stream", event.id)));
            }
        }
        layout.slot_count = usize::from(slot_count);
        Ok(layout)
    }

    /// The body of an event, worked out once for all events of the stream that share their types.
    fn known_body(
        &mut self,
        stream: &StreamDeclaration,
        event: &EventDeclaration,
        event_context: Option<&Arc<Node>>,
    ) -> Result<Body> {
        // A context has values that the payload may refer to by the same words.
        let payload = event.fields.as_ref().filter(|_| event.context.is_none());
        let key = payload.map(Arc::as_ptr);
        if let Some(body) = key.and_then(|key| self.bodies.get(&key)) {
            return Ok(body.clone());
        }
        let body = self.body(stream, event, event_context.cloned())?;
        if let Some(key) = key {
            self.bodies.insert(key, body.clone());
        }
        Ok(body)
    }

    fn body(
        &mut self,
        stream: &StreamDeclaration,
        event: &EventDeclaration,
        event_context: Option<Arc<Node>>,
    ) -> Result<Body> {
        if self.has_context {
            self.shared
                .retain(|(scope, _), _| *scope != Scope::EventContext);
        }
        self.has_context = event.context.is_some();
        let context = event.context.as_deref();
        let context = context
            .map(|ty| self.scope(Scope::EventContext, ty))
            .transpose()?;
        let payload = event.fields.as_deref();
        let payload = payload
            .map(|ty| self.scope(Scope::Payload, ty))
            .transpose()?;
        let own = [&event.fields, &event.context, &stream.event_context];
        let packet = stream.packet_context.as_deref();
        let mut builder = PlaceBuilder::with_room_for(own.map(|ty| ty.as_deref()), packet);
        let payload = builder.add(2, event.fields.as_deref(), payload.map(Arc::new));
        let context = builder.add(1, event.context.as_deref(), context.map(Arc::new));
        let shared = builder.add(0, stream.event_context.as_deref(), event_context);
        if let Some(packet) = packet {
            builder.add_fields(packet, Scope::PacketContext);
        }
        if builder.fields.len() > usize::from(u16::MAX) {
            return Err(refuse(format!(
                "event '{}' has too many fields",
                event.name
            )));
        }
        let mut layout = BodyLayout::new([shared, context, payload], builder.places);
        layout.cpu = cpu_in_event(&builder.fields);
        Ok(Body {
            fields: builder.fields.into(),
            layout: Arc::new(layout),
            slots: self.slots,
        })
    }

    /// The structure of a whole scope.
    fn scope(&mut self, scope: Scope, ty: &Type) -> Result<Node> {
        let TypeKind::Struct(_) = ty.kind else {
            return Err(refuse(format!("{scope:?} is no structure")));
        };
        self.scope = scope;
        self.frames.clear();
        let mut node = self.node(ty)?;
        // Nothing comes after a payload that could refer to it.
        if scope != Scope::Payload {
            self.remember(scope, &mut node, &mut String::new())?;
        }
        Ok(node)
    }

    fn node(&mut self, ty: &Type) -> Result<Node> {
        let align_bits = ty.align_bits;
        let plain = |kind, size_bits| Node {
            kind,
            align_bits,
            size_bits,
            keeps: false,
        };
        Ok(match &ty.kind {
            TypeKind::Integer(int) => self.integer(int, Shows::Number, None, align_bits)?,
            TypeKind::Enum(int, labels) => {
                self.integer(int, Shows::Label, Some(labels), align_bits)?
            }
            TypeKind::Bool(int) => self.integer(int, Shows::Truth, None, align_bits)?,
            TypeKind::Flags(int, labels) => {
                self.integer(int, Shows::Flags, Some(labels), align_bits)?
            }
            TypeKind::Float {
                size_bits,
                big_endian,
            } => {
                let load = IntLoad {
                    size_bits: *size_bits,
                    signed: false,
                    order: Order::of(*big_endian),
                };
                plain(NodeKind::Float { load }, Some(u64::from(*size_bits)))
            }
            TypeKind::String => plain(NodeKind::String, None),
            TypeKind::WideString { encoding, length } => {
                let (span, size_bits) = self.span(length)?;
                let encoding = *encoding;
                plain(NodeKind::Wide { encoding, span }, size_bits)
            }
            TypeKind::Blob { length, .. } => {
                let (span, size_bits) = self.span(length)?;
                plain(NodeKind::Blob(span), size_bits)
            }
            TypeKind::Struct(members) => self.structure(members, align_bits)?,
            TypeKind::Array { element, count } => {
                self.array(element, *count, element.is_character(), align_bits)?
            }
            TypeKind::Sequence { element, length } => self.sequence(element, length, align_bits)?,
            TypeKind::Variant {
                selector,
                choices,
                ranges,
            } => self.variant(selector.as_ref(), choices, ranges.as_deref(), align_bits)?,
            TypeKind::Optional {
                selector,
                content,
                ranges,
            } => self.optional(selector, content, ranges.as_ref(), align_bits)?,
        })
    }

    fn array(&mut self, element: &Type, count: u64, text: bool, align_bits: u32) -> Result<Node> {
        let element = Box::new(self.node(element)?);
        Ok(Node {
            align_bits,
            size_bits: array_size(&element, count),
            keeps: element.keeps,
            kind: NodeKind::Array {
                element,
                count,
                text,
            },
        })
    }

    fn sequence(&mut self, element: &Type, length: &Reference, align_bits: u32) -> Result<Node> {
        let slot = self.target(length)?.slot.unwrap_or_default();
        let text = element.is_character();
        let element = Box::new(self.node(element)?);
        Ok(Node {
            align_bits,
            size_bits: None,
            keeps: element.keeps,
            kind: NodeKind::Sequence {
                element,
                slot,
                text,
            },
        })
    }

    fn optional(
        &mut self,
        selector: &Reference,
        content: &Type,
        ranges: Option<&Vec<(i128, i128)>>,
        align_bits: u32,
    ) -> Result<Node> {
        let target = self.target(selector)?;
        let content = Box::new(self.node(content)?);
        Ok(Node {
            align_bits,
            size_bits: None,
            keeps: content.keeps,
            kind: NodeKind::Optional {
                slot: target.slot.unwrap_or_default(),
                signed: target.signed,
                content,
                ranges: ranges.cloned(),
            },
        })
    }

    /// How long a text or blob is, and its size when that does not depend on data.
    fn span(&mut self, length: &Extent) -> Result<(Span, Option<u64>)> {
        Ok(match length {
            Extent::Terminated => (Span::Terminated, None),
            Extent::Bytes(bytes) => (Span::Bytes(*bytes), bytes.checked_mul(8)),
            Extent::Field(reference) => {
                let target = self.target(reference)?;
                (Span::Slot(target.slot.unwrap_or_default()), None)
            }
        })
    }

    fn integer(
        &mut self,
        int: &IntType,
        shows: Shows,
        mappings: Option<&Arc<[Mapping]>>,
        align_bits: u32,
    ) -> Result<Node> {
        let event::Integer {
            size_bits,
            signed,
            big_endian,
            ..
        } = int.integer;
        let order = match (int.storage, big_endian) {
            (Storage::Plain, big_endian) => Order::of(big_endian),
            (Storage::Reversed, false) => Order::LittleReversed,
            (Storage::Reversed, true) => Order::BigReversed,
            (Storage::Leb128, _) => Order::Leb128,
        };
        let load = IntLoad {
            size_bits,
            signed,
            order,
        };
        let role = match int.role {
            Role::None => self.clock_role(int),
            role => role,
        };
        let kind = NodeKind::Int(IntNode {
            load,
            slot: None,
            later_slot: None,
            role,
            shows,
            mappings: mappings.cloned(),
        });
        let keeps = role != Role::None;
        Ok(Node {
            kind,
            align_bits,
            size_bits: (order != Order::Leb128).then_some(u64::from(size_bits)),
            keeps,
        })
    }

    fn structure(&mut self, members: &[Member], align_bits: u32) -> Result<Node> {
        self.frames.push(Frame {
            members: Vec::with_capacity(members.len()),
            open: None,
        });
        for member in members {
            if let Some(frame) = self.frames.last_mut() {
                frame.open = Some(member.name.clone());
            }
            let node = self.member(member, false)?;
            if let Some(frame) = self.frames.last_mut() {
                frame.members.push(node);
            }
        }
        let mut members = self.frames.pop().unwrap_or_default().members;
        let mut end = Some(0);
        for member in &mut members {
            let start = end.map(|end| align_up(end, member.node.align_bits));
            member.offset_bits = start;
            end = start.and_then(|start| start.checked_add(member.node.size_bits?));
        }
        let keeps = members.iter().any(|member| member.node.keeps);
        Ok(Node {
            kind: NodeKind::Struct(members),
            align_bits,
            size_bits: end,
            keeps,
        })
    }

    fn member(&mut self, member: &Member, is_choice: bool) -> Result<MemberNode> {
        let mut node = self.node(&member.ty)?;
        self.name_role(member, &mut node, is_choice);
        Ok(MemberNode {
            name: member.name.clone(),
            escaped: member.escaped,
            node,
            offset_bits: None,
        })
    }

    fn variant(
        &mut self,
        selector: Option<&Reference>,
        choices: &[Member],
        ranges: Option<&[Range]>,
        align_bits: u32,
    ) -> Result<Node> {
        let Some(selector) = selector else {
            return Err(refuse("a variant without a selector".to_owned()));
        };
        let target = self.target(selector)?;
        let ranges = match (ranges, &target.mappings) {
            (Some(ranges), _) => ranges.to_vec(),
            (None, Some(mappings)) => named_ranges(mappings, choices),
            (None, None) => {
                return Err(refuse(format!(
                    "'{}' selects, but is no enumeration",
                    selector.text()
                )));
            }
        };
        // A choice's inside may refer to what stands before the variant.
        let nodes: Vec<MemberNode> = choices
            .iter()
            .map(|choice| self.member(choice, true))
            .collect::<Result<_>>()?;
        let keeps = nodes.iter().any(|choice| choice.node.keeps);
        let slot = target.slot.unwrap_or_default();
        let kind = NodeKind::Variant {
            slot,
            signed: target.signed,
            choices: nodes,
            ranges,
        };
        Ok(Node {
            kind,
            align_bits,
            size_bits: None,
            keeps,
        })
    }
}

/// Selector values by the labels that name the choices.
fn named_ranges(mappings: &[Mapping], choices: &[Member]) -> Vec<Range> {
    let named = |label: &str| {
        let exact = choices.iter().position(|choice| choice.name == label);
        exact.or_else(|| {
            choices
                .iter()
                .position(|choice| shown(&choice.name) == label)
        })
    };
    let range = |mapping: &Mapping| {
        let choice = named(&mapping.label)? as u32;
        Some(Range {
            first: mapping.first,
            last: mapping.last,
            choice,
        })
    };
    let mut ranges: Vec<Range> = mappings.iter().filter_map(range).collect();
    // Of several labels of one value the one of the first choice counts.
    ranges.sort_by_key(|range| range.choice);
    ranges
}

/// The size of `count` aligned elements, when each has a fixed size.
fn array_size(element: &Node, count: u64) -> Option<u64> {
    let size = element.size_bits?;
    let stride = align_up(size, element.align_bits);
    match count.checked_sub(1) {
        None => Some(0),
        Some(before_last) => stride.checked_mul(before_last)?.checked_add(size),
    }
}
