//! Many activations in the order of their ends: the last ones as they were told, those before in
//! blocks, whose bytes may be in a file.

use crate::activation::{Activation, NO_TASK, ROWS, row};
use crate::kept::{self, Kept, Spill};
use crate::packed::unpack;

/// So many, one behind the other, are a block.
pub(crate) const BLOCK: usize = 1024;
/// Each is as many numbers.
const NUMBERS: usize = 5;

/// What the activations of a block took.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The end of the first.
    pub end_ns: i64,
    /// How many by row.
    pub by_row: [u16; ROWS],
    /// The first of the longest.
    pub longest: Activation,
    pub kept: Kept,
}

impl Block {
    fn of(activations: &[Activation], kept: Kept) -> Block {
        let first = activations.first().copied().unwrap_or_default();
        let mut block = Block {
            end_ns: first.end_ns,
            by_row: [0; ROWS],
            longest: first,
            kept,
        };
        for late in activations {
            block.by_row[row(late.latency_ns)] += 1;
            if late.latency_ns > block.longest.latency_ns {
                block.longest = *late;
            }
        }
        block
    }

    fn read(&self, into: &mut Vec<Activation>, room: &mut Vec<u8>) -> Option<()> {
        let mut numbers = vec![0; NUMBERS * BLOCK];
        unpack(self.kept.read(room)?, &mut numbers)?;
        let mut end_ns = self.end_ns;
        for one in numbers.as_chunks::<NUMBERS>().0 {
            let [later_ns, latency_ns, numbers @ ..] = *one;
            end_ns = end_ns.checked_add_unsigned(later_ns)?;
            let small = |number: u64| u32::try_from(number).ok();
            into.push(Activation {
                end_ns,
                latency_ns: kept::unfolded(latency_ns),
                // The one task that is none is as short as the others.
                task: small(numbers[0])?.wrapping_sub(1),
                cpu: small(numbers[1])?,
                what: small(numbers[2])?,
            });
        }
        Some(())
    }
}

/// Activations in the order of their ends.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    pub(crate) blocks: Vec<Block>,
    /// What is in no block yet.
    pub(crate) open: Vec<Activation>,
    /// What was told later than something that ended behind it.
    late: Vec<Activation>,
    /// Of blocks: what turned out to be none, by its task and its end.
    gone: Vec<(u32, i64)>,
}

/// Two are equal when they say the same, wherever their bytes are.
impl PartialEq for Timed {
    fn eq(&self, other: &Timed) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Timed {
    /// What is kept in blocks and what is in none, both in order.
    pub(crate) fn of_parts(blocks: Vec<Block>, open: Vec<Activation>) -> Timed {
        Timed {
            blocks,
            open,
            ..Timed::default()
        }
    }

    pub(crate) fn push(&mut self, one: Activation, spill: &mut Spill) {
        match self.open.last() {
            Some(last) if one.end_ns < last.end_ns => self.late.push(one),
            _ => self.open.push(one),
        }
        if self.open.len() >= 2 * BLOCK {
            self.fold_late();
            self.seal(spill);
        }
    }

    /// Takes the last one of a task that ended then away.
    pub(crate) fn take_away(&mut self, task: u32, end_ns: i64) {
        let is_it = |one: &Activation| (one.task, one.end_ns) == (task, end_ns);
        if let Some(place) = self.late.iter().rposition(is_it) {
            self.late.remove(place);
        } else if let Some(place) = self.open.iter().rposition(is_it) {
            self.open.remove(place);
        } else if !self.blocks.is_empty() && self.is_before_open(end_ns) {
            self.gone.push((task, end_ns));
        }
    }

    /// Whether what ended then may be in a block.
    fn is_before_open(&self, end_ns: i64) -> bool {
        self.open.first().is_none_or(|first| end_ns <= first.end_ns)
    }

    /// Puts what came late among what is open, where it belongs there.
    fn fold_late(&mut self) {
        let Some(first) = self.open.first().filter(|_| !self.late.is_empty()) else {
            return;
        };
        let first_ns = first.end_ns;
        let is_all = self.blocks.is_empty();
        let belongs = |one: &Activation| is_all || one.end_ns >= first_ns;
        let (here, late): (Vec<_>, Vec<_>) = self.late.drain(..).partition(belongs);
        self.late = late;
        // Of one instant, what was told first stands first.
        self.open.extend(here);
        self.open.sort_by_key(|one| one.end_ns);
    }

    /// Puts the first of what is open into a block.
    fn seal(&mut self, spill: &mut Spill) {
        let mut numbers = Vec::with_capacity(NUMBERS * BLOCK);
        let first = &self.open[..BLOCK];
        let mut before_ns = first[0].end_ns;
        for one in first {
            numbers.extend([
                one.end_ns.abs_diff(before_ns),
                kept::folded(one.latency_ns),
                one.task.wrapping_add(1).into(),
                one.cpu.into(),
                one.what.into(),
            ]);
            before_ns = one.end_ns;
        }
        let block = Block::of(first, spill.keep_numbers(&numbers));
        self.blocks.push(block);
        self.open.drain(..BLOCK);
    }

    /// Puts all in order.
    pub(crate) fn finish(&mut self, spill: &mut Spill) {
        self.fold_late();
        if self.late.is_empty() && self.gone.is_empty() {
            return;
        }
        spill.flush();
        let mut told = std::mem::take(self);
        told.late.sort_by_key(|one| one.end_ns);
        let late = std::mem::take(&mut told.late);
        let gone = std::mem::take(&mut told.gone);
        let is_gone = |one: &Activation| gone.contains(&(one.task, one.end_ns));
        let mut known = told.iter().filter(|one| !is_gone(one)).peekable();
        for one in late {
            while let Some(before) = known.next_if(|known| known.end_ns <= one.end_ns) {
                self.push(before, spill);
            }
            self.push(one, spill);
        }
        known.for_each(|one| self.push(one, spill));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.open.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Activation> + '_ {
        self.some(0..self.len())
    }

    /// Those that end in a range.
    pub(crate) fn inside(&self, range_ns: (i64, i64)) -> impl Iterator<Item = Activation> + '_ {
        let (first, last) = TimedLook::new(self).places(range_ns);
        self.some(first..last)
    }

