//! The reports over many events: time and memory, beside lttng-analyses where it is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::child::{self, Taken};
use crate::diagnose::record_for;
use crate::load;
use crate::options::Options;
use crate::report::{Bar, Report, Table, number, text};
use crate::stats::{max, median};

/// Reports that the peer has too, one of each family.
const NAMES: [&str; 6] = [
    "cputop",
    "schedtop",
    "irqstats",
    "iousagetop",
    "memtop",
    "syscallstats",
];
/// Asked together: a report of each family that sums up, and none that lists every event.
const TOGETHER: &str = "cputop,schedtop,schedstats,schedfreq,irqstats,irqfreq,iousagetop,\
                        iolatencytop,iolatencystats,iolatencyfreq,memtop,syscallstats";
/// The views of LTTV and Trace Compass that need neither a task nor functions' events.
const VIEWS: &str = "intervals,irqs,states,resources,dependency,futex";
/// Promised: a hundredth of the peer's time.
const SHARE_MAX: f64 = 0.01;
/// Promised: three million events a second.
const TOGETHER_SECONDS_MAX: f64 = 1.0 / 3.0;
const MEMORY_MB_MAX: f64 = 300.0;
const MILLION: f64 = 1e6;

/// What a reader took, run after run.
struct Readings {
    seconds: f64,
    memory_mb: f64,
}

/// Records, then reads again and again.
pub fn measure(options: &Options) -> Result<Report> {
    load::require()?;
    let folder = tempfile::tempdir()?;
    let (large, small) = (folder.path().join("large"), folder.path().join("small"));
    let events = record_for(options, options.pick(20, 1), &large)?;
    let peer = peer();
    let events_of_peer = match &peer {
        Some(_) => record_for(options, 1, &small)?,
        None => 0.0,
    };
    let rounds = options.pick(5, 1);
    let mut table = Table {
        columns: vec![
            "reader",
            "events",
            "wall, s (median)",
            "events/s",
            "memory, MB (max)",
        ],
        rows: Vec::new(),
    };
    let mut row = |name: &str, events: f64, readings: &Readings| {
        table.rows.push(vec![
            text(name),
            number(events, 0),
            number(readings.seconds, 3),
            number(events / readings.seconds, 0),
            number(readings.memory_mb, 0),
        ]);
    };
    let of = |names: &str| repeat(rounds, || child::run(&mut report(options, names, &large)));
    let (mut shares, mut memory_mb) = (Vec::new(), 0.0_f64);
    for name in NAMES {
        let ours = of(name)?;
        row(&format!("rtscope report {name}"), events, &ours);
        memory_mb = memory_mb.max(ours.memory_mb);
        if let Some(folder) = &peer {
            let theirs = repeat(1, || child::run(&mut of_peer(folder, name, &small)))?;
            row(&format!("lttng-{name}"), events_of_peer, &theirs);
            shares.push((ours.seconds / events) / (theirs.seconds / events_of_peer));
        }
    }
    let together = of(TOGETHER)?;
    row("twelve reports in one pass", events, &together);
    let with_views = of(&format!("{TOGETHER},{VIEWS}"))?;
    row("with six views in the same pass", events, &with_views);
    memory_mb = memory_mb.max(together.memory_mb).max(with_views.memory_mb);
    let remarks = match peer {
        Some(_) => Vec::new(),
        None => vec!["lttng-analyses is not installed: no comparison.".into()],
    };
    Ok(Report {
        title: "The reports",
        command: "bench reports".into(),
        setting: format!(
            "{events:.0} events of `rtscope record` under hackbench; {rounds} runs each, warm \
             cache, output thrown away. The peer reads {events_of_peer:.0} events, once. Memory \
             by wait4."
        ),
        tables: vec![table],
        bars: bars(
            max(&shares),
            [together.seconds / events, with_views.seconds / events],
            memory_mb,
            events,
        ),
        remarks,
    })
}

/// What is promised.
fn bars(
    share: Option<f64>,
    [together, with_views]: [f64; 2],
    memory_mb: f64,
    events: f64,
) -> Vec<Bar> {
    vec![
        Bar {
            what: "the slowest report, as a share of the peer's time for an event".into(),
            found: share,
            limit: SHARE_MAX,
            unit: "of it",
        },
        Bar {
            what: "twelve reports in one pass, time for a million events".into(),
            found: Some(together * MILLION),
            limit: TOGETHER_SECONDS_MAX,
            unit: "s",
        },
        Bar {
            what: "the same with six views, time for a million events".into(),
            found: Some(with_views * MILLION),
            limit: TOGETHER_SECONDS_MAX,
            unit: "s",
        },
        Bar {
            what: format!("memory for {events:.0} events"),
            found: Some(memory_mb),
            limit: MEMORY_MB_MAX,
            unit: "MB",
        },
    ]
}

/// Where the peer's commands are: in the search path, or where its test installed them.
fn peer() -> Option<PathBuf> {
    if child::exists("lttng-cputop") {
        return Some(PathBuf::new());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let folder = cache.join("rtscope/lttng-analyses-0.6.1/bin");
    folder.join("lttng-cputop").exists().then_some(folder)
}

fn report(options: &Options, names: &str, trace: &Path) -> Command {
    let mut command = Command::new(&options.rtscope);
    command.args(["report", names, "--no-intersection"]);
    command.arg(trace);
    command
}

fn of_peer(folder: &Path, name: &str, trace: &Path) -> Command {
    let mut command = Command::new(folder.join(format!("lttng-{name}")));
    command.args(["--no-progress", "--skip-validation", "--no-intersection"]);
    command.arg(trace.join("kernel"));
    // It calls babeltrace and its own interpreter by name.
    if let (Some(path), false) = (std::env::var_os("PATH"), folder.as_os_str().is_empty()) {
        let mut search = folder.as_os_str().to_owned();
        search.push(":");
        search.push(path);
        command.env("PATH", search);
    }
    command
}

fn repeat(rounds: usize, once: impl Fn() -> Result<Taken>) -> Result<Readings> {
    let all = (0..rounds).map(|_| once()).collect::<Result<Vec<_>>>()?;
    let seconds: Vec<f64> = all.iter().map(|taken| taken.wall.as_secs_f64()).collect();
    let bytes = all.iter().map(|taken| taken.resident_bytes_max);
    Ok(Readings {
        seconds: median(&seconds).context("no run")?,
        memory_mb: bytes.max().unwrap_or(0) as f64 / MILLION,
    })
}
