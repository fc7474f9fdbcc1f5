//! Several walks as one, by time.

use std::hint::select_unpredictable;

/// One of the walks.
pub(crate) trait Lane {
    /// Goes to the next item and returns its time in nanoseconds; none at the end.
    fn advance(&mut self) -> Option<i64>;
}

/// What orders lanes: the time of its item in nanoseconds, then its place, as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(i128);

impl Key {
    /// After every item.
    const NEVER: Key = Key(i128::MAX);

    #[inline]
    fn new(time_ns: i64, place: usize) -> Key {
        Key(i128::from(time_ns) << 64 | place as i128)
    }

    #[inline]
    fn time_ns(self) -> i64 {
        (self.0 >> 64) as i64
    }

    #[inline]
    fn place(self) -> usize {
        self.0 as u64 as usize
    }
}

/// One lane at a time, as long as its items are earlier than those of the others.
pub(crate) struct Merge<L> {
    lanes: Vec<L>,
    /// The lane that is handed out.
    current: Key,
    others: Losers,
    /// The earliest of the others.
    limit: Key,
    /// Whether the current lane's item was handed out and the lane must go on.
    is_used: bool,
}

impl<L: Lane> Merge<L> {
    pub fn new(mut lanes: Vec<L>) -> Self {
        let key = |(place, lane): (usize, &mut L)| {
            let time_ns = lane.advance();
            time_ns.map_or(Key::NEVER, |time_ns| Key::new(time_ns, place))
        };
        let keys = lanes.iter_mut().enumerate().map(key).collect();
        let (others, current) = Losers::new(keys);
        Merge {
            limit: others.earliest_beside(current.place()),
            lanes,
            current,
            others,
            is_used: false,
        }
    }

    /// Goes on to the next item, unless it stands on one that was not taken; returns its time.
    #[inline(always)] // a walk's loop, where the current lane stays in registers
    pub fn settle(&mut self) -> Option<i64> {
        let place = self.current.place();
        if self.is_used
            && let Some(lane) = self.lanes.get_mut(place)
        {
            self.is_used = false;
            let time_ns = lane.advance();
            self.current = time_ns.map_or(Key::NEVER, |time_ns| Key::new(time_ns, place));
            if self.current > self.limit {
                self.current = self.others.replace(place, self.current);
                self.limit = self.others.earliest_beside(self.current.place());
            }
        }
        (self.current != Key::NEVER).then(|| self.current.time_ns())
    }

    /// Takes the item that it stands on: its time, and the lane that stands on it.
    #[inline]
    pub fn take(&mut self) -> Option<(i64, &L)> {
        self.is_used = true;
        self.taken()
    }

    /// The same with the lane's place.
    #[inline]
    pub fn take_placed(&mut self) -> Option<(i64, usize, &L)> {
        self.is_used = true;
        let (time_ns, place) = self.taken_key()?;
        Some((time_ns, place, self.lanes.get(place)?))
    }

    /// The item that was taken last.
    #[inline]
    pub fn taken(&self) -> Option<(i64, &L)> {
        let (time_ns, place) = self.taken_key()?;
        Some((time_ns, self.lanes.get(place)?))
    }

    /// The time of the item that was taken last, and the place of its lane.
    #[inline]
    pub fn taken_key(&self) -> Option<(i64, usize)> {
        let is_there = self.is_used && self.current != Key::NEVER;
        is_there.then(|| (self.current.time_ns(), self.current.place()))
    }

    pub fn lanes(&self) -> &[L] {
        &self.lanes
    }
}

/// A tournament among keys: the leaves are the lanes by their places, at each node above them
/// stands the later of two, and the earlier goes on upwards. A new key at a leaf plays against the
/// nodes on its way up alone.
struct Losers {
    /// From place 1 on; the children of `n` are `2 n` and `2 n + 1`.
    nodes: Vec<Key>,
}

