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

    /// Adds up `values`, as [`Counts::write`] has them.
    pub fn fill(
        self,
        values: impl Iterator<Item = f64>,
        bound: fn(f64) -> Cell,
        table: &mut Table,
    ) {
        let mut counts = Counts::new(self);
        values.for_each(|value| counts.add(value));
        counts.write(bound, table);
    }
}

/// How many values each bin has.
#[derive(Debug)]
pub(super) struct Counts {
    edges: Edges,
    step: f64,
    /// Empty when the bins have no width.
    counts: Vec<u64>,
}

impl Counts {
    pub fn new(edges: Edges) -> Counts {
        let step = edges.step();
        let count = match step.is_finite() && step != 0.0 {
            true => edges.count,
            false => 0,
        };
        Counts {
            edges,
            step,
            counts: vec![0; count],
        }
    }

    pub fn add(&mut self, value: f64) {
        let place = (value - self.edges.min) / self.step;
        // Cut towards zero, as the peer does: what lies less than a bin below is in the first.
        let place = match place.trunc() {
            place if place < 0.0 => return,
            place => place as usize,
        };
        let (bins, is_max) = (self.counts.len(), value == self.edges.max);
        let place = if place >= bins && is_max {
            bins.wrapping_sub(1)
        } else {
            place
        };
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
    }

    /// One row per bin: lower bound, upper bound and how many; no row when bins have no width.
    pub fn write(self, bound: fn(f64) -> Cell, table: &mut Table) {
        let Counts { edges, step, .. } = self;
        for (place, count) in self.counts.into_iter().enumerate() {
            let lower = place as f64 * step + edges.min;
            let upper = (place + 1) as f64 * step + edges.min;
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
