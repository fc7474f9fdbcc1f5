//! The time in front of an event's line.

use std::io::Write;

use super::EventClock;

const NS_PER_S: i64 = 1_000_000_000;

/// Prints times of day; asks the time zone once for each second.
#[derive(Debug, Default)]
pub(super) struct ClockText {
    /// The last second asked for and its hour, minute and second of the day.
    cached: Option<(i64, [u32; 3])>,
}

impl ClockText {
    /// `[hh:mm:ss.nnnnnnnnn] ` or `[seconds.nnnnnnnnn] `.
    pub fn write(&mut self, wall_ns: i64, clock: EventClock, out: &mut Vec<u8>) {
        let (second, ns) = (wall_ns.div_euclid(NS_PER_S), wall_ns.rem_euclid(NS_PER_S));
        // Writing into memory cannot fail.
        if matches!(clock, EventClock::WallSeconds | EventClock::TraceSeconds) {
            let (sign, ns) = (if wall_ns < 0 { "-" } else { "" }, wall_ns.unsigned_abs());
            let (second, ns) = (ns / NS_PER_S as u64, ns % NS_PER_S as u64);
            let _ = write!(out, "[{sign}{second}.{ns:09}] ");
            return;
        }
        let [hour, minute, second] = match self.cached {
            Some((cached, time)) if cached == second => time,
            _ => {
                let time = time_of_day(second, clock == EventClock::Utc);
                self.cached = Some((second, time));
                time
            }
        };
        let _ = write!(out, "[{hour:02}:{minute:02}:{second:02}.{ns:09}] ");
    }
}

/// `(+s.nnnnnnnnn) `, the time since the event before.
pub(super) fn write_delta(delta_ns: i64, out: &mut Vec<u8>) {
    let sign = if delta_ns < 0 { '-' } else { '+' };
    let ns = delta_ns.unsigned_abs();
    let (second, ns) = (ns / NS_PER_S as u64, ns % NS_PER_S as u64);
    let _ = write!(out, "({sign}{second}.{ns:09}) ");
}

/// Hour, minute and second of a time since 1970; local ones where the system knows its zone.
fn time_of_day(second: i64, utc: bool) -> [u32; 3] {
    let local = if utc { None } else { local_time_of_day(second) };
    local.unwrap_or_else(|| {
        let of_day = second.rem_euclid(86_400) as u32;
        [of_day / 3_600, of_day / 60 % 60, of_day % 60]
    })
}

fn local_time_of_day(second: i64) -> Option<[u32; 3]> {
    // SAFETY: all-zero bytes are a valid `tm`, whose pointer to the zone's name is null.
    let mut time: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call, which keeps neither.
    let filled = unsafe { libc::localtime_r(&second, &mut time) };
    if filled.is_null() {
        return None;
    }
    let part = |number: libc::c_int| u32::try_from(number).unwrap_or(0);
    Some([part(time.tm_hour), part(time.tm_min), part(time.tm_sec)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_prints_as_babeltrace2_prints_it() {
        let check = |wall_ns: i64, clock: EventClock, expect: &str| {
            let mut out = Vec::new();
            ClockText::default().write(wall_ns, clock, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expect);
        };
        let (day, seconds) = (EventClock::Utc, EventClock::WallSeconds);
        check(1_795_165_638_971_788_018, day, "[09:07:18.971788018] ");
        check(
            1_795_165_638_971_788_018,
            seconds,
            "[1795165638.971788018] ",
        );
        check(0, day, "[00:00:00.000000000] ");
        check(-1, seconds, "[-0.000000001] ");
        check(-1, day, "[23:59:59.999999999] ");
    }

    #[test]
    fn a_delta_keeps_its_sign() {
        let check = |delta_ns: i64, expect: &str| {
            let mut out = Vec::new();
            write_delta(delta_ns, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expect);
        };
        check(963_290, "(+0.000963290) ");
        check(0, "(+0.000000000) ");
        check(-1, "(-0.000000001) ");
    }
}