impl Losers {
    /// The tournament and its winner.
    fn new(mut keys: Vec<Key>) -> (Losers, Key) {
        let count = keys.len().next_power_of_two();
        keys.resize(count, Key::NEVER);
        let mut nodes = vec![Key::NEVER; count];
        while keys.len() > 1 {
            let half = keys.len() / 2;
            let pairs = keys.chunks_exact(2);
            for (node, pair) in nodes[half..].iter_mut().zip(pairs.clone()) {
                *node = pair[0].max(pair[1]);
            }
            keys = pairs.map(|pair| pair[0].min(pair[1])).collect();
        }
        let winner = keys.first().copied().unwrap_or(Key::NEVER);
        (Losers { nodes }, winner)
    }

    /// Puts `key` where the last winner, of the lane at `place`, was; returns the new winner.
    #[inline]
    fn replace(&mut self, place: usize, key: Key) -> Key {
        let mut winner = key;
        let nodes = &mut self.nodes[..];
        let mut node = nodes.len().wrapping_add(place) / 2;
        while node > 0
            && let Some(loser) = nodes.get_mut(node)
        {
            // Nobody can foretell which: a jump that is guessed wrong costs more than both.
            let is_earlier = winner < *loser;
            let earlier = select_unpredictable(is_earlier, winner, *loser);
            let later = select_unpredictable(is_earlier, *loser, winner);
            (*loser, winner) = (later, earlier);
            node /= 2;
        }
        winner
    }

    /// The earliest of all but the winner, of the lane at `place`: it lost against that.
    #[inline]
    fn earliest_beside(&self, place: usize) -> Key {
        let mut earliest = Key::NEVER;
        let mut node = self.nodes.len().wrapping_add(place) / 2;
        while node > 0
            && let Some(loser) = self.nodes.get(node)
        {
            earliest = select_unpredictable(*loser < earliest, *loser, earliest);
            node /= 2;
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Lane for std::vec::IntoIter<i64> {
        fn advance(&mut self) -> Option<i64> {
            self.next()
        }
    }

    #[test]
    fn items_of_all_lanes_come_in_the_order_of_their_times() {
        let lanes = [
            vec![1, 5, 5, 9],
            vec![],
            vec![2, 3, 5],
            vec![i64::MIN, i64::MAX],
        ];
        let mut merge = Merge::new(lanes.map(Vec::into_iter).into());
        let mut found = Vec::new();
        while let Some(time_ns) = merge.settle() {
            assert_eq!(merge.settle(), Some(time_ns), "nothing was taken");
            assert_eq!(merge.take().map(|(time_ns, _)| time_ns), Some(time_ns));
            assert_eq!(merge.taken().map(|(time_ns, _)| time_ns), Some(time_ns));
            found.push(time_ns);
        }
        assert_eq!(found, [i64::MIN, 1, 2, 3, 5, 5, 5, 9, i64::MAX]);
    }

    fn keys(mut merge: Merge<std::vec::IntoIter<i64>>) -> Vec<(i64, usize)> {
        let mut keys = Vec::new();
        while merge.settle().is_some() {
            merge.take();
            keys.extend(merge.taken_key());
        }
        keys
    }

    /// Also where a lane's time goes backwards: an item waits for those before it in its lane.
    #[test]
    fn shares_merged_by_their_first_items_are_in_the_order_of_all_lanes_at_once() {
        let lanes = [
            vec![1, 9, 2, 3],
            vec![2, 2, 8],
            vec![2, 5, 4, 9, 1],
            vec![0, 2],
            vec![7],
        ];
        let merge =
            |lanes: &[Vec<i64>]| Merge::new(lanes.iter().cloned().map(Vec::into_iter).collect());
        let expect = keys(merge(&lanes));
        for count in 1..=lanes.len() {
            let share = |first: usize| {
                let own: Vec<_> = lanes.iter().skip(first).step_by(count).cloned().collect();
                let keys = keys(merge(&own)).into_iter();
                let keys = keys.map(|(time_ns, place)| (time_ns, first + place * count));
                keys.collect::<Vec<_>>().into_iter().peekable()
            };
            let mut shares: Vec<_> = (0..count).map(share).collect();
            let mut found = Vec::new();
            while let Some(key) = shares
                .iter_mut()
                .filter_map(|share| share.peek())
                .min()
                .copied()
            {
                let mut holders = shares.iter_mut();
                let holder = holders.find_map(|share| share.next_if_eq(&key));
                found.extend(holder);
            }
            assert_eq!(found, expect, "{count} shares");
        }
    }
}
