//! A busy machine without a fault: hackbench, stress-ng and a compiler, and whom a watch accuses.
//! Each accusation is held against the snapshot's own events: who is said to have had a CPU must
//! have had it by the switches, and while the kernel is said to have kept one to itself, another
//! CPU must have gone on.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::evidence::Events;
use super::guests::Errand;
use super::hit::Hit;
use super::host::{Watch, actor};
use super::place::CAUSAL;
use super::session::{SNAPSHOTS, WATCH};
use crate::vm::cache;
use crate::vm::kernel::Fetched;
use crate::vm::suite::Suite;
use crate::{lock, run};

/// So long under one watch; others who wait for the lock have their turn in between.
const TURN: Duration = Duration::from_secs(60);
/// Real-time tasks that are always in time by themselves, a fair one, and one above all.
const VICTIMS: &str = "\
scenario healthy
over 1000us
length 59000ms
victim lab-victim fifo:50 cpu=0 | loop, every abs 10ms, work 100us
helper lab-victim fifo:50 cpu=1 | loop, every abs 10ms, work 100us
helper lab-victim rr:20 cpu=0 process | loop, every timerfd 20ms, work 200us
helper lab-victim fifo:80 cpu=1 process | loop, every futex 5ms, work 50us
";
/// The same in a guest.
const SCRIPT: &str = "tests/vm/guest/healthy.sh";
/// On two emulated CPUs everything is late by a millisecond.
const OVER_IN_GUEST: &str = "10ms";
/// A minute of a busy guest takes no more CPU time of the emulator; to boot and to end takes some.
const TURN_LIMIT: Duration = Duration::from_secs(150);
const BOOT_LIMIT: Duration = Duration::from_secs(200);
/// What is compiled, again and again.
const SOURCES: &str = "tests/vm/actor";

/// What all turns found.
#[derive(Default)]
struct Found {
    hits: usize,
    accusations: usize,
    /// What was said, and what speaks against it.
    doubted: Vec<String>,
}

/// Watches a busy machine for so long.
pub fn run(repository: &Path, suite: &mut Suite, minutes: u64) -> Result<ExitCode> {
    ensure!(minutes > 0, "no time to look: --minutes 1 at least");
    let program = suite.rtscope()?;
    let actor = actor(repository, suite.artefacts())?;
    let mut found = Found::default();
    for number in 0..minutes {
        let folder = suite
            .artefacts()
            .join(format!("scenarios/healthy-{number}"));
        cache::remove(&folder)?;
        fs::create_dir_all(&folder)?;
        turn(repository, &program, &actor, &folder)?;
        found.judge(&program, &folder)?;
        eprintln!("{} min: {found}", number + 1);
    }
    Ok(match found.end(&format!("{minutes} min under load")) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The same on two CPUs of an emulator with `kernel`; whether the events speak against nothing.
pub fn in_guest(
    repository: &Path,
    suite: &mut Suite,
    kernel: &Fetched,
    minutes: u64,
) -> Result<bool> {
    ensure!(minutes > 0, "no time to look: --minutes 1 at least");
    let name = format!("scenarios/healthy-{}", kernel.name);
    let folder = suite.artefacts().join(name);
    cache::remove(&folder)?;
    fs::create_dir_all(&folder)?;
    let errand = Errand {
        script: SCRIPT,
        needs: &["rtscope", "hackbench", "stress-ng"],
        texts: &[
            ("root/scenarios", VICTIMS.to_owned()),
            ("root/over", OVER_IN_GUEST.to_owned()),
            ("root/minutes", minutes.to_string()),
        ],
        limit: BOOT_LIMIT + TURN_LIMIT * u32::try_from(minutes)?,
    };
    errand.run(repository, suite, (kernel, CAUSAL), &folder)?;
    let program = suite.rtscope()?;
    let mut found = Found::default();
    for number in 0..minutes {
        found.judge(&program, &folder.join(format!("result/healthy-{number}")))?;
    }
    Ok(found.end(&format!("{}, {minutes} min under load", kernel.name)))
}

/// One watch of all real-time tasks, as the default is, beside all loads.
fn turn(repository: &Path, program: &Path, actor: &Path, folder: &Path) -> Result<()> {
    let victims = folder.join("scenarios");
    fs::write(&victims, VICTIMS)?;
    let _held = lock::acquire()?;
    let loads = Loads::begin(repository, folder)?;
    let mut watch = Watch::begin(program, folder, &["--over", "1ms"])?;
    let mut play = Command::new(actor);
    let played = run::must_succeed(play.arg(&victims).stdout(Stdio::null()));
    watch.end()?;
    drop(loads);
    played
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} late activations, {} accusations, {} that the events speak against",
            self.hits,
            self.accusations,
            self.doubted.len()
        )
    }
}

