//! Reading a trace of a million events: time and memory, beside the peers that are installed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::child::{self, Taken};
use crate::load::{self, Load};
use crate::options::Options;
use crate::report::{Bar, Report, Table, number, text};
use crate::stats::{Comparison, max, median};

const SECONDS_MAX: f64 = 0.5;
const MEMORY_MB_MAX: f64 = 200.0;
const MILLION: f64 = 1e6;
const GROUPS: u32 = 2;
const FDS: u32 = 2;

/// Records, then reads again and again.
pub fn measure(options: &Options) -> Result<Report> {
    load::require()?;
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("trace");
    let events = record(options, &trace)?;
    let rounds = options.pick(10, 1);
    let mut table = Table {
        columns: vec![
            "reader",
            "wall, s (median)",
            "events/s",
            "CPU, s (median)",
            "memory, MB (max)",
        ],
        rows: Vec::new(),
    };
    let mut row = |name: &str, all: &[Taken]| -> Option<(f64, f64)> {
        let wall_s = median(&seconds(all, |taken| taken.wall))?;
        let cpu_s = median(&seconds(all, |taken| taken.cpu))?;
        let memory_mb = max(&all
            .iter()
            .map(|taken| taken.resident_bytes_max as f64 / 1e6)
            .collect::<Vec<_>>())?;
        table.rows.push(vec![
            text(name),
            number(wall_s, 3),
            number(events / wall_s, 0),
            number(cpu_s, 3),
            number(memory_mb, 0),
        ]);
        Some((wall_s, memory_mb))
    };
    let diagnoses = repeat(rounds, || {
        child::run(Command::new(&options.rtscope).arg("diagnose").arg(&trace))
    })?;
    let found = row("rtscope diagnose", &diagnoses).context("no diagnosis")?;
    let (ours, theirs) = cat_beside_babeltrace2(options, &trace, rounds)?;
    row("rtscope cat", &ours);
    row("babeltrace2 (text)", &theirs);
    let mut remarks = vec![
        "lttng-analyses 0.6.1 (cputop, schedtop) read 70 000 to 76 000 events/s with 227 to \
         578 MB on traces of 1.3 and 3.6 million events, measured on another machine of this \
         class; it was not run here."
            .into(),
    ];
    remarks.push(compared(&ours, &theirs));
    Ok(Report {
        title: "A million events",
        command: "bench diagnose".into(),
        setting: format!(
            "{events:.0} events of `rtscope record` under hackbench; {rounds} runs each, warm \
             cache, output thrown away; `cat` and babeltrace2 in turn. Memory by wait4."
        ),
        tables: vec![table],
        bars: bars(found, events),
        remarks,
    })
}

/// Both are promised for a million events.
fn bars((wall_s, memory_mb): (f64, f64), events: f64) -> Vec<Bar> {
    vec![
        Bar {
            what: "diagnose, time for a million events".into(),
            found: Some(wall_s * MILLION / events),
            limit: SECONDS_MAX,
            unit: "s",
        },
        Bar {
            what: format!("diagnose, memory for {events:.0} events"),
            found: Some(memory_mb),
            limit: MEMORY_MB_MAX,
            unit: "MB",
        },
    ]
}

/// Records under load until the trace is large enough; returns the number of its events.
pub fn record(options: &Options, trace: &Path) -> Result<f64> {
    record_for(options, options.pick(3, 1), trace)
}

/// Records under load for some seconds; returns the number of events.
pub fn record_for(options: &Options, seconds: u32, trace: &Path) -> Result<f64> {
    let load = Load::start(GROUPS, FDS)?;
    let mut command = Command::new(&options.rtscope);
    command.args(["record", "--buffer=64M"]);
    command.arg(format!("--duration={seconds}s"));
    let said = child::output(command.arg("--output").arg(trace))?;
    drop(load);
    recorded(&said).with_context(|| format!("record said: {said}"))
}

fn recorded(said: &str) -> Option<f64> {
    let words = said.strip_prefix("recorded ")?;
    words.split(' ').next()?.parse().ok()
}

fn repeat(rounds: usize, mut once: impl FnMut() -> Result<Taken>) -> Result<Vec<Taken>> {
    once()?;
    (0..rounds).map(|_| once()).collect()
}

/// One after the other, round by round; the second list is empty where babeltrace2 is not
/// installed.
fn cat_beside_babeltrace2(
    options: &Options,
    trace: &Path,
    rounds: usize,
) -> Result<(Vec<Taken>, Vec<Taken>)> {
    let is_there = child::exists("babeltrace2");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(child::run(
            Command::new(&options.rtscope).arg("cat").arg(trace),
        )?);
        if is_there {
            theirs.push(child::run(Command::new("babeltrace2").arg(trace))?);
        }
    }
    Ok((ours, theirs))
}

fn seconds(all: &[Taken], of: fn(&Taken) -> std::time::Duration) -> Vec<f64> {
    all.iter().map(|taken| of(taken).as_secs_f64()).collect()
}

fn compared(ours: &[Taken], theirs: &[Taken]) -> String {
    let walls = |all: &[Taken]| seconds(all, |taken| taken.wall);
    let pairs: Vec<_> = walls(theirs).into_iter().zip(walls(ours)).collect();
    Comparison::of(&pairs).map_or_else(
        || "babeltrace2 is not installed: no comparison.".to_owned(),
        |comparison| {
            let Comparison { ratio, low, high } = comparison;
            let resolved = if comparison.is_resolved() {
                ""
            } else {
                "; not resolved"
            };
            format!(
                "cat takes {ratio:.2} of babeltrace2's time (95 % interval {low:.2} to \
                 {high:.2}{resolved})."
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_events_is_read_from_what_record_says() {
        let said = "recorded 1234567 events in 3 s on 2 CPUs, 0 lost, 40.1 MB: trace\n";
        assert_eq!(recorded(said), Some(1_234_567.0));
        assert_eq!(recorded("error: no"), None);
        assert_eq!(
            compared(&[], &[]),
            "babeltrace2 is not installed: no comparison."
        );
    }
}
