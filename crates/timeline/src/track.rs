//! A track: states one behind the other, with sums that make any range cheap.

use crate::state::{Kind, State};

/// Segments between two sums.
const BLOCK: usize = 64;
/// A range of at most so many segments is looked at one by one for its leader.
const EXACT_MAX: usize = 256;
/// Leaders that are looked at for the leader of a longer range, at most.
const LEADERS_MAX: usize = 16;
/// Leaders of a level that one of the level above stands for.
const FAN: usize = 8;

/// A stretch of one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From when, in nanoseconds of the wall clock.
    pub begin_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// The state.
    pub state: State,
}

/// An instant, and how many stretches begin at it or before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub at_ns: i64,
    pub begun: usize,
}

impl Edge {
    /// Before all.
    pub const FIRST: Edge = Edge {
        at_ns: i64::MIN,
        begun: 0,
    };
}

/// Time by kind.
pub type Sums = [u64; Kind::COUNT];

/// The state that has most of some stretches, and how much: of those that are work, where there
/// is any.
type Leader = (State, u64);

/// States one behind the other; before the first and behind the last nobody knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// In order; each state holds up to the next one's begin.
    begins_ns: Vec<i64>,
    states: Vec<State>,
    end_ns: i64,
    /// What was told later than something behind it.
    late: Vec<Segment>,
    /// What work turned out to have been since it was told.
    turned_out: Vec<Segment>,
    /// The time before each block by kind.
    before: Vec<Sums>,
    /// When each block begins: what is looked for is found there first, near each other.
    firsts_ns: Vec<i64>,
    /// Of blocks, of [`FAN`] of them, and so on.
    leaders: Vec<Vec<Leader>>,
}

impl Track {
    /// A track of these parts, as [`Track::parts`] gives them; none when they are no track.
    pub(crate) fn of_parts(begins_ns: Vec<i64>, states: Vec<State>, end_ns: i64) -> Option<Track> {
        let is_ordered = begins_ns.is_sorted_by(|before, after| before < after);
        let ends = begins_ns.last().is_none_or(|last| *last < end_ns);
        if begins_ns.len() != states.len() || !is_ordered || !ends {
            return None;
        }
        let mut track = Track {
            begins_ns,
            states,
            end_ns,
            ..Track::default()
        };
        track.sum_up();
        Some(track)
    }

    /// Its begins, its states and its end.
    pub(crate) fn parts(&self) -> (&[i64], &[State], i64) {
        (&self.begins_ns, &self.states, self.end_ns)
    }

    /// Adds a stretch; what is told late is put in its place by [`Track::finish`].
    pub fn push(&mut self, segment: Segment) {
        if segment.begin_ns >= segment.end_ns {
            return;
        }
        if !self.begins_ns.is_empty() && segment.begin_ns < self.end_ns {
            self.late.push(segment);
            return;
        }
        self.append(segment);
    }

    /// Work that was told was something else in this stretch.
    pub fn turns_out(&mut self, segment: Segment) {
        self.turned_out.push(segment);
    }

    fn append(&mut self, segment: Segment) {
        if !self.begins_ns.is_empty() && segment.begin_ns > self.end_ns {
            self.begin(self.end_ns, State::UNKNOWN);
        }
        self.begin(segment.begin_ns, segment.state);
        self.end_ns = segment.end_ns;
    }

    fn begin(&mut self, begin_ns: i64, state: State) {
        if self.states.last() != Some(&state) {
            self.begins_ns.push(begin_ns);
            self.states.push(state);
        }
    }

    /// The state of the stretch that begins at `begin_ns`, to fix it.
    pub(crate) fn from(&mut self, begin_ns: i64) -> Option<&mut State> {
        if let Some(late) = self.late.iter_mut().rfind(|late| late.begin_ns == begin_ns) {
            return Some(&mut late.state);
        }
        let place = match self.begins_ns.last() {
            Some(last_ns) if *last_ns == begin_ns => self.states.len() - 1,
            _ => self.begins_ns.binary_search(&begin_ns).ok()?,
        };
        self.states.get_mut(place)
    }

