//! What an evaluation tells Prometheus while it runs: its closed intervals, in the monitor's words.

use std::sync::Arc;

use abi::bucket_of_ns;
use abi::monitor::{Mode, Phase};
use event::{Cpu, Duration};
use measure::cyclic::Reading;
use measure::histogram::Portion;
use measure::journal::Interval;
use monitor::{Head, Histogram, Kind, Metrics, Run, Scope, Series, Task, Worst};
use server::{Answer, Listening, Pages, serve};

use super::folder::BUILD;
use crate::verbs::monitor::metrics_page;

/// The port that is listened to while this lives.
pub(super) struct Served {
    metrics: Arc<Metrics>,
    /// Nobody answers once it is gone.
    _listening: Listening,
}

/// `/metrics`, and nothing else.
struct MetricsPage(Arc<Metrics>);

impl Pages for MetricsPage {
    fn answer(&self, path: &str, _query: &str, accept: &str) -> Option<Answer> {
        (path == "/metrics").then(|| metrics_page(&self.0, accept))
    }
}

impl Served {
    /// Listens on a port of this machine, and says where.
    pub(super) fn start(port: u16, boot: &str) -> event::Result<Served> {
        let fact = |file: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/kernel/{file}"));
            text.unwrap_or_default().trim().to_owned()
        };
        let metrics = Arc::new(Metrics::new(&Run {
            host: fact("hostname"),
            kernel: fact("osrelease"),
            boot_id: boot.to_owned(),
            program: BUILD.to_owned(),
            settings: String::new(),
        }));
        metrics.exceeded(0);
        let listening = serve(Arc::new(MetricsPage(Arc::clone(&metrics))), port)?;
        note!("{}metrics tells of closed intervals", listening.url);
        Ok(Served {
            metrics,
            _listening: listening,
        })
    }

    /// Tells of an interval that closed; `readings` are its threads.
    pub(super) fn closed(&self, interval: &Interval, readings: &[Reading]) {
        let told = told(interval, readings);
        self.metrics.add(&told);
        self.metrics.closed(&told, 0, 0);
        let excursions = interval.excursions.len() as u64 + interval.excursions_left_out;
        self.metrics.exceeded(excursions);
    }
}

/// An interval as the monitor has them: what the threads measure ends where its phase `total` does
/// when it counts the return to user space.
fn told(interval: &Interval, readings: &[Reading]) -> monitor::Interval {
    let (scope, phase) = (Scope::Named, Kind::from(Phase::Total));
    let threads = readings.iter().zip(&interval.threads);
    let series = threads.clone().filter_map(|(reading, thread)| {
        let longest = Duration::from_ns(thread.latency.longest_ns?);
        Some(Series {
            scope,
            phase: phase.clone(),
            cpu: reading.plan.cpu.unwrap_or(Cpu(0)),
            sum: thread.latency.sum(),
            min: Duration::ZERO,
            max: longest,
            histogram: histogram(&thread.latency, reading.latency.width, longest),
        })
    });
    let worst = threads.max_by_key(|(_, thread)| thread.latency.longest_ns);
    let worst = worst.and_then(|(reading, thread)| {
        let at = interval.excursions.iter().max_by_key(|one| one.latency_ns);
        Some(Worst {
            scope,
            phase: phase.clone(),
            cpu: reading.plan.cpu.unwrap_or(Cpu(0)),
            value: Duration::from_ns(thread.latency.longest_ns?),
            at_ns: at.map_or(interval.until_wall_ns, |one| one.at_wall_ns),
            timer: None,
            parts: [Duration::ZERO; 3],
            victim: Some(Task {
                tid: reading.tid.0,
                prio: event::Prio::from_rt(reading.plan.policy.prio()).0,
                name: String::new(),
            }),
            culprit: None,
            call: None,
            function: None,
            mode: Mode::default(),
            stack: Vec::new(),
            key: None,
        })
    });
    monitor::Interval {
        head: Head {
            begin_ns: interval.from_wall_ns,
            end_ns: interval.until_wall_ns,
            elapsed: Duration::from_ns(interval.elapsed_ns),
            ..Head::default()
        },
        series: series.collect(),
        worst: worst.into_iter().collect(),
        ..monitor::Interval::default()
    }
}

