//! Adversaries: scenarios that are drawn by a seed, played by an actor that writes down what it
//! did, and judged by what a watch said of them. docs/scenarios.md has the language.

mod advice;
mod draft;
mod draw;
mod evidence;
mod guests;
mod healthy;
mod hit;
mod host;
mod judge;
mod kinds;
mod kinds_machine;
mod kinds_more;
mod kinds_waits;
mod language;
mod log;
mod place;
mod random;
mod score;
mod session;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use crate::scope::Scope;
use crate::vm::kernel::{self, Kernel};
use crate::vm::suite::{self, Suite};
use crate::vm::{cache, host as emulator};
use host::Host;
use language::Scenario;
use place::Place;
use score::Score;
use session::Session;

/// What `cargo xtask scenarios` understands.
pub const USAGE: &str = "\
  scenarios show [--seed N] [--count M] [--place host|exact|causal] [--kind PART]
                    what is drawn
  scenarios host [--seed N] [--count M] [--kind PART] [--fixed] [--program RTSCOPE] [FILE…]
                    drawn scenarios, or those of files, on this machine;
                    with those that were once answered wrongly; --recorded: by a
                    recording and its diagnosis in place of a watch
  scenarios guests [--kernel K] [--place exact|causal] (the same options)
                    the same on other kernels under the emulator
  scenarios judge [--place P] FOLDER…
                    what sessions left, judged again
  scenarios advice [--kind PART] [--program RTSCOPE]
                    the advice on faults that come again, applied as it is printed: are they gone?
  scenarios healthy [--minutes N] [--kernel K] [--program RTSCOPE]
                    a busy machine without a fault, this one or a guest: whom does
                    a watch accuse?";

/// Drawn in `make test`, here and on one other kernel.
const CORE_HOST: u64 = 30;
/// And in `make test-all`, for each place and kernel.
const LONG: u64 = 250;
/// A cell that was wrong here is played so often again.
const AGAIN: usize = 3;
/// Cells that were once wrong, below it by place.
const FIXED: &str = "tests/vm/cells";

/// What was asked for.
struct Asked {
    seed: u64,
    count: u64,
    kind: String,
    place: Option<Place>,
    kernels: Vec<String>,
    minutes: u64,
    program: Option<PathBuf>,
    files: Vec<PathBuf>,
    /// The cells that were once wrong first.
    fixed: bool,
    /// By a recording, not by a watch.
    recorded: bool,
}

