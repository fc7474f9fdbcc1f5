//! What each tracker's programs in the kernel cost, call by call, over an empty program.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use bpf_host::trackers::TRACKERS;
use bpf_host::{TrackerCost, measure_tracker_cost};

use crate::load::{self, Load};
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};

/// Of the calls of a tracker, which begin or end an interval.
const CALL_NS_MAX: f64 = 100.0;
/// Fewer calls than this are no figure.
const CALLS_MIN: u64 = 20;
/// hackbench, as beside the watch.
const GROUPS: u32 = 2;
const FDS: u32 = 2;
/// How many trackers a small run looks at.
const SMALL: usize = 3;
const PAUSE: Duration = Duration::from_millis(2);

/// The trackers alone, as a subject of their own.
pub fn report(options: &Options) -> Result<Report> {
    load::require()?;
    let (table, bars) = measure(options)?;
    Ok(Report {
        title: "Trackers, call by call",
        command: "bench trackers".into(),
        setting: "Each tracker of all tasks beside an empty program, under hackbench, connections \
                  over loopback and writes to a file: the average of its programs' calls, by the \
                  kernel's own measuring, over that of the empty program; and over that of an \
                  empty program in its own place, in the seconds after."
            .into(),
        tables: vec![table],
        bars,
        remarks: Vec::new(),
    })
}

/// One after the other under the same load: a row for each program, a bar for each tracker.
pub fn measure(options: &Options) -> Result<(Table, Vec<Bar>)> {
    let duration = Duration::from_millis(options.pick(4_000, 100));
    let mut table = Table {
        columns: vec![
            "tracker",
            "program",
            "calls/s",
            "average over empty, ns",
            "over an empty one there, ns",
        ],
        rows: Vec::new(),
    };
    let mut bars = Vec::new();
    let _load = Load::start(GROUPS, FDS)?;
    let _calls = Calls::start()?;
    for tracker in TRACKERS.iter().take(options.pick(TRACKERS.len(), SMALL)) {
        match measure_tracker_cost(tracker, duration) {
            Ok(costs) => {
                let rows = costs.iter().map(|cost| row(tracker.name, cost, duration));
                table.rows.extend(rows);
                bars.extend(bar(tracker.name, &costs));
            }
            // This kernel lacks its hooks.
            Err(error) => table.rows.push(vec![
                text(tracker.name),
                text(error.to_string()),
                Cell::None,
                Cell::None,
                Cell::None,
            ]),
        }
    }
    Ok((table, bars))
}

fn row(tracker: &str, cost: &TrackerCost, duration: Duration) -> Vec<Cell> {
    let average = |ns: Option<f64>| match ns {
        Some(ns) if cost.calls >= CALLS_MIN => number(ns, 1),
        _ => Cell::None,
    };
    let calls_per_s = cost.calls as f64 / duration.as_secs_f64();
    vec![
        text(tracker),
        text(cost.program.as_str()),
        number(calls_per_s, 0),
        average(Some(cost.average_over_empty_ns)),
        average(cost.average_over_empty_there_ns),
    ]
}

/// Of all calls of a tracker together; none where nothing was called.
fn bar(tracker: &str, costs: &[TrackerCost]) -> Option<Bar> {
    let calls: u64 = costs.iter().map(|cost| cost.calls).sum();
    let all_ns = costs
        .iter()
        .map(|cost| cost.calls as f64 * cost.average_over_empty_ns);
    (calls >= CALLS_MIN).then(|| Bar {
        what: format!("a call of the tracker {tracker}"),
        found: Some(all_ns.sum::<f64>() / calls as f64),
        limit: CALL_NS_MAX,
        unit: "ns",
    })
}

/// Connections over loopback, and a file that is written to the disk, while this lives: what
/// hackbench does not do.
struct Calls {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Calls {
    fn start() -> Result<Calls> {
        let stop = Arc::new(AtomicBool::new(false));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let mut file = tempfile::tempfile()?;
        let until = |stop: &Arc<AtomicBool>| {
            let stop = Arc::clone(stop);
            move || !stop.load(Ordering::Relaxed)
        };
        let (asks, writes) = (until(&stop), until(&stop));
        let threads = vec![
            std::thread::spawn(move || answer(&listener)),
            std::thread::spawn(move || {
                while asks() && ask(address).is_ok() {
                    std::thread::sleep(PAUSE);
                }
                // Nothing to say: the one who answers ends.
                drop(TcpStream::connect(address));
            }),
            std::thread::spawn(move || {
                while writes() && write(&mut file).is_ok() {
                    std::thread::sleep(PAUSE);
                }
            }),
        ];
        Ok(Calls { stop, threads })
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

/// Gives each a byte back, until one has none.
fn answer(listener: &TcpListener) {
    let mut byte = [0];
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        if stream.read_exact(&mut byte).is_err() || stream.write_all(&byte).is_err() {
            return;
        }
    }
}

fn ask(address: std::net::SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let mut byte = [7];
    stream.write_all(&byte)?;
    stream.read_exact(&mut byte)
}

fn write(file: &mut File) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    file.write_all_at(&[7; 4096], 0)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_tracker_weigh_as_often_as_they_come() {
        let cost = |calls, average_over_empty_ns| TrackerCost {
            program: "x".to_owned(),
            calls,
            average_over_empty_ns,
            average_over_empty_there_ns: None,
        };
        let found = |costs: &[TrackerCost]| bar("t", costs).and_then(|bar| bar.found);
        assert_eq!(found(&[cost(300, 10.0), cost(100, 50.0)]), Some(20.0));
        assert_eq!(found(&[cost(CALLS_MIN - 1, 10.0)]), None);
        assert_eq!(found(&[]), None);
    }
}
