//! The trace engine beside babeltrace2 and trace-cmd: every field, text, a rare event, opening and
//! seeking.

mod dat;
mod traces;
pub mod walk;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::child::{self, Taken};
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};
use crate::stats::{Comparison, median};

use traces::Traces;
use walk::Walked;

/// Ours takes at most this part of babeltrace2's time.
const OF_PEER_MAX: f64 = 0.1;
/// A filter on a rare event takes at most this part of decoding all.
const RARE_MAX: f64 = 0.33;
/// Of trace-cmd's time for the same file as text.
const OF_TRACE_CMD_MAX: f64 = 0.2;
const SEEK_MS_MAX: f64 = 50.0;
const PRIVATE_MB_MAX: f64 = 100.0;

/// What was measured of one way.
struct Way {
    name: &'static str,
    wall_s: Vec<f64>,
    cpu_s: Vec<f64>,
}

impl Way {
    fn new(name: &'static str) -> Way {
        Way {
            name,
            wall_s: Vec::new(),
            cpu_s: Vec::new(),
        }
    }

    fn add(&mut self, taken: Taken) {
        self.wall_s.push(taken.wall.as_secs_f64());
        self.cpu_s.push(taken.cpu.as_secs_f64());
    }

    fn row(&self, trace: &str, events: f64) -> Vec<Cell> {
        let wall_s = median(&self.wall_s);
        let rate = wall_s.map(|wall_s| events / wall_s / 1e6);
        let cell = |value: Option<f64>, decimals| value.map_or(Cell::None, |v| number(v, decimals));
        vec![
            text(trace),
            text(self.name),
            cell(wall_s, 3),
            cell(median(&self.cpu_s), 3),
            cell(rate, 2),
        ]
    }
}

/// Makes or finds the traces, then reads them in all ways, in turn.
///
/// # Errors
/// When a trace cannot be made, or a program fails that should not.
pub fn measure(options: &Options) -> Result<Report> {
    let traces = Traces::ready(options)?;
    let rounds = options.pick(5, 1);
    let mut report = Report {
        title: "The trace engine",
        command: "bench engine".into(),
        setting: format!(
            "{} {rounds} rounds of all ways in turn, each a process of its own, warm cache, \
             output thrown away; ours decodes every field of every event, merged by time, into a \
             checksum that depends on order: with one thread, and with one for each CPU of {}; \
             `cat` writes CTF with a thread for each CPU; babeltrace2 has one thread.",
            traces.setting(),
            std::thread::available_parallelism()?
        ),
        tables: vec![Table {
            columns: vec![
                "trace",
                "way",
                "wall, s (median)",
                "CPU, s (median)",
                "million events/s",
            ],
            rows: Vec::new(),
        }],
        bars: Vec::new(),
        remarks: Vec::new(),
    };
    for (name, dir, rare) in [
        ("kernel", &traces.kernel, Some("sched_process_exit")),
        ("user", &traces.user, Some("app:rare")),
    ] {
        beside_peer(options, &mut report, rounds, (name, dir, rare))?;
    }
    for dir in &options.traces {
        let name = dir.file_name().unwrap_or(dir.as_os_str());
        let name = name.to_string_lossy();
        beside_peer(options, &mut report, rounds, (&name, dir, None))?;
    }
    if let Some(dat) = &traces.dat {
        beside_trace_cmd(options, &mut report, rounds, dat)?;
    }
    seeking(&mut report, &traces.large, rounds)?;
    Ok(report)
}

/// The same file as text, by us and by the tool that it is of.
fn beside_trace_cmd(
    options: &Options,
    report: &mut Report,
    rounds: usize,
    file: &Path,
) -> Result<()> {
    eprintln!("reading the trace 'dat'");
    let events = walked(file, walk::FIELDS)?.events as f64;
    let mut ours = Way::new("rtscope cat");
    let mut theirs = Way::new("trace-cmd report");
    for _ in 0..rounds {
        ours.add(child::run(&mut cat(options, file))?);
        let mut command = Command::new("trace-cmd");
        theirs.add(child::run(command.args(["report", "-i"]).arg(file))?);
    }
    let ways = [&ours, &theirs];
    report.tables[0]
        .rows
        .extend(ways.map(|way| way.row("trace.dat", events)));
    report.bars.push(bar(
        "trace.dat: text, of `trace-cmd report`'s".into(),
        &ours,
        &theirs,
        OF_TRACE_CMD_MAX,
    ));
    report
        .remarks
        .extend(compared("trace.dat", "text", &ours, &theirs));
    Ok(())
}

