//! Where the packets of a stream file are, and when: read from their headers alone.
//!
//! Index files beside a trace may be absent or wrong; this one is made from the stream itself.

use std::collections::HashSet;

use super::packet::{self, Packet, Refusal};
use super::packet_facts::PacketFacts;
use super::resume;
use super::scale::TimeScale;
use super::schema::Schema;
use super::walk::State;
use super::window::{Source, Window};

/// How much of a packet is read at first; headers are rarely larger.
const HEADER_BYTES: usize = 512;
/// No header is larger.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// A file with more packets has several of them in each run.
const RUNS_MAX: usize = 1 << 16;
/// Packets that overlap in time more often than this stay in the order of the file.
const CHAINS_MAX: usize = 64;

/// The counters at the end of a packet, from which the next one's losses are reckoned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Edge {
    pub end_ns: Option<i64>,
    pub discarded: Option<(u64, u64)>,
    pub sequence: Option<u64>,
}

impl Edge {
    pub fn new(facts: &PacketFacts, scale: &TimeScale<'_>) -> Edge {
        Edge {
            end_ns: facts.end.map(|end| scale.ns(end)),
            discarded: facts.discarded,
            sequence: facts.sequence,
        }
    }

    /// Whether no counter is lower at the end of a later packet.
    pub fn goes_on_to(&self, later: &Edge) -> bool {
        let count = |edge: &Edge| edge.discarded.map(|(count, _)| count);
        let grows = |earlier: Option<u64>, later: Option<u64>| {
            earlier
                .zip(later)
                .is_none_or(|(earlier, later)| earlier <= later)
        };
        grows(count(self), count(later)) && grows(self.sequence, later.sequence)
    }

    /// Events discarded and whether packets are missing between here and `after`.
    pub fn lost_before(&self, after: &PacketFacts) -> (u64, bool) {
        let discarded = match (self.discarded, after.discarded) {
            (Some((before, _)), Some((after, mask))) => after.wrapping_sub(before) & mask,
            _ => 0,
        };
        let packets = match (self.sequence, after.sequence) {
            (Some(before), Some(after)) => after > before.saturating_add(1),
            _ => false,
        };
        (discarded, packets)
    }
}

/// One packet, or several that follow each other in the file and in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub offset_bytes: u64,
    /// Where the bytes before it begin that are no packet; else its own begin.
    pub from_bytes: u64,
    /// The clock at the begin; without it reading can only come here from the packet before.
    pub begin_ticks: Option<u64>,
    pub begin_ns: i64,
    /// `i64::MAX` when nobody knows.
    pub end_ns: i64,
    /// The end of the last packet.
    pub edge: Edge,
}

/// What two copies of a packet share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    stream_class: Option<u64>,
    stream: Option<u64>,
    begin_ticks: u64,
    edge: Edge,
}

/// The packets of one stream file.
#[derive(Debug, Default)]
pub struct PacketIndex {
    pub(crate) runs: Vec<Run>,
    /// Places in `runs`: in each chain, time only goes forward.
    pub(crate) chains: Vec<Vec<u32>>,
    /// Where reading the headers ended.
    pub(crate) end_offset: u64,
    /// The stream's last packet in the file before, when it was rotated.
    pub(crate) before: Option<Edge>,
    /// How many packets there are.
    pub packets: u64,
    /// Packets that begin before an earlier one ends.
    pub packets_back_in_time: u64,
    /// Events that the tracer discarded.
    pub discarded: u64,
    /// Holes in the packets' sequence numbers.
    pub packet_gaps: u64,
    /// Whether bytes between packets could not be understood.
    pub is_damaged: bool,
    /// The CPU of the first packet that has one.
    pub cpu: Option<u32>,
    /// Whether packets are of several CPUs.
    pub has_several_cpus: bool,
    /// The id of the stream class, when packets say it.
    pub stream_class: Option<u64>,
    /// Which of the streams of that class.
    pub stream: Option<u64>,
    /// Whether the stream has a clock.
    pub is_timed: bool,
}

