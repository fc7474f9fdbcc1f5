//! Tasks by number, priority and name.

use event::evidence::TaskRef;

/// A task as it was then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Task {
    /// Its number.
    pub tid: i32,
    /// Its priority as the kernel counts.
    pub prio: i32,
    /// Its name.
    pub name: String,
}

impl From<&TaskRef> for Task {
    fn from(task: &TaskRef) -> Task {
        Task {
            tid: task.tid.0,
            prio: task.prio.0,
            name: task.comm.clone(),
        }
    }
}
