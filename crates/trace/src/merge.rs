//! Several walks as one, by time.

use std::hint::select_unpredictable;

/// One of the walks.
pub(crate) trait Lane {
    /// Goes to the next item and returns its time in nanoseconds; none at the end.
    fn advance(&mut self) -> Option<i64>;
}

/// What orders lanes: the time of its item in nanoseconds, then its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time_ns: i64,
    place: usize,
}

impl Key {
    /// Before every item, but for one that is as early as any can be.
    const FIRST: Key = Key {
        time_ns: i64::MIN,
        place: 0,
    };

    /// After every item.
    const NEVER: Key = Key {
        time_ns: i64::MAX,
        place: usize::MAX,
    };

    /// Of an item at that time, if there is one.
    #[inline]
    fn of(time_ns: Option<i64>, place: usize) -> Key {
        time_ns.map_or(Key::NEVER, |time_ns| Key { time_ns, place })
    }

    /// As one number.
    #[inline]
    fn number(self) -> i128 {
        i128::from(self.time_ns) << 64 | self.place as i128
    }

    /// Two in their order: by a jump, or by `SELECT`ing.
    #[inline]
    fn sorted<const SELECT: bool>(self, other: Key) -> (Key, Key) {
        if !SELECT {
            return match self.number() < other.number() {
                true => (self, other),
                false => (other, self),
            };
        }
        let is_earlier = self.time_ns < other.time_ns;
        let is_first = is_earlier | (self.time_ns == other.time_ns) & (self.place < other.place);
        (
            Key::select(is_first, self, other),
            Key::select(is_first, other, self),
        )
    }

    /// Each half by itself: of one wide number the hint gets lost that nobody can foretell it.
    #[inline]
    fn select(is_first: bool, first: Key, second: Key) -> Key {
        Key {
            time_ns: select_unpredictable(is_first, first.time_ns, second.time_ns),
            place: select_unpredictable(is_first, first.place, second.place),
        }
    }
}

/// One lane at a time, as long as its items are earlier than those of the others.
pub(crate) struct Merge<L> {
    lanes: Vec<L>,
    /// The lane that is handed out.
    current: Key,
    others: Losers,
    /// The earliest of the others, or earlier: then they are looked at for the next item.
    limit: Key,
    /// Whether the current lane's item was handed out and the lane must go on.
    is_used: bool,
}

impl<L: Lane> Merge<L> {
    pub fn new(mut lanes: Vec<L>) -> Self {
        let key = |(place, lane): (usize, &mut L)| Key::of(lane.advance(), place);
        let keys = lanes.iter_mut().enumerate().map(key).collect();
        let (others, current) = Losers::new(keys);
        Merge {
            limit: others.earliest_beside::<false>(current.place),
            lanes,
            current,
            others,
            is_used: false,
        }
    }

    /// Goes on to the next item, unless it stands on one that was not taken; returns its time.
    #[inline]
    pub fn settle(&mut self) -> Option<i64> {
        let place = self.current.place;
        if self.is_used
            && let Some(lane) = self.lanes.get_mut(place)
        {
            self.is_used = false;
            self.current = Key::of(lane.advance(), place);
            if self.current.number() > self.limit.number() {
                self.change_lane(place);
            }
        }
        (self.current != Key::NEVER).then_some(self.current.time_ns)
    }

    /// Goes on to the earliest lane, where that at `place` is no longer that.
    #[inline]
    fn change_lane(&mut self, place: usize) {
        (self.current, self.limit) = self.others.replace(place, self.current);
    }

