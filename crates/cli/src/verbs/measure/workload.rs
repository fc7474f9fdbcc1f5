//! An application in the place of the threads that sleep, under the same loads: judged as `watch`
//! judges it, or by what it says itself.

use std::ffi::OsString;
use std::process::ExitStatus;

use capture::watch::{CallReport, HitReport, Status, WatchObserver};
use clap::{Args as _, FromArgMatches as _};
use event::{Error, ErrorKind, Result};
use host::capabilities::Capabilities;
use report::{Late, Workload};

use super::loads::Loads;
use super::worst::WorstHits;
use crate::flags::{self, Watch};
use crate::options::{EvalOptions, Rate, WatchOptions};
use crate::signals::{self, Request};
use crate::verbs::watch::{self, Command, Ears, LAST_WORDS, hit_value};

/// Where snapshots are in the folder of the evaluation.
const SNAPSHOTS: &str = "snapshots";

/// What `watch` would have been told.
fn words(typed: &flags::Eval, folder: &std::path::Path) -> Vec<OsString> {
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
    option("--for", typed.run_for.as_ref());
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
) -> Result<WatchOptions> {
    let refused = |error: clap::Error| {
        Error::new(ErrorKind::InvalidInput, "not what a watch of it takes")
            .found(error.to_string().lines().next().unwrap_or_default())
            .fix("rtscope watch --help says what --until, --task and --trigger take")
    };
    let command = Watch::augment_args(clap::Command::new("watch"));
    let matches = command
        .try_get_matches_from(words(typed, folder))
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

/// Runs the application until the time is over or it ends, and says how it went; the worst of what
/// was late is in `hits`.
pub(super) fn run(
    typed: &flags::Eval,
    decided: &EvalOptions,
    capabilities: &Capabilities,
    (folder, loads): (&std::path::Path, &mut Loads),
) -> Result<(Workload, Late)> {
    let mut options = options(typed, folder, capabilities)?;
    let mut ears = Ears::open(&options.triggers)?;
    let command = watch::hold(&options.command, ears.as_mut())?;
    let whom = watch::whom(&options, Some(&command));
    watch::meant(&mut options, &whom)?;
    let mut session = watch::session(&options)?;
    session.calls = ears.as_ref().map(|ears| ears.calls.clone());
    let mut running = Running {
        command,
        ears,
        loads,
        hits: WorstHits::new(typed.worst),
        said_late: 0,
    };
    let command_line = capture::own_command_line();
    let status = capture::watch::run(&session, capabilities, &command_line, &mut running)?;
    let ended = running.command.end()?;
    let statistics = &status.statistics;
    let quantile = |share: f64| statistics.histogram.quantile(share);
    let samples: Vec<_> = running.hits.reports.iter().map(hit_value).collect();
    let workload = Workload {
        command: typed.command.iter().map(text).collect(),
        judged: statistics.samples,
        longest: (statistics.samples > 0).then_some(statistics.worst),
        median: quantile(0.5),
        p99: quantile(0.99),
        said_late: (!typed.trigger.is_empty()).then_some(running.said_late),
        unseen: statistics.lost + statistics.dropped + statistics.unjudged(),
        elapsed: status.elapsed,
        ended: ended.map(ended_text),
        failed: ended.is_some_and(|status| !status.success()),
    };
    let late = Late {
        over: decided.over.unwrap_or_default(),
        explained: status.hits,
        suppressed: statistics.suppressed,
        lost: statistics.lost,
        cost: status.cost.programs,
        samples,
    };
    Ok((workload, late))
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
    loads: &'a mut Loads,
    hits: WorstHits,
    /// How often it said that it was late.
    said_late: u64,
}

impl Running<'_> {
    /// Whether it has ended, and all that it printed is read.
    fn is_over(&mut self) -> bool {
        let has_heard = self.ears.as_ref().is_none_or(Ears::have_heard_all);
        let ended = self.command.ended();
        ended.is_some_and(|since| has_heard || since.elapsed() > LAST_WORDS)
    }
}

impl WatchObserver for Running<'_> {
    fn armed(&mut self) -> Result<()> {
        self.command.go()
    }

    fn hit(&mut self, report: &HitReport) -> Result<()> {
        self.said_late += u64::from(report.called.is_some());
        self.hits.add(report);
        Ok(())
    }

    fn nothing_late(&mut self, _report: &CallReport) -> Result<()> {
        self.said_late += 1;
        Ok(())
    }

    fn status(&mut self, _status: &Status) -> Result<bool> {
        if let Some(complaint) = self.loads.look() {
            eprintln!("{complaint}");
        }
        Ok(!self.is_over() && signals::request() == Request::GoOn)
    }
}
