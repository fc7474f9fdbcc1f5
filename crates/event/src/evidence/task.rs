//! A task, as records name it.

use crate::{Prio, Tid};

/// A task as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskRef {
    /// Its thread id.
    pub tid: Tid,
    /// Its name; bytes that are not UTF-8 were replaced.
    pub comm: String,
    /// Its priority.
    pub prio: Prio,
}

/// `hog (tid 4242, rt 60)`.
impl std::fmt::Display for TaskRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (tid {}, {})", self.comm, self.tid, self.prio)
    }
}