    /// Puts all in order and adds it up. Where two stretches say something of one instant, the
    /// first to begin is believed; what it knew nothing of, the other fills.
    pub fn finish(&mut self) {
        if !self.late.is_empty() {
            let mut all: Vec<Segment> = self.segments(i64::MIN, i64::MAX).collect();
            all.retain(|segment| segment.state != State::UNKNOWN);
            all.append(&mut self.late);
            all.sort_by_key(|segment| (segment.begin_ns, segment.end_ns));
            *self = Track {
                turned_out: std::mem::take(&mut self.turned_out),
                ..Track::default()
            };
            for mut segment in all {
                if !self.begins_ns.is_empty() {
                    segment.begin_ns = segment.begin_ns.max(self.end_ns);
                }
                if segment.begin_ns < segment.end_ns {
                    self.append(segment);
                }
            }
        }
        if !self.turned_out.is_empty() {
            self.put_right();
        }
        self.sum_up();
    }

    /// Puts what work turned out to have been in its place.
    fn put_right(&mut self) {
        let mut turned_out = std::mem::take(&mut self.turned_out);
        turned_out.sort_by_key(|segment| segment.begin_ns);
        let told: Vec<Segment> = self.segments(i64::MIN, i64::MAX).collect();
        *self = Track::default();
        let mut first = 0;
        for segment in told
            .iter()
            .filter(|segment| segment.state != State::UNKNOWN)
        {
            let is_before = |other: &Segment| other.end_ns <= segment.begin_ns;
            first += turned_out[first..]
                .iter()
                .take_while(|other| is_before(other))
                .count();
            let is_work = matches!(segment.state.kind(), Kind::Run | Kind::Call);
            let inside = turned_out[first..].iter().filter(|_| is_work);
            let mut from_ns = segment.begin_ns;
            for other in inside.take_while(|other| other.begin_ns < segment.end_ns) {
                let begin_ns = other.begin_ns.max(from_ns);
                let end_ns = other.end_ns.min(segment.end_ns);
                self.push(Segment {
                    begin_ns: from_ns,
                    end_ns: begin_ns,
                    ..*segment
                });
                self.push(Segment {
                    begin_ns,
                    end_ns,
                    ..*other
                });
                from_ns = from_ns.max(end_ns);
            }
            self.push(Segment {
                begin_ns: from_ns,
                ..*segment
            });
        }
    }

    fn sum_up(&mut self) {
        let count = self.states.len().div_ceil(BLOCK);
        self.before = Vec::with_capacity(count);
        self.firsts_ns = Vec::with_capacity(count);
        let mut leaders = Vec::with_capacity(count);
        let mut before = Sums::default();
        let mut times: Vec<Leader> = Vec::with_capacity(BLOCK);
        for first in (0..self.states.len()).step_by(BLOCK) {
            self.before.push(before);
            self.firsts_ns.push(self.begins_ns[first]);
            times.clear();
            for place in first..(first + BLOCK).min(self.states.len()) {
                let ns = self.end_of(place).abs_diff(self.begins_ns[place]);
                let state = self.states[place];
                before[state.kind() as usize] += ns;
                add(&mut times, state, ns);
            }
            leaders.push(leader(&times));
        }
        self.leaders.clear();
        while leaders.len() > LEADERS_MAX {
            let above = leaders.chunks(FAN).map(|some| {
                times.clear();
                some.iter()
                    .for_each(|(state, ns)| add(&mut times, *state, *ns));
                leader(&times)
            });
            let above = above.collect();
            self.leaders.push(std::mem::replace(&mut leaders, above));
        }
        self.leaders.push(leaders);
    }

    /// How many stretches it has.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether it knows nothing.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Until when a stretch lasts.
    fn end_of(&self, place: usize) -> i64 {
        self.begins_ns
            .get(place + 1)
            .copied()
            .unwrap_or(self.end_ns)
    }

    /// How many stretches begin at or before an instant.
    fn begun(&self, at_ns: i64) -> usize {
        self.begins_ns.partition_point(|begin| *begin <= at_ns)
    }

    /// The state at an instant.
    pub fn at(&self, at_ns: i64) -> State {
        match self.begun(at_ns).checked_sub(1) {
            Some(place) if at_ns < self.end_ns => self.states[place],
            _ => State::UNKNOWN,
        }
    }