    /// Hands all items that are left to `take`, each with its time, its lane and the place of that:
    /// as [`Merge::settle`] and [`Merge::take`] until the end, but faster, because a lane is looked
    /// up once for all items that follow each other in it. Ends early when `take` fails.
    #[inline(always)] // a walk's loop, where the current lane stays in registers
    pub fn each<E>(
        &mut self,
        mut take: impl FnMut(i64, usize, &L) -> Result<(), E>,
    ) -> Result<(), E> {
        self.settle();
        while self.current != Key::NEVER
            && let Some(lane) = self.lanes.get_mut(self.current.place)
        {
            self.is_used = true;
            let (place, limit) = (self.current.place, self.limit);
            loop {
                take(self.current.time_ns, place, lane)?;
                self.current = Key::of(lane.advance(), place);
                // The same is neither: two lanes that have ended.
                if self.current.number() >= limit.number() {
                    break;
                }
            }
            self.is_used = false;
            self.change_lane(place);
        }
        Ok(())
    }

    /// Takes the item that it stands on: its time, and the lane that stands on it.
    #[inline]
    pub fn take(&mut self) -> Option<(i64, &L)> {
        self.is_used = true;
        self.taken()
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
        is_there.then_some((self.current.time_ns, self.current.place))
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

    /// Puts `key` where the last winner, of the lane at `place`, was; returns the new winner, and
    /// up to which time it goes on without another look at the others. Of many lanes that is only
    /// looked for in one that stays: its items come one behind the other, those of most others do
    /// not.
    #[inline]
    fn replace(&mut self, place: usize, key: Key) -> (Key, Key) {
        if self.nodes.len() > FEW_LANES {
            let winner = self.play::<true>(place, key);
            let limit = match winner.place == place {
                true => self.earliest_beside::<true>(place),
                false => Key::FIRST,
            };
            return (winner, limit);
        }
        let winner = self.play::<false>(place, key);
        (winner, self.earliest_beside::<false>(winner.place))
    }

    #[inline]
    fn play<const SELECT: bool>(&mut self, place: usize, key: Key) -> Key {
        let mut winner = key;
        let nodes = &mut self.nodes[..];
        let mut node = nodes.len().wrapping_add(place) / 2;
        while node > 0
            && let Some(loser) = nodes.get_mut(node)
        {
            (winner, *loser) = winner.sorted::<SELECT>(*loser);
            node /= 2;
        }
        winner
    }

    /// The earliest of all but the winner, of the lane at `place`: it lost against that.
    #[inline]
    fn earliest_beside<const SELECT: bool>(&self, place: usize) -> Key {
        let mut earliest = Key::NEVER;
        let mut node = self.nodes.len().wrapping_add(place) / 2;
        while node > 0
            && let Some(loser) = self.nodes.get(node)
        {
            (earliest, _) = earliest.sorted::<SELECT>(*loser);
            node /= 2;
        }
        earliest
    }
}

/// Among so few lanes it is foretold well which item is earlier. Among more, jumps are guessed
/// wrong so often that they cost more than both of their ways.
const FEW_LANES: usize = 4;

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

    /// Wherever it is interrupted, and whichever of them goes on.
    #[test]
    fn all_at_once_are_the_items_that_come_one_by_one() {
        let few = vec![vec![1, 5, 5, i64::MAX], vec![], vec![2, 9, 3, 5], vec![5]];
        let others = [
            vec![i64::MIN, i64::MIN, 4, 4, 4],
            vec![i64::MIN, 3],
            vec![7; 3],
        ];
        let many = [few.clone(), others.to_vec(), few.clone()].concat();
        all_at_once(&few);
        all_at_once(&many);
    }

    fn all_at_once(lanes: &[Vec<i64>]) {
        let merge = || Merge::new(lanes.iter().cloned().map(Vec::into_iter).collect());
        let expect = keys(merge());
        for stop_at in 0..=expect.len() {
            let (mut merge, mut found) = (merge(), Vec::new());
            let walked = merge.each(|time_ns, place, _| {
                found.push((time_ns, place));
                if found.len() == stop_at {
                    Err(())
                } else {
                    Ok(())
                }
            });
            assert_eq!(walked.is_ok(), stop_at == 0, "{stop_at}");
            assert_eq!(
                merge.taken_key(),
                walked.err().map(|()| expect[stop_at - 1])
            );
            found.extend(keys(merge));
            assert_eq!(found, expect, "{stop_at}");
        }
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
