//! The processes and folders of loads, by what marks them as ours: what dead runs left, and how
//! much CPU time the living have taken.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use event::{Cpu, Duration};
use host::processes::{Stat, below, stats};
use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;
use serde::Serialize;

use super::OWNER;

/// How a load's folder in the temporary one begins; its owner's process follows.
pub(super) const FOLDER: &str = "rtscope-load-";
/// What is killed may have started others meanwhile.
const ROUNDS_MAX: usize = 100;

/// What a dead run left of a load.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LeftLoad {
    /// Its folder, or its process as `/proc/PID`.
    pub path: String,
    /// Who it belonged to.
    pub owner: u32,
}

/// Processes and folders of loads whose owners are dead.
pub fn left() -> Vec<LeftLoad> {
    let mut found = Vec::new();
    for stat in stats().into_iter().filter(|stat| !stat.is_dead) {
        let path = format!("/proc/{}", stat.pid);
        let owner = owner_of(stat.pid).filter(|(pid, begin)| !lives(*pid, Some(*begin)));
        found.extend(owner.map(|(owner, _)| LeftLoad { path, owner }));
    }
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
    for entry in entries.flatten() {
        let owner = folder_owner(&entry.file_name().to_string_lossy());
        let path = entry.path().display().to_string();
        let owner = owner.filter(|pid| !lives(*pid, None));
        found.extend(owner.map(|owner| LeftLoad { path, owner }));
    }
    found.sort();
    found
}

impl LeftLoad {
    /// Ends or removes it. What is gone meanwhile needs nobody.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn remove(&self) -> std::io::Result<()> {
        let removed = match self.path.strip_prefix("/proc/").map(str::parse) {
            Some(Ok(pid)) => match Pid::from_raw(pid) {
                Some(pid) => match rustix::process::kill_process(pid, Signal::KILL) {
                    Err(rustix::io::Errno::SRCH) | Ok(()) => Ok(()),
                    Err(error) => Err(error.into()),
                },
                None => Ok(()),
            },
            _ => fs::remove_dir_all(&self.path),
        };
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// What marks processes as ours: the process and when it began, as the next of that id is another.
pub(super) fn own_mark() -> String {
    let pid = std::process::id();
    let begin = Stat::of(pid).map_or(0, |stat| stat.begin_ticks);
    format!("{pid}:{begin}")
}

/// Who this process of a load belongs to, once that is dead. Not our parent, which may have died
/// before we could ask for it.
pub fn dead_owner() -> Option<u32> {
    let mark = std::env::var(OWNER).ok()?;
    let (owner, begin) = parse_mark(&mark)?;
    (!lives(owner, Some(begin))).then_some(owner)
}

/// When the process began, by the clock of `/proc`; none of a dead one.
pub fn begin_ticks(pid: u32) -> Option<u64> {
    let stat = Stat::of(pid).filter(|stat| !stat.is_dead)?;
    Some(stat.begin_ticks)
}

/// CPU time of `pid`, and of all processes below it.
pub(super) fn cpu_time_of(pid: u32) -> Duration {
    let all = stats();
    let ticks: u64 = below(&all, [pid]).iter().map(|stat| stat.cpu_ticks).sum();
    let own = all.iter().find(|stat| stat.pid == pid);
    let ticks = ticks + own.map_or(0, |stat| stat.cpu_ticks);
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_ns((ticks * (1_000_000_000 / per_second)).cast_signed())
}

/// The programs of the load that `keeper` keeps: its own processes do no work.
pub(super) fn programs_below(keeper: u32) -> Vec<u32> {
    let all = stats();
    let is_program = |stat: &Stat| stat.parent != keeper && !stat.is_dead;
    let programs = below(&all, [keeper]).into_iter().filter(is_program);
    programs.map(|stat| stat.pid).collect()
}

/// The CPUs that any of these may have.
pub(super) fn cpus_of(programs: &[u32]) -> BTreeSet<Cpu> {
    let mut cpus = BTreeSet::new();
    for program in programs {
        let pid = i32::try_from(*program).ok().and_then(Pid::from_raw);
        // One that has ended meanwhile has none.
        let Ok(allowed) = rustix::thread::sched_getaffinity(pid) else {
            continue;
        };
        let has = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        cpus.extend(has.map(|cpu| Cpu(cpu as u32)));
    }
    cpus
}

/// Kills all processes below `pid`, which is ours, and waits for those that are its children.
pub(super) fn kill_below(pid: u32) {
    for _ in 0..ROUNDS_MAX {
        let all = stats();
        let below = below(&all, [pid]);
        if below.is_empty() {
            return;
        }
        for stat in below {
            let process = i32::try_from(stat.pid).ok().and_then(Pid::from_raw);
            process.map(|pid| rustix::process::kill_process(pid, Signal::KILL));
        }
        let options = rustix::process::WaitOptions::empty();
        while let Ok(Some(_)) = rustix::process::wait(options) {}
    }
}

/// Who the process of a load belongs to, and when that began; none for any other process.
fn owner_of(pid: u32) -> Option<(u32, u64)> {
    let path: PathBuf = ["/proc", &pid.to_string(), "environ"].iter().collect();
    let text = fs::read(path).ok()?;
    let mark = text.split(|byte| *byte == 0).find_map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        word.strip_prefix(OWNER)?.strip_prefix('=')
    })?;
    parse_mark(mark)
}

fn parse_mark(mark: &str) -> Option<(u32, u64)> {
    let (pid, begin) = mark.split_once(':')?;
    Some((pid.parse().ok()?, begin.parse().ok()?))
}

/// The process in `rtscope-load-PID-NAME`.
fn folder_owner(name: &str) -> Option<u32> {
    let (pid, load) = name.strip_prefix(FOLDER)?.split_once('-')?;
    super::Load::named(load)?;
    pid.parse().ok()
}

/// Whether that process lives; with `begin` only the one that began then.
fn lives(pid: u32, begin: Option<u64>) -> bool {
    begin_ticks(pid).is_some_and(|began| begin.is_none_or(|begin| begin == began))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_loads_only_by_our_name() {
        let check = |name: &str, expect| assert_eq!(folder_owner(name), expect, "{name}");
        check("rtscope-load-12-hackbench", Some(12));
        check("rtscope-load-12-mine", None);
        check("rtscope-load-x-hackbench", None);
    }

    #[test]
    fn our_own_mark_is_of_a_process_that_lives() {
        let (pid, begin) = parse_mark(&own_mark()).expect("both");
        assert!(lives(pid, Some(begin)) && !lives(pid, Some(begin + 1)));
        assert!(cpu_time_of(pid) >= Duration::ZERO);
    }
}
