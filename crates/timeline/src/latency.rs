//! What took time: every activation, handler and system call, and pictures of many.

use std::collections::HashMap;

use crate::activation::{Activation, ROWS, row, row_end_ns};
use crate::timed::{BLOCK, Block, Timed, TimedLook};

/// What many of one kind took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many.
    pub count: u64,
    /// The shortest.
    pub min_ns: i64,
    /// The longest.
    pub max_ns: i64,
    /// All together.
    pub total_ns: i64,
    /// Not exceeded by 99 of 100: upper edge of a row, or the longest.
    pub p99_ns_max: i64,
}

/// How many activations there were, by time and by latency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyGrid {
    /// Counts, a column of time behind the other, the shortest latency first.
    pub counts: Vec<u32>,
    /// The longest of each column.
    pub longest: Vec<Option<Activation>>,
    /// All in the range.
    pub count: u64,
    /// The longest ones, the longest first.
    pub worst: Vec<Activation>,
    /// At the middle, at 99 and at 99.9 of 100: upper edges of rows, or the longest of all.
    pub quantiles_ns: [i64; 3],
}

impl LatencyGrid {
    fn new(columns: usize) -> LatencyGrid {
        LatencyGrid {
            counts: vec![0; columns * ROWS],
            longest: vec![None; columns],
            ..LatencyGrid::default()
        }
    }

    fn add(&mut self, column: usize, late: &Activation, worst: usize) {
        self.count += 1;
        self.counts[column * ROWS + row(late.latency_ns)] += 1;
        self.lengthen(column, late);
        keep(&mut self.worst, *late, worst);
    }

    fn add_block(&mut self, column: usize, block: &Block) {
        self.count += BLOCK as u64;
        let counts = &mut self.counts[column * ROWS..(column + 1) * ROWS];
        for (count, more) in counts.iter_mut().zip(&block.by_row) {
            *count += u32::from(*more);
        }
        self.lengthen(column, &block.longest);
    }

    fn lengthen(&mut self, column: usize, late: &Activation) {
        let longest = &mut self.longest[column];
        if longest.is_none_or(|before| before.latency_ns < late.latency_ns) {
            *longest = Some(*late);
        }
    }

    fn finish(mut self) -> LatencyGrid {
        let mut by_row = [0u64; ROWS];
        for (place, count) in self.counts.iter().enumerate() {
            by_row[place % ROWS] += u64::from(*count);
        }
        // The upper edge of a row may lie beyond all that are in it.
        let longest_ns = self.longest.iter().flatten().map(|late| late.latency_ns);
        let longest_ns = longest_ns.max().unwrap_or(0);
        self.quantiles_ns =
            [0.5, 0.99, 0.999].map(|share| quantile(&by_row, self.count, share).min(longest_ns));
        self
    }
}

/// Those of `activations` in a range, `wanted` alone.
pub(crate) fn grid(
    activations: &Timed,
    (begin_ns, end_ns): (i64, i64),
    columns: usize,
    worst: usize,
    wanted: impl Fn(&Activation) -> bool,
) -> LatencyGrid {
    let columns = columns.max(1);
    let width = u128::from(end_ns.abs_diff(begin_ns).max(1));
    let mut grid = LatencyGrid::new(columns);
    let inside = activations.inside((begin_ns, end_ns));
    for late in inside.filter(|late| wanted(late)) {
        let after = u128::from(late.end_ns.abs_diff(begin_ns));
        let column = (after * columns as u128 / width) as usize;
        grid.add(column.min(columns - 1), &late, worst);
    }
    grid.finish()
}

/// The same of all in the range: what is whole blocks is not looked at one by one.
pub(crate) fn grid_of_all(
    activations: &Timed,
    (begin_ns, end_ns): (i64, i64),
    columns: usize,
    worst: usize,
) -> LatencyGrid {
    let columns = columns.max(1);
    let width = i128::from(end_ns.abs_diff(begin_ns).max(1));
    let mut grid = LatencyGrid::new(columns);
    let blocks = &activations.blocks;
    let mut look = TimedLook::new(activations);
    let mut whole = Vec::new();
    let (mut place, last) = look.places((begin_ns, end_ns));
    for column in 0..columns {
        // The first instant of the column behind it.
        let after = (width * (column as i128 + 1) + columns as i128 - 1) / columns as i128;
        let edge_ns = i64::try_from(i128::from(begin_ns) + after).unwrap_or(i64::MAX);
        let until = match column + 1 == columns {
            true => last,
            false => look.before(edge_ns).clamp(place, last),
        };
        while place < until {
            let block = blocks.get(place / BLOCK);
            match block.filter(|_| place % BLOCK == 0 && place + BLOCK <= until) {
                Some(block) => {
                    grid.add_block(column, block);
                    whole.push(place / BLOCK);
                    place += BLOCK;
                }
                None => {
                    let Some(late) = look.get(place) else { break };
                    grid.add(column, &late, worst);
                    place += 1;
                }
            }
        }
    }
    // Only blocks with one that is long enough are looked into.
    whole.sort_by_key(|block| std::cmp::Reverse(blocks[*block].longest.latency_ns));
    for block in whole {
        let shortest_ns = grid.worst.last().map_or(0, |late| late.latency_ns);
        if grid.worst.len() >= worst && blocks[block].longest.latency_ns <= shortest_ns {
            break;
        }
        let all = look.block(block);
        all.iter()
            .for_each(|late| keep(&mut grid.worst, *late, worst));
    }
    grid.finish()
}

