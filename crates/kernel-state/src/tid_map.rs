//! From thread ids to places in a table: an array where the kernel puts ids, a map beyond.

use std::collections::HashMap;

/// The kernel's `PID_MAX_LIMIT` on 64-bit machines.
const NEAR_MAX: i32 = 1 << 22;
/// No place.
const NONE: u32 = u32::MAX;

/// Places by thread id. What it takes grows with the largest id, at 4 bytes each.
#[derive(Debug, Default)]
pub struct TidMap {
    near: Vec<u32>,
    far: HashMap<i32, u32>,
}

impl TidMap {
    /// The place of a thread.
    #[inline]
    pub fn get(&self, tid: i32) -> Option<u32> {
        if !(0..NEAR_MAX).contains(&tid) {
            return self.far.get(&tid).copied();
        }
        self.near
            .get(tid as usize)
            .copied()
            .filter(|place| *place != NONE)
    }

    /// Gives a thread a place, and returns the one that it had.
    pub fn insert(&mut self, tid: i32, place: u32) -> Option<u32> {
        if !(0..NEAR_MAX).contains(&tid) {
            return self.far.insert(tid, place);
        }
        let tid = tid as usize;
        if self.near.len() <= tid {
            self.near.resize((tid + 1).next_power_of_two(), NONE);
        }
        let before = std::mem::replace(&mut self.near[tid], place);
        Some(before).filter(|place| *place != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_place_of_its_own_also_those_that_no_kernel_gives() {
        let mut map = TidMap::default();
        let check = |map: &TidMap, tid: i32, expect: Option<u32>| assert_eq!(map.get(tid), expect);
        for (place, tid) in [0, 7, NEAR_MAX - 1, NEAR_MAX, -1, i32::MIN]
            .into_iter()
            .enumerate()
        {
            check(&map, tid, None);
            assert_eq!(map.insert(tid, place as u32), None);
            check(&map, tid, Some(place as u32));
        }
        assert_eq!(map.insert(7, 9), Some(1));
        check(&map, 7, Some(9));
        check(&map, 6, None);
    }
}
