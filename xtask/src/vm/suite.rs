//! Runs cases on kernels: builds the image, boots, judges what comes back, counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::case::{Case, TEST};
use super::claims;
use super::guest::{Guest, Outcome, Spent};
use super::image::{Image, in_path};
use super::judge::Answer;
use super::kernel::Fetched;
use super::matrix::{self, Cell, End, Matrix};
use super::modules::Modules;
use super::scenario::{self, Scenario};
use super::score::Judged;
use super::{bundle, cache, debs, injector};
use crate::run::{self, Profile};

/// Boots of one cell that may be lost to the emulator's known crash.
const CRASHES_MAX: u32 = 2;
/// Lines of the console that a failure shows.
const TAIL: usize = 25;

/// Runs cells, one after the other, and keeps the score.
pub struct Suite {
    repository: PathBuf,
    artefacts: PathBuf,
    /// The program under test; built when it is needed and there is none.
    pub program: Option<PathBuf>,
    /// How that is built.
    pub profile: Profile,
    together: Arc<Together>,
    /// Only scenarios whose name contains one of these, separated by commas; empty: all.
    pub only: String,
    /// Of the cell that runs.
    boots: Boots,
}

/// What suites have in common that run cells at the same time.
#[derive(Default)]
struct Together {
    matrix: Mutex<Matrix>,
    /// Held while an image is made: what goes into it is built below the artefacts.
    building: Mutex<()>,
}

/// The boots of one cell.
#[derive(Default)]
struct Boots {
    spent: Spent,
    /// Repeated because of the emulator's known crash.
    retries: u32,
}

/// The checks that a guest's script wrote.
#[derive(Debug, PartialEq)]
struct Checks {
    passed: usize,
    failed: Vec<String>,
}

impl Suite {
    /// A suite over the tree `repository`; artefacts go to `target/vm`.
    pub fn new(repository: &Path) -> Result<Suite> {
        let artefacts = run::target_folder(repository).join("vm");
        std::fs::create_dir_all(&artefacts)
            .with_context(|| format!("cannot make {}", artefacts.display()))?;
        Ok(Suite {
            repository: repository.to_path_buf(),
            artefacts,
            program: None,
            profile: Profile::default(),
            together: Arc::default(),
            only: String::new(),
            boots: Boots::default(),
        })
    }

    /// Another suite over the same tree that runs cells beside this one; both keep one score.
    pub fn beside(&self) -> Suite {
        Suite {
            repository: self.repository.clone(),
            artefacts: self.artefacts.clone(),
            program: self.program.clone(),
            profile: self.profile,
            together: self.together.clone(),
            only: self.only.clone(),
            boots: Boots::default(),
        }
    }

