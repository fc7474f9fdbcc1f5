//! `rtscope watch`: waits in the kernel for a late activation and explains it at once.

mod book;
mod called;
mod causes;
mod command;
mod config;
mod exec;
mod explained;
mod heard;
mod hits_page;
mod json;
mod keep;
mod log;
mod observer;
mod orphans;
mod pinned;
mod scope;
pub(super) mod targets;
mod threads;

use std::ffi::OsString;

use bpf_host::Statistics;
use capture::capabilities;
use capture::watch::Status;
use event::Result;
use host::capabilities::Verb;

use crate::exit::Outcome;
use crate::flags::Watch;
use crate::options::{Target, WatchOptions};
use crate::paint::Paint;
use crate::signals::{self, Request};

pub(super) use command::Command;
pub(super) use config::may_snapshot;
pub use config::session;
pub(super) use exec::Running;
pub(super) use heard::{Ears, Written};
pub use json::{NOT_EXPLAINED, hit_unexplained, hit_value};
pub use observer::Observer;
pub(super) use observer::{LAST_WORDS, whom_text};
pub(super) use orphans::Orphan;
pub(super) use scope::may_be_late;
pub(super) use targets::{meant, whom};

/// Runs the verb.
pub fn run(typed: &Watch, paint: Paint) -> Result<Outcome> {
    if !typed.tracker.is_empty() || typed.trackers.from.is_some() {
        return super::trackers::run(typed, paint);
    }
    let capabilities = capabilities::gather();
    let mut options = WatchOptions::new(typed, &capabilities.machine.cpus_online)?;
    capabilities.require(Verb::Watch)?;
    if options.snapshot.is_some() && !may_snapshot(&capabilities, typed)? {
        options.snapshot = None;
    }
    heard::has_lines(&options.triggers, !options.command.is_empty())?;
    let mut ears = Ears::open(&options.triggers)?;
    let words = &options.command;
    let command = (!words.is_empty()).then(|| hold(words, ears.as_mut(), Command::hold));
    let command = command.transpose()?;
    let whom = whom(&options, command.as_ref());
    let matched = meant(&mut options, &whom)?;
    let mut session = session(&options)?;
    session.calls = ears.as_ref().map(|ears| ears.calls.clone());
    signals::take_over()?;
    let mut observer = Observer::new(&options, paint, true);
    observer.tells(typed);
    observer.shows(typed)?;
    observer.fills(typed)?;
    observer.began_with(matched, whom);
    observer.runs(command, ears);
    let command_line = capture::own_command_line();
    let status = capture::watch::run(&session, &capabilities, &command_line, &mut observer)?;
    if signals::request() == Request::Discard {
        note!("discarded");
        return Ok(Outcome::Fine);
    }
    observer.end(&status)?;
    if observer.has_open_calls() {
        return Ok(Outcome::Inconclusive);
    }
    let asks = has_budget(&options) || options.target != Target::RealTime;
    let slept = scope::may_be_late(&options, &status);
    let outcome = outcome(&status, has_budget(&options), asks, slept);
    Ok(outcome.unless(!observer.orphans().is_empty()))
}

/// How a command is started.
type Hold = fn(&[OsString], Option<Written>) -> Result<Command>;

/// The command, held, and heard where its lines may call.
pub(super) fn hold(words: &[OsString], ears: Option<&mut Ears>, hold: Hold) -> Result<Command> {
    let Some(ears) = ears.filter(|ears| ears.hears_lines()) else {
        return hold(words, None);
    };
    let (output, written) = heard::output()?;
    let command = hold(words, Some(written))?;
    ears.listen(Some(output));
    Ok(command)
}

/// Whether each hit breaks what was asked: a new worst by itself does not.
fn has_budget(options: &WatchOptions) -> bool {
    options.over.is_some()
        || !options.triggers.is_empty()
        || (options.timeout.is_some() && !options.new_worst)
}

