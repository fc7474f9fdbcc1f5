//! Numbers that look random and are the same for the same seed (splitmix64).

/// A row of such numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The row of cell `index` of `seed`.
    pub fn of_cell(seed: u64, index: u64) -> Random {
        let mut random = Random(seed);
        let mixed = random.next() ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Random(mixed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `from..=to`.
    pub fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    /// True in so many cases of a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.next() % 100 < chance
    }

    /// One of `choices`, which are not none.
    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.next() % choices.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_depends_on_the_seed_and_the_cell_alone() {
        let row = |seed, index| {
            let mut random = Random::of_cell(seed, index);
            (0..8).map(|_| random.within(3, 9)).collect::<Vec<_>>()
        };
        assert_eq!(row(1, 2), row(1, 2));
        assert_ne!(row(1, 2), row(1, 3));
        assert_ne!(row(1, 2), row(2, 2));
        assert!(row(5, 5).iter().all(|number| (3..=9).contains(number)));
    }
}
