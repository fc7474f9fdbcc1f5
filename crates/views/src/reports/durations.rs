//! Durations whose distribution is asked for: bins are known when all are.

use super::histogram::{Counts, Edges, duration_us};
use super::log::Log;
use super::spill::Spill;
use super::statistics::Summary;
use super::table::Table;

/// All durations, summed up and each by itself.
#[derive(Debug)]
pub(super) struct Durations {
    pub summary: Summary,
    all_ns: Log<i64>,
}

impl Durations {
    pub fn new(spill: &Spill) -> Durations {
        Durations {
            summary: Summary::default(),
            all_ns: Log::new(spill),
        }
    }

    pub fn add(&mut self, ns: i64) {
        self.all_ns.push(ns);
        self.summary.add(ns);
    }

    /// Their distribution, a row per bin.
    pub fn fill(&self, edges: Edges, table: &mut Table) {
        let mut counts = Counts::new(edges);
        self.all_ns.for_each(|ns| counts.add(*ns as f64 / 1000.0));
        counts.write(duration_us, table);
    }
}
