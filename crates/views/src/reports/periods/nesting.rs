//! How much of each period its children take.

use std::collections::BTreeMap;

use super::PeriodLog;
use super::period::Period;

/// The children of one definition inside of periods of another one; an entry for each parent that
/// had any.
#[derive(Debug, Default)]
pub(super) struct Shares {
    pub durations_ns: Vec<i64>,
    pub counts: Vec<u64>,
    pub percents: Vec<f64>,
}

/// The nesting of all periods.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    /// Definitions in the order in which they are met, the outermost first, each with the number
    /// of its periods.
    pub met: Vec<(usize, u64)>,
    /// By parent and child.
    pub shares: BTreeMap<(usize, usize), Shares>,
}

/// Number and sum of durations by definition.
pub(super) type Sums = BTreeMap<usize, (u64, i64)>;

impl Nesting {
    pub fn new(log: &PeriodLog) -> Nesting {
        let mut nesting = Nesting::default();
        for period in log.wanted().filter(|period| period.parent.is_none()) {
            nesting.meet(period.def);
            nesting.add(log, period);
        }
        nesting
    }

    /// A definition is met.
    pub(super) fn meet(&mut self, def: usize) {
        if !self.met.iter().any(|(met, _)| *met == def) {
            self.met.push((def, 0));
        }
    }

    /// Adds a period and all that is in it; what is in it, by definition.
    fn add(&mut self, log: &PeriodLog, period: &Period) -> Sums {
        let mut sums = Sums::new();
        let children = period.children.iter().map(|place| &log.all[*place]);
        for child in children.filter(|child| log.wants(child)) {
            self.meet(child.def);
            let sum = sums.entry(child.def).or_default();
            sum.0 += 1;
            sum.1 += child.duration_ns();
            for (def, (count, ns)) in self.add(log, child) {
                let sum = sums.entry(def).or_default();
                sum.0 += count;
                sum.1 += ns;
            }
        }
        self.count(period, &sums);
        sums
    }

    /// Counts a period with what is in it.
    pub(super) fn count(&mut self, period: &Period, sums: &Sums) {
        for (def, (count, ns)) in sums {
            let shares = self.shares.entry((period.def, *def)).or_default();
            shares.durations_ns.push(*ns);
            shares.counts.push(*count);
            let percent = match period.duration_ns() {
                0 => 0.0,
                whole => *ns as f64 / whole as f64 * 100.0,
            };
            shares.percents.push(percent);
        }
        if let Some((_, count)) = self.met.iter_mut().find(|(met, _)| *met == period.def) {
            *count += 1;
        }
    }
}
