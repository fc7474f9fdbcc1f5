//! One stream file, packet by packet and event by event.

mod cut;
mod hole;
mod packets;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use self::cut::cut_at;
pub use self::hole::Hole;
use self::packets::Route;
use super::ahead::{Ahead, Head, Manner, Reached};
use super::bits::align_up;
use super::event_ref::EventRef;
use super::header::{self, ByteHeader};
use super::index::Edge;
use super::layout::{Node, NodeKind, Place, ScopeLayout, UNSAID_ID};
use super::packet::Packet;
use super::pass::Passing;
use super::scale::TimeScale;
use super::schema::Schema;
use super::walk::{Content, State, Stop};
use super::window::{Source, Window};

/// One step through a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// [`StreamReader::event`] is the next event.
    Event,
    /// Events are missing before the packet that begins here.
    Lost(Loss),
    /// Bytes that could not be understood; what can be read after them follows.
    Damage(BadBytes),
    /// The time of events that could not be read: after each damage there is one.
    Unread(Hole),
    /// No more data.
    End,
}

/// A hole between two packets, or at most inside of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The end of the packet before.
    pub begin_ns: i64,
    /// The begin of the packet after.
    pub packet_begin_ns: i64,
    /// The end of the packet after: the counter was read there.
    pub packet_end_ns: i64,
    /// How many events, when the tracer counted them.
    pub events: Option<u64>,
}

/// Where bytes could not be understood, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBytes {
    /// The offset in the stream file.
    pub offset_bytes: u64,
    /// What was found.
    pub reason: String,
}

/// Why an event cannot be read.
enum BadEvent {
    Stop(Stop),
    UnknownId(u64),
    Empty,
    /// The clock, in ticks, at which no instant can be.
    Time(u64),
    /// The clock, in ticks, behind the end of the packet.
    Late(u64),
}

impl From<Stop> for BadEvent {
    fn from(stop: Stop) -> Self {
        BadEvent::Stop(stop)
    }
}

impl std::fmt::Display for BadEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BadEvent::Stop(stop) => stop.fmt(f),
            BadEvent::UnknownId(UNSAID_ID) => {
                f.write_str("an event without an id, where its stream has several classes")
            }
            BadEvent::UnknownId(id) => write!(f, "the unknown event id {id}"),
            BadEvent::Empty => f.write_str("an event without any byte"),
            BadEvent::Time(ticks) => {
                write!(f, "an event at {ticks} ticks of its clock, beyond all time")
            }
            BadEvent::Late(ticks) => write!(
                f,
                "an event at {ticks} ticks of its clock, behind the end of its packet"
            ),
        }
    }
}

/// How much of a file is read at once, when nobody says.
const PIECE_BYTES: usize = 256 << 10;

/// Reads one stream file.
#[derive(Debug)]
pub struct StreamReader<'a> {
    schema: &'a Schema,
    window: Window<'a>,
    /// The file's size when it was last asked for.
    size_bytes: u64,
    route: Option<Route<'a>>,
    /// Where the open packet begins in the file; where the next one does, when none is open.
    packet_offset: u64,
    packet: Option<Packet<'a>>,
    /// The end of the packet before.
    previous: Option<Edge>,
    scale: TimeScale<'a>,
    /// The file's offset from which positions are counted, in bits.
    base: u64,
    position: u64,
    /// Where the content ends, and where the part of it ends that is in memory.
    content_end: u64,
    window_end: u64,
    /// The header and context of a packet of which only a later part is in memory.
    head: Vec<u8>,
    state: State,
    /// The header that events can be read ahead by.
    byte_header: Option<ByteHeader>,
    ahead: Ahead<'a>,
    /// The bytes in memory before the content.
    content_at: usize,
    /// Where the scopes of the current event begin, when its class is not packed.
    bases: [u64; 3],
    /// Where walked fields of the current event begin, by field.
    walked: Vec<u64>,
    /// Where the members of the packet's context begin.
    packet_positions: Vec<u64>,
    /// The integers among them, which are asked for with each event; zero for others.
    packet_numbers: Vec<u64>,
    time_ns: i64,
    /// When the open packet begins.
    packet_begin_ns: i64,
    /// No event of the open packet is later, in ticks.
    packet_end_ticks: u64,
    /// What could not be read and whose end is not known yet.
    hole: Option<Hole>,
    /// What is to be handed out before reading goes on.
    waiting: VecDeque<Step>,
    /// The CPU of the open packet.
    cpu: Option<u32>,
    /// What is added to the numbers of classes.
    first_class: u32,
    /// Events that nobody wants are passed over.
    passing: Option<Box<Passing>>,
    /// Packets that begin here or later are not read.
    until_ns: i64,
    /// Ends the reading once it is raised.
    stop: Option<Arc<AtomicBool>>,
    /// Nobody knows what comes behind the end of the file.
    is_unfinished: bool,
    done: bool,
}

