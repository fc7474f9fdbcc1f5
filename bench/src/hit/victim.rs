//! A periodic real-time task that a hog makes late by a known delay, and that reads off its own
//! clock by how much more it was late.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::late::become_real_time;

/// Whom a watch is asked for.
pub const NAME: &str = "bench-victim";
const HOG_NAME: &str = "bench-hog";
const VICTIM_PRIO: i32 = 10;
const HOG_PRIO: i32 = 20;
/// The hog runs for so long before the victim is due.
const HOG_BEFORE: Duration = Duration::from_micros(300);
/// Both threads are there by then.
const STARTS_AFTER: Duration = Duration::from_millis(50);
/// Of a hog that spins: somebody else had its CPU.
pub const DISTURBED: Duration = Duration::from_micros(10);

/// What is played.
#[derive(Clone, Debug)]
pub struct Play {
    /// The victim's.
    pub period: Duration,
    /// In every so manieth cycle a delay is injected.
    pub every: usize,
    /// From when the victim is due until the hog leaves it the CPU.
    pub delay: Duration,
    /// What the victim does in each cycle, alone.
    pub work: Duration,
    /// How many delays.
    pub delays: usize,
}

impl Play {
    /// A snapshot is on disk long before the next delay.
    pub const USUAL: Play = Play {
        period: Duration::from_millis(5),
        every: 50,
        delay: Duration::from_millis(3),
        work: Duration::from_micros(100),
        delays: 16,
    };
}

/// What the victim measured of one delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// From the hog's last reading of the clock to the victim's first.
    pub begin_ns: i64,
    /// From the same to the end of its work.
    pub end_ns: i64,
    /// How late the cycle behind it began.
    pub next_ns: i64,
    /// How late the latest of those up to the next delay began.
    pub following_ns: i64,
    /// Whether the hog was interrupted right before its end.
    pub disturbed: bool,
}

/// When a cycle was due, began and ended.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    due_ns: i64,
    begin_ns: i64,
    end_ns: i64,
}

/// The end of the hog's run, and its reading of the clock before.
#[derive(Debug, Default)]
struct HogEnd {
    at_ns: AtomicI64,
    before_ns: AtomicI64,
}

impl Play {
    /// Plays all of it.
    ///
    /// # Errors
    /// When a thread cannot become a real-time task, or a delay did not make the victim late.
    pub fn run(&self) -> Result<Vec<Late>> {
        let turns = turns_of(self.work);
        let ends: Arc<Vec<HogEnd>> =
            Arc::new((0..self.delays).map(|_| HogEnd::default()).collect());
        let begin_ns = now_ns()? + ns(STARTS_AFTER);
        let (play, seen) = (self.clone(), Arc::clone(&ends));
        let hog = named(HOG_NAME, move || play.hog(begin_ns, &seen))?;
        let play = self.clone();
        let victim = named(NAME, move || play.victim(begin_ns, turns))?;
        let (hogged, cycles) = (ended(hog), ended(victim));
        hogged?;
        self.late(&cycles?, &ends)
    }

    /// The first cycles are without a delay, and so are the last.
    fn cycle_of(&self, delay: usize) -> usize {
        (delay + 1) * self.every
    }

    fn due_ns(&self, begin_ns: i64, cycle: usize) -> i64 {
        begin_ns + cycle as i64 * ns(self.period)
    }

    fn hog(&self, begin_ns: i64, ends: &[HogEnd]) -> Result<()> {
        become_real_time(HOG_PRIO)?;
        for (delay, end) in ends.iter().enumerate() {
            let due_ns = self.due_ns(begin_ns, self.cycle_of(delay));
            sleep_until(due_ns - ns(HOG_BEFORE))?;
            let (mut before_ns, mut at_ns) = (0, now_ns()?);
            while at_ns < due_ns + ns(self.delay) {
                before_ns = at_ns;
                at_ns = now_ns()?;
            }
            end.before_ns.store(before_ns, Ordering::Release);
            end.at_ns.store(at_ns, Ordering::Release);
        }
        Ok(())
    }

    fn victim(&self, first_ns: i64, turns: u64) -> Result<Vec<Cycle>> {
        become_real_time(VICTIM_PRIO)?;
        // Whole before the first cycle: no page of it is new in one.
        let mut cycles = vec![Cycle::default(); (self.delays + 1) * self.every];
        for (place, cycle) in cycles.iter_mut().enumerate() {
            let due_ns = self.due_ns(first_ns, place);
            sleep_until(due_ns)?;
            let begin_ns = now_ns()?;
            work(turns);
            let end_ns = now_ns()?;
            *cycle = Cycle {
                due_ns,
                begin_ns,
                end_ns,
            };
        }
        Ok(cycles)
    }

