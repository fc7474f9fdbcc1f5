//! Gaps as JSON, schema rtscope.gaps version 1.

use diagnosis::{ExplainedGap, Taker};
use event::{Cpu, Duration};
use serde_json::{Value, json};

use super::{Gaps, Held, Limits, Noise, name, noises};

const SCHEMA: &str = "rtscope.gaps";
const SCHEMA_VERSION: u32 = 1;

/// Everything that was found; `gaps` is null where no events were recorded.
pub fn gaps_json(gaps: &Gaps) -> Value {
    json!({
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "elapsed_ns": gaps.elapsed.as_ns(),
        "complete": gaps.complete,
        "threshold_ns": gaps.threshold.as_ns(),
        "budget_ns": gaps.limits.budget.map(Duration::as_ns),
        "hardlimit_ns": gaps.limits.hard.map(Duration::as_ns),
        "verdict": verdict(gaps),
        "counter": gaps.counter.name(),
        "kernel": gaps.kernel,
        "preemption": gaps.preemption,
        "warnings": gaps.warnings,
        "cpus": gaps.readings.iter().map(|reading| {
            let steal = gaps.steal.iter().find(|(cpu, _)| *cpu == reading.cpu);
            json!({
                "cpu": reading.cpu.0,
                "tid": reading.tid.0,
                "iterations": reading.iterations,
                "looped_ns": reading.looped.as_ns(),
                "step_min_ns": reading.step_min.as_ns(),
                "gaps": reading.gaps.len() as u64 + reading.gaps_unkept,
                "gaps_unkept": reading.gaps_unkept,
                "longest_ns": reading.longest.as_ns(),
                "lost_cpu": reading.lost_cpu,
                "steal_ns": steal.map(|(_, steal)| steal.as_ns()),
            })
        }).collect::<Value>(),
        "noise": gaps.explained.map(noise),
        "gaps": gaps.explained.map(|explained| explained.iter().map(gap).collect::<Value>()),
    })
}

/// As an evaluation's.
fn verdict(gaps: &Gaps) -> &'static str {
    match (gaps.limits == Limits::default(), gaps.held()) {
        (true, _) => "none",
        (false, Held::Held) if !gaps.complete => "inconclusive",
        (false, Held::Held) => "pass",
        (false, Held::Exceeded) => "fail",
        (false, Held::Unknown) => "inconclusive",
    }
}

fn noise(explained: &[ExplainedGap]) -> Value {
    let one = |(cpu, taker, noise): &(Cpu, Taker, Noise)| {
        json!({
            "cpu": cpu.0,
            "taker": kind(taker),
            "name": name(taker),
            "gaps": noise.gaps,
            "total_ns": noise.total.as_ns(),
            "longest_ns": noise.longest.as_ns(),
        })
    };
    noises(explained).iter().map(one).collect()
}

fn gap(one: &ExplainedGap) -> Value {
    json!({
        "cpu": one.gap.cpu.0,
        "begin_ns": one.gap.range.begin.as_ns(),
        "duration_ns": one.gap.range.duration().as_ns(),
        "parts": one.parts.iter().map(part).collect::<Value>(),
    })
}

fn part((taker, duration): &(Taker, Duration)) -> Value {
    json!({
        "taker": kind(taker),
        "name": name(taker),
        "duration_ns": duration.as_ns(),
    })
}

fn kind(taker: &Taker) -> &'static str {
    match taker {
        Taker::Nmi => "nmi",
        Taker::Hardirq { .. } => "hardirq",
        Taker::Softirq { .. } => "softirq",
        Taker::Task { .. } => "task",
        Taker::Throttled { .. } => "throttled",
        Taker::Stopped { .. } => "stopped",
        Taker::Below => "below_kernel",
        Taker::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, gap, reading};
    use super::*;

    #[test]
    fn the_parts_of_a_gap_add_up_in_json_too() {
        let gaps = [gap(&[(Taker::Below, 130), (Taker::Nmi, 20)])];
        let readings = [reading(&gaps)];
        let json = gaps_json(&found(&readings, &gaps, &[]));
        let one = &json["gaps"][0];
        let parts = one["parts"].as_array().expect("parts").iter();
        let sum: i64 = parts.filter_map(|part| part["duration_ns"].as_i64()).sum();
        assert_eq!(one["duration_ns"], sum);
        assert_eq!(one["parts"][0]["taker"], "below_kernel");
        assert_eq!(json["cpus"][0]["steal_ns"], Value::Null);
    }
}
