//! One stream file, packet by packet and event by event. Pure over bytes.

use super::bits::{IntLoad, align_up};
use super::event_ref::EventRef;
use super::layout::{ClassLayout, NodeKind, QuickHeader, ScopeLayout};
use super::packet::{self, Packet, PacketFacts};
use super::schema::{ClockInfo, Schema};
use super::walk::{Content, State, Stop};

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

/// From a stream's ticks to nanoseconds of the trace's base clock.
#[derive(Clone, Copy, Debug)]
struct TimeScale<'a> {
    /// None when a tick is a nanosecond.
    clock: Option<&'a ClockInfo>,
    shift_ns: i64,
    known: bool,
}

impl TimeScale<'_> {
    #[inline]
    fn ns(&self, ticks: u64) -> i64 {
        let ns = match self.clock {
            None => i64::try_from(ticks).unwrap_or(i64::MAX),
            Some(clock) => clock.ns(ticks.into()),
        };
        ns.saturating_add(self.shift_ns)
    }
}

/// Reads one stream file.
#[derive(Debug)]
pub struct StreamReader<'a> {
    schema: &'a Schema,
    bytes: &'a [u8],
    /// Where the open packet begins in the file; where the next one does, when none is open.
    packet_offset: u64,
    packet: Option<Packet<'a>>,
    /// Facts of the packet before, with its scale.
    previous: Option<PacketFacts>,
    scale: TimeScale<'a>,
    position: u64,
    state: State,
    class: Option<&'a ClassLayout>,
    /// Where the scopes of the current event begin.
    bases: [u64; 3],
    /// Where walked fields of the current event begin, by field.
    walked: Vec<u64>,
    /// Where the members of the packet's context begin.
    packet_positions: Vec<u64>,
    time_ns: i64,
    /// Packets that end before this are passed over.
    skip_before_ns: i64,
    done: bool,
}

impl<'a> StreamReader<'a> {
    /// A reader at the start of a stream file's bytes.
    pub fn new(schema: &'a Schema, bytes: &'a [u8]) -> Self {
        let streams = schema.streams.values();
        let slots = streams
            .clone()
            .map(|stream| stream.slot_count)
            .max()
            .unwrap_or(0);
        let fields = streams.map(|stream| stream.field_count).max().unwrap_or(0);
        StreamReader {
            schema,
            bytes,
            packet_offset: 0,
            packet: None,
            previous: None,
            scale: TimeScale {
                clock: None,
                shift_ns: 0,
                known: false,
            },
            position: 0,
            state: State {
                slots: vec![0; slots],
                ..State::default()
            },
            class: None,
            bases: [0; 3],
            walked: vec![0; fields],
            packet_positions: Vec::new(),
            time_ns: 0,
            skip_before_ns: i64::MIN,
            done: false,
        }
    }

    /// Passes over whole packets that end before `time_ns`.
    pub fn skip_before(&mut self, time_ns: i64) {
        self.skip_before_ns = time_ns;
    }

    /// Goes one step further.
    #[inline]
    pub fn step(&mut self) -> Step {
        loop {
            if let Some(packet) = self.packet
                && self.position < packet.content.end_bits
            {
                return match self.read_event(&packet) {
                    Ok(()) => Step::Event,
                    Err(reason) => self.give_up_packet(&packet, reason),
                };
            }
            if let Some(step) = self.step_packet() {
                return step;
            }
        }
    }

