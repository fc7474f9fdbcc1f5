//! What a tracker has counted since it began.

use std::collections::HashMap;

use abi::trackers::{
    ROWS_BITS, RawKey, RawLosses, RawPairCounts, RawRow, RawSeries, RawSum, RawWideSum,
    SMALL_FIRST, SMALL_KEYS, SMALL_SERIES, decode_tracked, label,
};
use abi::{Histogram, raw};
use event::evidence::tracked::Tracked;
use event::{Duration, Result};
use libbpf_rs::{MapCore, MapFlags, Object};

use super::pair::PairCounts;
use crate::object;

/// One kind of a tracker's intervals.
#[derive(Clone, Debug, Default)]
pub struct SeriesStatistics {
    /// How many ended.
    pub count: u64,
    /// All of them together.
    pub sum: Duration,
    /// The shortest; none when there was none.
    pub min: Option<Duration>,
    /// The longest, with whoever was in it.
    pub worst: Option<Tracked>,
    /// All of them.
    pub histogram: Histogram,
    /// Those that were sent.
    pub hits: u64,
    /// Over the threshold but not sent: rate limit, not the worst.
    pub suppressed: u64,
}

impl SeriesStatistics {
    /// The duration that this share of the intervals did not exceed, to the width of a bucket;
    /// never more than the longest.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let longest = self.worst.as_ref()?.duration();
        Some(self.histogram.quantile(quantile)?.min(longest))
    }

    /// How far the intervals lie from their mean, from the middles of the buckets; none of nothing.
    pub fn deviation(&self) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        let mean = self.sum.as_ns() as f64 / self.count as f64;
        let squares = self.histogram.counts().map(|(from, to, count)| {
            let middle = (from.as_ns() + to.as_ns() - 1) as f64 / 2.0;
            (middle - mean).powi(2) * count as f64
        });
        let variance = squares.sum::<f64>() / self.count as f64;
        Some(Duration::from_ns(variance.sqrt() as i64))
    }

    fn add(&mut self, series: &RawSeries) -> Result<()> {
        self.hits += series.hits;
        self.suppressed += series.suppressed;
        if series.count == 0 {
            return Ok(());
        }
        self.count += series.count;
        self.sum += Duration::from_ns(series.sum_ns as i64);
        let min = Duration::from_ns(series.min_ns as i64);
        self.min = Some(self.min.map_or(min, |before| before.min(min)));
        self.histogram.add(&series.buckets);
        let worst = decode_tracked(&series.worst)?;
        let longest = self.worst.as_ref().map(Tracked::duration);
        if longest < Some(worst.duration()) {
            self.worst = Some(worst);
        }
        Ok(())
    }
}

/// What was not measured, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Hits for which the ring had no room.
    pub lost: u64,
    /// Beginnings for which the table of what is open had no room.
    pub full: u64,
    /// Beginnings that came twice, and ends that fit no beginning.
    pub unpaired: u64,
    /// Intervals that are in the sums, but in no row of the table by key.
    pub keys_full: u64,
    /// Tasks that the kernel had no storage for when asked.
    pub storage_failures: u64,
    /// Calls that the kernel left out because a program would have interrupted itself.
    pub recursion: u64,
}

impl Losses {
    /// Sums the CPUs' counters.
    pub(super) fn read(object: &Object, recursion: u64) -> Result<Losses> {
        let mut losses = Losses {
            recursion,
            ..Losses::default()
        };
        for one in object::per_cpu::<RawLosses>(object, "tracker_losses", 0)? {
            losses.lost += one.lost;
            losses.full += one.full;
            losses.unpaired += one.unpaired;
            losses.keys_full += one.keys_full;
            losses.storage_failures += one.storage_failures;
        }
        Ok(losses)
    }

    /// Intervals that are missing from the sums, or more.
    pub fn uncounted(&self) -> u64 {
        self.full + self.storage_failures + self.recursion
    }

    /// Whether an interval may be missing from the sums, or a hit from the reports.
    pub fn forbid_a_statement(&self) -> bool {
        self.lost + self.uncounted() > 0
    }
}

/// The intervals of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySum {
    /// The key.
    pub key: u64,
    /// Tells equal keys apart.
    pub group: u32,
    /// Which of the tracker's intervals.
    pub series: usize,
    /// How many ended.
    pub count: u64,
    /// All of them together.
    pub sum: Duration,
    /// The longest.
    pub max: Duration,
    /// The number that came with the first of them.
    pub detail: u64,
    /// A name that came with them; may be empty.
    pub label: String,
    /// All of them, in the trackers whose rows have histograms.
    pub histogram: Option<Histogram>,
}

