//! A cyclic measurement as JSON, schema rtscope.cyclic version 1.

use event::Duration;
use measure::cyclic::{PHASES, PhaseFigures, Reading};
use measure::histogram::Histogram;
use serde_json::{Value, json};

use super::{Cyclic, Late, QUANTILES, carried, samples_over};

const SCHEMA: &str = "rtscope.cyclic";
const SCHEMA_VERSION: u32 = 1;

/// The whole measurement; histograms hold the buckets that are not empty, by where they begin.
pub fn cyclic_json(cyclic: &Cyclic) -> Value {
    let broken = cyclic.broken.map(|broken| {
        json!({
            "thread": broken.thread,
            "sample": broken.sample,
            "latency_ns": broken.latency.as_ns(),
        })
    });
    json!({
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "clock": cyclic.clock.name(),
        "elapsed_ns": cyclic.elapsed.as_ns(),
        "cpu_time_ns": cyclic.cpu_time.as_ns(),
        "kernel": cyclic.kernel,
        "preemption": cyclic.preemption,
        "warnings": cyclic.warnings,
        "ended_by": broken,
        "complete": cyclic.complete,
        "phases_cost_ns": cyclic.phases_cost.map(Duration::as_ns),
        "late": cyclic.late.map(|one| late(one, cyclic.readings)),
        "threads": cyclic.readings.iter().map(thread).collect::<Value>(),
    })
}

fn late(late: &Late, readings: &[Reading]) -> Value {
    json!({
        "over_ns": late.over.as_ns(),
        "over": late.count(samples_over(readings, late.over)),
        "explained": late.explained,
        "suppressed": late.suppressed,
        "lost": late.lost,
        "cost_ns": late.cost.as_ns(),
        "samples": late.samples,
    })
}

fn thread(reading: &Reading) -> Value {
    let latency = &reading.latency;
    let mut thread = json!({
        "tid": reading.tid.0,
        "cpu": reading.plan.cpu.map(|cpu| cpu.0),
        "policy": reading.plan.policy.name(),
        "priority": reading.plan.policy.prio(),
        "interval_ns": reading.plan.interval.as_ns(),
        "missed": reading.missed,
        "unmeasured": reading.unmeasured,
        "lost_cpu": reading.lost_cpu,
        "before_their_instant": latency.below_zero,
    });
    if let (Value::Object(thread), Value::Object(latency)) = (&mut thread, latency_json(latency)) {
        thread.extend(latency);
    }
    if let Some(phases) = &reading.phases {
        thread["phases"] = phases_json(phases);
    }
    thread
}

/// The parts of the samples, and those of the longest.
fn phases_json(phases: &PhaseFigures) -> Value {
    let parts = PHASES.iter().zip(&phases.parts);
    let parts = parts.map(|(name, part)| ((*name).to_owned(), latency_json(part)));
    let longest = PHASES.iter().zip(phases.longest);
    let longest = longest.map(|(name, part)| (format!("{name}_ns"), part.as_ns().into()));
    json!({
        "parts": parts.collect::<serde_json::Map<_, _>>(),
        "longest": longest.collect::<serde_json::Map<_, _>>(),
        "longest_at_ns": phases.longest_at.as_ns(),
        "unsplit": phases.unsplit,
        "unsplit_max_ns": phases.unsplit_max.as_ns(),
    })
}

/// What every distribution of latencies says of itself: its figures and its histogram.
pub(crate) fn latency_json(latency: &Histogram) -> Value {
    let extremes = latency.extremes;
    let ns = |duration: Option<Duration>| duration.map(Duration::as_ns);
    let quantiles: serde_json::Map<_, _> = QUANTILES
        .iter()
        .map(|(share, name)| ((*name).to_owned(), ns(carried(latency, *share)).into()))
        .collect();
    let filled = latency.buckets.iter().enumerate();
    let filled = filled.filter(|(_, samples)| **samples > 0);
    let histogram: Value = filled
        .map(|(bucket, samples)| json!([bucket as i64 * latency.width.as_ns(), samples]))
        .collect();
    json!({
        "samples": latency.samples,
        "min_ns": ns(extremes.map(|extremes| extremes.min)),
        "max_ns": ns(extremes.map(|extremes| extremes.max)),
        "max_sample": extremes.map(|extremes| extremes.max_sample),
        "mean_ns": ns(latency.mean()),
        "deviation_ns": ns(latency.deviation()),
        "quantiles_ns": quantiles,
        "bucket_ns": latency.width.as_ns(),
        "histogram": histogram,
        "overflows": latency.overflows,
        "overflow_samples": latency.overflow_samples,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cyclic, reading};
    use super::*;

    #[test]
    fn every_sample_of_a_thread_is_in_its_json() {
        let readings = [reading([1, 1, 3, 900])];
        let json = cyclic_json(&cyclic(&readings, &[]));
        let thread = &json["threads"][0];
        assert_eq!(thread["histogram"], json!([[1000, 2], [3000, 1]]));
        assert_eq!(thread["overflow_samples"], json!([3]));
        assert_eq!(thread["quantiles_ns"]["p50"], Value::Null, "four samples");
        assert_eq!(thread["max_ns"], 900_000);
    }

    #[test]
    fn those_that_were_explained_and_those_that_were_not_are_no_more_than_all_late_ones() {
        let readings = [reading([1, 1, 3, 900])];
        let late = Late {
            over: Duration::from_us(100),
            explained: 2,
            suppressed: 1,
            lost: 0,
            cost: Duration::ZERO,
            samples: vec![],
        };
        let cyclic = Cyclic {
            late: Some(&late),
            ..cyclic(&readings, &[])
        };
        // By the samples it was one.
        assert_eq!(cyclic_json(&cyclic)["late"]["over"], 3);
    }
}
