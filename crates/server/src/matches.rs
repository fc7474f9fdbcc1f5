//! What a filter found, kept for the next rows that are asked for.

/// The events that match a filter.
pub(crate) struct Matches {
    /// Their rows among all, in their order.
    pub(crate) rows: Vec<u32>,
    /// When they were, in nanoseconds of the wall clock.
    pub(crate) times_ns: Vec<i64>,
    /// There are more.
    pub(crate) cut: bool,
}

impl Matches {
    /// How many there are in each of so many columns of a range.
    pub(crate) fn counts(&self, (begin_ns, end_ns): (i64, i64), columns: usize) -> Vec<u32> {
        let width = i128::from(end_ns.max(begin_ns)) - i128::from(begin_ns);
        let edge = |column: usize| {
            let after = width * column as i128 / columns as i128;
            (i128::from(begin_ns) + after) as i64
        };
        let before = |ns: i64| self.times_ns.partition_point(|time_ns| *time_ns < ns);
        let edges: Vec<usize> = (0..=columns).map(|column| before(edge(column))).collect();
        let pairs = edges.windows(2);
        let count = |pair: &[usize]| u32::try_from(pair[1] - pair[0]).unwrap_or(u32::MAX);
        pairs.map(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_match_of_the_range_is_in_one_column() {
        let matches = Matches {
            rows: Vec::new(),
            times_ns: vec![-5, 0, 1, 4, 5, 9, 10, 11],
            cut: false,
        };
        let check = |range, columns, expect: &[u32]| {
            assert_eq!(matches.counts(range, columns), expect, "{range:?}");
        };
        check((0, 10), 2, &[3, 2]);
        check((0, 10), 1, &[5]);
        check((4, 4), 3, &[0, 0, 0]);
        check((4, -4), 2, &[0, 0]);
        check((i64::MIN, i64::MAX), 2, &[1, 7]);
    }
}
