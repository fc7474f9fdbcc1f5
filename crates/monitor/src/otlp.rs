//! The counts since the daemon began for OpenTelemetry's collectors: a request of OTLP in its form
//! of JSON (`ExportMetricsServiceRequest`). Metrics and labels are those of `/metrics`.

use event::Duration;
use serde_json::{Value, json};

use crate::interval::{Interval, Run, Worst};
use crate::known::{Known, coarse, counted};
use crate::task::Task;

/// The counts go on from the start: a request that is lost loses nothing.
const CUMULATIVE: u8 = 2;

/// All that `known` says; none before anything was counted.
pub(crate) fn request(known: &Known) -> Option<Value> {
    let head = &known.sum.head;
    (head.end_ns > 0).then_some(())?;
    let times = Times {
        begin: head.begin_ns.to_string(),
        end: head.end_ns.to_string(),
    };
    let seconds = |duration: Duration| json!({ "asDouble": duration.as_ns() as f64 / 1e9 });
    let whole = |count: u64| json!({ "asInt": count.to_string() });
    let metrics = [
        phases(known, &times),
        worst(known, &times),
        times.sum("rtscope.monitor.cost", "s", &seconds(head.cost)),
        times.sum("rtscope.monitor.lost_samples", "1", &whole(head.lost)),
        times.sum(
            "rtscope.monitor.lost_intervals_of_trackers",
            "1",
            &whole(head.lost_tracked),
        ),
        times.sum("rtscope.monitor.hidden_samples", "1", &whole(head.hidden)),
        times.sum("rtscope.monitor.intervals", "1", &whole(known.intervals)),
        times.sum(
            "rtscope.monitor.unsaved_intervals",
            "1",
            &whole(known.unsaved),
        ),
        json!({
            "name": "rtscope.monitor.store", "unit": "By",
            "gauge": { "dataPoints": [times.point(&whole(known.store_bytes), &[])] },
        }),
    ];
    Some(json!({
        "resourceMetrics": [{
            "resource": { "attributes": resource(&known.run) },
            "scopeMetrics": [{
                "scope": { "name": "rtscope.monitor", "version": known.run.program },
                "metrics": metrics,
            }],
        }],
    }))
}

/// What runs where, in the words of OpenTelemetry's conventions.
fn resource(run: &Run) -> Value {
    attributes(&[
        ("service.name", "rtscope-monitor"),
        ("service.version", &run.program),
        ("host.name", &run.host),
        ("os.type", "linux"),
        ("os.version", &run.kernel),
    ])
}

fn attributes(all: &[(&str, &str)]) -> Value {
    let one =
        |(key, value): &(&str, &str)| json!({ "key": key, "value": { "stringValue": value } });
    all.iter().map(one).collect()
}

/// Since when, and until when; integers of 64 bits are texts in this form.
struct Times {
    begin: String,
    end: String,
}

impl Times {
    /// A data point with a value.
    fn point(&self, value: &Value, labels: &[(&str, &str)]) -> Value {
        let mut point = value.clone();
        point["startTimeUnixNano"] = self.begin.clone().into();
        point["timeUnixNano"] = self.end.clone().into();
        point["attributes"] = attributes(labels);
        point
    }

    /// A counter.
    fn sum(&self, name: &str, unit: &str, value: &Value) -> Value {
        json!({
            "name": name, "unit": unit,
            "sum": {
                "aggregationTemporality": CUMULATIVE, "isMonotonic": true,
                "dataPoints": [self.point(value, &[])],
            },
        })
    }
}

