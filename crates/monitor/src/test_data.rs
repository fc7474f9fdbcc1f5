//! Intervals for tests.

use abi::monitor::{Mode, Phase};
use event::{Cpu, Duration};

use crate::buckets::{Histogram, Linear};
use crate::interval::{Head, Interval, Scope, Series, Worst};
use crate::late::Late;
use crate::task::Task;

pub(crate) const MINUTE_NS: i64 = 60_000_000_000;

/// An interval that differs from others by its number.
pub(crate) fn sample(number: i64) -> Interval {
    let task = |tid| {
        Some(Task {
            tid,
            prio: 49,
            name: format!("task{tid}"),
        })
    };
    Interval {
        head: Head {
            begin_ns: number * 5 * MINUTE_NS,
            end_ns: (number + 1) * 5 * MINUTE_NS,
            elapsed: Duration::from_ns(5 * MINUTE_NS),
            lost: 1,
            hidden: 3,
            lost_tracked: 4,
            worst_missed: 2,
            unsaved: 0,
            cost: Duration::from_ms(3),
        },
        series: vec![Series {
            scope: Scope::RealTime,
            phase: Phase::Switch.into(),
            cpu: Cpu(1),
            sum: Duration::from_us(9),
            min: Duration::from_us(1),
            max: Duration::from_us(5),
            histogram: Histogram(vec![(200, 3), (201, number as u64 + 1)]),
        }],
        worst: vec![Worst {
            scope: Scope::RealTime,
            phase: Phase::Switch.into(),
            cpu: Cpu(1),
            value: Duration::from_us(5),
            at_ns: number * 5 * MINUTE_NS + 7,
            timer: Some(Duration::from_us(2)),
            parts: [1, 5, 0].map(Duration::from_us),
            victim: task(7),
            culprit: task(number as i32),
            call: Some("clock_nanosleep".to_owned()),
            function: None,
            mode: Mode::Idle,
            stack: vec!["f+0x1".to_owned(), "g+0x2".to_owned()],
            key: None,
        }],
        linear: vec![(Phase::Timer, Cpu(0), Linear(vec![(3, 4), (10240, 1)]))],
        late: vec![Late {
            at_ns: number * 5 * MINUTE_NS + 7,
            latency: Duration::from_us(5),
            victim: task(9),
            cpu: Some(Cpu(1)),
            cause: "run_queue_wait:hog".to_owned(),
            proven: true,
            sentence: "hog ran".to_owned(),
            ledger: vec![("hog ran".to_owned(), Duration::from_us(4))],
            advice: vec!["taskset -pc 0 9".to_owned(), "chrt -f -p 61 7".to_owned()],
            snapshot: Some(format!("/s/hit-{number:04}")),
        }],
    }
}
