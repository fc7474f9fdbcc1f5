//! A look at a track, which remembers the blocks that it decoded last.

use std::sync::Arc;

use crate::decoded::{BLOCK, Decoded};
use crate::state::{Kind, Segment, State};
use crate::tally::Tally;
use crate::track::{Edge, Sums, Track, between, most};

/// Blocks that are remembered: as many as a range has that is looked at one by one.
const DECODED: usize = 4;
/// A range of at most so many segments is looked at one by one for its leader.
const EXACT_MAX: usize = 256;

impl Track {
    /// The state at an instant.
    pub fn at(&self, at_ns: i64) -> State {
        let mut look = Look::new(self);
        match look.edge(at_ns, Edge::FIRST).begun.checked_sub(1) {
            Some(place) if at_ns < self.end_ns => look.state_of(place),
            _ => State::UNKNOWN,
        }
    }

    /// Time by kind between two instants; what lies outside of the track is unknown.
    pub fn sums(&self, begin_ns: i64, end_ns: i64) -> Sums {
        if begin_ns >= end_ns {
            return Sums::default();
        }
        let mut look = Look::new(self);
        let begin = look.edge(begin_ns, Edge::FIRST);
        let before = look.before_edge(begin);
        let end = look.edge(end_ns, begin);
        between(&before, &look.before_edge(end), end_ns.abs_diff(begin_ns))
    }

    /// Stretches that touch a range, in order, as they are.
    pub fn segments(&self, begin_ns: i64, end_ns: i64) -> impl Iterator<Item = Segment> + '_ {
        let mut look = Look::new(self);
        let begin = look.edge(begin_ns, Edge::FIRST);
        let last = match end_ns.checked_sub(1).filter(|last_ns| *last_ns >= begin_ns) {
            Some(last_ns) => look.edge(last_ns, begin).begun,
            None => 0,
        };
        let places = begin.begun.saturating_sub(1)..last;
        let segment = move |place: usize| Segment {
            begin_ns: look.begin_of(place),
            end_ns: look.end_of(place),
            state: look.state_of(place),
        };
        let inside = places.map(segment);
        // Those of a block that cannot be read have no length, but for the last.
        let is_there = move |segment: &Segment| segment.end_ns > segment.begin_ns.max(begin_ns);
        inside.filter(is_there)
    }

    /// How many stretches touch a range, or a few more.
    pub fn count(&self, begin_ns: i64, end_ns: i64) -> usize {
        let mut look = Look::new(self);
        let first = look.edge(begin_ns, Edge::FIRST);
        let last = look.edge(end_ns.saturating_sub(1).max(begin_ns), first);
        (last.begun + 1).saturating_sub(first.begun)
    }
}

/// A look at a track.
pub(crate) struct Look<'t> {
    track: &'t Track,
    /// Each at its number's place, with that.
    decoded: [Option<(usize, Arc<Decoded>)>; DECODED],
    room: Vec<u8>,
    tally: Tally,
}