/// What a tracker has counted since it began.
#[derive(Clone, Debug, Default)]
pub struct TrackerStatistics {
    /// By series.
    pub series: Vec<SeriesStatistics>,
    /// What was not measured.
    pub losses: Losses,
    /// What each side of a pair saw.
    pub pair: Option<PairCounts>,
}

impl TrackerStatistics {
    /// Sums the CPUs' counters.
    pub(super) fn read(object: &Object, series_count: usize, recursion: u64) -> Result<Self> {
        let mut statistics = TrackerStatistics::default();
        for number in 0..series_count {
            let mut series = SeriesStatistics::default();
            let per_cpu = object::per_cpu::<RawSeries>(object, "tracker_series", number as u32)?;
            per_cpu.iter().try_for_each(|one| series.add(one))?;
            statistics.series.push(series);
        }
        statistics.losses = Losses::read(object, recursion)?;
        Ok(statistics)
    }
}

/// What each side of a pair saw.
pub(super) fn pair_counts(object: &Object) -> Result<PairCounts> {
    let mut counts = PairCounts::default();
    for one in object::per_cpu::<RawPairCounts>(object, "pair_counts", 0)? {
        for side in 0..2 {
            counts.seen[side] += one.seen[side];
            counts.matched[side] += one.matched[side];
        }
        counts.alone += one.alone;
    }
    Ok(counts)
}

/// The sums by key, those with the longest intervals first.
pub(super) fn keys(object: &Object) -> Result<Vec<KeySum>> {
    let map = object::map(object, "tracker_keys")?;
    let is_wide = map.value_size() as usize == size_of::<RawWideSum>();
    let mut sums = Vec::new();
    for key in map.keys() {
        let values = map
            .lookup_percpu(&key, MapFlags::ANY)
            .map_err(|error| object::explain("read", &error))?;
        let values = values.unwrap_or_default();
        let sum_of = |bytes: &Vec<u8>| raw::read::<RawSum>(bytes);
        let of_cpus: Vec<RawSum> = values.iter().filter_map(sum_of).collect();
        if let Some(key) = raw::read::<RawKey>(&key) {
            let mut sum = sum_up(&key, &of_cpus);
            sum.histogram = is_wide.then(|| histogram(&values));
            sums.push(sum);
        }
    }
    sums.extend(small_keys(object)?);
    add_rows(object, &mut sums)?;
    sums.sort_by_key(|sum| std::cmp::Reverse((sum.max, sum.count)));
    Ok(sums)
}

/// That of a row, out of all CPUs' values.
fn histogram(values: &[Vec<u8>]) -> Histogram {
    let mut histogram = Histogram::default();
    for value in values
        .iter()
        .filter_map(|bytes| raw::read::<RawWideSum>(bytes))
    {
        histogram.add(&value.buckets);
    }
    histogram
}

/// Those of keys that are small numbers, in a tracker that has such.
fn small_keys(object: &Object) -> Result<Vec<KeySum>> {
    const NAME: &str = "tracker_small";
    let mut sums = Vec::new();
    if !object.maps().any(|map| map.name() == NAME) {
        return Ok(sums);
    }
    for place in 0..SMALL_SERIES * SMALL_KEYS {
        let values = object::per_cpu::<RawSum>(object, NAME, place as u32)?;
        if values.iter().any(|value| value.count > 0) {
            let key = RawKey {
                key: ((place % SMALL_KEYS) as i64 + SMALL_FIRST) as u64,
                group: 0,
                series: (place / SMALL_KEYS) as u32,
            };
            sums.push(sum_up(&key, &values));
        }
    }
    Ok(sums)
}

/// Adds those that came first to their place on a CPU, in a tracker that has such: on another one
/// the same key may be in the table.
fn add_rows(object: &Object, sums: &mut Vec<KeySum>) -> Result<()> {
    const NAME: &str = "tracker_rows";
    if !object.maps().any(|map| map.name() == NAME) {
        return Ok(());
    }
    let known = sums.iter().enumerate();
    let known = known.map(|(place, sum)| ((sum.key, sum.group, sum.series), place));
    let mut known: HashMap<_, _> = known.collect();
    for place in 0..1 << ROWS_BITS {
        for row in object::per_cpu::<RawRow>(object, NAME, place)? {
            let Some(series) = row.key.series.checked_sub(1).filter(|_| row.sum.count > 0) else {
                continue;
            };
            let key = RawKey { series, ..row.key };
            let sum = sum_up(&key, &[row.sum]);
            match known.get(&(sum.key, sum.group, sum.series)) {
                Some(place) => sums[*place].add(sum),
                None => {
                    known.insert((sum.key, sum.group, sum.series), sums.len());
                    sums.push(sum);
                }
            }
        }
    }
    Ok(())
}