    /// The event that the last step met.
    #[inline]
    pub fn event(&self) -> Option<EventRef<'_>> {
        Some(EventRef {
            class: self.class?,
            packet: self.packet.as_ref()?,
            state: &self.state,
            bases: &self.bases,
            walked: &self.walked,
            packet_positions: &self.packet_positions,
            timed: self.scale.known,
        })
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
        self.packet.as_ref()?.facts.cpu
    }

    /// Opens the next packet; none when its events are next.
    #[cold]
    fn step_packet(&mut self) -> Option<Step> {
        if let Some(packet) = self.packet.take() {
            self.class = None;
            self.previous = Some(packet.facts);
            // Events without a time of their own are no earlier than the end of a packet before.
            self.state.clock = self.state.clock.max(packet.facts.end.unwrap_or(0));
            let begin = self.packet_offset;
            self.packet_offset = begin.saturating_add(packet.size_bytes);
            if self.packet_offset > self.bytes.len() as u64 {
                self.done = true;
                let had = self.bytes.len() as u64 - begin;
                return Some(Step::Damage(BadBytes {
                    offset_bytes: self.bytes.len() as u64,
                    reason: format!("a packet of {} bytes ends after {had}", packet.size_bytes),
                }));
            }
        }
        let rest = usize::try_from(self.packet_offset)
            .ok()
            .and_then(|at| self.bytes.get(at..));
        let Some(rest) = rest.filter(|rest| !rest.is_empty() && !self.done) else {
            self.done = true;
            return Some(Step::End);
        };
        self.state.event_id = 0;
        match packet::read(
            self.schema,
            rest,
            &mut self.state,
            &mut self.packet_positions,
        ) {
            Ok(packet) => self.open_packet(packet),
            Err((offset, reason)) => {
                self.done = true;
                let offset_bytes = self.packet_offset.saturating_add(offset);
                Some(Step::Damage(BadBytes {
                    offset_bytes,
                    reason,
                }))
            }
        }
    }

    fn open_packet(&mut self, packet: Packet<'a>) -> Option<Step> {
        self.position = packet.events_at_bits;
        self.packet = Some(packet);
        self.scale = self.time_scale(&packet);
        let facts = packet.facts;
        if facts
            .end
            .is_some_and(|end| self.scale.ns(end) < self.skip_before_ns)
        {
            self.position = packet.content.end_bits;
        }
        if let Some(begin) = facts.begin {
            self.time_ns = self.scale.ns(begin);
        }
        self.loss(&facts).map(Step::Lost)
    }

    fn time_scale(&self, packet: &Packet<'a>) -> TimeScale<'a> {
        let clock = packet
            .layout
            .clock
            .and_then(|place| self.schema.clocks.get(place as usize));
        let (Some(clock), Some(base)) = (clock, self.schema.base_clock()) else {
            return TimeScale {
                clock: None,
                shift_ns: 0,
                known: false,
            };
        };
        let shift_ns = clock.wall_offset_ns().saturating_sub(base.wall_offset_ns());
        let nanoseconds = clock.frequency_hz == 1_000_000_000;
        TimeScale {
            clock: (!nanoseconds).then_some(clock),
            shift_ns,
            known: true,
        }
    }

    /// What is missing between the packet before and the one that begins.
    fn loss(&self, facts: &PacketFacts) -> Option<Loss> {
        let previous = self.previous?;
        let discarded = match (previous.discarded, facts.discarded) {
            (Some((before, _)), Some((after, mask))) => after.wrapping_sub(before) & mask,
            _ => 0,
        };
        let packets = match (previous.sequence, facts.sequence) {
            (Some(before), Some(after)) => after > before.saturating_add(1),
            _ => false,
        };
        if discarded == 0 && !packets {
            return None;
        }
        let ns = |ticks: Option<u64>| ticks.map_or(self.time_ns, |ticks| self.scale.ns(ticks));
        Some(Loss {
            begin_ns: ns(previous.end),
            packet_begin_ns: ns(facts.begin),
            packet_end_ns: ns(facts.end),
            events: (discarded > 0 && !packets).then_some(discarded),
        })
    }

    /// The rest of a packet cannot be read, because one event in it could not.
    #[cold]
    fn give_up_packet(&mut self, packet: &Packet<'a>, reason: String) -> Step {
        let offset_bytes = self.packet_offset + self.position / 8;
        self.position = packet.content.end_bits;
        self.class = None;
        if self.packet_offset.saturating_add(packet.size_bytes) > self.bytes.len() as u64 {
            self.done = true;
            self.packet = None;
        }
        Step::Damage(BadBytes {
            offset_bytes,
            reason,
        })
    }

    fn read_event(&mut self, packet: &Packet<'a>) -> Result<(), String> {
        let content = packet.content;
        let start = self.position;
        let layout = packet.layout;
        let mut position = match layout.quick_header {
            Some(quick) => self.quick_header(quick, &content, packet),
            None => self.walk_header(&content, packet),
        }
        .map_err(|stop| stop.to_string())?;
        let Some(class) = layout.class(self.state.event_id) else {
            return Err(format!("the unknown event id {}", self.state.event_id));
        };
        for (place, scope) in class.scopes.iter().enumerate() {
            let Some(scope) = scope else { continue };
            let node = &*scope.node;
            let base = align_up(position, node.align_bits);
            self.bases[place] = base;
            position = match node.size_bits {
                Some(size) if !node.keeps => content.after(base, size),
                _ => self.walk_scope(&content, scope, base),
            }
            .map_err(|stop| stop.to_string())?;
        }
        if position == start {
            return Err("an event without any byte".to_owned());
        }
        self.position = position;
        self.class = Some(class);
        self.time_ns = self.scale.ns(self.state.clock);
        Ok(())
    }

    #[inline]
    fn quick_header(
        &mut self,
        quick: QuickHeader,
        content: &Content<'_>,
        packet: &Packet<'_>,
    ) -> Result<u64, Stop> {
        let word = |size_bits, big_endian| IntLoad {
            size_bits,
            signed: false,
            big_endian,
        };
        match quick {
            QuickHeader::Compact {
                align_bits,
                big_endian,
            } => {
                let start = align_up(self.position, align_bits);
                let bits = content.int(word(32, big_endian), start)?;
                let (id, time) = match big_endian {
                    false => (bits & 31, bits >> 5),
                    true => (bits >> 27, bits & 0x7ff_ffff),
                };
                if id == 31 {
                    return self.walk_header(content, packet);
                }
                self.state.event_id = id;
                self.state.advance_clock(word(27, big_endian), time);
                Ok(start + 32)
            }
            QuickHeader::Large {
                align_bits,
                time_align_bits,
                big_endian,
            } => {
                let start = align_up(self.position, align_bits);
                let id = content.int(word(16, big_endian), start)?;
                if id == 65535 {
                    return self.walk_header(content, packet);
                }
                let at = align_up(start + 16, time_align_bits);
                let time = content.int(word(32, big_endian), at)?;
                self.state.event_id = id;
                self.state.advance_clock(word(32, big_endian), time);
                Ok(at + 32)
            }
        }
    }

    #[inline(never)]
    fn walk_header(&mut self, content: &Content<'_>, packet: &Packet<'_>) -> Result<u64, Stop> {
        match &packet.layout.header {
            Some(header) => content.skip(header, self.position, &mut self.state),
            None => Ok(self.position),
        }
    }

    fn walk_scope(
        &mut self,
        content: &Content<'_>,
        scope: &ScopeLayout,
        base: u64,
    ) -> Result<u64, Stop> {
        let NodeKind::Struct(members) = &scope.node.kind else {
            return Ok(base);
        };
        let mut position = base;
        for (member, walked) in members.iter().zip(&mut self.walked[scope.first_field..]) {
            position = align_up(position, member.node.align_bits);
            *walked = position;
            position = content.skip(&member.node, position, &mut self.state)?;
        }
        Ok(position)
    }
}
