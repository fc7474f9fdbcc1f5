//! `rtscope measure deadline`: does each task get its runtime before its deadline?

use capture::capabilities;
use event::{Duration, Result};
use host::capabilities::Verb;
use host::task;
use measure::deadline::Run;
use report::{Deadlines, deadline_json, deadline_text};

use super::cyclic::warnings;
use super::small;
use crate::exit::Outcome;
use crate::flags;
use crate::live::Live;
use crate::options::DeadlineOptions;
use crate::signals;

/// Runs the verb.
pub(super) fn run(typed: &flags::Deadline) -> Result<Outcome> {
    let capabilities = capabilities::gather();
    let options = DeadlineOptions::new(typed)?;
    capabilities.require(Verb::Measure)?;
    signals::take_over()?;
    task::lock_memory()?;
    let run = Run::start(&options.plan)?;
    let live = Live::new(!typed.json);
    let line = |elapsed: Duration| {
        let missed: u64 = run.read().iter().map(|one| one.missed).sum();
        let seconds = elapsed.as_ns() / 1_000_000_000;
        format!("{seconds} s, deadlines missed: {missed}")
    };
    let waited = small::until_over(options.run_for, &live, || false, line);
    let readings = run.finish();
    if signals::discarded() {
        return Ok(Outcome::Fine);
    }
    let complete = waited.reached_limit || options.run_for.is_none();
    let (warnings, rests_on) = (warnings(&capabilities), (waited.elapsed, complete));
    let found = Deadlines {
        readings: &readings,
        measured: small::measured(&capabilities, &warnings, rests_on, options.over),
    };
    let text = match typed.json {
        true => format!("{}\n", deadline_json(&found)),
        false => deadline_text(&found),
    };
    small::say(&text, found.exceeded(), complete)
}
