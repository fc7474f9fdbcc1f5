//! How often periods are how long, and how much of them is in each parent.

use super::PeriodLog;
use super::classes::{FREQ_COUNT, FREQ_DURATION, FREQ_RATIO};
use super::groups::{Group, Groups};
use super::nesting::{Nesting, Shares};
use super::period::Period;
use super::tables::summary_of;
use crate::reports::histogram::Edges;
use crate::reports::table::{Cell, Span, Table, TableClass};

impl PeriodLog {
    pub(super) fn group_freqs(&self, span: Span, group: &Group, groups: &Groups) -> Vec<Table> {
        let all = groups.all.iter().flat_map(|group| &group.durations_ns);
        let shared = self.options.edges_of_all(all.map(|(_, ns)| summary_of(ns)));
        let selected = group
            .durations_ns
            .iter()
            .filter(|(def, _)| self.selects(*def));
        let table = |(def, durations_ns): &(usize, Vec<i64>)| {
            let of = format!("'{}' - Duration of period: {}", group.name, self.name(*def));
            let mut table = span.subtable(&FREQ_DURATION, of);
            let edges = shared.unwrap_or_else(|| self.options.edges(&summary_of(durations_ns)));
            let us = durations_ns.iter().map(|ns| *ns as f64 / 1000.0);
            edges.fill(us, scaled, &mut table);
            table
        };
        selected.map(table).collect()
    }

    pub(super) fn period_freqs(&self, span: Span) -> Vec<Table> {
        let mut defs: Vec<usize> = self.inside(None);
        defs.sort_by_key(|def| self.name(*def));
        let durations = |def: usize| {
            let of_def = self.wanted().filter(move |period| period.def == def);
            of_def.map(Period::duration_ns).collect::<Vec<i64>>()
        };
        let all: Vec<(usize, Vec<i64>)> = defs
            .into_iter()
            .map(|def| (def, durations(def)))
            .filter(|(_, durations)| !durations.is_empty())
            .collect();
        let summaries = all.iter().map(|(_, durations)| summary_of(durations));
        let shared = self.options.edges_of_all(summaries);
        let selected = all.iter().filter(|(def, _)| self.selects(*def));
        let table = |(def, durations): &(usize, Vec<i64>)| {
            let of = format!("Duration of period: {}", self.name(*def));
            let mut table = span.subtable(&FREQ_DURATION, of);
            let edges = shared.unwrap_or_else(|| self.options.edges(&summary_of(durations)));
            let us = durations.iter().map(|ns| *ns as f64 / 1000.0);
            edges.fill(us, scaled, &mut table);
            table
        };
        selected.map(table).collect()
    }

    pub(super) fn parent_freqs(
        &self,
        span: Span,
        nesting: (&Nesting, &Nesting),
        prefix: &str,
        tables: &mut Vec<Table>,
    ) {
        let mut nested: Vec<_> = self.nested(nesting).collect();
        nested.sort_by_key(|(parent, ..)| self.name(*parent));
        // Each kind of distribution stands together, as lttng-analyses has them.
        for global in [false, true] {
            for kind in [
                Distribution::Duration,
                Distribution::Count,
                Distribution::Ratio,
            ] {
                let all: Vec<(String, Vec<f64>)> = nested
                    .iter()
                    .map(|(parent, child, shares, parents)| {
                        let zeros = (*parents as usize).saturating_sub(shares.counts.len());
                        let mut values = kind.values(shares);
                        values.extend(std::iter::repeat_n(0.0, if global { zeros } else { 0 }));
                        (
                            kind.title(global, &self.path(*child), &self.path(*parent)),
                            values,
                        )
                    })
                    .collect();
                let shared = (self.options.bins.uniform || self.options.bins.series)
                    .then(|| self.edges_of(all.iter().flat_map(|(_, values)| values)));
                for (title, values) in &all {
                    let mut table = span.subtable(kind.class(), format!("{prefix}{title}"));
                    let edges = shared.unwrap_or_else(|| self.edges_of(values.iter()));
                    edges.fill(values.iter().copied(), scaled, &mut table);
                    tables.push(table);
                }
            }
        }
    }

    fn edges_of<'v>(&self, values: impl Iterator<Item = &'v f64>) -> Edges {
        let (min, max) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| {
            (min.min(*value), max.max(*value))
        });
        Edges {
            min,
            max,
            count: self.options.bins.count,
        }
    }
}

/// What a distribution over parents is of.
#[derive(Clone, Copy)]
enum Distribution {
    Duration,
    Count,
    Ratio,
}

impl Distribution {
    fn class(self) -> &'static TableClass {
        match self {
            Distribution::Duration => &FREQ_DURATION,
            Distribution::Count => &FREQ_COUNT,
            Distribution::Ratio => &FREQ_RATIO,
        }
    }

    fn title(self, global: bool, child: &str, parent: &str) -> String {
        let what = match self {
            Distribution::Duration => "Duration",
            Distribution::Count => "Number",
            Distribution::Ratio => "Usage ratio",
        };
        match global {
            true => format!("Global {} of {child} per {parent}", what.to_lowercase()),
            false => format!("{what} of {child} per {parent}"),
        }
    }

    /// Durations are in microseconds.
    fn values(self, shares: &Shares) -> Vec<f64> {
        match self {
            Distribution::Duration => {
                let ns = shares.durations_ns.iter();
                ns.map(|ns| *ns as f64 / 1000.0).collect()
            }
            Distribution::Count => shares.counts.iter().map(|count| *count as f64).collect(),
            Distribution::Ratio => shares.percents.clone(),
        }
    }
}

/// A bound as lttng-analyses writes it, whatever it is of: times a thousand.
fn scaled(bound: f64) -> Cell {
    Cell::DurationFloat(bound * 1000.0)
}
