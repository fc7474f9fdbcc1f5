//! What keeps a task from running though its work is not done: what it blocks on in the middle of
//! an activation, and the quota of its control group.

use super::hit::TaskRef;
use super::stack::Stack;
use crate::{Cpu, Instant};

/// What a task waits for. The values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BlockedOn {
    /// Something in the kernel that nothing names.
    Kernel = 0,
    /// A device, by the kernel's own mark.
    Io = 1,
    /// A lock whose owner the kernel knows.
    Lock = 2,
    /// A mutex of user space; its owner is what user space wrote there.
    Mutex = 3,
}

impl BlockedOn {
    /// All kinds, with the names that text, JSON and traces use, in the order of the values.
    pub const NAMES: [(BlockedOn, &'static str); 4] = [
        (BlockedOn::Kernel, "kernel"),
        (BlockedOn::Io, "io"),
        (BlockedOn::Lock, "lock"),
        (BlockedOn::Mutex, "mutex"),
    ];

    /// From its value in a record.
    pub fn from_value(value: u8) -> Option<BlockedOn> {
        Self::NAMES.get(usize::from(value)).map(|(on, _)| *on)
    }
}

/// A target blocked inside its activation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The CPU that it left.
    pub cpu: Cpu,
    /// When it left.
    pub time: Instant,
    /// The target.
    pub task: TaskRef,
    /// What it waits for.
    pub on: BlockedOn,
    /// The owner of the lock; of a mutex only the tid is known.
    pub owner: Option<TaskRef>,
    /// The lock's address; zero without one.
    pub lock: u64,
    /// Its kernel stack, innermost first.
    pub stack: Stack,
}

/// A target became runnable, was put aside or waited while its control group had used up its quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// The CPU on which that was seen.
    pub cpu: Cpu,
    /// When.
    pub time: Instant,
    /// Since when it was so, as far as it was seen.
    pub begin: Instant,
    /// The target.
    pub task: TaskRef,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back_from_its_value() {
        for (on, _) in BlockedOn::NAMES {
            assert_eq!(BlockedOn::from_value(on as u8), Some(on));
        }
        assert_eq!(BlockedOn::from_value(4), None);
    }
}
