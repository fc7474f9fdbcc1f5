//! The reports and a diagnosis over many events: time and memory, beside lttng-analyses where it is
//! installed. Within six minutes; it says where it is.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::child::{self, Taken};
use crate::diagnose::record_for;
use crate::load;
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};
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
pub const TOGETHER: &str = "cputop,schedtop,schedstats,schedfreq,irqstats,irqfreq,iousagetop,\
                        iolatencytop,iolatencystats,iolatencyfreq,memtop,syscallstats";
/// The views of LTTV and Trace Compass that need neither a task nor functions' events.
pub const VIEWS: &str = "intervals,irqs,states,resources,dependency,futex";
/// Promised: a hundredth of the peer's time.
const SHARE_MAX: f64 = 0.01;
/// Promised: three million events a second.
const TOGETHER_SECONDS_MAX: f64 = 1.0 / 3.0;
const MEMORY_MB_MAX: f64 = 300.0;
const MILLION: f64 = 1e6;
/// What memory may not grow with is only seen over many events.
const EVENTS_MIN: f64 = 20e6;
const SECONDS_FIRST: u32 = 20;
const SECONDS_MAX: u32 = 90;

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
    let mut run = Run {
        options,
        rounds: options.pick(3, 1),
        events: record_many(options, &large)?,
        trace: &large,
        rows: Vec::new(),
        memory_mb: 0.0,
    };
    let peer = peer();
    let events_of_peer = match &peer {
        Some(_) => record_for(options, 1, &small)?,
        None => 0.0,
    };
    let mut shares = Vec::new();
    // The peer takes a second for each.
    for name in options.pick(&NAMES[..], &NAMES[..2]) {
        let ours = run.of(&format!("rtscope report {name}"), &["report", name])?;
        let Some(folder) = &peer else { continue };
        eprintln!("  lttng-{name}");
        let theirs = repeat(1, || child::run(&mut of_peer(folder, name, &small)))?;
        run.row(&format!("lttng-{name}"), events_of_peer, &theirs);
        shares.push(ours / (theirs.seconds / events_of_peer));
    }
    let together = run.of("twelve reports in one pass", &["report", TOGETHER])?;
    let all = format!("{TOGETHER},{VIEWS}");
    let with_views = run.of("with six views in the same pass", &["report", &all])?;
    // It goes back over all that these threads did.
    let words = ["report", "criticalpath", "--procname", "hackbench"];
    run.of("rtscope report criticalpath", &words)?;
    let diagnosis = run.of("rtscope diagnose", &["diagnose"])?;
    let events = run.events;
    let remarks = match peer {
        Some(_) => Vec::new(),
        None => vec!["lttng-analyses is not installed: no comparison.".into()],
    };
    Ok(Report {
        title: "The reports",
        command: "bench reports".into(),
        setting: format!(
            "{events:.0} events of `rtscope record` under hackbench; {} runs each, warm \
             cache, output thrown away. The peer reads {events_of_peer:.0} events, once. Memory \
             by wait4.",
            run.rounds
        ),
        bars: bars(max(&shares), [together, with_views, diagnosis], &run),
        tables: vec![Table {
            columns: COLUMNS.to_vec(),
            rows: run.rows,
        }],
        remarks,
    })
}

const COLUMNS: [&str; 5] = [
    "reader",
    "events",
    "wall, s (median)",
    "events/s",
    "memory, MB (max)",
];

/// The readings so far.
struct Run<'a> {
    options: &'a Options,
    rounds: usize,
    trace: &'a Path,
    events: f64,
    rows: Vec<Vec<Cell>>,
    memory_mb: f64,
}

impl Run<'_> {
    /// Runs a verb of ours over the large trace, and gives its seconds for an event.
    fn of(&mut self, name: &str, words: &[&str]) -> Result<f64> {
        eprintln!("  {name}");
        let readings = repeat(self.rounds, || {
            let mut command = Command::new(&self.options.rtscope);
            command.args(words).arg(self.trace);
            if words[0] == "report" {
                command.arg("--no-intersection");
            }
            child::run(&mut command)
        })?;
        self.memory_mb = self.memory_mb.max(readings.memory_mb);
        self.row(name, self.events, &readings);
        Ok(readings.seconds / self.events)
    }

    fn row(&mut self, name: &str, events: f64, readings: &Readings) {
        self.rows.push(vec![
            text(name),
            number(events, 0),
            number(readings.seconds, 3),
            number(events / readings.seconds, 0),
            number(readings.memory_mb, 0),
        ]);
    }
}

/// What is promised.
fn bars(
    share: Option<f64>,
    [together, with_views, diagnosis]: [f64; 3],
    run: &Run<'_>,
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
            what: "diagnose, time for a million events".into(),
            found: Some(diagnosis * MILLION),
            limit: TOGETHER_SECONDS_MAX,
            unit: "s",
        },
        Bar {
            what: format!("memory for {:.0} events", run.events),
            found: Some(run.memory_mb),
            limit: MEMORY_MB_MAX,
            unit: "MB",
        },
    ]
}

/// Records for longer when the first recording is not large enough; a busy machine records less.
fn record_many(options: &Options, trace: &Path) -> Result<f64> {
    eprintln!("  recording");
    let events = record_for(options, options.pick(SECONDS_FIRST, 1), trace)?;
    if options.small || events >= EVENTS_MIN {
        return Ok(events);
    }
    std::fs::remove_dir_all(trace).context("cannot remove the first recording")?;
    let seconds = f64::from(SECONDS_FIRST) * EVENTS_MIN / events * 1.1;
    let seconds = (seconds.ceil() as u32).min(SECONDS_MAX);
    eprintln!("  recording again for {seconds} s: {events:.0} events are too few");
    record_for(options, seconds, trace)
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
