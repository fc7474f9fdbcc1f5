//! Before and after: what was late in each, and how sure the difference is.

use event::Duration;

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

    /// How many more of 1,000 activations are late with the change: the mean of the rounds'
    /// differences, with Student's interval; none where fewer than two rounds have activations on
    /// both sides.
    pub fn difference(&self) -> Option<Difference> {
        let share = |block: &Block| {
            (block.samples > 0).then(|| block.late as f64 * 1000.0 / block.samples as f64)
        };
        let of_round = |(without, with): &(Block, Block)| Some(share(with)? - share(without)?);
        let found: Vec<f64> = self.pairs.iter().filter_map(of_round).collect();
        let count = found.len() as f64;
        if found.len() < 2 {
            return None;
        }
        let mean = found.iter().sum::<f64>() / count;
        let squares: f64 = found.iter().map(|one| (one - mean) * (one - mean)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let half = student(found.len() - 1) * error;
        Some(Difference {
            per_thousand: mean,
            low: mean - half,
            high: mean + half,
        })
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

/// The 97.5th percentile of Student's distribution with so many degrees of freedom.
fn student(freedom: usize) -> f64 {
    const SMALL: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    let freedom = freedom.max(1);
    // The first terms of its expansion: right to the third digit from here on.
    let rest = || 1.96 + 2.372 / freedom as f64 + 2.82 / (freedom * freedom) as f64;
    SMALL.get(freedom - 1).copied().unwrap_or_else(rest)
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
        // Of a table: 2.201, 2.086, 2.042, 1.980.
        for (freedom, expect) in [(11, 2.201), (20, 2.086), (30, 2.042), (120, 1.980)] {
            assert!((student(freedom) - expect).abs() < 0.003, "{freedom}");
        }
        let nobody = Rounds {
            pairs: vec![(Block::default(), Block::default()); 5],
        };
        assert_eq!(
            (nobody.difference(), nobody.finding()),
            (None, Finding::NothingJudged)
        );
    }
}
