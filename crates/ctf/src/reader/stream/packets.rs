//! A stream's packets: which comes next, its header, how much of it is in memory.

use super::super::index::{Edge, PacketIndex};
use super::super::packet::{self, Packet, Refusal};
use super::super::resume;
use super::super::scale::TimeScale;
use super::super::walk::Stop;
use super::{BadBytes, ByteHeader, Hole, Loss, Step, StreamReader};

/// The packets that a reader visits, when not all in the order of the file.
#[derive(Debug)]
pub(super) struct Route<'a> {
    pub index: &'a PacketIndex,
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

impl<'a> StreamReader<'a> {
    /// Visits the packets of one chain of an index only, from the first that does not end before
    /// `begin_ns`; and what follows the index in the file, if `to_the_end`.
    pub(in crate::reader) fn follow(
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

    /// Opens the next packet; none when its events are next.
    #[cold]
    pub(super) fn step_packet(&mut self) -> Option<Step> {
        if self.is_stopped() {
            self.packet = None;
            self.hole = None;
            return Some(self.end());
        }
        if let Some(packet) = self.packet.take() {
            self.ahead.set_current(None);
            self.previous = Some(Edge::new(&packet.facts, &self.scale));
            // Events without a time of their own are no earlier than the end of a packet before.
            self.state.clock = self.state.clock.max(packet.facts.end.unwrap_or(0));
            let begin = self.packet_offset;
            self.packet_offset = begin.saturating_add(packet.size_bytes);
            if self.rest_bytes(begin, packet.size_bytes) < packet.size_bytes {
                self.done = true;
                self.unread(Hole {
                    begin_ns: self.known_until(),
                    end_ns: i64::MAX,
                    is_cut: true,
                });
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
            if self.is_unfinished && !self.done {
                self.unread(Hole {
                    begin_ns: self.known_until(),
                    end_ns: i64::MAX,
                    is_cut: true,
                });
            }
            return Some(self.end());
        }
        let begin = self.packet_offset;
        let (offset, reason, next) = match self.read_packet(rest) {
            Ok(packet) => match self.packet_inside(&packet) {
                None => return self.open_packet(packet),
                Some((reason, next)) => (0, reason, Some(next)),
            },
            Err((offset, reason)) => {
                let next = resume::next_packet(&mut self.window, self.schema, begin);
                (offset, reason, next)
            }
        };
        self.unread(Hole {
            begin_ns: self.known_until(),
            end_ns: i64::MAX,
            is_cut: next.is_none() && rest < HEADER_BYTES as u64,
        });
        self.done = next.is_none();
        self.packet_offset = next.unwrap_or(begin);
        Some(Step::Damage(BadBytes {
            offset_bytes: begin.saturating_add(offset),
            reason,
        }))
    }

    /// Another packet inside of one that goes on behind the end of the file: then its size is
    /// wrong. Without one the file was cut.
    fn packet_inside(&mut self, packet: &Packet<'a>) -> Option<(String, u64)> {
        let begin = self.packet_offset;
        if self.rest_bytes(begin, packet.size_bytes) >= packet.size_bytes {
            return None;
        }
        let next = resume::next_packet(&mut self.window, self.schema, begin)?;
        // Looking for it moved the window.
        let size = packet.size_bytes;
        let reason = format!("a packet of {size} bytes, though one begins at byte {next}");
        Some((reason, next))
    }

    /// Up to when all events of the stream were read; from then on none were.
    fn known_until(&self) -> i64 {
        let end_ns = self
            .previous
            .map(|edge| edge.end_ns.unwrap_or(self.time_ns));
        end_ns.unwrap_or(i64::MIN)
    }

    /// Bytes from `offset` to the end of the file. Asks again when fewer are known than `wanted`:
    /// it may have grown meanwhile.
    pub(super) fn rest_bytes(&mut self, offset: u64, wanted: u64) -> u64 {
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
        route.run_end = after.map_or(route.index.end_offset, |run| run.from_bytes);
        self.packet_offset = run.from_bytes;
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
        if let Some(begin) = packet.facts.begin.map(|begin| scale.ns(begin))
            && begin >= self.until_ns
        {
            self.done = true;
            let hole = self.close_hole(begin);
            return Some(hole.unwrap_or_else(|| self.end()));
        }
        let wanted = usize::try_from(packet.content_bits.div_ceil(8)).unwrap_or(usize::MAX);
        let wanted = wanted.min(self.window.piece_bytes());
        if let Err(cause) = self.window.load(self.packet_offset, wanted) {
            self.done = true;
            self.unread(Hole {
                begin_ns: self.known_until(),
                end_ns: i64::MAX,
                is_cut: false,
            });
            return Some(Step::Damage(BadBytes {
                offset_bytes: self.packet_offset,
                reason: cause.to_string(),
            }));
        }
        self.packet_numbers.clear();
        let bytes = self.window.from(self.packet_offset);
        let places = packet.layout.packet_places.iter();
        self.packet_numbers.extend(places.map(|place| {
            let position = self.packet_positions.get(usize::from(place.member));
            let number = position.and_then(|position| place.load.integer(bytes, *position));
            number.unwrap_or(0)
        }));
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
        self.packet_begin_ns = match facts.begin {
            Some(begin) => self.scale.ns(begin),
            None => self.scale.ns(self.state.clock),
        };
        let begin = facts.begin.unwrap_or(0);
        // An end before the begin is none: some tracers leave it out.
        let end = facts.end.filter(|end| *end >= begin);
        let end = end.filter(|_| !self.schema.ends_packets_early());
        self.packet_end_ticks = end.unwrap_or(u64::MAX);
        let loss = self.loss(&packet).map(Step::Lost);
        let hole = self.close_hole(self.packet_begin_ns);
        self.waiting.extend(hole.into_iter().chain(loss));
        (!self.waiting.is_empty()).then(|| self.next_waiting())
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
    pub(super) fn slide(&mut self) -> bool {
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
}
