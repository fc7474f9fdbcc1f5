//! What the watch's programs in the kernel cost, call by call, over an empty program.

use std::time::Duration;

use anyhow::Result;
use bpf_host::{MeasuredCost, Targets, WatchConfig, measure_cost};
use event::TaskPattern;

use crate::load::{self, Load};
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};

/// Of a call that changes state.
const CHANGED_NS_MAX: f64 = 100.0;
/// Of a call that changes nothing, or that a filter rejects.
const UNCHANGED_NS_MAX: f64 = 40.0;
/// No machine has this interrupt: every chain is rejected.
const NO_IRQ: i32 = 12_345;
/// hackbench with 2 senders and 2 receivers a CPU or so: they wake each other all the time.
const GROUPS: u32 = 2;
const FDS: u32 = 2;

/// A watch to measure.
struct Question {
    name: &'static str,
    config: WatchConfig,
    /// Whether each program has its own row.
    in_full: bool,
}

/// Measures every question under the same load.
pub fn measure(options: &Options) -> Result<Report> {
    load::require()?;
    let duration = Duration::from_millis(options.pick(5_000, 200));
    let mut summary = Table {
        columns: vec![
            "watch",
            "calls",
            "calls/s",
            "average over empty, ns",
            "p99, ns",
            "max, ns",
        ],
        rows: Vec::new(),
    };
    let mut programs = Table {
        columns: vec![
            "watch",
            "program",
            "state",
            "calls/s",
            "average over empty, ns",
            "p99, ns",
            "max, ns",
        ],
        rows: Vec::new(),
    };
    let mut bars = Vec::new();
    let mut empty = None;
    for question in questions() {
        let load = Load::start(GROUPS, FDS)?;
        let costs = measure_cost(&question.config, duration, false)?;
        drop(load);
        empty = costs.iter().find(|cost| cost.program == "empty").cloned();
        let own: Vec<_> = costs
            .iter()
            .filter(|cost| cost.program != "empty")
            .collect();
        for changed in [true, false] {
            let sum = Sum::of(own.iter().copied().filter(|cost| cost.changed == changed));
            summary.rows.extend(sum.row(question.name, changed));
            bars.extend(sum.bar(question.name, changed));
        }
        if question.in_full {
            let rows = own.iter().map(|cost| program_row(question.name, cost));
            programs.rows.extend(rows);
        }
    }
    Ok(Report {
        title: "The watch, call by call",
        command: "bench calls".into(),
        setting: setting(duration, empty.as_ref()),
        tables: vec![summary, programs],
        bars,
        remarks: vec![
            "The average is weighted by calls; p99 of several programs together is that of the \
             worst of them. p99 and maximum include the measuring, cold caches and whatever \
             interrupted the call."
                .into(),
            "The peer, latency_tracker, published 740 ns a call, 259 ns without a transition, \
             1137 ns with one, on other hardware; it was not run here."
                .into(),
        ],
    })
}

fn questions() -> Vec<Question> {
    let base = WatchConfig {
        threshold: event::Duration::MAX,
        waker_stacks: false,
        ..WatchConfig::default()
    };
    let with = |name, in_full, config| Question {
        name,
        config,
        in_full,
    };
    let named =
        |name: &str| Targets::Tasks(vec![TaskPattern::parse(name).expect("a name is a pattern")]);
    vec![
        with("every task is a target", true, base.clone()),
        with(
            "real-time tasks (the default)",
            false,
            WatchConfig {
                targets: Targets::RealTime,
                ..base.clone()
            },
        ),
        with(
            "a filter rejects every chain",
            true,
            WatchConfig {
                irqs: Some(vec![NO_IRQ]),
                ..base.clone()
            },
        ),
        with(
            "hackbench by name, with wakers' stacks",
            false,
            WatchConfig {
                targets: named("hackbench*"),
                waker_stacks: true,
                ..base
            },
        ),
    ]
}

fn setting(duration: Duration, empty: Option<&MeasuredCost>) -> String {
    let empty = empty.map_or("not measured".into(), |cost| {
        format!("p99 {} ns, max {} ns", cost.p99_ns, cost.max_ns)
    });
    format!(
        "Load: hackbench with {GROUPS} groups of {FDS} senders and {FDS} receivers through pipes, \
         and a 1 kHz timer; {:.1} s a watch. Own run time of each call, minus the average of an \
         empty program on sched_waking and sched_switch ({empty}), which is the measuring itself.",
        duration.as_secs_f64()
    )
}

fn program_row(watch: &str, cost: &MeasuredCost) -> Vec<Cell> {
    vec![
        text(watch),
        text(cost.program),
        text(state(cost.changed)),
        number(cost.calls_per_s, 0),
        number(cost.average_over_empty_ns, 1),
        number(cost.p99_ns as f64, 0),
        number(cost.max_ns as f64, 0),
    ]
}

fn state(changed: bool) -> &'static str {
    if changed { "changes" } else { "stays" }
}

/// Several programs together.
#[derive(Debug, Default, PartialEq)]
struct Sum {
    calls_per_s: f64,
    total_ns_per_s: f64,
    p99_ns: u64,
    max_ns: u64,
}

impl Sum {
    fn of<'a>(costs: impl Iterator<Item = &'a MeasuredCost>) -> Sum {
        costs.fold(Sum::default(), |sum, cost| Sum {
            calls_per_s: sum.calls_per_s + cost.calls_per_s,
            total_ns_per_s: sum.total_ns_per_s + cost.calls_per_s * cost.average_over_empty_ns,
            p99_ns: sum.p99_ns.max(cost.p99_ns),
            max_ns: sum.max_ns.max(cost.max_ns),
        })
    }

    fn average_ns(&self) -> Option<f64> {
        (self.calls_per_s > 0.0).then(|| self.total_ns_per_s / self.calls_per_s)
    }

    fn row(&self, watch: &str, changed: bool) -> Option<Vec<Cell>> {
        Some(vec![
            text(watch),
            text(state(changed)),
            number(self.calls_per_s, 0),
            number(self.average_ns()?, 1),
            number(self.p99_ns as f64, 0),
            number(self.max_ns as f64, 0),
        ])
    }

    fn bar(&self, watch: &str, changed: bool) -> Option<Bar> {
        let (what, limit) = if changed {
            ("a call that changes state", CHANGED_NS_MAX)
        } else {
            ("a call that changes nothing", UNCHANGED_NS_MAX)
        };
        Some(Bar {
            what: format!("{what}: {watch}"),
            found: Some(self.average_ns()?),
            limit,
            unit: "ns",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_several_programs_is_weighted_by_their_calls() {
        let cost = |calls_per_s: f64, average_over_empty_ns: f64, p99_ns: u64| MeasuredCost {
            program: "x",
            changed: true,
            calls: 0,
            calls_per_s,
            average_over_empty_ns,
            p99_ns,
            max_ns: 2 * p99_ns,
        };
        let sum = Sum::of([cost(900.0, 10.0, 20), cost(100.0, 110.0, 300)].iter());
        assert_eq!(sum.average_ns(), Some(20.0));
        assert_eq!((sum.p99_ns, sum.max_ns), (300, 600));
        assert_eq!(Sum::of([].iter()).average_ns(), None);
    }
}
