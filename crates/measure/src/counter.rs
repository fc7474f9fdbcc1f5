//! The CPU's own counter, which costs a few nanoseconds to read, and its way to CLOCK_MONOTONIC.

use host::clock::Clock;

/// How often a reading is repeated for a narrow one: an interrupt may lie inside a wide one.
const TRIES: usize = 16;

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// The processor's (TSC on x86-64, CNTVCT on arm64).
    Processor,
    /// CLOCK_MONOTONIC, where the kernel does not trust the processor's.
    Monotonic,
}

impl Counter {
    /// The processor's when the kernel's own clock rests on it.
    pub fn choose(clocksource: Option<&str>) -> Counter {
        match clocksource {
            Some("tsc" | "arch_sys_counter") => Counter::Processor,
            _ => Counter::Monotonic,
        }
    }

    /// As it is written in results.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Processor if cfg!(target_arch = "aarch64") => "cntvct",
            Counter::Processor => "tsc",
            Counter::Monotonic => "monotonic",
        }
    }

    /// Now, in its own units.
    #[inline(always)]
    pub fn read(self) -> i64 {
        match self {
            Counter::Processor => processor(),
            Counter::Monotonic => Clock::Monotonic.now_ns(),
        }
    }

    /// Its reading and CLOCK_MONOTONIC's at one instant, as near as can be had.
    pub fn pair(self) -> Pair {
        let one = |_| {
            let before = self.read();
            let monotonic_ns = Clock::Monotonic.now_ns();
            let after = self.read();
            let counter = before + (after - before) / 2;
            (
                after - before,
                Pair {
                    counter,
                    monotonic_ns,
                },
            )
        };
        let narrowest = (0..TRIES).map(one).min_by_key(|(width, _)| *width);
        narrowest.map_or_else(|| one(0).1, |(_, pair)| pair)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn processor() -> i64 {
    // SAFETY: every x86-64 CPU has the instruction, and the kernel allows it where its own clock is
    // the TSC.
    unsafe { core::arch::x86_64::_rdtsc() }.cast_signed()
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn processor() -> i64 {
    let counter: u64;
    // SAFETY: the register is readable in user mode on Linux; nothing else is touched.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) counter, options(nomem, nostack)) };
    counter.cast_signed()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn processor() -> i64 {
    Clock::Monotonic.now_ns()
}

/// A counter's reading and the clock's at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// In the counter's units.
    pub counter: i64,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub monotonic_ns: i64,
}

/// The line through two pairs.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    begin: Pair,
    ns_per_count: f64,
}

impl Line {
    /// Through two pairs, the second later; none when they are one instant.
    pub fn through(begin: Pair, end: Pair) -> Option<Line> {
        let counts = end.counter - begin.counter;
        (counts > 0).then(|| Line {
            begin,
            ns_per_count: (end.monotonic_ns - begin.monotonic_ns) as f64 / counts as f64,
        })
    }

    /// A reading on CLOCK_MONOTONIC, in nanoseconds.
    pub fn to_ns(self, counter: i64) -> i64 {
        let ns = (counter - self.begin.counter) as f64 * self.ns_per_count;
        self.begin.monotonic_ns + ns.round() as i64
    }

    /// How many counts a time takes.
    pub fn counts(self, ns: i64) -> i64 {
        (ns as f64 / self.ns_per_count).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_lies_on_the_line_between_its_neighbours() {
        let pair = |counter, monotonic_ns| Pair {
            counter,
            monotonic_ns,
        };
        // 2.5 counts a nanosecond.
        let line = Line::through(pair(1_000, 7_000), pair(26_000, 17_000)).expect("two instants");
        let check = |counter: i64, expect_ns: i64| assert_eq!(line.to_ns(counter), expect_ns);
        check(1_000, 7_000);
        check(13_500, 12_000);
        check(26_000, 17_000);
        assert_eq!(line.counts(1_000), 2_500);
        assert!(Line::through(pair(5, 5), pair(5, 9)).is_none());
    }

    #[test]
    fn either_counter_goes_with_the_clock() {
        for counter in [Counter::Processor, Counter::Monotonic] {
            let begin = counter.pair();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let end = counter.pair();
            let line = Line::through(begin, end).expect("time passed");
            assert_eq!(
                line.to_ns(end.counter),
                end.monotonic_ns,
                "{}",
                counter.name()
            );
        }
    }
}
