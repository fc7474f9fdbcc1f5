//! What an event of an application costs its thread, beside LTTng-UST: npt's method, all ways in
//! turn.

mod limits;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use measure::looping::lttng::{Daemon, PROVIDER};
use serde_json::Value;

use crate::child;
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};
use crate::stats::median;

/// Of the added cost of an event with two numbers, in readings of the clock.
const CLOCKS_MAX: f64 = 1.6;
/// The same, and that of an event with 32 bytes of text, as a share of LTTng-UST's.
const EVENT_SHARE_MAX: f64 = 0.2;
const TEXT_SHARE_MAX: f64 = 0.25;
/// Of an event that is switched off.
const OFF_NS_MAX: f64 = 1.0;
const LTTNG: &[&str] = &["lttng", "lttng-sessiond"];
/// Of LTTng's sub-buffers: 128 MiB a CPU, as our rings have.
const LTTNG_SUBBUFFER: &str = "4M";

/// Iterations that npt.c leaves out of its figures.
const DROPPED: u64 = 1000;
/// A percentile may lie so far beyond LTTng-UST's: the counter's step on the figures' machine.
const STEP_NS: f64 = 10.0;

/// A way to run the loop.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tracer {
    /// Events are compiled in and switched off.
    Off,
    /// A flight recorder: nobody reads.
    Rtscope,
    /// `rtscope record` reads.
    Recorded,
    /// LTTng-UST, whose consumer is woken by the traced thread.
    Lttng,
    /// LTTng-UST, whose consumer looks every 100 ms.
    LttngTimer,
}

/// A row of the table: the loop's variant under a tracer, and what it found in each round.
struct Row {
    name: &'static str,
    variant: &'static str,
    tracer: Tracer,
    rounds: Vec<Value>,
}

const ROWS: [(&str, &str, Tracer); 11] = [
    ("empty loop", "none", Tracer::Off),
    ("a second reading of the clock", "clock", Tracer::Off),
    ("2 numbers, switched off", "event", Tracer::Off),
    ("2 numbers, rtscope", "event", Tracer::Rtscope),
    ("2 numbers, rtscope record", "event", Tracer::Recorded),
    ("2 numbers, lttng", "event", Tracer::Lttng),
    ("2 numbers, lttng-timer", "event", Tracer::LttngTimer),
    ("text of 32 bytes, rtscope", "text", Tracer::Rtscope),
    ("text of 32 bytes, rtscope record", "text", Tracer::Recorded),
    ("text of 32 bytes, lttng", "text", Tracer::Lttng),
    ("text of 32 bytes, lttng-timer", "text", Tracer::LttngTimer),
];

/// Measures all ways, a round of each in turn.
pub fn measure(options: &Options) -> Result<Report> {
    let folder = tempfile::tempdir().context("a folder for the programs")?;
    let shared = tempfile::tempdir_in("/dev/shm").context("a folder in shared memory")?;
    let programs = Programs::build(folder.path())?;
    let scene = Scene {
        rtscope: &options.rtscope,
        folder: folder.path(),
        shared: shared.path(),
        programs: &programs,
        // The last CPU: the first has most interrupts.
        cpu: std::thread::available_parallelism()?.get() - 1,
        loops: options.pick(1_000_000, 20_000),
    };
    let daemon = programs
        .lttng
        .as_ref()
        .map(|_| Daemon::start(folder.path()))
        .transpose()?;
    let mut rows: Vec<Row> = ROWS
        .into_iter()
        .filter(|(.., tracer)| daemon.is_some() || !tracer.is_lttng())
        .map(|(name, variant, tracer)| Row {
            name,
            variant,
            tracer,
            rounds: Vec::new(),
        })
        .collect();
    for _ in 0..options.pick(20, 1) {
        for row in &mut rows {
            let found = scene.run(row.tracer, row.variant, daemon.as_ref())?;
            row.rounds.push(found);
        }
    }
    let remark = match &daemon {
        Some(_) => None,
        None => Some("LTTng-UST is not installed: liblttng-ust-dev and lttng-tools.".to_owned()),
    };
    let starts = options.pick(100, 3);
    let peers = options.pick(true, false);
    let limits = limits::measure(&scene, daemon, starts, peers)?;
    let mut report = report(&scene, &rows, remark.into_iter().collect());
    report.tables.extend(limits.tables);
    report.bars.extend(limits.bars);
    Ok(report)
}

