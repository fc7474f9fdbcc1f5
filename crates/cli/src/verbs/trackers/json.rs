//! Trackers' reports and sums as JSON lines.

use bpf_host::trackers::{DetailKind, KeySum, Losses, SeriesStatistics, Tracker};
use capture::watch::{TrackerReport, TrackerStatus, TrackersStatus};
use event::Duration;
use event::evidence::tracked::Tracked;
use event::evidence::{Stack, TaskRef};
use serde_json::{Map, Value, json};

/// The schema of the lines.
pub(super) const SCHEMA: &str = "rtscope.tracker";
pub(super) const SCHEMA_VERSION: u32 = 1;

/// A report as one object.
pub(super) fn hit(report: &TrackerReport) -> Value {
    let tracked = &report.hit.tracked;
    let mut line = interval(report.tracker, tracked, &report.key);
    line["type"] = "hit".into();
    line["tracker"] = report.tracker.name.into();
    line["stack"] = stack(&report.hit.stack);
    line["other_stack"] = stack(&report.hit.other_stack);
    if let Some(path) = &report.snapshot {
        line["snapshot"] = path.display().to_string().into();
    }
    if let Some(failure) = &report.failure {
        line["snapshot_error"] = failure.to_string().into();
    }
    line
}

fn interval(tracker: &Tracker, tracked: &Tracked, key: &str) -> Value {
    let mut interval = json!({
        "series": tracker.series.get(tracked.series),
        "key": key,
        "key_number": tracked.key,
        "begin_ns": tracked.begin.as_ns(),
        "end_ns": tracked.end.as_ns(),
        "duration_ns": tracked.duration().as_ns(),
        "cpu": tracked.cpu.0,
        "open": tracked.is_open,
        "task": tracked.task.as_ref().map(task),
        "other": tracked.other.as_ref().map(task),
    });
    match tracker.detail {
        DetailKind::Result if !tracked.is_open => {
            interval["result"] = (tracked.detail as i64).into()
        }
        DetailKind::Address => interval["address"] = format!("{:#x}", tracked.detail).into(),
        DetailKind::Sector => interval["sector"] = tracked.detail.into(),
        DetailKind::Tid(what) => interval[what.replace(' ', "_")] = tracked.detail.into(),
        DetailKind::Bytes => interval["bytes"] = tracked.detail.into(),
        DetailKind::Port => interval["port"] = tracked.more.into(),
        DetailKind::Result | DetailKind::None => {}
    }
    interval
}

fn task(task: &TaskRef) -> Value {
    json!({
        "tid": task.tid.0,
        "comm": task.comm,
        "prio": task.prio.lttng(),
        "priority": task.prio.to_string(),
    })
}

fn stack(stack: &Stack) -> Value {
    let frame = |frame: &event::evidence::Frame| match frame.symbol.as_str() {
        "" => Value::from(format!("{:#x}", frame.address)),
        symbol => symbol.into(),
    };
    stack.iter().map(frame).collect()
}

/// How it ended, as one object.
pub(super) fn end(status: &TrackersStatus) -> Value {
    let cost = &status.cost;
    json!({
        "type": "end",
        "elapsed_ns": status.elapsed.as_ns(),
        "hits": status.hits,
        "trackers": status.trackers.iter().map(tracker).collect::<Vec<_>>(),
        "cost": {
            "share": cost.share(),
            "programs_ns": cost.programs.as_ns(),
            "process_ns": cost.process.as_ns(),
            "available_ns": cost.available.as_ns(),
        },
    })
}

fn tracker(status: &TrackerStatus) -> Value {
    let tracker = status.tracker;
    let series = status.statistics.series.iter().enumerate();
    let series = series.map(|(number, series)| {
        let key = status.worst_keys.get(number).map_or("", String::as_str);
        self::series(tracker, number, series, key)
    });
    let keys = status.keys.iter();
    let keys = keys.map(|(name, sum)| key_sum(tracker, name, sum));
    let programs = status.spent.programs.iter();
    let programs = programs.map(|program| {
        json!({
            "program": program.program,
            "calls": program.calls,
            "run_ns": program.run_ns,
        })
    });
    let mut value = json!({
        "tracker": tracker.name,
        "series": series.collect::<Vec<_>>(),
        "keys": keys.collect::<Vec<_>>(),
        "losses": losses(&status.statistics.losses),
        "programs": programs.collect::<Vec<_>>(),
        "measured_ns": status.spent.measured.as_ns(),
    });
    if !status.history.is_empty() {
        value["history"] = super::history::windows(status);
    }
    if let Some(pair) = &status.statistics.pair {
        value["pair"] = json!({
            "from": {"seen": pair.seen[0], "matched": pair.matched[0]},
            "to": {"seen": pair.seen[1], "matched": pair.matched[1]},
            "ends_alone": pair.alone,
        });
    }
    value
}

fn series(tracker: &Tracker, number: usize, series: &SeriesStatistics, key: &str) -> Value {
    let mut value = json!({
        "series": tracker.series.get(number),
        "count": series.count,
        "sum_ns": series.sum.as_ns(),
        "min_ns": series.min.map(Duration::as_ns),
        "max_ns": series.worst.as_ref().map(|worst| worst.duration().as_ns()),
        "deviation_ns": series.deviation().map(Duration::as_ns),
        "hits": series.hits,
        "suppressed": series.suppressed,
        "worst": series.worst.as_ref().map(|worst| interval(tracker, worst, key)),
    });
    for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)] {
        value[format!("{name}_ns")] = series.quantile(quantile).map(Duration::as_ns).into();
    }
    let buckets = series.histogram.counts();
    let buckets = buckets.map(|(from, to, count)| json!([from.as_ns(), to.as_ns(), count]));
    value["histogram"] = buckets.collect();
    value
}

fn key_sum(tracker: &Tracker, name: &str, sum: &KeySum) -> Value {
    json!({
        "key": name,
        "key_number": sum.key,
        "series": tracker.series.get(sum.series),
        "count": sum.count,
        "sum_ns": sum.sum.as_ns(),
        "max_ns": sum.max.as_ns(),
    })
}

fn losses(losses: &Losses) -> Value {
    let named = super::text::losses(losses).into_iter();
    let named: Map<_, _> = named
        .map(|loss| (loss.name.to_owned(), loss.count.into()))
        .collect();
    named.into()
}
