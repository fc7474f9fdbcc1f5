//! Frequency distributions, with the bins that lttng-analyses has.

use super::table::{Cell, Table};

/// How distributions are cut into bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bins {
    /// How many.
    pub count: usize,
    /// The same bins for all distributions of a report.
    pub uniform: bool,
    /// All distributions in one table; takes the same bins for all.
    pub series: bool,
}

impl Default for Bins {
    fn default() -> Bins {
        Bins {
            count: 20,
            uniform: false,
            series: false,
        }
    }
}

/// Bins from the least to the greatest value, in microseconds for durations: what lies on the
/// upper edge belongs to the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Edges {
    pub min: f64,
    pub max: f64,
    pub count: usize,
}

impl Edges {
    fn step(&self) -> f64 {
        (self.max - self.min) / self.count as f64
    }

    /// Adds up `values`, one row per bin: lower bound, upper bound and what `cells` makes of
    /// them. No row when the bins have no width.
    pub fn fill(
        &self,
        values: impl Iterator<Item = f64>,
        bound: fn(f64) -> Cell,
        table: &mut Table,
    ) {
        let step = self.step();
        if self.count == 0 || !step.is_finite() || step == 0.0 {
            return;
        }
        let mut counts = vec![0_u64; self.count];
        for value in values {
            let place = (value - self.min) / step;
            // Cut towards zero, as the peer does: what lies less than a bin below is in the first.
            let place = match place.trunc() {
                place if place < 0.0 => continue,
                place => place as usize,
            };
            match counts.get_mut(place) {
                Some(count) => *count += 1,
                None if value == self.max => counts[self.count - 1] += 1,
                None => {}
            }
        }
        for (place, count) in counts.into_iter().enumerate() {
            let lower = place as f64 * step + self.min;
            let upper = (place + 1) as f64 * step + self.min;
            table
                .rows
                .push(vec![bound(lower), bound(upper), Cell::Count(count)]);
        }
    }
}

/// A bound of a distribution of durations, given in microseconds.
pub(crate) fn duration_us(us: f64) -> Cell {
    Cell::DurationFloat(us * 1000.0)
}
