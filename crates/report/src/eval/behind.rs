//! What the watch saw of a measuring thread behind its sample: it was on time, and then kept from
//! its next sleep, as by who lets it rest. That is no sample, and explains none.

use event::Duration;
use measure::cyclic::Reading;
use serde_json::Value;

/// A thread sleeps again soon after its sample: what took so many times as long as the longest of
/// them is none.
const TIMES: i64 = 2;

/// The longest sample; none of an application.
pub(super) fn longest(readings: &[Reading]) -> Option<Duration> {
    let extremes = readings.iter().filter_map(|one| one.latency.extremes);
    extremes.map(|extremes| extremes.max).max()
}

/// Whether `hit` lies behind a sample, where no sample is longer than `longest`.
pub(super) fn is_it(hit: &Value, longest: Option<Duration>) -> bool {
    let took_ns = hit["hit"]["latency_ns"].as_i64();
    let both = took_ns.zip(longest);
    both.is_some_and(|(took_ns, longest)| took_ns > TIMES * longest.as_ns())
}

/// The hits, with those marked that are no samples.
pub(super) fn marked(hits: &[Value], readings: &[Reading]) -> Vec<Value> {
    let longest = longest(readings);
    let mark = |hit: &Value| {
        let mut hit = hit.clone();
        if is_it(&hit, longest) {
            hit["behind_sample"] = true.into();
        }
        hit
    };
    hits.iter().map(mark).collect()
}
