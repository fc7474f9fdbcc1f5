//! The counts since the daemon began, for Prometheus: OpenMetrics, and its older text form.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use event::Duration;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::prometheus_protobuf;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use prost::Message;

use crate::exemplars::with_exemplars;
use crate::interval::{Head, Interval, Run, Scope};
use crate::kind::Kind;
use crate::known::{Known, coarse, counted};
use crate::late::Late;
use crate::native::{Native, add_exemplars};
use crate::otlp;

/// What is told to Prometheus; may be asked from several threads.
#[derive(Debug)]
pub struct Metrics {
    known: Arc<Mutex<Known>>,
    registry: Registry,
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new(run: &Run) -> Metrics {
        let known = Arc::new(Mutex::new(Known {
            run: run.clone(),
            ..Known::default()
        }));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Told(Arc::clone(&known))));
        Metrics { known, registry }
    }

    /// Adds what was counted since the last call.
    pub fn add(&self, counted: &Interval) {
        // The longest since the begin is told nowhere, nor is OSADL's form.
        let told = Interval {
            head: counted.head.clone(),
            series: counted.series.clone(),
            ..Interval::default()
        };
        let mut known = self.known();
        if known.sum.head == Head::default() {
            known.sum.head.begin_ns = told.head.begin_ns;
        }
        known.sum.append(told);
    }

    /// As a request of OTLP in JSON; none before anything was counted.
    pub fn otlp(&self) -> Option<serde_json::Value> {
        otlp::request(&self.known())
    }

    /// An interval was closed: its longest are told until the next one is.
    pub fn closed(&self, interval: &Interval, unsaved: u64, store_bytes: u64) {
        let mut known = self.known();
        known.last = interval.clone();
        known.intervals += 1;
        known.unsaved = unsaved;
        known.store_bytes = store_bytes;
    }

    /// An activation was late; that of the last interval that was closed is an exemplar's.
    pub fn late(&self, late: &Late) {
        let mut known = self.known();
        if known.last.head.has(late.at_ns) {
            known.last.add_late(late.clone());
        }
    }

    /// So many more samples were over the limit that somebody set.
    pub fn exceeded(&self, count: u64) {
        let mut known = self.known();
        known.exceeded = Some(known.exceeded.unwrap_or(0) + count);
    }

    /// The best form that a client reads, by what it says in `Accept`: the type, and the bytes.
    pub fn told_to(&self, accept: &str) -> (&'static str, Vec<u8>) {
        if accept.contains("io.prometheus.client.MetricFamily") {
            let content_type = "application/vnd.google.protobuf; \
                                proto=io.prometheus.client.MetricFamily; encoding=delimited";
            return (content_type, self.protobuf());
        }
        if accept.contains("application/openmetrics-text") {
            let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            return (content_type, self.open_metrics().into_bytes());
        }
        let content_type = "text/plain; version=0.0.4; charset=utf-8";
        (content_type, self.text().into_bytes())
    }

    /// As OpenMetrics, with exemplars: they are read from no other form.
    fn open_metrics(&self) -> String {
        let told = self.told();
        with_exemplars(&told, &self.known().last)
    }

    /// As Prometheus's own messages, one behind the other: native histograms come in no other form.
    pub fn protobuf(&self) -> Vec<u8> {
        // Only memory can refuse it.
        let mut families = prometheus_protobuf::encode(&self.registry).unwrap_or_default();
        add_exemplars(&mut families, &self.known().last);
        let mut bytes = Vec::new();
        for family in families {
            let _ = family.encode_length_delimited(&mut bytes);
        }
        bytes
    }

    fn told(&self) -> String {
        let mut text = String::new();
        // Only memory can refuse it.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// As the text form before OpenMetrics, whose counters are called as their samples are.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut counter = String::new();
        let told = self.told();
        let lines: Vec<_> = told.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("#"), Some("HELP"), Some(name), Some(help)) => {
                    counter.clear();
                    let is_counter = |line: &&str| *line == format!("# TYPE {name} counter");
                    if lines[number..].iter().take(2).any(is_counter) {
                        counter = name.to_owned();
                    }
                    let name = suffixed(name, &counter);
                    text += &format!("# HELP {name} {help}\n");
                }
                (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                    let name = suffixed(name, &counter);
                    text += &format!("# TYPE {name} {kind}\n");
                }
                (Some("#"), ..) => {}
                _ => {
                    text += line;
                    text.push('\n');
                }
            }
        }
        text
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn suffixed(name: &str, counter: &str) -> String {
    match name == counter {
        true => format!("{name}_total"),
        false => name.to_owned(),
    }
}

