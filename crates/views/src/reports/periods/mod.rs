//! Periods that were defined: all of them, the longest, how long and how many in each parent.

mod classes;
mod distributions;
mod groups;
mod kind;
mod nesting;
mod period;
mod plain;
mod tables;

use std::collections::HashMap;
use std::rc::Rc;

pub(super) use kind::KIND;

use self::period::Period;
use self::plain::PlainLog;
use super::options::{ReportOptions, Views};
use super::table::{Span, Table};
use crate::periods::Turn;

/// All periods of a trace, in the order of their begins.
#[derive(Debug)]
pub(super) struct PeriodLog {
    options: Rc<ReportOptions>,
    all: Vec<Period>,
    /// Places of the open ones, by the number that the matcher gave them.
    open: HashMap<u64, usize>,
    /// Instead of all, where they are only told one by one.
    plain: Option<PlainLog>,
}

impl PeriodLog {
    /// For these reports.
    pub fn new(options: Rc<ReportOptions>, views: &[Views]) -> PeriodLog {
        let by_others = options.by_hierarchy || options.aggregate_by.is_some();
        let plain = match views {
            [views] if !(views.stats || views.freq || by_others) => {
                Some(PlainLog::new(&options, *views))
            }
            _ => None,
        };
        PeriodLog {
            options,
            all: Vec::new(),
            open: HashMap::new(),
            plain,
        }
    }

    /// Takes in what happened to a period.
    pub fn turn(&mut self, turn: &Turn<'_>, now_ns: i64) {
        if let Some(mut plain) = self.plain.take() {
            plain.turn(turn, now_ns, |period| {
                let wanted = self.wants(period);
                (wanted, wanted && self.selects(period.def))
            });
            self.plain = Some(plain);
            return;
        }
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
                    begin_ns: now_ns,
                    end_ns: now_ns,
                    parent,
                    begin_captures: (*captured).clone(),
                    ..Period::new(*def)
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

    /// The tables of a report over the whole time; a log may go on.
    pub fn finish(&mut self, views: Views, span: Span) -> Vec<Table> {
        match self.plain.take() {
            None => self.tables(views, span),
            Some(mut plain) => {
                let tables = self.plain_tables(&mut plain, views, span);
                self.plain = Some(plain);
                tables
            }
        }
    }

    /// The next part of a log that goes on, and what comes behind it.
    pub fn more(&mut self, views: Views, span: Span) -> Option<Vec<Table>> {
        let goes_on = self
            .plain
            .as_ref()
            .is_some_and(|plain| !plain.log.is_told());
        goes_on.then(|| self.finish(views, span))
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