impl PacketIndex {
    /// Reads the headers of all packets. What cannot be understood between them is left to the
    /// reader that comes there, which says why.
    pub(crate) fn build(schema: &Schema, source: Source<'_>) -> PacketIndex {
        let mut window = Window::new(source, HEADER_BYTES);
        let mut index = PacketIndex::default();
        let mut state = State::new(schema);
        let mut positions = Vec::new();
        let mut before: Option<Edge> = None;
        let size = window.size_bytes().unwrap_or(0);
        // More packets in one run when there are too many; a power of two.
        let mut in_run = 0u64;
        let mut run_packets = 1u64;
        let mut at = 0;
        while at < size {
            let rest = size - at;
            let packet = header(schema, &mut window, at, rest, &mut state, &mut positions);
            let is_whole = packet
                .as_ref()
                .is_some_and(|packet| packet.size_bytes <= rest);
            let next = match is_whole {
                true => None,
                false => resume::next_packet(&mut window, schema, at),
            };
            let packet = match (packet, next) {
                (Some(packet), None) => packet,
                (_, Some(next)) => {
                    (at, index.is_damaged) = (next, true);
                    continue;
                }
                (None, None) => break,
            };
            let scale = TimeScale::new(schema, packet.layout);
            index.note(&packet, &scale, before.as_ref());
            let mut run = run(&packet, &scale, at, before.as_ref());
            run.from_bytes = index.end_offset;
            if in_run == 0 || run.from_bytes < at || !index.extend(&run) {
                index.push(run);
                in_run = 0;
            }
            in_run = (in_run + 1) % run_packets;
            if index.runs.len() >= RUNS_MAX {
                index.halve();
                run_packets *= 2;
                in_run = 0;
            }
            before = Some(run.edge);
            state.clock = state.clock.max(packet.facts.end.unwrap_or(0));
            at = at.saturating_add(packet.size_bytes);
            index.end_offset = at;
        }
        index.make_chains();
        index
    }

    fn note(&mut self, packet: &Packet<'_>, scale: &TimeScale<'_>, before: Option<&Edge>) {
        let facts = &packet.facts;
        let (discarded, gap) = before.map_or((0, false), |edge| edge.lost_before(facts));
        self.packets += 1;
        self.discarded = self.discarded.saturating_add(discarded);
        self.packet_gaps += u64::from(gap);
        self.has_several_cpus |= self.cpu.is_some() && facts.cpu != self.cpu;
        self.cpu = self.cpu.or(facts.cpu);
        self.stream_class = self.stream_class.or(facts.stream_class);
        self.stream = self.stream.or(facts.stream);
        self.is_timed |= scale.known;
    }

    fn push(&mut self, run: Run) {
        if let Some(last) = self.runs.last_mut().filter(|last| last.end_ns == i64::MAX)
            && run.begin_ticks.is_some()
        {
            // It ended no later than the next one began, unless time went backwards.
            last.end_ns = run.begin_ns.max(last.begin_ns);
        }
        self.runs.push(run);
    }

    /// Adds a packet to the last run, if it follows that in time.
    fn extend(&mut self, run: &Run) -> bool {
        let Some(last) = self.runs.last_mut() else {
            return false;
        };
        let end_ns = match last.end_ns {
            i64::MAX => last.begin_ns,
            end_ns => end_ns,
        };
        let follows = run.begin_ticks.is_none() || run.begin_ns >= end_ns;
        if follows {
            last.end_ns = run.end_ns;
            last.edge = run.edge;
        }
        follows
    }

    /// Two runs become one. Where time goes backwards between them it does so inside of the run.
    fn halve(&mut self) {
        let pair = |pair: &[Run]| match pair {
            [first, .., last] => Run {
                begin_ns: first.begin_ns.min(last.begin_ns),
                end_ns: first.end_ns.max(last.end_ns),
                edge: last.edge,
                ..*first
            },
            [only] => *only,
            [] => unreachable!("a chunk is never empty"),
        };
        self.runs = self.runs.chunks(2).map(pair).collect();
    }

    /// Puts each run behind the chain whose end is the latest that is not after the run's begin.
    fn make_chains(&mut self) {
        let mut chains: Vec<(i64, Vec<u32>)> = Vec::new();
        let mut current = 0;
        let mut latest_ns = i64::MIN;
        for (place, run) in self.runs.iter().enumerate() {
            let fits = |(end_ns, _): &&(i64, Vec<u32>)| *end_ns <= run.begin_ns;
            self.packets_back_in_time +=
                u64::from(run.begin_ticks.is_some() && run.begin_ns < latest_ns);
            if run.begin_ticks.is_some() {
                let best = chains.iter().filter(fits).map(|(end_ns, _)| *end_ns).max();
                let best = chains.iter().position(|(end_ns, _)| Some(*end_ns) == best);
                current = match best {
                    Some(chain) => chain,
                    None if chains.len() < CHAINS_MAX => chains.len(),
                    None => current,
                };
            }
            if current >= chains.len() {
                chains.push((i64::MIN, Vec::new()));
            }
            let chain = &mut chains[current];
            let end_ns = match run.end_ns {
                i64::MAX => run.begin_ns,
                end_ns => end_ns,
            };
            chain.0 = chain.0.max(end_ns);
            latest_ns = latest_ns.max(end_ns);
            chain.1.push(place as u32);
        }
        self.chains = chains.into_iter().map(|(_, chain)| chain).collect();
    }

