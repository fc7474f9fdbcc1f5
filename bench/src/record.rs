//! What recording the kernel's events costs: beside `trace-cmd record` and `perf record`, the same
//! events under the same load.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::child::{self, Taken};
use crate::load;
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};
use crate::stats::{Comparison, median};

/// The word that runs hackbench and writes down what it took: `bench --load FILE LOOPS`.
pub const WORD: &str = "--load";

/// What a recording of the scheduler has. Every kernel has them, and each peer records them.
const EVENTS: [&str; 8] = [
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "irq:softirq_raise",
    "irq:softirq_entry",
    "irq:softirq_exit",
];
const GROUPS: u32 = 2;
const FDS: u32 = 2;
const RING_KIB: u32 = 8 << 10;
const PAGE_KIB: u32 = 4;
const LOOPS_TO_TRY: u64 = 100;

/// A recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Rtscope,
    TraceCmd,
    Perf,
}

impl Way {
    const ALL: [Way; 3] = [Way::Rtscope, Way::TraceCmd, Way::Perf];

    fn name(self) -> &'static str {
        match self {
            Way::Rtscope => "rtscope record",
            Way::TraceCmd => "trace-cmd record",
            Way::Perf => "perf record",
        }
    }

    /// Why it cannot be measured here; none when a short recording of it has events.
    fn lack(self, options: &Options, folder: &Path) -> Option<String> {
        let program = match self {
            Way::Rtscope => return None,
            Way::TraceCmd => "trace-cmd",
            Way::Perf => "perf",
        };
        if !child::exists(program) {
            return Some(format!("{program} is not installed"));
        }
        let tried = recorded(options, self, folder, LOOPS_TO_TRY);
        // What it left half-written would be in the next one's way.
        let _ = remove(&folder.join("recording"));
        match tried {
            Ok(ran) if ran.events > 0.0 => None,
            Ok(_) => Some(format!("{program} recorded nothing here")),
            Err(error) => Some(format!("{program} does not work here ({error:#})")),
        }
    }

    /// Records into `output` until the load ends, which is to follow.
    fn command(self, rtscope: &Path, output: &Path) -> Command {
        let mut command = match self {
            Way::Rtscope => Command::new(rtscope),
            Way::TraceCmd => Command::new("trace-cmd"),
            Way::Perf => Command::new("perf"),
        };
        match self {
            Way::Rtscope => {
                command.args(["record", "--events", &EVENTS.join(",")]);
                command.arg(format!("--buffer={RING_KIB}K"));
                command.arg("-o").arg(output).arg("--");
            }
            Way::TraceCmd => {
                command.args(["record", "-C", "mono", "-b", &RING_KIB.to_string()]);
                for event in EVENTS {
                    command.args(["-e", event]);
                }
                command.arg("-o").arg(output);
            }
            Way::Perf => {
                let pages = (RING_KIB / PAGE_KIB).to_string();
                // Every event, on all CPUs; no look for debug information at the end.
                command.args(["record", "-a", "-c", "1", "-B", "-N", "-m", &pages]);
                for event in EVENTS {
                    command.args(["-e", event]);
                }
                command.arg("-o").arg(output).arg("--");
            }
        }
        command
    }

    /// The events that are in the file, and those that are lost as far as it tells.
    fn counted(self, rtscope: &Path, output: &Path) -> Result<(f64, f64)> {
        if self == Way::Perf {
            let mut stats = Command::new("perf");
            stats.args(["report", "--stats", "-i"]).arg(output);
            let said = child::output(&mut stats)?;
            return Ok((
                stat(&said, "SAMPLE events:"),
                stat(&said, "LOST_SAMPLES events:"),
            ));
        }
        let mut info = Command::new(rtscope);
        info.args(["info", "--json"]).arg(output);
        let facts: Value = serde_json::from_str(&child::output(&mut info)?)?;
        let classes = facts["classes"].as_array().context("no classes")?;
        let wanted = classes.iter().filter(|class| is_wanted(&class["name"]));
        let events = wanted.filter_map(|class| class["events"].as_f64()).sum();
        Ok((events, facts["losses"]["discarded"].as_f64().unwrap_or(0.0)))
    }
}

/// Whether a class is one of [`EVENTS`], by the kernel's name or by LTTng's.
fn is_wanted(name: &Value) -> bool {
    let name = name.as_str().unwrap_or_default();
    let name = name
        .strip_prefix("irq_softirq")
        .map_or_else(|| name.to_owned(), |softirq| format!("softirq{softirq}"));
    EVENTS
        .iter()
        .any(|event| event.rsplit(':').next() == Some(&name))
}

