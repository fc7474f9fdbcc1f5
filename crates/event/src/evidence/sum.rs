//! A sum over the events of a CPU's evidence: whoever reads others than were written sees it.

use std::fmt;

/// FNV-1a of 64 bits, over the class and the bytes of each event in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// How many events.
    pub events: u64,
    hash: u64,
}

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Default for Sum {
    fn default() -> Self {
        Sum {
            events: 0,
            hash: BASIS,
        }
    }
}

impl Sum {
    /// Adds an event: the number of its kind and its encoded fields.
    pub fn add(&mut self, class: u32, payload: &[u8]) {
        self.events += 1;
        for byte in class.to_le_bytes().iter().chain(payload) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// From what [`Sum`] shows.
    pub fn parse(text: &str) -> Option<Sum> {
        let (events, hash) = text.split_once(':')?;
        Some(Sum {
            events: events.parse().ok()?,
            hash: u64::from_str_radix(hash, 16).ok()?,
        })
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:016x}", self.events, self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_tells_other_bytes_another_class_and_another_order() {
        let sum = |events: &[(u32, &[u8])]| {
            let mut sum = Sum::default();
            events
                .iter()
                .for_each(|(class, bytes)| sum.add(*class, bytes));
            sum
        };
        let whole = sum(&[(0, b"hit"), (7, b"moment")]);
        assert_eq!(whole.events, 2);
        for other in [
            sum(&[(0, b"hat"), (7, b"moment")]),
            sum(&[(0, b"hit"), (6, b"moment")]),
            sum(&[(7, b"moment"), (0, b"hit")]),
            sum(&[(0, b"hit")]),
        ] {
            assert_ne!(whole, other);
        }
        assert_eq!(Sum::parse(&whole.to_string()), Some(whole));
        // As the authors of FNV publish it, for one byte.
        let mut hash = Sum::default();
        hash.hash = (hash.hash ^ u64::from(b'a')).wrapping_mul(PRIME);
        assert_eq!(hash.hash, 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Sum::parse("2"), None);
        assert_eq!(Sum::parse("two:0"), None);
    }
}
