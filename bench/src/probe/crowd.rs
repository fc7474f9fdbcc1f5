//! What many processes at once cost whoever records them, and themselves: ours, LTTng-UST, and
//! nobody, in turn.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;

use super::limits::{bar, begin_recorder, program, until_idle};
use super::peer::{self, Peer, events_in};
use super::scene::Scene;
use crate::child;
use crate::report::{Bar, Cell, Table, number, text};
use crate::stats::median;

/// So many processes, each with so many events, two a second.
const CROWDS: [u32; 3] = [1, 100, 1000];
const EVENTS: u32 = 8;
/// The same where it is only tried.
const CROWDS_SMALL: [u32; 1] = [10];
const EVENTS_SMALL: u32 = 1;
/// Of the recorder of the largest crowd.
const CPU_S_MAX: f64 = 3.0;
const MEMORY_MB_MAX: f64 = 200.0;
/// How often it is looked how much shared memory is taken.
const LOOK: Duration = Duration::from_millis(20);

/// What one crowd took.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// Of the recorder, from its start to its end.
    cpu_s: f64,
    memory_mb: f64,
    /// At most, beyond what was taken before: rings, whosever memory they count as.
    shared_mb: f64,
    /// Of all processes of the crowd.
    processes_cpu_s: f64,
    /// Starting and ending them, with their seconds.
    wall_s: f64,
    recorded: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Recorder {
    Nobody,
    Ours,
    Lttng,
}

impl Recorder {
    fn name(self) -> &'static str {
        match self {
            Recorder::Nobody => "nobody",
            Recorder::Ours => "rtscope record",
            Recorder::Lttng => "LTTng-UST",
        }
    }
}

/// Each recorder, and the program as it is compiled for it.
fn ways(scene: &Scene<'_>) -> Result<Vec<(Recorder, PathBuf)>> {
    let mut ways = vec![
        (Recorder::Nobody, peer::program(scene, "crowd", false)?),
        (Recorder::Ours, program(scene.folder, "crowd")?),
    ];
    if scene.lttng.is_some() {
        ways.push((Recorder::Lttng, peer::program(scene, "crowd", true)?));
    }
    Ok(ways)
}

/// The table, and the bars of the largest crowd where all were there.
pub(super) fn crowds(
    scene: &Scene<'_>,
    is_whole: bool,
    rounds: usize,
) -> Result<(Table, Vec<Bar>)> {
    let (crowds, events) = match is_whole {
        true => (&CROWDS[..], EVENTS),
        false => (&CROWDS_SMALL[..], EVENTS_SMALL),
    };
    let ways = ways(scene)?;
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for &processes in crowds {
        eprintln!("  {processes} processes at once");
        let mut costs = vec![Vec::new(); ways.len()];
        for _ in 0..rounds {
            for ((recorder, program), costs) in ways.iter().zip(&mut costs) {
                let words = [processes.to_string(), events.to_string()];
                costs.push(cost(scene, *recorder, program, &words)?);
            }
        }
        for ((recorder, _), costs) in ways.iter().zip(&costs) {
            let cost = Cost::median(costs);
            rows.push(cost.row(processes, *recorder));
            if is_whole && processes == CROWDS[CROWDS.len() - 1] && *recorder == Recorder::Ours {
                bars = cost.bars();
            }
        }
    }
    let columns = vec![
        "processes at once",
        "recorder",
        "its CPU time, s",
        "its memory, MB",
        "shared memory, MB",
        "CPU time of the processes, s",
        "wall, s",
        "events recorded",
    ];
    Ok((Table { columns, rows }, bars))
}

fn cost(scene: &Scene<'_>, recorder: Recorder, program: &Path, words: &[String]) -> Result<Cost> {
    match recorder {
        Recorder::Nobody => run(Command::new(program).args(words)),
        Recorder::Ours => {
            let (recorder, trace) = begin_recorder(scene)?;
            let mut crowd = Command::new(program);
            let cost = run(crowd.args(words).env("RTSCOPE_DIR", scene.shared))?;
            until_idle(recorder.pid())?;
            let taken = recorder.end()?;
            let recorded = events_in(scene, &trace)?;
            std::fs::remove_dir_all(trace)?;
            Ok(Cost {
                cpu_s: taken.cpu.as_secs_f64(),
                memory_mb: taken.resident_bytes_max as f64 / 1e6,
                recorded: recorded as f64,
                ..cost
            })
        }
        Recorder::Lttng => {
            let peer = Peer::start()?;
            let cost = run(peer.command(program).args(words))?;
            peer.settle()?;
            let took = peer.stop()?;
            Ok(Cost {
                cpu_s: took.cpu_s,
                memory_mb: took.memory_mb,
                recorded: peer.events(scene)? as f64,
                ..cost
            })
        }
    }
}

/// Runs a crowd to its end, and looks meanwhile how much shared memory is taken.
fn run(crowd: &mut Command) -> Result<Cost> {
    let (is_over, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let before = shared_bytes()?;
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(shared_bytes().unwrap_or_default(), Ordering::Relaxed);
                std::thread::sleep(LOOK);
            }
        });
        let ran = child::run(crowd);
        is_over.store(true, Ordering::Relaxed);
        ran
    })?;
    let most = most.into_inner();
    Ok(Cost {
        shared_mb: most.saturating_sub(before) as f64 / 1e6,
        processes_cpu_s: ran.cpu.as_secs_f64(),
        wall_s: ran.wall.as_secs_f64(),
        ..Cost::default()
    })
}

/// What is taken of shared memory.
fn shared_bytes() -> Result<u64> {
    // SAFETY: all zero is a valid statvfs.
    let mut facts: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a text that ends, and a local that outlives the call.
    if unsafe { libc::statvfs(c"/dev/shm".as_ptr(), &raw mut facts) } != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok((facts.f_blocks - facts.f_bfree) * facts.f_frsize)
}

impl Cost {
    fn median(costs: &[Cost]) -> Cost {
        let of = |part: fn(&Cost) -> f64| {
            let values: Vec<f64> = costs.iter().map(part).collect();
            median(&values).unwrap_or_default()
        };
        Cost {
            cpu_s: of(|cost| cost.cpu_s),
            memory_mb: of(|cost| cost.memory_mb),
            shared_mb: of(|cost| cost.shared_mb),
            processes_cpu_s: of(|cost| cost.processes_cpu_s),
            wall_s: of(|cost| cost.wall_s),
            recorded: of(|cost| cost.recorded),
        }
    }

    fn row(&self, processes: u32, recorder: Recorder) -> Vec<Cell> {
        let of_recorder = |value: f64, decimals| match recorder {
            Recorder::Nobody => Cell::None,
            Recorder::Ours | Recorder::Lttng => number(value, decimals),
        };
        vec![
            text(processes.to_string()),
            text(recorder.name()),
            of_recorder(self.cpu_s, 2),
            of_recorder(self.memory_mb, 1),
            of_recorder(self.shared_mb, 1),
            number(self.processes_cpu_s, 2),
            number(self.wall_s, 2),
            of_recorder(self.recorded, 0),
        ]
    }

    fn bars(&self) -> Vec<Bar> {
        let cpu = "recorder of 1,000 processes, CPU, from its start to its end";
        let memory = Some(self.memory_mb);
        vec![
            bar(cpu, Some(self.cpu_s), CPU_S_MAX, "s"),
            bar("the same, memory", memory, MEMORY_MB_MAX, "MB"),
        ]
    }
}
