//! What LAMI gets of many windows: a row of each, or nothing at all.

use super::kind::{Keeps, Report};
use super::question::Tick;
use super::table::{Cell, Span, Table, TableClass};

impl Report {
    /// The summary that LAMI wants instead of the tables of many windows; none where it wants
    /// them as they are.
    pub fn summary(&self) -> Option<Summary> {
        let (from, keys): (&[&str], &[&str]) = match self.kind.summary {
            Keeps::AllWindows => return None,
            Keeps::Nothing => (&[], &[]),
            Keeps::Columns { of_stats: true, .. } if !self.views.stats => (&[], &[]),
            Keeps::Columns { tables, keys, .. } => (tables, keys),
        };
        let mut classes = self.kind.classes.iter();
        Some(Summary {
            from,
            keys,
            class: classes.find(|class| class.name == "summary").copied(),
            table: None,
        })
    }
}

/// A row of each window, or nothing at all.
#[derive(Debug)]
pub struct Summary {
    /// The tables and their columns that are kept.
    from: &'static [&'static str],
    keys: &'static [&'static str],
    class: Option<&'static TableClass>,
    table: Option<Table>,
}

impl Summary {
    /// Takes in what was found in the next window.
    pub fn add(&mut self, tick: &Tick) {
        let Some(class) = self.class else { return };
        let span = Span {
            begin_ns: tick.begin_ns,
            end_ns: tick.end_ns,
        };
        let summary = self.table.get_or_insert_with(|| span.table(class));
        summary.end_ns = tick.end_ns;
        let wanted = |table: &&Table| self.from.contains(&table.class.name);
        for table in tick.tables.iter().filter(wanted) {
            let places = self.keys.iter().filter_map(|key| table.class.place(key));
            let places: Vec<usize> = places.collect();
            for row in &table.rows {
                let kept = places.iter().filter_map(|place| row.get(*place).cloned());
                let range = Cell::Range(table.begin_ns, table.end_ns);
                summary.rows.push([range].into_iter().chain(kept).collect());
            }
        }
    }

    /// The table; none when there is nothing to say.
    pub fn table(self) -> Option<Table> {
        self.table.filter(|_| !self.from.is_empty())
    }
}