/// What was lost may have been the worst: then nothing is said of the whole. Where nothing was
/// late, nothing is said either where something could not be judged, where something was asked of
/// tasks of which no activation was judged, or of those that `slept` perhaps inside of their work
/// for longer than was asked for: `check` says so too.
fn outcome(status: &Status, has_budget: bool, asks: bool, slept: bool) -> Outcome {
    let Statistics {
        lost,
        dropped,
        samples,
        undated,
        overlooked,
        renamed,
        ..
    } = status.statistics;
    match (lost + dropped, status.hits) {
        (1.., _) => Outcome::Inconclusive,
        (0, 1..) if has_budget => Outcome::Exceeded,
        // As `has_budget` has it, a time-out alone is one; no hit tells these.
        (0, 0) if has_budget && overlooked > 0 => Outcome::Exceeded,
        _ if status.statistics.unjudged() > 0 => Outcome::Inconclusive,
        (0, 0) if slept || asks && (samples == 0 || undated > 0) => Outcome::Inconclusive,
        // What they did under another name may have been late.
        (0, 0) if asks && renamed > 0 => Outcome::Inconclusive,
        _ => Outcome::Fine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        watch: Watch,
    }

    #[test]
    fn the_page_of_hits_is_of_late_tasks_and_not_of_trackers() {
        use clap::Parser;

        let parses = |words: &[&str]| Line::try_parse_from(words).is_ok();
        assert!(parses(&["watch", "--view", "--task", "x"]));
        assert!(parses(&["watch", "futex"]));
        assert!(!parses(&["watch", "futex", "--view"]));
    }

    #[test]
    fn who_is_judged_beside_a_command_is_said_as_it_is_meant() {
        use clap::Parser;

        let check = |flags: &[&str], expect: &str| {
            let words = ["watch"].iter().chain(flags).chain(&["--", "./app", "-x"]);
            let typed = Line::try_parse_from(words).expect("parses").watch;
            let options = WatchOptions::new(&typed, &[event::Cpu(0)]).expect("valid");
            assert_eq!(whom_text(&options), expect);
        };
        check(&[], "./app and its children");
        check(
            &["--task", "rtl"],
            "tasks called rtl of ./app and its children",
        );
        check(
            &["--task", "rt", "--pid", "7"],
            "every real-time task of ./app and its children, process 7",
        );
        check(&["--pid", "7"], "process 7 while ./app runs");
        check(
            &["--cgroup", "a/b"],
            "tasks of control group a/b while ./app runs",
        );
    }

    #[test]
    fn who_asks_for_what_is_late_or_waits_has_a_budget_and_who_asks_for_the_worst_has_none() {
        use clap::Parser;

        let check = |flags: &[&str], expect: bool| {
            let words = ["watch", "--task", "x"].iter().chain(flags);
            let typed = Line::try_parse_from(words).expect("parses").watch;
            let options = WatchOptions::new(&typed, &[event::Cpu(0)]).expect("valid");
            assert_eq!(has_budget(&options), expect, "{flags:?}");
        };
        check(&[], false);
        check(&["--over", "1ms"], true);
        check(&["--timeout", "30ms"], true);
        check(&["--over", "1ms", "--timeout", "30ms"], true);
        check(&["--trigger", "signal"], true);
    }

    fn status() -> Status {
        Status {
            elapsed: event::Duration::ZERO,
            read: event::Instant::MIN,
            hits: 0,
            statistics: Default::default(),
            cost: Default::default(),
            spent: Default::default(),
            inside: Vec::new(),
        }
    }

    #[test]
    fn a_hit_breaks_a_budget_and_a_loss_forbids_a_statement() {
        let slept = |slept: bool, hits: u64, has_budget: bool, expect: Outcome| {
            let mut status = status();
            (status.hits, status.statistics.samples) = (hits, 9);
            let outcome = outcome(&status, has_budget, has_budget, slept);
            assert_eq!(outcome, expect, "{slept} {hits} {has_budget}");
        };
        slept(false, 0, true, Outcome::Fine);
        slept(true, 0, true, Outcome::Inconclusive);
        // What is proven to be late is late, whatever else there was.
        slept(true, 1, true, Outcome::Exceeded);
        let check = |(lost, dropped, samples), hits: u64, has_budget: bool, expect: Outcome| {
            let mut status = status();
            status.hits = hits;
            status.statistics.lost = lost;
            status.statistics.dropped = dropped;
            status.statistics.samples = samples;
            assert_eq!(
                outcome(&status, has_budget, has_budget, false),
                expect,
                "{lost} {dropped} {hits} {has_budget}"
            );
        };
        check((0, 0, 9), 0, true, Outcome::Fine);
        check((0, 0, 9), 1, false, Outcome::Fine);
        check((0, 0, 9), 1, true, Outcome::Exceeded);
        check((1, 0, 9), 1, true, Outcome::Inconclusive);
        check((0, 1, 9), 1, true, Outcome::Inconclusive);
        check((1, 0, 9), 0, true, Outcome::Inconclusive);
        check((1, 0, 9), 1, false, Outcome::Inconclusive);
        check((1, 0, 9), 0, false, Outcome::Inconclusive);
        check((0, 1, 9), 0, true, Outcome::Inconclusive);
        check((0, 1, 9), 1, false, Outcome::Inconclusive);
        // Nothing was judged; a task that waits still is a hit without a sample.
        check((0, 0, 0), 0, true, Outcome::Inconclusive);
        check((0, 0, 0), 1, true, Outcome::Exceeded);
        check((0, 0, 0), 0, false, Outcome::Fine);
    }

    #[test]
    fn an_activation_that_nobody_could_judge_is_no_good_news_whatever_the_reason() {
        let check = |count: fn(&mut Statistics) -> &mut u64, hits: u64, expect: Outcome| {
            let mut status = status();
            (status.hits, status.statistics.samples) = (hits, 9);
            *count(&mut status.statistics) = 1;
            assert_eq!(outcome(&status, true, true, false), expect);
        };
        let reasons: [fn(&mut Statistics) -> &mut u64; 3] = [
            |found| &mut found.untracked,
            |found| &mut found.unplaced,
            |found| &mut found.unmeant,
        ];
        for reason in reasons {
            check(reason, 0, Outcome::Inconclusive);
            check(reason, 1, Outcome::Exceeded);
        }
        check(|found| &mut found.renamed, 0, Outcome::Inconclusive);
        check(|found| &mut found.renamed, 1, Outcome::Exceeded);
        // Judged from their own timers.
        check(|found| &mut found.unseen, 0, Outcome::Fine);
        check(|found| &mut found.undated, 0, Outcome::Inconclusive);
        // Late for a time-out, and never told as a hit.
        check(|found| &mut found.overlooked, 0, Outcome::Exceeded);
    }
}
