//! What an event of an application costs its thread, beside LTTng-UST: npt's method, all ways in
//! turn.

mod begins;
mod crowd;
mod figures;
mod limits;
mod paper;
mod peer;
mod rarest;
mod scene;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};
use figures::{kept_mean_ns, over_rounds};
use scene::{Scene, Tracer};

/// Of the added cost of an event with two numbers, in readings of the clock.
const CLOCKS_MAX: f64 = 1.6;
/// The same, and that of an event with 32 bytes of text, as a share of LTTng-UST's.
const EVENT_SHARE_MAX: f64 = 0.2;
const TEXT_SHARE_MAX: f64 = 0.25;
/// Of an event that is switched off.
const OFF_NS_MAX: f64 = 1.0;
/// A percentile may lie so far beyond LTTng-UST's: the counter's step on the figures' machine.
const STEP_NS: f64 = 10.0;

/// A row of the table: an event under a tracer, and what the loop found in each round.
struct Row {
    name: &'static str,
    tracer: Tracer,
    event: &'static str,
    rounds: Vec<Value>,
}

const ROWS: [(&str, Tracer, &str); 11] = [
    ("empty loop", Tracer::None, "numbers"),
    ("a second reading of the clock", Tracer::Clock, "numbers"),
    ("2 numbers, switched off", Tracer::Off, "numbers"),
    ("2 numbers, rtscope", Tracer::Rtscope, "numbers"),
    ("2 numbers, rtscope record", Tracer::Recorded, "numbers"),
    ("2 numbers, lttng", Tracer::Lttng, "numbers"),
    ("2 numbers, lttng-timer", Tracer::LttngTimer, "numbers"),
    ("text of 32 bytes, rtscope", Tracer::Rtscope, "text"),
    ("text of 32 bytes, rtscope record", Tracer::Recorded, "text"),
    ("text of 32 bytes, lttng", Tracer::Lttng, "text"),
    ("text of 32 bytes, lttng-timer", Tracer::LttngTimer, "text"),
];

/// Measures all ways, a round of each in turn; or the rarest iterations of a long loop.
pub fn measure(options: &Options) -> Result<Report> {
    with_scene(options, |scene| match options.iterations {
        Some(_) => rarest::measure(scene),
        None => whole(scene, options),
    })
}

/// Many processes, and what each pays before its first event, alone.
pub fn measure_crowd(options: &Options) -> Result<Report> {
    with_scene(options, |scene| {
        let (tables, bars) = crowd_tables(scene, options)?;
        let remarks = match scene.lttng {
            Some(_) => Vec::new(),
            None => vec![NO_LTTNG.to_owned()],
        };
        Ok(Report {
            title: "Processes of an application",
            command: "bench crowd".to_owned(),
            setting: format!(
                "Two numbers an event. Processes at once: each has 8 events, two a second; median \
                 of {} runs, recorders in turn, from their start to their end. Starts and forks: \
                 both recorders are there all the time, all ways in turn, medians of {} runs and \
                 of {} runs. LTTng-UST has the channel that it makes by itself, and the library \
                 that follows forks.",
                crowd_rounds(options),
                starts(options),
                starts(options).div_ceil(5),
            ),
            tables,
            bars,
            remarks,
        })
    })
}

/// Runs of each crowd.
fn crowd_rounds(options: &Options) -> usize {
    options.rounds.unwrap_or(options.pick(3, 1))
}

/// Starts of each way.
fn starts(options: &Options) -> usize {
    crowd_rounds(options) * options.pick(17, 1)
}

fn crowd_tables(scene: &Scene<'_>, options: &Options) -> Result<(Vec<Table>, Vec<Bar>)> {
    let (crowds, mut bars) = crowd::crowds(scene, !options.small, crowd_rounds(options))?;
    let begins = begins::begins(scene, !options.small, starts(options))?;
    bars.extend(begins.bars);
    let mut tables = vec![crowds];
    tables.extend(begins.tables);
    Ok((tables, bars))
}

fn with_scene(
    options: &Options,
    measure: impl FnOnce(&Scene<'_>) -> Result<Report>,
) -> Result<Report> {
    let folder = tempfile::tempdir().context("a folder for the programs")?;
    let shared = tempfile::tempdir_in("/dev/shm").context("a folder in shared memory")?;
    let scene = Scene {
        rtscope: &options.rtscope,
        folder: folder.path(),
        shared: shared.path(),
        lttng: scene::lttng_library(folder.path()),
        // The last CPU: the first has most interrupts.
        cpu: std::thread::available_parallelism()?.get() - 1,
        loops: options
            .iterations
            .unwrap_or_else(|| options.pick(500_000, 20_000)),
    };
    measure(&scene)
}

fn whole(scene: &Scene<'_>, options: &Options) -> Result<Report> {
    let count = options.rounds.unwrap_or(options.pick(20, 1));
    let rows = rounds(scene, count)?;
    if let Some(path) = &options.picture {
        paper::write_picture(&rows, path)?;
    }
    let limits = limits::measure(scene, options.pick(true, false))?;
    let (crowd_tables, crowd_bars) = crowd_tables(scene, options)?;
    let mut report = report(scene, &rows, remarks(scene, &rows));
    report.tables.extend(limits.tables);
    report.tables.extend(crowd_tables);
    report.bars.extend(limits.bars);
    report.bars.extend(crowd_bars);
    Ok(report)
}

/// So many rounds of all ways.
fn rounds(scene: &Scene<'_>, count: usize) -> Result<Vec<Row>> {
    let is_here = |tracer: Tracer| scene.lttng.is_some() || !tracer.is_lttng();
    let ways = ROWS.into_iter().filter(|(_, tracer, _)| is_here(*tracer));
    let mut rows: Vec<Row> = ways
        .map(|(name, tracer, event)| Row {
            name,
            tracer,
            event,
            rounds: Vec::new(),
        })
        .collect();
    for round in 0..count {
        eprintln!("  round {} of {count}", round + 1);
        for row in &mut rows {
            let mut found = scene.run(row.tracer, row.event, None)?;
            found[KEYS[0]] = kept_mean_ns(&found).into();
            row.rounds.push(found);
        }
    }
    Ok(rows)
}

/// What a reader must know besides the figures.
fn remarks(scene: &Scene<'_>, rows: &[Row]) -> Vec<String> {
    let mut remarks = Vec::new();
    if scene.lttng.is_none() {
        remarks.push(NO_LTTNG.to_owned());
    }
    for row in rows {
        let lost: u64 = row
            .rounds
            .iter()
            .filter_map(|run| run["lost"].as_u64())
            .sum();
        if lost > 0 {
            remarks.push(format!("{}: {lost} events lost in all rounds.", row.name));
        }
    }
    remarks
}

const NO_LTTNG: &str = "LTTng-UST is not installed: liblttng-ust-dev and lttng-tools.";

/// The row of this tracer and this event.
fn row_of<'a>(rows: &'a [Row], tracer: Tracer, event: &str) -> Option<&'a Row> {
    rows.iter()
        .find(|row| row.tracer == tracer && row.event == event)
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
             mean leaves out the longest 0.1 % of iterations, which are the machine's. npt's \
             figures are of all rounds together.",
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
            paper::figures(rows),
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
