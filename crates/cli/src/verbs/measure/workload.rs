//! An application in the place of the threads that sleep, under the same loads: judged as `watch`
//! judges it, or by what it says itself.

use std::ffi::OsString;
use std::process::ExitStatus;

use capture::watch::{CallReport, HitReport, Status, WatchObserver};
use clap::{Args as _, FromArgMatches as _};
use event::{Duration, Error, ErrorKind, Result};
use host::capabilities::Capabilities;
use host::task::Hurry;
use measure::journal::{Excursion, Record};
use report::{Late, Workload};

use super::eval::intervals::Intervals;
use super::loads::Loads;
use super::tally::Tally;
use super::worst::WorstHits;
use crate::flags::{self, Watch};
use crate::options::{EvalOptions, Rate, WatchOptions, positive_duration};
use crate::signals::{self, Request};
use crate::verbs::watch::{self, Command, Ears, LAST_WORDS, may_be_late};

/// Where snapshots are in the folder of the evaluation.
const SNAPSHOTS: &str = "snapshots";

/// What is measured at least of a run that goes on.
const LEFT_MIN: Duration = Duration::from_ms(1_000);

/// What `watch` would have been told, for so long.
fn words(typed: &flags::Eval, folder: &std::path::Path, left: Duration) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["watch".into()];
    let mut option = |name: &str, value: &std::ffi::OsStr| {
        words.extend([OsString::from(name), value.to_owned()]);
    };
    for trigger in &typed.trigger {
        option("--trigger", trigger.as_ref());
    }
    for task in &typed.task {
        option("--task", task.as_ref());
    }
    let over = typed.over.as_ref().or(typed.budget.as_ref());
    for (name, value) in [("--over", over), ("--until", typed.until.as_ref())] {
        if let Some(value) = value {
            option(name, value.as_ref());
        }
    }
    if typed.task.is_empty() {
        // What is started as an ordinary task has no budget until it is real-time.
        option("--min-prio", "1".as_ref());
    }
    option("--for", format!("{}ns", left.as_ns()).as_ref());
    option("--output", folder.join(SNAPSHOTS).as_ref());
    if let Some(file) = &typed.actions.bpf_action {
        option("--bpf-action", file.as_ref());
    }
    words.push("--".into());
    words.extend(typed.command.iter().cloned());
    words
}

fn options(
    typed: &flags::Eval,
    folder: &std::path::Path,
    capabilities: &Capabilities,
    done: Duration,
) -> Result<WatchOptions> {
    let whole = positive_duration("--for", &typed.run_for)?;
    let left = (whole - done).max(LEFT_MIN.min(whole));
    let refused = |error: clap::Error| {
        Error::new(ErrorKind::InvalidInput, "not what a watch of it takes")
            .found(error.to_string().lines().next().unwrap_or_default())
            .fix("rtscope watch --help says what --until, --task and --trigger take")
    };
    let command = Watch::augment_args(clap::Command::new("watch"));
    let matches = command
        .try_get_matches_from(words(typed, folder, left))
        .map_err(refused)?;
    let typed_watch = Watch::from_arg_matches(&matches).map_err(refused)?;
    let options = WatchOptions::new(&typed_watch, &capabilities.machine.cpus_online)?;
    Ok(WatchOptions {
        worst: Some(typed.worst).filter(|_| typed.trigger.is_empty()),
        rate: Rate {
            hits_max: 1,
            per: event::Duration::ZERO,
        },
        new_worst: false,
        ..options
    })
}

/// What goes on beside the application: loads, and intervals on their way to the disk.
pub(super) struct Beside<'a> {
    pub(super) loads: &'a mut Loads,
    pub(super) intervals: &'a mut Intervals,
}

/// How the application went, with all earlier runs of it.
pub(super) struct Went {
    pub(super) workload: Workload,
    pub(super) late: Late,
    /// In this run alone: for how long it was watched, what was judged, and the longest of that.
    pub(super) own: (Duration, u64, Option<Duration>),
}