impl<'a> StreamReader<'a> {
    /// A reader at the start of a stream file's bytes.
    pub fn new(schema: &'a Schema, bytes: &'a [u8]) -> Self {
        StreamReader::from_source(schema, Source::Bytes(bytes), PIECE_BYTES)
    }

    pub(super) fn from_source(schema: &'a Schema, source: Source<'a>, piece_bytes: usize) -> Self {
        let fields = schema.streams.values().map(|stream| stream.field_count);
        StreamReader {
            schema,
            window: Window::new(source, piece_bytes),
            size_bytes: 0,
            route: None,
            packet_offset: 0,
            packet: None,
            previous: None,
            scale: TimeScale::NONE,
            base: 0,
            position: 0,
            content_end: 0,
            window_end: 0,
            head: Vec::new(),
            state: State::new(schema),
            byte_header: None,
            ahead: Ahead::default(),
            content_at: 0,
            bases: [0; 3],
            walked: vec![0; fields.max().unwrap_or(0)],
            packet_positions: Vec::new(),
            packet_numbers: Vec::new(),
            time_ns: 0,
            packet_begin_ns: i64::MIN,
            packet_end_ticks: u64::MAX,
            hole: None,
            waiting: VecDeque::new(),
            cpu: None,
            first_class: 0,
            passing: None,
            until_ns: i64::MAX,
            stop: None,
            is_unfinished: false,
            done: false,
        }
    }

    /// The same with classes numbered from `first` on, where several traces are read as one.
    #[must_use]
    pub fn with_first_class(self, first: u32) -> Self {
        StreamReader {
            first_class: first,
            ..self
        }
    }

    /// The same without the events of classes that are not `wanted`, by their numbers in the
    /// schema; a class beyond the list is wanted.
    #[must_use]
    pub fn with_wanted(self, wanted: Arc<[bool]>) -> Self {
        StreamReader {
            passing: Some(Box::new(Passing::new(wanted))),
            ..self
        }
    }

    /// The same without the packets from the first one on that begins at `until_ns` or later, where
    /// packets follow each other in time.
    #[must_use]
    pub fn until(self, until_ns: i64) -> Self {
        let ordered = |route: &Route<'_>| route.index.packets_back_in_time == 0;
        match self.route.as_ref().is_none_or(ordered) {
            true => StreamReader { until_ns, ..self },
            false => self,
        }
    }

    /// The same that hands out these steps first.
    #[must_use]
    pub fn after(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.waiting.extend(steps);
        self
    }

    /// The same of a file whose writer was killed: what comes behind its last packet was not read.
    #[must_use]
    pub fn unfinished(self) -> Self {
        StreamReader {
            is_unfinished: true,
            ..self
        }
    }

    /// The same that ends early once `stop` is raised, which is looked at for each packet and each
    /// piece of one: events that are passed over hand out nothing at which a caller could end it.
    #[must_use]
    pub fn with_stop(self, stop: Arc<AtomicBool>) -> Self {
        StreamReader {
            stop: Some(stop),
            ..self
        }
    }

    fn is_stopped(&self) -> bool {
        let raised = |stop: &Arc<AtomicBool>| stop.load(Ordering::Relaxed);
        self.stop.as_ref().is_some_and(raised)
    }

    #[inline]
    pub(super) fn first_class(&self) -> u32 {
        self.first_class
    }

    /// Goes one step further.
    #[inline]
    pub fn step(&mut self) -> Step {
        match self.advance() {
            Ok(()) => Step::Event,
            Err(other) => *other,
        }
    }

    /// Goes one step further, most often to an event.
    ///
    /// # Errors
    /// Every other step.
    #[inline]
    pub fn advance(&mut self) -> Result<(), Box<Step>> {
        let Some(head) = self.ahead.advance() else {
            return self.advance_far();
        };
        self.time_ns = head.time_ns;
        if head.layout.packed.is_none() {
            self.place_body();
        }
        Ok(())
    }

