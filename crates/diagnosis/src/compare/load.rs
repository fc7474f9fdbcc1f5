//! Who had the CPUs while a recording was made, beside the real-time tasks: recordings under other
//! loads differ in what is late, whatever was changed between them.

use std::collections::BTreeMap;

use event::{Prio, Result, TimeRange};
use kernel_state::{Change, Follow, Holder, Kernel, Shared, Sink};
use trace::{Item, Trace};

use crate::signature::stable_task;

/// The shares of all CPU time that ordinary tasks had, by their names without numbers. What is left
/// was idle, real-time, or is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    shares: BTreeMap<String, f64>,
}

/// Ordinary tasks whose share of the CPUs differs most between two loads.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadsApart {
    /// The part of all CPU time that went to others.
    pub share: f64,
    /// The task that differs most, by its name without numbers.
    pub name: String,
    /// Its share before.
    pub before: f64,
    /// And after.
    pub after: f64,
}

impl Load {
    /// Reads the load of a trace within `range`.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn read(trace: &Trace, range: TimeRange) -> Result<Load> {
        let mut kernel = Kernel::new(trace, Follow::default());
        let mut times = Times::new(range);
        trace.cursor(range).each(|item| {
            if let Item::Event(event) = item {
                kernel.event(event, event.time().as_ns(), &mut Shared(&mut times));
            }
            Ok(())
        })?;
        Ok(times.load())
    }

    /// The mean of several.
    pub fn mean(loads: &[Load]) -> Load {
        let mut shares: BTreeMap<String, f64> = BTreeMap::new();
        for (name, share) in loads.iter().flat_map(|load| &load.shares) {
            *shares.entry(name.clone()).or_default() += share / loads.len() as f64;
        }
        Load { shares }
    }

    /// How far another one is away, tasks that `is_meant` left out: what they do is no load but
    /// what is compared. None where no task differs.
    pub fn apart(&self, other: &Load, is_meant: impl Fn(&str) -> bool) -> Option<LoadsApart> {
        let names = self.shares.keys().chain(other.shares.keys());
        let names: std::collections::BTreeSet<&String> = names.collect();
        let of = |load: &Load, name: &str| load.shares.get(name).copied().unwrap_or(0.0);
        let pairs = names.into_iter().filter(|name| !is_meant(name));
        let pairs = pairs.map(|name| (name, of(self, name), of(other, name)));
        let pairs: Vec<(&String, f64, f64)> = pairs.collect();
        let changes = || pairs.iter().map(|(_, before, after)| after - before);
        // What was taken from nobody named came from idle CPUs, and counts once as well.
        let rest: f64 = changes().sum();
        let share = (changes().map(f64::abs).sum::<f64>() + rest.abs()) / 2.0;
        let difference = |pair: &(&String, f64, f64)| (pair.2 - pair.1).abs();
        let by_difference = |a: &_, b: &_| difference(a).total_cmp(&difference(b));
        let &(name, before, after) = pairs.iter().max_by(|a, b| by_difference(a, b))?;
        Some(LoadsApart {
            share,
            name: name.clone(),
            before,
            after,
        })
    }
}

/// CPU time by name while a trace is read.
struct Times {
    range_ns: (i64, i64),
    ordinary_ns: BTreeMap<String, i64>,
    all_ns: i64,
}

impl Times {
    fn new(range: TimeRange) -> Times {
        Times {
            range_ns: (range.begin.as_ns(), range.end.as_ns()),
            ordinary_ns: BTreeMap::new(),
            all_ns: 0,
        }
    }

    fn load(self) -> Load {
        let all_ns = self.all_ns.max(1) as f64;
        let share = |(name, ns): (String, i64)| (name, ns as f64 / all_ns);
        Load {
            shares: self.ordinary_ns.into_iter().map(share).collect(),
        }
    }
}

impl Sink for Times {
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let Change::Ran {
            holder,
            from_ns,
            until_ns,
            ..
        } = *change
        else {
            return;
        };
        let (begin_ns, end_ns) = self.range_ns;
        let ns = until_ns.min(end_ns) - from_ns.max(begin_ns);
        if ns <= 0 {
            return;
        }
        self.all_ns += ns;
        let Holder::Task(id) = holder else { return };
        let process = kernel.process(id);
        if process
            .prio
            .is_some_and(|prio| !Prio::from_lttng(prio).is_real_time())
        {
            let name = stable_task(&String::from_utf8_lossy(kernel.name(process)));
            *self.ordinary_ns.entry(name).or_default() += ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(shares: &[(&str, f64)]) -> Load {
        let share = |(name, share): &(&str, f64)| ((*name).to_owned(), *share);
        Load {
            shares: shares.iter().map(share).collect(),
        }
    }

    #[test]
    fn loads_are_as_far_apart_as_cpu_time_went_to_others() {
        let check = |a: &[(&str, f64)], b: &[(&str, f64)], expect: f64| {
            let nobody = |_: &str| false;
            let there = load(a)
                .apart(&load(b), nobody)
                .map_or(0.0, |apart| apart.share);
            let back = load(b)
                .apart(&load(a), nobody)
                .map_or(0.0, |apart| apart.share);
            assert!((there - expect).abs() < 1e-9, "{a:?} {b:?}: {there}");
            assert!((back - expect).abs() < 1e-9, "{b:?} {a:?}: {back}");
        };
        check(&[], &[], 0.0);
        check(&[("cc", 0.5)], &[("cc", 0.5)], 0.0);
        check(&[("cc", 0.5)], &[], 0.5);
        check(&[("cc", 0.5)], &[("ld", 0.5)], 0.5);
        check(
            &[("cc", 0.5), ("sh", 0.1)],
            &[("cc", 0.2), ("sh", 0.1)],
            0.3,
        );
        check(&[("cc", 0.5)], &[("cc", 0.3), ("ld", 0.3)], 0.3);
    }

    #[test]
    fn whom_the_comparison_is_about_is_no_load() {
        let (a, b) = (
            load(&[("app", 0.1), ("cc", 0.3)]),
            load(&[("app", 0.6), ("cc", 0.2)]),
        );
        let apart = a.apart(&b, |name| name == "app").expect("cc differs");
        assert_eq!(
            (apart.name.as_str(), apart.before, apart.after),
            ("cc", 0.3, 0.2)
        );
        assert!((apart.share - 0.1).abs() < 1e-9);
        let mean = Load::mean(&[a, b]);
        assert!((mean.shares["cc"] - 0.25).abs() < 1e-9);
        assert_eq!(Load::mean(&[]), Load::default());
    }
}
