//! How much time states have, added up one stretch after the other.

use crate::state::State;

/// Places to look for a state at: at least twice as many as there are states.
const PLACES: usize = 1024;
const PLACE_BITS: u32 = PLACES.ilog2();

/// The state that has most of some stretches, and how much: of those that are work, where there
/// is any.
pub(crate) type Leader = (State, u64);

/// Times of some states, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Tally {
    times: Vec<Leader>,
    /// Which of them is there, plus one.
    places: Box<[u16; PLACES]>,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            times: Vec::new(),
            places: Box::new([0; PLACES]),
        }
    }
}

impl Tally {
    /// Adds time to a state.
    #[inline]
    pub fn add(&mut self, state: State, ns: u64) {
        let first = home(state);
        for place in first..first + PLACES {
            let slot = &mut self.places[place % PLACES];
            let Some(known) = usize::from(*slot).checked_sub(1) else {
                // No range that is looked at one by one has as many.
                if self.times.len() < PLACES / 2 {
                    self.times.push((state, ns));
                    *slot = self.times.len() as u16;
                }
                return;
            };
            if let Some((_, sum)) = self.times.get_mut(known).filter(|one| one.0 == state) {
                *sum = sum.saturating_add(ns);
                return;
            }
        }
    }

    /// All of them.
    pub fn times(&self) -> &[Leader] {
        &self.times
    }

    /// Empties it.
    pub fn clear(&mut self) {
        // They lie where they were put: each of its home's neighbours up to a free place.
        for (state, _) in self.times.drain(..) {
            let mut place = home(state);
            while std::mem::take(&mut self.places[place % PLACES]) > 0 {
                place += 1;
            }
        }
    }
}

fn home(state: State) -> usize {
    (state.0.wrapping_mul(0x9e37_79b1) >> (u32::BITS - PLACE_BITS)) as usize
}