/// Runs the application until the time is over or it ends, and says how it went, behind what
/// earlier runs of it left.
pub(super) fn run(
    typed: &flags::Eval,
    decided: &EvalOptions,
    capabilities: &Capabilities,
    (folder, before): (&std::path::Path, Option<&Record>),
    beside: Beside,
) -> Result<Went> {
    let done = before.map(Record::elapsed).unwrap_or_default();
    let mut options = options(typed, folder, capabilities, done)?;
    let mut ears = Ears::open(&options.triggers)?;
    let words = &options.command;
    let command = watch::hold(words, ears.as_mut(), Command::hold_while_we_live)?;
    let whom = watch::whom(&options, Some(&command));
    watch::meant(&mut options, &whom)?;
    let mut session = watch::session(&options)?;
    session.calls = ears.as_ref().map(|ears| ears.calls.clone());
    let mut running = Running {
        command,
        ears,
        beside,
        hits: WorstHits::new(typed.worst),
        said_late: 0,
        reported: 0,
        closed: (Tally::default(), 0),
        hurry: Some(Hurry::begin()),
    };
    let command_line = capture::own_command_line();
    let status = capture::watch::run(&session, capabilities, &command_line, &mut running)?;
    running.close(&status);
    let ended = running.command.end()?;
    let own = Tally::now(&status, running.said_late);
    let mut all = Tally::of(before);
    all.join(&own);
    let slept = match may_be_late(&options, &status) {
        true => status.inside.iter().map(|found| found.over).sum(),
        false => 0,
    };
    let samples = running.hits.explained(status.elapsed);
    let workload = Workload {
        command: typed.command.iter().map(text).collect(),
        judged: all.judged,
        longest: all.longest(),
        median: all.quantile(0.5),
        p99: all.quantile(0.99),
        said_late: (!typed.trigger.is_empty()).then_some(all.said_late),
        unseen: all.unseen,
        slept,
        elapsed: done + status.elapsed,
        asked: positive_duration("--for", &typed.run_for)?,
        ended: ended.map(ended_text),
        failed: ended.is_some_and(|status| !status.success()),
    };
    let late = Late {
        over: decided.over.unwrap_or_default(),
        explained: status.hits,
        suppressed: all.late - status.hits,
        lost: all.lost,
        cost: status.cost.programs,
        samples,
    };
    Ok(Went {
        workload,
        late,
        own: (status.elapsed, own.judged, own.longest()),
    })
}

fn text(word: &OsString) -> String {
    word.to_string_lossy().into_owned()
}

fn ended_text(status: ExitStatus) -> String {
    status.to_string()
}

/// The application while it runs.
struct Running<'a> {
    command: Command,
    ears: Option<Ears>,
    beside: Beside<'a>,
    hits: WorstHits,
    /// How often it said that it was late.
    said_late: u64,
    /// How many hits were told with their moment.
    reported: u64,
    /// What there was at the last close of an interval, and how many of these were told.
    closed: (Tally, u64),
    /// Until the watch is armed: that takes a second of a CPU, and ten where loads have most of it.
    hurry: Option<Hurry>,
}

impl Running<'_> {
    /// Whether it has ended, and all that it printed is read.
    fn is_over(&mut self) -> bool {
        let has_heard = self.ears.as_ref().is_none_or(Ears::have_heard_all);
        let ended = self.command.ended();
        ended.is_some_and(|since| has_heard || since.elapsed() > LAST_WORDS)
    }

    /// Closes an interval.
    fn close(&mut self, status: &Status) {
        let Beside { loads, intervals } = &mut self.beside;
        let now = Tally::now(status, self.said_late);
        let gained = now.since(&self.closed.0);
        let told = self.reported - self.closed.1;
        // Of the others nobody noted when they were.
        intervals
            .excursions
            .add(None, gained.late.saturating_sub(told));
        intervals.close_workload(status.elapsed, gained, loads.states());
        self.closed = (now, self.reported);
    }
}

impl WatchObserver for Running<'_> {
    fn armed(&mut self) -> Result<()> {
        self.hurry = None;
        self.beside.intervals.begin();
        self.command.go()
    }

    fn hit(&mut self, report: &HitReport) -> Result<()> {
        self.said_late += u64::from(report.called.is_some());
        self.reported += 1;
        let excursions = &mut self.beside.intervals.excursions;
        excursions.look_at_clock();
        let excursion = Excursion {
            thread: 0,
            at_wall_ns: excursions.wall_ns(report.hit.end.as_ns()),
            latency_ns: report.hit.latency().as_ns(),
        };
        excursions.add(Some(excursion), 0);
        self.hits.add(report);
        Ok(())
    }

    fn nothing_late(&mut self, _report: &CallReport) -> Result<()> {
        self.said_late += 1;
        Ok(())
    }

    fn status(&mut self, status: &Status) -> Result<bool> {
        if let Some(complaint) = self.beside.loads.look() {
            note!("{complaint}");
        }
        self.beside.intervals.excursions.look_at_clock();
        if self.beside.intervals.is_due(status.elapsed) {
            self.close(status);
        }
        let goes_on = !self.is_over() && signals::request() == Request::GoOn;
        if !goes_on {
            self.beside.loads.end();
        }
        Ok(goes_on)
    }
}