/// Does what `words` say.
pub fn run(repository: &Path, words: &[&str]) -> Result<ExitCode> {
    let (verb, rest) = words.split_first().context("scenarios what?")?;
    let asked = Asked::parse(rest)?;
    let mut suite = Suite::new(repository)?;
    suite.program.clone_from(&asked.program);
    let mut score = Score::default();
    match *verb {
        "show" => {
            let place = asked.place.unwrap_or(place::HOST);
            print!("{}", session::text(&asked.scenarios(repository, place)?));
            return Ok(ExitCode::SUCCESS);
        }
        "host" => {
            let scenarios = asked.scenarios(repository, place::HOST)?;
            let by = (repository, asked.recorded);
            play_here(by, &mut suite, &scenarios, &mut score)?;
        }
        "guests" => in_guests(repository, &mut suite, &asked, &mut score)?,
        "judge" => judge_again(&mut suite, &asked, &mut score)?,
        "advice" => return advice::run(repository, &mut suite, &asked.kind),
        "healthy" => return healthy(repository, &mut suite, &asked),
        _ => anyhow::bail!("no such chore\nusage: cargo xtask CHORE\n{USAGE}"),
    }
    println!("seed {}, {} cells", asked.seed, score.len());
    print!("{}", score.text());
    score.write(&suite.artefacts().join("scenarios.json"))?;
    Ok(match score.wrong().is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// A busy machine: this one, or guests with the kernels that are named.
fn healthy(repository: &Path, suite: &mut Suite, asked: &Asked) -> Result<ExitCode> {
    if asked.kernels.is_empty() {
        return healthy::run(repository, suite, asked.minutes);
    }
    let _mine = cache::lock_in(suite.artefacts())?;
    let mut clean = true;
    for kernel in asked.chosen(repository)? {
        clean &= healthy::in_guest(repository, suite, &kernel.fetch()?, asked.minutes)?;
    }
    Ok(match clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl Asked {
    fn parse(words: &[&str]) -> Result<Asked> {
        let mut asked = Asked {
            seed: seed_of_the_day(),
            count: 50,
            kind: String::new(),
            place: None,
            kernels: Vec::new(),
            minutes: 10,
            program: None,
            files: Vec::new(),
            fixed: false,
            recorded: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .with_context(|| format!("{word} wants a value"))
            };
            match *word {
                "--seed" => asked.seed = value()?.parse()?,
                "--count" => asked.count = value()?.parse()?,
                "--minutes" => asked.minutes = value()?.parse()?,
                "--kind" => asked.kind = value()?.to_string(),
                "--kernel" => asked.kernels.push(value()?.to_string()),
                "--fixed" => asked.fixed = true,
                "--recorded" => asked.recorded = true,
                "--program" => asked.program = Some(std::path::absolute(value()?)?),
                "--place" => {
                    let name = value()?;
                    let place = place::by_name(name);
                    asked.place = Some(place.with_context(|| format!("no place '{name}'"))?);
                }
                file => asked.files.push(file.into()),
            }
        }
        Ok(asked)
    }

    /// The kernels that are named; all where none is.
    fn chosen(&self, repository: &Path) -> Result<Vec<Kernel>> {
        let mut all = kernel::table(repository)?;
        all.retain(|kernel| self.kernels.is_empty() || self.kernels.contains(&kernel.name));
        ensure!(
            !all.is_empty(),
            "no kernel {}; see: cargo xtask vm list",
            self.kernels.join(", ")
        );
        Ok(all)
    }

    /// Those of the files, else those that are drawn.
    fn scenarios(&self, repository: &Path, place: Place) -> Result<Vec<Scenario>> {
        let mut scenarios = Vec::new();
        let fixed = repository.join(FIXED).join(place.name);
        if self.fixed && fixed.is_file() {
            scenarios = language::read(&fixed)?;
        }
        for file in &self.files {
            scenarios.extend(language::read(file)?);
        }
        if self.files.is_empty() {
            let cells =
                (0..self.count).filter_map(|at| draw::draw(self.seed, at, place, &self.kind));
            scenarios.extend(cells);
        }
        ensure!(!scenarios.is_empty(), "no kind contains '{}'", self.kind);
        Ok(scenarios)
    }
}

/// Judges what sessions on this machine, or at the place that is named, left in these folders.
fn judge_again(suite: &mut Suite, asked: &Asked, score: &mut Score) -> Result<()> {
    let place = asked.place.unwrap_or(place::HOST);
    for folder in &asked.files {
        let scenarios = language::read(&folder.join(session::PLAYED))?;
        let session = Session {
            folder: folder.clone(),
            scenarios: &scenarios,
            place,
            name: place.name.to_owned(),
            program: suite.rtscope()?,
        };
        session::judge_all(&session, score)?;
    }
    Ok(())
}

/// What became of the cells of `make test`.
pub struct Outcome {
    /// The tables and the shortfalls.
    pub text: String,
    pub cells: usize,
    /// Answered wrongly.
    pub wrong: usize,
}

/// For `make test`, cells by a seed of the day here and on one other kernel; for `make test-all`
/// the long draw, everywhere. The cells that were once wrong come first. On this machine others may
/// have disturbed a cell: what was wrong is played again.
pub fn test(repository: &Path, scope: Scope) -> Result<Outcome> {
    let core = scope == Scope::Core;
    let mut asked = Asked::parse(&[])?;
    asked.fixed = true;
    asked.count = if core { CORE_HOST } else { LONG };
    let mut suite = Suite::new(repository)?;
    suite.profile = scope.profile();
    suite.program = suite::tested(repository, suite.profile);
    let (mut score, mut again) = (Score::default(), Score::default());
    let mut scenarios = asked.scenarios(repository, place::HOST)?;
    play_here((repository, false), &mut suite, &scenarios, &mut score)?;
    let mut text = format!("seed {}\n", asked.seed);
    let wrong: Vec<String> = score.wrong().into_iter().map(str::to_owned).collect();
    if !wrong.is_empty() {
        scenarios.retain(|scenario| wrong.contains(&scenario.name));
        let times = [scenarios.as_slice(); AGAIN].concat();
        play_here((repository, false), &mut suite, &times, &mut again)?;
        text += &format!(
            "wrong once, and so played {AGAIN} times more:\n{}\n",
            again.text()
        );
    }
    let mut guests = Score::default();
    // What a drawn cell in a guest says is not yet sure enough to fail a commit: the truth of some
    // kinds still leaves out what the emulator makes long (docs/laboratory.md).
    if !core && emulator::lack().is_none() {
        in_guests(repository, &mut suite, &asked, &mut guests)?;
    }
    text += &score.text();
    text += &guests.text();
    let mut outcome = Outcome {
        text,
        cells: score.len() + guests.len(),
        wrong: again.wrong().len().min(1) + guests.wrong().len(),
    };
    if !core {
        let advised = advice::table(repository, &mut suite, "")?;
        outcome.text += &advised.text();
        outcome.cells += advised.len();
        outcome.wrong += advised.bad();
    }
    Ok(outcome)
}

/// Days since 1970: another seed each day.
fn seed_of_the_day() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() / 86_400)
}

fn play_here(
    (repository, recorded): (&Path, bool),
    suite: &mut Suite,
    scenarios: &[Scenario],
    score: &mut Score,
) -> Result<()> {
    let program = suite.rtscope()?;
    let artefacts = suite.artefacts().join("scenarios");
    let here = Host {
        actor: host::actor(repository, suite.artefacts())?,
        program,
        artefacts: &artefacts,
        recorded,
    };
    here.play(scenarios, score)
}

fn in_guests(repository: &Path, suite: &mut Suite, asked: &Asked, score: &mut Score) -> Result<()> {
    let _mine = cache::lock_in(suite.artefacts())?;
    let lack = emulator::lack();
    ensure!(lack.is_none(), "{}", lack.unwrap_or_default());
    let places = asked
        .place
        .map_or(vec![place::EXACT, place::CAUSAL], |place| vec![place]);
    let mut failed = Vec::new();
    for kernel in asked.chosen(repository)? {
        let fetched = kernel.fetch()?;
        for place in &places {
            let scenarios = asked.scenarios(repository, *place)?;
            let played = guests::play(repository, suite, &fetched, *place, &scenarios, score);
            failed.extend(played.err().map(|error| format!("{error:#}")));
        }
    }
    ensure!(
        failed.is_empty() || score.len() > 0,
        "{}",
        failed.join("; ")
    );
    failed.iter().for_each(|error| eprintln!("{error}"));
    Ok(())
}