impl Tracer {
    fn is_lttng(self) -> bool {
        matches!(self, Tracer::Lttng | Tracer::LttngTimer)
    }
}

/// The loop, once for each library.
struct Programs {
    ours: PathBuf,
    lttng: Option<PathBuf>,
}

impl Programs {
    fn build(folder: &Path) -> Result<Programs> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("probe/npt.c");
        let ours = folder.join("npt");
        compile_ours(&source, &ours)?;
        let lttng = folder.join("npt_lttng");
        let mut command = compiler(&source, &lttng);
        command
            .arg("-DNPT_LTTNG")
            .arg(format!("-I{}", folder.display()));
        std::fs::write(folder.join("npt_lttng.h"), PROVIDER)?;
        command.args(["-llttng-ust", "-ldl", "-lm"]);
        let built = child::output(&mut command).is_ok() && LTTNG.iter().all(|p| child::exists(p));
        Ok(Programs {
            ours,
            lttng: built.then_some(lttng),
        })
    }
}

fn compiler(source: &Path, output: &Path) -> Command {
    let mut command = Command::new("cc");
    command
        .args(["-O2", "-pthread", "-o"])
        .arg(output)
        .arg(source);
    command
}

/// Compiles `source` together with the probe.
fn compile_ours(source: &Path, output: &Path) -> Result<()> {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../probe");
    let mut command = compiler(source, output);
    command.arg(format!("-I{}", probe.join("include").display()));
    for entry in std::fs::read_dir(probe.join("src"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "c") {
            command.arg(path);
        }
    }
    child::output(command.arg("-lm")).map(drop)
}

/// What every run needs.
struct Scene<'a> {
    rtscope: &'a Path,
    folder: &'a Path,
    shared: &'a Path,
    programs: &'a Programs,
    cpu: usize,
    loops: u64,
}

impl Scene<'_> {
    fn run(&self, tracer: Tracer, variant: &str, daemon: Option<&Daemon>) -> Result<Value> {
        let words = [
            variant.to_owned(),
            self.cpu.to_string(),
            self.loops.to_string(),
        ];
        let said = match tracer {
            Tracer::Off => child::output(self.ours().args(&words))?,
            Tracer::Rtscope => {
                let mut command = self.ours();
                command
                    .env("RTSCOPE_EVENTS", "npt")
                    .env("RTSCOPE_MODE", "overwrite");
                let said = child::output(command.args(&words))?;
                self.remove_rings()?;
                said
            }
            Tracer::Recorded => {
                let trace = self.folder.join("trace");
                let mut command = Command::new(self.rtscope);
                command
                    .args(["record", "--user", "npt", "-o"])
                    .arg(&trace)
                    .arg("--");
                command.arg(&self.programs.ours).args(&words);
                // Room for all: a lost event would cost less.
                command
                    .env("RTSCOPE_DIR", self.shared)
                    .env("RTSCOPE_RING_SIZE", "128M");
                let said = child::output(&mut command)?;
                std::fs::remove_dir_all(&trace)?;
                said
            }
            Tracer::Lttng | Tracer::LttngTimer => {
                let (Some(daemon), Some(program)) = (daemon, &self.programs.lttng) else {
                    bail!("LTTng-UST is not installed");
                };
                let timer = tracer == Tracer::LttngTimer;
                let run = || child::output(daemon.command(program).args(&words));
                daemon.session(timer, LTTNG_SUBBUFFER, run)?.0
            }
        };
        let line = said.lines().find(|line| line.starts_with('{'));
        let line = line.with_context(|| format!("the loop said no figures: {said}"))?;
        Ok(serde_json::from_str(line)?)
    }

    fn ours(&self) -> Command {
        let mut command = Command::new(&self.programs.ours);
        command.env("RTSCOPE_DIR", self.shared);
        command
    }

    /// A flight recorder leaves its rings for whoever wants to read them.
    fn remove_rings(&self) -> Result<()> {
        for entry in std::fs::read_dir(self.shared)? {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(())
    }
}

