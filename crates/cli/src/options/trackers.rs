//! What `rtscope watch TRACKER` was asked to do.

use std::path::PathBuf;

use bpf_host::trackers::{KeyKind, Tracker};
use capture::watch::{KEY_DEFAULT, PairQuestion};
use event::{Cpu, Error, ErrorKind, Result};

use super::{Target, WatchOptions};
use crate::flags::{self, Until};

/// The word that lists the trackers instead of starting one.
pub const LIST: &str = "list";

/// Trackers, decided.
#[derive(Debug)]
pub struct TrackerOptions {
    /// Which ones, each once.
    pub trackers: Vec<&'static Tracker>,
    /// Two events to measure between.
    pub pair: Option<PairQuestion>,
    /// Targets, thresholds, limits and actions, as for the chain.
    pub watch: WatchOptions,
    /// Nobody was named: every task.
    pub every_task: bool,
    /// Words for the keys to keep.
    pub only: Vec<String>,
    /// Take stacks.
    pub stacks: bool,
    /// Draw histograms.
    pub hist: bool,
    /// Tell the last minutes.
    pub history: bool,
    /// Write the histograms to this file.
    pub hdr: Option<PathBuf>,
    /// Add reports to this file.
    pub log: Option<PathBuf>,
    /// Fill the terminal.
    pub tui: bool,
}

impl TrackerOptions {
    /// From what was typed, on a machine with the CPUs `online`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a tracker that there is not, [`ErrorKind::InvalidInput`] for a
    /// flag of the chain alone, and what [`WatchOptions::new`] refuses.
    pub fn new(typed: &flags::Watch, online: &[Cpu]) -> Result<Self> {
        let mut trackers: Vec<&'static Tracker> = Vec::new();
        for name in &typed.tracker {
            let tracker = Tracker::find(name)?;
            if !trackers.iter().any(|known| known.name == tracker.name) {
                trackers.push(tracker);
            }
        }
        refuse_flags_of_the_chain(typed)?;
        refuse_cpus(typed, &trackers)?;
        refuse_history(typed, &trackers)?;
        let pair = pair(&typed.trackers);
        if pair.is_some() {
            refuse_beside_a_pair(typed)?;
        }
        if !typed.trackers.only.is_empty() && trackers.len() > 1 {
            let names: Vec<_> = trackers.iter().map(|tracker| tracker.name).collect();
            return Err(invalid(
                "--only belongs to one tracker",
                &names.join(" "),
                "run one 'rtscope watch' for each",
            ));
        }
        let mut watch = WatchOptions::new(typed, online)?;
        if typed.output.is_none() {
            watch.snapshot = None;
        }
        Ok(TrackerOptions {
            trackers,
            pair,
            every_task: watch.target == Target::RealTime && !asks_for_real_time(typed),
            watch,
            only: typed.trackers.only.clone(),
            stacks: typed.trackers.stacks,
            hist: typed.trackers.hist,
            history: typed.trackers.history,
            hdr: typed.trackers.hdr.clone(),
            log: typed.trackers.log.clone(),
            tui: typed.tui,
        })
    }
}

/// Whether real-time tasks are what somebody named.
fn asks_for_real_time(typed: &flags::Watch) -> bool {
    typed.real_time || !typed.task.is_empty()
}

fn invalid(what: &str, found: &str, fix: &str) -> Error {
    let error = Error::new(ErrorKind::InvalidInput, what);
    error.found(format!("'{found}'")).fix(fix)
}

/// What says something of a chain, or of the flight recorder that is not there, says nothing here.
fn refuse_flags_of_the_chain(typed: &flags::Watch) -> Result<()> {
    let recorder = typed.output.is_none();
    let refused = [
        (typed.until != Until::Block, "--until", "leave it away"),
        (typed.irq.is_some(), "--irq", "watch irq --only NAME"),
        (
            typed.softirq.is_some(),
            "--softirq",
            "watch softirq --only NAME",
        ),
        (!typed.user.is_empty(), "--user", "leave it away"),
        (
            typed.html.is_some(),
            "--html",
            "give -o DIR, for a snapshot of each report, and then: rtscope view SNAPSHOT",
        ),
        (
            recorder && typed.buffer.is_some(),
            "--buffer",
            "give -o DIR, too, for snapshots",
        ),
        (
            recorder && !typed.events.is_empty(),
            "--events",
            "give -o DIR, too, for snapshots",
        ),
    ];
    match refused.iter().find(|(is_typed, ..)| *is_typed) {
        None => Ok(()),
        Some((_, flag, fix)) => {
            let what = format!("{flag} says nothing to a tracker");
            Err(invalid(&what, &typed.tracker.join(" "), fix))
        }
    }
}

fn pair(typed: &flags::TrackerFlags) -> Option<PairQuestion> {
    let (from, to) = (typed.from.clone()?, typed.to.clone()?);
    let key = typed.key.clone();
    Some(PairQuestion {
        from,
        to,
        key: key.unwrap_or_else(|| KEY_DEFAULT.to_owned()),
    })
}

/// What a pair has its filters for.
fn refuse_beside_a_pair(typed: &flags::Watch) -> Result<()> {
    let only = typed.trackers.only.join(",");
    let refused = [
        ("--only", only.as_str(), "--from EVENT/FILTER"),
        (
            "--cpu",
            typed.cpu.as_deref().unwrap_or(""),
            "--from 'EVENT/$cpu == 1'",
        ),
    ];
    match refused.iter().find(|(_, found, _)| !found.is_empty()) {
        None => Ok(()),
        Some((flag, found, fix)) => {
            let what = format!("{flag} says nothing to a pair of events");
            Err(invalid(&what, found, fix))
        }
    }
}

