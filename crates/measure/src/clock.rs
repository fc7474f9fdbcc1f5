//! The clocks that a measurement can sleep on.

use std::mem::MaybeUninit;

/// A clock of the kernel that a thread can sleep on until an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// CLOCK_MONOTONIC: nobody sets it.
    #[default]
    Monotonic,
    /// CLOCK_REALTIME: the wall clock, which may be set while we measure.
    Realtime,
    /// CLOCK_TAI: the wall clock without leap seconds.
    Tai,
}

impl Clock {
    /// As it is typed and written.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Monotonic => "monotonic",
            Clock::Realtime => "realtime",
            Clock::Tai => "tai",
        }
    }

    fn id(self) -> libc::clockid_t {
        match self {
            Clock::Monotonic => libc::CLOCK_MONOTONIC,
            Clock::Realtime => libc::CLOCK_REALTIME,
            Clock::Tai => libc::CLOCK_TAI,
        }
    }

    /// Now, in nanoseconds.
    pub fn now_ns(self) -> i64 {
        let mut now = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the kernel knows all three clocks (TAI since 3.10) and writes `now` whole.
        let now = unsafe {
            libc::clock_gettime(self.id(), now.as_mut_ptr());
            now.assume_init()
        };
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    }

    /// Sleeps until the clock shows `at_ns`; at once when it shows more already.
    pub fn sleep_until(self, at_ns: i64) {
        let at = libc::timespec {
            tv_sec: at_ns.div_euclid(1_000_000_000),
            tv_nsec: at_ns.rem_euclid(1_000_000_000),
        };
        // SAFETY: the kernel only reads `at`; no remainder is wanted for an absolute time.
        while unsafe {
            libc::clock_nanosleep(
                self.id(),
                libc::TIMER_ABSTIME,
                &raw const at,
                std::ptr::null_mut(),
            )
        } == libc::EINTR
        {}
    }

    /// What the clock counts in, in nanoseconds: 1 where the kernel has high resolution timers.
    pub fn resolution_ns(self) -> i64 {
        let mut step = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: as in `now_ns`.
        let step = unsafe {
            libc::clock_getres(self.id(), step.as_mut_ptr());
            step.assume_init()
        };
        step.tv_sec * 1_000_000_000 + step.tv_nsec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_at_its_instant_or_later() {
        for clock in [Clock::Monotonic, Clock::Realtime, Clock::Tai] {
            let at_ns = clock.now_ns() + 1_000_000;
            clock.sleep_until(at_ns);
            assert!(clock.now_ns() >= at_ns, "{}", clock.name());
            assert!(clock.resolution_ns() > 0, "{}", clock.name());
        }
    }
}