impl KeySum {
    /// The same key's on another CPU.
    fn add(&mut self, other: KeySum) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        if self.detail == 0 {
            self.detail = other.detail;
        }
        if self.label.is_empty() {
            self.label = other.label;
        }
    }
}

fn sum_up(key: &RawKey, values: &[RawSum]) -> KeySum {
    let ns = |ns: u64| Duration::from_ns(ns as i64);
    let labels = values.iter().map(label);
    KeySum {
        key: key.key,
        group: key.group,
        series: key.series as usize,
        count: values.iter().map(|value| value.count).sum(),
        sum: values.iter().map(|value| ns(value.sum_ns)).sum(),
        max: ns(values.iter().map(|value| value.max_ns).max().unwrap_or(0)),
        detail: values
            .iter()
            .map(|value| value.detail)
            .find(|detail| *detail != 0)
            .unwrap_or(0),
        label: labels
            .into_iter()
            .find(|label| !label.is_empty())
            .unwrap_or_default(),
        histogram: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(durations_ns: &[u64]) -> RawSeries {
        let mut series: RawSeries = raw::zeroed();
        for ns in durations_ns {
            series.count += 1;
            series.sum_ns += ns;
            series.buckets[*ns as usize] += 1;
        }
        series.min_ns = durations_ns.iter().copied().min().unwrap_or(0);
        series.worst.end_ns = durations_ns.iter().copied().max().unwrap_or(0);
        series.worst.other.tid = -1;
        series
    }

    #[test]
    fn the_cpus_add_up_and_a_cpu_without_samples_has_no_shortest() {
        let mut sum = SeriesStatistics::default();
        for durations in [&[][..], &[3, 9], &[5]] {
            sum.add(&series(durations)).expect("makes sense");
        }
        assert_eq!((sum.count, sum.sum.as_ns()), (3, 17));
        assert_eq!(sum.min.map(Duration::as_ns), Some(3));
        let worst = sum.worst.as_ref().map(|worst| worst.duration().as_ns());
        assert_eq!(worst, Some(9));
        assert_eq!(sum.quantile(0.5).map(Duration::as_ns), Some(6));
        // Of 3, 9 and 5.
        assert_eq!(sum.deviation().map(Duration::as_ns), Some(2));
        // A bucket reaches further than its longest interval.
        assert_eq!(sum.quantile(1.0).map(Duration::as_ns), Some(9));
        assert_eq!(SeriesStatistics::default().quantile(0.5), None);
    }

    #[test]
    fn a_key_that_several_cpus_have_in_different_places_is_one_row() {
        let key = RawKey {
            key: 7,
            group: 2,
            series: 1,
        };
        let value = |count: u64, max_ns: u64, label: &[u8]| {
            let mut value: RawSum = raw::zeroed();
            (value.count, value.sum_ns, value.max_ns) = (count, count * max_ns, max_ns);
            value.label[..label.len()].copy_from_slice(label);
            value
        };
        let mut sum = sum_up(&key, &[value(2, 40, b"")]);
        sum.add(sum_up(&key, &[value(3, 50, b"app")]));
        assert_eq!((sum.count, sum.sum.as_ns(), sum.max.as_ns()), (5, 230, 50));
        assert_eq!((sum.label.as_str(), sum.group, sum.series), ("app", 2, 1));
    }

    #[test]
    fn a_key_takes_its_name_from_whichever_cpu_has_it() {
        let key = RawKey {
            key: 7,
            group: 0,
            series: 1,
        };
        let mut values: [RawSum; 2] = [raw::zeroed(), raw::zeroed()];
        values[1].count = 2;
        values[1].max_ns = 40;
        values[1].label[..3].copy_from_slice(b"vda");
        let sum = sum_up(&key, &values);
        assert_eq!(
            (sum.count, sum.max.as_ns(), sum.label.as_str()),
            (2, 40, "vda")
        );
    }
}
