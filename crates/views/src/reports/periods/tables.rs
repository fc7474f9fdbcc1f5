//! The tables of periods.

use super::PeriodLog;
use super::classes::{
    AGGREGATED, FREQ_DURATION, LOG, PARENT_COUNT, PARENT_RATIO, PARENT_STATS, PER_PERIOD, TOP, TREE,
};
use super::groups::{Group, Groups};
use super::nesting::{Nesting, Shares};
use super::period::Period;
use super::plain::{Plain, PlainLog};
use crate::periods::Captured;
use crate::reports::options::Views;
use crate::reports::sched::summary;
use crate::reports::statistics::{Summary, deviation};
use crate::reports::table::{Cell, Span, Table};
use crate::reports::top::Top;

/// Two values deviate too, but lttng-analyses does not say by how much.
const DEVIATION_COUNT_MIN: usize = 3;

impl PeriodLog {
    pub(super) fn tables(&self, views: Views, span: Span) -> Vec<Table> {
        let mut tables = Vec::new();
        if views.log {
            match self.options.aggregate_by.is_some() && !self.options.by_hierarchy {
                true => self.aggregated(span, &mut tables),
                false => tables.push(self.log(span)),
            }
        }
        if views.top {
            tables.push(self.top(span));
        }
        if views.stats || views.freq {
            let nesting = Nesting::new(self);
            let groups = Groups::new(self);
            if views.stats {
                tables.push(self.tree(span));
                tables.push(self.per_period(span));
                self.per_parent(span, (&nesting, &nesting), "", &mut tables);
                for group in &groups.all {
                    let of = tables.len();
                    tables.push(self.per_period_of(span, group));
                    let prefix = format!("'{}' - ", group.name);
                    self.per_parent(span, (&group.nesting, &nesting), &prefix, &mut tables);
                    belong(&mut tables[of..], group);
                }
            }
            if views.freq {
                tables.extend(self.period_freqs(span));
                self.parent_freqs(span, (&nesting, &nesting), "", &mut tables);
                for group in &groups.all {
                    let of = tables.len();
                    tables.extend(self.group_freqs(span, group, &groups));
                    let prefix = format!("'{}' -- ", group.name);
                    self.parent_freqs(span, (&group.nesting, &nesting), &prefix, &mut tables);
                    if tables.len() == of {
                        // Nothing of the group was selected, but the group is there.
                        tables.push(span.table(&FREQ_DURATION));
                    }
                    belong(&mut tables[of..], group);
                }
            }
        }
        tables
    }

    /// The next part of the log, and the top behind its last one.
    pub(super) fn plain_tables(
        &self,
        plain: &mut PlainLog,
        views: Views,
        span: Span,
    ) -> Vec<Table> {
        let mut tables = Vec::new();
        if views.log {
            let mut table = span.table(&LOG);
            let periods = plain.log.part();
            let row = |plain: &Plain| self.row(&plain.period, self.path(plain.period.def));
            table.rows = periods.iter().map(row).collect();
            tables.push(table);
        }
        if views.top && plain.log.is_told() {
            let mut table = span.table(&TOP);
            let row =
                |Plain { period, .. }: &Plain| self.row(period, self.name(period.def).to_owned());
            table.rows = plain.top.sorted().map(row).collect();
            tables.push(table);
        }
        tables
    }

    fn row(&self, period: &Period, name: String) -> Vec<Cell> {
        vec![
            Cell::Time(period.begin_ns),
            Cell::Time(period.end_ns),
            Cell::Duration(period.duration_ns()),
            Cell::Text(name),
            Cell::Captures(period.begin_captures.clone()),
            Cell::Captures(period.end_captures.clone()),
        ]
    }

    fn log(&self, span: Span) -> Table {
        let mut table = span.table(&LOG);
        if !self.options.by_hierarchy {
            let rows = self.wanted();
            let rows = rows.map(|period| self.row(period, self.path(period.def)));
            table.rows = rows.collect();
            return table;
        }
        for period in self.wanted().filter(|period| period.parent.is_none()) {
            self.log_with_children(period, &mut table);
        }
        table
    }

    fn log_with_children(&self, period: &Period, table: &mut Table) {
        table.rows.push(self.row(period, self.path(period.def)));
        let children = period.children.iter().map(|place| &self.all[*place]);
        for child in children.filter(|child| self.wants(child)) {
            self.log_with_children(child, table);
        }
    }