    /// The place of an instant that is not before `from`: near it by few looks.
    pub(crate) fn edge(&self, at_ns: i64, from: Edge) -> Edge {
        let blocks = &self.firsts_ns;
        let (mut low, mut step) = (from.begun / BLOCK, 1);
        while blocks.get(low + step).is_some_and(|begin| *begin <= at_ns) {
            low += step;
            step *= 2;
        }
        let until = (low + step).min(blocks.len());
        let near = blocks.get(low + 1..until).unwrap_or_default();
        let block = low + near.partition_point(|begin| *begin <= at_ns);
        let first = from.begun.max(block * BLOCK);
        let last = ((block + 1) * BLOCK).min(self.begins_ns.len());
        let inside = self.begins_ns.get(first..last).unwrap_or_default();
        let begun = first + inside.partition_point(|begin| *begin <= at_ns);
        Edge { at_ns, begun }
    }

    /// Time by kind before an instant.
    fn before(&self, at_ns: i64) -> Sums {
        let begun = self.begun(at_ns);
        self.before_edge(Edge { at_ns, begun })
    }

    /// The same of an instant whose place is known.
    pub(crate) fn before_edge(&self, edge: Edge) -> Sums {
        let at_ns = edge.at_ns.min(self.end_ns);
        let Some(last) = edge.begun.checked_sub(1) else {
            return Sums::default();
        };
        let mut sums = self.before[last / BLOCK];
        for place in last / BLOCK * BLOCK..=last {
            let end_ns = self.end_of(place).min(at_ns);
            let ns = end_ns.abs_diff(self.begins_ns[place]);
            sums[self.states[place].kind() as usize] += ns;
        }
        sums
    }

    /// Time by kind between two instants; what lies outside of the track is unknown.
    pub fn sums(&self, begin_ns: i64, end_ns: i64) -> Sums {
        if begin_ns >= end_ns {
            return Sums::default();
        }
        let (before, after) = (self.before(begin_ns), self.before(end_ns));
        let mut sums = Sums::default();
        for (sum, (before, after)) in sums.iter_mut().zip(before.iter().zip(after)) {
            *sum = after - before;
        }
        let known: u64 = sums.iter().sum();
        sums[Kind::Unknown as usize] += end_ns.abs_diff(begin_ns) - known;
        sums
    }

    /// Stretches that touch a range, in order, as they are.
    pub fn segments(&self, begin_ns: i64, end_ns: i64) -> impl Iterator<Item = Segment> + '_ {
        let first = self.begun(begin_ns).saturating_sub(1);
        let last = self.begins_ns.partition_point(|begin| *begin < end_ns);
        let segment = |place: usize| Segment {
            begin_ns: self.begins_ns[place],
            end_ns: self.end_of(place),
            state: self.states[place],
        };
        let inside = (first..last.max(first)).map(segment);
        inside.filter(move |segment| segment.end_ns > begin_ns)
    }

    /// The state of this kind that has most of a range: exact for few stretches, else that of the
    /// leaders of its blocks that has most.
    pub(crate) fn leader_between(&self, begin: Edge, end: Edge, kind: Kind) -> State {
        if end.begun.saturating_sub(begin.begun) >= EXACT_MAX {
            return self.leader_of_blocks(begin.begun / BLOCK, end.begun / BLOCK, kind);
        }
        let mut times: Vec<Leader> = Vec::new();
        for place in begin.begun.saturating_sub(1)..end.begun {
            let end_ns = self.end_of(place).min(end.at_ns);
            let begin_ns = self.begins_ns[place].max(begin.at_ns);
            if self.states[place].kind() == kind && begin_ns < end_ns {
                add(&mut times, self.states[place], end_ns.abs_diff(begin_ns));
            }
        }
        most(&times).0
    }

    /// How many stretches touch a range, or one less or more.
    pub fn count(&self, begin_ns: i64, end_ns: i64) -> usize {
        let first = self.begun(begin_ns);
        let last = self.begins_ns.partition_point(|begin| *begin < end_ns);
        (last + 1).saturating_sub(first)
    }

    /// Of blocks, the state of a kind whose leaders have most: of the level at which they are few.
    fn leader_of_blocks(&self, mut first: usize, mut last: usize, kind: Kind) -> State {
        let mut level = 0;
        while last - first > LEADERS_MAX && level + 1 < self.leaders.len() {
            (first, last, level) = (first.div_ceil(FAN), last / FAN, level + 1);
        }
        let leaders = self.leaders.get(level).map_or(&[][..], Vec::as_slice);
        let last = last.min(leaders.len());
        let mut times: Vec<Leader> = Vec::with_capacity(LEADERS_MAX);
        let some = leaders.get(first..last).unwrap_or_default();
        for (state, ns) in some.iter().filter(|(state, _)| state.kind() == kind) {
            add(&mut times, *state, *ns);
        }
        match most(&times) {
            (_, 0) => State::new(kind, None),
            (state, _) => state,
        }
    }
}

