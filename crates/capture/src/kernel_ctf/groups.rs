//! Which thread group each task belongs to: forks in ftrace name threads only.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// `CLONE_THREAD`: the new task joins the group of its parent.
pub(crate) const CLONE_THREAD: u64 = 0x1_0000;

/// Thread groups by thread, fed from the task table and from new tasks. Shared by the CPUs'
/// converters.
#[derive(Debug, Default)]
pub struct ThreadGroups(Mutex<HashMap<i32, i32>>);

impl ThreadGroups {
    /// From pairs of thread and group.
    pub fn new(groups: impl IntoIterator<Item = (i32, i32)>) -> Self {
        ThreadGroups(Mutex::new(groups.into_iter().collect()))
    }

    /// The group of `tid`; itself when nothing is known of it, as for a process of one thread.
    pub fn group(&self, tid: i32) -> i32 {
        let groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        groups.get(&tid).copied().unwrap_or(tid)
    }

    /// Learns that `parent` made `child`.
    pub fn new_task(&self, parent: i32, child: i32, clone_flags: u64) {
        let joins = clone_flags & CLONE_THREAD != 0;
        let group = if joins { self.group(parent) } else { child };
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(child, group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_joins_its_parents_group_and_a_process_makes_its_own() {
        let groups = ThreadGroups::new([(10, 9)]);
        groups.new_task(10, 11, CLONE_THREAD);
        groups.new_task(11, 12, 0);
        assert_eq!(
            [10, 11, 12, 99].map(|tid| groups.group(tid)),
            [9, 9, 12, 99]
        );
    }
}
