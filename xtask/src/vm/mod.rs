//! The laboratory: other kernels under an emulator, faults with a known truth.

mod bundle;
pub mod cache;
mod case;
mod claim;
mod claims;
mod console;
mod coverage;
mod cpio;
mod damage;
mod debs;
mod disturb;
mod gaps;
pub mod guest;
pub mod host;
mod image;
pub mod injector;
pub mod judge;
pub mod kernel;
mod loops;
mod matrix;
mod modules;
mod opinions;
pub mod profile;
mod published;
mod request;
mod scenario;
mod score;
mod stalls;
pub mod suite;
mod table;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, ensure};

use case::Case;
use guest::Guest;
use kernel::{Fetched, Kernel};
pub use matrix::{End, Matrix};
use suite::Suite;

use crate::run::Profile;
use crate::scope::Scope;

/// The cells for programs, below the artefacts.
const MATRIX: &str = "matrix.json";

/// What `cargo xtask vm` understands.
pub const USAGE: &str = "\
  vm list           kernels, cases and profiles of the laboratory
  vm fetch [KERNEL…]          kernels and headers into the cache
  vm run [--core] [--kernel K] [--fail-fast] [--scenario PART,…] [--program RTSCOPE] [CASE…]
                    cases on kernels; all when none is named; with a program of
                    yours instead of a release build of this tree
  vm damage [--seed N] [--program RTSCOPE] [FOLDER…]
                    recordings that runs left behind, or those below FOLDER, each
                    damaged at 20 places: who is accused then?
  vm try KERNEL SCRIPT [FILE…]
                    a script of yours in a guest, with these files in /root
  vm shell KERNEL [PROFILE]   a shell in a guest with the injectors";

/// Does what `words` say.
pub fn run(repository: &Path, words: &[&str]) -> Result<ExitCode> {
    match words {
        ["list"] => list(repository)?,
        ["fetch", names @ ..] => {
            for kernel in chosen(repository, names)? {
                let fetched = kernel.fetch()?;
                print!(
                    "{}: {}\n{}",
                    fetched.name, fetched.release, fetched.packages
                );
            }
        }
        ["run", rest @ ..] => return cells(repository, rest),
        ["damage", rest @ ..] => return damaged(repository, rest),
        ["try", kernel, script, files @ ..] => return trial(repository, kernel, script, files),
        ["shell", kernel] => shell(repository, kernel, "causal")?,
        ["shell", kernel, profile] => shell(repository, kernel, profile)?,
        _ => anyhow::bail!("no such chore\nusage: cargo xtask CHORE\n{USAGE}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn list(repository: &Path) -> Result<()> {
    for kernel in kernel::table(repository)? {
        let release = kernel
            .cached()?
            .map_or_else(|| "not fetched".to_owned(), |fetched| fetched.release);
        println!("kernel  {:8} {release:24} {}", kernel.name, kernel.purpose);
    }
    for profile in profile::PROFILES {
        println!("profile {:8} {}", profile.name, profile.purpose);
    }
    for case in case::table(repository)? {
        println!(
            "case    {:8} {:24} {}",
            case.name, case.profile.name, case.claim
        );
    }
    Ok(())
}

/// Runs cases on kernels, all when none is named; goes on after a failure unless told otherwise.
fn cells(repository: &Path, words: &[&str]) -> Result<ExitCode> {
    let mut names = Vec::new();
    let mut kernels = Vec::new();
    let mut plan = Plan::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--kernel" => kernels.push(*words.next().context("--kernel wants a name")?),
            "--fail-fast" => plan.fail_fast = true,
            "--core" => plan.core = true,
            "--scenario" => {
                plan.only = words.next().context("--scenario wants a name")?.to_string();
            }
            "--program" => {
                let path = words.next().context("--program wants a path")?;
                plan.program = Some(std::path::absolute(path)?);
            }
            name => names.push(name),
        }
    }
    plan.cases = case::table(repository)?;
    for name in &names {
        let known = plan.cases.iter().any(|case| case.name == *name);
        ensure!(known, "no case '{name}'; see: cargo xtask vm list");
    }
    plan.cases
        .retain(|case| names.is_empty() || names.contains(&case.name.as_str()));
    plan.kernels = chosen(repository, &kernels)?;
    report(&plan.run(repository)?)
}

