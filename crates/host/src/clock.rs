//! The clocks that a measurement can sleep on.

use std::mem::MaybeUninit;

use event::{Duration, Error, ErrorKind, Result};

/// A wake-up takes a few microseconds of its CPU.
const INTERVAL_MIN: Duration = Duration::from_us(10);

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

    /// Whether somebody may set it while we measure.
    pub fn can_be_set(self) -> bool {
        self != Clock::Monotonic
    }

    /// Its number for the kernel.
    pub fn id(self) -> libc::clockid_t {
        match self {
            Clock::Monotonic => libc::CLOCK_MONOTONIC,
            Clock::Realtime => libc::CLOCK_REALTIME,
            Clock::Tai => libc::CLOCK_TAI,
        }
    }

    /// Now, in nanoseconds.
    pub fn now_ns(self) -> i64 {
        read_ns(self.id())
    }

    /// Sleeps until the clock shows `at_ns`; not at all when it shows more already.
    pub fn sleep_until(self, at_ns: i64) {
        while !self.sleep_unless_nudged(at_ns) {}
    }

    /// The same, and false when a signal ended the sleep before its instant.
    pub fn sleep_unless_nudged(self, at_ns: i64) -> bool {
        let at = libc::timespec {
            tv_sec: at_ns.div_euclid(1_000_000_000),
            tv_nsec: at_ns.rem_euclid(1_000_000_000),
        };
        // SAFETY: the kernel only reads `at`; no remainder is wanted for an absolute time.
        let status = unsafe {
            libc::clock_nanosleep(
                self.id(),
                libc::TIMER_ABSTIME,
                &raw const at,
                std::ptr::null_mut(),
            )
        };
        status != libc::EINTR
    }

    /// Sleeps for so long, and false when a signal ended the sleep before.
    pub fn sleep_for(self, length: Duration) -> bool {
        let length = libc::timespec {
            tv_sec: length.as_ns() / 1_000_000_000,
            tv_nsec: length.as_ns() % 1_000_000_000,
        };
        let none = std::ptr::null_mut();
        // SAFETY: the kernel only reads `length`; nobody wants to know what is left of it.
        let status = unsafe { libc::clock_nanosleep(self.id(), 0, &raw const length, none) };
        status != libc::EINTR
    }

    /// Whether a thread can sleep from one instant to the next, so far apart: a real-time thread
    /// that cannot takes its CPU whole.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what no kernel can do, and what this clock cannot.
    pub fn check_interval(self, interval: Duration) -> Result<()> {
        let finest = Duration::from_ns(self.resolution_ns());
        let refuse = |what: String, found: String, fix: String| {
            Err(Error::new(ErrorKind::InvalidInput, what)
                .found(found)
                .fix(fix))
        };
        if interval < finest {
            return refuse(
                format!("the clock {} is too coarse", self.name()),
                format!("its step is {finest}"),
                "choose an interval above that, or a kernel with CONFIG_HIGH_RES_TIMERS=y".into(),
            );
        }
        if interval < INTERVAL_MIN {
            return refuse(
                "nobody wakes so often: the thread would take its CPU whole".into(),
                format!("an interval of {interval}"),
                format!("choose --interval {INTERVAL_MIN:#} or more"),
            );
        }
        Ok(())
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

/// A step of the clock is longer than what slewing it can do between two looks: 0.05 % is the
/// kernel's limit (adjtimex(2)), and two clocks are not read in one instant.
const STEP_NS_MIN: i64 = 1_000_000;
const SLEW_PARTS: i64 = 1_000;
/// So far apart are two clocks read at most, unless whoever reads them is held up every time.
const READ_NS_MAX: i64 = 100_000;
const READ_TRIES_MAX: u32 = 8;

/// Notices that a clock was set: looks at it beside CLOCK_MONOTONIC, which nobody sets.
#[derive(Clone, Copy, Debug)]
pub struct StepWatch {
    clock: Clock,
    monotonic_ns: i64,
    offset_ns: i64,
    stepped_ns: i64,
}

impl StepWatch {
    /// From now on.
    pub fn new(clock: Clock) -> StepWatch {
        let (monotonic_ns, now_ns) = both_ns(clock);
        StepWatch {
            clock,
            monotonic_ns,
            offset_ns: now_ns - monotonic_ns,
            stepped_ns: 0,
        }
    }

    /// Looks, and says whether the clock was set since the last look; the more often, the shorter
    /// the steps that it tells from slewing.
    pub fn look(&mut self) -> bool {
        let (monotonic_ns, now_ns) = both_ns(self.clock);
        self.add(monotonic_ns, now_ns)
    }

    fn add(&mut self, monotonic_ns: i64, now_ns: i64) -> bool {
        let offset_ns = now_ns - monotonic_ns;
        let moved_ns = offset_ns - self.offset_ns;
        let limit_ns = STEP_NS_MIN + (monotonic_ns - self.monotonic_ns) / SLEW_PARTS;
        let was_set = moved_ns.abs() > limit_ns;
        if was_set && moved_ns.abs() > self.stepped_ns.abs() {
            self.stepped_ns = moved_ns;
        }
        (self.monotonic_ns, self.offset_ns) = (monotonic_ns, offset_ns);
        was_set
    }

    /// The longest step that was seen, forwards or (negative) backwards.
    pub fn stepped(&self) -> Option<Duration> {
        (self.stepped_ns != 0).then(|| Duration::from_ns(self.stepped_ns))
    }
}

/// A moment at which the wall clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSet {
    /// CLOCK_MONOTONIC at the last look before, in nanoseconds.
    after_ns: i64,
    /// By how much the wall clock was ahead of CLOCK_MONOTONIC until then.
    offset_ns: i64,
    /// What it showed when that was noticed, in nanoseconds since 1970.
    pub at_wall_ns: i64,
    /// By how much it was set, forwards or (negative) backwards.
    pub by: Duration,
}

