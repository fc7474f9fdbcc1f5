//! From the CPU's counter to CLOCK_MONOTONIC, piecewise linear between pairs of readings.

use std::collections::VecDeque;
use std::time::Duration as StdDuration;

use abi::rings;
use ring::Layout;

use crate::clock::monotonic;

/// So many pairs are kept: records older than the first are converted by the first slope.
const PAIRS_MAX: usize = 1024;
/// Readings for one pair, of which the narrowest counts.
const TRIES: usize = 16;
/// How long the first slope is measured.
const FIRST_SLOPE: StdDuration = StdDuration::from_millis(20);

/// Slopes of one boot differ by less: adjustments of the clock are at most 500 ppm.
const SLOPE_CHANGE_MAX: f64 = 2e-3;

/// Both clocks at one moment: the counter was read, then CLOCK_MONOTONIC, then the counter again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    /// The middle of both counter readings.
    counter: u64,
    ns: i64,
    /// Half of what lies between them: the moment is known no better.
    half_width: u64,
}

/// Pairs of readings, in the order of time, and the conversion between them.
#[derive(Clone, Debug, Default)]
struct Conversion {
    pairs: VecDeque<Pair>,
    /// Where records before the first kept pair are converted: the very first two.
    first: Option<(Pair, Pair)>,
    error_ns_max: f64,
}

/// Nanoseconds per tick between two pairs.
fn slope(a: Pair, b: Pair) -> f64 {
    (b.ns - a.ns) as f64 / (b.counter - a.counter) as f64
}

impl Conversion {
    /// Adds a pair; one that does not lie after the last is of no use.
    fn push(&mut self, pair: Pair) {
        let Some(last) = self.pairs.back().copied() else {
            self.pairs.push_back(pair);
            return;
        };
        if pair.counter <= last.counter || pair.ns <= last.ns {
            return;
        }
        let now = slope(last, pair);
        let before = match self.pairs.len() {
            0 | 1 => now,
            length => slope(self.pairs[length - 2], last),
        };
        // Inside a gap the clock may have run at either slope.
        let slew_ns = (now - before).abs() * (pair.counter - last.counter) as f64;
        let width_ns = pair.half_width.max(last.half_width) as f64 * now;
        self.error_ns_max = self.error_ns_max.max(width_ns + slew_ns);
        self.first.get_or_insert((last, pair));
        self.pairs.push_back(pair);
        if self.pairs.len() > PAIRS_MAX {
            self.pairs.pop_front();
        }
    }

    /// The stretch between two pairs that holds `counter`.
    fn line(&self, counter: u64) -> Option<Line> {
        let place = self.pairs.partition_point(|pair| pair.counter <= counter);
        Line::new(self.pairs[place.checked_sub(1)?], *self.pairs.get(place)?)
    }

    /// Nanoseconds of CLOCK_MONOTONIC when the counter stood at `counter`.
    fn ns(&self, counter: u64) -> i64 {
        let place = self.pairs.partition_point(|pair| pair.counter <= counter);
        let (a, b) = match (place.checked_sub(1), self.pairs.get(place)) {
            (Some(before), Some(b)) => (self.pairs[before], *b),
            // After the last pair: on with the last slope.
            (Some(last), None) if last > 0 => (self.pairs[last - 1], self.pairs[last]),
            _ => match self.first {
                Some(first) => first,
                None => return 0,
            },
        };
        let (ticks, part) = (
            b.counter - a.counter,
            i128::from(counter) - i128::from(a.counter),
        );
        let ns = i128::from(a.ns) + part * i128::from(b.ns - a.ns) / i128::from(ticks);
        ns.clamp(0, i128::from(i64::MAX)) as i64
    }
}

/// Bits behind the point of a line's slope.
const SLOPE_BITS: u32 = 56;

/// What lies between two pairs, with the division done once.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    counter: u64,
    ns: i64,
    ticks: u64,
    /// Nanoseconds a tick, in 2^-[`SLOPE_BITS`]; rounded up, so that a whole number stays one.
    slope: u64,
}