    fn late(&self, cycles: &[Cycle], ends: &[HogEnd]) -> Result<Vec<Late>> {
        let mut all = Vec::new();
        for (delay, end) in ends.iter().enumerate() {
            let place = self.cycle_of(delay);
            let (late, following) = (cycles[place], &cycles[place + 1..place + self.every]);
            let at_ns = end.at_ns.load(Ordering::Acquire);
            let begin_ns = late.begin_ns - at_ns;
            // The hog itself came too late to delay anybody.
            if begin_ns < 0 {
                continue;
            }
            let late_ns = |cycle: &Cycle| cycle.begin_ns - cycle.due_ns;
            all.push(Late {
                begin_ns,
                end_ns: late.end_ns - at_ns,
                next_ns: late_ns(&following[0]),
                following_ns: following.iter().map(late_ns).max().unwrap_or_default(),
                disturbed: at_ns - end.before_ns.load(Ordering::Acquire) > ns(DISTURBED),
            });
        }
        if all.is_empty() {
            bail!("no delay made the victim late: play it on a quieter machine");
        }
        Ok(all)
    }
}

fn named<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<JoinHandle<Result<T>>> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(body);
    thread.context("cannot start a thread")
}

fn ended<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    let Ok(result) = thread.join() else {
        bail!("a thread of the experiment panicked");
    };
    result
}

fn ns(duration: Duration) -> i64 {
    duration.as_nanos() as i64
}

fn now_ns() -> Result<i64> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes the structure during the call.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) } != 0 {
        return Err(std::io::Error::last_os_error()).context("no clock");
    }
    Ok(now.tv_sec * 1_000_000_000 + now.tv_nsec)
}

fn sleep_until(at_ns: i64) -> Result<()> {
    let until = libc::timespec {
        tv_sec: at_ns / 1_000_000_000,
        tv_nsec: at_ns % 1_000_000_000,
    };
    // SAFETY: the kernel only reads the structure, and writes no rest of an absolute sleep.
    let error = unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const until,
            std::ptr::null_mut(),
        )
    };
    match error {
        // A signal ends it; the next reading of the clock shows that.
        0 | libc::EINTR => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(error)).context("cannot sleep"),
    }
}

fn work(turns: u64) {
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
}

/// How many turns of work take so long, by the fastest of some tries.
fn turns_of(length: Duration) -> u64 {
    const TRIED: u64 = 100_000;
    let tries = (0..10).map(|_| {
        let begin = std::time::Instant::now();
        work(TRIED);
        begin.elapsed().as_nanos().max(1)
    });
    let fastest_ns = tries.min().unwrap_or(1);
    (u128::from(TRIED) * length.as_nanos() / fastest_ns) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_beyond_the_delay_is_counted_from_the_hogs_end() {
        let play = Play {
            every: 3,
            delays: 1,
            ..Play::USUAL
        };
        let cycle = |due_ns, late_ns, work_ns| Cycle {
            due_ns,
            begin_ns: due_ns + late_ns,
            end_ns: due_ns + late_ns + work_ns,
        };
        let mut cycles = vec![cycle(0, 1, 1), cycle(10, 1, 1), cycle(20, 1, 1)];
        cycles.extend([
            cycle(30_000, 20_007, 100),
            cycle(60_000, 5, 1),
            cycle(90_000, 9, 1),
        ]);
        let hog = |at_ns: i64, before_ns: i64| {
            [HogEnd {
                at_ns: at_ns.into(),
                before_ns: before_ns.into(),
            }]
        };
        let expect = Late {
            begin_ns: 7,
            end_ns: 107,
            next_ns: 5,
            following_ns: 9,
            disturbed: false,
        };
        let check = |hog: &[HogEnd], expect: Late| {
            assert_eq!(play.late(&cycles, hog).expect("late"), [expect]);
        };
        check(&hog(50_000, 49_970), expect);
        let disturbed = true;
        check(
            &hog(50_000, 39_999),
            Late {
                disturbed,
                ..expect
            },
        );
        // Who began before the hog's end was not delayed by it.
        assert!(play.late(&cycles, &hog(50_008, 49_970)).is_err());
    }
}
