//! Single words: sizes, positive durations, CPUs that exist.

use event::{Cpu, Duration, Error, ErrorKind, Result};

/// The kernel buffer of one CPU when nobody says otherwise.
pub const BUFFER_DEFAULT_BYTES: u64 = 4 << 20;

fn refuse(what: String, found: &str, fix: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, what)
        .found(format!("'{found}'"))
        .fix(fix)
}

/// The letters of sizes, and what each multiplies by: 2 to that power.
const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];

/// Reads `64K`, `4M`, `1G`, `2T`, or bytes without a letter.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] names the text; a size of zero is one.
pub fn parse_size(flag: &str, text: &str) -> Result<u64> {
    let unit = |(letter, shift): &(char, u32)| Some((text.strip_suffix(*letter)?, *shift));
    let (number, shift) = UNITS.iter().find_map(unit).unwrap_or((text, 0));
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = number.parse::<u64>().ok();
    let bytes = bytes.and_then(|number| number.checked_mul(1 << shift));
    match bytes {
        Some(bytes) if bytes > 0 => Ok(bytes),
        None if is_number => Err(refuse(
            format!("{flag} is beyond every machine"),
            text,
            "give less, as in 512K or 4M",
        )),
        _ => Err(refuse(
            format!("{flag} is not a size"),
            text,
            "give a size above 0, as in 512K or 4M",
        )),
    }
}

/// Ten years: what lasts longer says nothing, and sums of it with instants stay in range.
pub const LONGEST: Duration = Duration::from_ms(3_652 * 86_400_000);

/// Reads a duration, the value of `flag`.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when it is no duration, has no unit, or is of many years.
pub fn duration(flag: &str, text: &str) -> Result<Duration> {
    let duration = Duration::parse(text)?;
    if duration > LONGEST {
        let fix = format!("give {flag} a duration of at most 3652d");
        return Err(refuse(format!("{flag} is of many years"), text, fix));
    }
    Ok(duration)
}

/// The same above zero.
///
/// # Errors
/// As [`duration`], and where it is zero.
pub fn positive_duration(flag: &str, text: &str) -> Result<Duration> {
    let duration = duration(flag, text)?;
    if duration == Duration::ZERO {
        let fix = format!("give {flag} a duration above zero, as in 25ms");
        return Err(refuse(format!("{flag} of zero says nothing"), text, fix));
    }
    Ok(duration)
}

/// Reads a list of CPUs that are all among `online`.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when it is no list or empty, [`ErrorKind::NotFound`] for a CPU that
/// this machine does not have.
pub fn known_cpus(text: &str, online: &[Cpu]) -> Result<Vec<Cpu>> {
    let cpus = Cpu::parse_list(text)?;
    if cpus.is_empty() {
        return Err(refuse(
            "--cpu names no CPU".into(),
            text,
            "give CPUs, as in 0-3,8",
        ));
    }
    if let Some(stranger) = cpus.iter().find(|cpu| !online.contains(cpu)) {
        return Err(no_such_cpu(*stranger, text, online));
    }
    Ok(cpus)
}

/// Refuses a CPU that is not among `online`.
///
/// # Errors
/// [`ErrorKind::NotFound`] for one that this machine does not have, or that is off.
pub fn known_cpu(cpu: Cpu, online: &[Cpu]) -> Result<Cpu> {
    match online.contains(&cpu) {
        true => Ok(cpu),
        false => Err(no_such_cpu(cpu, &cpu.0.to_string(), online)),
    }
}

fn no_such_cpu(stranger: Cpu, text: &str, online: &[Cpu]) -> Error {
    let names: Vec<String> = online.iter().map(|cpu| cpu.0.to_string()).collect();
    let what = format!("there is no {stranger} here");
    let error = Error::new(ErrorKind::NotFound, what).found(format!("'{text}'"));
    error.fix(format!("choose from: {}", names.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_letter_or_is_in_bytes() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(parse_size("--buffer", text).ok(), expect, "{text}");
        };
        check("4096", Some(4096));
        check("64K", Some(65_536));
        check("4M", Some(4 << 20));
        check("1G", Some(1 << 30));
        check("999T", Some(999 << 40));
        check("0M", None);
        check("4MiB", None);
        check("M", None);
        check("99999999999G", None);
    }

    #[test]
    fn a_size_that_no_number_can_say_is_no_misspelt_one() {
        let check = |text: &str, expect: &str| {
            let error = parse_size("--buffer", text).expect_err(text);
            assert_eq!(error.what(), expect, "{text}");
        };
        check("99999999999G", "--buffer is beyond every machine");
        check(
            "99999999999999999999999",
            "--buffer is beyond every machine",
        );
        check("0", "--buffer is not a size");
        check("-1M", "--buffer is not a size");
        check("T", "--buffer is not a size");
    }

    #[test]
    fn a_threshold_of_zero_is_refused_with_a_remedy() {
        let error = positive_duration("--over", "0ms").expect_err("zero");
        assert_eq!(error.what(), "--over of zero says nothing");
        assert!(error.fixed_by().is_some());
        assert!(positive_duration("--over", "25").is_err());
        assert_eq!(
            positive_duration("--over", "25ms").ok(),
            Some(Duration::from_ms(25))
        );
        let error = positive_duration("--for", "106751d").expect_err("too long");
        assert_eq!(error.what(), "--for is of many years");
        assert_eq!(positive_duration("--for", "3652d").ok(), Some(LONGEST));
        assert_eq!(duration("--distance", "0ms").ok(), Some(Duration::ZERO));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named() {
        let online = [Cpu(0), Cpu(1)];
        assert_eq!(known_cpus("0-1", &online).ok(), Some(vec![Cpu(0), Cpu(1)]));
        let error = known_cpus("1,7", &online).expect_err("no CPU 7");
        assert_eq!(error.to_string(), "there is no CPU 7 here: '1,7'");
        assert_eq!(error.fixed_by(), Some("choose from: 0,1"));
        assert!(known_cpus("", &online).is_err());
    }
}