/// The median over all rounds.
fn over_rounds(row: &Row, key: &str) -> f64 {
    let values: Vec<f64> = row
        .rounds
        .iter()
        .filter_map(|round| round[key].as_f64())
        .collect();
    median(&values).unwrap_or_default()
}

const KEYS: [&str; 5] = ["kept_mean_ns", "p50_ns", "p999_ns", "p9999_ns", "max_ns"];

fn report(scene: &Scene<'_>, rows: &[Row], remarks: Vec<String>) -> Report {
    let empty = rows.first().map_or(0.0, |row| over_rounds(row, KEYS[0]));
    let cells = |row: &Row| {
        let mut cells: Vec<Cell> =
            vec![text(row.name), number(over_rounds(row, KEYS[0]) - empty, 1)];
        cells.extend(KEYS.iter().map(|key| number(over_rounds(row, key), 1)));
        cells
    };
    Report {
        title: "An event of an application",
        command: "bench probe".to_owned(),
        setting: format!(
            "A loop that reads the counter and records an event, pinned to CPU {}, {} iterations a \
             run; all ways in turn, the median of {} rounds. Rings have room for all events. The \
             mean leaves out the longest 0.1 % of iterations, which are the machine's.",
            scene.cpu,
            scene.loops,
            rows.first().map_or(0, |row| row.rounds.len()),
        ),
        tables: vec![
            Table {
                columns: vec![
                    "loop",
                    "added, ns",
                    "mean, ns",
                    "median, ns",
                    "p99.9, ns",
                    "p99.99, ns",
                    "max, ns",
                ],
                rows: rows.iter().map(cells).collect(),
            },
            limits::paper(rows),
        ],
        bars: bars(rows),
        remarks,
    }
}

/// What was promised.
fn bars(rows: &[Row]) -> Vec<Bar> {
    let mean = |name: &str| {
        let row = rows.iter().find(|row| row.name == name);
        row.map(|row| over_rounds(row, KEYS[0]))
    };
    let empty = mean(ROWS[0].0).unwrap_or_default();
    let added = |name: &str| mean(name).map(|mean| mean - empty);
    let share = |a: Option<f64>, b: Option<f64>| Some(a? / b.filter(|b| *b > 0.0)?);
    let bar = |what: &str, found, limit, unit| Bar {
        what: what.to_owned(),
        found,
        limit,
        unit,
    };
    let beyond = |key: &str| {
        let figure = |name: &str| {
            let row = rows.iter().find(|row| row.name == name)?;
            Some(over_rounds(row, key))
        };
        Some(figure(ROWS[4].0)? - figure(ROWS[6].0)?)
    };
    let (event, text_event) = (added(ROWS[3].0), added(ROWS[7].0));
    vec![
        bar(
            "an event of 2 numbers, in readings of the clock",
            share(event, added(ROWS[1].0)),
            CLOCKS_MAX,
            "readings",
        ),
        bar(
            "an event that is switched off",
            added(ROWS[2].0),
            OFF_NS_MAX,
            "ns",
        ),
        bar(
            "an event of 2 numbers, of LTTng-UST's cost",
            share(event, added(ROWS[5].0)),
            EVENT_SHARE_MAX,
            "",
        ),
        bar(
            "p99.9 of an event of 2 numbers, beyond LTTng-UST's by a timer",
            beyond("p999_ns"),
            STEP_NS,
            "ns",
        ),
        bar(
            "p99.99 of an event of 2 numbers, beyond LTTng-UST's by a timer",
            beyond("p9999_ns"),
            STEP_NS,
            "ns",
        ),
        bar(
            "an event with 32 bytes of text, of LTTng-UST's cost",
            share(text_event, added(ROWS[9].0)),
            TEXT_SHARE_MAX,
            "",
        ),
    ]
}
