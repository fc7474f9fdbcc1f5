//! Scenarios on this machine, under a watch of its live kernel.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::language::{Scenario, VICTIM};
use super::place::HOST;
use super::score::Score;
use super::session::{self, DIAGNOSIS, LOG, PLAYED, RECORDING, SNAPSHOTS, Session, WATCH};
use crate::{lock, run};

/// Under one watch; others who wait for the lock have their turn in between.
const BATCH: usize = 40;
/// A watch that does not look by then never will.
const START: Duration = Duration::from_secs(60);
const SOURCES: &str = "tests/vm/actor";

/// The program that plays, built when it is older than its sources.
pub fn actor(repository: &Path, artefacts: &Path) -> Result<PathBuf> {
    crate::vm::injector::compiled(&repository.join(SOURCES), &artefacts.join("actor"))
}

/// What is common to all batches.
pub struct Host<'a> {
    pub actor: PathBuf,
    pub program: PathBuf,
    pub artefacts: &'a Path,
    /// Recorded and diagnosed, where a watch looks on otherwise.
    pub recorded: bool,
}

impl Host<'_> {
    /// Plays and judges `scenarios`, batch by batch, each under a watch of its own.
    pub fn play(&self, scenarios: &[Scenario], score: &mut Score) -> Result<()> {
        for (number, batch) in scenarios.chunks(BATCH).enumerate() {
            let name = if self.recorded { "recorded" } else { "host" };
            let folder = self.artefacts.join(format!("{name}-{number}"));
            crate::vm::cache::remove(&folder)?;
            fs::create_dir_all(&folder)?;
            match self.recorded {
                true => self.recording(&folder, batch)?,
                false => self.batch(&folder, batch)?,
            }
            let session = Session {
                folder,
                scenarios: batch,
                place: HOST,
                name: name.to_owned(),
                program: self.program.clone(),
            };
            session::judge_all(&session, score)?;
            eprintln!("host: {} of {} scenarios", score.len(), scenarios.len());
        }
        Ok(())
    }

    fn batch(&self, folder: &Path, batch: &[Scenario]) -> Result<()> {
        let file = folder.join(PLAYED);
        fs::write(&file, session::text(batch))?;
        let _held = lock::acquire()?;
        let over = format!("{}us", HOST.over_us);
        let mut watch = Watch::begin(&self.program, folder, &["--task", VICTIM, "--over", &over])?;
        let mut play = Command::new(&self.actor);
        play.arg(&file).stdout(File::create(folder.join(LOG))?);
        let played = run::must_succeed(&mut play);
        watch.end()?;
        played
    }
}

impl Host<'_> {
    fn recording(&self, folder: &Path, batch: &[Scenario]) -> Result<()> {
        let file = folder.join(PLAYED);
        fs::write(&file, session::text(batch))?;
        let recording = folder.join(SNAPSHOTS).join(RECORDING);
        fs::create_dir_all(folder.join(SNAPSHOTS))?;
        let held = lock::acquire()?;
        let mut record = Command::new(&self.program);
        record.arg("record").arg("-o").arg(&recording);
        record.args(["--buffer", "16M", "--", "sh", "-c"]);
        record.arg("exec \"$0\" \"$1\" > \"$2\"");
        record.arg(&self.actor).arg(&file).arg(folder.join(LOG));
        record.stdout(File::create(folder.join("record.out"))?);
        record.stderr(File::create(folder.join("record.log"))?);
        // Its exit code is about what was late.
        record.status().context("cannot start rtscope")?;
        drop(held);
        let mut diagnose = Command::new(&self.program);
        diagnose.arg("diagnose").arg(&recording);
        diagnose.args(["--task", VICTIM, "--over", &format!("{}us", HOST.over_us)]);
        diagnose.args(["--until", "block", "--worst", "100000", "--json"]);
        diagnose.stdout(File::create(folder.join(DIAGNOSIS))?);
        diagnose.stderr(File::create(folder.join("diagnose.log"))?);
        diagnose.status().context("cannot start rtscope")?;
        Ok(())
    }
}

/// A watch that runs until it is told to end.
pub struct Watch(Child);

impl Watch {
    /// Begins a watch with its snapshots and its JSON in `folder`, and waits until it looks.
    pub fn begin(program: &Path, folder: &Path, options: &[&str]) -> Result<Watch> {
        let said = folder.join("watch.log");
        let mut command = Command::new(program);
        command.arg("watch").args(options).arg("--json");
        command.args(["--rate", "1000/s", "--keep", "100000", "--buffer", "1M"]);
        command.arg("-o").arg(folder.join(SNAPSHOTS));
        command.stdout(File::create(folder.join(WATCH))?);
        command.stderr(File::create(&said)?).stdin(Stdio::null());
        let child = command.spawn().context("cannot start the watch")?;
        let mut watch = Watch(child);
        let begin = Instant::now();
        loop {
            let text = fs::read_to_string(&said)?;
            if text.contains("watching") {
                return Ok(watch);
            }
            let over = watch.0.try_wait()?.is_some() || begin.elapsed() > START;
            ensure!(!over, "the watch does not look:\n{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it, which lets it tell all that it has seen.
    pub fn end(&mut self) -> Result<()> {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::INT).context("the watch ended by itself")?;
        self.0.wait().context("cannot wait for the watch")?;
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // After an error; else it has ended.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::draw::draw;
    use crate::scenarios::place::{CAUSAL, EXACT};

    #[test]
    fn the_actor_reads_all_that_is_drawn_and_refuses_what_is_none() {
        let folder = std::env::temp_dir().join(format!("rtscope-actor-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let actor = actor(&crate::repository(), &folder).unwrap();
        let check = |text: &str, expect: bool| {
            let file = folder.join("scenarios");
            fs::write(&file, text).unwrap();
            let output = Command::new(&actor)
                .arg(&file)
                .arg("--check")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.success(), expect, "{said}\n{text}");
        };
        for place in [HOST, EXACT, CAUSAL] {
            let drawn: Vec<Scenario> = (0..300).filter_map(|at| draw(9, at, place, "")).collect();
            check(&session::text(&drawn), true);
        }
        check("scenario a\nvictim v fifo:50 | every abs\n", false);
        check("scenario a\nvictim v fifo:50 | hum 3ms\n", false);
        check("scenario a\nnonsense\n", false);
        fs::remove_dir_all(folder).unwrap();
    }
}
