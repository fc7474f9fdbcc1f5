//! The measurements beside cyclictest and oslat: the same CPU, the same interval, in turn.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::child::{self, Taken};
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};
use crate::stats::{Comparison, median};

/// Who measures, and how.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// cyclictest as it is.
    Theirs,
    /// cyclictest whose main thread, which wakes every 10 ms, is kept on the first CPU.
    Apart,
    /// `measure cyclic` under cyclictest's name, with a main thread that does the same.
    Named,
    /// `measure cyclic`, whose main thread keeps off the measured CPU.
    Ours,
    /// `measure cyclic --phases`.
    Phases,
}

const WAYS: [Way; 5] = [Way::Theirs, Way::Apart, Way::Named, Way::Ours, Way::Phases];
/// Where the main thread goes: the measuring one is on the last CPU.
const MAIN_AFFINITY: &str = "--mainaffinity=0";

/// What both are told, but for the number of samples and the CPU.
const PLAN: [&str; 9] = ["-m", "-q", "-N", "-t", "1", "-p", "80", "-i", "1000"];
/// From one instant to the next, in seconds: PLAN's -i.
const INTERVAL_S: f64 = 1e-3;
/// A difference below this, or below this share, is none.
const SAME_NS: f64 = 1_000.0;
const SAME_SHARE: f64 = 0.05;
/// CPU time over cyclictest's.
const CPU_RATIO_MAX: f64 = 1.0;
const CPU_RATIO_PHASES_MAX: f64 = 1.5;
/// Readings of the counter a second, in millions.
const READINGS_MIN: f64 = 10.0;

/// A figure of a run, and its name.
type Figure = (&'static str, fn(&Run) -> f64);

/// One run of cyclictest, or of ours.
#[derive(Clone, Copy)]
struct Run {
    min_ns: f64,
    mean_ns: f64,
    cpu_s: f64,
    /// Of a run of one sample: start and end of the process.
    start_s: f64,
}

impl Run {
    /// What measuring itself took.
    fn measuring_s(&self) -> f64 {
        self.cpu_s - self.start_s
    }
}

/// Measures latencies in pairs, then the loops that look for gaps.
pub fn measure(options: &Options) -> Result<Report> {
    for peer in ["cyclictest", "oslat"] {
        if !child::exists(peer) {
            bail!("there is no {peer}: apt install rt-tests");
        }
    }
    let folder = tempfile::tempdir()?;
    let pairs = options.pick(12, 2);
    let samples = options.pick(6_000, 200);
    let cpu = last_cpu()?;
    let mut runs: [Vec<Run>; WAYS.len()] = Default::default();
    for pair in 0..pairs {
        // Who comes first changes, so that a drift of the machine favours nobody.
        let mut order = WAYS;
        if pair % 2 == 1 {
            order.reverse();
        }
        for way in order {
            let start = run(way, options, &cpu, 1, folder.path())?;
            let whole = run(way, options, &cpu, samples, folder.path())?;
            runs[way as usize].push(Run {
                start_s: start.cpu_s,
                ..whole
            });
        }
    }
    let [theirs, apart, named, ours, phases] = &runs;
    let mut bars = Vec::new();
    let table = latencies([(theirs, named), (apart, ours)], &mut bars);
    let costs = costs(theirs, [named, ours, phases], samples, &mut bars);
    let loops = loops(options, &cpu, folder.path(), &mut bars)?;
    Ok(Report {
        title: "Latencies and gaps, beside cyclictest and oslat",
        command: "bench measure".into(),
        setting: format!(
            "CPU {cpu}, one thread of FIFO 80, 1 ms, {samples} samples a run; {pairs} runs of each \
             in turn, who comes first alternates. CPU time of the process by wait4. The loops that \
             look for gaps run one after the other on the same CPU."
        ),
        tables: vec![table, costs, loops],
        bars,
        remarks: vec![
            "cyclictest's main thread wakes every 10 ms, on the measured CPU: -a is for it too. A \
             sample that such a wake-up comes just before finds its CPU awake, and that is the \
             least one. Under cyclictest's name ours does the same. measure cyclic keeps its own \
             off the measured CPU, as a measurement is to disturb nothing: it is held against a \
             cyclictest that is told to."
                .into(),
            "oslat's steps are whole microseconds; ours are the counter's own.".into(),
            "CPU time is that of a run without that of a run of one sample, which is in the last \
             column: start and end of the process, the facts of the machine, its memory locked, \
             with the phases the loading of the programs into the kernel."
                .into(),
        ],
    })
}

fn last_cpu() -> Result<String> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    let last = text.trim().rsplit([',', '-']).next();
    last.map(str::to_owned).context("no CPU is on")
}