    pub(super) fn path(&self, def: usize) -> String {
        self.options.periods.path(def)
    }

    fn top(&self, span: Span) -> Table {
        let mut top = Top::new(self.options.limit);
        let wanted = self.wanted().filter(|period| self.selects(period.def));
        for (rank, period) in wanted.enumerate() {
            top.push(period.duration_ns(), rank as u64, period);
        }
        let mut table = span.table(&TOP);
        let rows = top.sorted();
        let rows = rows.map(|period| self.row(period, self.name(period.def).to_owned()));
        table.rows = rows.collect();
        table
    }

    /// The definitions, each below its parent.
    fn tree(&self, span: Span) -> Table {
        let mut table = span.table(&TREE);
        for def in self.inside(None) {
            let level = self.path(def).matches('/').count() as i64;
            let name = Cell::Text(self.name(def).to_owned());
            table.rows.push(vec![name, Cell::Number(level)]);
        }
        table
    }

    fn per_period(&self, span: Span) -> Table {
        let mut table = span.table(&PER_PERIOD);
        let mut defs = self.inside(None);
        // Siblings by name, as in lttng-analyses; paths sort so that parents stay first.
        let root = |def: &usize| {
            let mut root = *def;
            while let Some(parent) = self.options.periods.parent(root) {
                root = parent;
            }
            root
        };
        defs.sort_by_cached_key(|def| (root(def), self.path(*def)));
        for def in defs.into_iter().filter(|def| self.selects(*def)) {
            let mut durations = Summary::default();
            let of_def = self.wanted().filter(|period| period.def == def);
            of_def.for_each(|period| durations.add(period.duration_ns()));
            if durations.count > 0 {
                let mut row = vec![Cell::Text(self.path(def))];
                row.extend(summary(&durations));
                let total_ns = i64::try_from(durations.total_ns).unwrap_or(i64::MAX);
                row.push(Cell::Duration(total_ns));
                table.rows.push(row);
            }
        }
        table
    }

