//! Tasks with deadlines as a table for people, and as JSON, schema rtscope.deadline version 1.

use measure::deadline::Reading;
use measure::histogram::Histogram;
use serde_json::{Value, json};

use crate::cyclic::{carried, latency_json, us};
use crate::measured::Measured;

const SCHEMA: (&str, u32) = ("rtscope.deadline", 1);

/// What tasks with deadlines found.
#[derive(Clone, Debug)]
pub struct Deadlines<'a> {
    /// The tasks.
    pub readings: &'a [Reading],
    /// On what that rests.
    pub measured: Measured<'a>,
}

impl Deadlines<'_> {
    /// Whether a deadline was missed, a release skipped or a wake-up too long.
    pub fn exceeded(&self) -> bool {
        let is_late = |one: &Reading| {
            let longest = one.wakeup.extremes.map(|extremes| extremes.max);
            let too_long = self.measured.is_over(longest);
            one.missed > 0 || one.skipped > 0 || too_long
        };
        self.readings.iter().any(is_late)
    }
}

/// A row for each task, and what it rests on.
pub fn deadline_text(found: &Deadlines) -> String {
    let mut text = format!(
        "{:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>10}\n",
        "runtime",
        "deadline",
        "period",
        "releases",
        "wake p50",
        "wake max",
        "done p50",
        "done max",
        "missed",
        "skipped",
        "latest by"
    );
    for one in found.readings {
        let max = |latency: &Histogram| us(latency.extremes.map(|extremes| extremes.max));
        let plan = &one.plan;
        text += &format!(
            "{:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>10}\n",
            us(Some(plan.runtime)),
            us(Some(plan.deadline)),
            us(Some(plan.period)),
            one.response.samples,
            us(carried(&one.wakeup, 0.5)),
            max(&one.wakeup),
            us(carried(&one.response, 0.5)),
            max(&one.response),
            one.missed,
            one.skipped,
            us(one.worst_miss.map(|(late, _)| late)),
        );
    }
    text += "in us\n\n";
    text += match (found.exceeded(), found.measured.complete) {
        (false, true) => "every task was done by its deadline, every time\n",
        (false, false) => "interrupted: no deadline was missed until then\n",
        (true, _) => {
            "a task was late; sudo rtscope watch --task 'rtscope-dl*' --over 100us while it runs \
             says who was in its way\n"
        }
    };
    text + &found.measured.foot()
}

/// Everything that was found.
pub fn deadline_json(found: &Deadlines) -> Value {
    let task = |one: &Reading| {
        json!({
            "tid": one.tid.0,
            "runtime_ns": one.plan.runtime.as_ns(),
            "deadline_ns": one.plan.deadline.as_ns(),
            "period_ns": one.plan.period.as_ns(),
            "work_ns": one.plan.work.as_ns(),
            "missed": one.missed,
            "skipped": one.skipped,
            "latest_by_ns": one.worst_miss.map(|(late, _)| late.as_ns()),
            "latest_at_wall_ns": one.worst_miss.map(|(_, at_ns)| at_ns),
            "wakeup": latency_json(&one.wakeup),
            "response": latency_json(&one.response),
        })
    };
    let figures = json!({
        "exceeded": found.exceeded(),
        "tasks": found.readings.iter().map(task).collect::<Vec<_>>(),
    });
    found.measured.json(SCHEMA, figures)
}

#[cfg(test)]
mod tests {
    use event::{Duration, Tid};
    use measure::deadline::TaskPlan;
    use measure::histogram::Recorder;

    use super::*;

    fn reading(missed: u64, skipped: u64) -> Reading {
        let latency = Recorder::new(Duration::from_us(1), 100);
        latency.add(7_000);
        let us = Duration::from_us;
        Reading {
            tid: Tid(9),
            plan: TaskPlan {
                runtime: us(100),
                deadline: us(500),
                period: us(1_000),
                work: us(50),
            },
            wakeup: latency.read(),
            response: latency.read(),
            missed,
            skipped,
            worst_miss: (missed > 0).then_some((us(3), 77)),
        }
    }

    #[test]
    fn a_missed_deadline_a_skipped_release_and_a_late_begin_are_late() {
        let check = |readings: &[Reading], over_us: Option<i64>, expect: bool| {
            let found = Deadlines {
                readings,
                measured: Measured::sample(over_us),
            };
            assert_eq!(found.exceeded(), expect, "{readings:?} {over_us:?}");
            assert_eq!(deadline_json(&found)["exceeded"], expect);
            let said = deadline_text(&found).contains("was late");
            assert_eq!(said, expect);
        };
        check(&[reading(0, 0)], None, false);
        check(&[reading(0, 0)], Some(7), false);
        check(&[reading(0, 0)], Some(6), true);
        check(&[reading(0, 0), reading(1, 0)], None, true);
        check(&[reading(0, 1)], None, true);
    }
}