    /// What became of the cells so far.
    pub fn matrix(&self) -> MutexGuard<'_, Matrix> {
        let matrix = self.together.matrix.lock();
        matrix.unwrap_or_else(PoisonError::into_inner)
    }

    /// Where results, consoles and `matrix.json` go.
    pub fn artefacts(&self) -> &Path {
        &self.artefacts
    }

    /// Runs `case` on `kernel`; false when it failed.
    pub fn cell(&mut self, case: &Case, kernel: &Fetched) -> bool {
        let name = matrix::name(&case.name, &kernel.name);
        eprintln!("{name}: {} on {}", case.claim, kernel.release);
        self.boots = Boots::default();
        let (end, held) = match self.try_cell(case, kernel, &self.artefacts.join(&name)) {
            Ok(held) => (End::Passed, held),
            Err(error) => (End::Failed(format!("{error:#}")), 0),
        };
        match &end {
            End::Failed(reason) => eprintln!("{name}: FAILED: {reason}"),
            _ => eprintln!("{name}: ok, {held} claims"),
        }
        let passed = end == End::Passed;
        self.matrix().add(Cell {
            case: case.name.clone(),
            kernel: kernel.name.clone(),
            held,
            end,
            spent: self.boots.spent,
            retries: self.boots.retries,
        });
        passed
    }

    /// Notes that `case` cannot run on `kernel` here, which is no failure.
    pub fn skip(&mut self, case: &Case, kernel: &str, why: &str) -> bool {
        self.matrix().add(Cell {
            case: case.name.clone(),
            kernel: kernel.to_owned(),
            held: 0,
            end: End::Skipped(why.to_owned()),
            spent: Spent::default(),
            retries: 0,
        });
        true
    }

    fn try_cell(&mut self, case: &Case, kernel: &Fetched, folder: &Path) -> Result<usize> {
        cache::remove(folder)?;
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("packages"), &kernel.packages)?;
        let initrd = folder.join("initrd");
        let mut image = self.image(&case.needs, kernel)?;
        image.script(&self.repository.join(&case.script))?;
        for file in &case.files {
            let name = file.file_name().context("a file without a name")?;
            image.program(&format!("root/{}", name.to_string_lossy()), file)?;
        }
        let judged = case.needs.iter().any(|need| need.starts_with("scenarios"));
        let mut scenarios = match judged {
            true => scenario::table(&self.repository, &kernel.name, case.profile.name)?,
            false => Vec::new(),
        };
        scenarios.retain(|scenario| {
            let mut parts = self.only.split(',');
            parts.any(|part| scenario.name.contains(part)) && case.has_row(&scenario.name)
        });
        let lines: String = scenarios
            .iter()
            .map(|scenario| scenario.line() + "\n")
            .collect();
        image.text("root/scenarios", &lines)?;
        image.write(&initrd)?;

        let mut guest = Guest {
            kernel: kernel.image(),
            initrd: initrd.clone(),
            profile: case.profile,
            devices: case.devices(),
            folder: folder.to_path_buf(),
        };
        let checks = self.boot(&guest, case)?;
        if let Some(file) = &case.twice {
            guest.folder = folder.join("again");
            std::fs::create_dir_all(&guest.folder)?;
            self.boot(&guest, case)?;
            same(&folder.join("result"), &guest.folder.join("result"), file)?;
        }
        std::fs::remove_file(initrd)?;
        let claims = match claims::has_judge(&case.name) {
            true => claims::judge(&case.name, folder, &self.rtscope()?)?,
            false => 0,
        };
        Ok(checks + claims + self.judge(&scenarios, folder, case, kernel)?)
    }

    /// Compares all verdicts with the truth, writes `verdicts.tsv`, and returns how many there are.
    fn judge(
        &mut self,
        scenarios: &[Scenario],
        folder: &Path,
        case: &Case,
        kernel: &Fetched,
    ) -> Result<usize> {
        if scenarios.is_empty() {
            return Ok(0);
        }
        let exact = case.profile.exact;
        let program = self.rtscope()?;
        let mut lines = String::from("holds\tscenario\tanswer\n");
        let mut broken = Vec::new();
        for scenario in scenarios {
            let answer = scenario.judge(&program, &folder.join("result"))?;
            let holds = answer.holds(exact);
            lines += &format!("{holds}\t{}\t{answer:?}\n", scenario.name);
            if !holds {
                broken.push(format!("{}: {answer:?}", scenario.name));
            }
            self.matrix().score.add(Judged {
                kernel: kernel.name.clone(),
                profile: case.profile.name,
                exact,
                scenario: scenario.name.clone(),
                answer,
            });
        }
        for (name, sentence) in groundless(scenarios, &folder.join("result"))? {
            let answer = Answer::Wrong(sentence);
            lines += &format!("false\t{name}\t{answer:?}\n");
            broken.push(format!("{name}: {answer:?}"));
            self.matrix().score.add(Judged {
                kernel: kernel.name.clone(),
                profile: case.profile.name,
                exact,
                scenario: name,
                answer,
            });
        }
        std::fs::write(folder.join("verdicts.tsv"), &lines)?;
        let count = scenarios.len();
        ensure!(
            broken.is_empty(),
            "{} of {count} scenarios\n  {}",
            broken.len(),
            broken.join("\n  ")
        );
        Ok(count)
    }

    /// Boots until the emulator does not crash and returns how many checks held.
    fn boot(&mut self, guest: &Guest, case: &Case) -> Result<usize> {
        for attempt in 0.. {
            let boot = guest.run(case.limit)?;
            self.boots.spent.add(boot.spent);
            match boot.outcome {
                Outcome::Done => break,
                Outcome::EmulatorCrash if attempt < CRASHES_MAX => {
                    self.boots.retries += 1;
                    eprintln!("{}: the emulator crashed (int3), once more", case.name);
                }
                Outcome::EmulatorCrash => {
                    anyhow::bail!("the emulator crashed (int3) {} times", attempt + 1)
                }
                Outcome::Failed(reason) => anyhow::bail!("{reason}\n{}", tail(guest)),
            }
        }
        let result = guest.folder.join("result");
        let read = |name: &str| {
            std::fs::read_to_string(result.join(name))
                .with_context(|| format!("the guest left no '{name}'"))
        };
        for note in read("notes").unwrap_or_default().lines() {
            eprintln!("{}: note: {note}", case.name);
        }
        let checks = Checks::parse(&read("checks")?);
        ensure!(
            checks.failed.is_empty(),
            "{} of {} checks failed\n  {}\n  log: {}",
            checks.failed.len(),
            checks.failed.len() + checks.passed,
            checks.failed.join("\n  "),
            result.join("log").display()
        );
        let status = read("status")?;
        ensure!(
            status.trim() == "0",
            "the script ended with status {}\n{}",
            status.trim(),
            tail(guest)
        );
        ensure!(checks.passed > 0, "the script checked nothing");
        Ok(checks.passed)
    }

    /// An image without a script.
    pub fn image(&mut self, needs: &[String], kernel: &Fetched) -> Result<Image> {
        let together = self.together.clone();
        let _building = together.building.lock();
        let modules = Modules::open(&kernel.modules())?;
        let mut image = Image::new(&self.repository, &modules)?;
        for need in needs {
            match need.as_str() {
                "injector" => {
                    let module = injector::module(&self.repository, kernel, &self.artefacts)?;
                    image.module("rtscope_lab.ko", &std::fs::read(module)?)?;
                    let program = injector::program(&self.repository, &self.artefacts)?;
                    image.program("bin/injector-user", &program)?;
                }
                rows if rows.starts_with("scenarios") => {}
                "rtscope" => image.program("bin/rtscope", &self.rtscope()?)?,
                test if test.starts_with(TEST) => {
                    let name = &test[TEST.len()..];
                    image.program(&format!("bin/{name}"), &self.test(name)?)?;
                }
                other => match bundle::by_name(other) {
                    Some(bundle) => {
                        let folders = (self.repository.as_path(), self.artefacts.as_path());
                        bundle.install(&mut image, &modules, folders)?;
                    }
                    None => image.program(&format!("bin/{other}"), &in_path(other)?)?,
                },
            }
        }
        Ok(image)
    }

    /// The build of the end-to-end test called `name`.
    fn test(&self, name: &str) -> Result<PathBuf> {
        let mut build = run::cargo(&self.repository);
        build.args(["test", "--profile", self.profile.name(), "--package", "cli"]);
        build.arg("--no-run");
        build.args(["--test", name, "--message-format", "json"]);
        let messages = debs::output(build.stderr(Stdio::inherit()))?;
        messages
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|message| message["target"]["name"] == name)
            .and_then(|message| Some(message["executable"].as_str()?.into()))
            .with_context(|| format!("cargo built no test {name}"))
    }

    /// The program under test, built once for a suite.
    pub fn rtscope(&mut self) -> Result<PathBuf> {
        if self.program.is_none() {
            let mut build = run::cargo(&self.repository);
            build.args([
                "build",
                "--profile",
                self.profile.name(),
                "--package",
                "cli",
            ]);
            run::must_succeed(&mut build)?;
            self.program = Some(built(&self.repository, self.profile));
        }
        self.program.clone().context("no program")
    }
}

