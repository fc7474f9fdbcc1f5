//! Sorting by one body of code for all types.
//!
//! The standard library makes a sort for each type and each comparison, of five kilobytes and more.
//! Lists that a person reads are short and many: here their places are sorted, by one sort.

use std::cmp::Ordering;

/// Sorts slices as the methods do that begin with `sort`, stable as those. A comparison goes
/// through a pointer, and places are kept beside the items: what is sorted for each event takes the
/// standard library's.
pub trait InOrder<T> {
    /// As `sort_by`.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// As `sort_by_key`.
    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> InOrder<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut places = sorted(self.len(), &mut |one, other| {
            compare(&self[one], &self[other])
        });
        for first in 0..places.len() {
            // Once around: each place takes the item that belongs there, until the first one's is
            // met.
            let mut to = first;
            loop {
                let from = std::mem::replace(&mut places[to], to);
                if from == first {
                    break;
                }
                self.swap(to, from);
                to = from;
            }
        }
    }

    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }
}

/// Which place's item comes first, second and so on.
fn sorted(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..len).collect();
    places.sort_by(|one, other| compare(*one, *other));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_as_the_stable_sort_of_the_standard_library_leaves_them() {
        let check = |keys: &[u8]| {
            // The place makes equal keys differ: a sort that is not stable is seen.
            let items: Vec<(u8, usize)> = keys.iter().copied().zip(0..).collect();
            let (mut ours, mut theirs) = (items.clone(), items);
            ours.order_by_key(|(key, _)| *key);
            theirs.sort_by_key(|(key, _)| *key);
            assert_eq!(ours, theirs, "{keys:?}");
            ours.order_by(|(one, _), (other, _)| other.cmp(one));
            theirs.sort_by(|(one, _), (other, _)| other.cmp(one));
            assert_eq!(ours, theirs, "backwards: {keys:?}");
        };
        check(&[]);
        check(&[7]);
        check(&[2, 1]);
        check(&[3, 1, 2]);
        check(&[2, 3, 1]);
        check(&[1, 1, 0, 1, 0]);
        // Long ones of few keys, with cycles of all lengths.
        let mut number = 1_u32;
        for len in 0..300 {
            let keys = (0..len).map(|_| {
                number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (number >> 24) as u8 % 16
            });
            check(&keys.collect::<Vec<_>>());
        }
    }
}
