//! `rtscope watch`: waits in the kernel for a late activation and explains it at once.

mod config;
mod exec;
mod observer;

use std::io::IsTerminal;

use capture::facts::{self, Verb};
use event::Result;

use crate::exit::Outcome;
use crate::flags::Watch;
use crate::options::WatchOptions;
use crate::paint::Paint;
use crate::signals;

pub use config::session;
pub use observer::{Observer, hit_value};

/// Runs the verb.
pub fn run(typed: &Watch, paint: Paint) -> Result<Outcome> {
    let facts = facts::gather();
    let options = WatchOptions::new(typed, &facts.machine.cpus_online)?;
    facts.require(Verb::Watch)?;
    if options.snapshot.is_some() {
        // Without --no-snapshot a snapshot is part of what was asked.
        facts.require(Verb::Record)?;
    }
    let session = session(&options)?;
    signals::take_over()?;
    let mut observer = Observer::new(&options, paint, std::io::stderr().is_terminal());
    let command_line = capture::own_command_line();
    let status = capture::watch::run(&session, &facts, &command_line, &mut observer)?;
    observer.end(&status)?;
    Ok(match (status.hits, options.over) {
        (0, _) | (_, None) => Outcome::Fine,
        _ => Outcome::Exceeded,
    })
}