    /// Finds the fields of an event that was read ahead.
    #[inline(never)]
    fn place_body(&mut self) {
        let Some(Head {
            layout, body_at, ..
        }) = self.ahead.current()
        else {
            return;
        };
        let bytes = self.window.after(self.content_at);
        let parts = (&mut self.bases, &mut self.walked[..]);
        // It is whole in memory: reading ahead came to its end.
        let placed = layout
            .steps
            .as_ref()
            .and_then(|steps| steps.place(bytes, *body_at as usize, &mut self.state.slots, parts));
        debug_assert!(placed.is_some());
    }

    /// The same when nothing is read ahead.
    #[inline(never)]
    fn advance_far(&mut self) -> Result<(), Box<Step>> {
        loop {
            if !self.waiting.is_empty() {
                return Err(Box::new(self.next_waiting()));
            }
            if self.read_ahead() {
                return self.advance();
            }
            if self.passing.is_some() {
                self.pass_over();
            }
            if self.state.clock > self.packet_end_ticks && self.packet.is_some() {
                let late = BadEvent::Late(self.state.clock);
                return Err(Box::new(self.give_up_packet(&late)));
            }
            if self.position < self.content_end {
                match self.read_event() {
                    Ok(()) => return Ok(()),
                    Err(BadEvent::Stop(Stop::Truncated)) if self.slide() => continue,
                    Err(bad) => return Err(Box::new(self.give_up_packet(&bad))),
                }
            }
            if let Some(step) = self.step_packet() {
                self.ahead.set_current(None);
                return Err(Box::new(step));
            }
        }
    }

