//! `rtscope measure deadline`: does each task get its runtime before its deadline?

use std::time::Instant;

use capture::capabilities;
use event::{Duration, Result};
use host::capabilities::Verb;
use host::task;
use measure::deadline::Run;
use report::{Deadlines, Measured, deadline_json, deadline_text};

use super::cyclic::{kernel, warnings};
use crate::exit::{Outcome, print};
use crate::flags;
use crate::live::Live;
use crate::options::DeadlineOptions;
use crate::signals::{self, Request};

/// How often we look whether it is over.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

/// Runs the verb.
pub(super) fn run(typed: &flags::Deadline) -> Result<Outcome> {
    let capabilities = capabilities::gather();
    let options = DeadlineOptions::new(typed)?;
    capabilities.require(Verb::Measure)?;
    signals::take_over()?;
    task::lock_memory()?;
    let run = Run::start(&options.plan)?;
    let (begin, live) = (Instant::now(), Live::new(!typed.json));
    let elapsed = || Duration::from_ns(begin.elapsed().as_nanos() as i64);
    let goes_on = || signals::request() == Request::GoOn;
    while goes_on() && options.run_for.is_none_or(|limit| elapsed() < limit) {
        let missed: u64 = run.read().iter().map(|one| one.missed).sum();
        live.line(&format!(
            "{} s, deadlines missed: {missed}",
            elapsed().as_ns() / 1_000_000_000
        ));
        let left = options.run_for.map_or(LOOK_INTERVAL, |limit| {
            let left_ns = (limit.as_ns() - elapsed().as_ns()).max(0);
            std::time::Duration::from_nanos(left_ns.cast_unsigned())
        });
        std::thread::sleep(left.min(LOOK_INTERVAL));
    }
    live.clear();
    let elapsed = elapsed();
    let readings = run.finish();
    if signals::request() == Request::Discard {
        eprintln!("discarded");
        return Ok(Outcome::Fine);
    }
    let warnings = warnings(&capabilities);
    let found = Deadlines {
        readings: &readings,
        measured: Measured {
            elapsed,
            complete: goes_on() || options.run_for.is_none(),
            over: options.over,
            kernel: kernel(&capabilities),
            warnings: &warnings,
        },
    };
    print(&match typed.json {
        true => format!("{}\n", deadline_json(&found)),
        false => deadline_text(&found),
    })?;
    Ok(match found.exceeded() {
        true => Outcome::Exceeded,
        false => Outcome::Fine,
    })
}