/// What the wall clock showed at an instant, also when somebody set it since.
#[derive(Clone, Debug)]
pub struct WallClock {
    watch: StepWatch,
    set: Vec<ClockSet>,
}

impl Default for WallClock {
    /// From now on.
    fn default() -> WallClock {
        WallClock {
            watch: StepWatch::new(Clock::Realtime),
            set: Vec::new(),
        }
    }
}

impl WallClock {
    /// Looks whether it was set since the last look: the more often, the better is known when.
    pub fn look(&mut self) -> Option<ClockSet> {
        let (monotonic_ns, now_ns) = both_ns(Clock::Realtime);
        self.add(monotonic_ns, now_ns)
    }

    fn add(&mut self, monotonic_ns: i64, now_ns: i64) -> Option<ClockSet> {
        let (after_ns, offset_ns) = (self.watch.monotonic_ns, self.watch.offset_ns);
        let found = self.watch.add(monotonic_ns, now_ns).then(|| ClockSet {
            after_ns,
            offset_ns,
            at_wall_ns: now_ns,
            by: Duration::from_ns(self.watch.offset_ns - offset_ns),
        });
        self.set.extend(found);
        found
    }

    /// What it showed at an instant of CLOCK_MONOTONIC. One between the look that found it set and
    /// the look before may be of before or after: it is told by the clock of after, as by whoever
    /// reads another log of that moment.
    pub fn at(&self, monotonic_ns: i64) -> i64 {
        let was = self.set.iter().find(|set| monotonic_ns <= set.after_ns);
        monotonic_ns + was.map_or(self.watch.offset_ns, |set| set.offset_ns)
    }
}

/// For how long the machine has run, with the time that it slept (CLOCK_BOOTTIME): nobody sets it.
pub fn since_boot_ns() -> i64 {
    read_ns(libc::CLOCK_BOOTTIME)
}

fn read_ns(clock: libc::clockid_t) -> i64 {
    let mut now = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel knows these clocks (TAI, the latest, since 3.10) and writes `now` whole.
    let now = unsafe {
        libc::clock_gettime(clock, now.as_mut_ptr());
        now.assume_init()
    };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// CLOCK_MONOTONIC and `clock`, read right after each other: who is preempted between the two must
/// not take that for a step.
fn both_ns(clock: Clock) -> (i64, i64) {
    let mut tries = 0;
    loop {
        let before_ns = Clock::Monotonic.now_ns();
        let now_ns = clock.now_ns();
        tries += 1;
        if Clock::Monotonic.now_ns() - before_ns <= READ_NS_MAX || tries == READ_TRIES_MAX {
            return (before_ns, now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_in_which_nobody_can_wake_is_refused() {
        let check = |interval: Duration, expect: bool| {
            let found = Clock::Monotonic.check_interval(interval);
            assert_eq!(found.is_ok(), expect, "{interval}");
        };
        check(Duration::ZERO, false);
        check(Duration::from_ns(9_999), false);
        check(Duration::from_us(10), true);
    }

    #[test]
    fn a_clock_that_was_set_is_told_from_one_that_is_slewed() {
        let check = |looks_ms: &[(i64, i64)], expect_ms: Option<i64>| {
            let mut seen = false;
            let mut watch = StepWatch {
                clock: Clock::Realtime,
                monotonic_ns: 0,
                offset_ns: 0,
                stepped_ns: 0,
            };
            for (monotonic_ms, now_ms) in looks_ms {
                seen |= watch.add(monotonic_ms * 1_000_000, now_ms * 1_000_000);
            }
            assert_eq!(seen, expect_ms.is_some(), "{looks_ms:?}");
            let found = watch.stepped().map(|step| step.as_ns() / 1_000_000);
            assert_eq!(found, expect_ms, "{looks_ms:?}");
        };
        check(&[(250, 250), (500, 500)], None);
        check(&[(250, 251), (500, 502)], None);
        check(&[(250, 250), (500, 4_500)], Some(4_000));
        check(&[(250, -750), (500, -500)], Some(-1_000));
    }

    #[test]
    fn an_instant_has_the_time_that_the_wall_clock_showed_then_though_it_was_set_since() {
        const MS: i64 = 1_000_000;
        let watch = StepWatch {
            clock: Clock::Realtime,
            monotonic_ns: 0,
            offset_ns: 5_000 * MS,
            stepped_ns: 0,
        };
        let mut wall = WallClock {
            watch,
            set: Vec::new(),
        };
        let mut look = |monotonic_ms: i64, now_ms: i64| {
            let set = wall.add(monotonic_ms * MS, now_ms * MS);
            set.map(|set| (set.at_wall_ns / MS, set.by.as_ns() / MS))
        };
        assert_eq!(look(100, 5_100), None);
        // Forwards by ten seconds, and back by an hour.
        assert_eq!(look(200, 15_200), Some((15_200, 10_000)));
        assert_eq!(look(300, 15_300), None);
        assert_eq!(look(400, -3_584_600), Some((-3_584_600, -3_600_000)));
        let check = |monotonic_ms: i64, expect_ms: i64| {
            assert_eq!(wall.at(monotonic_ms * MS), expect_ms * MS, "{monotonic_ms}");
        };
        check(50, 5_050);
        check(100, 5_100);
        check(150, 15_150);
        check(300, 15_300);
        check(350, -3_584_650);
        check(500, -3_584_500);
    }

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