/// All ways to read one trace, its name and the name of a rare event in it, if one is known.
fn beside_peer(
    options: &Options,
    report: &mut Report,
    rounds: usize,
    (name, dir, rare): (&str, &Path, Option<&str>),
) -> Result<()> {
    eprintln!("reading the trace '{name}'");
    let of_one = walked(dir, walk::FIELDS)?;
    let walked = walked(dir, walk::FIELDS_BY_ALL)?;
    anyhow::ensure!(
        (walked.checksum, walked.events) == (of_one.checksum, of_one.events),
        "{name}: several threads read {walked:?}, one {of_one:?}"
    );
    let ways = in_all_ways(options, rounds, dir, rare)?;
    let events = walked.events as f64;
    let rows = ways.iter().filter(|way| !way.wall_s.is_empty());
    report.tables[0]
        .rows
        .extend(rows.map(|way| way.row(name, events)));
    let [
        fields,
        rare_event,
        text_of_ours,
        dummy,
        text_of_peer,
        fields_by_all,
    ] = &ways;
    for (how, fields) in [("all CPUs", fields_by_all), ("one thread", fields)] {
        let what = format!("{name}: every field, {how}, of `babeltrace2 -o dummy`");
        report.bars.push(bar(what, fields, dummy, OF_PEER_MAX));
    }
    report.bars.push(bar(
        format!("{name}: text, of babeltrace2's"),
        text_of_ours,
        text_of_peer,
        OF_PEER_MAX,
    ));
    if rare.is_some() {
        let what = format!("{name}: a rare event, of every field");
        report.bars.push(bar(what, rare_event, fields, RARE_MAX));
    }
    report.bars.push(Bar {
        what: format!("{name}: private memory (RssAnon)"),
        found: Some(walked.private_bytes_max as f64 / 1e6),
        limit: PRIVATE_MB_MAX,
        unit: "MB",
    });
    for (what, ours, other) in [
        ("every field with all CPUs", fields_by_all, dummy),
        ("every field with one thread", fields, dummy),
        ("text", text_of_ours, text_of_peer),
        ("a rare event", rare_event, fields),
    ] {
        report.remarks.extend(compared(name, what, ours, other));
    }
    report.remarks.push(format!(
        "{name}: checksum {:016x}, the same with both.",
        walked.checksum
    ));
    Ok(())
}

/// Reads one trace in all ways, in turn.
fn in_all_ways(
    options: &Options,
    rounds: usize,
    dir: &Path,
    rare: Option<&str>,
) -> Result<[Way; 6]> {
    let mut ways = [
        Way::new("every field, one thread"),
        Way::new("a rare event"),
        Way::new("rtscope cat"),
        Way::new("babeltrace2 -o dummy"),
        Way::new("babeltrace2 (text)"),
        Way::new("every field, all CPUs"),
    ];
    let has_peer = child::exists("babeltrace2");
    for round in 1..=rounds {
        eprintln!("  round {round} of {rounds}");
        ways[0].add(child::run(&mut walker(dir, walk::FIELDS)?)?);
        ways[5].add(child::run(&mut walker(dir, walk::FIELDS_BY_ALL)?)?);
        if let Some(rare) = rare {
            ways[1].add(child::run(&mut walker(dir, rare)?)?);
        }
        ways[2].add(child::run(&mut cat(options, dir))?);
        if has_peer {
            ways[3].add(child::run(
                Command::new("babeltrace2").args(["-o", "dummy"]).arg(dir),
            )?);
            ways[4].add(child::run(Command::new("babeltrace2").arg(dir))?);
        }
    }
    Ok(ways)
}

fn bar(what: String, ours: &Way, other: &Way, limit: f64) -> Bar {
    Bar {
        what,
        found: comparison(ours, other).map(|comparison| comparison.ratio),
        limit,
        unit: "of its time",
    }
}

fn comparison(ours: &Way, other: &Way) -> Option<Comparison> {
    let pairs: Vec<_> = other
        .wall_s
        .iter()
        .copied()
        .zip(ours.wall_s.iter().copied())
        .collect();
    Comparison::of(&pairs)
}

fn compared(trace: &str, what: &str, ours: &Way, other: &Way) -> Option<String> {
    let comparison = comparison(ours, other)?;
    let Comparison { ratio, low, high } = comparison;
    let resolved = if comparison.is_resolved() {
        ""
    } else {
        "; not resolved"
    };
    Some(format!(
        "{trace}: {what} takes {ratio:.3} of the time of {} (95 % interval {low:.3} to \
         {high:.3}{resolved}): {:.1} times as fast.",
        other.name,
        1.0 / ratio
    ))
}

/// Opens the large trace and goes to its middle.
fn seeking(report: &mut Report, dir: &Path, rounds: usize) -> Result<()> {
    eprintln!("going to the middle of the trace 'large'");
    let all = (0..rounds.max(2)).map(|_| walked(dir, "middle"));
    let all = all.collect::<Result<Vec<Walked>>>()?;
    let ms = |of: fn(&Walked) -> f64| median(&all.iter().map(of).collect::<Vec<_>>());
    let (first, again) = (ms(|w| w.open_seek_ms), ms(|w| w.seek_again_ms));
    report.bars.push(Bar {
        what: "2 GB: open, index and go to the middle".into(),
        found: first,
        limit: SEEK_MS_MAX,
        unit: "ms",
    });
    report.bars.push(Bar {
        what: "2 GB: go to the middle again".into(),
        found: again,
        limit: SEEK_MS_MAX,
        unit: "ms",
    });
    Ok(())
}

fn cat(options: &Options, dir: &Path) -> Command {
    // Losses in a recording are told by exit code 3.
    let script = "\"$0\" cat \"$1\" || [ $? = 3 ]";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(&options.rtscope).arg(dir);
    command
}

/// This very program, to walk over a trace in a process of its own.
fn walker(dir: &Path, what: &str) -> Result<Command> {
    let this: PathBuf = std::env::current_exe()?;
    let mut command = Command::new(this);
    command.arg(walk::WORD).arg(dir).arg(what);
    Ok(command)
}

fn walked(dir: &Path, what: &str) -> Result<Walked> {
    Walked::parse(&child::output(&mut walker(dir, what)?)?)
}