    /// Those at some places.
    pub(crate) fn some(
        &self,
        places: std::ops::Range<usize>,
    ) -> impl Iterator<Item = Activation> + '_ {
        let mut look = TimedLook::new(self);
        places.map_while(move |place| look.get(place))
    }
}

/// A look at them, which remembers the block that it decoded last.
pub(crate) struct TimedLook<'t> {
    timed: &'t Timed,
    decoded: Option<usize>,
    activations: Vec<Activation>,
    room: Vec<u8>,
}

impl<'t> TimedLook<'t> {
    pub fn new(timed: &'t Timed) -> TimedLook<'t> {
        TimedLook {
            timed,
            decoded: None,
            activations: Vec::new(),
            room: Vec::new(),
        }
    }

    /// Those of a block; behind the last comes what is open. One that cannot be read is as if
    /// nothing in it took any time.
    pub fn block(&mut self, number: usize) -> &[Activation] {
        let Some(block) = self.timed.blocks.get(number) else {
            return &self.timed.open;
        };
        if self.decoded != Some(number) {
            self.decoded = Some(number);
            self.activations.clear();
            if block.read(&mut self.activations, &mut self.room).is_none() {
                let nothing = Activation {
                    end_ns: block.end_ns,
                    task: NO_TASK,
                    ..Activation::default()
                };
                self.activations.clear();
                self.activations.resize(BLOCK, nothing);
            }
        }
        &self.activations
    }

    pub fn get(&mut self, place: usize) -> Option<Activation> {
        let number = (place / BLOCK).min(self.timed.blocks.len());
        self.block(number).get(place - number * BLOCK).copied()
    }

    /// How many end before an instant.
    pub fn before(&mut self, at_ns: i64) -> usize {
        let blocks = &self.timed.blocks;
        let begun = blocks.partition_point(|block| block.end_ns < at_ns);
        let is_open = begun == blocks.len();
        let begins = self.timed.open.first().map(|first| first.end_ns);
        let number = match is_open && begins.is_some_and(|end_ns| end_ns < at_ns) {
            true => begun,
            false => begun.saturating_sub(1),
        };
        let inside = self.block(number);
        number * BLOCK + inside.partition_point(|one| one.end_ns < at_ns)
    }

    /// The places of those that end in a range.
    pub fn places(&mut self, (begin_ns, end_ns): (i64, i64)) -> (usize, usize) {
        let first = self.before(begin_ns);
        (first, self.before(end_ns).max(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::Lent;

    fn one(end_ns: i64, task: u32) -> Activation {
        Activation {
            end_ns,
            latency_ns: end_ns % 97 - 3,
            task,
            cpu: task % 5,
            what: u32::from(end_ns % 2 == 0),
        }
    }

    #[test]
    fn all_are_in_the_order_of_their_ends_however_late_they_were_told() {
        for count in [0, 1, 5, 1_023, 1_024, 2_048, 2_049, 20_000] {
            let mut told: Vec<Activation> = (0..count).map(|n| one(n / 3 * 7, n as u32)).collect();
            // Some a little late, some very late.
            for place in (40..told.len()).step_by(50) {
                told.swap(place, place - 30);
            }
            if told.len() > 9_000 {
                let late = told.remove(5);
                told.push(late);
            }
            let gone: Vec<Activation> = told.iter().step_by(331).copied().collect();
            let mut spill = Spill::to(Lent::new(tempfile::tempfile().expect("a file")), 0);
            let mut timed = Timed::default();
            told.iter().for_each(|one| timed.push(*one, &mut spill));
            gone.iter()
                .for_each(|one| timed.take_away(one.task, one.end_ns));
            timed.finish(&mut spill);
            spill.flush();
            told.retain(|one| !gone.contains(one));
            told.sort_by_key(|one| one.end_ns);
            assert_eq!(timed.iter().collect::<Vec<_>>(), told, "{count}");
            for range in [(0, 1), (-5, count * 9), (count, count * 2), (7, 7), (9, 3)] {
                let expect = told
                    .iter()
                    .filter(|one| (range.0..range.1).contains(&one.end_ns));
                assert!(timed.inside(range).eq(expect.copied()), "{count} {range:?}");
            }
        }
    }
}
