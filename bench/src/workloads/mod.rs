//! What a watch of a named, busy program costs: the workloads of the seed's tables, for real. Each
//! alone and beside each way to watch, in an order that is drawn for each round.

mod mariadb;
mod memcached;
mod network;
mod programs;
mod sysbench;

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::accounted::Accounted;
use crate::background::Background;
use crate::child;
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};
use crate::stats::{Comparison, Random, median};
use programs::Load;

const ROUNDS: usize = 20;
/// Longer than what any of them is late here by itself: reports are no part of what is measured.
const OVER: &str = "50ms";

/// A workload, and what is known of it.
struct Workload {
    name: &'static str,
    /// Without one of these programs it is left out.
    programs: &'static [&'static str],
    /// How its busy tasks are named.
    process: &'static str,
    /// By how much the seed's tracker prolonged it, in percent of the time alone.
    seed_percent: f64,
    /// Of the accounted cost, of all CPUs.
    limit_percent: f64,
    start: fn(&Options) -> Result<Box<dyn Load>>,
}

/// The seed's rows; its network was a card of 10 Gbit/s.
const WORKLOADS: [Workload; 6] = [
    Workload {
        name: "CPU (sysbench)",
        programs: &["sysbench"],
        process: "sysbench",
        seed_percent: 0.0,
        limit_percent: 0.3,
        start: sysbench::cpu,
    },
    Workload {
        name: "memory (sysbench)",
        programs: &["sysbench"],
        process: "sysbench",
        seed_percent: 0.3,
        limit_percent: 0.3,
        start: sysbench::memory,
    },
    Workload {
        name: "file read and write (sysbench)",
        programs: &["sysbench"],
        process: "sysbench",
        seed_percent: 5.1,
        limit_percent: 2.0,
        start: sysbench::file,
    },
    Workload {
        name: "network (iperf3, two namespaces)",
        programs: &["iperf3", "ip"],
        process: "iperf3",
        seed_percent: 3.89,
        limit_percent: 2.0,
        start: network::start,
    },
    Workload {
        name: "OLTP (sysbench, MariaDB)",
        programs: &["sysbench", "mariadbd", "mariadb-install-db", "mariadb"],
        process: "mariadbd",
        seed_percent: 4.84,
        limit_percent: 2.0,
        start: mariadb::start,
    },
    Workload {
        name: "memcached, 10,000 requests",
        programs: &["memcached"],
        process: "memcached",
        seed_percent: 5.9,
        limit_percent: 2.0,
        start: memcached::start,
    },
];

/// How one watches.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    is_named: bool,
    has_recorder: bool,
}

const WAYS: [Way; 3] = [
    Way {
        name: "watch --no-snapshot",
        is_named: false,
        has_recorder: false,
    },
    Way {
        name: "watch --process X --no-snapshot",
        is_named: true,
        has_recorder: false,
    },
    Way {
        name: "watch --process X",
        is_named: true,
        has_recorder: true,
    },
];

/// What was found of one workload: its times alone, and of each way its times and accounted costs.
struct Found {
    alone_s: Vec<f64>,
    beside_s: Vec<Vec<f64>>,
    costs_percent: Vec<Vec<f64>>,
}