impl Line {
    /// `None` where the slope is not to be had in so many bits.
    fn new(a: Pair, b: Pair) -> Option<Line> {
        let ticks = b.counter - a.counter;
        let ns = u128::from(b.ns.abs_diff(a.ns));
        let slope = (ns << SLOPE_BITS).div_ceil(u128::from(ticks));
        (ticks < 1 << SLOPE_BITS).then_some(Line {
            counter: a.counter,
            ns: a.ns,
            ticks,
            slope: u64::try_from(slope).ok()?,
        })
    }

    #[inline(always)]
    fn ns(&self, counter: u64) -> Option<i64> {
        let part = counter.wrapping_sub(self.counter);
        let ns = (u128::from(part) * u128::from(self.slope)) >> SLOPE_BITS;
        (part < self.ticks).then_some(self.ns + ns as i64)
    }
}

/// A conversion of many readings, most of which lie near each other.
#[derive(Debug)]
pub(super) struct Converter<'a> {
    conversion: &'a Conversion,
    line: Line,
}

impl Converter<'_> {
    /// Nanoseconds of CLOCK_MONOTONIC at `counter`.
    #[inline]
    pub fn ns(&mut self, counter: u64) -> i64 {
        match self.line.ns(counter) {
            Some(ns) => ns,
            None => self.ns_elsewhere(counter),
        }
    }

    /// The same where it lies between the two pairs of the last conversion.
    #[inline(always)]
    pub fn near_ns(&self, counter: u64) -> Option<i64> {
        self.line.ns(counter)
    }

    #[cold]
    fn ns_elsewhere(&mut self, counter: u64) -> i64 {
        self.line = self.conversion.line(counter).unwrap_or_default();
        let ns = self.line.ns(counter);
        ns.unwrap_or_else(|| self.conversion.ns(counter))
    }
}

/// The conversion, fed from this machine's clocks.
#[derive(Clone, Debug)]
pub(super) struct CounterClock {
    conversion: Conversion,
}

impl CounterClock {
    /// Measures the first slope.
    pub fn start() -> Self {
        let mut clock = CounterClock {
            conversion: Conversion::default(),
        };
        clock.update();
        std::thread::sleep(FIRST_SLOPE);
        clock.update();
        clock
    }

    /// Takes a pair. What was recorded before lies between two pairs from then on.
    pub fn update(&mut self) {
        let pair = (0..TRIES).map(|_| {
            let before = counter();
            let ns = monotonic().as_ns();
            let after = counter();
            let half_width = after.saturating_sub(before).div_ceil(2);
            Pair {
                counter: before + half_width,
                ns,
                half_width,
            }
        });
        if let Some(pair) = pair.min_by_key(|pair| pair.half_width) {
            self.conversion.push(pair);
        }
    }

    /// The last pair: the counter, and CLOCK_MONOTONIC in nanoseconds.
    pub fn last(&self) -> Option<(u64, u64)> {
        let pair = self.conversion.pairs.back()?;
        Some((pair.counter, u64::try_from(pair.ns).ok()?))
    }

    /// The conversion for one file, which knows pairs of its own, from before this clock was
    /// started. In a file of another boot the counter began anew: then its first pair and this
    /// machine's slope are all that there is.
    pub fn of_file(&self, layout: &Layout) -> CounterClock {
        let now = self.conversion.pairs.iter().copied();
        let Some((first, second)) = self.conversion.first else {
            return self.clone();
        };
        let slope_now = slope(first, second);
        let half_width = (rings::PAIR_WIDTH_NS as f64 / 2.0 / slope_now).ceil() as u64;
        let known = [(layout.begin_counter, layout.begin_ns), layout.pair];
        let known = known.into_iter().filter(|(counter, _)| *counter != 0);
        let known = known.map(|(counter, ns)| Pair {
            counter,
            ns: ns.min(i64::MAX as u64) as i64,
            half_width,
        });
        let of_this_boot = |pair: &Pair| {
            let rising = pair.counter < first.counter && pair.ns < first.ns;
            rising && (slope(*pair, first) / slope_now - 1.0).abs() < SLOPE_CHANGE_MAX
        };
        let mut conversion = Conversion::default();
        for pair in known.clone().filter(of_this_boot).chain(now) {
            conversion.push(pair);
        }
        if let Some(begin) = known.clone().next()
            && !of_this_boot(&begin)
        {
            conversion = Conversion::default();
            known.for_each(|pair| conversion.push(pair));
            if conversion.first.is_none() {
                let ticks = (1e9 / slope_now) as u64;
                conversion.push(Pair {
                    counter: begin.counter.saturating_add(ticks),
                    ns: begin.ns.saturating_add(1_000_000_000),
                    ..begin
                });
            }
        }
        CounterClock { conversion }
    }