/// The samples in the monitor's buckets, each by the middle of its own; those beyond the last one
/// are as long as the longest.
fn histogram(portion: &Portion, width: Duration, longest: Duration) -> Histogram {
    let mut all = Histogram::default();
    let mut add = |ns: i64, count: u64| {
        all.add(&Histogram(vec![(
            bucket_of_ns(ns.max(0).cast_unsigned()),
            count,
        )]));
    };
    for &(place, count) in portion.counts() {
        let middle_ns = place as i64 * width.as_ns() + width.as_ns() / 2;
        add(middle_ns.min(longest.as_ns()), count);
    }
    let (below, beyond) = portion.outside();
    if below > 0 {
        add(0, below);
    }
    if beyond > 0 {
        add(longest.as_ns(), beyond);
    }
    all
}

#[cfg(test)]
mod tests {
    use event::Tid;
    use host::task::Policy;
    use measure::cyclic::ThreadPlan;
    use measure::histogram::Recorder;
    use measure::journal::{Excursion, ThreadPortion};

    use super::*;

    /// What `/metrics` says to who asks as Prometheus of old did.
    fn asked(served: &Served) -> String {
        let page = MetricsPage(Arc::clone(&served.metrics));
        assert!(page.answer("/", "", "").is_none());
        let answer = page.answer("/metrics", "", "").expect("a page");
        String::from_utf8(answer.body).expect("text")
    }

    #[test]
    fn a_closed_interval_is_told_with_what_was_over_the_limit() {
        let served = Served::start(0, "b").expect("a port");
        assert!(asked(&served).contains("rtscope_eval_excursions_total 0\n"));
        let recorder = Recorder::new(Duration::from_us(1), 10);
        recorder.add(2_500);
        recorder.add(70_000);
        let latency = recorder.read();
        let thread = ThreadPortion {
            latency: Portion::between(None, &latency),
            missed: 0,
            lost_cpu: false,
        };
        let reading = Reading {
            tid: Tid(7),
            plan: ThreadPlan {
                cpu: Some(Cpu(1)),
                policy: Policy::Fifo(80),
                interval: Duration::from_us(1_000),
            },
            latency,
            missed: 0,
            unmeasured: 0,
            lost_cpu: false,
            phases: None,
        };
        let excursion = Excursion {
            thread: 0,
            at_wall_ns: 5,
            latency_ns: 70_000,
        };
        let interval = Interval {
            from_wall_ns: 0,
            until_wall_ns: 9,
            since_boot_ns: None,
            clock_set: vec![],
            elapsed_ns: 9,
            threads: vec![thread],
            excursions: vec![excursion],
            excursions_left_out: 2,
            loads: vec![],
            workload: None,
        };
        served.closed(&interval, &[reading]);
        let told = asked(&served);
        for line in [
            "rtscope_phase_seconds_count{scope=\"named\",phase=\"total\"} 2\n",
            "rtscope_phase_worst_seconds{scope=\"named\",phase=\"total\"} 0.00007\n",
            "rtscope_monitor_intervals_total 1\n",
            "rtscope_eval_excursions_total 3\n",
        ] {
            assert!(told.contains(line), "{line}: {told}");
        }
    }

    #[test]
    fn each_sample_is_in_the_monitors_bucket_of_its_length() {
        let width = Duration::from_ns(100);
        let recorder = Recorder::new(width, 100);
        for ns in [-5, 40, 1_010, 1_040, 9_950, 700_000] {
            recorder.add(ns);
        }
        let portion = Portion::between(None, &recorder.read());
        let found = histogram(&portion, width, Duration::from_ns(700_000));
        assert_eq!(found.samples(), 6);
        let ns = found.bounds_ns().map(|(begin, end, count)| {
            let of = [0, 50, 1_050, 9_950, 700_000].into_iter();
            let inside = of.filter(|ns| (begin..end).contains(ns));
            (inside.collect::<Vec<u64>>(), count)
        });
        let expect = [(0, 1), (50, 1), (1_050, 2), (9_950, 1), (700_000, 1)];
        let expect = expect.map(|(ns, count)| (vec![ns], count));
        assert_eq!(ns.collect::<Vec<_>>(), expect);
    }
}