/// All that this machine has the programs for.
pub fn measure(options: &Options) -> Result<Report> {
    let rounds = options.rounds.unwrap_or(options.pick(ROUNDS, 1));
    let (mut rows, mut bars, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
    for workload in &WORKLOADS {
        let absent = workload.programs.iter().find(|name| !child::exists(name));
        if let Some(absent) = absent {
            remarks.push(format!(
                "Not measured: {}, without {absent}.",
                workload.name
            ));
            continue;
        }
        eprintln!("  {}", workload.name);
        let load = (workload.start)(options).with_context(|| workload.name)?;
        let found =
            compare(options, workload, load.as_ref(), rounds).with_context(|| workload.name)?;
        rows.extend(rows_of(workload, &found));
        bars.extend(bars_of(workload, &found));
    }
    Ok(Report {
        title: "A watch of a busy program",
        command: "bench workloads".into(),
        setting: format!(
            "Each workload alone and beside each watch, {rounds} rounds of all in an order that is \
             drawn anew each time. Accounted: run time of our programs by the kernel's own \
             accounting, without its measuring, and CPU time of our process, its begin and its end \
             with it, of all CPUs. Time: median, and its change by pairs of one round; the \
             kernel's measuring is in it, which ends ten seconds after a watch began. The seed's: \
             by how much its tracker, a kernel module, prolonged the same kind of work on a \
             machine of its own."
        ),
        tables: vec![Table {
            columns: vec![
                "workload",
                "beside",
                "accounted, %",
                "a run, s (median)",
                "change, % (95 % interval)",
                "the seed's, %",
            ],
            rows,
        }],
        bars,
        remarks,
    })
}

/// So many rounds of all ways.
fn compare(
    options: &Options,
    workload: &Workload,
    load: &dyn Load,
    rounds: usize,
) -> Result<Found> {
    // Once for the caches.
    load.run_s()?;
    let mut found = Found {
        alone_s: Vec::new(),
        beside_s: vec![Vec::new(); WAYS.len()],
        costs_percent: vec![Vec::new(); WAYS.len()],
    };
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..rounds {
        for place in random.shuffled(WAYS.len() + 1) {
            let Some(way) = WAYS.get(place) else {
                found.alone_s.push(load.run_s()?);
                continue;
            };
            let folder = tempfile::tempdir()?;
            let mut watch = watch(options, *way, workload.process);
            watch.current_dir(folder.path());
            let background = Background::start(watch)?;
            found.beside_s[place].push(load.run_s()?);
            let end: Value = serde_json::from_str(&background.finish()?)
                .context("the watch's last line is no JSON")?;
            let cost = Accounted::from_end_line(&end).map(|cost| cost.share_percent());
            found.costs_percent[place].extend(cost);
        }
    }
    Ok(found)
}

fn watch(options: &Options, way: Way, process: &str) -> Command {
    // It runs in another folder.
    let program = std::path::absolute(&options.rtscope);
    let mut command = Command::new(program.unwrap_or_else(|_| options.rtscope.clone()));
    command.args(["watch", "--json", "--over", OVER]);
    if way.is_named {
        command.args(["--process", process]);
    }
    if !way.has_recorder {
        command.arg("--no-snapshot");
    }
    command
}

fn rows_of(workload: &Workload, found: &Found) -> Vec<Vec<Cell>> {
    let row = |beside: &str, cost: Option<f64>, times_s: &[f64], change: Cell, seed: Cell| {
        let time = median(times_s).map_or(Cell::None, |s| number(s, 3));
        let cost = cost.map_or(Cell::None, |percent| number(percent, 2));
        vec![text(workload.name), text(beside), cost, time, change, seed]
    };
    let mut rows = vec![row("none", None, &found.alone_s, Cell::None, Cell::None)];
    for (place, way) in WAYS.iter().enumerate() {
        let times_s = &found.beside_s[place];
        let pairs: Vec<_> = found
            .alone_s
            .iter()
            .copied()
            .zip(times_s.iter().copied())
            .collect();
        let change = Comparison::of(&pairs).map_or(Cell::None, |change| text(change.words()));
        let cost = median(&found.costs_percent[place]);
        let seed = match way.is_named {
            true => number(workload.seed_percent, 2),
            false => Cell::None,
        };
        rows.push(row(way.name, cost, times_s, change, seed));
    }
    rows
}

/// One for each way that names the program.
fn bars_of(workload: &Workload, found: &Found) -> Vec<Bar> {
    let named = WAYS.iter().enumerate().filter(|(_, way)| way.is_named);
    named
        .map(|(place, way)| Bar {
            what: format!("{}: {}", workload.name, way.name),
            found: median(&found.costs_percent[place]),
            limit: workload.limit_percent,
            unit: "% of all CPUs",
        })
        .collect()
}
