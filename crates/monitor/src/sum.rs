//! Several intervals as one.

use std::collections::BTreeSet;

use event::Duration;

use crate::buckets::Histogram;
use crate::interval::{Interval, Scope, Series, Worst};
use crate::kind::Kind;
use crate::late::{LATE_MAX, Late};

impl Interval {
    /// Adds the interval that follows this one.
    pub fn append(&mut self, next: Interval) {
        let head = &mut self.head;
        head.end_ns = next.head.end_ns;
        head.elapsed += next.head.elapsed;
        head.lost += next.head.lost;
        head.hidden += next.head.hidden;
        head.lost_tracked += next.head.lost_tracked;
        head.worst_missed += next.head.worst_missed;
        head.unsaved += next.head.unsaved;
        head.cost += next.head.cost;
        for series in next.series {
            add_series(&mut self.series, series);
        }
        for worst in next.worst {
            add_worst(&mut self.worst, worst);
        }
        for late in next.late {
            self.add_late(late);
        }
        for (phase, cpu, linear) in next.linear {
            let mut known = self.linear.iter_mut();
            match known.find(|(of, on, _)| (*of, *on) == (phase, cpu)) {
                Some((_, _, sum)) => {
                    let mut both = Histogram(std::mem::take(&mut sum.0));
                    both.add(&Histogram(linear.0));
                    sum.0 = both.0;
                }
                None => self.linear.push((phase, cpu, linear)),
            }
        }
    }

    /// What was counted of a scope, phases first.
    pub fn kinds(&self, scope: Scope) -> Vec<Kind> {
        let of_scope = self.series.iter().filter(|series| series.scope == scope);
        let kinds: BTreeSet<_> = of_scope.map(|series| series.phase.clone()).collect();
        kinds.into_iter().collect()
    }

    /// A phase over all CPUs, or what a tracker measures; none when it has no samples.
    pub fn phase(&self, scope: Scope, phase: impl Into<Kind>) -> Option<PhaseSum> {
        let phase = phase.into();
        let of_phase = |series: &&Series| series.scope == scope && series.phase == phase;
        let mut sum: Option<PhaseSum> = None;
        for series in self.series.iter().filter(of_phase) {
            let sum = sum.get_or_insert_with(PhaseSum::default);
            sum.sum += series.sum;
            sum.max = sum.max.max(series.max);
            sum.histogram.add(&series.histogram);
        }
        sum
    }

    /// The longest of a phase, or of what a tracker measures.
    pub fn worst_of(&self, scope: Scope, phase: impl Into<Kind>) -> Option<&Worst> {
        let phase = phase.into();
        let mut worst = self.worst.iter();
        worst.find(|worst| worst.scope == scope && worst.phase == phase)
    }
}

impl Interval {
    /// Takes in an activation over the limit; of too many the shortest goes.
    pub fn add_late(&mut self, late: Late) {
        self.late.push(late);
        if self.late.len() > LATE_MAX {
            let places = self.late.iter().enumerate();
            let shortest = places.min_by_key(|(_, late)| late.latency);
            if let Some((place, _)) = shortest {
                self.late.remove(place);
            }
        }
    }

    /// Takes in what a tracker measured on a CPU of a scope, with the longest if it is known.
    pub fn add_tracked(&mut self, series: Series, worst: Option<Worst>) {
        add_series(&mut self.series, series);
        if let Some(worst) = worst {
            add_worst(&mut self.worst, worst);
        }
    }

    /// What a watch said of a longest sample, if it was over the limit.
    pub fn late_of(&self, worst: &Worst) -> Option<&Late> {
        let is_of_it = |late: &&Late| late.is_of(worst.victim.as_ref(), worst.at_ns);
        let of_it = self.late.iter().filter(is_of_it);
        of_it.min_by_key(|late| (late.at_ns - worst.at_ns).abs())
    }
}

/// A phase over all CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseSum {
    /// All samples together.
    pub sum: Duration,
    /// The longest.
    pub max: Duration,
    /// All of them.
    pub histogram: Histogram,
}

impl PhaseSum {
    /// The duration that this share of the samples did not exceed.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        self.histogram.quantile(quantile, self.max)
    }
}

fn add_series(all: &mut Vec<Series>, next: Series) {
    let key = |series: &Series| (series.scope, series.phase.clone(), series.cpu.0);
    match all.binary_search_by_key(&key(&next), key) {
        Ok(at) => {
            let series = &mut all[at];
            series.sum += next.sum;
            series.min = series.min.min(next.min);
            series.max = series.max.max(next.max);
            series.histogram.add(&next.histogram);
        }
        Err(at) => all.insert(at, next),
    }
}

fn add_worst(all: &mut Vec<Worst>, next: Worst) {
    let key = |worst: &Worst| (worst.scope, worst.phase.clone());
    match all.binary_search_by_key(&key(&next), key) {
        Ok(at) if all[at].value < next.value => all[at] = next,
        Ok(_) => {}
        Err(at) => all.insert(at, next),
    }
}

#[cfg(test)]
mod tests {
    use abi::monitor::Phase;

    use super::*;
    use crate::task::Task;
    use crate::test_data::sample;

    #[test]
    fn intervals_that_follow_each_other_add_up() {
        let mut sum = Interval::default();
        for number in 0..3 {
            sum.append(sample(number));
        }
        assert_eq!((sum.head.lost, sum.head.end_ns), (3, sample(2).head.end_ns));
        let phase = sum.phase(Scope::RealTime, Phase::Switch).expect("samples");
        let samples = |number| sample(number).series[0].histogram.samples();
        assert_eq!(phase.histogram.samples(), (0..3).map(samples).sum::<u64>());
        let worst = sum.worst_of(Scope::RealTime, Phase::Switch).expect("one");
        // The first of equals.
        assert_eq!(worst, &sample(0).worst[0]);
        assert_eq!(sum.linear[0].2.0, [(3, 12), (10240, 3)]);
        assert_eq!(sum.phase(Scope::Named, Phase::Switch), None);
    }

    #[test]
    fn a_longest_sample_has_the_ledger_of_its_own_activation_and_of_no_other() {
        let mut interval = sample(3);
        interval.late.clear();
        let worst = interval.worst[0].clone();
        let late = |tid: i32, at_ns: i64, us: i64| Late {
            at_ns,
            latency: Duration::from_us(us),
            victim: Some(Task {
                tid,
                ..Task::default()
            }),
            ..Late::default()
        };
        let ms = 1_000_000;
        interval.add_late(late(8, worst.at_ns, 10));
        interval.add_late(late(7, worst.at_ns + 5 * ms, 10));
        assert_eq!(interval.late_of(&worst), None);
        interval.add_late(late(7, worst.at_ns + 5 * ms, 4_500));
        assert_eq!(interval.late_of(&worst), Some(&interval.late[2]));
        interval.add_late(late(7, worst.at_ns + 1, 10));
        assert_eq!(interval.late_of(&worst), Some(&interval.late[3]));
    }

    #[test]
    fn of_too_many_the_longest_stay() {
        let mut interval = Interval::default();
        for us in 0..2 * LATE_MAX as i64 {
            interval.add_late(Late {
                latency: Duration::from_us(us),
                ..Late::default()
            });
        }
        assert_eq!(interval.late.len(), LATE_MAX);
        assert!(
            interval
                .late
                .iter()
                .all(|one| one.latency >= Duration::from_us(32))
        );
    }
}
