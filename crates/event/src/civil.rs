//! Days as dates.

/// The year, month and day of the Gregorian calendar, so many days after 1970-01-01.
///
/// Years are counted from March, so that the day that some of them have more is their last; and in
/// eras of 400 years, which are all of the same length (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `civil_from_days`).
pub fn civil_date(days: i64) -> (i64, i64, i64) {
    const DAYS_TO_1970: i64 = 719_468; // from 0000-03-01
    const ERA_DAYS: i64 = 146_097;
    let days = days + DAYS_TO_1970;
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = match month {
        0..10 => (month + 3, 0),
        _ => (month - 9, 1),
    };
    (400 * era + year + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_date() {
        let check = |days: i64, expect: (i64, i64, i64)| {
            assert_eq!(civil_date(days), expect, "{days}");
        };
        check(0, (1970, 1, 1));
        check(-1, (1969, 12, 31));
        check(11_016, (2000, 2, 29));
        check(19_782, (2024, 2, 29));
        check(47_541, (2100, 3, 1));
        check(-719_468, (0, 3, 1));
    }

    #[test]
    fn each_day_is_the_next_of_the_one_before() {
        let mut before = civil_date(-800_000);
        for days in -799_999..800_000 {
            let (year, month, day) = civil_date(days);
            let (year_before, month_before, day_before) = before;
            assert!(
                (year, month, day) == (year_before, month_before, day_before + 1)
                    || (year, month, day) == (year_before, month_before + 1, 1)
                    || (year, month, day, month_before) == (year_before + 1, 1, 1, 12),
                "{before:?} and {year}-{month}-{day}"
            );
            before = (year, month, day);
        }
    }
}
