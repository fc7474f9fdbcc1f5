//! What a whole watch costs: accounted time, and its effect on hackbench.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::accounted::Accounted;
use crate::background::Background;
use crate::child;
use crate::load::{self, Load};
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};
use crate::stats::{Comparison, median};
use crate::trackers;

/// Of a watch without the flight recorder.
const SHARE_PERCENT_MAX: f64 = 3.0;
const GROUPS: u32 = 2;
const FDS: u32 = 2;
/// A task that is watched by name and does not run.
const NOBODY: [&str; 2] = ["--task", "nobody-here"];

/// A way to watch.
struct Way {
    name: &'static str,
    flags: &'static [&'static str],
    recorder: bool,
    /// Whether the bar is on it.
    is_promised: bool,
}

const WAYS: [Way; 4] = [
    Way {
        name: "watch --no-snapshot",
        flags: &[],
        recorder: false,
        is_promised: true,
    },
    Way {
        name: "watch --task X --no-snapshot, X elsewhere",
        flags: &NOBODY,
        recorder: false,
        is_promised: true,
    },
    Way {
        name: "watch --task 'hackbench*' --no-snapshot",
        flags: &["--task", "hackbench*"],
        recorder: false,
        is_promised: false,
    },
    Way {
        name: "watch, with the flight recorder",
        flags: &[],
        recorder: true,
        is_promised: false,
    },
];

/// Measures every way under the same load, then hackbench with and without.
pub fn measure(options: &Options) -> Result<Report> {
    load::require()?;
    let seconds = options.pick(20, 1);
    let mut accounted = Table {
        columns: vec![
            "watch",
            "calls/s",
            "a call, ns",
            "programs, %",
            "process, %",
            "together, %",
        ],
        rows: Vec::new(),
    };
    let mut bars = Vec::new();
    for way in &WAYS {
        let cost = account(options, way, seconds)?;
        accounted.rows.push(cost_row(&cost, way.name));
        bars.extend(way.is_promised.then(|| Bar {
            what: way.name.into(),
            found: Some(cost.share_percent()),
            limit: SHARE_PERCENT_MAX,
            unit: "% of all CPUs",
        }));
    }
    let rounds = options.pick(10, 1);
    let loops = options.pick(400_000, 1_000);
    let throughput = throughput(options, rounds, loops)?;
    let (by_tracker, of_trackers) = trackers::measure(options)?;
    bars.extend(of_trackers);
    Ok(Report {
        title: "A whole watch",
        command: "bench watch".into(),
        setting: format!(
            "Accounted cost: run time of our programs by the kernel's own accounting (without its \
             measuring, which a call's time has in it) and CPU time of our process, over \
             elapsed time × CPUs, from the watch's `end` line; {seconds} s each under \
             hackbench ({GROUPS} groups of {FDS} + {FDS} threads, pipes) and a 1 kHz timer. Then \
             hackbench's own time for {loops} loops, {rounds} rounds of all ways in turn. Then \
             each tracker of all tasks beside an empty program, under hackbench, connections over \
             loopback and writes to a file: the average of its programs' calls, by the kernel's \
             own measuring."
        ),
        tables: vec![accounted, throughput, by_tracker],
        bars,
        remarks: vec![
            "With the flight recorder, the recorder's own work in the tracepoints is not in the \
             accounted figures; hackbench's time shows it."
                .into(),
        ],
    })
}

/// Measures one way under the load.
fn account(options: &Options, way: &Way, seconds: u64) -> Result<Accounted> {
    let folder = tempfile::tempdir()?;
    let load = Load::start(GROUPS, FDS)?;
    let mut command = watch(&options.rtscope, way, folder.path());
    command.arg(format!("--for={seconds}s"));
    let text = child::output(&mut command)?;
    drop(load);
    let end = text.lines().last().unwrap_or_default();
    let end: Value = serde_json::from_str(end).context("the watch's last line is no JSON")?;
    Accounted::from_end_line(&end).with_context(|| format!("no cost in {end}"))
}

fn cost_row(cost: &Accounted, name: &str) -> Vec<Cell> {
    vec![
        text(name),
        number(cost.calls_per_s, 0),
        number(cost.call_ns, 1),
        number(cost.programs_percent, 2),
        number(cost.process_percent, 2),
        number(cost.share_percent(), 2),
    ]
}

fn watch(rtscope: &Path, way: &Way, folder: &Path) -> Command {
    let mut command = Command::new(rtscope);
    command.args(["watch", "--json"]).args(way.flags);
    if way.recorder {
        command.arg("--output").arg(folder);
    } else {
        command.arg("--no-snapshot");
    }
    command
}

/// hackbench's time alone and beside each way to watch, in turn.
fn throughput(options: &Options, rounds: usize, loops: u64) -> Result<Table> {
    let folder = tempfile::tempdir()?;
    let mut alone_s = Vec::new();
    let mut beside_s = vec![Vec::new(); WAYS.len()];
    for _ in 0..rounds {
        let alone = load::hackbench_s(GROUPS, FDS, loops)?;
        alone_s.push(alone);
        for (way, times_s) in WAYS.iter().zip(&mut beside_s) {
            let background = Background::start(watch(&options.rtscope, way, folder.path()))?;
            times_s.push(load::hackbench_s(GROUPS, FDS, loops)?);
            drop(background);
        }
    }
    let row = |name: &str, times_s: &[f64], change: Cell| {
        let median = median(times_s).map_or(Cell::None, |s| number(s, 3));
        vec![text(name), median, change]
    };
    let mut rows = vec![row("none", &alone_s, Cell::None)];
    for (way, times_s) in WAYS.iter().zip(&beside_s) {
        let pairs: Vec<_> = alone_s
            .iter()
            .copied()
            .zip(times_s.iter().copied())
            .collect();
        let change = Comparison::of(&pairs).map_or(Cell::None, |change| text(change.words()));
        rows.push(row(way.name, times_s, change));
    }
    Ok(Table {
        columns: vec![
            "beside hackbench",
            "hackbench, s (median)",
            "change, % (95 % interval)",
        ],
        rows,
    })
}
