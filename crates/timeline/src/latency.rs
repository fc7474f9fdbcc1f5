//! From wake-up to CPU: every activation, and pictures of many.

/// A task was woken and was scheduled in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activation {
    /// When it was scheduled in, in nanoseconds of the wall clock.
    pub end_ns: i64,
    /// So long after its wake-up.
    pub latency_ns: i64,
    /// Its place among the tasks.
    pub task: u32,
    /// The CPU.
    pub cpu: u32,
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
    /// At the middle, at 99 and at 99.9 of 100, upper edges of rows.
    pub quantiles_ns: [i64; 3],
}

/// Rows for each power of two of nanoseconds.
const ROWS_PER_OCTAVE: usize = 4;
/// Rows of a grid: the last holds all of 69 s and more.
pub const ROWS: usize = 36 * ROWS_PER_OCTAVE + 1;

/// The row of a latency.
fn row(ns: i64) -> usize {
    let ns = ns.max(1) as u64;
    let octave = 63 - ns.leading_zeros() as usize;
    let part = match octave {
        0 | 1 => (ns as usize & ((1 << octave) - 1)) << (2 - octave),
        _ => (ns >> (octave - 2)) as usize & (ROWS_PER_OCTAVE - 1),
    };
    (octave * ROWS_PER_OCTAVE + part).min(ROWS - 1)
}

/// The least latency above a row.
pub fn row_end_ns(row: usize) -> i64 {
    let (octave, part) = ((row + 1) / ROWS_PER_OCTAVE, (row + 1) % ROWS_PER_OCTAVE);
    let whole = 1u64 << octave.min(60);
    (whole + (whole * part as u64).div_ceil(ROWS_PER_OCTAVE as u64)) as i64
}

/// Those of `activations` (in the order of their ends) in a range, `wanted` alone.
pub(crate) fn grid(
    activations: &[Activation],
    range_ns: (i64, i64),
    columns: usize,
    worst: usize,
    wanted: impl Fn(&Activation) -> bool,
) -> LatencyGrid {
    let (begin_ns, end_ns) = range_ns;
    let first = activations.partition_point(|late| late.end_ns < begin_ns);
    let last = activations.partition_point(|late| late.end_ns < end_ns);
    let width = u128::from(end_ns.abs_diff(begin_ns).max(1));
    let mut grid = LatencyGrid {
        counts: vec![0; columns * ROWS],
        longest: vec![None; columns],
        ..LatencyGrid::default()
    };
    let mut by_row = vec![0u64; ROWS];
    let inside = activations.get(first..last).unwrap_or_default();
    for late in inside.iter().filter(|late| wanted(late)) {
        let after = u128::from(late.end_ns.abs_diff(begin_ns));
        let column = ((after * columns as u128 / width) as usize).min(columns.saturating_sub(1));
        let row = row(late.latency_ns);
        grid.count += 1;
        by_row[row] += 1;
        if let Some(count) = grid.counts.get_mut(column * ROWS + row) {
            *count += 1;
        }
        if let Some(longest) = grid.longest.get_mut(column)
            && longest.is_none_or(|before| before.latency_ns < late.latency_ns)
        {
            *longest = Some(*late);
        }
        keep(&mut grid.worst, *late, worst);
    }
    grid.quantiles_ns = [0.5, 0.99, 0.999].map(|share| quantile(&by_row, grid.count, share));
    grid
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

    #[test]
    fn a_latency_lies_below_the_end_of_its_row_and_not_below_that_before() {
        let samples = (0..60).flat_map(|bit| [1i64 << bit, (1 << bit) + 1, (3 << bit) / 2]);
        for ns in samples.chain(0..4_000).filter(|ns| *ns > 0) {
            let row = row(ns);
            assert!(ns < row_end_ns(row) || row == ROWS - 1, "{ns} {row}");
            assert!(row == 0 || ns >= row_end_ns(row - 1), "{ns} {row}");
        }
    }

    #[test]
    fn a_grid_counts_each_activation_once_and_knows_the_longest() {
        let late = |end_ns: i64, latency_ns: i64| Activation {
            end_ns,
            latency_ns,
            ..Activation::default()
        };
        let all = [late(0, 10), late(5, 70), late(9, 20), late(10, 900)];
        let grid = grid(&all, (0, 10), 2, 2, |_| true);
        assert_eq!(grid.count, 3);
        assert_eq!(grid.counts.iter().sum::<u32>(), 3);
        assert_eq!(grid.longest, [Some(all[0]), Some(all[1])]);
        assert_eq!(grid.worst, [all[1], all[2]]);
        assert!((70..100).contains(&grid.quantiles_ns[2]));
    }
}