    /// Converts readings by what is known now.
    pub fn converter(&self) -> Converter<'_> {
        Converter {
            conversion: &self.conversion,
            line: Line::default(),
        }
    }

    /// How far a conversion was off at most: half the width of a pair, and the change of slope over
    /// the gap between two.
    pub fn error_ns(&self) -> i64 {
        self.conversion.error_ns_max.ceil() as i64
    }
}

/// The counter that the probe reads.
#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    // SAFETY: the instruction only reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The counter that the probe reads.
#[cfg(target_arch = "aarch64")]
fn counter() -> u64 {
    let counter;
    // SAFETY: the instructions only read a counter.
    unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) counter) };
    counter
}

/// The probe is for no other machine.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversion(pairs: &[(u64, i64)]) -> Conversion {
        let mut conversion = Conversion::default();
        for (counter, ns) in pairs {
            conversion.push(Pair {
                counter: *counter,
                ns: *ns,
                half_width: 10,
            });
        }
        conversion
    }

    #[test]
    fn a_reading_lies_on_the_line_between_its_neighbours() {
        let conversion = conversion(&[(1000, 500), (2000, 1000), (3000, 2000)]);
        let mut converter = Converter {
            conversion: &conversion,
            line: Line::default(),
        };
        let mut check = |counter, expect| {
            assert_eq!(conversion.ns(counter), expect, "{counter}");
            assert_eq!(converter.ns(counter), expect, "{counter}, by its line");
        };
        check(1000, 500);
        check(1500, 750);
        check(2000, 1000);
        check(2500, 1500);
        check(3000, 2000);
        check(4000, 3000);
        check(600, 300);
        check(0, 0);
    }

    #[test]
    fn converted_time_never_falls() {
        let pairs: Vec<_> = (1..50u64)
            .map(|k| (k * 997, (k * 400 + k % 7) as i64))
            .collect();
        let conversion = conversion(&pairs);
        let mut converter = Converter {
            conversion: &conversion,
            line: Line::default(),
        };
        let times: Vec<_> = (0..60_000).map(|counter| converter.ns(counter)).collect();
        assert!(times.is_sorted());
        let near = |(counter, ns): (usize, &i64)| (conversion.ns(counter as u64) - ns).abs() <= 1;
        assert!(times.iter().enumerate().all(near));
    }

    #[test]
    fn the_error_is_half_a_pair_and_the_change_of_slope_over_a_gap() {
        let steady = conversion(&[(0, 0), (1000, 500), (2000, 1000)]);
        assert_eq!(steady.error_ns_max, 5.0);
        let slewed = conversion(&[(0, 0), (1000, 500), (2000, 1100)]);
        assert_eq!(slewed.error_ns_max.round(), 6.0 + 100.0);
    }

    #[test]
    fn a_pair_that_goes_back_is_left_out() {
        let conversion = conversion(&[(0, 0), (1000, 500), (900, 600), (1100, 400)]);
        assert_eq!(conversion.pairs.len(), 2);
    }

    #[test]
    fn this_machines_counter_is_converted_into_its_monotonic_clock() {
        let mut clock = CounterClock::start();
        let before = monotonic().as_ns();
        let reading = counter();
        let after = monotonic().as_ns();
        clock.update();
        let (ns, error_ns) = (clock.converter().ns(reading), clock.error_ns());
        assert!(before - error_ns <= ns && ns <= after + error_ns);
    }
}
