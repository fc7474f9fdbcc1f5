//! Several walks as one, by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// One of the walks.
pub(crate) trait Lane {
    /// Goes to the next item and returns its time in nanoseconds; none at the end.
    fn advance(&mut self) -> Option<i64>;
}

/// What orders lanes: the time of its item in nanoseconds, then its place.
type Key = (i64, usize);

/// After every item.
const NEVER: Key = (i64::MAX, usize::MAX);

/// One lane at a time, as long as its items are earlier than those of the others.
pub(crate) struct Merge<L> {
    lanes: Vec<L>,
    /// The lane that is handed out.
    current: Option<Key>,
    /// The other lanes, the earliest on top.
    others: BinaryHeap<Reverse<Key>>,
    /// The key on top of the others.
    limit: Key,
    /// Whether the current lane's item was handed out and the lane must go on.
    is_used: bool,
}

impl<L: Lane> Merge<L> {
    pub fn new(mut lanes: Vec<L>) -> Self {
        let mut others = BinaryHeap::with_capacity(lanes.len());
        for (place, lane) in lanes.iter_mut().enumerate() {
            others.extend(lane.advance().map(|time_ns| Reverse((time_ns, place))));
        }
        let current = others.pop().map(|Reverse(key)| key);
        let limit = others.peek().map_or(NEVER, |Reverse(key)| *key);
        Merge {
            lanes,
            current,
            others,
            limit,
            is_used: false,
        }
    }

    /// Goes on to the next item, unless it stands on one that was not taken; returns its time.
    #[inline]
    pub fn settle(&mut self) -> Option<i64> {
        if self.is_used
            && let Some((_, place)) = self.current
            && let Some(lane) = self.lanes.get_mut(place)
        {
            self.is_used = false;
            self.current = lane.advance().map(|time_ns| (time_ns, place));
            if self.current.is_none_or(|key| key > self.limit) {
                self.change_lane();
            }
        }
        self.current.map(|(time_ns, _)| time_ns)
    }

    /// Takes the item that it stands on: its time, and the lane that stands on it.
    #[inline]
    pub fn take(&mut self) -> Option<(i64, &L)> {
        self.is_used = true;
        self.current
            .map(|(time_ns, place)| (time_ns, &self.lanes[place]))
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
        self.current.filter(|_| self.is_used)
    }

    pub fn lanes(&self) -> &[L] {
        &self.lanes
    }

    /// Goes on with the lane whose item is the earliest.
    fn change_lane(&mut self) {
        self.current = match (self.current, self.others.peek_mut()) {
            (Some(key), Some(mut top)) => Some(std::mem::replace(&mut top.0, key)),
            (None, Some(top)) => Some(PeekMut::pop(top).0),
            (current, None) => current,
        };
        self.limit = self.others.peek().map_or(NEVER, |Reverse(key)| *key);
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

    fn keys(mut merge: Merge<std::vec::IntoIter<i64>>) -> Vec<Key> {
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