    /// The begin of the earliest packet and the end of the latest, in nanoseconds of the trace's
    /// base clock; none without packets or without a clock. The end is that of the latest begin
    /// when packets do not say it.
    pub fn range_ns(&self) -> Option<(i64, i64)> {
        let timed = self.runs.iter().filter(|_| self.is_timed);
        let begin = timed.clone().map(|run| run.begin_ns).min()?;
        let end = timed.map(|run| match run.end_ns {
            i64::MAX => run.begin_ns,
            end_ns => end_ns,
        });
        Some((begin, end.max()?))
    }

    /// The begin of each run of packets in nanoseconds and how many bytes it has, where the stream
    /// can be read from each of them on as it is read from the start; none where time goes
    /// backwards from packet to packet, packets do not say their time, or something in its
    /// `size_bytes` is no packet.
    pub fn cuts(&self, size_bytes: u64) -> Option<Vec<(i64, u64)>> {
        let is_timed = |run: &Run| run.begin_ticks.is_some();
        let is_whole = self.end_offset == size_bytes && !self.is_damaged;
        let is_whole = is_whole && self.chains.len() <= 1;
        if self.packets_back_in_time > 0 || !is_whole || !self.runs.iter().all(is_timed) {
            return None;
        }
        let ends = self.runs.iter().skip(1).map(|run| run.offset_bytes);
        let ends = ends.chain([self.end_offset]);
        let cut = |(run, end): (&Run, u64)| (run.begin_ns, end - run.offset_bytes);
        Some(self.runs.iter().zip(ends).map(cut).collect())
    }

    /// What tells its packets from all others of the trace.
    pub(crate) fn identities(&self) -> impl Iterator<Item = Identity> {
        self.runs.iter().filter_map(|run| self.identity(run))
    }

    /// None where a packet does not say its time, or runs hold several packets.
    fn identity(&self, run: &Run) -> Option<Identity> {
        let is_one_packet = self.packets == self.runs.len() as u64;
        let begin_ticks = run.begin_ticks.filter(|_| is_one_packet)?;
        Some(Identity {
            stream_class: self.stream_class,
            stream: self.stream,
            begin_ticks,
            edge: run.edge,
        })
    }

    /// Leaves out packets that are `known` from elsewhere.
    pub(crate) fn leave_out(&mut self, known: &HashSet<Identity>) {
        let mut chains = std::mem::take(&mut self.chains);
        let is_new = |place: &u32| {
            let run = self.runs.get(*place as usize);
            let identity = run.and_then(|run| self.identity(run));
            identity.is_none_or(|identity| !known.contains(&identity))
        };
        chains.iter_mut().for_each(|chain| chain.retain(is_new));
        self.chains = chains;
    }

    /// The counters before a run.
    pub(crate) fn edge_before(&self, run: usize) -> Option<Edge> {
        match run.checked_sub(1) {
            Some(before) => self.runs.get(before).map(|run| run.edge),
            None => self.before,
        }
    }
}

/// Reads the header of the packet at `offset`, of whatever size it is.
fn header<'a>(
    schema: &'a Schema,
    window: &mut Window<'_>,
    offset: u64,
    rest: u64,
    state: &mut State,
    positions: &mut Vec<u64>,
) -> Option<Packet<'a>> {
    let mut length = HEADER_BYTES;
    loop {
        window
            .load(offset, length.min(usize::try_from(rest).unwrap_or(length)))
            .ok()?;
        let clock = state.clock;
        match packet::read(schema, window.from(offset), rest, state, positions) {
            Ok(packet) => return Some(packet),
            Err(Refusal::NeedsMore) if length < HEADER_BYTES_MAX => {
                length *= 4;
                state.clock = clock;
            }
            Err(_) => return None,
        }
    }
}

fn run(packet: &Packet<'_>, scale: &TimeScale<'_>, offset: u64, before: Option<&Edge>) -> Run {
    let facts = &packet.facts;
    let earlier_ns = before.and_then(|edge| edge.end_ns).unwrap_or(0);
    let begin_ns = facts.begin.map_or(earlier_ns, |begin| scale.ns(begin));
    Run {
        offset_bytes: offset,
        from_bytes: offset,
        begin_ticks: facts.begin,
        begin_ns,
        end_ns: facts
            .end
            .map_or(i64::MAX, |end| scale.ns(end).max(begin_ns)),
        edge: Edge::new(facts, scale),
    }
}