    /// Parents and their children of which there are any, with the number of all parents, also of
    /// those that are in other groups.
    pub(super) fn nested<'n>(
        &'n self,
        (nesting, whole): (&'n Nesting, &'n Nesting),
    ) -> impl Iterator<Item = (usize, usize, &'n Shares, u64)> {
        let counts = |parent: usize| {
            let met = whole.met.iter().find(|(met, _)| *met == parent);
            met.map_or(0, |(_, count)| *count)
        };
        let by_parent = nesting.met.iter().filter(|(parent, _)| {
            let only = self.options.aggregate_by.as_deref();
            only.is_none_or(|only| only == self.name(*parent))
        });
        by_parent.flat_map(move |(parent, _)| {
            let count = counts(*parent);
            let children = self.inside(Some(*parent)).into_iter();
            children.filter_map(move |child| {
                let shares = nesting.shares.get(&(*parent, child))?;
                self.selects(child)
                    .then_some((*parent, child, shares, count))
            })
        })
    }

    fn per_parent(
        &self,
        span: Span,
        nesting: (&Nesting, &Nesting),
        prefix: &str,
        tables: &mut Vec<Table>,
    ) {
        let active = format!("{prefix}With active children");
        let global = format!("{prefix}Globally");
        let titles = || [active.clone(), global.clone()];
        let mut durations = titles().map(|of| span.subtable(&PARENT_STATS, of));
        let mut counts = titles().map(|of| span.subtable(&PARENT_COUNT, of));
        let mut ratios = titles().map(|of| span.subtable(&PARENT_RATIO, of));
        for (parent, child, shares, parents) in self.nested(nesting) {
            let names = || vec![Cell::Text(self.path(child)), Cell::Text(self.path(parent))];
            let numbers: Vec<f64> = shares.counts.iter().map(|count| *count as f64).collect();
            let without = (parents as usize).saturating_sub(shares.counts.len());
            for (place, zeros) in [0, without].into_iter().enumerate() {
                let row = |cells: Vec<Cell>| names().into_iter().chain(cells).collect();
                durations[place]
                    .rows
                    .push(row(duration_cells(&shares.durations_ns, zeros)));
                counts[place]
                    .rows
                    .push(row(number_cells(&numbers, zeros, true)));
                ratios[place]
                    .rows
                    .push(row(number_cells(&shares.percents, zeros, false)));
            }
        }
        let [active_durations, global_durations] = durations;
        let [active_counts, global_counts] = counts;
        let [active_ratios, global_ratios] = ratios;
        tables.extend([active_durations, active_counts, active_ratios]);
        tables.extend([global_durations, global_counts, global_ratios]);
    }

    /// The periods of one group.
    fn per_period_of(&self, span: Span, group: &Group) -> Table {
        let mut table = span.table(&PER_PERIOD);
        for (def, durations_ns) in &group.durations_ns {
            if !self.selects(*def) {
                continue;
            }
            let durations = summary_of(durations_ns);
            let mut row = vec![Cell::Text(self.path(*def))];
            row.extend(summary(&durations));
            let total_ns = i64::try_from(durations.total_ns).unwrap_or(i64::MAX);
            row.push(Cell::Duration(total_ns));
            table.rows.push(row);
        }
        table
    }

    /// What is in each period of one name, a row for each kind.
    fn aggregated(&self, span: Span, tables: &mut Vec<Table>) {
        let by = self.options.aggregate_by.as_deref().unwrap_or_default();
        let of = format!(
            "Aggregation of ({}) by {by}",
            self.options.select.join(", ")
        );
        for (group, parents) in self.aggregates() {
            let subtitle = match self.options.group_by.is_empty() {
                true => of.clone(),
                false => format!("{of}, group: {group}"),
            };
            let mut table = span.subtable(&AGGREGATED, subtitle);
            for (parent, inside) in parents {
                let captures = [&parent.begin_captures, &parent.end_captures].into_iter();
                let captures = captures.flatten().map(|(name, value)| {
                    let name = format!("{}.{name}", self.name(parent.def));
                    (name, value.clone())
                });
                let captures: Captured = captures.collect();
                for (def, durations_ns) in inside {
                    let durations = summary_of(&durations_ns);
                    let mut row = vec![
                        Cell::Text(self.name(parent.def).to_owned()),
                        Cell::Time(parent.begin_ns),
                        Cell::Time(parent.end_ns),
                        Cell::Text(self.path(def)),
                    ];
                    row.extend(summary(&durations));
                    let total_ns = i64::try_from(durations.total_ns).unwrap_or(i64::MAX);
                    row.push(Cell::Duration(total_ns));
                    row.push(Cell::Captures(captures.clone()));
                    table.rows.push(row);
                }
            }
            tables.push(table);
        }
    }
}

/// Tables that speak of one group.
fn belong(tables: &mut [Table], group: &Group) {
    for table in tables {
        table.group = Some(group.name.clone());
    }
}

/// Of these durations.
pub(super) fn summary_of(durations_ns: &[i64]) -> Summary {
    let mut summary = Summary::default();
    durations_ns.iter().for_each(|ns| summary.add(*ns));
    summary
}

/// Least, mean, greatest and deviation of durations, `zeros` of them being zero besides.
fn duration_cells(durations_ns: &[i64], zeros: usize) -> Vec<Cell> {
    let mut durations = summary_of(durations_ns);
    (0..zeros).for_each(|_| durations.add(0));
    let enough = durations.count >= DEVIATION_COUNT_MIN as u64;
    vec![
        Cell::Duration(durations.min_ns),
        Cell::DurationFloat(durations.mean_ns()),
        Cell::Duration(durations.max_ns),
        Cell::duration_or_unknown(durations.deviation_ns().filter(|_| enough)),
    ]
}

/// The same of other numbers.
fn number_cells(values: &[f64], zeros: usize, whole: bool) -> Vec<Cell> {
    let all: Vec<f64> = values
        .iter()
        .copied()
        .chain(std::iter::repeat_n(0.0, zeros))
        .collect();
    let number = |value: f64| match whole {
        true => Cell::Count(value as u64),
        false => Cell::Float(value),
    };
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    let enough = all.len() >= DEVIATION_COUNT_MIN;
    vec![
        number(all.iter().copied().fold(f64::INFINITY, f64::min)),
        Cell::Float(mean),
        number(all.iter().copied().fold(0.0, f64::max)),
        deviation(&all)
            .filter(|_| enough)
            .map_or(Cell::Unknown, Cell::Float),
    ]
}
