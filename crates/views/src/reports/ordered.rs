//! Maps that keep the order of insertion, for keys that are small numbers.

use std::hash::{BuildHasherDefault, Hasher};

use indexmap::IndexMap;

/// A map in the order of insertion: rows that tie keep the order in which they were first seen.
pub(crate) type Ordered<K, V> = IndexMap<K, V, BuildHasherDefault<Mix>>;

/// A hash of integers: each is multiplied by an odd number and its high bits are folded in.
#[derive(Debug, Default)]
pub(crate) struct Mix(u64);

/// 2^64 divided by the golden ratio: no pattern of small numbers lines up with it.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_i32(&mut self, value: i32) {
        self.write_u64(value as u64);
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(ODD).rotate_left(23);
    }
}
