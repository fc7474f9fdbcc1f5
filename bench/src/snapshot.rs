//! From a hit to a snapshot on disk, with full rings.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::background::Background;
use crate::late::{LateTask, THRESHOLD, VICTIM_NAME};
use crate::load::{self, Load};
use crate::options::Options;
use crate::report::{Bar, Report, Table, number, text};
use crate::stats::{max, median};

/// While it goes on, the watch still gets a CPU when it asks for one.
const GROUPS: u32 = 1;
const FDS: u32 = 1;

/// What is measured: the key of the JSON, a name, and what was promised of its median.
const PHASES: [(&str, &str, f64); 3] = [
    ("stopped_after_ns", "ring stopped after the hit", 1.0),
    ("running_after_ns", "running again after the hit", 20.0),
    ("on_disk_after_ns", "snapshot on disk after the hit", 100.0),
];

/// When the load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// Just before the hit: the rings are full, the machine is quiet.
    Hit,
    /// After the snapshot.
    Snapshot,
}

impl Until {
    fn name(self) -> &'static str {
        match self {
            Until::Hit => "ends at the hit",
            Until::Snapshot => "goes on",
        }
    }
}

/// Takes a snapshot again and again.
pub fn measure(options: &Options) -> Result<Report> {
    load::require()?;
    let count = options.pick(10, 1);
    let fill = Duration::from_millis(options.pick(3_000, 300));
    let mut all = [(Until::Hit, Vec::new()), (Until::Snapshot, Vec::new())];
    for _ in 0..count {
        for (until, taken) in &mut all {
            taken.push(Taken::of(options, fill, *until)?);
        }
    }
    let mut bars = Vec::new();
    let mut rows = Vec::new();
    for (until, taken) in &all {
        for (index, (_, name, limit_ms)) in PHASES.iter().enumerate() {
            let values: Vec<f64> = taken.iter().map(|taken| taken.phases_ms[index]).collect();
            let middle = median(&values);
            rows.push(vec![
                text(until.name()),
                text(*name),
                number(middle.context("no snapshot")?, 2),
                number(max(&values).context("no snapshot")?, 2),
            ]);
            bars.extend((*until == Until::Hit).then(|| Bar {
                what: (*name).into(),
                found: middle,
                limit: *limit_ms,
                unit: "ms",
            }));
        }
    }
    let timing = Table {
        columns: vec!["load", "what", "median, ms", "max, ms"],
        rows,
    };
    Ok(Report {
        title: "From a hit to a snapshot on disk",
        command: "bench snapshot".into(),
        setting: format!(
            "{count} × `rtscope watch` with 4 MiB of ring per CPU, filled for {} s by hackbench \
             ({GROUPS} group of {FDS} + {FDS} threads), then one hit by a real-time hog. The load \
             ends just before the hit, or goes on. On disk = converted to CTF, written and \
             renamed; not synced.",
            fill.as_secs_f64()
        ),
        tables: vec![timing, sizes(&all)],
        bars,
        remarks: vec![stopped_by_kernel(&all)],
    })
}

/// One snapshot.
struct Taken {
    phases_ms: Vec<f64>,
    events: f64,
    trace_mb: f64,
    stopped_by_kernel: bool,
}

impl Taken {
    fn of(options: &Options, fill: Duration, until: Until) -> Result<Taken> {
        let folder = tempfile::tempdir()?;
        let experiment = LateTask::start()?;
        let mut watch = Command::new(&options.rtscope);
        watch.args([
            "watch",
            "--json",
            "--task",
            VICTIM_NAME,
            "--over",
            THRESHOLD,
        ]);
        watch.args(["--max-hits=1", "--for=60s", "--output"]);
        watch.arg(folder.path());
        let mut watch = Background::start(watch)?;
        let load = Load::start(GROUPS, FDS)?;
        std::thread::sleep(fill);
        let load = (until == Until::Snapshot).then_some(load);
        experiment.provoke()?;
        let line = watch.line()?;
        drop(load);
        drop(watch);
        experiment.finish()?;
        Taken::from_line(&line)
    }

    fn from_line(line: &str) -> Result<Taken> {
        let hit: Value = serde_json::from_str(line).context("the watch's line is no JSON")?;
        let snapshot = &hit["snapshot"];
        let Some(path) = snapshot["path"].as_str() else {
            bail!("no snapshot in {line}");
        };
        let value = |key: &str| {
            let value = snapshot[key].as_f64();
            value.with_context(|| format!("no {key} in {line}"))
        };
        let mut phases_ms = Vec::new();
        for (key, ..) in PHASES {
            phases_ms.push(value(key)? / 1e6);
        }
        Ok(Taken {
            phases_ms,
            events: value("events")?,
            trace_mb: size_bytes(&Path::new(path).join("kernel"))? as f64 / 1e6,
            stopped_by_kernel: snapshot["stopped_by_kernel"] == true,
        })
    }
}

/// The bytes of the files in `folder`, not below it.
fn size_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

fn sizes(all: &[(Until, Vec<Taken>)]) -> Table {
    let row = |(until, taken): &(Until, Vec<Taken>)| {
        let of = |value: fn(&Taken) -> f64| {
            median(&taken.iter().map(value).collect::<Vec<_>>()).unwrap_or_default()
        };
        let (events, megabytes) = (of(|taken| taken.events), of(|taken| taken.trace_mb));
        vec![text(until.name()), number(events, 0), number(megabytes, 1)]
    };
    Table {
        columns: vec!["load", "events (median)", "trace, MB (median)"],
        rows: all.iter().map(row).collect(),
    }
}

fn stopped_by_kernel(all: &[(Until, Vec<Taken>)]) -> String {
    let taken = || all.iter().flat_map(|(_, taken)| taken);
    let stopped = taken().filter(|taken| taken.stopped_by_kernel).count();
    format!(
        "{stopped} of {} rings were stopped by the kernel itself, the others by our thread.",
        taken().count()
    )
}
