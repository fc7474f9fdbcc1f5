//! What a tracer costs a process that starts, forks and locks its memory: ours, LTTng-UST's and
//! none, recorded and not, all ways in turn.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use super::limits::{Running, bar, begin_recorder, program, until_idle};
use super::peer::{self, Peer, kib_of};
use super::scene::Scene;
use crate::child;
use crate::report::{Bar, Cell, Table, number, text};
use crate::stats::median;

/// Of the start of a process, with rings of the usual size.
const START_MS_MAX: f64 = 1.0;
/// Of a fork, over LTTng-UST's.
const FORK_SHARE_MAX: f64 = 1.0;
/// Forks of a run, of which it says the median; and fewer where it is only tried.
const FORKS: u32 = 50;
const FORKS_SMALL: u32 = 3;

/// Who traces, and whether somebody records.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Nobody,
    Ours,
    /// Asked for by the environment; nobody reads.
    OursLarge,
    OursRecorded,
    Lttng,
    LttngRecorded,
}

const WAYS: [Way; 6] = [
    Way::Nobody,
    Way::Ours,
    Way::OursLarge,
    Way::OursRecorded,
    Way::Lttng,
    Way::LttngRecorded,
];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Nobody => "no tracer",
            Way::Ours => "rtscope, 256 KiB a CPU, not recorded",
            Way::OursLarge => "rtscope, 8 MiB a CPU, not recorded",
            Way::OursRecorded => "rtscope record",
            Way::Lttng => "LTTng-UST, no session daemon",
            Way::LttngRecorded => "LTTng-UST, recorded",
        }
    }
}

/// Both recorders, which are there all the time: they do nothing for a process that is none of
/// theirs, and what little they do then is the same for all ways.
struct Beside<'a> {
    scene: &'a Scene<'a>,
    recorder: Running,
    trace: PathBuf,
    peer: Option<Peer>,
    /// Where nobody records.
    elsewhere: tempfile::TempDir,
}

impl<'a> Beside<'a> {
    fn start(scene: &'a Scene<'a>) -> Result<Beside<'a>> {
        let (recorder, trace) = begin_recorder(scene)?;
        let peer = scene.lttng.is_some().then(Peer::start).transpose()?;
        Ok(Beside {
            scene,
            recorder,
            trace,
            peer,
            elsewhere: tempfile::tempdir_in("/dev/shm")?,
        })
    }

    /// The ways that there are here.
    fn ways(&self) -> Vec<Way> {
        let is_here = |way: &Way| match way {
            Way::Lttng | Way::LttngRecorded => self.peer.is_some(),
            Way::Nobody | Way::Ours | Way::OursLarge | Way::OursRecorded => true,
        };
        WAYS.into_iter().filter(is_here).collect()
    }

    /// A program of `bench/probe`, compiled for each way.
    fn programs(&self, name: &str) -> Result<Vec<(Way, PathBuf)>> {
        let none = peer::program(self.scene, name, false)?;
        let ours = program(self.scene.folder, name)?;
        let theirs = self.peer.as_ref();
        let theirs = theirs.map(|_| peer::program(self.scene, name, true));
        let theirs = theirs.transpose()?;
        let of = |way| match way {
            Way::Nobody => Some(none.clone()),
            Way::Ours | Way::OursLarge | Way::OursRecorded => Some(ours.clone()),
            Way::Lttng | Way::LttngRecorded => theirs.clone(),
        };
        let ways = self.ways().into_iter();
        Ok(ways.filter_map(|way| Some((way, of(way)?))).collect())
    }

    /// A program to run in this way.
    fn command(&self, way: Way, program: &PathBuf) -> Command {
        let mut command = match (way, &self.peer) {
            (Way::LttngRecorded, Some(peer)) => peer.command(program),
            _ => Command::new(program),
        };
        let elsewhere = self.elsewhere.path();
        match way {
            Way::Nobody | Way::LttngRecorded => &mut command,
            Way::Ours => command.env("RTSCOPE_DIR", elsewhere),
            Way::OursLarge => command
                .env("RTSCOPE_DIR", elsewhere)
                .env("RTSCOPE_RING_SIZE", "8M"),
            Way::OursRecorded => command.env("RTSCOPE_DIR", self.scene.shared),
            Way::Lttng => command
                .env("HOME", elsewhere)
                .env("LD_PRELOAD", peer::FORK_LIBRARY),
        };
        command
    }

    /// Waits until neither recorder has anything to do.
    fn settle(&self) -> Result<()> {
        until_idle(self.recorder.pid())?;
        self.peer.as_ref().map_or(Ok(()), Peer::settle)
    }

    fn end(self) -> Result<()> {
        self.recorder.end()?;
        Ok(std::fs::remove_dir_all(self.trace)?)
    }
}

/// Both tables and their bars.
pub(super) fn begins(scene: &Scene<'_>, is_whole: bool, rounds: usize) -> Result<Begins> {
    eprintln!("  the start of a process, its forks, its locked memory");
    let beside = Beside::start(scene)?;
    let (start, mut bars) = starting(&beside, rounds)?;
    let forks = if is_whole { FORKS } else { FORKS_SMALL };
    let (fork, fork_bars) = forking(&beside, forks, rounds.div_ceil(5))?;
    bars.extend(fork_bars);
    beside.end()?;
    Ok(Begins {
        tables: vec![start, fork],
        bars,
    })
}

