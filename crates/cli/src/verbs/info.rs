//! `rtscope info`: what a trace holds.

use std::io::Write;
use std::sync::atomic::Ordering;

use event::{Error, ErrorKind, Result};
use report::{TraceFacts, trace_facts_json, trace_facts_text};
use trace::{OpenOptions, Root, Trace};

use crate::exit::{Outcome, stdout_error};
use crate::flags::Info;
use crate::options::InfoOptions;
use crate::signals;
use crate::verbs::progress::Progress;
use crate::verbs::{opened, window};

/// Runs the verb.
pub fn run(typed: &Info) -> Result<Outcome> {
    let options = InfoOptions::new(typed)?;
    let roots: Vec<Root> = options.traces.iter().map(Root::from).collect();
    let mut trace = match options.strict {
        true => Trace::open_all(&roots, &OpenOptions::default())?,
        false => opened::open_all(&roots, &OpenOptions::default())?,
    };
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
        .fix("--begin and --end say what a part of it holds"));
    }
    let text = match options.json {
        true => format!("{:#}\n", trace_facts_json(&facts)),
        false => trace_facts_text(&facts),
    };
    std::io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .map_err(stdout_error)?;
    if options.strict {
        keeps_to_the_standard(&facts)?;
    }
    // Losses are facts that were counted; what lies in unreadable bytes nobody knows.
    Ok(match facts.damage_count {
        0 => Outcome::Fine,
        _ => Outcome::Inconclusive,
    })
}

/// Refuses what breaks the standard: the facts say where.
fn keeps_to_the_standard(facts: &TraceFacts) -> Result<()> {
    let metadata: u64 = facts.parts.iter().map(|part| part.violations.count).sum();
    let found = [
        (metadata, "of the metadata"),
        (facts.damage_count, "of bytes that make no sense"),
        (facts.disorder.packets, "of packets that go back in time"),
        (facts.disorder.events, "of events that go back in time"),
    ];
    let found = found.into_iter().filter(|(count, _)| *count > 0);
    let found: Vec<String> = found
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if found.is_empty() {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Corrupt, "the trace breaks its format's standard");
    Err(error
        .found(format!("places: {}", found.join(", ")))
        .fix("rtscope info TRACE, without --strict, reads it as far as it can be read"))
}
