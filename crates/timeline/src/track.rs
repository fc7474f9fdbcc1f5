//! A track: states one behind the other, with sums that make any range cheap.

use std::collections::HashMap;
use std::sync::Arc;

use crate::decoded::{BLOCK, Decoded};
use crate::kept::{Kept, Spill};
use crate::late::Late;
use crate::packed::unpack;
use crate::state::{Kind, Segment, State};
use crate::tally::{Leader, Tally};

/// Leaders that are looked at for the leader of a longer range, at most.
const LEADERS_MAX: usize = 16;
/// Leaders of a level that one of the level above stands for.
const FAN: usize = 8;

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

/// So many stretches, packed: of each what it begins later than the one before, then their states.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// When the first begins.
    pub begin_ns: i64,
    /// The time before it by kind.
    pub before: Sums,
    pub kept: Kept,
}

impl Block {
    /// Its stretches; nobody knows them where its bytes are not what was kept.
    pub fn decoded(&self, room: &mut Vec<u8>) -> Arc<Decoded> {
        let known = match &self.kept {
            Kept::Lent { lent, at, .. } => lent.remembered.get(*at, || self.read(room)),
            Kept::Memory(_) => self.read(room).map(Arc::new),
        };
        known.unwrap_or_else(|| Arc::new(Decoded::unknown(self.begin_ns)))
    }

    fn read(&self, room: &mut Vec<u8>) -> Option<Decoded> {
        let mut numbers = [0; 2 * BLOCK];
        unpack(self.kept.read(room)?, &mut numbers)?;
        let (later, all) = numbers.split_at(BLOCK);
        let (mut begin_ns, mut is_ordered) = (self.begin_ns, true);
        let begins_ns = later.iter().map(|later_ns| {
            let before_ns = begin_ns;
            begin_ns = begin_ns.wrapping_add_unsigned(*later_ns);
            is_ordered &= before_ns <= begin_ns;
            begin_ns
        });
        let begins_ns = begins_ns.collect();
        let states = all.iter().map(|state| State(*state as u32)).collect();
        let most = all.iter().fold(0, |all, state| all | state);
        let is_block = is_ordered && u32::try_from(most).is_ok();
        is_block.then_some(Decoded { begins_ns, states })
    }
}

/// States one behind the other; before the first and behind the last nobody knows.
///
/// The last ones are as they were told. Those before are in blocks, whose bytes may be in a file.
#[derive(Clone, Debug, Default)]
pub struct Track {
    pub(crate) blocks: Vec<Block>,
    /// Of what is in no block yet, in order; each state holds up to the next one's begin.
    pub(crate) begins_ns: Vec<i64>,
    pub(crate) states: Vec<State>,
    /// The time before that by kind.
    pub(crate) before: Sums,
    pub(crate) end_ns: i64,
    /// What was told late, and what of that belongs to blocks.
    recent: Late,
    far: Late,
    /// What waits in blocks were for, by their begins.
    amended: HashMap<i64, State>,
    /// Of blocks, of [`FAN`] of them, and so on.
    pub(crate) leaders: Vec<Vec<Leader>>,
}

/// Two are equal when they say the same, wherever their bytes are.
impl PartialEq for Track {
    fn eq(&self, other: &Track) -> bool {
        let segments = self.segments(i64::MIN, i64::MAX);
        self.end_ns == other.end_ns && segments.eq(other.segments(i64::MIN, i64::MAX))
    }
}

impl Track {
    /// Adds a stretch; what is told late is put in its place by [`Track::finish`].
    pub(crate) fn push(&mut self, segment: Segment, spill: &mut Spill) {
        if segment.begin_ns >= segment.end_ns {
            return;
        }
        if !self.is_empty() && segment.begin_ns < self.end_ns {
            self.recent.late.push(segment);
            return;
        }
        self.append(segment);
        // Most of what is put right belongs to the last few.
        if self.states.len() >= 2 * BLOCK {
            self.settle();
            self.seal(spill);
        }
    }

    /// Work that was told was something else in this stretch.
    pub(crate) fn turns_out(&mut self, segment: Segment) {
        self.recent.turned_out.push(segment);
    }

