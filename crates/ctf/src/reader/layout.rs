//! Types with their references resolved, their sizes and offsets worked out: all that decoding
//! needs, made once at open.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use event::{ClassId, Error, ErrorKind, EventClass, Result, Scope};

use super::bits::{IntLoad, align_up};
use super::schema::{ClockInfo, Declarations, EventDeclaration, Schema, StreamDeclaration};
use super::types::{IntType, Mapping, Member, Type, TypeKind, fields, shown};

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
}

#[derive(Debug)]
pub(crate) struct IntNode {
    pub load: IntLoad,
    /// Where the value is kept for a later length or selector.
    pub slot: Option<u16>,
    pub role: Role,
    pub mappings: Option<Arc<[Mapping]>>,
}

/// What an integer means to the decoder itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    None,
    EventId,
    /// The value of the clock of this index.
    Clock(u32),
}

#[derive(Debug)]
pub(crate) struct MemberNode {
    /// As the metadata spells it.
    pub name: String,
    pub node: Node,
    /// From the start of the structure, while everything before has a fixed size.
    pub offset_bits: Option<u64>,
}

impl MemberNode {
    /// The name as people see it.
    pub fn shown(&self) -> &str {
        shown(&self.name)
    }
}

/// Selector values that mean one choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub first: i128,
    pub last: i128,
    pub choice: u32,
}

/// The scopes of an event's body, in the order of their bytes.
pub(crate) const BODY: [Scope; 3] = [Scope::StreamContext, Scope::EventContext, Scope::Payload];

/// An event class as the decoder uses it.
#[derive(Debug)]
pub(crate) struct ClassLayout {
    pub class: ClassId,
    /// The structures of [`BODY`]; the stream's own context is shared by all of its classes.
    pub scopes: [Option<ScopeLayout>; 3],
    /// Where each field of the class is.
    pub places: Vec<Place>,
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
    String,
    Text { size_bytes: u64 },
    Other,
}

impl Load {
    fn of(node: &Node) -> Load {
        match &node.kind {
            NodeKind::Int(int) => Load::Int(int.load),
            NodeKind::String => Load::String,
            NodeKind::Array {
                count, text: true, ..
            } => Load::Text { size_bytes: *count },
            _ => Load::Other,
        }
    }
}

/// A stream class as the decoder uses it.
#[derive(Debug)]
pub(crate) struct StreamLayout {
    pub header: Option<Node>,
    pub quick_header: Option<QuickHeader>,
    pub packet_context: Option<Node>,
    /// Indexed by event id when ids are small; the rest in the map.
    pub by_id: Vec<Option<Arc<ClassLayout>>>,
    pub by_large_id: HashMap<u64, Arc<ClassLayout>>,
    /// The clock that its timestamps are on.
    pub clock: Option<u32>,
    pub slot_count: usize,
    pub field_count: usize,
}

/// LTTng's headers, decoded without a walk while the id is below the extended one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QuickHeader {
    /// 5 bits of id, 27 bits of time.
    Compact { align_bits: u32, big_endian: bool },
    /// 16 bits of id, 32 bits of time.
    Large {
        align_bits: u32,
        time_align_bits: u32,
        big_endian: bool,
    },
}

/// Ids below this are looked up in a list.
const LISTED_IDS: u64 = 1 << 16;

fn refuse(found: String) -> Error {
    Error::new(ErrorKind::Corrupt, "cannot understand the trace's metadata")
        .found(found)
        .mend("copy the trace again: its file 'metadata' is cut or damaged")
}

/// Layouts of everything that was declared.
pub(super) fn compile(mut declared: Declarations) -> Result<Schema> {
    let mut classes = Vec::new();
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
    }
    let Declarations {
        environment,
        clocks,
        uuid,
        ..
    } = declared;
    Ok(Schema {
        environment,
        clocks,
        uuid,
        classes,
        streams,
        packet_header,
    })
}

