//! What the engine says of a trace: the report on states, beside the tracks.

use timeline::{Builder, Index, Kind, TrackId};
use trace::Trace;
use views::reports::{Cell, ReportOptions, Tick, run_reports};

/// The index of a trace.
pub fn index(trace: &Trace) -> Index {
    Builder::new(trace).walk(|_| true).expect("a walk")
}

fn tables(trace: &Trace, begin_ns: i64) -> Vec<Tick> {
    let report = views::reports::REPORTS.iter().find(|r| r.name == "states");
    let report = report.expect("the report is there").report;
    let options = ReportOptions {
        begin_ns: Some(begin_ns),
        limit: usize::MAX,
        ..ReportOptions::default()
    };
    let mut ticks = Vec::new();
    let found = run_reports(trace, &[report], &options, |tick| {
        ticks.push(tick);
        Ok(())
    });
    found.expect("a report");
    ticks
}

fn ns(cell: &Cell) -> u64 {
    match cell {
        Cell::Duration(ns) => *ns as u64,
        other => panic!("not a duration: {other:?}"),
    }
}

/// From the first event at `begin_ns` or later to the end: columns of the report, and the kinds
/// that they are here.
pub fn check_from(trace: &Trace, index: &Index, begin_ns: i64, fits_together: bool) {
    let ticks = tables(trace, begin_ns);
    let tables = ticks
        .iter()
        .flat_map(|tick| tick.tables.iter().map(move |t| (tick, t)));
    for (tick, table) in tables {
        let begin_ns = tick.begin_ns;
        let kinds: &[(usize, &[Kind])] = match table.class.name {
            "threads" => &[
                (1, &[Kind::Run]),
                (2, &[Kind::Call]),
                (3, &[Kind::Irq, Kind::Softirq]),
                (4, &[Kind::Runnable]),
                (5, &[Kind::Idle]),
            ],
            "cpus" => &[
                (1, &[Kind::Idle]),
                (2, &[Kind::Run]),
                (3, &[Kind::Call]),
                (4, &[Kind::Irq]),
                (5, &[Kind::Softirq]),
            ],
            _ => continue,
        };
        for row in &table.rows {
            let track = match &row[0] {
                Cell::Cpu(cpu) => TrackId::Cpu(*cpu),
                Cell::Process { tid: Some(tid), .. } => {
                    let place = index.tasks.iter().position(|task| task.tid == *tid);
                    TrackId::Thread(place.expect("the task is there") as u32)
                }
                _ => continue,
            };
            let sums = index
                .track(track)
                .expect("a track")
                .sums(begin_ns, index.end_ns);
            for (column, kinds) in kinds {
                let sum: u64 = kinds.iter().map(|kind| sums[*kind as usize]).sum();
                let told = ns(&row[*column]);
                let fits = match (fits_together, track) {
                    // Seen on two CPUs at once, it counts twice there; a track has one state.
                    (false, TrackId::Thread(_)) => sum <= told,
                    _ => sum == told,
                };
                assert!(fits, "{track:?} column {column}: {sum} {row:?}");
            }
        }
    }
}
