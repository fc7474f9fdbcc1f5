//! Periods grouped by what was kept of them: of their own, of what they are in, of what is in them.

use std::collections::{BTreeSet, HashMap};

use super::PeriodLog;
use super::nesting::{Nesting, Sums};
use super::period::Period;

/// A kept value with its name, as in `switch.comm` and `jackd`.
type Kept = (String, String);

/// The periods of one group.
#[derive(Debug)]
pub(super) struct Group {
    /// As in `switch.comm = jackd, switch.cpu = 1`.
    pub name: String,
    /// Durations by definition, in the order in which they are met.
    pub durations_ns: Vec<(usize, Vec<i64>)>,
    /// How they nest.
    pub nesting: Nesting,
}

/// All groups, in the order in which they are met.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub all: Vec<Group>,
    by_name: HashMap<String, usize>,
    /// What is in a period, of one group.
    inside: HashMap<(usize, usize), Sums>,
}

/// The name of a group.
pub(super) fn name(kept: &[Kept]) -> String {
    let mut kept: Vec<&Kept> = kept.iter().collect();
    kept.sort_by_key(|(name, _)| name);
    let all: Vec<String> = kept
        .iter()
        .map(|(n, value)| format!("{n} = {value}"))
        .collect();
    all.join(", ")
}

impl PeriodLog {
    /// What was kept of a period and is grouped by.
    pub(super) fn grouped_by(&self, period: &Period) -> Vec<Kept> {
        let of = self.name(period.def);
        let wanted = |capture: &str| {
            let pairs = &self.options.group_by;
            pairs
                .iter()
                .any(|(period, name)| period == of && name == capture)
        };
        let mut all = Vec::new();
        for captures in [&period.begin_captures, &period.end_captures] {
            let mut captures: Vec<_> = captures.iter().filter(|(name, _)| wanted(name)).collect();
            captures.sort_by_key(|(name, _)| name);
            for (name, value) in captures {
                let value = value
                    .as_ref()
                    .map_or("None".to_owned(), ToString::to_string);
                all.push((format!("{of}.{name}"), value));
            }
        }
        all
    }
}

impl Groups {
    pub fn new(log: &PeriodLog) -> Groups {
        let mut groups = Groups::default();
        if log.options.group_by.is_empty() {
            return groups;
        }
        let outermost = log.all.iter().enumerate();
        for (place, _) in outermost.filter(|(_, p)| p.parent.is_none() && log.wants(p)) {
            groups.add(log, place, &[]);
        }
        groups
    }

    /// Adds a period and all that is in it; what was kept along each way into it.
    fn add(&mut self, log: &PeriodLog, place: usize, outside: &[Kept]) -> Vec<Vec<Kept>> {
        let period = &log.all[place];
        let own = log.grouped_by(period);
        let around = [outside, &own].concat();
        let mut ways = Vec::new();
        for child in period
            .children
            .iter()
            .filter(|child| log.wants(&log.all[**child]))
        {
            for way in self.add(log, *child, &around) {
                ways.push([&own[..], &way].concat());
            }
        }
        if ways.is_empty() {
            ways.push(own);
        }
        let mut seen: Vec<Vec<Kept>> = Vec::new();
        for way in &ways {
            let all = [way, outside].concat();
            if !seen.contains(&all) {
                self.account(log, place, &all);
                seen.push(all);
            }
        }
        ways
    }

    fn account(&mut self, log: &PeriodLog, place: usize, kept: &[Kept]) {
        let named: BTreeSet<&str> = log
            .options
            .group_by
            .iter()
            .map(|(period, _)| period.as_str())
            .collect();
        // A period that lacks a part of the name is in no group.
        if kept.len() < named.len() {
            return;
        }
        let group = self.group(name(kept));
        let period = &log.all[place];
        let (def, ns) = (period.def, period.duration_ns());
        let durations = &mut self.all[group].durations_ns;
        match durations.iter_mut().find(|(of, _)| *of == def) {
            Some((_, durations)) => durations.push(ns),
            None => durations.push((def, vec![ns])),
        }
        self.all[group].nesting.meet(def);
        let mut outer = period.parent;
        while let Some(parent) = outer {
            self.all[group].nesting.meet(log.all[parent].def);
            let sums = self.inside.entry((group, parent)).or_default();
            let sum = sums.entry(def).or_default();
            sum.0 += 1;
            sum.1 += ns;
            outer = log.all[parent].parent;
        }
        if let Some(sums) = self.inside.get(&(group, place)) {
            self.all[group].nesting.count(period, sums);
        }
    }

    fn group(&mut self, name: String) -> usize {
        if let Some(place) = self.by_name.get(&name) {
            return *place;
        }
        self.by_name.insert(name.clone(), self.all.len());
        self.all.push(Group {
            name,
            durations_ns: Vec::new(),
            nesting: Nesting::default(),
        });
        self.all.len() - 1
    }
}

/// Parents with the durations of what was selected in them, by definition in the order in which
/// they are met; below the name of their group, which is empty without groups.
pub(super) type Aggregates<'a> = Vec<(String, Vec<(&'a Period, Vec<(usize, Vec<i64>)>)>)>;

impl PeriodLog {
    /// What is in the periods that [`super::ReportOptions::aggregate_by`] names.
    pub(super) fn aggregates(&self) -> Aggregates<'_> {
        let mut groups: Aggregates<'_> = Vec::new();
        let by = self.options.aggregate_by.as_deref();
        for parent in self
            .wanted()
            .filter(|period| Some(self.name(period.def)) == by)
        {
            let mut kept = self.grouped_by(parent);
            let mut inside = Vec::new();
            for child in &parent.children {
                self.gather(*child, &mut inside, &mut kept);
            }
            if inside.is_empty() {
                continue;
            }
            let name = name(&kept);
            match groups.iter_mut().find(|(group, _)| *group == name) {
                Some((_, parents)) => parents.push((parent, inside)),
                None => groups.push((name, vec![(parent, inside)])),
            }
        }
        groups
    }

    fn gather(&self, place: usize, inside: &mut Vec<(usize, Vec<i64>)>, kept: &mut Vec<Kept>) {
        let period = &self.all[place];
        if !self.wants(period) {
            return;
        }
        if self.selects(period.def) {
            match inside.iter_mut().find(|(def, _)| *def == period.def) {
                Some((_, durations)) => durations.push(period.duration_ns()),
                None => inside.push((period.def, vec![period.duration_ns()])),
            }
        }
        kept.extend(self.grouped_by(period));
        for child in &period.children {
            self.gather(*child, inside, kept);
        }
    }
}