/// A task, a request or a piece of work begins on one CPU and ends on another: only what stays on
/// its CPU can be chosen by it.
fn refuse_cpus(typed: &flags::Watch, trackers: &[&Tracker]) -> Result<()> {
    let stays = |tracker: &&&Tracker| tracker.stays_on_its_cpu;
    match trackers.iter().find(|tracker| !stays(tracker)) {
        Some(tracker) if typed.cpu.is_some() => {
            let what = format!("the tracker {} has no --cpu", tracker.name);
            let fix = "choose tasks with --task";
            Err(invalid(&what, typed.cpu.as_deref().unwrap_or(""), fix))
        }
        _ => Ok(()),
    }
}

/// Only rows of disks are few enough to have a past each.
fn refuse_history(typed: &flags::Watch, trackers: &[&Tracker]) -> Result<()> {
    let has_one = trackers.iter().any(|tracker| tracker.has_history());
    match typed.trackers.history && !has_one {
        false => Ok(()),
        true => {
            let what = "--history belongs to block and io";
            Err(invalid(
                what,
                &typed.tracker.join(" "),
                "name one of them: watch io block",
            ))
        }
    }
}

/// What `--only` takes for a tracker, in a word; none where it takes nothing.
pub fn only_takes(tracker: &Tracker) -> Option<&'static str> {
    match tracker.key {
        KeyKind::Call => Some("system calls"),
        KeyKind::Irq => Some("interrupts"),
        KeyKind::Softirq => Some("softirqs"),
        KeyKind::Function => Some("functions"),
        KeyKind::Disk => Some("disks"),
        KeyKind::Packet => Some("interfaces"),
        KeyKind::Task | KeyKind::Address | KeyKind::Lock | KeyKind::Peer | KeyKind::Pair(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use event::Duration;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        watch: flags::Watch,
    }

    fn options(line: &str) -> Result<TrackerOptions> {
        let words = std::iter::once("watch").chain(line.split_whitespace());
        let typed = Line::try_parse_from(words).expect("parses").watch;
        TrackerOptions::new(&typed, &[Cpu(0), Cpu(1)])
    }

    #[test]
    fn a_tracker_sees_every_task_and_takes_no_snapshot_unless_told() {
        let plain = options("syscall irq syscall").expect("valid");
        let names: Vec<_> = plain.trackers.iter().map(|tracker| tracker.name).collect();
        assert_eq!(names, ["syscall", "irq"]);
        assert!(plain.every_task && plain.watch.snapshot.is_none() && plain.watch.new_worst);
        let told = options("syscall --only read,write --stacks --over 1ms --task x -o D");
        let told = told.expect("valid");
        assert!(!told.every_task && told.stacks && told.watch.snapshot.is_some());
        assert_eq!(told.only, ["read", "write"]);
        assert_eq!(told.watch.over, Some(Duration::from_ms(1)));
        assert!(
            !options("irq --real-time --cpu 1")
                .expect("valid")
                .every_task
        );
        for named in [
            "--task rt",
            "--pid 7",
            "--process x",
            "--unit x",
            "--container x",
        ] {
            let line = format!("syscall {named}");
            assert!(!options(&line).expect("valid").every_task, "{line}");
        }
    }

    #[test]
    fn a_pair_may_stand_alone_or_beside_trackers_and_is_of_one_thread_unless_told() {
        let alone = options("--from a/x==1 --to b --hist").expect("valid");
        assert!(alone.trackers.is_empty() && alone.every_task && alone.hist);
        let pair = alone.pair.expect("a pair");
        assert_eq!((pair.from.as_str(), pair.to.as_str()), ("a/x==1", "b"));
        assert_eq!(pair.key, "$tid");
        let both = options("irq --from a --to b --key tid=next_tid").expect("valid");
        assert_eq!(both.trackers.len(), 1);
        assert_eq!(both.pair.expect("a pair").key, "tid=next_tid");
    }

    #[test]
    fn a_flag_that_says_nothing_to_a_tracker_is_refused_with_a_remedy() {
        for line in [
            "jitter",
            "syscall --until switch-in",
            "irq --irq 24",
            "softirq --softirq 3",
            "syscall --user app:*",
            "syscall --html page.html",
            "syscall --buffer 1M",
            "block --events sched",
            "syscall --cpu 1",
            "irq offcpu --cpu 1",
            "irq softirq --only local_timer",
            "syscall --over 25",
            "syscall --history",
            "--from a --to b --history",
            "--from a --to b --only x",
            "--from a --to b --cpu 1",
        ] {
            let error = options(line).expect_err(line);
            assert!(error.fixed_by().is_some(), "{line}");
            assert!(error.value_found().is_some(), "{line}");
        }
    }

    #[test]
    fn the_flags_of_trackers_need_one() {
        for line in [
            "--only x",
            "--stacks",
            "--hist",
            "--history",
            "--log f",
            "--hdr f",
            "--from a",
            "--to b",
            "--key tid",
            "syscall --key tid",
        ] {
            let words = std::iter::once("watch").chain(line.split_whitespace());
            assert!(Line::try_parse_from(words).is_err(), "{line}");
        }
    }
}
