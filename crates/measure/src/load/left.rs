//! The processes and folders of loads, by what marks them as ours: what dead runs left, and how
//! much CPU time the living have taken.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use event::{Cpu, Duration};
use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;
use serde::Serialize;

use super::OWNER;

/// How a load's folder in the temporary one begins; its owner's process follows.
pub(super) const FOLDER: &str = "rtscope-load-";
/// What is killed may have started others meanwhile.
const ROUNDS_MAX: usize = 100;

/// A process as `/proc/PID/stat` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    pid: u32,
    parent: u32,
    is_dead: bool,
    /// Of its own and of those that it waited for.
    cpu_ticks: u64,
    begin_ticks: u64,
}

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
    for stat in stats().filter(|stat| !stat.is_dead) {
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
    let begin = stat_of(pid).map_or(0, |stat| stat.begin_ticks);
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
    let stat = stat_of(pid).filter(|stat| !stat.is_dead)?;
    Some(stat.begin_ticks)
}

/// CPU time of `pid`, and of all processes below it.
pub(super) fn cpu_time_of(pid: u32) -> Duration {
    let all: Vec<Stat> = stats().collect();
    let ticks: u64 = below(&all, pid).iter().map(|stat| stat.cpu_ticks).sum();
    let own = all.iter().find(|stat| stat.pid == pid);
    let ticks = ticks + own.map_or(0, |stat| stat.cpu_ticks);
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_ns((ticks * (1_000_000_000 / per_second)).cast_signed())
}

/// The programs of the load that `keeper` keeps: its own processes do no work.
pub(super) fn programs_below(keeper: u32) -> Vec<u32> {
    let all: Vec<Stat> = stats().collect();
    let is_program = |stat: &Stat| stat.parent != keeper && !stat.is_dead;
    let programs = below(&all, keeper).into_iter().filter(is_program);
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
        let all: Vec<Stat> = stats().collect();
        let below = below(&all, pid);
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

/// All processes below `pid`, which is not among them.
fn below(all: &[Stat], pid: u32) -> Vec<Stat> {
    let mut children: HashMap<u32, Vec<Stat>> = HashMap::new();
    for stat in all {
        children.entry(stat.parent).or_default().push(*stat);
    }
    let mut found = Vec::new();
    let mut next = children.remove(&pid).unwrap_or_default();
    while let Some(stat) = next.pop() {
        // Taken out: what changes while it is read makes no circle.
        next.extend(children.remove(&stat.pid).unwrap_or_default());
        found.push(stat);
    }
    found
}

fn stats() -> impl Iterator<Item = Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pid = |entry: fs::DirEntry| entry.file_name().to_string_lossy().parse().ok();
    entries.filter_map(pid).filter_map(stat_of)
}

fn stat_of(pid: u32) -> Option<Stat> {
    let text = fs::read(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(&text))
}

/// `PID (COMM) STATE PPID …`; a name may hold spaces and parentheses.
fn parse_stat(pid: u32, text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        pid,
        parent: u32::try_from(number(1)?).ok()?,
        is_dead: matches!(fields[0], "Z" | "X"),
        cpu_ticks: number(11)? + number(12)? + number(13)? + number(14)?,
        begin_ticks: number(19)?,
    })
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
    fn a_process_is_read_whatever_its_name_and_a_folder_only_by_ours() {
        let line = "12 (a) S 3) R 7 12 7724 0 -1 0 1 2 3 4 50 60 7 8 20 0 1 0 999 5 6";
        let expect = Stat {
            pid: 12,
            parent: 7,
            is_dead: false,
            cpu_ticks: 125,
            begin_ticks: 999,
        };
        assert_eq!(parse_stat(12, line), Some(expect));
        assert_eq!(parse_stat(12, "12 (a) R 7"), None);
        assert_eq!(parse_stat(12, ""), None);
        let check = |name: &str, expect| assert_eq!(folder_owner(name), expect, "{name}");
        check("rtscope-load-12-hackbench", Some(12));
        check("rtscope-load-12-mine", None);
        check("rtscope-load-x-hackbench", None);
    }

    #[test]
    fn what_is_below_a_process_is_found_also_when_the_reading_is_torn() {
        let stat = |pid, parent| Stat {
            pid,
            parent,
            is_dead: false,
            cpu_ticks: 1,
            begin_ticks: 1,
        };
        let pids = |all: &[Stat], pid| -> Vec<u32> {
            let mut pids: Vec<u32> = below(all, pid).iter().map(|stat| stat.pid).collect();
            pids.sort_unstable();
            pids
        };
        let all = [stat(1, 0), stat(2, 1), stat(3, 2), stat(4, 2), stat(5, 1)];
        assert_eq!(pids(&all, 2), [3, 4]);
        assert_eq!(pids(&all, 1), [2, 3, 4, 5]);
        assert!(pids(&all, 9).is_empty());
        // An id that was used again meanwhile.
        assert_eq!(pids(&[stat(2, 3), stat(3, 2)], 2), [2, 3]);
    }

    #[test]
    fn our_own_mark_is_of_a_process_that_lives() {
        let (pid, begin) = parse_mark(&own_mark()).expect("both");
        assert!(lives(pid, Some(begin)) && !lives(pid, Some(begin + 1)));
        assert!(cpu_time_of(pid) >= Duration::ZERO);
    }
}