/// The sum of the figures of a line of `perf report --stats`.
fn stat(said: &str, what: &str) -> f64 {
    let of_line = |line: &str| {
        let figure = line.trim().strip_prefix(what)?;
        figure.split_whitespace().next()?.parse::<f64>().ok()
    };
    said.lines().filter_map(of_line).next().unwrap_or(0.0)
}

/// One run of one recorder.
#[derive(Clone, Copy, Debug)]
struct Ran {
    /// hackbench's own time, and its CPU time.
    load_s: f64,
    load_cpu_s: f64,
    /// What the recorder took beside it, and how much of that to say at the end who was late.
    recorder_cpu_s: f64,
    verdict_cpu_s: f64,
    events: f64,
    lost: f64,
    bytes: f64,
}

impl Ran {
    fn recorder_ns_an_event(&self) -> f64 {
        self.recorder_cpu_s * 1e9 / self.events.max(1.0)
    }

    fn verdict_ns_an_event(&self) -> f64 {
        self.verdict_cpu_s * 1e9 / self.events.max(1.0)
    }

    fn bytes_an_event(&self) -> f64 {
        self.bytes / self.events.max(1.0)
    }
}

/// Runs hackbench and writes what it took into the file.
///
/// # Errors
/// When it does not run, or the file cannot be written.
pub fn run_load(words: &[String]) -> Result<()> {
    let [file, loops] = words else {
        anyhow::bail!("usage: bench {WORD} FILE LOOPS");
    };
    let wall_s = load::switching_hackbench_s(GROUPS, FDS, loops.parse()?)?;
    // SAFETY: all zero is a valid rusage, and the pointer is to a local.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time = |value: libc::timeval| value.tv_sec as f64 + value.tv_usec as f64 / 1e6;
    let cpu_s = time(usage.ru_utime) + time(usage.ru_stime);
    fs::write(file, json!({"wall_s": wall_s, "cpu_s": cpu_s}).to_string())?;
    Ok(())
}

/// hackbench's own time, and its CPU time, as the load wrote them down.
fn read_load(file: &Path) -> Result<(f64, f64)> {
    let said: Value = serde_json::from_slice(&fs::read(file)?)?;
    let figure = |key: &str| said[key].as_f64().with_context(|| format!("no {key}"));
    Ok((figure("wall_s")?, figure("cpu_s")?))
}

/// The words that start the load.
fn load_words(file: &Path, loops: u64) -> Result<[OsString; 4]> {
    Ok([
        std::env::current_exe()?.into(),
        WORD.into(),
        file.into(),
        loops.to_string().into(),
    ])
}

/// The load alone.
fn alone(folder: &Path, loops: u64) -> Result<(f64, f64)> {
    let file = folder.join("load");
    let [program, words @ ..] = load_words(&file, loops)?;
    child::run(Command::new(program).args(words))?;
    read_load(&file)
}

fn recorded(options: &Options, way: Way, folder: &Path, loops: u64) -> Result<Ran> {
    let (file, output) = (folder.join("load"), folder.join("recording"));
    let mut command = way.command(&options.rtscope, &output);
    command.args(load_words(&file, loops)?).current_dir(folder);
    let Taken { cpu, .. } = child::run(&mut command)?;
    let (load_s, load_cpu_s) = read_load(&file)?;
    let (events, lost) = way.counted(&options.rtscope, &output)?;
    let verdict_cpu_s = match way {
        Way::Rtscope => {
            let mut again = Command::new(&options.rtscope);
            let taken = child::run(again.arg("diagnose").arg(&output))?;
            taken.cpu.as_secs_f64()
        }
        Way::TraceCmd | Way::Perf => 0.0,
    };
    let ran = Ran {
        load_s,
        load_cpu_s,
        verdict_cpu_s,
        recorder_cpu_s: (cpu.as_secs_f64() - load_cpu_s).max(0.0),
        events,
        lost,
        bytes: size_bytes(&output)? as f64,
    };
    remove(&output)?;
    // What the disk still has to do would be the next recorder's.
    // SAFETY: a system call without arguments.
    unsafe { libc::sync() };
    std::thread::sleep(Duration::from_millis(200));
    Ok(ran)
}

/// Bytes of a file, or of all streams of a trace: what grows with its events.
fn size_bytes(path: &Path) -> Result<u64> {
    let facts = fs::metadata(path)?;
    if facts.is_file() {
        return Ok(facts.len());
    }
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        // Names of functions, as trace-cmd has them in its file too, are the machine's.
        bytes += match path.file_name().is_some_and(|name| name == "rtscope") {
            true => 0,
            false => size_bytes(&path)?,
        };
    }
    Ok(bytes)
}

