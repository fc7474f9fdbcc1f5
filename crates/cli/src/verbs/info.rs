//! `rtscope info`: what a trace holds.

use std::io::Write;

use event::Result;
use report::{TraceFacts, trace_facts_json, trace_facts_text};
use trace::Trace;

use crate::exit::{Outcome, stdout_error};
use crate::flags::Info;
use crate::options::InfoOptions;
use crate::verbs::window;

/// Runs the verb.
pub fn run(typed: &Info) -> Result<Outcome> {
    let options = InfoOptions::new(typed)?;
    let trace = Trace::open(&options.trace)?;
    let range = window::resolve(&options.window, &trace)?;
    window::known_cpus(&options.window, &trace)?;
    let facts = TraceFacts::gather(&trace, range, &options.window.cpus)?;
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
