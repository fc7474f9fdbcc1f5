//! Dates and times of day, in the zone of this machine or in UTC.

const NS_PER_S: i64 = 1_000_000_000;

/// How instants of the wall clock are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calendar {
    /// In UTC, not in the zone of this machine.
    pub utc: bool,
    /// With the date: the trace goes over midnight.
    pub dated: bool,
}

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The year.
    pub year: i32,
    /// The month, from 1.
    pub month: u32,
    /// The day of the month, from 1.
    pub day: u32,
}

impl Calendar {
    /// `hh:mm:ss.nnnnnnnnn`, after `yyyy-mm-dd ` when it is dated.
    pub fn time(self, wall_ns: i64) -> String {
        let time = self.broken(wall_ns);
        let of_day = format!(
            "{:02}:{:02}:{:02}.{:09}",
            time.tm_hour,
            time.tm_min,
            time.tm_sec,
            wall_ns.rem_euclid(NS_PER_S)
        );
        match self.dated {
            true => format!(
                "{:04}-{:02}-{:02} {of_day}",
                i64::from(time.tm_year) + 1900,
                time.tm_mon + 1,
                time.tm_mday
            ),
            false => of_day,
        }
    }

    /// `[BEGIN, END]`.
    pub fn range(self, begin_ns: i64, end_ns: i64) -> String {
        format!("[{}, {}]", self.time(begin_ns), self.time(end_ns))
    }

    /// The same with dates.
    pub fn with_dates(self) -> Calendar {
        Calendar {
            dated: true,
            ..self
        }
    }

    /// Whether two instants lie on different days.
    pub fn are_apart(self, begin_ns: i64, end_ns: i64) -> bool {
        let (begin, end) = (self.broken(begin_ns), self.broken(end_ns));
        (begin.tm_year, begin.tm_yday) != (end.tm_year, end.tm_yday)
    }

    /// The day of an instant.
    pub fn date(self, wall_ns: i64) -> Date {
        let time = self.broken(wall_ns);
        Date {
            year: time.tm_year.saturating_add(1900),
            month: time.tm_mon as u32 + 1,
            day: time.tm_mday as u32,
        }
    }

    /// The instant so many seconds after the begin of a day.
    pub fn wall_ns(self, date: Date, seconds: u32) -> i64 {
        // SAFETY: all-zero bytes are a valid `tm`, whose pointer to the zone's name is null.
        let mut time: libc::tm = unsafe { std::mem::zeroed() };
        time.tm_year = date.year.saturating_sub(1900);
        time.tm_mon = date.month as libc::c_int - 1;
        time.tm_mday = date.day as libc::c_int;
        time.tm_hour = (seconds / 3_600) as libc::c_int;
        time.tm_min = (seconds / 60 % 60) as libc::c_int;
        time.tm_sec = (seconds % 60) as libc::c_int;
        time.tm_isdst = -1;
        // SAFETY: the pointer is valid for the call, which does not keep it.
        let second = unsafe {
            match self.utc {
                true => libc::timegm(&mut time),
                false => libc::mktime(&mut time),
            }
        };
        second.saturating_mul(NS_PER_S)
    }

    fn broken(self, wall_ns: i64) -> libc::tm {
        let second: libc::time_t = wall_ns.div_euclid(NS_PER_S);
        // SAFETY: all-zero bytes are a valid `tm`, whose pointer to the zone's name is null.
        let mut time: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are valid for the call, which keeps neither.
        unsafe {
            match self.utc {
                true => libc::gmtime_r(&second, &mut time),
                false => libc::localtime_r(&second, &mut time),
            }
        };
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_prints_as_a_time_of_day_and_with_its_date() {
        let utc = Calendar {
            utc: true,
            dated: false,
        };
        let check = |ns: i64, expect: &str| assert_eq!(utc.with_dates().time(ns), expect);
        check(0, "1970-01-01 00:00:00.000000000");
        check(1_795_165_638_971_788_018, "2026-11-20 09:07:18.971788018");
        check(-1, "1969-12-31 23:59:59.999999999");
        assert_eq!(utc.time(61_000_000_001), "00:01:01.000000001");
        assert!(utc.are_apart(-1, 0) && !utc.are_apart(0, 1));
        let date = utc.date(1_795_165_638_971_788_018);
        assert_eq!(utc.wall_ns(date, 32_838), 1_795_165_638_000_000_000);
    }
}