/// Damages the recordings of earlier runs, or of the folders that are named.
fn damaged(repository: &Path, words: &[&str]) -> Result<ExitCode> {
    let (mut program, mut seed) = (None, 1);
    let mut folders = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--seed" => seed = words.next().context("--seed wants a number")?.parse()?,
            "--program" => {
                let path = words.next().context("--program wants a path")?;
                program = Some(std::path::absolute(path)?);
            }
            folder => folders.push(PathBuf::from(folder)),
        }
    }
    let mut suite = Suite::new(repository)?;
    suite.program = program;
    if folders.is_empty() {
        folders.push(suite.artefacts().to_owned());
    }
    damage::run(&suite.rtscope()?, &folders, seed)
}

/// For `make test`: the core set, the few cells that every change must pass, or all cells.
pub fn test(repository: &Path, scope: Scope) -> Result<Matrix> {
    let plan = Plan {
        cases: case::table(repository)?,
        kernels: kernel::table(repository)?,
        core: scope == Scope::Core,
        profile: scope.profile(),
        program: suite::tested(repository, scope.profile()),
        ..Plan::default()
    };
    plan.run(repository)
}

/// Runs one script that is in no table; its output is in the artefacts.
fn trial(repository: &Path, kernel: &str, script: &str, files: &[&str]) -> Result<ExitCode> {
    let script = std::path::absolute(script)?;
    let case = Case::trial(
        &script.to_string_lossy(),
        files,
        profile::by_name("causal")?,
    );
    let plan = Plan {
        cases: vec![case],
        kernels: chosen(repository, &[kernel])?,
        fail_fast: true,
        ..Plan::default()
    };
    report(&plan.run(repository)?)
}

/// Which cells to run.
#[derive(Default)]
struct Plan {
    cases: Vec<Case>,
    kernels: Vec<Kernel>,
    /// Only those of the core set.
    core: bool,
    /// End after the first failure.
    fail_fast: bool,
    /// Only scenarios whose name contains one of these, separated by commas.
    only: String,
    /// What is tested; built of this tree when there is none.
    program: Option<PathBuf>,
    /// How.
    profile: Profile,
}

/// One case on one kernel, or why it cannot run here.
struct Due<'a> {
    case: &'a Case,
    kernel: &'a str,
    fetched: Result<Arc<Fetched>, String>,
}

impl Plan {
    /// Runs the cells; those for which this machine lacks something are skipped with the reason.
    ///
    /// Guests in virtual time run beside one another, after the others: each takes one of this
    /// machine's CPUs and measures nothing of it.
    fn run(&self, repository: &Path) -> Result<Matrix> {
        let mut suite = Suite::new(repository)?;
        suite.only.clone_from(&self.only);
        suite.program.clone_from(&self.program);
        suite.profile = self.profile;
        let _mine = cache::lock_in(suite.artefacts())?;
        let (exact, alone): (Vec<_>, Vec<_>) = self
            .due()
            .into_iter()
            .partition(|due| due.case.profile.exact);
        let good = self.one_by_one(&mut suite, &Mutex::new(alone.into_iter()))?;
        if good && !exact.is_empty() {
            if exact.iter().any(|due| due.case.needs_program()) {
                suite.rtscope()?;
            }
            let lanes = std::thread::available_parallelism()?.get().min(exact.len());
            let left = Mutex::new(exact.into_iter());
            std::thread::scope(|scope| -> Result<()> {
                let lane = |mut suite: Suite| {
                    let left = &left;
                    scope.spawn(move || self.one_by_one(&mut suite, left))
                };
                let lanes: Vec<_> = (0..lanes).map(|_| lane(suite.beside())).collect();
                for lane in lanes {
                    lane.join()
                        .map_err(|_| anyhow!("a cell's thread panicked"))??;
                }
                Ok(())
            })?;
        }
        let matrix = std::mem::take(&mut *suite.matrix());
        Ok(matrix)
    }