    /// The event that the last step met; none when it met none.
    #[inline]
    pub fn event(&self) -> Option<EventRef<'_>> {
        let head = self.ahead.current()?;
        let skipped = self.content_at.wrapping_add(head.body_at as usize);
        Some(EventRef {
            class: head.class,
            layout: head.layout,
            reader: self,
            body: self.window.after(skipped),
        })
    }

    /// Whether the stream of the open packet has a clock.
    pub(super) fn is_timed(&self) -> bool {
        self.scale.known
    }

    /// The clock of the stream at the current event.
    pub(super) fn ticks(&self) -> u64 {
        self.ahead.current().map_or(0, |head| head.ticks)
    }

    /// Where the body of the current event of a packed class begins.
    #[inline]
    pub(super) fn body(&self) -> u64 {
        self.ahead
            .current()
            .map_or(0, |head| u64::from(head.body_at) * 8)
    }

    /// Where the scope of the current event begins.
    #[inline]
    pub(super) fn base_of(&self, body: u8) -> u64 {
        self.bases.get(usize::from(body)).copied().unwrap_or(0)
    }

    /// Where the walk met a field of the current event.
    pub(super) fn walked(&self, field: usize) -> Option<u64> {
        self.walked.get(field).copied()
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Where a member of the packet's context begins.
    pub(super) fn packet_position(&self, member: u16) -> Option<u64> {
        self.packet_positions.get(usize::from(member)).copied()
    }

    /// An integer of the packet's context, by its place among the fields of that.
    #[inline]
    pub(super) fn packet_number(&self, place: usize) -> Option<u64> {
        self.packet_numbers.get(place).copied()
    }

    /// Of the fields that all classes have from the packet's context, in their order.
    #[cold]
    pub(super) fn packet_place(&self, place: usize) -> Option<&'a Place> {
        self.packet.as_ref()?.layout.packet_places.get(place)
    }

    pub(super) fn packet_context(&self) -> Option<&'a Node> {
        self.packet.as_ref()?.layout.packet_context.as_ref()
    }

    /// Where the packet's context is.
    pub(super) fn packet_content(&self) -> Content<'_> {
        match &self.packet {
            Some(packet) if self.base != self.packet_offset => Content {
                bytes: &self.head,
                end_bits: packet.events_at_bits,
            },
            _ => self.content(),
        }
    }

    /// Where the current event's scopes are.
    #[inline]
    pub(super) fn content(&self) -> Content<'_> {
        Content {
            bytes: self.window.after(self.content_at),
            end_bits: self.window_end,
        }
    }

    /// The time of the event or packet at which the reader stands, in nanoseconds of the trace's
    /// base clock.
    #[inline]
    pub fn time_ns(&self) -> i64 {
        self.time_ns
    }

    /// The CPU of the open packet.
    #[inline]
    pub fn cpu(&self) -> Option<u32> {
        self.cpu
    }

    /// Moves on to an event that somebody must look at, or to the end of the packet.
    fn pass_over(&mut self) {
        let (Some(passing), Some(packet)) = (&self.passing, &self.packet) else {
            return;
        };
        let content = Content {
            bytes: self.window.from(self.base),
            end_bits: self.window_end,
        };
        self.position = passing.over(packet.layout, &content, self.position, &mut self.state);
    }

    /// Reads the next events ahead; false when the next one takes a closer look, or may be passed
    /// over.
    fn read_ahead(&mut self) -> bool {
        let (Some(header), Some(packet), None) = (self.byte_header, &self.packet, &self.passing)
        else {
            return false;
        };
        let Ok(at) = usize::try_from(self.position / 8) else {
            return false;
        };
        if !self.position.is_multiple_of(8) {
            return false;
        }
        let bytes = self.window.after(self.content_at);
        let end = usize::try_from(self.window_end / 8).unwrap_or(usize::MAX);
        let bytes = &bytes[..end.min(bytes.len())];
        let ticks = self.state.clock;
        let manner = Manner {
            layout: packet.layout,
            header,
            scale: self.scale,
        };
        let slots = &mut self.state.slots;
        let reached = self.ahead.fill(manner, bytes, Reached { at, ticks }, slots);
        self.position = reached.at as u64 * 8;
        self.state.clock = reached.ticks;
        if reached.ticks > self.packet_end_ticks {
            self.ahead.drop_behind(self.packet_end_ticks);
        }
        !self.ahead.is_empty()
    }

    fn read_event(&mut self) -> Result<(), BadEvent> {
        let Some(packet) = &self.packet else {
            return Err(BadEvent::Empty);
        };
        let content = Content {
            bytes: self.window.after(self.content_at),
            end_bits: self.window_end,
        };
        let start = self.position;
        let layout = packet.layout;
        let mut position = header::read(layout, &content, start, &mut self.state)?;
        let id = self.state.event_id;
        let class = layout.class(id).ok_or(BadEvent::UnknownId(id))?;
        let body = &*class.body;
        let body_bits = align_up(position, body.packed.map_or(8, |packed| packed.align_bits));
        match &body.packed {
            Some(packed) => {
                position = content.after(body_bits, packed.size_bytes as u64 * 8)?;
            }
            None => {
                for (place, scope) in body.scopes.iter().enumerate() {
                    let Some(scope) = scope else { continue };
                    let node = &*scope.node;
                    let base = align_up(position, node.align_bits);
                    self.bases[place] = base;
                    position = match node.size_bits {
                        Some(size) if !node.keeps => content.after(base, size)?,
                        _ => walk_scope(&content, scope, base, &mut self.state, &mut self.walked)?,
                    };
                }
            }
        }
        if position == start {
            return Err(BadEvent::Empty);
        }
        self.position = position;
        let ticks = self.state.clock;
        let time_ns = self.scale.ns(ticks);
        if time_ns == i64::MAX {
            self.position = start;
            return Err(BadEvent::Time(ticks));
        }
        if ticks > self.packet_end_ticks {
            self.position = start;
            return Err(BadEvent::Late(ticks));
        }
        // Only now: the reader does not stand at a time that makes no sense.
        self.time_ns = time_ns;
        // Far less is in memory than what 32 bits count.
        let body_at = u32::try_from(body_bits / 8).map_err(|_| Stop::Truncated)?;
        self.ahead.set_current(Some(Head {
            layout: body,
            class: class.class,
            body_at,
            ticks,
            time_ns: self.time_ns,
        }));
        Ok(())
    }
}

fn walk_scope(
    content: &Content<'_>,
    scope: &ScopeLayout,
    base: u64,
    state: &mut State,
    walked: &mut [u64],
) -> Result<u64, Stop> {
    let NodeKind::Struct(members) = &scope.node.kind else {
        return Ok(base);
    };
    let mut position = base;
    for (member, walked) in members.iter().zip(&mut walked[scope.first_field..]) {
        position = align_up(position, member.node.align_bits);
        *walked = position;
        position = content.skip(&member.node, position, state)?;
    }
    Ok(position)
}
