//! A task of a hit as it was at a moment: priorities, policies and names may be others later.

use super::from_kernel::{FromKernel, Machine};
use super::raw::{self, mirror};
use super::record::{Place, label_part, record};
use super::task::TaskRef;
use crate::Prio;

/// Whose moment it is. The values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// The hit's target, at the hit.
    Target = 0,
    /// Who had the CPU before the target came on it, or has it while the target waits.
    Running = 1,
    /// Who woke the target, at the wake-up.
    Waker = 2,
    /// Who left the CPU in the call by which it lowered itself; with no hit of its own.
    Lowered = 3,
}

impl Role {
    /// All roles, with the names that traces use, in the order of the values.
    pub const NAMES: [(Role, &'static str); 4] = [
        (Role::Target, "target"),
        (Role::Running, "running"),
        (Role::Waker, "waker"),
        (Role::Lowered, "lowered"),
    ];

    /// From its value in a record.
    pub fn from_value(value: u8) -> Option<Role> {
        Self::NAMES.get(usize::from(value)).map(|(role, _)| *role)
    }
}

label_part!(Role);

record! {
    /// A task of a hit, as it was then.
    Moment as "rtscope_moment" {
        /// The task, with its priority then.
        task: TaskRef = "",
        /// Whose moment it is.
        role: Role = "role",
        /// Its policy, as the kernel numbers them: 0 other, 1 FIFO, 2 RR, 3 batch, 5 idle, 6
        /// deadline.
        policy: u32 = "policy",
        /// Its priority (in the kernel's tracers' scale) when it was scheduled in, or a better one
        /// that an interrupt saw it with since then; the same as now where that was not seen.
        came_prio: i32 = "came_prio",
        /// Its policy then.
        came_policy: u32 = "came_policy",
        /// Bit 0: a kernel thread; bit 1: a deadline server ran it in place of its own class; bit
        /// 2: its control group had used up its quota; bit 3: that group, or one above it, has one.
        flags: u32 = "flags",
    }
}

impl Moment {
    /// Whether it is a thread of the kernel, whatever its name.
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether a deadline server ran it in place of its own class.
    pub fn is_served(&self) -> bool {
        self.flags & 2 != 0
    }

    /// Whether its control group had used up its quota.
    pub fn is_out_of_quota(&self) -> bool {
        self.flags & 4 != 0
    }

    /// Whether its control group, or one above it, has a quota.
    pub fn is_limited(&self) -> bool {
        self.flags & 8 != 0
    }

    /// Its priority when it was scheduled in, or a better one with which it was seen since then.
    pub fn prio_when_it_came(&self) -> Prio {
        Prio::from_lttng(self.came_prio)
    }
}

mirror! {
    /// What the kernel sends of it.
    Raw = "rts_moment" {
        task: raw::Task,
        came_prio: i32,
        role: u8,
        policy: u8,
        came_policy: u8,
        flags: u8,
    }
}

impl FromKernel for Moment {
    type Raw = Raw;

    fn from_kernel(place: Place, raw: &Raw, _: &Machine) -> Option<Moment> {
        Some(Moment {
            cpu: place.cpu,
            time: place.time,
            task: raw.task.named()?,
            role: Role::from_value(raw.role)?,
            policy: u32::from(raw.policy),
            came_prio: raw.came_prio,
            came_policy: u32::from(raw.came_policy),
            flags: u32::from(raw.flags),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_round_trip, place, task};
    use super::*;

    #[test]
    fn a_moment_comes_back_from_its_trace_with_what_its_flags_say() {
        let moment = |role, flags| Moment {
            cpu: place().cpu,
            time: place().time,
            task: task("hog"),
            role,
            policy: 0,
            came_prio: -61,
            came_policy: 1,
            flags,
        };
        for (role, _) in Role::NAMES {
            check_round_trip(&moment(role, 0b101));
        }
        let check = |flags, expect| {
            let moment = moment(Role::Running, flags);
            let found = (
                moment.is_kernel_thread(),
                moment.is_served(),
                moment.is_out_of_quota(),
                moment.is_limited(),
            );
            assert_eq!(found, expect);
        };
        check(1, (true, false, false, false));
        check(2, (false, true, false, false));
        check(4, (false, false, true, false));
        check(8, (false, false, false, true));
        assert_eq!(moment(Role::Running, 0).prio_when_it_came(), Prio(39));
    }
}