fn remove(path: &Path) -> Result<()> {
    match path.is_dir() {
        true => fs::remove_dir_all(path)?,
        false => fs::remove_file(path)?,
    }
    Ok(())
}

/// Records the same load in every way, in turn.
pub fn measure(options: &Options) -> Result<Report> {
    load::require()?;
    let rounds = options.rounds.unwrap_or(options.pick(10, 1));
    let loops = options.pick(250_000, 2_000);
    let folder = tempfile::tempdir()?;
    let mut ways = Vec::new();
    let mut lacks = Vec::new();
    for way in Way::ALL {
        match way.lack(options, folder.path()) {
            None => ways.push(way),
            Some(lack) => lacks.push(format!("Not measured: {lack}.")),
        }
    }
    let mut alone_s = Vec::new();
    let mut ran: Vec<Vec<Ran>> = vec![Vec::new(); ways.len()];
    for round in 0..rounds {
        alone_s.push(alone(folder.path(), loops)?);
        for step in 0..ways.len() {
            // Each way comes first as often as the others.
            let at = (round + step) % ways.len();
            ran[at].push(recorded(options, ways[at], folder.path(), loops)?);
        }
    }
    let ran: Vec<(Way, Vec<Ran>)> = ways.into_iter().zip(ran).collect();
    Ok(Report {
        title: "Recording the kernel's events",
        command: "bench record".into(),
        setting: format!(
            "hackbench ({GROUPS} groups of {FDS} + {FDS} threads, pipes, {loops} loops of 4 KiB) \
             alone and under each recorder, {rounds} rounds of all in turn; {} MiB of ring a CPU; \
             {}. Recorder: CPU time of its process and its children by wait4, less the load's; of \
             rtscope that holds what it says of the worst delay at the end, as long as \
             `diagnose` takes for it. Bytes: the whole file, of rtscope without the names of the \
             kernel's functions.",
            RING_KIB >> 10,
            EVENTS.join(", ")
        ),
        tables: vec![of_load(&alone_s, &ran), of_recorders(&ran)],
        bars: bars(&ran),
        remarks: lacks.into_iter().chain(remarks(&ran)).collect(),
    })
}

/// The middle of one figure of all runs.
fn middle(ran: &[Ran], figure: impl Fn(&Ran) -> f64) -> Option<f64> {
    median(&ran.iter().map(figure).collect::<Vec<_>>())
}

/// What hackbench took beside each.
fn of_load(alone: &[(f64, f64)], ran: &[(Way, Vec<Ran>)]) -> Table {
    let walls: Vec<f64> = alone.iter().map(|(wall_s, _)| *wall_s).collect();
    let cpus: Vec<f64> = alone.iter().map(|(_, cpu_s)| *cpu_s).collect();
    let cell = |value: Option<f64>| value.map_or(Cell::None, |value| number(value, 3));
    let mut rows = vec![vec![
        text("none"),
        cell(median(&walls)),
        Cell::None,
        cell(median(&cpus)),
        Cell::None,
    ]];
    let change = |before: &[f64], after: Vec<f64>| {
        let pairs: Vec<_> = before.iter().copied().zip(after).collect();
        Comparison::of(&pairs).map_or(Cell::None, |change| text(change.words()))
    };
    for (way, ran) in ran {
        rows.push(vec![
            text(way.name()),
            cell(middle(ran, |ran| ran.load_s)),
            change(&walls, ran.iter().map(|ran| ran.load_s).collect()),
            cell(middle(ran, |ran| ran.load_cpu_s)),
            change(&cpus, ran.iter().map(|ran| ran.load_cpu_s).collect()),
        ]);
    }
    Table {
        columns: vec![
            "beside hackbench",
            "hackbench, s (median)",
            "change, % (95 % interval)",
            "its CPU, s (median)",
            "change, % (95 % interval), CPU",
        ],
        rows,
    }
}

fn of_recorders(ran: &[(Way, Vec<Ran>)]) -> Table {
    let cell = |value: Option<f64>, decimals| value.map_or(Cell::None, |v| number(v, decimals));
    let row = |(way, ran): &(Way, Vec<Ran>)| {
        vec![
            text(way.name()),
            cell(middle(ran, |ran| ran.events), 0),
            number(ran.iter().map(|ran| ran.lost).sum(), 0),
            cell(middle(ran, Ran::recorder_ns_an_event), 0),
            cell(middle(ran, Ran::verdict_ns_an_event), 0),
            cell(middle(ran, Ran::bytes_an_event), 1),
        ]
    };
    Table {
        columns: vec![
            "recorder",
            "events (median)",
            "lost, all rounds",
            "its CPU time an event, ns (median)",
            "of it the verdict at the end, ns",
            "bytes an event (median)",
        ],
        rows: ran.iter().map(row).collect(),
    }
}

