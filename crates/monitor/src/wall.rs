//! Moments of the wall clock as text, in UTC.

use event::civil_date;

const DAY_S: i64 = 86_400;

/// As in `2026-11-23T03:04:36Z`, to the second.
pub fn wall_text(ns: i64) -> String {
    let seconds = ns.div_euclid(1_000_000_000);
    let (days, rest) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The day of a moment, as in `2026-11-23`.
pub fn day_text(ns: i64) -> String {
    let (year, month, day) = civil_date(ns.div_euclid(1_000_000_000).div_euclid(DAY_S));
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_and_a_time() {
        let check = |seconds: i64, expect: &str| {
            assert_eq!(wall_text(seconds * 1_000_000_000), expect);
            assert!(expect.starts_with(&day_text(seconds * 1_000_000_000)));
        };
        check(0, "1970-01-01T00:00:00Z");
        check(-1, "1969-12-31T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_709_251_199, "2024-02-29T23:59:59Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
    }
}