impl<'t> Look<'t> {
    pub fn new(track: &'t Track) -> Look<'t> {
        Look {
            track,
            decoded: Default::default(),
            room: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// The block of a stretch.
    fn number(&self, place: usize) -> usize {
        (place / BLOCK).min(self.track.blocks.len())
    }

    /// The stretches of a block; behind the last comes what is open. What cannot be read is a
    /// stretch of which nobody knows.
    fn block(&mut self, number: usize) -> (&[i64], &[State]) {
        let Some(block) = self.track.blocks.get(number) else {
            return (&self.track.begins_ns, &self.track.states);
        };
        let place = &mut self.decoded[number % DECODED];
        let known = place.take().filter(|(known, _)| *known == number);
        let known = known.unwrap_or_else(|| (number, block.decoded(&mut self.room)));
        let (_, decoded) = place.insert(known);
        (&decoded.begins_ns, &decoded.states)
    }

    /// When a stretch begins; behind the last, when that ends.
    pub fn begin_of(&mut self, place: usize) -> i64 {
        let (track, number) = (self.track, self.number(place));
        let inside = place - number * BLOCK;
        // Known without a look into the block.
        if let (0, Some(begin_ns)) = (inside, track.block_begin(number)) {
            return begin_ns;
        }
        let begin_ns = self.block(number).0.get(inside);
        begin_ns.copied().unwrap_or(track.end_ns)
    }

    /// Until when a stretch lasts.
    pub fn end_of(&mut self, place: usize) -> i64 {
        self.begin_of(place + 1)
    }

    /// The state of a stretch.
    pub fn state_of(&mut self, place: usize) -> State {
        let number = self.number(place);
        let state = self.block(number).1.get(place - number * BLOCK);
        state.copied().unwrap_or_default()
    }

    /// The place of an instant that is not before `from`: near it by few looks.
    pub fn edge(&mut self, at_ns: i64, from: Edge) -> Edge {
        let track = self.track;
        let begins = |number: usize| {
            let begin_ns = track.block_begin(number);
            begin_ns.is_some_and(|begin_ns| begin_ns <= at_ns)
        };
        let (mut low, mut step) = (self.number(from.begun), 1);
        while begins(low + step) {
            low += step;
            step *= 2;
        }
        let mut behind = low + step;
        while behind - low > 1 {
            let middle = low + (behind - low) / 2;
            match begins(middle) {
                true => low = middle,
                false => behind = middle,
            }
        }
        let first = low * BLOCK;
        let begins_ns = self.block(low).0;
        let skipped = from.begun.saturating_sub(first).min(begins_ns.len());
        let inside = begins_ns.get(skipped..).unwrap_or_default();
        let begun = first + skipped + inside.partition_point(|begin| *begin <= at_ns);
        Edge { at_ns, begun }
    }

    /// Time by kind before an instant whose place is known.
    pub fn before_edge(&mut self, edge: Edge) -> Sums {
        self.before_edge_behind((Edge::FIRST, &Sums::default()), edge)
    }

    /// The same, where that before another one is known, which is not behind it: of one in the same
    /// block only what lies between the two is looked at.
    pub fn before_edge_behind(&mut self, (known, sums): (Edge, &Sums), edge: Edge) -> Sums {
        let track = self.track;
        let at_ns = edge.at_ns.min(track.end_ns);
        let Some(last) = edge.begun.checked_sub(1) else {
            return Sums::default();
        };
        let number = self.number(last);
        let known_last = known.begun.checked_sub(1);
        let known_last = known_last.filter(|last| self.number(*last) == number);
        let (first, from_ns, mut sums) = match known_last {
            Some(first) => (first, known.at_ns.min(track.end_ns), *sums),
            None => {
                let before = track.blocks.get(number).map(|block| block.before);
                (number * BLOCK, i64::MIN, before.unwrap_or(track.before))
            }
        };
        let next_ns = track.block_begin(number + 1).unwrap_or(track.end_ns);
        let places = first - number * BLOCK..last - number * BLOCK + 1;
        let stretches = (self.block(number), next_ns);
        each_inside(stretches, places, (from_ns, at_ns), |state, ns| {
            let sum = &mut sums[state.kind() as usize];
            *sum = sum.saturating_add(ns);
        });
        sums
    }

    /// The state of this kind that has most of a range: exact for few stretches, else that of the
    /// leaders of its blocks that has most.
    pub fn leader_between(&mut self, begin: Edge, end: Edge, kind: Kind) -> State {
        if end.begun.saturating_sub(begin.begun) >= EXACT_MAX {
            let (first, last) = (begin.begun / BLOCK, end.begun / BLOCK);
            return self.track.leader_of_blocks(first, last, kind);
        }
        let mut tally = std::mem::take(&mut self.tally);
        tally.clear();
        let track = self.track;
        let (first, last) = (begin.begun.saturating_sub(1), end.begun);
        for number in self.number(first)..=self.number(last.saturating_sub(1)) {
            let next_ns = track.block_begin(number + 1).unwrap_or(track.end_ns);
            let before = number * BLOCK;
            let places = first.saturating_sub(before)..last - before;
            let stretches = (self.block(number), next_ns);
            each_inside(stretches, places, (begin.at_ns, end.at_ns), |state, ns| {
                if state.kind() == kind {
                    tally.add(state, ns);
                }
            });
        }
        let (state, _) = most(tally.times());
        self.tally = tally;
        state
    }
}

/// Hands out some stretches of a block, which ends at `end_ns`, each with its time in a range: the
/// first and the last of them may reach beyond that, and those between do not.
#[inline(always)] // the innermost loop of a tile
fn each_inside(
    ((begins_ns, states), end_ns): ((&[i64], &[State]), i64),
    places: std::ops::Range<usize>,
    (from_ns, until_ns): (i64, i64),
    mut each: impl FnMut(State, u64),
) {
    let places = places.start..places.end.min(states.len());
    let clipped = |place: usize| {
        let begin_ns = (*begins_ns.get(place)?).max(from_ns);
        let end_ns = begins_ns.get(place + 1).unwrap_or(&end_ns);
        let end_ns = (*end_ns).min(until_ns);
        (begin_ns < end_ns).then(|| (states[place], end_ns.abs_diff(begin_ns)))
    };
    let Some(last) = places.end.checked_sub(1).filter(|_| !places.is_empty()) else {
        return;
    };
    if let Some((state, ns)) = clipped(places.start).filter(|_| last > places.start) {
        each(state, ns);
    }
    let between = places.start + 1..last;
    if let (Some(states), Some(begins_ns)) =
        (states.get(between.clone()), begins_ns.get(between.start..))
    {
        for (state, begins) in states.iter().zip(begins_ns.windows(2)) {
            if let [begin_ns, end_ns] = begins {
                each(*state, end_ns.abs_diff(*begin_ns));
            }
        }
    }
    if let Some((state, ns)) = clipped(last) {
        each(state, ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::{Lent, Spill};

    /// Stretches of a microsecond, some of which were told late, and what waits were for later
    /// still.
    fn track(count: i64, spill: &mut Spill) -> Track {
        let mut track = Track::default();
        let segment = |place: i64| Segment {
            begin_ns: place * 1_000,
            end_ns: (place + 1) * 1_000,
            state: match place % 5 {
                0 => State::new(Kind::Runnable, None),
                kind => State::new(Kind::Run, Some((kind + place % 3) as u32)),
            },
        };
        let (late, told): (Vec<i64>, Vec<i64>) =
            (0..count).partition(|place| place % 911 == 7 || *place < 3);
        for place in told {
            track.push(segment(place), spill);
        }
        late.iter()
            .for_each(|place| track.push(segment(*place), spill));
        for place in (0..count).step_by(5) {
            let behind = State::new(Kind::Runnable, Some(place as u32 % 11));
            track.amend(place * 1_000, behind);
            // It is no wait.
            track.amend(place * 1_000 + 1_000, behind);
        }
        track.turns_out(Segment {
            begin_ns: 1_500,
            end_ns: 4_500,
            state: State::new(Kind::Softirq, Some(1)),
        });
        track.finish(spill);
        track
    }

    #[test]
    fn a_track_in_a_file_says_what_one_in_memory_says_wherever_it_is_asked() {
        for count in [0, 1, 3, 127, 128, 129, 256, 257, 5_000, 40_000] {
            let mut spill = Spill::to(Lent::new(tempfile::tempfile().expect("a file")), 0);
            let mut lent = track(count, &mut spill);
            spill.flush();
            lent.lead();
            let memory = track(count, &mut Spill::default());
            assert_eq!(lent, memory);
            for place in 0..count.min(3_000) {
                let at_ns = place * count / count.min(3_000) * 1_000 + 700;
                let expect = match at_ns {
                    1_500..4_500 => State::new(Kind::Softirq, Some(1)),
                    at_ns => expected(at_ns / 1_000),
                };
                assert_eq!(lent.at(at_ns), expect, "{count} {at_ns}");
            }
        }
    }

    /// As the model tells who had a CPU before the first switch there: at the trace's end.
    #[test]
    fn what_is_told_last_and_begins_first_stands_first() {
        for count in [2, 200, 257, 300, 5_000] {
            let segment = |place: i64| Segment {
                begin_ns: place * 1_000,
                end_ns: place * 1_000 + 900,
                state: State::new(Kind::Run, Some(place as u32)),
            };
            let told = |order: Vec<i64>| {
                let (mut track, mut spill) = (Track::default(), Spill::default());
                for place in order {
                    track.push(segment(place), &mut spill);
                }
                track.finish(&mut spill);
                track
            };
            let late: Vec<i64> = (2..count).chain([1, 0]).collect();
            let (late, early) = (told(late), told((0..count).collect()));
            assert_eq!(late, early, "{count}");
            for (begin_ns, end_ns) in [(-50, 700), (0, count * 1_000), (1_500, 90_000)] {
                let sums = late.sums(begin_ns, end_ns);
                assert_eq!(sums, early.sums(begin_ns, end_ns), "{count} {begin_ns}");
                let all = late.segments(begin_ns, end_ns);
                assert!(all.eq(early.segments(begin_ns, end_ns)));
            }
            for at_ns in [-1, 0, 899, 900, 1_000, 1_950, 2_000, 250_100] {
                assert_eq!(late.at(at_ns), early.at(at_ns), "{count} {at_ns}");
            }
        }
    }

    fn expected(place: i64) -> State {
        match place % 5 {
            0 => State::new(Kind::Runnable, Some(place as u32 % 11)),
            kind => State::new(Kind::Run, Some((kind + place % 3) as u32)),
        }
    }

    /// Stretches of a microsecond, of which every third is the task's of its part of the track.
    fn thirds(count: i64) -> Track {
        let (mut track, mut spill) = (Track::default(), Spill::default());
        for place in 0..count {
            let state = match place % 3 {
                0 => State::new(Kind::Run, Some((place * 4 / count) as u32)),
                1 => State::new(Kind::Run, Some(100 + place as u32 % 7)),
                _ => State::new(Kind::Idle, None),
            };
            let begin_ns = place * 1_000 + if place % 3 == 1 { 900 } else { 0 };
            let segment = Segment {
                begin_ns,
                end_ns: (place + 1) * 1_000 + if place % 3 == 0 { 900 } else { 0 },
                state,
            };
            track.push(segment, &mut spill);
        }
        track.finish(&mut spill);
        track
    }

    #[test]
    fn an_edge_is_where_a_look_at_all_finds_it_from_wherever_it_is_looked_for() {
        for count in [0, 1, 127, 128, 129, 1_000, 20_000] {
            let track = thirds(count);
            let begins = track.segments(i64::MIN, i64::MAX).map(|one| one.begin_ns);
            let begins_ns: Vec<i64> = begins.collect();
            let mut look = Look::new(&track);
            for from_us in [-5, 0, 1, count / 2, count] {
                let from = look.edge(from_us * 1_000 + 7, Edge::FIRST);
                for us in [from_us, from_us + 1, from_us + 64, from_us + 700, count * 2] {
                    let at_ns = us * 1_000 + 7;
                    let edge = look.edge(at_ns.max(from.at_ns), from);
                    let begun = begins_ns.iter().filter(|begin| **begin <= edge.at_ns);
                    assert_eq!(edge.begun, begun.count(), "{count} {from_us} {us}");
                }
            }
        }
    }

    #[test]
    fn of_a_long_range_whoever_has_most_leads_at_every_level() {
        let count = 600_000;
        let track = thirds(count);
        let mut look = Look::new(&track);
        // A part has as many stretches as two or more leaders of the level that is asked.
        for parts in [4, 8, 40, 400] {
            let of_part = |part: i64| count * 1_000 / parts * part;
            for part in 0..parts {
                let begin = look.edge(of_part(part), Edge::FIRST);
                let end = look.edge(of_part(part + 1), begin);
                let leader = look.leader_between(begin, end, Kind::Run);
                let expect = (part * 4 / parts) as u32;
                assert_eq!(
                    leader,
                    State::new(Kind::Run, Some(expect)),
                    "{part} of {parts}"
                );
            }
        }
        let begin = look.edge(0, Edge::FIRST);
        let end = look.edge(count * 1_000, Edge::FIRST);
        let call = look.leader_between(begin, end, Kind::Call);
        assert_eq!(call, State::new(Kind::Call, None), "nobody was in a call");
    }
}