impl Checks {
    fn parse(text: &str) -> Checks {
        let failed = text.lines().filter(|line| !line.starts_with("ok "));
        Checks {
            passed: text.lines().filter(|line| line.starts_with("ok ")).count(),
            failed: failed.map(str::to_owned).collect(),
        }
    }
}

/// What was said in all watches that accuses somebody where no fault was, beside the windows of the
/// rows that look for that; each with the name of the first row of its watch.
fn groundless(scenarios: &[Scenario], result: &Path) -> Result<Vec<(String, String)>> {
    let mut watches: BTreeMap<PathBuf, Vec<&Scenario>> = BTreeMap::new();
    for scenario in scenarios {
        let watch = scenario.watch(result)?;
        watches.entry(watch).or_default().push(scenario);
    }
    let mut found = Vec::new();
    for watched in watches.values() {
        let Some(first) = watched.first() else {
            continue;
        };
        let sentences = first.groundless(watched, result)?;
        let name = format!("{} and its neighbours, without a fault", first.name);
        found.extend(sentences.into_iter().map(|text| (name.clone(), text)));
    }
    Ok(found)
}

fn same(first: &Path, second: &Path, file: &str) -> Result<()> {
    let read = |folder: &Path| {
        std::fs::read_to_string(folder.join(file))
            .with_context(|| format!("the guest left no '{file}'"))
    };
    let (first, second) = (read(first)?, read(second)?);
    let differing = first.lines().zip(second.lines()).find(|(a, b)| a != b);
    ensure!(
        first == second,
        "'{file}' differs between two boots: {differing:?}"
    );
    Ok(())
}

fn tail(guest: &Guest) -> String {
    let path = guest.folder.join("console.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(TAIL)..].join("\n  | ");
    format!("  | {last}\n  all of it: {}", path.display())
}

/// The program that `make test` has just tested on this machine, where there is one: with all that
/// its packages ask of their libraries, and so not the one that cargo would build of it alone.
pub fn tested(repository: &Path, profile: Profile) -> Option<PathBuf> {
    Some(built(repository, profile)).filter(|program| program.exists())
}

/// Where cargo puts the program.
fn built(repository: &Path, profile: Profile) -> PathBuf {
    run::target_folder(repository)
        .join(profile.name())
        .join("rtscope")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_ok_is_a_failure() {
        let check = |text: &str, passed: usize, failed: &[&str]| {
            let failed = failed.iter().map(|line| (*line).to_owned()).collect();
            assert_eq!(Checks::parse(text), Checks { passed, failed }, "{text}");
        };
        check("", 0, &[]);
        check("ok a\nok b\n", 2, &[]);
        check("ok a\nnot ok b\ngarbage\n", 1, &["not ok b", "garbage"]);
    }
}