/// Timestamps without a clock are read as nanoseconds of a clock without a name.
fn add_default_clock(declared: &mut Declarations) {
    let timed = |stream: &StreamDeclaration| {
        let has = |ty: &Option<Arc<Type>>, name: &str| match ty.as_deref().map(|ty| &ty.kind) {
            Some(TypeKind::Struct(members)) => members.iter().any(|m| shown(&m.name) == name),
            _ => false,
        };
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

struct Compiler<'d> {
    declared: &'d Declarations,
    keep_shared: bool,
    /// A reference into a shared scope whose values were not kept.
    missed_shared: bool,
    scope: Scope,
    /// Members of the structures that are being built, outermost first.
    frames: Vec<Vec<MemberNode>>,
    /// Names, slots and signs of all integers of the shared scopes, with dots between.
    shared: HashMap<(Scope, String), Target>,
    slots: u16,
    clock: Option<u32>,
}

/// An integer that a length or selector refers to.
#[derive(Clone, Debug)]
struct Target {
    slot: Option<u16>,
    signed: bool,
    mappings: Option<Arc<[Mapping]>>,
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
            packet_context,
            by_id: Vec::new(),
            by_large_id: HashMap::new(),
            clock: self.clock,
            slot_count: 0,
            field_count: 0,
        };
        let (shared_slots, mut slot_count) = (self.slots, self.slots);
        for event in events {
            self.slots = shared_slots;
            let compiled = self.class(id, stream, event, event_context.clone(), classes.len())?;
            slot_count = slot_count.max(self.slots);
            layout.field_count = layout.field_count.max(compiled.0.fields.len());
            classes.push(compiled.0);
            layout.add(event, compiled.1)?;
        }
        layout.slot_count = usize::from(slot_count);
        Ok(layout)
    }

    fn class(
        &mut self,
        stream_id: u64,
        stream: &StreamDeclaration,
        event: &EventDeclaration,
        event_context: Option<Arc<Node>>,
        index: usize,
    ) -> Result<(EventClass, ClassLayout)> {
        self.shared
            .retain(|(scope, _), _| !matches!(scope, Scope::EventContext | Scope::Payload));
        let context = event.context.as_deref();
        let context = context
            .map(|ty| self.scope(Scope::EventContext, ty))
            .transpose()?;
        let payload = event.fields.as_deref();
        let payload = payload
            .map(|ty| self.scope(Scope::Payload, ty))
            .transpose()?;
        let mut builder = PlaceBuilder::default();
        let payload = builder.add(2, event.fields.as_deref(), payload.map(Arc::new));
        let context = builder.add(1, event.context.as_deref(), context.map(Arc::new));
        let shared = builder.add(0, stream.event_context.as_deref(), event_context);
        builder.add_packet(stream.packet_context.as_deref());
        if builder.fields.len() > usize::from(u16::MAX) {
            return Err(refuse(format!(
                "event '{}' has too many fields",
                event.name
            )));
        }
        let class = ClassId(index as u32);
        let layout = ClassLayout {
            class,
            scopes: [shared, context, payload],
            places: builder.places,
        };
        let stream = stream_id as u32;
        let face = EventClass {
            id: class,
            name: event.name.clone(),
            stream,
            fields: builder.fields,
        };
        Ok((face, layout))
    }

    /// The structure of a whole scope.
    fn scope(&mut self, scope: Scope, ty: &Type) -> Result<Node> {
        let TypeKind::Struct(_) = ty.kind else {
            return Err(refuse(format!("{scope:?} is no structure")));
        };
        self.scope = scope;
        self.frames.clear();
        let mut node = self.node(ty)?;
        self.remember(scope, &mut node, &mut String::new());
        Ok(node)
    }

    /// Notes each integer of a finished scope, for references from later ones.
    fn remember(&mut self, scope: Scope, node: &mut Node, path: &mut String) {
        match &mut node.kind {
            NodeKind::Int(int) => {
                let target = Target {
                    slot: int.slot,
                    signed: int.load.signed,
                    mappings: int.mappings.clone(),
                };
                self.shared.insert((scope, path.clone()), target);
            }
            NodeKind::Struct(members) => {
                let length = path.len();
                for member in members {
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(&member.name);
                    self.remember(scope, &mut member.node, path);
                    path.truncate(length);
                }
            }
            _ => {}
        }
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
            TypeKind::Integer(int) => self.integer(int, None, align_bits)?,
            TypeKind::Enum(int, mappings) => self.integer(int, Some(mappings), align_bits)?,
            TypeKind::Float {
                size_bits,
                big_endian,
            } => {
                let load = IntLoad {
                    size_bits: *size_bits,
                    signed: false,
                    big_endian: *big_endian,
                };
                plain(NodeKind::Float { load }, Some(u64::from(*size_bits)))
            }
            TypeKind::String => plain(NodeKind::String, None),
            TypeKind::Struct(members) => self.structure(members, align_bits)?,
            TypeKind::Array { element, count } => {
                let element = Box::new(self.node(element)?);
                let size_bits = array_size(&element, *count);
                let (keeps, text) = (
                    element.keeps,
                    matches!(ty.face, event::FieldType::Text { .. }),
                );
                let kind = NodeKind::Array {
                    element,
                    count: *count,
                    text,
                };
                Node {
                    kind,
                    align_bits,
                    size_bits,
                    keeps,
                }
            }
            TypeKind::Sequence { element, length } => {
                let slot = self.target(length)?.slot.unwrap_or_default();
                let text = matches!(&element.kind, TypeKind::Integer(int)
                    if int.integer.text && int.integer.size_bits == 8 && int.integer.align_bits == 8);
                let element = Box::new(self.node(element)?);
                let keeps = element.keeps;
                let kind = NodeKind::Sequence {
                    element,
                    slot,
                    text,
                };
                Node {
                    kind,
                    align_bits,
                    size_bits: None,
                    keeps,
                }
            }
            TypeKind::Variant { selector, choices } => {
                self.variant(selector.as_deref(), choices, align_bits)?
            }
        })
    }

    fn integer(
        &mut self,
        int: &IntType,
        mappings: Option<&Arc<[Mapping]>>,
        align_bits: u32,
    ) -> Result<Node> {
        let packet = matches!(self.scope, Scope::PacketHeader | Scope::PacketContext);
        let shared = !packet && self.scope != Scope::Payload;
        let slot = (packet || shared && self.keep_shared)
            .then(|| self.new_slot())
            .transpose()?;
        let event::Integer {
            size_bits,
            signed,
            big_endian,
            ..
        } = int.integer;
        let load = IntLoad {
            size_bits,
            signed,
            big_endian,
        };
        let role = self.clock_role(int);
        let kind = NodeKind::Int(IntNode {
            load,
            slot,
            role,
            mappings: mappings.cloned(),
        });
        let size_bits = Some(u64::from(size_bits));
        let keeps = slot.is_some() || role != Role::None;
        Ok(Node {
            kind,
            align_bits,
            size_bits,
            keeps,
        })
    }

    fn clock_role(&mut self, int: &IntType) -> Role {
        let timed = matches!(self.scope, Scope::PacketContext | Scope::EventHeader);
        let Some(name) = int.clock.as_ref().filter(|_| timed) else {
            return Role::None;
        };
        let place = self
            .declared
            .clocks
            .iter()
            .position(|clock| clock.name == *name);
        place.map_or(Role::None, |place| self.use_clock(place as u32))
    }

    fn use_clock(&mut self, clock: u32) -> Role {
        Role::Clock(*self.clock.get_or_insert(clock))
    }

    fn structure(&mut self, members: &[Member], align_bits: u32) -> Result<Node> {
        self.frames.push(Vec::with_capacity(members.len()));
        for member in members {
            let mut node = self.node(&member.ty)?;
            self.name_role(&member.name, &mut node);
            let member = MemberNode {
                name: member.name.clone(),
                node,
                offset_bits: None,
            };
            if let Some(frame) = self.frames.last_mut() {
                frame.push(member);
            }
        }
        let mut members = self.frames.pop().unwrap_or_default();
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

    /// Roles that follow from a name: the event's id, and timestamps that map no clock.
    fn name_role(&mut self, name: &str, node: &mut Node) {
        let scope = self.scope;
        let only_clock = (self.declared.clocks.len() == 1).then_some(0);
        let NodeKind::Int(int) = &mut node.kind else {
            return;
        };
        match (scope, shown(name)) {
            (Scope::EventHeader, "id") => {
                int.role = Role::EventId;
                node.keeps = true;
            }
            // The end of a packet must not set the clock at its begin.
            (Scope::PacketContext, "timestamp_end") => int.role = Role::None,
            (Scope::EventHeader, "timestamp") | (Scope::PacketContext, "timestamp_begin")
                if int.role == Role::None =>
            {
                int.role = only_clock.map_or(Role::None, |clock| self.use_clock(clock));
                node.keeps = true;
            }
            _ => {}
        }
    }

    fn variant(
        &mut self,
        selector: Option<&[String]>,
        choices: &[Member],
        align_bits: u32,
    ) -> Result<Node> {
        let Some(selector) = selector else {
            return Err(refuse("a variant without a selector".to_owned()));
        };
        let target = self.target(selector)?;
        let Some(mappings) = &target.mappings else {
            return Err(refuse(format!(
                "'{}' selects, but is no enumeration",
                selector.join(".")
            )));
        };
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
        let ranges = mappings.iter().filter_map(range).collect();
        let mut nodes = Vec::with_capacity(choices.len());
        for choice in choices {
            // A choice's inside may refer to what stands before the variant.
            let mut node = self.node(&choice.ty)?;
            self.name_role(&choice.name, &mut node);
            nodes.push(MemberNode {
                name: choice.name.clone(),
                node,
                offset_bits: None,
            });
        }
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

    fn new_slot(&mut self) -> Result<u16> {
        let slot = self.slots;
        self.slots = slot
            .checked_add(1)
            .ok_or_else(|| refuse("too many references".to_owned()))?;
        Ok(slot)
    }

    /// The integer that `path` names: in the structures around, innermost first; by an absolute
    /// path; in an earlier scope.
    fn target(&mut self, path: &[String]) -> Result<Target> {
        let (scope, rest) = absolute(path);
        let unknown = || refuse(format!("'{}' refers to nothing before it", path.join(".")));
        if scope.is_none_or(|scope| scope == self.scope) {
            let frames = match scope {
                None => self.frames.as_mut_slice(),
                Some(_) => self.frames.get_mut(..1).unwrap_or_default(),
            };
            let found = frames.iter_mut().rev().find_map(|frame| find(frame, rest));
            if let Some(int) = found {
                if int.slot.is_none() {
                    int.slot = Some(self.slots);
                    self.slots = self.slots.checked_add(1).ok_or_else(unknown)?;
                }
                let mappings = int.mappings.clone();
                return Ok(Target {
                    slot: int.slot,
                    signed: int.load.signed,
                    mappings,
                });
            }
        }
        let scopes = match scope {
            Some(scope) => vec![scope],
            None => vec![
                Scope::EventContext,
                Scope::StreamContext,
                Scope::EventHeader,
                Scope::PacketContext,
                Scope::PacketHeader,
            ],
        };
        let name = rest.join(".");
        let found = scopes
            .into_iter()
            .find_map(|scope| self.shared.get(&(scope, name.clone())));
        let target = found.cloned().ok_or_else(unknown)?;
        self.missed_shared |= target.slot.is_none();
        Ok(target)
    }
}

/// The integer at `path` below these members; everything on the way is marked as keeping a value.
fn find<'m>(members: &'m mut [MemberNode], path: &[String]) -> Option<&'m mut IntNode> {
    let (first, rest) = path.split_first()?;
    let member = members.iter_mut().rfind(|member| member.name == *first)?;
    let node = &mut member.node;
    match &mut node.kind {
        NodeKind::Int(int) if rest.is_empty() => {
            node.keeps = true;
            Some(int)
        }
        NodeKind::Struct(members) => {
            let found = find(members, rest)?;
            node.keeps = true;
            Some(found)
        }
        _ => None,
    }
}

