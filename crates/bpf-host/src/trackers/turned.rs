//! What a tracker counted in an interval of time, on each CPU: the kernel writes one half of the
//! counters while the other is read and emptied.

use abi::raw;
use abi::trackers::{RawSeries, SERIES_MAX, decode_tracked};
use event::evidence::tracked::Tracked;
use event::{Cpu, Duration, Result};
use libbpf_rs::{MapCore, MapFlags};

use super::running::TrackerWatch;
use crate::monitor::wait_for_programs;
use crate::object;

/// The intervals of a series that ended on a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnedSeries {
    /// Which of the tracker's series.
    pub series: usize,
    /// Where they ended.
    pub cpu: Cpu,
    /// All of them together.
    pub sum: Duration,
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// Buckets that are not empty, by rising number, with their counts.
    pub buckets: Vec<(u16, u64)>,
    /// The longest with whoever was in it; none where another one was longest as it was written.
    pub worst: Option<Tracked>,
}

/// What a tracker counted since the last turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turned {
    /// Every series and CPU that has intervals.
    pub series: Vec<TurnedSeries>,
    /// Intervals that were not counted, or more.
    pub lost: u64,
}

impl TrackerWatch {
    /// Ends an interval of time and begins the next one: what ends meanwhile is in one of the two.
    /// The tracker has to be one that [turns](super::TrackerConfig::turns), and has no
    /// [statistics](TrackerWatch::statistics) since its start then.
    ///
    /// # Errors
    /// When the kernel refuses to read the counters.
    pub fn turn(&mut self) -> Result<Turned> {
        let side = self.side;
        self.side ^= 1;
        object::map(&self.object, ".bss.side")?
            .update(&0u32.to_ne_bytes(), &self.side.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| object::explain("turn", &error))?;
        wait_for_programs();
        let mut turned = Turned::default();
        for series in 0..self.tracker.series.len() {
            let place = (side as usize * SERIES_MAX + series) as u32;
            let of_cpus = object::per_cpu::<RawSeries>(&self.object, "tracker_series", place)?;
            if of_cpus.iter().all(|one| one.count == 0) {
                continue;
            }
            for (cpu, counted) in of_cpus.iter().enumerate() {
                turned
                    .series
                    .extend(counted_on(series, Cpu(cpu as u32), counted)?);
            }
            let empty = vec![raw::bytes(&raw::zeroed::<RawSeries>()).to_vec(); of_cpus.len()];
            object::map(&self.object, "tracker_series")?
                .update_percpu(&place.to_ne_bytes(), &empty, MapFlags::ANY)
                .map_err(|error| object::explain("empty", &error))?;
        }
        let lost = self.uncounted()?;
        turned.lost = lost.saturating_sub(self.lost_before);
        self.lost_before = lost;
        Ok(turned)
    }
}

/// None where nothing was counted.
fn counted_on(series: usize, cpu: Cpu, counted: &RawSeries) -> Result<Option<TurnedSeries>> {
    if counted.count == 0 {
        return Ok(None);
    }
    let ns = |ns: u64| Duration::from_ns(ns as i64);
    let buckets = counted.buckets.iter().enumerate();
    let buckets = buckets.filter(|(_, count)| **count > 0);
    let worst = decode_tracked(&counted.worst)?;
    Ok(Some(TurnedSeries {
        series,
        cpu,
        sum: ns(counted.sum_ns),
        min: ns(counted.min_ns),
        max: ns(counted.max_ns),
        buckets: buckets
            .map(|(bucket, count)| (bucket as u16, *count))
            .collect(),
        // Between the count and the name of a longest one, the halves were turned over.
        worst: Some(worst).filter(|worst| worst.duration() == ns(counted.max_ns)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(durations_ns: &[u64], worst_ns: u64) -> RawSeries {
        let mut series: RawSeries = raw::zeroed();
        for ns in durations_ns {
            series.count += 1;
            series.sum_ns += ns;
            series.max_ns = series.max_ns.max(*ns);
            series.buckets[*ns as usize] += 1;
        }
        series.min_ns = durations_ns.iter().copied().min().unwrap_or(0);
        series.worst.end_ns = worst_ns;
        series.worst.other.tid = -1;
        series
    }

    #[test]
    fn a_cpu_without_intervals_has_no_series_and_a_longest_without_a_name_says_so() {
        let of = |counted: &RawSeries| counted_on(1, Cpu(3), counted).expect("makes sense");
        assert_eq!(of(&counted(&[], 0)), None);
        let found = of(&counted(&[5, 9, 5], 9)).expect("a series");
        assert_eq!((found.series, found.cpu), (1, Cpu(3)));
        assert_eq!(found.buckets, [(5, 2), (9, 1)]);
        let ns = [found.sum, found.min, found.max].map(Duration::as_ns);
        assert_eq!(ns, [19, 5, 9]);
        assert_eq!(found.worst.map(|worst| worst.end.as_ns()), Some(9));
        assert_eq!(of(&counted(&[5, 9], 5)).expect("a series").worst, None);
    }
}
