//! Instants of the wall clock as people type them.

use event::{Error, ErrorKind, Instant, Result};
use report::{Calendar, Date};
use trace::Trace;

/// Fewer digits are seconds of the trace's clock.
const EPOCH_DIGITS_MIN: usize = 16;

/// An instant of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallWord {
    /// Nanoseconds since 1970 (UTC).
    SinceEpoch(i64),
    /// A time of the trace's only day, or of a given one.
    OfDay {
        /// The day.
        date: Option<Date>,
        /// Seconds since its begin.
        seconds: u32,
        /// And nanoseconds.
        ns: u32,
        /// So many seconds ahead of UTC, where that was given.
        ahead_s: Option<i32>,
    },
}

impl WallWord {
    /// Reads `hh:mm:ss[.n]`, the same after `yyyy-mm-dd ` or `yyyy-mm-ddT`, each with `Z` or an
    /// offset (`+02:00`, `-0330`, `+01`) behind it, or seconds or nanoseconds since 1970; none for
    /// anything else.
    pub fn parse(text: &str) -> Option<WallWord> {
        if text.len() >= EPOCH_DIGITS_MIN && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(WallWord::SinceEpoch);
        }
        if let Some(ns) = epoch_seconds(text) {
            return Some(WallWord::SinceEpoch(ns));
        }
        let (date, time) = match text.split_once([' ', 'T', 't']) {
            Some((date, time)) => (Some(parse_date(date)?), time),
            None => (None, text),
        };
        let (time, ahead_s) = zone(time)?;
        let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
        let mut parts = time.split(':').map(|part| number(part, 2));
        let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
        if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let ns = match fraction.len() {
            0 => 0,
            digits @ 1..=9 => number(fraction, digits)? * 10_u32.pow(9 - digits as u32),
            _ => return None,
        };
        Some(WallWord::OfDay {
            date,
            seconds: hour * 3_600 + minute * 60 + second,
            ns,
            ahead_s,
        })
    }

    /// The instant of the trace's clock.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a time without its date when the trace goes over midnight.
    pub fn resolve(self, trace: &Trace, utc: bool) -> Result<Instant> {
        let wall_ns = match self {
            WallWord::SinceEpoch(ns) => ns,
            WallWord::OfDay {
                date,
                seconds,
                ns,
                ahead_s,
            } => {
                let calendar = Calendar {
                    utc: utc || ahead_s.is_some(),
                    dated: false,
                };
                let ahead_ns = i64::from(ahead_s.unwrap_or(0)) * 1_000_000_000;
                let date = match date {
                    Some(date) => date,
                    None => only_day(trace, calendar, ahead_ns)?,
                };
                calendar
                    .wall_ns(date, seconds)
                    .saturating_sub(ahead_ns)
                    .saturating_add(i64::from(ns))
            }
        };
        Ok(Instant::from_ns(wall_ns) - trace.info().wall_offset)
    }
}

/// Seconds since 1970, from 2001 on: no machine has been up for so long.
fn epoch_seconds(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !(10..=11).contains(&seconds.len()) || fraction.len() > 9 {
        return None;
    }
    if !digits(seconds) || !digits(fraction) {
        return None;
    }
    let ns: i64 = format!("{fraction:0<9}").parse().ok()?;
    seconds
        .parse::<i64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(ns)
}

/// The day of a trace that does not go over midnight.
fn only_day(trace: &Trace, calendar: Calendar, ahead_ns: i64) -> Result<Date> {
    let days = trace.range().map(|range| {
        let day = |instant| calendar.date(trace.wall_ns(instant).saturating_add(ahead_ns));
        (day(range.begin), day(range.end))
    });
    match days {
        Some((first, last)) if first == last => Ok(first),
        _ => Err(Error::new(
            ErrorKind::InvalidInput,
            "a time without its date is not enough",
        )
        .found("a trace that goes over midnight, or does not say its time")
        .fix("give the date too, as in '2026-11-20 09:07:19.5'")),
    }
}

/// A time of day, and by how many seconds its zone is ahead of UTC; none where what stands there is
/// no zone.
fn zone(time: &str) -> Option<(&str, Option<i32>)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time.trim_end(), Some(0)));
    }
    let Some(at) = time.find(['+', '-']) else {
        return Some((time, None));
    };
    let (time, zone) = time.split_at(at);
    let (sign, digits) = zone.split_at(1);
    let digits = digits.replacen(':', "", 1);
    if !digits.is_ascii() {
        return None;
    }
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits, 2)?, 0),
        4 => (number(&digits[..2], 2)?, number(&digits[2..], 2)?),
        _ => return None,
    };
    if hours > 14 || minutes > 59 {
        return None;
    }
    let ahead_s = (hours * 3_600 + minutes * 60) as i32;
    Some((
        time.trim_end(),
        Some(if sign == "-" { -ahead_s } else { ahead_s }),
    ))
}

fn parse_date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
    let valid = parts.next().is_none() && (1..=12).contains(&month) && (1..=31).contains(&day);
    valid.then_some(Date {
        year: year as i32,
        month,
        day,
    })
}

/// A number of exactly so many digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let valid = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_of_the_wall_clock_is_a_time_of_day_a_date_or_a_count() {
        let check = |text: &str, expect: Option<WallWord>| {
            assert_eq!(WallWord::parse(text), expect, "{text}");
        };
        let of_day = |date, seconds, ns| {
            Some(WallWord::OfDay {
                date,
                seconds,
                ns,
                ahead_s: None,
            })
        };
        let ahead = |date, seconds, ahead_s| {
            Some(WallWord::OfDay {
                date,
                seconds,
                ns: 0,
                ahead_s: Some(ahead_s),
            })
        };
        let date = Some(Date {
            year: 2014,
            month: 12,
            day: 12,
        });
        check("00:01:02", of_day(None, 62, 0));
        check("17:29:43.802588035", of_day(None, 62_983, 802_588_035));
        check("17:29:43.5", of_day(None, 62_983, 500_000_000));
        check("2014-12-12 17:29:43", of_day(date, 62_983, 0));
        check("2014-12-12T17:29:43", of_day(date, 62_983, 0));
        check("2014-12-12T17:29:43Z", ahead(date, 62_983, 0));
        check("2014-12-12T17:29:43+00:00", ahead(date, 62_983, 0));
        check("2014-12-12 17:29:43 +02:00", ahead(date, 62_983, 7_200));
        check("2014-12-12T17:29:43-0330", ahead(date, 62_983, -12_600));
        check("17:29:43+01", ahead(None, 62_983, 3_600));
        check("17:29:43z", ahead(None, 62_983, 0));
        check(
            "1418423383802588035",
            Some(WallWord::SinceEpoch(1_418_423_383_802_588_035)),
        );
        for text in [
            "530",
            "530.25",
            "24:00:00",
            "1:2:3",
            "00:00",
            "2014-13-01 00:00:00",
            "17:29:43+1",
            "17:29:43+15:00",
            "17:29:43+01:60",
            "17:29:43+01:00:00",
            "17:29:43é+1",
            "17:29:43+é1",
            "17:29:43+aé1",
            "Z",
            "",
        ] {
            check(text, None);
        }
    }
}
