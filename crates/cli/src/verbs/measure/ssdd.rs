//! `rtscope measure ssdd`: does each single step of a traced process come back?

use std::time::Instant;

use capture::capabilities;
use event::{Duration, Error, ErrorKind, Result};
use measure::steps::{Plan, Reading, Run};
use report::{Measured, Steps, steps_json, steps_text};

use super::cyclic::{kernel, warnings};
use crate::exit::{Outcome, print};
use crate::flags;
use crate::live::Live;
use crate::options::positive_duration;
use crate::signals::{self, Request};

/// The histograms: a microsecond each, up to ten milliseconds.
const BUCKET: Duration = Duration::from_us(1);
const BUCKETS: usize = 10_000;
/// How often we look whether it is over.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(50);

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
    let (begin, live) = (Instant::now(), Live::new(!typed.json));
    let elapsed = || Duration::from_ns(begin.elapsed().as_nanos() as i64);
    let is_late = || run_for.is_some_and(|limit| elapsed() >= limit);
    while signals::request() == Request::GoOn && !is_late() && !run.is_over() {
        live.line(&format!("{} steps", run.steps()));
        let left = run_for.map_or(LOOK_INTERVAL, |limit| {
            let left_ns = (limit.as_ns() - elapsed().as_ns()).max(0);
            std::time::Duration::from_nanos(left_ns.cast_unsigned())
        });
        std::thread::sleep(left.min(LOOK_INTERVAL));
    }
    live.clear();
    let complete = run.is_over() || is_late();
    let elapsed = elapsed();
    let readings = run.finish();
    if signals::request() == Request::Discard {
        eprintln!("discarded");
        return Ok(Outcome::Fine);
    }
    has_begun(&readings)?;
    let warnings = warnings(&capabilities);
    let found = Steps {
        readings: &readings,
        measured: Measured {
            elapsed,
            complete,
            over,
            kernel: kernel(&capabilities),
            warnings: &warnings,
        },
    };
    print(&match typed.json {
        true => format!("{}\n", steps_json(&found)),
        false => steps_text(&found),
    })?;
    Ok(match found.exceeded() {
        true => Outcome::Exceeded,
        false if complete => Outcome::Fine,
        false => Outcome::Inconclusive,
    })
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
