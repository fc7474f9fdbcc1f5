//! Processes and their threads, as `/proc` has them (proc(5)). What is gone by then is left out.

use std::collections::HashMap;
use std::path::Path;

/// A process as `/proc/PID/stat` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its number.
    pub pid: u32,
    /// That of the process that has it as a child now.
    pub parent: u32,
    /// It has ended, and its parent has not been told yet.
    pub is_dead: bool,
    /// CPU time of its own and of those that it waited for, in ticks.
    pub cpu_ticks: u64,
    /// When it began, in ticks since the machine did.
    pub begin_ticks: u64,
}

impl Stat {
    /// That of a process; none where there is no such one.
    pub fn of(pid: u32) -> Option<Stat> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Stat::parse(pid, &String::from_utf8_lossy(&text))
    }

    /// `PID (COMM) STATE PPID …`; a name may hold spaces and parentheses.
    fn parse(pid: u32, text: &str) -> Option<Stat> {
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
}

/// All processes.
pub fn processes() -> impl Iterator<Item = u32> {
    numbers("/proc".as_ref())
}

/// The threads of a process.
pub fn threads(process: u32) -> impl Iterator<Item = u32> {
    numbers(format!("/proc/{process}/task").as_ref())
}

/// Each process as it is now.
pub fn stats() -> Vec<Stat> {
    processes().filter_map(Stat::of).collect()
}

/// All of them that descend from one of these, which are not among those.
pub fn below(all: &[Stat], of: impl IntoIterator<Item = u32>) -> Vec<Stat> {
    let mut children: HashMap<u32, Vec<Stat>> = HashMap::new();
    for stat in all {
        children.entry(stat.parent).or_default().push(*stat);
    }
    let mut found = Vec::new();
    let mut next: Vec<Stat> = Vec::new();
    for pid in of {
        next.extend(children.remove(&pid).unwrap_or_default());
    }
    while let Some(stat) = next.pop() {
        // Taken out: what changes while it is read makes no circle.
        next.extend(children.remove(&stat.pid).unwrap_or_default());
        found.push(stat);
    }
    found
}

fn numbers(folder: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let line = "12 (a) S 3) R 7 12 7724 0 -1 0 1 2 3 4 50 60 7 8 20 0 1 0 999 5 6";
        let expect = Stat {
            pid: 12,
            parent: 7,
            is_dead: false,
            cpu_ticks: 125,
            begin_ticks: 999,
        };
        assert_eq!(Stat::parse(12, line), Some(expect));
        let dead = Stat::parse(12, &line.replacen("R 7", "Z 7", 1));
        assert!(dead.is_some_and(|stat| stat.is_dead));
        assert_eq!(Stat::parse(12, "12 (a) R 7"), None);
        assert_eq!(Stat::parse(12, ""), None);
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
        let pids = |all: &[Stat], of: &[u32]| -> Vec<u32> {
            let of = of.iter().copied();
            let mut pids: Vec<u32> = below(all, of).iter().map(|stat| stat.pid).collect();
            pids.sort_unstable();
            pids
        };
        let all = [stat(1, 0), stat(2, 1), stat(3, 2), stat(4, 2), stat(5, 1)];
        assert_eq!(pids(&all, &[2]), [3, 4]);
        assert_eq!(pids(&all, &[1]), [2, 3, 4, 5]);
        assert!(pids(&all, &[9]).is_empty());
        // Of one below the other each is found once.
        assert_eq!(pids(&all, &[1, 2]), [2, 3, 4, 5]);
        // An id that was used again meanwhile.
        assert_eq!(pids(&[stat(2, 3), stat(3, 2)], &[2]), [2, 3]);
    }
    #[test]
    fn this_process_is_one_and_has_its_threads() {
        let own = std::process::id();
        assert!(processes().any(|process| process == own));
        assert!(threads(own).any(|thread| thread == own));
        assert_eq!(threads(u32::MAX).count(), 0);
        let stat = Stat::of(own).expect("its own");
        assert!(stat.parent > 0 && !stat.is_dead, "{stat:?}");
    }
}
