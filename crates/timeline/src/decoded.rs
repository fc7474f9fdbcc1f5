//! Blocks of stretches that were taken apart lately: pages look at the same ones again from one
//! step to the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::state::State;

/// Segments between two sums.
pub(crate) const BLOCK: usize = 128;
/// So many threads look at blocks without waiting for each other, mostly.
const SHARDS: usize = 16;
/// Blocks that a shard has before it forgets those that nobody looked at since the last time:
/// 50 MB in all shards, at most.
const YOUNG_MAX: usize = 1024;

/// The stretches of a block.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub begins_ns: Vec<i64>,
    pub states: Vec<State>,
}

impl Decoded {
    /// Of a block that cannot be read: nobody knows.
    pub fn unknown(begin_ns: i64) -> Decoded {
        Decoded {
            begins_ns: vec![begin_ns; BLOCK],
            states: vec![State::UNKNOWN; BLOCK],
        }
    }
}

/// Those of a file, by their places.
#[derive(Debug, Default)]
pub(crate) struct Remembered([Mutex<Shard>; SHARDS]);

#[derive(Debug, Default)]
struct Shard {
    young: HashMap<u64, Arc<Decoded>>,
    old: HashMap<u64, Arc<Decoded>>,
}

impl Shard {
    fn get(&mut self, at: u64) -> Option<Arc<Decoded>> {
        if let Some(known) = self.young.get(&at) {
            return Some(Arc::clone(known));
        }
        let known = self.old.remove(&at)?;
        self.put(at, Arc::clone(&known));
        Some(known)
    }

    fn put(&mut self, at: u64, block: Arc<Decoded>) {
        if self.young.len() >= YOUNG_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(at, block);
    }
}

impl Remembered {
    /// The block at this place; `read` where it was not looked at lately. One that cannot be read
    /// is not remembered: it may not be written yet.
    pub fn get(&self, at: u64, read: impl FnOnce() -> Option<Decoded>) -> Option<Arc<Decoded>> {
        let place = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SHARDS;
        let shard = || self.0[place].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shard().get(at) {
            return Some(known);
        }
        let block = Arc::new(read()?);
        shard().put(at, Arc::clone(&block));
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_at_lately_is_not_read_again_and_memory_is_bounded() {
        let remembered = Remembered::default();
        let get = |at: u64| {
            let mut is_read = false;
            let found = remembered.get(at, || {
                is_read = true;
                Some(Decoded::unknown(at as i64))
            });
            (found.map(|block| block.begins_ns[0]), is_read)
        };
        let all = 10 * (SHARDS * YOUNG_MAX) as u64;
        for at in 0..all {
            assert_eq!(get(at), (Some(at as i64), true));
            assert_eq!(get(at), (Some(at as i64), false));
            assert_eq!(get(at / 100).0, Some((at / 100) as i64));
        }
        let kept = remembered.0.iter().map(|shard| {
            let shard = shard.lock().expect("nobody panicked");
            shard.young.len() + shard.old.len()
        });
        assert!(kept.sum::<usize>() <= 2 * SHARDS * YOUNG_MAX);
        assert!(remembered.get(all, || None).is_none());
        assert_eq!(get(all), (Some(all as i64), true), "it is written now");
    }
}
