//! Where the timers of a task's sleeps lie: on its own stack in the kernel, and at one place for
//! one kind of call, so that another place tells another sleep. Whether the task was in a call of
//! `futex` tells it too, where these calls were recorded.
//!
//! Kernels that vary their stacks at each call do it by multiples of 16 (`randomize_kstack_offset`;
//! include/linux/randomize_kstack.h): there only how a place is aligned tells calls apart. On
//! Linux 6.18 `mq_timedsend` and `poll` lie otherwise than `clock_nanosleep`, and `futex` does not.

/// So often in a row a timer at the same place has to release a task for another place to tell
/// another sleep.
const SAME_PLACE_MIN: u32 = 4;
/// See above.
const STACK_STEP: u64 = 16;

/// Where the timers lie that release a task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimerPlace {
    address: Seen,
    aligned: Seen,
    /// How many were armed in no call of `futex`.
    outside_futex: u32,
}

/// A value, and how often in a row it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    value: u64,
    times: u32,
}

impl TimerPlace {
    /// One at `address` has released it, armed in a call of `futex` or not.
    pub fn is_again(&mut self, address: u64, in_futex: bool) {
        self.address.again(address);
        self.aligned.again(address % STACK_STEP);
        self.outside_futex = self.outside_futex.saturating_add(u32::from(!in_futex));
    }

    /// Whether such a timer is that of another kind of sleep.
    pub fn is_other(self, address: u64) -> bool {
        self.address.is_other(address) || self.aligned.is_other(address % STACK_STEP)
    }

    /// Whether one that is armed in a call of `futex` is: the task sleeps otherwise, too. These
    /// calls wait for others, again and again where they have a time-out: they pace no such task.
    pub fn is_no_futex(self) -> bool {
        self.outside_futex >= SAME_PLACE_MIN
    }
}

impl Seen {
    fn again(&mut self, value: u64) {
        let times = if self.value == value { self.times } else { 0 };
        *self = Seen {
            value,
            times: times.saturating_add(1),
        };
    }

    fn is_other(self, value: u64) -> bool {
        self.value != value && self.times >= SAME_PLACE_MIN
    }
}