fn run(way: Way, options: &Options, cpu: &str, samples: u32, folder: &Path) -> Result<Run> {
    let file = folder.join("run.json");
    let samples = samples.to_string();
    let json = format!("--json={}", file.display());
    let mut command = match way {
        Way::Theirs | Way::Apart => Command::new("cyclictest"),
        Way::Named | Way::Ours | Way::Phases => Command::new(&options.rtscope),
    };
    match way {
        Way::Ours | Way::Phases => {
            command.args(["measure", "cyclic", "--cpu", cpu, "--json", "--quiet"]);
            command.args(["--samples", &samples]);
            command.args((way == Way::Phases).then_some("--phases"));
            return own_run(command, folder);
        }
        Way::Named => drop(command.args(["measure", "cyclic", "--cyclictest"])),
        Way::Apart => drop(command.arg(MAIN_AFFINITY)),
        Way::Theirs => {}
    }
    command.args(PLAN).args(["-a", cpu, "-l", &samples, &json]);
    let taken = child::run(&mut command)?;
    let value: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    of(&value["thread"]["0"], ["min", "avg"], &taken)
}

/// The figures of a thread's object, whose keys these are.
fn of(thread: &Value, [min, mean]: [&str; 2], taken: &Taken) -> Result<Run> {
    let figure = |key: &str| {
        let value = thread[key].as_f64();
        value.with_context(|| format!("no {key}: {thread}"))
    };
    Ok(Run {
        min_ns: figure(min)?,
        mean_ns: figure(mean)?,
        cpu_s: taken.cpu.as_secs_f64(),
        start_s: 0.0,
    })
}

/// Our own form.
fn own_run(command: Command, folder: &Path) -> Result<Run> {
    let file = folder.join("own.json");
    // Only a shell leads the output into a file, and its own time is too short to be seen.
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" > \"$0\""]).arg(&file);
    shell.arg(command.get_program()).args(command.get_args());
    let taken = child::run(&mut shell)?;
    let value: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    of(&value["threads"][0], ["min_ns", "mean_ns"], &taken)
}

/// Of each theirs and ours: as cyclictest is, and with the main thread apart.
fn latencies(both: [(&[Run], &[Run]); 2], bars: &mut Vec<Bar>) -> Table {
    const WHOSE: [&str; 2] = ["under cyclictest's name", "main threads apart"];
    let mut rows = Vec::new();
    let figures: [Figure; 2] = [("min", |run| run.min_ns), ("average", |run| run.mean_ns)];
    let against = WHOSE.into_iter().zip(both);
    let all = figures
        .into_iter()
        .flat_map(|figure| against.clone().map(move |one| (figure, one)));
    for ((name, of), (whose, (theirs, ours))) in all {
        let pairs: Vec<(f64, f64)> = theirs.iter().map(of).zip(ours.iter().map(of)).collect();
        let middle = |values: Vec<f64>| median(&values).unwrap_or(f64::NAN);
        let (a, b) = (
            middle(pairs.iter().map(|(a, _)| *a).collect()),
            middle(pairs.iter().map(|(_, b)| *b).collect()),
        );
        let change = Comparison::of(&pairs).map_or_else(String::new, |one| one.words());
        rows.push(vec![
            text(format!("{name}, {whose}")),
            number(a, 0),
            number(b, 0),
            text(change),
        ]);
        bars.push(Bar {
            what: format!("median {name}, off cyclictest's, {whose}"),
            found: Some((b - a).abs()),
            limit: SAME_NS.max((a * SAME_SHARE).round()),
            unit: "ns",
        });
    }
    Table {
        columns: vec![
            "median of the runs",
            "theirs, ns",
            "ours, ns",
            "change (95 % interval)",
        ],
        rows,
    }
}

/// `all` of ours: under cyclictest's name, as it is, and with phases.
fn costs(theirs: &[Run], all: [&[Run]; 3], samples: u32, bars: &mut Vec<Bar>) -> Table {
    let [named, ours, phases] = all;
    let row = |name: &str, runs: &[Run]| -> Vec<Cell> {
        let cpu: Vec<f64> = runs.iter().map(Run::measuring_s).collect();
        let starts: Vec<f64> = runs.iter().map(|run| run.start_s * 1e3).collect();
        let pairs: Vec<(f64, f64)> = theirs
            .iter()
            .zip(runs)
            .map(|(a, b)| (a.measuring_s(), b.measuring_s()))
            .collect();
        let change = match name {
            "cyclictest" => String::new(),
            _ => Comparison::of(&pairs).map_or_else(String::new, |one| one.words()),
        };
        let each_us = median(&cpu).unwrap_or(f64::NAN) / f64::from(samples) * 1e6;
        let of_cpu = 100.0 * each_us / 1e6 / INTERVAL_S;
        vec![
            text(name),
            number(each_us, 2),
            number(of_cpu, 2),
            text(change),
            number(median(&starts).unwrap_or(f64::NAN), 1),
        ]
    };
    let ratio = |runs: &[Run]| {
        let pairs = theirs.iter().zip(runs);
        let ratios = pairs.map(|(a, b)| b.measuring_s() / a.measuring_s());
        median(&ratios.collect::<Vec<f64>>())
    };
    let promises = [
        (
            "CPU time of measuring over cyclictest's, under its name",
            named,
            CPU_RATIO_MAX,
        ),
        (
            "CPU time of measuring over cyclictest's",
            ours,
            CPU_RATIO_MAX,
        ),
        (
            "CPU time of measuring over cyclictest's, with phases",
            phases,
            CPU_RATIO_PHASES_MAX,
        ),
    ];
    bars.extend(promises.map(|(what, runs, limit)| Bar {
        what: what.into(),
        found: ratio(runs),
        limit,
        unit: "times",
    }));
    Table {
        columns: vec![
            "CPU time",
            "a sample, us",
            "of a CPU, %",
            "change (95 % interval)",
            "start and end, ms",
        ],
        rows: vec![
            row("cyclictest", theirs),
            row("ours under its name", named),
            row("ours", ours),
            row("ours with phases", phases),
        ],
    }
}

