//! How a measuring thread sleeps towards its next sample.

use event::Duration;
use host::clock::Clock;

use super::plan::Sleep;

/// Blocked in measuring threads, as all signals but one are.
const SIGNAL: libc::c_int = libc::SIGALRM;

/// One thread's way to sleep.
#[derive(Debug)]
pub(super) struct Sleeper {
    clock: Clock,
    interval: Duration,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Until,
    For,
    /// None where the kernel has no timer left: it sleeps as the first then.
    Timer(Option<Timer>),
}

/// What became of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slept {
    /// It was to end at this instant.
    Until(i64),
    /// A signal ended it before.
    Nudged,
}

impl Sleeper {
    /// For the calling thread, whose first instant is `begin_ns`.
    pub fn new(sleep: Sleep, clock: Clock, interval: Duration, begin_ns: i64) -> Sleeper {
        Sleeper {
            clock,
            interval,
            way: match sleep {
                Sleep::Until => Way::Until,
                Sleep::For => Way::For,
                Sleep::Timer => Way::Timer(Timer::new(clock, interval, begin_ns)),
            },
        }
    }

    /// Sleeps towards the instant `at_ns`.
    pub fn sleep(&mut self, at_ns: i64) -> Slept {
        match &mut self.way {
            Way::Timer(Some(timer)) => match timer.wait() {
                Some(overruns) => Slept::Until(at_ns + overruns * self.interval.as_ns()),
                None => Slept::Nudged,
            },
            Way::Until | Way::Timer(None) => match self.clock.sleep_unless_nudged(at_ns) {
                true => Slept::Until(at_ns),
                false => Slept::Nudged,
            },
            Way::For => {
                let due_ns = self.clock.now_ns() + self.interval.as_ns();
                match self.clock.sleep_for(self.interval) {
                    true => Slept::Until(due_ns),
                    false => Slept::Nudged,
                }
            }
        }
    }

    /// Begins anew at an instant.
    pub fn begin(&mut self, begin_ns: i64) {
        if let Way::Timer(timer) = &mut self.way {
            *timer = None;
            *timer = Timer::new(self.clock, self.interval, begin_ns);
        }
    }

    /// Whether instants follow each other whatever becomes of a sleep.
    pub fn has_instants(&self) -> bool {
        !matches!(self.way, Way::For)
    }
}

/// A POSIX timer that signals its thread.
#[derive(Debug)]
struct Timer(libc::timer_t);

impl Timer {
    fn new(clock: Clock, interval: Duration, begin_ns: i64) -> Option<Timer> {
        let spec = libc::itimerspec {
            it_interval: timespec(interval.as_ns()),
            it_value: timespec(begin_ns),
        };
        // SAFETY: all zero is a sigevent; the calls read and write what is theirs on this stack.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::ptr::null_mut();
            if libc::timer_create(clock.id(), &raw mut event, &raw mut timer) != 0 {
                return None;
            }
            let timer = Timer(timer);
            let null = std::ptr::null_mut();
            let set = libc::timer_settime(timer.0, libc::TIMER_ABSTIME, &raw const spec, null);
            (set == 0).then_some(timer)
        }
    }

    /// Waits for its signal; how often it expired besides, or none where another one came.
    fn wait(&mut self) -> Option<i64> {
        // SAFETY: the set is filled before it is read; nobody wants to know more of the signal.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&raw mut set, SIGNAL);
            let signal = libc::sigwaitinfo(&raw const set, std::ptr::null_mut());
            let overruns = || i64::from(libc::timer_getoverrun(self.0)).max(0);
            (signal == SIGNAL).then(overruns)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: it is ours, and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

fn timespec(ns: i64) -> libc::timespec {
    libc::timespec {
        tv_sec: ns.div_euclid(1_000_000_000),
        tv_nsec: ns.rem_euclid(1_000_000_000),
    }
}
