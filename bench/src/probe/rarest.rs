//! The rarest iterations of a long loop: its events come at a rate that both recorders keep up
//! with, so that no iteration is short because its event was lost.

use anyhow::Result;

use super::scene::{Scene, Tracer};
use super::{NO_LTTNG, STEP_NS, limits};
use crate::report::{Bar, Cell, Report, Table, number, text};

/// Of the events, per second.
const RATE: u64 = 2_000_000;
const TRACERS: [(&str, Tracer); 3] = [
    ("no event", Tracer::None),
    ("rtscope record", Tracer::Recorded),
    ("lttng-timer", Tracer::LttngTimer),
];
const KEYS: [&str; 4] = ["p50_ns", "p999_ns", "p9999_ns", "max_ns"];

/// One run of each.
pub(super) fn measure(scene: &Scene<'_>) -> Result<Report> {
    let mut table = Table {
        columns: vec![
            "2 numbers under",
            "median, ns",
            "p99.9, ns",
            "p99.99, ns",
            "max, ns",
            "events lost",
        ],
        rows: Vec::new(),
    };
    let mut found = Vec::new();
    for (name, tracer) in TRACERS {
        if tracer.is_lttng() && scene.lttng.is_none() {
            continue;
        }
        eprintln!("  {} iterations under {name}", scene.loops);
        let run = scene.run(tracer, "numbers", Some(RATE))?;
        let figures = KEYS.map(|key| run[key].as_f64().unwrap_or_default());
        let mut cells = vec![text(name)];
        cells.extend(figures.map(|ns| number(ns, 1)));
        let lost = run["lost"].as_u64().map(|lost| number(lost as f64, 0));
        cells.push(lost.unwrap_or(Cell::None));
        table.rows.push(cells);
        found.push(figures);
    }
    Ok(Report {
        title: "The rarest iterations",
        command: format!("bench probe --iterations {}", scene.loops),
        setting: format!(
            "{} iterations on CPU {}, {RATE} a second; an iteration is what its event takes, the \
             two readings of the counter included.",
            scene.loops, scene.cpu
        ),
        tables: vec![table],
        bars: bars(&found),
        remarks: match scene.lttng {
            Some(_) => Vec::new(),
            None => vec![NO_LTTNG.to_owned()],
        },
    })
}

/// Of the percentiles beside LTTng-UST's.
fn bars(found: &[[f64; KEYS.len()]]) -> Vec<Bar> {
    let beyond = |key: usize| match found {
        [_, ours, theirs] => Some(ours[key] - theirs[key]),
        _ => None,
    };
    let bar = |name: &str, key: usize| {
        let what = format!("{name} of an event of 2 numbers, beyond LTTng-UST's by a timer");
        limits::bar(&what, beyond(key), STEP_NS, "ns")
    };
    vec![bar("p99.9", 1), bar("p99.99", 2)]
}