/// The tables and bars of this file.
pub(super) struct Begins {
    pub tables: Vec<Table>,
    pub bars: Vec<Bar>,
}

/// What the starts of one way took, in milliseconds, and what it locked.
struct Starts {
    way: Way,
    program: PathBuf,
    ms: Vec<f64>,
    locked_ms: Vec<f64>,
    locked_mb: Vec<f64>,
    resident_mb: Vec<f64>,
}

fn starting(beside: &Beside<'_>, rounds: usize) -> Result<(Table, Vec<Bar>)> {
    let programs = beside.programs("start")?.into_iter();
    let mut all: Vec<Starts> = programs
        .map(|(way, program)| Starts {
            way,
            program,
            ms: Vec::new(),
            locked_ms: Vec::new(),
            locked_mb: Vec::new(),
            resident_mb: Vec::new(),
        })
        .collect();
    for _ in 0..rounds {
        for starts in &mut all {
            let mut command = beside.command(starts.way, &starts.program);
            starts
                .ms
                .push(child::run(&mut command)?.wall.as_secs_f64() * 1e3);
            let mut command = beside.command(starts.way, &starts.program);
            let begin = Instant::now();
            let said = child::output(command.arg("locked"))?;
            starts.locked_ms.push(begin.elapsed().as_secs_f64() * 1e3);
            starts
                .locked_mb
                .push(kib_of(&said, "VmLck:")? * 1024.0 / 1e6);
            starts
                .resident_mb
                .push(kib_of(&said, "VmRSS:")? * 1024.0 / 1e6);
            beside.settle()?;
        }
    }
    let of = |values: &[f64]| median(values).unwrap_or_default();
    let none = all.first().map_or(0.0, |starts| of(&starts.ms));
    let row = |starts: &Starts| {
        let ms = of(&starts.ms);
        let added = match starts.way {
            Way::Nobody => Cell::None,
            _ => number(ms - none, 2),
        };
        vec![
            text(starts.way.name()),
            number(ms, 2),
            added,
            number(of(&starts.locked_ms), 2),
            number(of(&starts.locked_mb), 1),
            number(of(&starts.resident_mb), 1),
        ]
    };
    let table = Table {
        columns: vec![
            "start of a process",
            "ms",
            "added, ms",
            "with mlockall, ms",
            "locked, MB",
            "resident then, MB",
        ],
        rows: all.iter().map(row).collect(),
    };
    let usual = all.iter().find(|starts| starts.way == Way::Ours);
    let added = usual.map(|starts| of(&starts.ms) - none);
    let what = "added to the start of a process, usual rings";
    Ok((table, vec![bar(what, added, START_MS_MAX, "ms")]))
}

/// What the forks of one way took, in microseconds.
struct Forks {
    way: Way,
    program: PathBuf,
    call_us: Vec<f64>,
    whole_us: Vec<f64>,
}

fn forking(beside: &Beside<'_>, forks: u32, rounds: usize) -> Result<(Table, Vec<Bar>)> {
    let programs = beside.programs("forks")?.into_iter();
    let mut all: Vec<Forks> = programs
        .map(|(way, program)| Forks {
            way,
            program,
            call_us: Vec::new(),
            whole_us: Vec::new(),
        })
        .collect();
    for _ in 0..rounds {
        for of_way in &mut all {
            let mut command = beside.command(of_way.way, &of_way.program);
            let said = child::output(command.arg(forks.to_string()))?;
            let said: Value = serde_json::from_str(&said)?;
            let us = |key: &str| Some(said[key].as_f64()? / 1e3);
            of_way.call_us.push(us("call_ns").context("no call_ns")?);
            of_way.whole_us.push(us("whole_ns").context("no whole_ns")?);
            beside.settle()?;
        }
    }
    let of = |values: &[f64]| median(values).unwrap_or_default();
    let row = |forks: &Forks| {
        vec![
            text(forks.way.name()),
            number(of(&forks.call_us), 0),
            number(of(&forks.whole_us), 0),
        ]
    };
    let table = Table {
        columns: vec![
            "forks of a process",
            "the call, us",
            "until the child is gone, us",
        ],
        rows: all.iter().map(row).collect(),
    };
    Ok((table, fork_bars(&all)))
}

/// Of our forks over LTTng-UST's, recorded and not.
fn fork_bars(all: &[Forks]) -> Vec<Bar> {
    let of = |way: Way, part: fn(&Forks) -> &[f64]| {
        let found = all.iter().find(|forks| forks.way == way)?;
        median(part(found))
    };
    let share = |what: &str, (ours, theirs): (Way, Way), part: fn(&Forks) -> &[f64]| {
        let found = of(ours, part).zip(of(theirs, part));
        let found = found.map(|(ours, theirs)| ours / theirs);
        let what = format!("{what}, of LTTng-UST's");
        bar(&what, found, FORK_SHARE_MAX, "")
    };
    let idle = (Way::Ours, Way::Lttng);
    let recorded = (Way::OursRecorded, Way::LttngRecorded);
    let call: fn(&Forks) -> &[f64] = |forks| &forks.call_us;
    let whole: fn(&Forks) -> &[f64] = |forks| &forks.whole_us;
    vec![
        share("the call of a fork, not recorded", idle, call),
        share("a fork until the child is gone, not recorded", idle, whole),
        share("the call of a fork, recorded", recorded, call),
        share("a fork until the child is gone, recorded", recorded, whole),
    ]
}
