//! What the engine says of a trace: the report on states, beside the tracks.

use std::collections::BTreeMap;

use timeline::{Builder, Index, Kind, TrackId};
use trace::Trace;
use views::reports::{Cell, ReportOptions, Table, Tick, run_reports};

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

/// A CPU, or all threads that had one id one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Cpu(u32),
    Threads(i32),
}

/// The columns of a table, summed up over the rows of each.
fn told(table: &Table) -> BTreeMap<Who, Vec<u64>> {
    let mut all = BTreeMap::new();
    for row in &table.rows {
        let who = match &row[0] {
            Cell::Cpu(cpu) => Who::Cpu(*cpu),
            Cell::Process { tid: Some(tid), .. } => Who::Threads(*tid),
            _ => continue,
        };
        let sums: &mut Vec<u64> = all.entry(who).or_insert_with(|| vec![0; row.len()]);
        let cells = sums.iter_mut().zip(row).skip(1).take(5);
        cells.for_each(|(sum, cell)| *sum += ns(cell));
    }
    all
}

/// The sums of their tracks, by kind.
fn sums_of(index: &Index, who: Who, begin_ns: i64) -> Vec<u64> {
    let tracks: Vec<TrackId> = match who {
        Who::Cpu(cpu) => vec![TrackId::Cpu(cpu)],
        Who::Threads(tid) => {
            let places = index.tasks.iter().enumerate();
            let of_tid = places.filter(|(_, task)| task.tid == tid);
            of_tid
                .map(|(place, _)| TrackId::Thread(place as u32))
                .collect()
        }
    };
    let mut all = Vec::new();
    for track in tracks {
        let track = index.track(track).expect("a track");
        let sums = track.sums(begin_ns, index.end_ns);
        all.resize(sums.len(), 0);
        all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
    }
    all
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
        for (who, told) in told(table) {
            let sums = sums_of(index, who, begin_ns);
            for (column, kinds) in kinds {
                let sum: u64 = kinds.iter().map(|kind| sums[*kind as usize]).sum();
                let told = told[*column];
                let fits = match (fits_together, who) {
                    // Seen on two CPUs at once, it counts twice there; a track has one state.
                    (false, Who::Threads(_)) => sum <= told,
                    _ => sum == told,
                };
                assert!(fits, "{who:?} column {column}: {sum}, {told}");
            }
        }
    }
}