/// What a page names: who works, where anybody does.
fn leader(times: &[Leader]) -> Leader {
    let is_work =
        |(state, _): &&Leader| matches!(state.kind(), Kind::Run | Kind::Call | Kind::Runnable);
    let work = times.iter().filter(is_work).max_by_key(|(_, ns)| *ns);
    work.copied().unwrap_or_else(|| most(times))
}

fn add(times: &mut Vec<Leader>, state: State, ns: u64) {
    match times.iter_mut().find(|(known, _)| *known == state) {
        Some((_, sum)) => *sum += ns,
        None => times.push((state, ns)),
    }
}

fn most(times: &[Leader]) -> Leader {
    let most = times.iter().max_by_key(|(_, ns)| *ns);
    most.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches of a microsecond, of which every third is the task's of its part of the track.
    fn track(count: i64) -> Track {
        let mut track = Track::default();
        for place in 0..count {
            let state = match place % 3 {
                0 => State::new(Kind::Run, Some((place * 4 / count) as u32)),
                1 => State::new(Kind::Run, Some(100 + place as u32 % 7)),
                _ => State::new(Kind::Idle, None),
            };
            let begin_ns = place * 1_000 + if place % 3 == 1 { 900 } else { 0 };
            track.push(Segment {
                begin_ns,
                end_ns: (place + 1) * 1_000 + if place % 3 == 0 { 900 } else { 0 },
                state,
            });
        }
        track.finish();
        track
    }

    #[test]
    fn an_edge_is_where_a_look_at_all_finds_it_from_wherever_it_is_looked_for() {
        for count in [0, 1, 63, 64, 65, 1_000, 20_000] {
            let track = track(count);
            for from_us in [-5, 0, 1, count / 2, count] {
                let from = track.edge(from_us * 1_000 + 7, Edge::FIRST);
                for us in [from_us, from_us + 1, from_us + 64, from_us + 700, count * 2] {
                    let at_ns = us * 1_000 + 7;
                    let edge = track.edge(at_ns.max(from.at_ns), from);
                    assert_eq!(
                        edge.begun,
                        track.begun(edge.at_ns),
                        "{count} {from_us} {us}"
                    );
                }
            }
        }
    }

    #[test]
    fn of_a_long_range_whoever_has_most_leads_at_every_level() {
        let count = 600_000;
        let track = track(count);
        // A part has as many stretches as two or more leaders of the level that is asked.
        for parts in [4, 8, 40, 400] {
            let of_part = |part: i64| count * 1_000 / parts * part;
            for part in 0..parts {
                let begin = track.edge(of_part(part), Edge::FIRST);
                let end = track.edge(of_part(part + 1), begin);
                let leader = track.leader_between(begin, end, Kind::Run);
                let expect = (part * 4 / parts) as u32;
                assert_eq!(
                    leader,
                    State::new(Kind::Run, Some(expect)),
                    "{part} of {parts}"
                );
            }
        }
        let (begin, end) = (
            track.edge(0, Edge::FIRST),
            track.edge(count * 1_000, Edge::FIRST),
        );
        let call = track.leader_between(begin, end, Kind::Call);
        assert_eq!(call, State::new(Kind::Call, None), "nobody was in a call");
    }
}