/// What those of `all` in a range took, by a key.
pub(crate) fn stats(
    all: &Timed,
    range_ns: (i64, i64),
    key: impl Fn(&Activation) -> Option<u32>,
) -> Vec<(u32, Stats)> {
    let mut by_key: HashMap<u32, (Stats, Vec<u64>)> = HashMap::new();
    for late in all.inside(range_ns) {
        let Some(key) = key(&late) else { continue };
        let (stats, rows) = by_key
            .entry(key)
            .or_insert_with(|| (Stats::default(), vec![0; ROWS]));
        stats.min_ns = match stats.count {
            0 => late.latency_ns,
            _ => stats.min_ns.min(late.latency_ns),
        };
        stats.count += 1;
        stats.max_ns = stats.max_ns.max(late.latency_ns);
        stats.total_ns = stats.total_ns.saturating_add(late.latency_ns);
        rows[row(late.latency_ns)] += 1;
    }
    let mut found: Vec<(u32, Stats)> = by_key
        .into_iter()
        .map(|(key, (mut stats, rows))| {
            stats.p99_ns_max = quantile(&rows, stats.count, 0.99).min(stats.max_ns);
            (key, stats)
        })
        .collect();
    found.sort_by_key(|(key, stats)| (std::cmp::Reverse(stats.max_ns), *key));
    found
}

/// Keeps the `most` longest, in order.
fn keep(worst: &mut Vec<Activation>, late: Activation, most: usize) {
    let shortest = worst.last().map_or(0, |last| last.latency_ns);
    if worst.len() >= most && late.latency_ns <= shortest {
        return;
    }
    let place = worst.partition_point(|kept| kept.latency_ns >= late.latency_ns);
    worst.insert(place, late);
    worst.truncate(most);
}

fn quantile(by_row: &[u64], count: u64, share: f64) -> i64 {
    let wanted = (count as f64 * share).ceil() as u64;
    let mut seen = 0;
    for (row, rows) in by_row.iter().enumerate() {
        seen += rows;
        if seen >= wanted && seen > 0 {
            return row_end_ns(row);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::Spill;

    fn timed(all: &[Activation]) -> Timed {
        let (mut timed, mut spill) = (Timed::default(), Spill::default());
        all.iter().for_each(|one| timed.push(*one, &mut spill));
        timed.finish(&mut spill);
        timed
    }

    #[test]
    fn a_grid_counts_each_activation_once_and_knows_the_longest() {
        let late = |end_ns: i64, latency_ns: i64| Activation {
            end_ns,
            latency_ns,
            ..Activation::default()
        };
        let all = [late(0, 10), late(5, 70), late(9, 20), late(10, 900)];
        let grid = grid(&timed(&all), (0, 10), 2, 2, |_| true);
        assert_eq!(grid.count, 3);
        assert_eq!(grid.counts.iter().sum::<u32>(), 3);
        assert_eq!(grid.longest, [Some(all[0]), Some(all[1])]);
        assert_eq!(grid.worst, [all[1], all[2]]);
        assert_eq!(grid.quantiles_ns[1..], [70, 70]);
    }

    #[test]
    fn a_grid_of_blocks_is_the_one_that_looks_at_each() {
        let mut mixed = 7u64;
        let mut end_ns = 0;
        let all: Vec<Activation> = (0..3 * BLOCK as i64 + 100)
            .map(|turn| {
                mixed = mixed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                end_ns += (mixed >> 60) as i64;
                // No two are as long.
                let latency_ns = ((mixed >> 33) as i64 % 1_000) * 20_000 + turn;
                Activation {
                    end_ns,
                    latency_ns,
                    ..Activation::default()
                }
            })
            .collect();
        let all = timed(&all);
        let check = |range: (i64, i64), columns: usize, worst: usize| {
            let plain = grid(&all, range, columns, worst, |_| true);
            let fast = grid_of_all(&all, range, columns, worst);
            assert_eq!(fast, plain, "{range:?} {columns} {worst}");
        };
        for columns in [1, 2, 7, 300] {
            check((0, end_ns + 1), columns, 100);
            check((-50, end_ns * 3), columns, 5);
            check((end_ns / 3, end_ns / 2), columns, 20);
            check((end_ns / 7, end_ns), columns, 0);
            check((500, 500), columns, 3);
            check((900, -900), columns, 3);
        }
        assert_eq!(all.blocks.len(), 2);
    }

    #[test]
    fn statistics_count_what_ends_in_the_range_by_its_key() {
        let call = |end_ns: i64, latency_ns: i64, what: u32| Activation {
            end_ns,
            latency_ns,
            what,
            ..Activation::default()
        };
        let all = [
            call(1, 5, 7),
            call(2, 30, 9),
            call(3, 3, 7),
            call(10, 99, 7),
        ];
        let all = timed(&all);
        let found = stats(&all, (0, 10), |call| Some(call.what));
        let told = found
            .iter()
            .map(|(key, s)| (*key, s.count, s.min_ns, s.max_ns, s.total_ns));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [(9, 1, 30, 30, 30), (7, 2, 3, 5, 8)]
        );
        assert_eq!(found[1].1.p99_ns_max, 5);
        assert!(stats(&all, (0, 10), |_| None).is_empty());
    }
}
