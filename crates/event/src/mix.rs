//! A hash for keys that are small numbers, many times faster than the standard one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Makes [`Mix`]es.
pub type Mixing = BuildHasherDefault<Mix>;

/// A map whose keys are small numbers, or made of them. A hostile trace can choose numbers that
/// collide: it only makes its own analysis slower.
pub type NumberMap<K, V> = HashMap<K, V, Mixing>;

/// A hash of integers: each is multiplied by an odd number and its high bits are folded in.
#[derive(Debug, Default)]
pub struct Mix(u64);

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

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn ids_of_threads_and_addresses_of_timers_are_spread() {
        let check = |keys: &[u64]| {
            let hashes = keys.iter().map(|key| Mixing::default().hash_one(key));
            // A map looks at the lowest bits first, and at the highest seven.
            let places: HashSet<u64> = hashes.map(|hash| hash & 0xfff | hash >> 57 << 12).collect();
            assert!(places.len() * 50 >= keys.len() * 49, "{}", places.len());
        };
        check(&(0..4096).collect::<Vec<u64>>());
        let addresses = (0..4096).map(|place| 0xffff_c900_0000_0000 + place * 64);
        check(&addresses.collect::<Vec<u64>>());
    }
}
