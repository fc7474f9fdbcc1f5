//! Instants and durations are different types, in integer nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use crate::{Error, ErrorKind, Result};

/// The clock that an instant was read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: the time base of every trace that rtscope writes.
    #[default]
    Monotonic,
    /// Another clock, as named by a trace of somebody else.
    Foreign,
}

/// A point in time of a trace: nanoseconds since the origin of the trace's clock.
///
/// It has no absolute meaning; the wall-clock offset is a property of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

impl Instant {
    /// Before every instant.
    pub const MIN: Instant = Instant(i64::MIN);
    /// After every instant.
    pub const MAX: Instant = Instant(i64::MAX);

    /// From nanoseconds since the clock's origin.
    pub const fn from_ns(ns: i64) -> Self {
        Instant(ns)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_ns(self) -> i64 {
        self.0
    }

    /// The time from `earlier` to here; negative when `earlier` is later. Saturates.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.since(earlier)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(duration.0))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_sub(duration.0))
    }
}

/// Seconds with nine digits, as trace readers print: `11.002500000`.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let ns = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}

/// A length of time in nanoseconds; may be negative (a clock offset, an early timer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

/// Units that a duration may be typed in, with their nanoseconds.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest duration.
    pub const MAX: Duration = Duration(i64::MAX);

    /// From nanoseconds.
    pub const fn from_ns(ns: i64) -> Self {
        Duration(ns)
    }

    /// From microseconds; saturates.
    pub const fn from_us(us: i64) -> Self {
        Duration(us.saturating_mul(1_000))
    }

    /// From milliseconds; saturates.
    pub const fn from_ms(ms: i64) -> Self {
        Duration(ms.saturating_mul(1_000_000))
    }

    /// Nanoseconds.
    pub const fn as_ns(self) -> i64 {
        self.0
    }

    /// Nanoseconds, with a negative duration as zero.
    pub const fn as_ns_unsigned(self) -> u64 {
        if self.0 < 0 { 0 } else { self.0 as u64 }
    }

    /// This duration as a share of `whole`, 0 to 1; zero when `whole` is zero.
    pub fn share_of(self, whole: Duration) -> f64 {
        if whole.0 == 0 {
            0.0
        } else {
            self.0 as f64 / whole.0 as f64
        }
    }

    /// Reads `25ms`, `40us`, `2.5s`, `1h`. A number without a unit is refused, because every peer
    /// means another one.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] names the text and the units that exist.
    pub fn parse(text: &str) -> Result<Duration> {
        let refuse = |what: &str| {
            Error::new(ErrorKind::InvalidInput, format!("not a duration: {what}"))
                .found(format!("'{text}'"))
                .fix("give a number with a unit: ns, us, ms, s, m, h or d, as in 25ms or 2.5s")
        };
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(refuse("no number"));
        }
        if unit.is_empty() {
            return Err(refuse("no unit"));
        }
        let unit_ns = UNITS
            .iter()
            .find_map(|(name, ns)| (*name == unit).then_some(*ns))
            .ok_or_else(|| refuse("unknown unit"))?;
        let ns = scale_exactly(number, unit_ns).ok_or_else(|| refuse("number out of range"))?;
        Ok(Duration(ns))
    }

    /// In three digits with its unit: `8.42 ms`, `11.0 ms`, `297 ms`; nanoseconds in full.
    pub fn short(self) -> String {
        let ns = self.0 as f64;
        let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
        let unit = units.iter().find(|(_, unit_ns)| ns.abs() >= *unit_ns);
        let Some((name, unit_ns)) = unit else {
            return format!("{} ns", self.0);
        };
        let value = ns / unit_ns;
        let decimals = match value.abs() {
            ..10.0 => 2,
            ..100.0 => 1,
            _ => 0,
        };
        format!("{value:.decimals$} {name}")
    }
}

/// `number` × `unit_ns` without a float's rounding; digits below a nanosecond are cut.
fn scale_exactly(number: &str, unit_ns: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut ns = i128::from(whole) * i128::from(unit_ns);
    let mut power = 1i128;
    for digit in fraction.bytes().take(18) {
        power *= 10;
        ns += i128::from(digit - b'0') * i128::from(unit_ns) / power;
    }
    i64::try_from(ns).ok()
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Duration) {
        *self = *self - other;
    }
}

impl Neg for Duration {
    type Output = Duration;
    fn neg(self) -> Duration {
        Duration(self.0.saturating_neg())
    }
}