fn of(ran: &[(Way, Vec<Ran>)], wanted: Way) -> Option<&[Ran]> {
    let mut found = ran.iter().filter(|(way, _)| *way == wanted);
    found.next().map(|(_, ran)| ran.as_slice())
}

/// Ours, of a peer's: the median of the pairs.
fn ratio(ran: &[(Way, Vec<Ran>)], peer: Way, figure: impl Fn(&Ran) -> f64) -> Option<f64> {
    let (ours, theirs) = (of(ran, Way::Rtscope)?, of(ran, peer)?);
    let pairs = theirs.iter().zip(ours).map(|(a, b)| (figure(a), figure(b)));
    Comparison::of(&pairs.collect::<Vec<_>>()).map(|change| change.ratio)
}

fn bars(ran: &[(Way, Vec<Ran>)]) -> Vec<Bar> {
    let bar = |what: &str, found, limit, unit| Bar {
        what: what.into(),
        found,
        limit,
        unit,
    };
    let cheapest = [Way::TraceCmd, Way::Perf]
        .into_iter()
        .filter_map(|peer| ratio(ran, peer, |ran| ran.load_cpu_s))
        .max_by(f64::total_cmp);
    let lost = of(ran, Way::Rtscope).map(|ran| ran.iter().map(|ran| ran.lost).sum());
    vec![
        bar(
            "the recorder's CPU time an event, of trace-cmd's",
            ratio(ran, Way::TraceCmd, Ran::recorder_ns_an_event),
            1.0,
            "",
        ),
        bar(
            "the load's CPU time, of that under the cheapest peer",
            cheapest,
            1.0,
            "",
        ),
        bar("events lost at hackbench's full rate", lost, 0.0, "events"),
    ]
}

/// What else is compared, with its interval.
fn remarks(ran: &[(Way, Vec<Ran>)]) -> Vec<String> {
    let peers = [Way::TraceCmd, Way::Perf].into_iter();
    let beside = |peer: Way| {
        let (ours, theirs) = (of(ran, Way::Rtscope)?, of(ran, peer)?);
        let words = |figure: fn(&Ran) -> f64| {
            let pairs = theirs.iter().zip(ours).map(|(a, b)| (figure(a), figure(b)));
            let compared = Comparison::of(&pairs.collect::<Vec<_>>());
            compared.map_or("-".into(), |found| found.words())
        };
        Some(format!(
            "Beside {}: the recorder's CPU time an event {}; the load's CPU time {}; its own time \
             {}; bytes an event {}.",
            peer.name(),
            words(Ran::recorder_ns_an_event),
            words(|ran| ran.load_cpu_s),
            words(|ran| ran.load_s),
            words(Ran::bytes_an_event),
        ))
    };
    peers.filter_map(beside).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    #[test]
    fn only_the_events_that_every_recorder_has_are_counted() {
        let check = |name: &str, expect: bool| {
            assert_eq!(is_wanted(&Value::from(name)), expect, "{name}");
        };
        check("sched_switch", true);
        check("softirq_entry", true);
        check("irq_softirq_entry", true);
        check("lttng_statedump_process_state", false);
        check("rtscope_current", false);
        check("", false);
    }

    #[test]
    fn perfs_figures_are_read_from_its_statistics() {
        let said = "Aggregated stats:\n           TOTAL events:    2219810\n            \
                    SAMPLE events:    2218899  (100.0%)\n    LOST_SAMPLES events:         12\n";
        assert_eq!(stat(said, "SAMPLE events:"), 2_218_899.0);
        assert_eq!(stat(said, "LOST_SAMPLES events:"), 12.0);
        assert_eq!(stat(said, "MMAP events:"), 0.0);
    }

    #[test]
    fn a_trace_is_as_large_as_its_streams_and_metadata() {
        let folder = tempfile::tempdir().expect("a folder");
        written(folder.path(), "kernel/channel0_0", "12345");
        written(folder.path(), "kernel/index/channel0_0.idx", "123");
        written(folder.path(), "rtscope/functions", "123456789");
        assert_eq!(size_bytes(folder.path()).expect("a size"), 8);
        let file = written(folder.path(), "file", "12");
        assert_eq!(size_bytes(&file).expect("a size"), 2);
    }
}