    /// The cells that are wanted, kernel by kernel.
    fn due(&self) -> Vec<Due<'_>> {
        let lack = host::lack();
        let mut due = Vec::new();
        for kernel in &self.kernels {
            let wanted = self.cases.iter().filter(|case| {
                case.runs_on(&kernel.name) && (!self.core || case.is_core_on(&kernel.name))
            });
            let wanted: Vec<&Case> = wanted.collect();
            if wanted.is_empty() {
                continue;
            }
            let fetched = match &lack {
                Some(lack) => Err(lack.to_string()),
                None => kernel.fetch().map_err(|error| format!("{error:#}")),
            };
            let fetched = fetched.map(Arc::new);
            due.extend(wanted.into_iter().map(|case| Due {
                case,
                kernel: &kernel.name,
                fetched: fetched.clone(),
            }));
        }
        due
    }

    /// Runs what is left until nothing is, or until the first failure where that ends the run;
    /// false when one failed.
    fn one_by_one<'a>(
        &self,
        suite: &mut Suite,
        left: &Mutex<impl Iterator<Item = Due<'a>>>,
    ) -> Result<bool> {
        loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(due) = next else {
                return Ok(true);
            };
            let good = match (&due.fetched, due.case.lack()) {
                (Ok(fetched), None) => suite.cell(due.case, fetched),
                (Ok(_), Some(lack)) => suite.skip(due.case, due.kernel, &lack),
                (Err(error), _) => suite.skip(due.case, due.kernel, error),
            };
            suite.matrix().write(&suite.artefacts().join(MATRIX))?;
            if !good && self.fail_fast {
                let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
                left.by_ref().for_each(drop);
                return Ok(false);
            }
        }
    }
}

/// Prints what became of the cells.
fn report(matrix: &Matrix) -> Result<ExitCode> {
    let [passed, failed, skipped] = matrix.counts();
    ensure!(
        passed + failed + skipped > 0,
        "no case runs on these kernels"
    );
    print!("{}", matrix.text());
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn shell(repository: &Path, kernel: &str, profile: &str) -> Result<()> {
    let profile = profile::by_name(profile)?;
    let fetched: Vec<Fetched> = chosen(repository, &[kernel])?
        .iter()
        .map(Kernel::fetch)
        .collect::<Result<_>>()?;
    let kernel = fetched.first().context("no kernel")?;
    let folder = std::env::temp_dir().join(format!("rtscope-vm-shell-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let initrd = folder.join("initrd");
    Suite::new(repository)?
        .image(&["injector".to_owned()], kernel)?
        .write(&initrd)?;
    eprintln!("leave the guest with: exit; end the emulator with: Ctrl-A X");
    let guest = Guest {
        kernel: kernel.image(),
        initrd,
        profile,
        devices: Vec::new(),
        folder: folder.clone(),
    };
    let outcome = guest.interactive();
    cache::remove(&folder)?;
    outcome
}

/// The kernels called `names`, all of them when there are no names.
fn chosen(repository: &Path, names: &[&str]) -> Result<Vec<Kernel>> {
    let mut kernels = kernel::table(repository)?;
    for name in names {
        let known = kernels.iter().any(|kernel| kernel.name == *name);
        ensure!(known, "no kernel '{name}'; see: cargo xtask vm list");
    }
    kernels.retain(|kernel| names.is_empty() || names.contains(&kernel.name.as_str()));
    Ok(kernels)
}