fn phases(known: &Known, times: &Times) -> Value {
    let points = counted(known).into_iter().filter_map(|(scope, kind)| {
        let sum = known.sum.phase(scope, kind.clone())?;
        let buckets = coarse(&sum.histogram);
        // The last bound is none: it holds what is longer.
        let bounds = buckets
            .iter()
            .map(|(bound, _)| *bound)
            .filter(|bound| bound.is_finite());
        let counts = buckets.iter().map(|(_, count)| count.to_string());
        let longest = known.last.worst_of(scope, kind.clone());
        let exemplars = longest.map(|worst| exemplar(&known.last, worst));
        let point = json!({
            "count": sum.histogram.samples().to_string(),
            "sum": sum.sum.as_ns() as f64 / 1e9,
            "bucketCounts": counts.collect::<Vec<_>>(),
            "explicitBounds": bounds.collect::<Vec<_>>(),
            "exemplars": exemplars.into_iter().collect::<Vec<_>>(),
        });
        Some(times.point(&point, &[("scope", scope.name()), ("phase", kind.name())]))
    });
    json!({
        "name": "rtscope.phase", "unit": "s",
        "description": "Phases of wake-ups and what trackers measure, since the monitor began",
        "histogram": {
            "aggregationTemporality": CUMULATIVE,
            "dataPoints": points.collect::<Vec<_>>(),
        },
    })
}

/// Who was late, and where that is told: no label, and no series of its own.
fn exemplar(interval: &Interval, worst: &Worst) -> Value {
    let name = |task: &Option<Task>| task.as_ref().map_or("", |task| &task.name).to_owned();
    let late = interval.late_of(worst);
    let snapshot = late
        .and_then(|late| late.snapshot.clone())
        .unwrap_or_default();
    let (victim, running) = (name(&worst.victim), name(&worst.culprit));
    let begin = interval.head.begin_ns.to_string();
    json!({
        "timeUnixNano": worst.at_ns.to_string(),
        "asDouble": worst.value.as_ns() as f64 / 1e9,
        "filteredAttributes": attributes(&[
            ("victim", &victim),
            ("running", &running),
            ("interval", &begin),
            ("snapshot", &snapshot),
        ]),
    })
}

fn worst(known: &Known, times: &Times) -> Value {
    let points = known.last.worst.iter().map(|worst| {
        let value = json!({ "asDouble": worst.value.as_ns() as f64 / 1e9 });
        let labels = [("scope", worst.scope.name()), ("phase", worst.phase.name())];
        times.point(&value, &labels)
    });
    json!({
        "name": "rtscope.phase.worst", "unit": "s",
        "description": "The longest of each phase in the last interval that was closed",
        "gauge": { "dataPoints": points.collect::<Vec<_>>() },
    })
}

#[cfg(test)]
mod tests {
    use crate::buckets::Histogram;
    use crate::metrics::Metrics;
    use crate::test_data::sample;

    use super::*;

    #[test]
    fn counts_are_exact_and_those_of_the_buckets_add_up() {
        let metrics = Metrics::new(&Run {
            host: "h".to_owned(),
            ..Run::default()
        });
        assert_eq!(metrics.otlp(), None, "nothing was counted");
        let mut interval = sample(1);
        let large = 1_000_000_007;
        interval.series[0].histogram = Histogram(vec![(5, 1), (84, large), (600, 2)]);
        metrics.add(&interval);
        metrics.add(&sample(2));
        metrics.closed(&interval, 2, 4096);
        let request = metrics.otlp().expect("a request");
        let resource = &request["resourceMetrics"][0];
        assert_eq!(
            resource["resource"]["attributes"][2]["value"]["stringValue"],
            "h"
        );
        let metrics = &resource["scopeMetrics"][0]["metrics"];
        let point = &metrics[0]["histogram"]["dataPoints"][0];
        let number = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok());
        let counts = point["bucketCounts"].as_array().expect("counts");
        let sum: u64 = counts.iter().filter_map(number).sum();
        assert_eq!(number(&point["count"]), Some(sum));
        assert_eq!(sum, large + 3 + 3 + 3);
        let bounds = point["explicitBounds"].as_array().map(Vec::len);
        assert_eq!(bounds.map(|bounds| bounds + 1), Some(counts.len()));
        // From the begin of the first on, to the end of the last.
        assert_eq!(
            point["startTimeUnixNano"],
            interval.head.begin_ns.to_string()
        );
        assert_eq!(point["timeUnixNano"], sample(2).head.end_ns.to_string());
        assert_eq!(
            point["exemplars"][0]["filteredAttributes"][0]["value"]["stringValue"],
            "task7"
        );
        // No label names a task.
        assert_eq!(point["attributes"].as_array().map(Vec::len), Some(2));
        assert_eq!(metrics[7]["sum"]["dataPoints"][0]["asInt"], "2");
    }
}
