//! One stream file, packet by packet and event by event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ahead::{Ahead, Manner, Reached};
use super::bits::align_up;
use super::event_ref::EventRef;
use super::header::{self, ByteHeader};
use super::index::{Edge, PacketIndex};
use super::layout::{ClassLayout, Node, NodeKind, ScopeLayout};
use super::packet::{self, Packet, Refusal};
use super::pass::Passing;
use super::resume;
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
            BadEvent::UnknownId(id) => write!(f, "the unknown event id {id}"),
            BadEvent::Empty => f.write_str("an event without any byte"),
            BadEvent::Time(ticks) => {
                write!(f, "an event at {ticks} ticks of its clock, beyond all time")
            }
        }
    }
}

/// The packets that a reader visits, when not all in the order of the file.
#[derive(Debug)]
struct Route<'a> {
    index: &'a PacketIndex,
    /// Places of runs of packets.
    chain: &'a [u32],
    next: usize,
    /// Where the run that is being read ends.
    run_end: u64,
    /// Whether what follows the index is read too.
    to_the_end: bool,
}

/// Positions inside of a packet are counted from a multiple of this, so that they keep every
/// alignment that a type can have.
const BASE_BYTES: u64 = 4096;
/// The largest event that is read.
const EVENT_BYTES_MAX: usize = 64 << 20;
/// How much of a packet is in memory before its header is read.
const HEADER_BYTES: usize = 4096;
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
    class: Option<&'a ClassLayout>,
    /// The clock at the current event.
    ticks: u64,
    /// The byte of the content where the body of the current event begins, when its class is
    /// packed; otherwise where its scopes begin.
    body_at: usize,
    bases: [u64; 3],
    /// Where walked fields of the current event begin, by field.
    walked: Vec<u64>,
    /// Where the members of the packet's context begin.
    packet_positions: Vec<u64>,
    time_ns: i64,
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
            class: None,
            ticks: 0,
            body_at: 0,
            bases: [0; 3],
            walked: vec![0; fields.max().unwrap_or(0)],
            packet_positions: Vec::new(),
            time_ns: 0,
            cpu: None,
            first_class: 0,
            passing: None,
            until_ns: i64::MAX,
            stop: None,
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

    /// Visits the packets of one chain of an index only, from the first that does not end before
    /// `begin_ns`; and what follows the index in the file, if `to_the_end`.
    pub(super) fn follow(
        &mut self,
        index: &'a PacketIndex,
        chain: &'a [u32],
        begin_ns: i64,
        to_the_end: bool,
    ) {
        let run = |place: u32| index.runs.get(place as usize);
        let early = |place: &u32| run(*place).is_some_and(|run| run.end_ns < begin_ns);
        let mut next = chain.partition_point(early);
        // A packet that does not say its time can only be read after the one before.
        let timed = |place: u32| run(place).is_some_and(|run| run.begin_ticks.is_some());
        while next > 0 && chain.get(next).is_some_and(|place| !timed(*place)) {
            next -= 1;
        }
        self.packet = None;
        self.previous = index.before;
        self.route = Some(Route {
            index,
            chain,
            next,
            run_end: 0,
            to_the_end,
        });
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
        let Some(head) = self.ahead.take() else {
            return self.advance_far();
        };
        self.class = Some(head.class);
        self.ticks = head.ticks;
        self.time_ns = head.time_ns;
        self.body_at = head.body_at;
        Ok(())
    }

    /// The same when nothing is read ahead.
    #[inline(never)]
    fn advance_far(&mut self) -> Result<(), Box<Step>> {
        loop {
            if self.read_ahead() {
                return self.advance();
            }
            if self.passing.is_some() {
                self.pass_over();
            }
            if self.position < self.content_end {
                match self.read_event() {
                    Ok(()) => return Ok(()),
                    Err(BadEvent::Stop(Stop::Truncated)) if self.slide() => continue,
                    Err(bad) => return Err(Box::new(self.give_up_packet(&bad))),
                }
            }
            if let Some(step) = self.step_packet() {
                return Err(Box::new(step));
            }
        }
    }

    /// The event that the last step met.
    #[inline]
    pub fn event(&self) -> Option<EventRef<'_>> {
        let class = self.class?;
        Some(EventRef {
            class,
            reader: self,
        })
    }

    /// Whether the stream of the open packet has a clock.
    pub(super) fn is_timed(&self) -> bool {
        self.scale.known
    }

    /// The clock of the stream at the current event.
    pub(super) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Where the body of the current event of a packed class begins.
    #[inline]
    pub(super) fn body(&self) -> u64 {
        self.body_at as u64 * 8
    }

    /// Eight bytes of that body, if there are so many in memory behind the first `offset`.
    #[inline]
    pub(super) fn body_word(&self, offset: usize) -> Option<[u8; 8]> {
        let skipped = self.content_at.wrapping_add(self.body_at);
        self.window.word(skipped.wrapping_add(offset))
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

    /// Opens the next packet; none when its events are next.
    #[cold]
    fn step_packet(&mut self) -> Option<Step> {
        if self.is_stopped() {
            (self.packet, self.class, self.done) = (None, None, true);
            return Some(Step::End);
        }
        if let Some(packet) = self.packet.take() {
            self.class = None;
            self.previous = Some(Edge::new(&packet.facts, &self.scale));
            // Events without a time of their own are no earlier than the end of a packet before.
            self.state.clock = self.state.clock.max(packet.facts.end.unwrap_or(0));
            let begin = self.packet_offset;
            self.packet_offset = begin.saturating_add(packet.size_bytes);
            if self.rest_bytes(begin, packet.size_bytes) < packet.size_bytes {
                self.done = true;
                let had = self.size_bytes.saturating_sub(begin);
                return Some(Step::Damage(BadBytes {
                    offset_bytes: self.size_bytes,
                    reason: format!("a packet of {} bytes ends after {had}", packet.size_bytes),
                }));
            }
        }
        self.take_route();
        let rest = self.rest_bytes(self.packet_offset, HEADER_BYTES as u64);
        if self.done || rest == 0 {
            self.done = true;
            return Some(Step::End);
        }
        self.state.event_id = 0;
        match self.read_packet(rest) {
            Ok(packet) => self.open_packet(packet),
            Err((offset, reason)) => {
                let offset_bytes = self.packet_offset.saturating_add(offset);
                let next = resume::next_packet(&mut self.window, self.schema, self.packet_offset);
                self.done = next.is_none();
                self.packet_offset = next.unwrap_or(self.packet_offset);
                Some(Step::Damage(BadBytes {
                    offset_bytes,
                    reason,
                }))
            }
        }
    }

    /// Bytes from `offset` to the end of the file. Asks again when fewer are known than `wanted`:
    /// it may have grown meanwhile.
    fn rest_bytes(&mut self, offset: u64, wanted: u64) -> u64 {
        if self.size_bytes.saturating_sub(offset) < wanted {
            self.size_bytes = self.window.size_bytes().unwrap_or(0);
        }
        self.size_bytes.saturating_sub(offset)
    }

    /// Jumps to the next run of packets on the route, when the one before has ended.
    fn take_route(&mut self) {
        let Some(route) = &mut self.route else {
            return;
        };
        if self.packet_offset < route.run_end {
            return;
        }
        let Some(place) = route.chain.get(route.next).map(|place| *place as usize) else {
            let index = route.index;
            self.done |= !route.to_the_end;
            self.packet_offset = index.end_offset;
            self.previous = index.edge_before(index.runs.len());
            self.route = None;
            return;
        };
        route.next += 1;
        let Some(run) = route.index.runs.get(place) else {
            self.done = true;
            return;
        };
        let after = route.index.runs.get(place + 1);
        route.run_end = after.map_or(route.index.end_offset, |run| run.offset_bytes);
        self.packet_offset = run.offset_bytes;
        self.previous = route.index.edge_before(place);
        self.state.clock = run.begin_ticks.unwrap_or(self.state.clock);
    }

    fn read_packet(&mut self, rest: u64) -> Result<Packet<'a>, (u64, String)> {
        let failed = |cause: std::io::Error| (0, cause.to_string());
        let at = self.packet_offset;
        let limit = usize::try_from(rest).unwrap_or(usize::MAX);
        let mut length = HEADER_BYTES;
        loop {
            self.window.load(at, length.min(limit)).map_err(failed)?;
            let bytes = self.window.from(at);
            let (state, positions) = (&mut self.state, &mut self.packet_positions);
            match packet::read(self.schema, bytes, rest, state, positions) {
                Ok(packet) => return Ok(packet),
                Err(Refusal::Wrong(offset, reason)) => return Err((offset, reason)),
                Err(Refusal::NeedsMore) if length < limit.min(EVENT_BYTES_MAX) => length *= 4,
                Err(Refusal::NeedsMore) => return Err((0, Stop::Truncated.to_string())),
            }
        }
    }

    fn open_packet(&mut self, packet: Packet<'a>) -> Option<Step> {
        let scale = TimeScale::new(self.schema, packet.layout);
        if packet
            .facts
            .begin
            .is_some_and(|begin| scale.ns(begin) >= self.until_ns)
        {
            self.done = true;
            return Some(Step::End);
        }
        let wanted = usize::try_from(packet.content_bits.div_ceil(8)).unwrap_or(usize::MAX);
        let wanted = wanted.min(self.window.piece_bytes());
        if let Err(cause) = self.window.load(self.packet_offset, wanted) {
            self.done = true;
            return Some(Step::Damage(BadBytes {
                offset_bytes: self.packet_offset,
                reason: cause.to_string(),
            }));
        }
        self.packet = Some(packet);
        self.cpu = packet.facts.cpu;
        self.position = packet.events_at_bits;
        self.place_window(self.packet_offset, packet.content_bits);
        self.state.refuel(packet.content_bits);
        self.scale = scale;
        self.byte_header = packet.layout.quick_header.as_ref().and_then(ByteHeader::of);
        if let Some(passing) = &mut self.passing {
            passing.enter(packet.facts.stream_class, packet.layout);
        }
        let facts = packet.facts;
        if let Some(begin) = facts.begin {
            self.time_ns = self.scale.ns(begin);
        }
        self.loss(&packet).map(Step::Lost)
    }

    /// Positions count from `base` on, from where `content_bits` are left.
    fn place_window(&mut self, base: u64, content_bits: u64) {
        self.base = base;
        self.content_end = content_bits;
        self.content_at = self.window.before(base);
        let there = self.window.from(base).len() as u64 * 8;
        self.window_end = content_bits.min(there);
    }

    /// Brings more of the packet into memory after an event that ended beyond; false when there is
    /// no more of it.
    #[cold]
    fn slide(&mut self) -> bool {
        if self.window_end >= self.content_end {
            return false;
        }
        if self.is_stopped() {
            self.position = self.content_end;
            return true;
        }
        let Some(packet) = &self.packet else {
            return false;
        };
        let had = self.window.from(self.base).len();
        if self.base == self.packet_offset {
            let head_bytes = packet.events_at_bits.div_ceil(8) as usize;
            let head = self.window.from(self.base);
            self.head.clear();
            self.head.extend(&head[..head_bytes.min(head.len())]);
        }
        let moved_bytes = self.position / 8 / BASE_BYTES * BASE_BYTES;
        let base = self.base + moved_bytes;
        let length = match moved_bytes {
            0 if had >= EVENT_BYTES_MAX => return false,
            0 => had.saturating_mul(2).max(self.window.piece_bytes()),
            _ => self.window.piece_bytes(),
        };
        if self.window.fill(base, length).is_err() {
            return false;
        }
        let content_bits = self.content_end - moved_bytes * 8;
        self.position -= moved_bytes * 8;
        self.place_window(base, content_bits);
        self.state.refuel(content_bits);
        // A file that was cut meanwhile has nothing more to give.
        moved_bytes > 0 || self.window.from(base).len() > had
    }

    /// What is missing between the packet before and the one that begins.
    fn loss(&self, packet: &Packet<'_>) -> Option<Loss> {
        let previous = self.previous?;
        let facts = &packet.facts;
        let (discarded, packets) = previous.lost_before(facts);
        if discarded == 0 && !packets {
            return None;
        }
        let ns = |ticks: Option<u64>| ticks.map_or(self.time_ns, |ticks| self.scale.ns(ticks));
        Some(Loss {
            begin_ns: previous.end_ns.unwrap_or(self.time_ns),
            packet_begin_ns: ns(facts.begin),
            packet_end_ns: ns(facts.end),
            events: (discarded > 0 && !packets).then_some(discarded),
        })
    }

    /// The rest of a packet cannot be read, because one event in it could not.
    #[cold]
    fn give_up_packet(&mut self, bad: &BadEvent) -> Step {
        let offset_bytes = self.base + self.position / 8;
        self.position = self.content_end;
        self.class = None;
        let size_bytes = self.packet.as_ref().map_or(0, |packet| packet.size_bytes);
        // Asked anew: the file may have been cut while it was read.
        if self.rest_bytes(self.packet_offset, u64::MAX) < size_bytes {
            self.done = true;
            self.packet = None;
        }
        Step::Damage(BadBytes {
            offset_bytes,
            reason: bad.to_string(),
        })
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
        let reached = self.ahead.fill(manner, bytes, Reached { at, ticks });
        self.position = reached.at as u64 * 8;
        self.state.clock = reached.ticks;
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
        match &class.packed {
            Some(packed) => {
                let body = align_up(position, packed.align_bits);
                position = content.after(body, packed.size_bytes as u64 * 8)?;
                self.body_at = (body / 8) as usize;
            }
            None => {
                for (place, scope) in class.scopes.iter().enumerate() {
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
        self.class = Some(class);
        self.ticks = self.state.clock;
        self.time_ns = self.scale.ns(self.state.clock);
        if self.time_ns == i64::MAX {
            self.position = start;
            return Err(BadEvent::Time(self.state.clock));
        }
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
