//! `rtscope watch TRACKER…`: intervals that the kernel measures, reported as they come and summed
//! up at the end.

mod hdr;
mod history;
mod json;
mod observer;
mod request;
mod text;

use bpf_host::Targets;
use bpf_host::trackers::{Pair, Tracker, TrackerConfig, stands};
use capture::capabilities;
use capture::watch::{TrackersOptions, TrackersStatus, keys_named, pair, pair_is_of, run_trackers};
use event::Result;
use host::capabilities::Verb;
use trace::Symbols;

use super::watch::targets::{meant, whom};
use super::watch::{Command, may_snapshot, session};
use crate::exit::{Outcome, print};
use crate::flags::Watch;
use crate::options::{TRACKER_LIST, TrackerOptions};
use crate::paint::Paint;
use crate::signals::{self, Request};
use observer::Observer;

/// Runs the trackers that were typed.
pub fn run(typed: &Watch, paint: Paint) -> Result<Outcome> {
    if typed.tracker.iter().any(|word| word == TRACKER_LIST) {
        print(&text::list(&stands()))?;
        return Ok(Outcome::Fine);
    }
    let capabilities = capabilities::gather();
    let mut options = TrackerOptions::new(typed, &capabilities.machine.cpus_online)?;
    capabilities.require(Verb::Watch)?;
    let pair = options.pair.as_ref().map(pair).transpose()?;
    if options.watch.snapshot.is_some() {
        may_snapshot(&capabilities, typed)?;
    }
    let words = &options.watch.command;
    let command = (!words.is_empty())
        .then(|| Command::hold(words, None))
        .transpose()?;
    if !options.every_task {
        let whom = whom(&options.watch, command.as_ref());
        let matched = meant(&mut options.watch, &whom)?;
        if let Some(question) = &options.pair {
            pair_is_of(question, &matched.pids())?;
        }
    }
    let symbols = Symbols::from_kallsyms(&capture::kernel_functions());
    let asked = question(&options, pair, &symbols)?;
    signals::take_over()?;
    let mut observer = Observer::new(&options, &asked, paint)?;
    let hdr = options.hdr.as_deref().map(hdr::open).transpose()?;
    observer.runs(command);
    let command_line = capture::own_command_line();
    let status = run_trackers(&asked, &capabilities, symbols, &command_line, &mut observer)?;
    if signals::request() == Request::Discard {
        note!("discarded");
        return Ok(Outcome::Fine);
    }
    observer.end(&status)?;
    if let (Some(path), Some(file)) = (&options.hdr, hdr) {
        hdr::write(path, file, &status)?;
    }
    let has_budget = options.watch.over.is_some() || options.watch.timeout.is_some();
    let outcome = outcome(&status, has_budget);
    Ok(outcome.unless(!observer.orphans().is_empty()))
}

/// What the session is asked: the chain's own reading of the flags, for each tracker.
fn question(
    options: &TrackerOptions,
    pair: Option<(&'static Tracker, Pair)>,
    symbols: &Symbols,
) -> Result<TrackersOptions> {
    let session = session(&options.watch)?;
    let mut watch = session.watch;
    if options.every_task {
        watch.targets = Targets::All;
    }
    let config = |tracker| {
        let words = options.only.iter();
        let keys = words.map(|word| keys_named(tracker, word, symbols));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        Ok((
            tracker,
            TrackerConfig {
                watch: watch.clone(),
                only: keys.concat(),
                stacks: options.stacks,
                pair: None,
                turns: false,
            },
        ))
    };
    let trackers = options.trackers.iter().copied().map(config);
    let mut trackers = trackers.collect::<Result<Vec<_>>>()?;
    trackers.extend(pair.map(|(tracker, pair)| {
        let config = TrackerConfig {
            watch: watch.clone(),
            only: Vec::new(),
            stacks: options.stacks,
            pair: Some(pair),
            turns: false,
        };
        (tracker, config)
    }));
    Ok(TrackersOptions {
        trackers,
        flight: session.flight,
        duration: options.watch.run_for,
        hits_max: options.watch.hits_max,
        history: options.history,
    })
}

fn outcome(status: &TrackersStatus, has_budget: bool) -> Outcome {
    let all = || status.trackers.iter().map(|one| &one.statistics);
    let lossy = all().any(|one| one.losses.forbid_a_statement());
    let counted = all().flat_map(|one| &one.series).map(|one| one.count);
    judged(lossy, status.hits, counted.sum(), has_budget)
}

/// What was lost may have been the worst: then nothing is said of the whole. Nor is it where
/// nothing was measured.
fn judged(lossy: bool, hits: u64, counted: u64, has_budget: bool) -> Outcome {
    match hits {
        _ if lossy => Outcome::Inconclusive,
        1.. if has_budget => Outcome::Exceeded,
        0 if has_budget && counted == 0 => Outcome::Inconclusive,
        _ => Outcome::Fine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_kept_only_where_something_was_measured_and_nothing_lost() {
        assert_eq!(judged(false, 0, 7, true), Outcome::Fine);
        assert_eq!(judged(false, 2, 7, true), Outcome::Exceeded);
        // What is open is told, and not counted.
        assert_eq!(judged(false, 1, 0, true), Outcome::Exceeded);
        assert_eq!(judged(false, 0, 0, true), Outcome::Inconclusive);
        assert_eq!(judged(true, 2, 7, true), Outcome::Inconclusive);
        // New worst ones are no complaint.
        assert_eq!(judged(false, 2, 7, false), Outcome::Fine);
        assert_eq!(judged(false, 0, 0, false), Outcome::Fine);
        assert_eq!(judged(true, 0, 0, false), Outcome::Inconclusive);
    }
}
