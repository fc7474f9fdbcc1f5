//! Tasks: moving them between control groups, and where each was allowed to run before.

use std::io::Write as _;
use std::path::Path;

use event::Cpu;
use rustix::process::Pid;
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};

use super::list;

/// Tasks are born while others are moved: after so many looks at most, who is left is passed over.
const LOOKS_MAX: usize = 5;

/// Where a task was allowed to run: moving it between control groups may forget that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMask {
    tid: i32,
    /// Its start in ticks since boot: a later task may have the same number.
    start: u64,
    cpus: String,
}

/// Moves every task of the list `from` that may be moved into `to`. Who is bound to its CPU stays,
/// and who is gone needs nothing.
pub(super) fn move_all(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut refused = Vec::new();
    for _ in 0..LOOKS_MAX {
        let text = std::fs::read_to_string(from)?;
        let new = text
            .lines()
            .filter(|tid| !refused.iter().any(|one| one == tid));
        let new: Vec<String> = new.map(str::to_owned).collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            let mut file = std::fs::File::options().write(true).open(to)?;
            if file.write_all(tid.as_bytes()).is_err() {
                refused.push(tid);
            }
        }
    }
    Ok(())
}

/// Where every task below `root` is allowed to run.
pub(super) fn masks(root: &Path) -> Vec<TaskMask> {
    let numbers = |path: &Path| -> Vec<i32> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    };
    let processes = root.join("proc");
    let mut masks = Vec::new();
    for process in numbers(&processes) {
        let threads = processes.join(process.to_string()).join("task");
        for tid in numbers(&threads) {
            let stat = std::fs::read_to_string(threads.join(tid.to_string()).join("stat"));
            let start = stat.ok().and_then(|stat| start_of(&stat));
            if let (Some(start), Some(cpus)) = (start, allowed(tid)) {
                masks.push(TaskMask { tid, start, cpus });
            }
        }
    }
    masks
}

/// Lets every task that is still there run where it was allowed to; who refuses, and why.
pub(super) fn restore(masks: &[TaskMask]) -> Vec<String> {
    masks.iter().filter_map(restore_one).collect()
}

fn restore_one(mask: &TaskMask) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", mask.tid)).ok()?;
    if start_of(&stat) != Some(mask.start) || allowed(mask.tid)? == mask.cpus {
        return None;
    }
    let mut set = CpuSet::new();
    for cpu in Cpu::parse_list(&mask.cpus).ok()? {
        set.set(cpu.0 as usize);
    }
    let error = rustix::thread::sched_setaffinity(Pid::from_raw(mask.tid), &set).err()?;
    // It may have ended meanwhile.
    (error != rustix::io::Errno::SRCH)
        .then(|| format!("task {} on {}: {error}", mask.tid, mask.cpus))
}

fn allowed(tid: i32) -> Option<String> {
    let set = rustix::thread::sched_getaffinity(Pid::from_raw(tid)).ok()?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
    let cpus: Vec<Cpu> = cpus.map(|cpu| Cpu(cpu as u32)).collect();
    Some(list(&cpus))
}

/// The 22nd field of proc(5)'s stat; the second may hold spaces and brackets.
pub(crate) fn start_of(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_read_behind_a_name_with_brackets() {
        let fields: Vec<String> = (3..40).map(|field| field.to_string()).collect();
        let stat = format!("7 (a) b) {}", fields.join(" "));
        assert_eq!(start_of(&stat), Some(22));
        assert_eq!(start_of("7 (a"), None);
    }

    #[test]
    fn our_own_mask_is_known_and_an_ended_task_needs_none() {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let masks = masks(Path::new("/"));
        let mask = masks
            .iter()
            .find(|mask| mask.tid == own)
            .expect("this thread");
        assert_eq!(restore_one(mask), None);
        let gone = TaskMask {
            start: mask.start + 1,
            cpus: String::new(),
            ..mask.clone()
        };
        assert_eq!(restore_one(&gone), None);
    }
}
