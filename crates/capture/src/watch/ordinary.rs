//! Which threads are ordinary ones of a process that has real-time threads: nobody waits for them
//! to be in time.

use std::path::Path;

use event::Tid;
use event::evidence::{Hit, TaskRef};

/// The words of `stat` behind the name: the real-time priority, which is zero for others.
const RT_PRIORITY: usize = 37;
/// The policy; that of SCHED_DEADLINE has no real-time priority.
const POLICY: usize = 38;
const DEADLINE: &str = "6";

/// Marks those of the hits whose tasks are such threads now.
pub(super) fn mark(hits: &mut [Hit]) {
    for hit in hits {
        hit.ordinary = is_ordinary(&hit.task);
    }
}

/// Whether a task is not real-time, and others of its process are.
pub(super) fn is_ordinary(task: &TaskRef) -> bool {
    !task.prio.is_real_time() && has_real_time(Path::new("/proc"), task.tid)
}

/// Whether a process has real-time threads, beside the one with this id.
fn has_real_time(proc: &Path, tid: Tid) -> bool {
    // Any thread's id leads to its process.
    let Ok(threads) = std::fs::read_dir(proc.join(format!("{tid}/task"))) else {
        return false;
    };
    let own = tid.to_string();
    let mut others = threads.flatten();
    others.any(|thread| {
        let stat = || std::fs::read_to_string(thread.path().join("stat")).ok();
        *thread.file_name() != *own && stat().is_some_and(|stat| is_real_time(&stat))
    })
}

fn is_real_time(stat: &str) -> bool {
    // A name may hold anything.
    let Some((_, behind)) = stat.rsplit_once(')') else {
        return false;
    };
    let words: Vec<&str> = behind.split_whitespace().collect();
    let word = |place: usize| words.get(place).copied();
    word(RT_PRIORITY).is_some_and(|priority| priority != "0") || word(POLICY) == Some(DEADLINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_real_time_by_its_priority_or_its_policy() {
        let stat = |priority: &str, policy: &str| {
            let before = ["0"; RT_PRIORITY].join(" ");
            format!("7 (a) b) {before} {priority} {policy} 0 0\n")
        };
        assert!(is_real_time(&stat("70", "1")));
        assert!(is_real_time(&stat("0", DEADLINE)));
        assert!(!is_real_time(&stat("0", "0")));
        assert!(!is_real_time("7"));
    }

    #[test]
    fn a_thread_by_itself_is_no_ordinary_one_of_others() {
        let own = Tid(rustix::thread::gettid().as_raw_nonzero().get());
        assert!(!has_real_time(Path::new("/proc"), own));
        assert!(!has_real_time(Path::new("/proc"), Tid(i32::MAX)));
    }
}
