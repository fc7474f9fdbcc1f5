//! The greatest of many, in memory for a few.

/// The items with the greatest keys; of those that tie, the ones with the least rank.
#[derive(Debug)]
pub(crate) struct Top<T> {
    /// How many; zero: all.
    keep: usize,
    entries: Vec<Entry<T>>,
    /// What is less cannot be among them.
    floor: i64,
}

#[derive(Debug)]
struct Entry<T> {
    key: i64,
    rank: u64,
    item: T,
}

/// Room for so many more is cheaper than looking at each.
const SLACK: usize = 1024;

impl<T> Top<T> {
    /// Keeps the greatest `keep`, or all when it is zero.
    pub fn new(keep: usize) -> Top<T> {
        Top {
            keep,
            entries: Vec::new(),
            floor: i64::MIN,
        }
    }

    #[inline]
    pub fn push(&mut self, key: i64, rank: u64, item: T) {
        if key < self.floor {
            return;
        }
        self.entries.push(Entry { key, rank, item });
        if self.keep > 0 && self.entries.len() >= self.keep.saturating_mul(2) + SLACK {
            self.prune();
        }
    }

    fn prune(&mut self) {
        self.entries
            .sort_by(|a, b| b.key.cmp(&a.key).then(a.rank.cmp(&b.rank)));
        if self.keep > 0 && self.entries.len() >= self.keep {
            self.entries.truncate(self.keep);
            self.floor = self.entries[self.keep - 1].key;
        }
    }

    /// The greatest first.
    pub fn sorted(&mut self) -> impl Iterator<Item = &T> {
        self.prune();
        self.entries.iter().map(|entry| &entry.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_are_kept_and_ties_go_by_rank() {
        let check = |keep: usize, expect: &[u64]| {
            let mut top = Top::new(keep);
            for rank in 0..5000 {
                top.push((rank % 7) as i64, rank, rank);
            }
            let found: Vec<u64> = top.sorted().copied().take(expect.len()).collect();
            assert_eq!(found, expect);
            if keep > 0 {
                assert_eq!(top.sorted().count(), keep);
            }
        };
        check(3, &[6, 13, 20]);
        check(0, &[6, 13, 20]);
    }
}