    /// Adds a stretch behind all others.
    fn append(&mut self, segment: Segment) {
        if !self.is_empty() && segment.begin_ns > self.end_ns {
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

    /// Puts the first of what is open into a block.
    fn seal(&mut self, spill: &mut Spill) {
        let begin_ns = self.begins_ns[0];
        let mut numbers = [0; 2 * BLOCK];
        let (later, states) = numbers.split_at_mut(BLOCK);
        let mut before_ns = begin_ns;
        for (later, begin) in later.iter_mut().zip(&self.begins_ns) {
            *later = begin.abs_diff(before_ns);
            before_ns = *begin;
        }
        for (number, state) in states.iter_mut().zip(&self.states) {
            *number = state.0.into();
        }
        self.blocks.push(Block {
            begin_ns,
            before: self.before,
            kept: spill.keep_numbers(&numbers),
        });
        let (sums, leader) = self.add_up(0..BLOCK);
        add_sums(&mut self.before, &sums);
        match self.leaders.first_mut() {
            Some(leaders) => leaders.push(leader),
            None => self.leaders.push(vec![leader]),
        }
        self.begins_ns.drain(..BLOCK);
        self.states.drain(..BLOCK);
    }

    /// Time by kind and the leader of some of what is open.
    fn add_up(&self, places: std::ops::Range<usize>) -> (Sums, Leader) {
        let mut sums = Sums::default();
        let mut tally = Tally::default();
        for place in places {
            let end_ns = self.begins_ns.get(place + 1).unwrap_or(&self.end_ns);
            let ns = end_ns.abs_diff(self.begins_ns[place]);
            let state = self.states[place];
            sums[state.kind() as usize] += ns;
            tally.add(state, ns);
        }
        (sums, leader(tally.times()))
    }

    /// Says what a task waited for that waits for a CPU from `begin_ns` on, where the track says
    /// so.
    pub(crate) fn amend(&mut self, begin_ns: i64, state: State) {
        let waits = |state: &&mut State| state.kind() == Kind::Runnable;
        let mut late = self.far.late.iter_mut().chain(&mut self.recent.late);
        if let Some(late) = late.rfind(|late| late.begin_ns == begin_ns) {
            if let Some(waits) = Some(&mut late.state).filter(waits) {
                *waits = state;
            }
            return;
        }
        if self
            .begins_ns
            .first()
            .is_some_and(|first_ns| begin_ns < *first_ns)
        {
            if !self.blocks.is_empty() {
                self.amended.insert(begin_ns, state);
            }
            return;
        }
        let place = match self.begins_ns.last() {
            Some(last_ns) if *last_ns == begin_ns => Ok(self.states.len() - 1),
            _ => self.begins_ns.binary_search(&begin_ns),
        };
        let found = place.ok().and_then(|place| self.states.get_mut(place));
        if let Some(waits) = found.filter(waits) {
            *waits = state;
        }
    }

    /// Puts all in order and adds it up. Where two stretches say something of one instant, the
    /// first to begin is believed; what it knew nothing of, the other fills.
    pub(crate) fn finish(&mut self, spill: &mut Spill) {
        self.settle();
        self.begin_earlier(spill);
        if !(self.far.is_empty() && self.amended.is_empty()) {
            spill.flush();
            self.tell_again(spill);
        }
        self.lead();
    }

    /// Puts what came late and belongs to what is open in its place.
    fn settle(&mut self) {
        let Some(first_ns) = self.begins_ns.first().copied() else {
            return;
        };
        let recent = std::mem::take(&mut self.recent);
        let is_all = self.blocks.is_empty();
        let (here, far) = recent.parted(|segment| is_all || segment.begin_ns >= first_ns);
        self.far.extend(far);
        if here.is_empty() {
            return;
        }
        let ends_ns = self.begins_ns.iter().skip(1).chain([&self.end_ns]);
        let open = self.begins_ns.iter().zip(ends_ns).zip(&self.states);
        let known = open.map(|((begin_ns, end_ns), state)| Segment {
            begin_ns: *begin_ns,
            end_ns: *end_ns,
            state: *state,
        });
        let mut settled = Track::default();
        let known = known.filter(|segment| segment.state != State::UNKNOWN);
        here.put_in_order(known, |segment| settled.append(segment));
        // What is in blocks ends where this begins, and ended where this ended.
        if !is_all && settled.begins_ns.first() != Some(&first_ns) {
            settled.begins_ns.insert(0, first_ns);
            settled.states.insert(0, State::UNKNOWN);
        }
        if settled.end_ns < self.end_ns {
            settled.begin(settled.end_ns, State::UNKNOWN);
            settled.end_ns = self.end_ns;
        }
        (self.begins_ns, self.states) = (settled.begins_ns, settled.states);
        self.end_ns = settled.end_ns;
    }

    /// Puts what came late and belongs before all blocks there.
    fn begin_earlier(&mut self, spill: &mut Spill) {
        let begins = self.block_begin(0).filter(|_| !self.blocks.is_empty());
        let is_before = |late: &Segment| begins.is_some_and(|begin_ns| late.end_ns <= begin_ns);
        let is_that_all = self.far.turned_out.is_empty() && self.amended.is_empty();
        let (Some(begin_ns), true) = (begins, is_that_all && !self.far.late.is_empty()) else {
            return;
        };
        if !self.far.late.iter().all(is_before) {
            return;
        }
        let mut front = Track::default();
        let far = std::mem::take(&mut self.far);
        far.put_in_order(std::iter::empty(), |segment| front.append(segment));
        if front.end_ns < begin_ns {
            front.begin(front.end_ns, State::UNKNOWN);
            front.end_ns = begin_ns;
        }
        // All blocks have as many stretches: those that are missing have no length.
        let missing = front.states.len().next_multiple_of(BLOCK) - front.states.len();
        let first_ns = front.begins_ns[0];
        front
            .begins_ns
            .splice(0..0, std::iter::repeat_n(first_ns, missing));
        front
            .states
            .splice(0..0, std::iter::repeat_n(State::UNKNOWN, missing));
        while !front.states.is_empty() {
            front.seal(spill);
        }
        for block in &mut self.blocks {
            add_sums(&mut block.before, &front.before);
        }
        add_sums(&mut self.before, &front.before);
        self.blocks.splice(0..0, front.blocks);
        if let (Some(all), Some(leaders)) = (self.leaders.first_mut(), front.leaders.pop()) {
            all.splice(0..0, leaders);
        }
    }

    /// Tells all again, with what came late, what waits were for and what work turned out to be.
    fn tell_again(&mut self, spill: &mut Spill) {
        let mut told = std::mem::take(self);
        let far = std::mem::take(&mut told.far);
        let right = |segment: Segment| match told.amended.get(&segment.begin_ns) {
            Some(state) if segment.state.kind() == Kind::Runnable => Segment {
                state: *state,
                ..segment
            },
            _ => segment,
        };
        let known = told.segments(i64::MIN, i64::MAX).map(right);
        let known = known.filter(|segment| segment.state != State::UNKNOWN);
        far.put_in_order(known, |segment| self.push(segment, spill));
    }

    /// Says who leads what is open, and the levels above the blocks.
    pub(crate) fn lead(&mut self) {
        let mut leaders = std::mem::take(&mut self.leaders)
            .into_iter()
            .next()
            .unwrap_or_default();
        leaders.truncate(self.blocks.len());
        for first in (0..self.states.len()).step_by(BLOCK) {
            let last = (first + BLOCK).min(self.states.len());
            leaders.push(self.add_up(first..last).1);
        }
        let mut times: Vec<Leader> = Vec::with_capacity(FAN);
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

    /// How many stretches it has, or a few more.
    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.states.len()
    }

    /// Whether it knows nothing.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// When a block begins; behind the last comes what is open.
    pub(crate) fn block_begin(&self, number: usize) -> Option<i64> {
        match self.blocks.get(number) {
            Some(block) => Some(block.begin_ns),
            None if number == self.blocks.len() => self.begins_ns.first().copied(),
            None => None,
        }
    }

    /// Of blocks, the state of a kind whose leaders have most: of the level at which they are few.
    pub(crate) fn leader_of_blocks(&self, mut first: usize, mut last: usize, kind: Kind) -> State {
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

fn add_sums(sums: &mut Sums, more: &Sums) {
    sums.iter_mut()
        .zip(more)
        .for_each(|(sum, more)| *sum += more);
}

/// The time by kind of a range, by that before its begin and that before its end; what is not
/// known in it is unknown.
pub(crate) fn between(before: &Sums, after: &Sums, whole_ns: u64) -> Sums {
    let mut sums = Sums::default();
    for (sum, (before, after)) in sums.iter_mut().zip(before.iter().zip(after)) {
        // Less is known of a block whose bytes were damaged.
        *sum = after.saturating_sub(*before);
    }
    let known = sums.iter().fold(0u64, |all, sum| all.saturating_add(*sum));
    sums[Kind::Unknown as usize] += whole_ns.saturating_sub(known);
    sums
}

/// What a page names: who works, where anybody does.
fn leader(times: &[Leader]) -> Leader {
    let is_work =
        |(state, _): &&Leader| matches!(state.kind(), Kind::Run | Kind::Call | Kind::Runnable);
    let work = times.iter().filter(is_work).max_by_key(|(_, ns)| *ns);
    work.copied().unwrap_or_else(|| most(times))
}

pub(crate) fn add(times: &mut Vec<Leader>, state: State, ns: u64) {
    match times.iter_mut().find(|(known, _)| *known == state) {
        Some((_, sum)) => *sum += ns,
        None => times.push((state, ns)),
    }
}

pub(crate) fn most(times: &[Leader]) -> Leader {
    let most = times.iter().max_by_key(|(_, ns)| *ns);
    most.copied().unwrap_or_default()
}
