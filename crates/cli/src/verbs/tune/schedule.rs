//! When a change is on and when off: by chance, so that nothing that comes in turn keeps step.

use std::time::Duration;

/// A pair of stretches, one without and one with the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Whether the one with it comes first.
    pub begins_with: bool,
    /// The length of each.
    pub stretch: Duration,
}

/// The shortest stretch is so much of the longest, which keeps step with nothing.
const SHORTEST: f64 = 0.5;

/// So many pairs that last `run_for` together. Their order and their lengths are drawn: a hog that
/// comes at regular times would fall on one side by itself.
pub fn schedule(rounds: u32, run_for: Duration, seed: u64) -> Vec<Pair> {
    let mut random = Random(seed | 1);
    let drawn: Vec<(bool, f64)> = (0..rounds)
        .map(|_| {
            (
                random.next() & 1 == 1,
                SHORTEST + (1.0 - SHORTEST) * random.share(),
            )
        })
        .collect();
    let sum: f64 = drawn.iter().map(|(_, length)| length).sum();
    let pair = |(begins_with, length): (bool, f64)| Pair {
        begins_with,
        stretch: run_for.mul_f64(length / sum / 2.0),
    };
    drawn.into_iter().map(pair).collect()
}

/// Marsaglia's xorshift, with a multiplication that mixes its low bits.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }

    fn share(&mut self) -> f64 {
        self.next() as f64 / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_fill_the_time_and_neither_their_order_nor_their_length_repeats() {
        for seed in [0, 7, 1_795_417_735_297_416_223] {
            let run_for = Duration::from_secs(60);
            let pairs = schedule(10, run_for, seed);
            let sum: Duration = pairs.iter().map(|pair| 2 * pair.stretch).sum();
            assert!(
                run_for.abs_diff(sum) < Duration::from_micros(1),
                "{pairs:?}"
            );
            let mut lengths: Vec<_> = pairs.iter().map(|pair| pair.stretch).collect();
            lengths.sort();
            assert!(lengths[0] * 2 >= lengths[9], "{pairs:?}");
            lengths.dedup();
            assert_eq!(lengths.len(), 10, "{pairs:?}");
            let first = pairs.iter().filter(|pair| pair.begins_with).count();
            assert!((1..10).contains(&first), "{pairs:?}");
            assert_eq!(schedule(10, run_for, seed), pairs);
        }
        assert_ne!(
            schedule(10, Duration::from_secs(60), 2),
            schedule(10, Duration::from_secs(60), 4)
        );
    }
}
