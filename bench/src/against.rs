//! An older rtscope and this one over the same trace, in turn: what became slower, what faster.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::child::{self, Taken};
use crate::diagnose;
use crate::load;
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};
use crate::reports::{TOGETHER, VIEWS};
use crate::stats::{Comparison, median};

/// Promised: no verb takes more than a twentieth more than before.
const CPU_RATIO_MAX: f64 = 1.05;
const ROUNDS: usize = 15;
const MILLION: f64 = 1e6;
/// Counts instructions where the machine's own counters are hidden, as they are from most guests.
const COUNTER: &str = "valgrind";

/// Runs both, verb by verb.
pub fn measure(options: &Options) -> Result<Report> {
    let older = options.older.as_deref().context("no older program")?;
    let folder = tempfile::tempdir()?;
    let trace = trace(options, folder.path())?;
    let rounds = options.rounds.unwrap_or(options.pick(ROUNDS, 1));
    let programs = [older, options.rtscope.as_path()];
    let counts = child::exists(COUNTER) && !options.small;
    let mut table = Table {
        columns: COLUMNS.to_vec(),
        rows: Vec::new(),
    };
    let mut bars = Vec::new();
    for (name, words) in verbs() {
        eprintln!("  {name}");
        let command = |program: &Path| {
            let mut command = Command::new(program);
            command.args(&words).arg(&trace);
            command
        };
        let taken = in_turn(rounds, || programs.map(command))?;
        let instructions = match counts {
            true => Some(instructions(programs.map(command), folder.path())?),
            false => None,
        };
        let cpu = Comparison::of(&pairs(&taken, |taken| taken.cpu.as_secs_f64()));
        bars.push(Bar {
            what: format!("{name}, CPU time of now over that of before"),
            found: cpu.map(|cpu| cpu.ratio),
            limit: CPU_RATIO_MAX,
            unit: "times",
        });
        table.rows.push(row(&name, instructions, &taken));
    }
    Ok(Report {
        title: "Before and now",
        command: "bench against OLDER".into(),
        setting: format!(
            "{}; {rounds} rounds, in each of them both programs, who comes first alternates; \
             output thrown away. CPU time and memory by wait4; instructions by valgrind, one run \
             each.",
            setting(options)
        ),
        tables: vec![table],
        bars,
        remarks: match counts {
            true => Vec::new(),
            false => vec![format!(
                "{COUNTER} was not asked: no instructions were counted."
            )],
        },
    })
}

const COLUMNS: [&str; 8] = [
    "verb",
    "before, million instructions",
    "now, million instructions",
    "change, %",
    "CPU before, s (median)",
    "CPU now, s (median)",
    "change (95 % interval)",
    "memory before and now, MB (max)",
];

/// One of each way to read a trace.
fn verbs() -> Vec<(String, Vec<String>)> {
    let all = format!("{TOGETHER},{VIEWS}");
    let report =
        |name: &str, reports: &str| (name.to_owned(), vec!["report".into(), reports.into()]);
    let mut path = report("report criticalpath", "criticalpath");
    path.1.extend(["--procname".into(), "hackbench".into()]);
    vec![
        report("report cputop", "cputop"),
        report("report schedtop", "schedtop"),
        report("report irqstats", "irqstats"),
        report("report syscallstats", "syscallstats"),
        report("twelve reports in one pass", TOGETHER),
        report("with six views in the same pass", &all),
        path,
        // Which tasks are judged where none is named is another question for each build.
        (
            "diagnose of hackbench".into(),
            ["diagnose", "--task", "hackbench"].map(String::from).into(),
        ),
        ("cat".into(), vec!["cat".into()]),
    ]
}

/// The trace that was named, or one that is recorded now.
fn trace(options: &Options, folder: &Path) -> Result<PathBuf> {
    if let Some(named) = options.traces.first() {
        return Ok(named.clone());
    }
    load::require()?;
    let trace = folder.join("trace");
    diagnose::record(options, &trace)?;
    Ok(trace)
}

fn setting(options: &Options) -> String {
    match options.traces.first() {
        Some(named) => format!("The trace {}", named.display()),
        None => "A recording under hackbench".to_owned(),
    }
}

