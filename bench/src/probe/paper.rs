//! Tables 2 to 4 of the paper that measured LTTng-UST with npt, and its histograms: minimum, mean,
//! maximum, variance and deviation under each tracer, and the highest rate without a loss.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::figures::{bins, together};
use super::limits::bar;
use super::scene::{Scene, Tracer};
use super::{Row, row_of};
use crate::child;
use crate::report::{Bar, Cell, Table, number, text};

/// LTTng's rate without a loss, as a share of ours.
const RATE_SHARE_MAX: f64 = 1.0 / 3.0;
/// As LTTng's 32 sub-buffers of 1 MiB.
const RATE_RING: &str = "32M";
/// Under their names in the paper's tables.
const TRACERS: [(&str, Tracer); 4] = [
    ("none", Tracer::None),
    ("rtscope", Tracer::Recorded),
    ("lttng", Tracer::Lttng),
    ("lttng-timer", Tracer::LttngTimer),
];

/// The rows of `rows` that the paper has, by its names.
fn paper_rows(rows: &[Row]) -> impl Iterator<Item = (&'static str, &Row)> {
    let event = |tracer| row_of(rows, tracer, "numbers");
    TRACERS
        .into_iter()
        .filter_map(move |(name, tracer)| Some((name, event(tracer)?)))
}

/// Tables 2 and 3: npt's figures under each tracer.
pub(super) fn figures(rows: &[Row]) -> Table {
    let row = |(name, row): (&str, &Row)| {
        let all = together(&row.rounds);
        let figures = [
            all.min,
            all.mean,
            all.max,
            all.variance,
            all.variance.sqrt(),
        ];
        let mut cells = vec![text(name), number(all.iterations as f64, 0)];
        cells.extend(figures.map(|figure| number(figure, 1)));
        cells
    };
    Table {
        columns: vec![
            "npt under",
            "iterations",
            "min, ns",
            "mean, ns",
            "max, ns",
            "variance, ns\u{b2}",
            "std dev, ns",
        ],
        rows: paper_rows(rows).map(row).collect(),
    }
}

/// The histograms as a picture.
pub(super) fn write_picture(rows: &[Row], path: &Path) -> Result<()> {
    let loops: Vec<_> = paper_rows(rows)
        .map(|(name, row)| bins(name, &row.rounds))
        .collect();
    let svg = report::loop_picture("iterations of a loop by their duration", &loops);
    std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))
}

/// Table 4: rates without a loss.
pub(super) fn rates(scene: &Scene<'_>) -> Result<(Table, Vec<Bar>)> {
    let mut table = Table {
        columns: vec![
            "tracer",
            "highest lossless rate, events/s",
            "beside kernel events, events/s",
            "beside system calls, events/s",
        ],
        rows: Vec::new(),
    };
    let mut alone = Vec::new();
    let tracers: &[&str] = match scene.lttng.is_some() {
        true => &["rtscope", "lttng", "lttng-timer"],
        false => &["rtscope"],
    };
    for tracer in tracers {
        eprintln!("  the highest lossless rate of {tracer}");
        let rates = rates_of(scene, tracer)?;
        alone.push(rates.first().copied().unwrap_or_default());
        let mut cells = vec![text(*tracer)];
        cells.extend(rates.into_iter().map(|rate| number(rate, 0)));
        cells.resize(table.columns.len(), Cell::None);
        table.rows.push(cells);
    }
    let storage = super::limits::storage_events_per_second(scene.folder)?;
    let mut cells = vec![text("the storage alone, events of that size")];
    cells.push(number(storage, 0));
    cells.resize(table.columns.len(), Cell::None);
    table.rows.push(cells);
    let share = match alone[..] {
        [ours, writer, timer] if ours > 0.0 => Some(f64::max(writer, timer) / ours),
        _ => None,
    };
    let what = "LTTng-UST's highest lossless rate, of ours";
    Ok((table, vec![bar(what, share, RATE_SHARE_MAX, "")]))
}

/// Alone, then beside whatever else `measure loop` recorded.
fn rates_of(scene: &Scene<'_>, tracer: &str) -> Result<Vec<f64>> {
    let mut command = Command::new(scene.rtscope);
    command.args(["measure", "loop", "--find-max-rate", "--json"]);
    command.args(["--tracer", tracer, "--cpu", &scene.cpu.to_string()]);
    command.env("RTSCOPE_DIR", scene.shared);
    command.env("RTSCOPE_RING_SIZE", RATE_RING);
    let found: Value = serde_json::from_str(&child::output(&mut command)?)?;
    let rates = found["rates"].as_array().context("no rates")?.iter();
    Ok(rates
        .filter_map(|rate| rate["per_second"].as_f64())
        .collect())
}
