//! The time in front of an event's line.

use super::line::{EventLines, Piece};
use super::options::EventClock;

const NS_PER_S: i64 = 1_000_000_000;

/// Prints times; asks the time zone once for each second.
#[derive(Debug, Default)]
pub(super) struct ClockText {
    /// Where the last second that was asked for begins, and its text up to the dot.
    second: Option<(i64, Piece)>,
}

impl ClockText {
    /// `hh:mm:ss.nnnnnnnnn`, with the date before it, or `seconds.nnnnnnnnn`.
    #[inline]
    pub fn write(&mut self, ns: i64, clock: EventClock, utc: bool, line: &mut EventLines) {
        if matches!(clock, EventClock::WallSeconds | EventClock::TraceSeconds) {
            if ns < 0 {
                line.byte(b'-');
            }
            let ns = ns.unsigned_abs();
            line.unsigned(ns / NS_PER_S as u64);
            line.byte(b'.');
            return line.nine_digits(ns % NS_PER_S as u64);
        }
        if let Some((begin_ns, text)) = &self.second
            && let since_ns = ns.wrapping_sub(*begin_ns) as u64
            && since_ns < NS_PER_S as u64
        {
            line.piece(text);
            return line.nine_digits(since_ns);
        }
        let (second, since_ns) = (ns.div_euclid(NS_PER_S), ns.rem_euclid(NS_PER_S));
        let text = Piece::new(day(second, clock == EventClock::Date, utc).as_bytes());
        line.piece(&text);
        line.nine_digits(since_ns as u64);
        self.second = Some((ns.wrapping_sub(since_ns), text));
    }
}

/// `+s.nnnnnnnnn`, the time since the event before.
#[inline]
pub(super) fn write_delta(delta_ns: i64, line: &mut EventLines) {
    let sign = if delta_ns < 0 { b'-' } else { b'+' };
    let ns = delta_ns.unsigned_abs();
    if ns < NS_PER_S as u64 {
        return line.nine_digits_behind(&[sign, b'0', b'.'], ns);
    }
    line.byte(sign);
    line.unsigned(ns / NS_PER_S as u64);
    line.byte(b'.');
    line.nine_digits(ns % NS_PER_S as u64);
}

/// A second since 1970 up to the dot: local where the system knows its zone.
fn day(second: i64, with_date: bool, utc: bool) -> String {
    // SAFETY: all-zero bytes are a valid `tm`, whose pointer to the zone's name is null.
    let mut time: libc::tm = unsafe { std::mem::zeroed() };
    let filled = match utc {
        // SAFETY: both pointers are valid for the call, which keeps neither.
        true => unsafe { libc::gmtime_r(&second, &mut time) },
        // SAFETY: as above.
        false => unsafe { libc::localtime_r(&second, &mut time) },
    };
    if filled.is_null() {
        // Beyond the years that the system can count.
        return format!("{second} s.");
    }
    let date = match with_date {
        true => {
            let (year, month) = (time.tm_year + 1900, time.tm_mon + 1);
            format!("{year:04}-{month:02}-{:02} ", time.tm_mday)
        }
        false => String::new(),
    };
    let (hour, minute) = (time.tm_hour, time.tm_min);
    format!("{date}{hour:02}:{minute:02}:{:02}.", time.tm_sec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_prints_as_babeltrace2_prints_it() {
        let check = |wall_ns: i64, clock: EventClock, expect: &str| {
            let mut line = EventLines::default();
            ClockText::default().write(wall_ns, clock, true, &mut line);
            assert_eq!(String::from_utf8_lossy(line.text()), expect);
        };
        let (day, date, seconds) = (EventClock::Day, EventClock::Date, EventClock::WallSeconds);
        check(1_795_165_638_971_788_018, day, "09:07:18.971788018");
        check(
            1_795_165_638_971_788_018,
            date,
            "2026-11-20 09:07:18.971788018",
        );
        check(1_795_165_638_971_788_018, seconds, "1795165638.971788018");
        check(0, day, "00:00:00.000000000");
        check(0, date, "1970-01-01 00:00:00.000000000");
        check(-1, seconds, "-0.000000001");
        check(-1, day, "23:59:59.999999999");
    }

    #[test]
    fn a_delta_keeps_its_sign() {
        let check = |delta_ns: i64, expect: &str| {
            let mut line = EventLines::default();
            write_delta(delta_ns, &mut line);
            assert_eq!(String::from_utf8_lossy(line.text()), expect);
        };
        check(963_290, "+0.000963290");
        check(0, "+0.000000000");
        check(-1, "-0.000000001");
        check(12_000_000_000, "+12.000000000");
    }
}
