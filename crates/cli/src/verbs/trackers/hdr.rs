//! The histograms as a log of HdrHistogram's, which its viewers show and its libraries merge: one
//! interval for each kind, which is the whole run.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bpf_host::trackers::SeriesStatistics;
use capture::watch::TrackersStatus;
use event::{Error, Result};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::exit::write_error;

/// Finer than the buckets that the kernel counts in.
const DIGITS: u8 = 3;
/// What viewers expect the greatest value in: milliseconds.
const NS_PER_MS: f64 = 1e6;

/// Opens the file of a log, before anything is measured for it. What is in it stays until then.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn open(path: &Path) -> Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path);
    file.map_err(|error| write_error(path, error))
}

/// Writes the log, in place of what was in the file.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(path: &Path, mut file: File, status: &TrackersStatus) -> Result<()> {
    let log = log(status, SystemTime::now())?;
    let written = file.write_all(&log);
    // A device has no length.
    let is_file = file.metadata().is_ok_and(|about| about.is_file());
    let cut = || match is_file {
        true => file.set_len(log.len() as u64),
        false => Ok(()),
    };
    written
        .and_then(|()| cut())
        .map_err(|error| write_error(path, error))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(event::ErrorKind::InvalidInput, "cannot write a histogram").found(error.to_string())
}

fn log(status: &TrackersStatus, ended: SystemTime) -> Result<Vec<u8>> {
    let elapsed = Duration::from_nanos(status.elapsed.as_ns_unsigned());
    let began = ended.checked_sub(elapsed).unwrap_or(ended);
    let (mut bytes, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    builder
        .add_comment("[nanoseconds; each value is the upper end of the bucket it was counted in]");
    builder.with_start_time(began).with_base_time(began);
    builder.with_max_value_divisor(NS_PER_MS);
    let mut log = builder.begin_log_with(&mut bytes, &mut serializer);
    let log = log.as_mut().map_err(failed)?;
    for one in &status.trackers {
        for (name, series) in one.tracker.series.iter().zip(&one.statistics.series) {
            let name = tag(one.tracker.name, name);
            let histogram = histogram(series)?;
            log.write_histogram(&histogram, Duration::ZERO, elapsed, Tag::new(&name))
                .map_err(failed)?;
        }
    }
    Ok(bytes)
}

/// A tag has neither spaces nor commas.
fn tag(tracker: &str, series: &str) -> String {
    let plain = |c: char| if c == ' ' || c == ',' { '_' } else { c };
    format!("{tracker}.{series}").chars().map(plain).collect()
}

fn histogram(series: &SeriesStatistics) -> Result<Histogram<u64>> {
    let mut histogram = Histogram::new(DIGITS).map_err(failed)?;
    let worst = series.worst.as_ref();
    let longest_ns = worst.map_or(0, |worst| worst.duration().as_ns_unsigned());
    for (_, end, count) in series.histogram.counts() {
        let value_ns = (end.as_ns_unsigned() - 1).min(longest_ns);
        histogram.record_n(value_ns, count).map_err(failed)?;
    }
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    fn series(bucket: usize, count: u64) -> SeriesStatistics {
        let mut series = SeriesStatistics::default();
        let mut buckets = [0; abi::raw::BUCKETS_MAX];
        buckets[bucket] = count;
        series.histogram.add(&buckets);
        series
    }

    #[test]
    fn a_log_reads_back_with_every_kind_by_its_tag_and_no_value_above_the_longest() {
        let tracker = bpf_host::trackers::Tracker::find("offcpu").expect("a tracker");
        let mut worst: abi::trackers::RawTracked = abi::raw::zeroed();
        worst.end_ns = 64;
        let mut long = series(64, 3);
        long.worst = Some(abi::trackers::decode_tracked(&worst).expect("an interval"));
        let status = TrackersStatus {
            elapsed: event::Duration::from_ms(1500),
            hits: 0,
            trackers: vec![capture::watch::TrackerStatus {
                tracker,
                statistics: bpf_host::trackers::TrackerStatistics {
                    series: vec![long, SeriesStatistics::default()],
                    ..Default::default()
                },
                spent: Default::default(),
                keys: Vec::new(),
                worst_keys: Vec::new(),
                history: Vec::new(),
            }],
            cost: capture::Cost::default(),
        };
        let bytes = log(&status, SystemTime::now()).expect("a log");
        let text = String::from_utf8(bytes.clone()).expect("text");
        assert!(
            text.starts_with("#[Histogram log format version 1.3]\n"),
            "{text}"
        );
        let entries = IntervalLogIterator::new(&bytes).map(|entry| entry.expect("reads back"));
        let intervals: Vec<_> = entries
            .filter_map(|entry| match entry {
                LogEntry::Interval(interval) => Some(interval),
                _ => None,
            })
            .collect();
        let tags: Vec<_> = intervals
            .iter()
            .map(|one| one.tag().expect("a tag").as_str())
            .collect();
        assert_eq!(tags, ["offcpu.preempted", "offcpu.blocked"]);
        assert_eq!(intervals[0].duration(), Duration::from_millis(1500));
        let encoded = intervals[0].encoded_histogram();
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut &*decode(encoded))
            .expect("a histogram");
        assert_eq!((histogram.len(), histogram.max()), (3, 64));
    }

    /// Base 64, by hand: what other programs do with the log.
    fn decode(text: &str) -> Vec<u8> {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let values = text.bytes().filter(|byte| *byte != b'=');
        let values =
            values.map(|byte| LETTERS.iter().position(|of| *of == byte).expect("a letter"));
        let (mut bits, mut length, mut bytes) = (0usize, 0, Vec::new());
        for value in values {
            bits = (bits << 6 | value) & 0xffff;
            length += 6;
            if length >= 8 {
                length -= 8;
                bytes.push((bits >> length) as u8);
            }
        }
        bytes
    }
}
