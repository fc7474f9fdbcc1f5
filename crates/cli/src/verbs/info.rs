//! `rtscope info`: what a trace holds.

use std::io::Write;
use std::sync::atomic::Ordering;

use event::{Error, ErrorKind, Result};
use report::{TraceFacts, trace_facts_json, trace_facts_text};
use trace::Trace;

use crate::exit::{Outcome, stdout_error};
use crate::flags::Info;
use crate::options::InfoOptions;
use crate::signals;
use crate::verbs::progress::Progress;
use crate::verbs::window;

/// Runs the verb.
pub fn run(typed: &Info) -> Result<Outcome> {
    let options = InfoOptions::new(typed)?;
    let mut trace = Trace::open(&options.trace)?;
    let range = window::resolve(&options.window, &trace)?;
    window::known_cpus(&options.window, &trace)?;
    let asked = signals::take_over()?;
    trace.stop_when(&asked);
    let mut progress = Progress::new(range, &trace);
    let facts = TraceFacts::gather(&trace, range, &options.window.cpus, |now, events| {
        progress.show(now, events);
    });
    progress.live.clear();
    let facts = facts?;
    if asked.load(Ordering::Relaxed) {
        return Err(Error::new(
            ErrorKind::Interrupted,
            "stopped before the end; what a part of the trace holds is not what it holds",
        )
        .found(format!("{} events up to there", facts.events))
        .mend("--begin and --end say what a part of it holds"));
    }
    let text = match options.json {
        true => format!("{:#}\n", trace_facts_json(&facts)),
        false => trace_facts_text(&facts),
    };
    std::io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .map_err(stdout_error)?;
    // Losses are facts that were counted; what lies in unreadable bytes nobody knows.
    Ok(match facts.damage_count {
        0 => Outcome::Fine,
        _ => Outcome::Inconclusive,
    })
}
