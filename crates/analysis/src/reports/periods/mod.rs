//! Periods that were defined: all of them, the longest, how long and how many in each parent.

mod groups;
mod nesting;
mod tables;

use std::collections::HashMap;
use std::rc::Rc;

use super::options::{ReportOptions, Views};
use super::table::{Span, Table, TableClass};
use crate::periods::{Captured, Turn};

/// All tables of the report.
pub(super) const CLASSES: &[&TableClass] = tables::CLASSES;

/// A period.
#[derive(Debug)]
struct Period {
    def: usize,
    begin_ns: i64,
    end_ns: i64,
    completed: bool,
    parent: Option<usize>,
    /// Those that completed, in the order of their ends.
    children: Vec<usize>,
    begin_captures: Captured,
    end_captures: Captured,
}

impl Period {
    fn duration_ns(&self) -> i64 {
        self.end_ns - self.begin_ns
    }
}

/// All periods of a trace, in the order of their begins.
#[derive(Debug)]
pub(super) struct PeriodLog {
    options: Rc<ReportOptions>,
    all: Vec<Period>,
    /// Places of the open ones, by the number that the matcher gave them.
    open: HashMap<u64, usize>,
}

impl PeriodLog {
    pub fn new(options: Rc<ReportOptions>) -> PeriodLog {
        PeriodLog {
            options,
            all: Vec::new(),
            open: HashMap::new(),
        }
    }

    /// Takes in what happened to a period.
    pub fn turn(&mut self, turn: &Turn<'_>, now_ns: i64) {
        match turn {
            Turn::Begin {
                id,
                def,
                parent,
                captured,
            } => {
                self.open.insert(*id, self.all.len());
                let parent = parent.and_then(|parent| self.open.get(&parent).copied());
                self.all.push(Period {
                    def: *def,
                    begin_ns: now_ns,
                    end_ns: now_ns,
                    completed: false,
                    parent,
                    children: Vec::new(),
                    begin_captures: (*captured).clone(),
                    end_captures: Vec::new(),
                });
            }
            Turn::End {
                id,
                completed,
                captured,
            } => {
                let Some(place) = self.open.remove(id) else {
                    return;
                };
                let period = &mut self.all[place];
                period.end_ns = now_ns;
                period.completed = *completed;
                period.end_captures = captured.clone();
                let parent = period.parent.filter(|_| *completed);
                if let Some(parent) = parent {
                    self.all[parent].children.push(place);
                }
            }
        }
    }

    /// The tables of a report over the whole time.
    pub fn finish(&self, views: Views, span: Span) -> Vec<Table> {
        self.tables(views, span)
    }

    /// Whether a period completed and is as long as was asked for.
    fn wants(&self, period: &Period) -> bool {
        let ns = period.duration_ns();
        let options = &self.options;
        period.completed
            && options.min_period_ns.is_none_or(|min| ns >= min)
            && options.max_period_ns.is_none_or(|max| ns <= max)
    }

    fn wanted(&self) -> impl Iterator<Item = &Period> {
        self.all.iter().filter(|period| self.wants(period))
    }

    /// The name of a definition; empty when it has none.
    fn name(&self, def: usize) -> &str {
        let list = self.options.periods.list();
        list.get(def)
            .and_then(|period| period.name.as_deref())
            .unwrap_or_default()
    }

    /// Whether periods of a definition were selected, or nothing was.
    fn selects(&self, def: usize) -> bool {
        let select = &self.options.select;
        select.is_empty() || select.iter().any(|name| name == self.name(def))
    }

    /// All definitions inside of one, each before its own.
    fn inside(&self, def: Option<usize>) -> Vec<usize> {
        let periods = &self.options.periods;
        let mut all = Vec::new();
        let children = (0..periods.list().len()).filter(|place| periods.parent(*place) == def);
        for child in children {
            all.push(child);
            all.extend(self.inside(Some(child)));
        }
        all
    }
}