/// What both took, round by round: before, now.
fn in_turn(rounds: usize, both: impl Fn() -> [Command; 2]) -> Result<Vec<[Taken; 2]>> {
    let round = |number: usize| {
        let [mut before, mut now] = both();
        if number.is_multiple_of(2) {
            let before = child::run(&mut before)?;
            return Ok([before, child::run(&mut now)?]);
        }
        let now = child::run(&mut now)?;
        Ok([child::run(&mut before)?, now])
    };
    (0..rounds).map(round).collect()
}

fn pairs(taken: &[[Taken; 2]], of: impl Fn(&Taken) -> f64) -> Vec<(f64, f64)> {
    taken
        .iter()
        .map(|[before, now]| (of(before), of(now)))
        .collect()
}

fn row(name: &str, instructions: Option<[f64; 2]>, taken: &[[Taken; 2]]) -> Vec<Cell> {
    let mut row = vec![text(name)];
    match instructions {
        Some([before, now]) => row.extend([
            number(before / MILLION, 1),
            number(now / MILLION, 1),
            number((now / before - 1.0) * 100.0, 1),
        ]),
        None => row.extend([Cell::None, Cell::None, Cell::None]),
    }
    let cpu = pairs(taken, |taken| taken.cpu.as_secs_f64());
    let (before, now): (Vec<f64>, Vec<f64>) = cpu.iter().copied().unzip();
    row.extend([before, now].map(|all| median(&all).map_or(Cell::None, |cpu_s| number(cpu_s, 3))));
    row.push(Comparison::of(&cpu).map_or(Cell::None, |cpu| text(cpu.words())));
    let most = |of: usize| taken.iter().map(|both| both[of].resident_bytes_max).max();
    let memory = [0, 1].map(|of| most(of).unwrap_or(0) as f64 / MILLION);
    row.push(text(format!("{:.1} and {:.1}", memory[0], memory[1])));
    row
}

/// How many instructions each of them executes.
fn instructions(commands: [Command; 2], folder: &Path) -> Result<[f64; 2]> {
    let log = folder.join("instructions");
    let [before, now] = commands.map(|command| {
        let mut counted = Command::new(COUNTER);
        counted.args(["--tool=cachegrind", "--cache-sim=no"]);
        counted.arg("--cachegrind-out-file=/dev/null");
        counted.arg(format!("--log-file={}", log.display()));
        counted.arg(command.get_program()).args(command.get_args());
        child::run(&mut counted)?;
        let said = std::fs::read_to_string(&log)?;
        counted_in(&said).with_context(|| format!("{COUNTER} counted nothing: {said}"))
    });
    Ok([before?, now?])
}

/// The number in a line such as `==7== I   refs:      1,234,567`.
fn counted_in(said: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.contains("refs:"))?;
    let (_, number) = line.rsplit_once(':')?;
    number.trim().replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn instructions_are_read_from_what_valgrind_says() {
        let check = |said: &str, expect: Option<f64>| assert_eq!(counted_in(said), expect);
        check(
            "==7== \n==7== I   refs:      1,234,567\n",
            Some(1_234_567.0),
        );
        check("==7== I refs:        55\n", Some(55.0));
        check("==7== Command: true\n", None);
    }

    #[test]
    fn a_row_compares_what_both_took_round_by_round() {
        let taken = |cpu_ms: u64| Taken {
            wall: Duration::ZERO,
            cpu: Duration::from_millis(cpu_ms),
            resident_bytes_max: cpu_ms * 1_000_000,
        };
        let rounds = [[taken(100), taken(110)], [taken(200), taken(220)]];
        let row = row("diagnose", Some([1e6, 2e6]), &rounds);
        assert_eq!(row.len(), COLUMNS.len());
        assert_eq!(
            row[1..4],
            [number(1.0, 1), number(2.0, 1), number(100.0, 1)]
        );
        assert_eq!(row[6], text("+10.0 % [+10.0, +10.0]"));
        assert_eq!(row[7], text("200.0 and 220.0"));
    }
}
