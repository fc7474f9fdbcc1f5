//! `rtscope measure ssdd`: does each single step of a traced process come back?

use capture::capabilities;
use event::{Duration, Error, ErrorKind, Result};
use measure::steps::{Plan, Reading, Run};
use report::{Steps, steps_json, steps_text};

use super::cyclic::warnings;
use super::small;
use crate::exit::Outcome;
use crate::flags;
use crate::live::Live;
use crate::options::positive_duration;
use crate::signals;

/// The histograms: a microsecond each, up to ten milliseconds.
const BUCKET: Duration = Duration::from_us(1);
const BUCKETS: usize = 10_000;

/// Runs the verb.
pub(super) fn run(typed: &flags::Ssdd) -> Result<Outcome> {
    let capabilities = capabilities::gather();
    let optional =
        |flag: &str, text: Option<&str>| text.map(|text| positive_duration(flag, text)).transpose();
    let run_for = optional("--for", typed.run_for.as_deref())?;
    let over = optional("--over", typed.over.as_deref())?;
    signals::take_over()?;
    let run = Run::start(&Plan {
        forks: typed.forks as usize,
        steps: run_for.map_or(typed.iters, |_| u64::MAX),
        bucket: BUCKET,
        buckets: BUCKETS,
    })?;
    let live = Live::new(!typed.json);
    let is_over = || run.is_over();
    let line = |_| format!("{} steps", run.steps());
    let waited = small::until_over(run_for, &live, is_over, line);
    let complete = waited.reached_limit || run.is_over();
    let readings = run.finish();
    if signals::discarded() {
        return Ok(Outcome::Fine);
    }
    has_begun(&readings)?;
    let (warnings, rests_on) = (warnings(&capabilities), (waited.elapsed, complete));
    let found = Steps {
        readings: &readings,
        measured: small::measured(&capabilities, &warnings, rests_on, over),
    };
    let text = match typed.json {
        true => format!("{}\n", steps_json(&found)),
        false => steps_text(&found),
    };
    small::say(&text, found.exceeded(), complete)
}

/// Where no process could be stepped through at all, nothing was tried.
fn has_begun(readings: &[Reading]) -> Result<()> {
    let refused = |one: &Reading| match &one.wrong {
        Some((0, why)) => Some(why.clone()),
        _ => None,
    };
    let why: Option<Vec<String>> = readings.iter().map(refused).collect();
    let Some(why) = why.and_then(|all| all.into_iter().next()) else {
        return Ok(());
    };
    let what = "no process can be stepped through here";
    let fix =
        "allow ptrace: sysctl kernel.yama.ptrace_scope (3 forbids it), the container's seccomp";
    Err(Error::new(ErrorKind::Unsupported, what).found(why).fix(fix))
}

#[cfg(test)]
mod tests {
    use measure::histogram::Histogram;

    use super::*;

    #[test]
    fn nothing_is_judged_where_no_step_could_be_tried() {
        let reading = |wrong: Option<u64>| Reading {
            pid: 1,
            latency: Histogram::empty(BUCKET, 1),
            wrong: wrong.map(|step| (step, "why".to_owned())),
        };
        let check = |wrong: &[Option<u64>], expect: bool| {
            let readings: Vec<Reading> = wrong.iter().copied().map(reading).collect();
            assert_eq!(has_begun(&readings).is_ok(), expect, "{wrong:?}");
        };
        check(&[Some(0), Some(0)], false);
        // One of them came so far: what is wrong with the others is a finding.
        check(&[Some(0), None], true);
        check(&[Some(3)], true);
        check(&[None], true);
    }
}