#[derive(Debug)]
struct Told(Arc<Mutex<Known>>);

impl Collector for Told {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        phases(&known, &mut to)?;
        worst(&known, &mut to)?;
        let head = &known.sum.head;
        let seconds = |duration: Duration| duration.as_ns() as f64 / 1e9;
        let cost = ConstCounter::new(seconds(head.cost));
        let help = "CPU time that counting took, in the kernel and in this process";
        one(
            &mut to,
            "rtscope_monitor_cost",
            help,
            Some(&Unit::Seconds),
            &cost,
        )?;
        let counters = [
            ("lost_samples", head.lost, "Samples that were not counted"),
            (
                "lost_intervals_of_trackers",
                head.lost_tracked,
                "Intervals that trackers did not count",
            ),
            (
                "hidden_samples",
                head.hidden,
                "Samples that no program saw, counted by the kernel's accounts",
            ),
            ("intervals", known.intervals, "Intervals that were closed"),
            (
                "unsaved_intervals",
                known.unsaved,
                "Closed intervals that no store has",
            ),
        ];
        for (name, count, help) in counters {
            let name = format!("rtscope_monitor_{name}");
            one(&mut to, &name, help, None, &ConstCounter::new(count))?;
        }
        if let Some(count) = known.exceeded {
            let help = "Samples over the limit of an evaluation";
            let count = ConstCounter::new(count);
            one(&mut to, "rtscope_eval_excursions", help, None, &count)?;
        }
        let bytes = ConstGauge::new(known.store_bytes as i64);
        let help = "The length of the store";
        one(
            &mut to,
            "rtscope_monitor_store",
            help,
            Some(&Unit::Bytes),
            &bytes,
        )?;
        let labels = [
            ("version", known.run.program.as_str()),
            ("kernel", known.run.kernel.as_str()),
        ];
        let help = "What runs where";
        let mut family =
            to.encode_descriptor("rtscope_monitor_build", help, None, MetricType::Gauge)?;
        // An info metric in the older form is a gauge of one.
        ConstGauge::new(1i64).encode(family.encode_family(&labels)?)
    }
}

fn one(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    metric: &dyn DynamicMetric,
) -> fmt::Result {
    metric.put(to.encode_descriptor(name, help, unit, metric.kind())?)
}

/// A metric of any type.
trait DynamicMetric {
    fn kind(&self) -> MetricType;
    fn put(&self, to: MetricEncoder<'_>) -> fmt::Result;
}

impl<M: EncodeMetric> DynamicMetric for M {
    fn kind(&self) -> MetricType {
        self.metric_type()
    }
    fn put(&self, to: MetricEncoder<'_>) -> fmt::Result {
        self.encode(to)
    }
}

type Labels<'l> = [(&'l str, &'l str); 2];

fn labels(scope: Scope, kind: &Kind) -> Labels<'_> {
    [("scope", scope.name()), ("phase", kind.name())]
}

fn phases(known: &Known, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Phases of wake-ups and what trackers measure, since the monitor began";
    let (name, unit) = ("rtscope_phase", Unit::Seconds);
    let mut family = to.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
    for (scope, kind) in counted(known) {
        let Some(sum) = known.sum.phase(scope, kind.clone()) else {
            continue;
        };
        let buckets = coarse(&sum.histogram);
        let native = Native::of(&sum.histogram);
        let (seconds, samples) = (sum.sum.as_ns() as f64 / 1e9, sum.histogram.samples());
        let labels = labels(scope, &kind);
        let mut series = family.encode_family(&labels)?;
        // Text has the classic buckets alone.
        series.encode_histogram_with_native::<Labels<'_>>(
            seconds,
            samples,
            &buckets,
            None,
            native.encoded(),
        )?;
    }
    Ok(())
}