fn loops(options: &Options, cpu: &str, folder: &Path, bars: &mut Vec<Bar>) -> Result<Table> {
    let seconds = options.pick("10", "1");
    let file = folder.join("oslat.json");
    let mut oslat = Command::new("oslat");
    oslat.args(["-q", "-f", "80", "-c", cpu, "-C", "0", "-D", seconds]);
    oslat.arg(format!("--json={}", file.display()));
    child::run(&mut oslat)?;
    let value: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let thread = &value["thread"]["0"];
    let counts = thread["histogram"].as_object().into_iter().flatten();
    let steps: f64 = counts.filter_map(|(_, count)| count.as_f64()).sum();
    let oslat_rate = steps
        / thread["duration"]
            .as_f64()
            .context("oslat says no duration")?
        / 1e6;

    let mut own = Command::new(&options.rtscope);
    own.args([
        "measure",
        "hw",
        "--no-events",
        "--json",
        "--prio",
        "80",
        "--cpu",
        cpu,
    ]);
    own.args([
        "--window",
        "1s",
        "--width",
        "900ms",
        "--for",
        &format!("{seconds}s"),
    ]);
    let value: Value = serde_json::from_str(&child::output(&mut own)?)?;
    let found = &value["cpus"][0];
    let figure = |key: &str| {
        found[key]
            .as_f64()
            .with_context(|| format!("no {key}: {value}"))
    };
    let rate = figure("iterations")? / figure("looped_ns")? * 1e3;
    bars.push(Bar {
        what: format!("time between two readings ({READINGS_MIN:.0} million a second)"),
        found: Some(1e3 / rate),
        limit: 1e3 / READINGS_MIN,
        unit: "ns",
    });
    Ok(Table {
        columns: vec!["loop", "readings, million/s", "finest step, ns"],
        rows: vec![
            vec![text("oslat"), number(oslat_rate, 1), Cell::None],
            vec![
                text("measure hw"),
                number(rate, 1),
                number(figure("step_min_ns")?, 0),
            ],
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(figures: &[(f64, f64, f64)]) -> Vec<Run> {
        let run = |&(min_ns, mean_ns, cpu_s): &(f64, f64, f64)| Run {
            min_ns,
            mean_ns,
            cpu_s,
            start_s: 0.0,
        };
        figures.iter().map(run).collect()
    }

    #[test]
    fn a_microsecond_or_a_twentieth_is_no_difference() {
        let check = |mean_ns: f64, other_ns: f64, expect: bool| {
            let (a, b) = (runs(&[(1.0, mean_ns, 1.0)]), runs(&[(1.0, other_ns, 1.0)]));
            let mut bars = Vec::new();
            latencies([(&a, &b), (&a, &b)], &mut bars);
            let met = bars[2].found.is_some_and(|found| found <= bars[2].limit);
            assert_eq!(met, expect, "{mean_ns} {other_ns}");
        };
        check(4_000.0, 4_900.0, true);
        check(4_000.0, 5_100.0, false);
        check(100_000.0, 104_000.0, true);
        check(100_000.0, 94_000.0, false);
    }

    #[test]
    fn cpu_time_is_compared_run_by_run() {
        let theirs = runs(&[(1.0, 1.0, 0.1), (1.0, 1.0, 0.2)]);
        let ours = runs(&[(1.0, 1.0, 0.05), (1.0, 1.0, 0.1)]);
        let mut bars = Vec::new();
        let table = costs(&theirs, [&theirs, &ours, &theirs], 1_000, &mut bars);
        let found: Vec<_> = bars.iter().map(|bar| bar.found).collect();
        assert_eq!(found, [Some(1.0), Some(0.5), Some(1.0)]);
        assert_eq!(table.rows.len(), 4);
    }
}
