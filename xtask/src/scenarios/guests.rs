//! Scenarios in guests, a boot for many of them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::host;
use super::language::Scenario;
use super::place::Place;
use super::score::Score;
use super::session::{self, PLAYED, Session};
use crate::vm::guest::{Guest, Outcome};
use crate::vm::kernel::Fetched;
use crate::vm::suite::Suite;
use crate::vm::{cache, profile};

const SCRIPT: &str = "tests/vm/guest/adversaries.sh";
/// Under one watch.
const BATCH: usize = 25;
/// Boots that may be lost to the emulator's known crash.
const CRASHES_MAX: u32 = 2;
/// A guest that is not done by then, by its CPU time, has failed.
const LIMIT: Duration = Duration::from_secs(600);

/// Plays and judges `scenarios` on `kernel`, boot by boot; each batch that fails is told and left
/// out of the score.
pub fn play(
    repository: &Path,
    suite: &mut Suite,
    kernel: &Fetched,
    place: Place,
    scenarios: &[Scenario],
    score: &mut Score,
) -> Result<()> {
    let name = format!("{}, {}", kernel.name, place.name);
    let mut failed = Vec::new();
    for (number, batch) in scenarios.chunks(BATCH).enumerate() {
        let folder = format!("scenarios/{}-{}-{number}", kernel.name, place.name);
        let folder = suite.artefacts().join(folder);
        cache::remove(&folder)?;
        fs::create_dir_all(&folder)?;
        let played = boot(repository, suite, kernel, place, batch, &folder);
        let session = Session {
            folder: folder.join("result"),
            scenarios: batch,
            place,
            name: name.clone(),
            program: suite.rtscope()?,
        };
        let judged = played.and_then(|()| session::judge_all(&session, score));
        if let Err(error) = judged {
            eprintln!("{name}, batch {number}: {error:#}");
            failed.push(number);
        }
        eprintln!("{name}: {} scenarios judged", score.len());
    }
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("{name}: batches {failed:?} failed"),
    }
}

fn boot(
    repository: &Path,
    suite: &mut Suite,
    kernel: &Fetched,
    place: Place,
    batch: &[Scenario],
    folder: &Path,
) -> Result<()> {
    fs::write(folder.join(PLAYED), session::text(batch))?;
    // In virtual time no machine stands still.
    let options = match profile::by_name(place.name)?.exact {
        true => "",
        false => "--pulse",
    };
    let errand = Errand {
        script: SCRIPT,
        needs: &["injector", "rtscope"],
        texts: &[
            ("root/scenarios", session::text(batch)),
            ("root/over", format!("{}us", place.over_us)),
            ("root/actor", options.to_owned()),
        ],
        limit: LIMIT,
    };
    errand.run(repository, suite, (kernel, place), folder)
}

/// What a guest boots for.
pub struct Errand<'a> {
    /// It runs this script.
    pub script: &'a str,
    /// What is in its image beside the actor, as the table of cases calls it.
    pub needs: &'a [&'a str],
    /// And these files.
    pub texts: &'a [(&'a str, String)],
    /// It has failed when it is not done after so much CPU time of the emulator.
    pub limit: Duration,
}

impl Errand<'_> {
    /// Boots until the emulator does not crash; what the script left is in `folder`, its checks
    /// held.
    pub fn run(
        &self,
        repository: &Path,
        suite: &mut Suite,
        (kernel, place): (&Fetched, Place),
        folder: &Path,
    ) -> Result<()> {
        let needs: Vec<String> = self.needs.iter().map(|need| (*need).to_owned()).collect();
        let mut image = suite.image(&needs, kernel)?;
        image.script(&repository.join(self.script))?;
        image.program("bin/actor", &host::actor(repository, suite.artefacts())?)?;
        for (path, text) in self.texts {
            image.text(path, text)?;
        }
        let initrd = folder.join("initrd");
        image.write(&initrd)?;
        let guest = Guest {
            kernel: kernel.image(),
            initrd: initrd.clone(),
            profile: profile::by_name(place.name)?,
            devices: Vec::new(),
            folder: folder.to_path_buf(),
        };
        for attempt in 0.. {
            match guest.run(self.limit)?.outcome {
                Outcome::Done => break,
                Outcome::EmulatorCrash if attempt < CRASHES_MAX => {}
                Outcome::EmulatorCrash => bail!("the emulator crashed {} times", attempt + 1),
                Outcome::Failed(why) => bail!("{why}; see {}/console.txt", folder.display()),
            }
        }
        fs::remove_file(initrd)?;
        let checks = fs::read_to_string(folder.join("result/checks")).context("no checks")?;
        match checks.lines().find(|line| !line.starts_with("ok ")) {
            Some(line) => bail!("{line}"),
            None => Ok(()),
        }
    }
}
