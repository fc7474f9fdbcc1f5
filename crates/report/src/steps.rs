//! Single steps as a table for people, and as JSON, schema rtscope.ssdd version 1.

use measure::steps::Reading;
use serde_json::{Value, json};

use crate::cyclic::{carried, latency_json, us};
use crate::measured::Measured;

const SCHEMA: (&str, u32) = ("rtscope.ssdd", 1);

/// What tracers found.
#[derive(Clone, Debug)]
pub struct Steps<'a> {
    /// The tracers.
    pub readings: &'a [Reading],
    /// On what that rests.
    pub measured: Measured<'a>,
}

impl Steps<'_> {
    /// Whether a step went wrong, or took too long.
    pub fn exceeded(&self) -> bool {
        self.readings.iter().any(|one| {
            let longest = one.latency.extremes.map(|extremes| extremes.max);
            one.wrong.is_some() || self.measured.is_over(longest)
        })
    }
}

/// A row for each process, what went wrong, and what it rests on.
pub fn steps_text(found: &Steps) -> String {
    let mut text = format!(
        "{:<27} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9}\n",
        "a single step", "samples", "min", "avg", "p50", "p99", "max"
    );
    for one in found.readings {
        let extremes = one.latency.extremes;
        text += &format!(
            "  {:<25} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9}\n",
            format!("of process {}", one.pid),
            one.latency.samples,
            us(extremes.map(|extremes| extremes.min)),
            us(one.latency.mean()),
            us(carried(&one.latency, 0.5)),
            us(carried(&one.latency, 0.99)),
            us(extremes.map(|extremes| extremes.max)),
        );
    }
    text += "in us\n\n";
    for one in found.readings {
        if let Some((step, what)) = &one.wrong {
            text += &format!("wrong: process {}, step {step}: {what}\n", one.pid);
        }
    }
    text += match (found.exceeded(), found.measured.complete) {
        (false, true) => "every step came back as one step\n",
        (false, false) => "interrupted: every step until then came back as one step\n",
        (true, _) if found.readings.iter().all(|one| one.wrong.is_none()) => {
            "a step took longer than it may\n"
        }
        (true, _) => "",
    };
    text + &found.measured.foot()
}

/// Everything that was found.
pub fn steps_json(found: &Steps) -> Value {
    let process = |one: &Reading| {
        let wrong = one.wrong.as_ref();
        json!({
            "pid": one.pid,
            "wrong": wrong.map(|(step, what)| json!({ "step": step, "what": what })),
            "latency": latency_json(&one.latency),
        })
    };
    let figures = json!({
        "exceeded": found.exceeded(),
        "processes": found.readings.iter().map(process).collect::<Vec<_>>(),
    });
    found.measured.json(SCHEMA, figures)
}

#[cfg(test)]
mod tests {
    use event::Duration;
    use measure::histogram::Recorder;

    use super::*;

    #[test]
    fn a_step_that_goes_wrong_or_takes_too_long_exceeds_and_is_named() {
        let check = |wrong: Option<&str>, over_us: Option<i64>, expect: bool| {
            let latency = Recorder::new(Duration::from_us(1), 100);
            latency.add(7_000);
            let reading = Reading {
                pid: 42,
                latency: latency.read(),
                wrong: wrong.map(|what| (5, what.to_owned())),
            };
            let found = Steps {
                readings: &[reading],
                measured: Measured::sample(over_us),
            };
            assert_eq!(found.exceeded(), expect, "{wrong:?} {over_us:?}");
            assert_eq!(steps_json(&found)["exceeded"], expect);
            let text = steps_text(&found);
            assert_eq!(text.contains("every step came back"), !expect, "{text}");
            if let Some(what) = wrong {
                assert!(
                    text.contains(&format!("process 42, step 5: {what}")),
                    "{text}"
                );
            }
        };
        check(None, None, false);
        check(None, Some(7), false);
        check(None, Some(6), true);
        check(Some("it ended"), None, true);
    }
}
