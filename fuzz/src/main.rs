//! Feeds every reader with broken input: `cargo xtask fuzz`.
//!
//! usage: `fuzz [--seed N] [--seconds N] [--executions N] [--findings DIR] [--replay FILE]
//! [READER…]`

mod canary;
mod coverage;
mod engine;
mod grammar;
mod guard;
mod mutate;
mod random;
mod readers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use engine::{Budget, Outcome, Reader};

#[global_allocator]
static COUNTING: guard::Counting = guard::Counting;

/// What was typed.
struct Options {
    seed: u64,
    budget: Budget,
    findings: PathBuf,
    replay: Option<PathBuf>,
    names: Vec<String>,
}

/// Runs that the canaries have to be found in, whatever the budget of the readers is and however
/// busy the machine.
const CANARY_EXECUTIONS: u64 = 2_000_000;
/// The time that so many runs never take.
const CANARY_TIME: Duration = Duration::from_secs(3600);

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        seed: 1,
        budget: Budget {
            time: Duration::from_secs(2),
            executions: u64::MAX,
            findings: 8,
        },
        findings: PathBuf::from("fuzz-findings"),
        replay: None,
        names: Vec::new(),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| {
            text.parse::<u64>()
                .map_err(|_| format!("no number: {text}"))
        };
        match word.as_str() {
            "--seed" => options.seed = number(value()?)?,
            "--seconds" => options.budget.time = Duration::from_secs(number(value()?)?),
            "--executions" => options.budget.executions = number(value()?)?,
            "--findings" => options.findings = value()?.into(),
            "--replay" => options.replay = Some(value()?.into()),
            name => options.names.push(name.to_owned()),
        }
    }
    Ok(options)
}

fn run(options: &Options) -> Result<bool, String> {
    let readers = chosen(&options.names)?;
    if let Some(file) = &options.replay {
        return replay(&readers, file);
    }
    std::fs::create_dir_all(&options.findings).map_err(|error| error.to_string())?;
    let ended = options.findings.join("ended");
    guard::start(std::fs::File::create(&ended).map_err(|error| error.to_string())?);
    engine::note_panics();
    if !canaries(options.seed) {
        return Ok(false);
    }
    println!(
        "{:<10} {:>5} {:>10} {:>6} {:>14} {:>10} {:>7} {:>8}",
        "reader", "seeds", "executions", "kept", "edges", "memory KiB", "run ms", "findings"
    );
    let mut is_clean = true;
    for reader in readers {
        let outcome = engine::fuzz(reader, options.seed, options.budget);
        print(reader, &outcome);
        is_clean &= outcome.findings.is_empty();
        keep(reader, &outcome, &options.findings)?;
    }
    // Nothing was ended: the file is empty.
    let _ = std::fs::remove_file(&ended);
    println!(
        "seed {}: {}",
        options.seed,
        if is_clean { "no finding" } else { "FINDINGS" }
    );
    Ok(is_clean)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Reader>, String> {
    let known = || readers::ALL.iter().map(|reader| reader.name);
    if let Some(stranger) = names
        .iter()
        .find(|name| !known().any(|known| known == **name))
    {
        let lines = readers::ALL.iter();
        let lines = lines.map(|reader| format!("\n  {:<10} {}", reader.name, reader.what));
        return Err(format!(
            "no reader '{stranger}'; known are{}",
            lines.collect::<String>()
        ));
    }
    let is_chosen =
        |reader: &&Reader| names.is_empty() || names.iter().any(|name| name == reader.name);
    Ok(readers::ALL.iter().filter(is_chosen).collect())
}

/// Whether the planted bugs are found, each of its own kind.
fn canaries(seed: u64) -> bool {
    let budget = Budget {
        time: CANARY_TIME,
        executions: CANARY_EXECUTIONS,
        findings: 1,
    };
    readers::CANARIES.iter().all(|(reader, kind)| {
        let outcome = engine::fuzz(reader, seed, budget);
        let is_blind = outcome.edges_total == 0;
        let found = outcome
            .findings
            .iter()
            .any(|finding| finding.what.contains(kind));
        if !found {
            let why = if is_blind {
                ": built without counters, see rustc.sh"
            } else {
                ""
            };
            eprintln!("fuzz: the planted bug '{kind}' was not found{why}");
        }
        found
    })
}

fn print(reader: &Reader, outcome: &Outcome) {
    let edges = match outcome.edges_total {
        0 => "no counters".to_owned(),
        total => format!("{} of {total}", outcome.edges),
    };
    println!(
        "{:<10} {:>5} {:>10} {:>6} {edges:>14} {:>10} {:>7} {:>8}",
        reader.name,
        outcome.seeds,
        outcome.executions,
        outcome.kept,
        outcome.memory_bytes_max >> 10,
        outcome.cpu_ms_max,
        outcome.findings.len(),
    );
}

/// Writes the inputs of findings to files and says where.
fn keep(reader: &Reader, outcome: &Outcome, dir: &Path) -> Result<(), String> {
    for (number, finding) in outcome.findings.iter().enumerate() {
        let path = dir.join(format!("{}-{number}", reader.name));
        std::fs::write(&path, &finding.input).map_err(|error| error.to_string())?;
        println!(
            "  {}\n    {} bytes: {}",
            finding.what,
            finding.input.len(),
            path.display()
        );
    }
    Ok(())
}

/// Runs one input in the open, so that a panic shows where it comes from.
fn replay(readers: &[&Reader], file: &Path) -> Result<bool, String> {
    let input = std::fs::read(file).map_err(|error| error.to_string())?;
    let [reader] = readers else {
        return Err("--replay needs the name of one reader".to_owned());
    };
    let ((), taken) = guard::watched(&input, |input| (reader.run)(input));
    println!(
        "{}: {} KiB, {} ms",
        reader.name,
        taken.memory_bytes >> 10,
        taken.cpu_ms
    );
    Ok(taken.memory_bytes <= guard::MEMORY_BYTES_MAX && taken.cpu_ms <= guard::RUN_MS_MAX)
}