fn worst(known: &Known, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "The longest of each phase in the last interval that was closed";
    let (name, unit) = ("rtscope_phase_worst", Unit::Seconds);
    let mut family = to.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
    for worst in &known.last.worst {
        let labels = labels(worst.scope, &worst.phase);
        let seconds = worst.value.as_ns() as f64 / 1e9;
        ConstGauge::new(seconds).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use abi::bucket_begin_ns;
    use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model::MetricFamily;

    use super::*;
    use crate::buckets::Histogram;
    use crate::known::{FIRST, LAST, STEP};
    use crate::test_data::sample;

    fn metrics(histogram: &[(u16, u64)]) -> Metrics {
        let metrics = Metrics::new(&Run::default());
        let mut interval = sample(0);
        interval.series[0].histogram = Histogram(histogram.to_vec());
        metrics.add(&interval);
        metrics.closed(&interval, 2, 4096);
        metrics
    }

    #[test]
    fn counts_are_exact_and_cumulative_up_to_the_last_bound() {
        let large = 1_000_000_007;
        let text = metrics(&[(5, 1), (79, 1), (80, 2), (83, 3), (84, large), (600, 1)]).text();
        let check = |line: &str| assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        let series = "scope=\"realtime\",phase=\"switch\"";
        let bucket = |le: &str, count: u64| {
            format!("rtscope_phase_seconds_bucket{{le=\"{le}\",{series}}} {count}")
        };
        // Bucket 80 begins at 256 ns, 84 at 320 ns.
        check(&bucket("2.56e-7", 2));
        check(&bucket("3.2e-7", 7));
        check(&bucket("3.84e-7", large + 7));
        check(&bucket("+Inf", large + 8));
        check(&format!(
            "rtscope_phase_seconds_count{{{series}}} {}",
            large + 8
        ));
        check("rtscope_monitor_unsaved_intervals_total 2");
        check("# TYPE rtscope_monitor_unsaved_intervals_total counter");
        check("rtscope_monitor_store_bytes 4096");
        check(&format!("rtscope_phase_worst_seconds{{{series}}} 0.000005"));
    }

    #[test]
    fn open_metrics_ends_as_it_must_and_no_label_names_a_task() {
        let text = metrics(&[(90, 1)]).open_metrics();
        assert!(text.ends_with("# EOF\n"), "{text}");
        // Exemplars are no labels: they make no series.
        assert!(
            text.lines()
                .all(|line| !line.split(" # ").next().unwrap_or("").contains("task7"))
        );
        assert_eq!(text.matches("victim=\"task7\"").count(), 1, "{text}");
        let older = metrics(&[(90, 1)]).text();
        assert!(
            !older.contains("EOF") && !older.contains("task7"),
            "{older}"
        );
    }

    #[test]
    fn prometheus_messages_have_both_kinds_of_buckets_and_the_longest_beside_a_classic_one() {
        let metrics = metrics(&[(90, 1), (150, 7)]);
        let bytes = metrics.protobuf();
        let mut rest = bytes.as_slice();
        let mut families = Vec::new();
        while !rest.is_empty() {
            let family = MetricFamily::decode_length_delimited(&mut rest);
            families.push(family.expect("a family"));
        }
        let named = |name: &str| {
            let found = families.iter().find(|family| family.name == name);
            found.unwrap_or_else(|| panic!("no {name}"))
        };
        assert!(
            named("rtscope_monitor_lost_samples_total").metric[0]
                .counter
                .is_some()
        );
        let [metric] = named("rtscope_phase_seconds").metric.as_slice() else {
            panic!("one series");
        };
        let histogram = metric.histogram.as_ref().expect("a histogram");
        assert_eq!(histogram.sample_count, 8);
        assert_eq!(
            histogram.bucket.last().map(|last| last.cumulative_count),
            Some(8)
        );
        let mut count = 0;
        let native = histogram.positive_delta.iter().map(|delta| {
            count += delta;
            count
        });
        assert_eq!(native.sum::<i64>(), 8);
        let exemplars = histogram
            .bucket
            .iter()
            .filter_map(|one| one.exemplar.as_ref());
        let [exemplar] = exemplars.collect::<Vec<_>>()[..] else {
            panic!("one exemplar");
        };
        assert_eq!(
            (exemplar.value, exemplar.label[0].value.as_str()),
            (5e-6, "task7")
        );
        assert_eq!(
            exemplar.timestamp.map(|at| (at.seconds, at.nanos)),
            Some((0, 7))
        );
    }

    #[test]
    fn every_bound_is_the_begin_of_a_bucket() {
        assert_eq!(bucket_begin_ns(FIRST), 256);
        assert_eq!((LAST - FIRST) % STEP, 0);
        assert!(bucket_begin_ns(LAST) > 2_000_000_000);
    }
}