impl std::iter::Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(durations: I) -> Duration {
        durations.fold(Duration::ZERO, Add::add)
    }
}

/// With the largest unit that leaves at least one whole: `484.616 ms`, `29.824 us`, `740 ns`. The
/// alternate form (`{:#}`) is exact, as people type it and [`Duration::parse`] reads it: `25ms`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        if f.alternate() {
            return f.pad(&format!("{sign}{}", as_typed(ns)));
        }
        let text = match ns {
            0..1_000 => format!("{sign}{ns} ns"),
            1_000..1_000_000 => format!("{sign}{:.3} us", ns as f64 / 1e3),
            1_000_000..1_000_000_000 => format!("{sign}{:.3} ms", ns as f64 / 1e6),
            _ => format!("{sign}{:.3} s", ns as f64 / 1e9),
        };
        f.pad(&text)
    }
}

/// The shortest exact form in the largest unit that leaves at least one whole.
fn as_typed(ns: u64) -> String {
    let (unit, unit_ns) = match ns {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000u64),
    };
    let (whole, rest) = (ns / unit_ns, ns % unit_ns);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    // As many digits as the unit has zeros, then without those that say nothing.
    let width = unit_ns.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    format!("{whole}.{}{unit}", digits.trim_end_matches('0'))
}

/// A half-open range of time, `[begin, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The first instant inside.
    pub begin: Instant,
    /// The first instant after.
    pub end: Instant,
}

impl TimeRange {
    /// All of time.
    pub const ALL: TimeRange = TimeRange {
        begin: Instant::MIN,
        end: Instant::MAX,
    };

    /// Whether `instant` lies inside.
    pub fn contains(&self, instant: Instant) -> bool {
        self.begin <= instant && instant < self.end
    }

    /// The length; never negative.
    pub fn duration(&self) -> Duration {
        self.end.since(self.begin).max(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_with_its_unit_and_never_without() {
        let check = |text: &str, expect: Option<i64>| {
            assert_eq!(
                Duration::parse(text).ok().map(Duration::as_ns),
                expect,
                "{text}"
            );
        };
        check("25ms", Some(25_000_000));
        check("40us", Some(40_000));
        check("2.5s", Some(2_500_000_000));
        check("0.000000001s", Some(1));
        check("1.5ns", Some(1));
        check("0ms", Some(0));
        check("1d", Some(86_400_000_000_000));
        check("25", None);
        check("ms", None);
        check("25 lightyears", None);
        check("1.2.3ms", None);
        check(".ms", None);
        check("-5ms", None);
        check("99999999999d", None);
    }

    #[test]
    fn a_duration_prints_in_the_unit_that_people_would_choose() {
        let check = |ns: i64, expect: &str| assert_eq!(Duration::from_ns(ns).to_string(), expect);
        check(0, "0 ns");
        check(740, "740 ns");
        check(29_824, "29.824 us");
        check(484_615_261, "484.615 ms");
        check(1_500_000_000, "1.500 s");
        check(-2_000, "-2.000 us");
    }

    #[test]
    fn a_duration_in_its_typed_form_is_short_and_reads_back() {
        let check = |ns: i64, expect: &str| {
            let duration = Duration::from_ns(ns);
            assert_eq!(format!("{duration:#}"), expect);
            assert_eq!(Duration::parse(expect).ok(), Some(duration));
        };
        check(25_000_000, "25ms");
        check(2_500_000, "2.5ms");
        check(100, "100ns");
        check(1_000_000_001, "1.000000001s");
        check(90_000_000_000, "90s");
        check(50_000, "50us");
    }

    #[test]
    fn a_short_duration_has_three_digits_and_its_unit() {
        let check = |ns: i64, expect: &str| assert_eq!(Duration::from_ns(ns).short(), expect);
        check(0, "0 ns");
        check(999, "999 ns");
        check(8_420_000, "8.42 ms");
        check(11_028_000, "11.0 ms");
        check(297_716_000, "298 ms");
        check(2_726_000_000, "2.73 s");
        check(7_200_000_000_000, "7200 s");
    }

    #[test]
    fn an_instant_prints_seconds_with_nine_digits() {
        assert_eq!(
            Instant::from_ns(530_334_994_294).to_string(),
            "530.334994294"
        );
        assert_eq!(Instant::from_ns(-1).to_string(), "-0.000000001");
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Instant::MAX - Instant::MIN, Duration::MAX);
        assert_eq!(Instant::MAX + Duration::from_ns(1), Instant::MAX);
    }
}
