//! Several intervals as one.

use abi::monitor::Phase;
use event::Duration;

use crate::buckets::Histogram;
use crate::interval::{Interval, Scope, Series, Worst};

impl Interval {
    /// Adds the interval that follows this one.
    pub fn append(&mut self, next: Interval) {
        let head = &mut self.head;
        head.end_ns = next.head.end_ns;
        head.elapsed += next.head.elapsed;
        head.lost += next.head.lost;
        head.hidden += next.head.hidden;
        head.worst_missed += next.head.worst_missed;
        head.unsaved += next.head.unsaved;
        head.cost += next.head.cost;
        for series in next.series {
            add_series(&mut self.series, series);
        }
        for worst in next.worst {
            add_worst(&mut self.worst, worst);
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

    /// A phase over all CPUs; none when it has no samples.
    pub fn phase(&self, scope: Scope, phase: Phase) -> Option<PhaseSum> {
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

    /// The longest of a phase.
    pub fn worst_of(&self, scope: Scope, phase: Phase) -> Option<&Worst> {
        let mut worst = self.worst.iter();
        worst.find(|worst| (worst.scope, worst.phase) == (scope, phase))
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
    let key = |series: &Series| (series.scope, series.phase, series.cpu.0);
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
    let key = |worst: &Worst| (worst.scope, worst.phase);
    match all.binary_search_by_key(&key(&next), key) {
        Ok(at) if all[at].value < next.value => all[at] = next,
        Ok(_) => {}
        Err(at) => all.insert(at, next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
