//! Before and after: what was late in each, and how sure the difference is.

use event::Duration;

/// So many resamples give the interval two digits.
const RESAMPLES: usize = 10_000;
/// Of an interval of 95 %, what lies below and above it.
const TAIL: f64 = 0.025;
/// Fewer say nothing.
pub const ROUNDS_MIN: usize = 3;

/// What was counted in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Block {
    /// Activations that ended.
    pub samples: u64,
    /// Those of them that were late.
    pub late: u64,
    /// The 99th percentile of all.
    pub p99: Option<Duration>,
    /// The longest.
    pub worst: Option<Duration>,
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Fewer are late.
    Helped,
    /// More are late.
    Harmed,
    /// No difference that so many rounds can show.
    NoDifference,
    /// Nothing was late without it: there was nothing to fix.
    NothingLate,
    /// Nobody was judged, or too seldom.
    NothingJudged,
}

/// Blocks without and with the change, a pair a round.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// Each round's, without and with.
    pub pairs: Vec<(Block, Block)>,
}

/// A difference with its interval of 95 %, in late activations of 1,000.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// With minus without: negative is better.
    pub per_thousand: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Rounds {
    /// All of one side together; the percentile is the middle one of the rounds.
    pub fn side(&self, with: bool) -> Block {
        let blocks = self
            .pairs
            .iter()
            .map(|pair| if with { pair.1 } else { pair.0 });
        let blocks: Vec<Block> = blocks.collect();
        let mut p99s: Vec<Duration> = blocks.iter().filter_map(|block| block.p99).collect();
        p99s.sort_unstable();
        Block {
            samples: blocks.iter().map(|block| block.samples).sum(),
            late: blocks.iter().map(|block| block.late).sum(),
            p99: p99s.get(p99s.len() / 2).copied(),
            worst: blocks.iter().filter_map(|block| block.worst).max(),
        }
    }

    /// How many more of 1,000 activations are late with the change, by bootstrap over the rounds;
    /// none where a side has no activation.
    pub fn difference(&self) -> Option<Difference> {
        let all: Vec<usize> = (0..self.pairs.len()).collect();
        let per_thousand = self.of(&all)?;
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut found: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                let sample = all.iter().map(|_| random.below(all.len()));
                self.of(&sample.collect::<Vec<_>>())
            })
            .collect();
        found.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (found.len() as f64 * share) as usize;
            found.get(place.min(found.len().saturating_sub(1))).copied()
        };
        Some(Difference {
            per_thousand,
            low: at(TAIL)?,
            high: at(1.0 - TAIL)?,
        })
    }

    /// The difference of these rounds.
    fn of(&self, rounds: &[usize]) -> Option<f64> {
        let share = |with: bool| {
            let blocks = rounds.iter().map(|round| {
                let pair = &self.pairs[*round];
                if with { pair.1 } else { pair.0 }
            });
            let (late, samples) = blocks.fold((0, 0), |(late, samples), block| {
                (late + block.late, samples + block.samples)
            });
            (samples > 0).then(|| late as f64 * 1000.0 / samples as f64)
        };
        Some(share(true)? - share(false)?)
    }

    /// What it comes to.
    pub fn finding(&self) -> Finding {
        let Some(difference) = self.difference().filter(|_| self.pairs.len() >= ROUNDS_MIN) else {
            return Finding::NothingJudged;
        };
        match difference {
            Difference { high, .. } if high < 0.0 => Finding::Helped,
            Difference { low, .. } if low > 0.0 => Finding::Harmed,
            _ if self.side(false).late == 0 => Finding::NothingLate,
            _ => Finding::NoDifference,
        }
    }
}

/// Marsaglia's xorshift: the same resamples each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(late: &[(u64, u64)]) -> Rounds {
        let block = |late: u64| Block {
            samples: 1000,
            late,
            p99: Some(Duration::from_us(late as i64)),
            worst: Some(Duration::from_us(2 * late as i64)),
        };
        let pairs = late
            .iter()
            .map(|(before, after)| (block(*before), block(*after)));
        Rounds {
            pairs: pairs.collect(),
        }
    }

    #[test]
    fn a_change_that_helps_is_told_from_one_that_does_nothing_or_harm() {
        let check = |late: &[(u64, u64)], expect: Finding| {
            assert_eq!(rounds(late).finding(), expect, "{late:?}");
        };
        check(&[(40, 0), (35, 1), (42, 0), (38, 0)], Finding::Helped);
        check(&[(0, 40), (1, 35), (0, 42), (0, 38)], Finding::Harmed);
        check(
            &[(40, 38), (35, 41), (42, 39), (38, 40)],
            Finding::NoDifference,
        );
        // One bad round is no proof.
        check(&[(300, 0), (0, 0), (0, 0), (0, 0)], Finding::NoDifference);
        check(&[(0, 0), (0, 0), (0, 0)], Finding::NothingLate);
        check(&[(40, 0), (40, 0)], Finding::NothingJudged);
        check(&[], Finding::NothingJudged);
        // Rare ones, which come in most rounds.
        check(
            &[(1, 0), (2, 0), (1, 0), (0, 0), (1, 0), (3, 0)],
            Finding::Helped,
        );
    }

    #[test]
    fn the_difference_lies_in_its_interval_and_a_side_sums_its_rounds() {
        let rounds = rounds(&[(40, 0), (30, 0), (50, 3)]);
        let difference = rounds.difference().expect("a difference");
        assert_eq!(difference.per_thousand, -39.0);
        assert!(difference.low <= -39.0 && -39.0 <= difference.high);
        let side = rounds.side(false);
        assert_eq!((side.samples, side.late), (3000, 120));
        assert_eq!(side.p99, Some(Duration::from_us(40)));
        assert_eq!(side.worst, Some(Duration::from_us(100)));
        let nobody = Rounds {
            pairs: vec![(Block::default(), Block::default()); 5],
        };
        assert_eq!(
            (nobody.difference(), nobody.finding()),
            (None, Finding::NothingJudged)
        );
    }
}