impl Found {
    /// Says what was found of `what`; whether the events speak against nothing.
    fn end(&self, what: &str) -> bool {
        self.doubted.iter().for_each(|what| println!("- {what}"));
        println!("{what}: {self}");
        self.doubted.is_empty()
    }

    fn judge(&mut self, program: &Path, folder: &Path) -> Result<()> {
        let text = fs::read_to_string(folder.join(WATCH)).context("no watch")?;
        for hit in text.lines().filter_map(Hit::parse) {
            self.hits += 1;
            let name = Path::new(&hit.snapshot).file_name().unwrap_or_default();
            let snapshot = folder.join(SNAPSHOTS).join(name);
            if !hit.conclusive || !snapshot.is_dir() {
                continue;
            }
            self.accusations += 1;
            if let Some(against) = Events::of(program, &snapshot)?.against(&hit) {
                self.doubted.push(format!(
                    "{against}{} ({})",
                    hit.sentence,
                    snapshot.display()
                ));
            } else {
                fs::remove_dir_all(&snapshot)?;
            }
        }
        Ok(())
    }
}

/// Programs that run until this is dropped, each in a group of its own.
struct Loads(Vec<Child>);

impl Loads {
    fn begin(repository: &Path, folder: &Path) -> Result<Loads> {
        let seconds = (TURN.as_secs() + 20).to_string();
        let sources = repository.join(SOURCES);
        let compile = format!(
            "while :; do for file in {0}/*.c; do cc -O2 -c -o {1}/load.o $file; done; done",
            sources.display(),
            folder.display()
        );
        let stress = [
            "--cpu",
            "1",
            "--vm",
            "1",
            "--vm-bytes",
            "64M",
            "--hdd",
            "1",
            "--hdd-bytes",
            "16M",
            "--timer",
            "1",
            "--timeout",
            &seconds,
        ];
        let mut loads = Loads(Vec::new());
        let groups: [(&str, &[&str]); 3] = [
            ("hackbench", &["-g", "2", "-l", "1000000"]),
            ("stress-ng", &stress),
            ("sh", &["-c", &compile]),
        ];
        for (load, words) in groups {
            // A group of its own is ended with all that it has started.
            let mut command = Command::new("setsid");
            command.args(["timeout", &seconds, load]).args(words);
            command.current_dir(folder).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let child = command.spawn();
            loads
                .0
                .push(child.with_context(|| format!("cannot start {load}"))?);
        }
        Ok(loads)
    }
}

impl Drop for Loads {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // `timeout` passes it on to all that it has started.
            let pid = rustix::process::Pid::from_child(child);
            rustix::process::kill_process_group(pid, rustix::process::Signal::TERM).ok();
            child.wait().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::language;

    #[test]
    fn the_victims_are_a_scenario_and_last_no_longer_than_a_turn() {
        let scenarios = language::parse(VICTIMS).unwrap();
        let [scenario] = &scenarios[..] else {
            panic!("{} scenarios", scenarios.len());
        };
        assert!(u128::from(scenario.length_ms) < TURN.as_millis());
    }
}
