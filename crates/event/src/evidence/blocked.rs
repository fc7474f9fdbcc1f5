//! A target that blocks inside its activation, and what for.

use super::from_kernel::{FromKernel, Machine};
use super::raw::{self, mirror};
use super::record::{Place, label_part, record};
use super::stack::Stack;
use super::task::TaskRef;

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
    /// A page fault that another task has to serve.
    Fault = 4,
    /// Room in what it writes into.
    Write = 5,
    /// A lock for which it spun until now, and did not block; its owner lets go of it.
    Spin = 6,
    /// A lock of user space that several readers had.
    Readers = 7,
}

impl BlockedOn {
    /// All kinds, with the names that text, JSON and traces use, in the order of the values.
    pub const NAMES: [(BlockedOn, &'static str); 8] = [
        (BlockedOn::Kernel, "kernel"),
        (BlockedOn::Io, "io"),
        (BlockedOn::Lock, "lock"),
        (BlockedOn::Mutex, "mutex"),
        (BlockedOn::Fault, "fault"),
        (BlockedOn::Write, "write"),
        (BlockedOn::Spin, "spin"),
        (BlockedOn::Readers, "readers"),
    ];

    /// From its value in a record.
    pub fn from_value(value: u8) -> Option<BlockedOn> {
        Self::NAMES.get(usize::from(value)).map(|(on, _)| *on)
    }
}

label_part!(BlockedOn);

record! {
    /// A target blocked inside its activation. Its time is when it left the CPU.
    Blocked as "rtscope_blocked" {
        /// The target.
        task: TaskRef = "",
        /// What it waits for.
        on: BlockedOn = "on",
        /// The owner of the lock; of a mutex only the tid is known.
        owner: Option<TaskRef> = "owner_",
        /// The lock's address; zero without one.
        lock: u64 = "lock",
        /// Its kernel stack, innermost first.
        stack: Stack = "stack",
    }
}

mirror! {
    /// What the kernel sends of it.
    Raw = "rts_blocked_record" {
        lock: u64,
        task: raw::Task,
        owner: raw::Task,
        on: u8,
        padding: [u8; 7],
        stack: raw::Stack,
    }
}

impl FromKernel for Blocked {
    type Raw = Raw;

    fn from_kernel(place: Place, raw: &Raw, _: &Machine) -> Option<Blocked> {
        Some(Blocked {
            cpu: place.cpu,
            time: place.time,
            task: raw.task.named()?,
            on: BlockedOn::from_value(raw.on)?,
            owner: raw.owner.named(),
            lock: raw.lock,
            stack: raw.stack.frames(),
        })
    }

    fn symbolise(&mut self, name: &dyn Fn(u64) -> String) {
        super::stack::symbolise(&mut self.stack, &name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::stack::unnamed;
    use super::super::testing::{check_round_trip, place, task};
    use super::*;

    #[test]
    fn every_kind_comes_back_from_its_value() {
        for (on, _) in BlockedOn::NAMES {
            assert_eq!(BlockedOn::from_value(on as u8), Some(on));
        }
        assert_eq!(BlockedOn::from_value(8), None);
    }

    #[test]
    fn a_block_comes_back_from_its_trace_with_and_without_an_owner() {
        for owner in [None, Some(task("owner"))] {
            check_round_trip(&Blocked {
                cpu: place().cpu,
                time: place().time,
                task: task("target"),
                on: BlockedOn::Mutex,
                owner,
                lock: 0xffff_ffff_0000_0001,
                stack: unnamed(&[4, 5, 6]),
            });
        }
    }
}