/// `stream.event.header.id` → its scope and the path inside.
fn absolute(path: &[String]) -> (Option<Scope>, &[String]) {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match words[..] {
        ["trace", "packet", "header", _, ..] => (Some(Scope::PacketHeader), &path[3..]),
        ["stream", "packet", "context", _, ..] => (Some(Scope::PacketContext), &path[3..]),
        ["stream", "event", "header", _, ..] => (Some(Scope::EventHeader), &path[3..]),
        ["stream", "event", "context", _, ..] => (Some(Scope::StreamContext), &path[3..]),
        ["event", "context", _, ..] => (Some(Scope::EventContext), &path[2..]),
        ["event", "fields", _, ..] => (Some(Scope::Payload), &path[2..]),
        _ => (None, path),
    }
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

/// Lists the fields of a class, payload first, with their places.
#[derive(Default)]
struct PlaceBuilder {
    fields: Vec<event::Field>,
    places: Vec<Place>,
}

impl PlaceBuilder {
    fn add(&mut self, body: u8, ty: Option<&Type>, node: Option<Arc<Node>>) -> Option<ScopeLayout> {
        let (ty, node) = (ty?, node?);
        let first_field = self.fields.len();
        let (TypeKind::Struct(types), NodeKind::Struct(members)) = (&ty.kind, &node.kind) else {
            return None;
        };
        self.fields.extend(fields(types, BODY[usize::from(body)]));
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

    fn add_packet(&mut self, ty: Option<&Type>) {
        let Some(TypeKind::Struct(members)) = ty.map(|ty| &ty.kind) else {
            return;
        };
        self.fields.extend(fields(members, Scope::PacketContext));
        for member in 0..members.len() as u16 {
            let load = Load::Other;
            self.places.push(Place {
                at: At::Packet,
                load,
                body: u8::MAX,
                member,
            });
        }
    }
}

impl StreamLayout {
    fn add(&mut self, event: &EventDeclaration, layout: ClassLayout) -> Result<()> {
        let layout = Arc::new(layout);
        let before = if event.id < LISTED_IDS {
            let place = event.id as usize;
            if self.by_id.len() <= place {
                self.by_id.resize(place + 1, None);
            }
            self.by_id[place].replace(layout)
        } else {
            self.by_large_id.insert(event.id, layout)
        };
        match before {
            None => Ok(()),
            Some(_) => Err(refuse(format!("event id {} twice in one stream", event.id))),
        }
    }

    /// The class of an id.
    #[inline]
    pub fn class(&self, id: u64) -> Option<&ClassLayout> {
        match self.by_id.get(id as usize) {
            Some(class) if id < LISTED_IDS => class.as_deref(),
            _ => self.by_large_id.get(&id).map(|class| &**class),
        }
    }
}

/// Recognises LTTng's two headers.
fn quick_header(header: &Node) -> Option<QuickHeader> {
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
    let big_endian = id_int.load.big_endian;
    let timed = matches!(time_int.role, Role::Clock(_)) && time_int.load.big_endian == big_endian;
    if !timed || id_int.role != Role::EventId || id_int.load.signed || time_int.load.signed {
        return None;
    }
    let align_bits = header.align_bits.max(8);
    let time_align_bits = time.node.align_bits;
    let whole_bytes = header.align_bits.is_multiple_of(8);
    match (id_int.load.size_bits, time_int.load.size_bits, last) {
        (5, 27, 30) if time_align_bits == 1 && whole_bytes => Some(QuickHeader::Compact {
            align_bits,
            big_endian,
        }),
        (16, 32, 65534) if time_align_bits.is_multiple_of(8) && whole_bytes => {
            Some(QuickHeader::Large {
                align_bits,
                time_align_bits,
                big_endian,
            })
        }
        _ => None,
    }
}
