//! Lists of CPUs as libnuma's numa_parse_cpustring(3) reads them, and what it says of others.

use event::Cpu;

/// The CPUs of `text` among those that are `online`: numbers as C writes them, ranges, `all`, and
/// with `!` before all but those. A range that goes down is where it begins.
///
/// # Errors
/// What libnuma says of the list, which may be nothing.
pub(super) fn read(text: &str, online: &[Cpu]) -> Result<Vec<Cpu>, Vec<String>> {
    if text.is_empty() {
        return Err(Vec::new());
    }
    let (is_inverted, text) = match text.strip_prefix('!') {
        Some(text) => (true, text),
        None => (false, text),
    };
    // Relative to those that we may use; libnuma reads it and counts from zero all the same.
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut listed = Vec::new();
    loop {
        if rest == "all" {
            listed.extend(online);
            break;
        }
        let (first, behind) = number(rest)
            .ok_or_else(|| warning(&format!("unparseable cpu description `{rest}'")))?;
        let first = known(first, online)
            .ok_or_else(|| warning(&format!("cpu argument {rest} is out of range")))?;
        listed.push(first);
        rest = behind;
        if let Some(range) = rest.strip_prefix('-') {
            let (last, behind) =
                number(range).ok_or_else(|| warning(&format!("missing cpu argument {range}")))?;
            let last = known(last, online)
                .ok_or_else(|| warning(&format!("cpu argument {range} out of range")))?;
            listed.extend(online.iter().filter(|cpu| **cpu >= first && **cpu <= last));
            rest = behind;
        }
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None if rest.is_empty() => break,
            None => return Err(Vec::new()),
        }
    }
    let wanted = |cpu: &&Cpu| listed.contains(cpu) != is_inverted;
    Ok(online.iter().filter(wanted).copied().collect())
}

/// A blank line follows it there.
fn warning(what: &str) -> Vec<String> {
    vec![format!("libnuma: Warning: {what}"), String::new()]
}

fn known(number: u64, online: &[Cpu]) -> Option<Cpu> {
    let cpu = Cpu(u32::try_from(number).ok()?);
    online.contains(&cpu).then_some(cpu)
}

/// A number as strtoul(3) reads it with base 0, and what stands behind; less than zero is a large
/// one.
fn number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let hexadecimal =
        hexadecimal.filter(|digits| digits.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (radix, digits) = match hexadecimal {
        Some(digits) => (16, digits),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let end = digits.find(|letter: char| !letter.is_digit(radix));
    let (digits, behind) = digits.split_at(end.unwrap_or(digits.len()));
    if digits.is_empty() {
        return None;
    }
    let number = u64::from_str_radix(digits, radix).unwrap_or(u64::MAX);
    Some((if is_negative { u64::MAX } else { number }, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_refused_as_libnuma_does_it() {
        let online = [0, 1, 2, 3].map(Cpu);
        let check = |text: &str, expect: Result<&[u32], &str>| {
            let found = read(text, &online).map_err(|said| said.join("\n"));
            let expect = match expect {
                Ok(cpus) => Ok(cpus.iter().copied().map(Cpu).collect()),
                Err("") => Err(String::new()),
                Err(what) => Err(format!("libnuma: Warning: {what}\n")),
            };
            assert_eq!(found, expect, "{text}");
        };
        check("0", Ok(&[0]));
        check("3,0-1", Ok(&[0, 1, 3]));
        check("2-1", Ok(&[2]));
        check("0x1,+2, 3", Ok(&[1, 2, 3]));
        check("0- 1", Ok(&[0, 1]));
        check("all", Ok(&[0, 1, 2, 3]));
        check("+all", Ok(&[0, 1, 2, 3]));
        check("0,all", Ok(&[0, 1, 2, 3]));
        check("!0,1", Ok(&[2, 3]));
        check("!all", Ok(&[]));
        check("9,1", Err("cpu argument 9,1 is out of range"));
        check("0-9,1", Err("cpu argument 9,1 out of range"));
        check("010", Err("cpu argument 010 is out of range"));
        check("0,-1", Err("cpu argument -1 is out of range"));
        check("all,0", Err("unparseable cpu description `all,0'"));
        check("0,", Err("unparseable cpu description `'"));
        check("1,!0", Err("unparseable cpu description `!0'"));
        check("0-x,1", Err("missing cpu argument x,1"));
        check("", Err(""));
        check("!", Err("unparseable cpu description `'"));
        check("08", Err(""));
        check("0-1-2", Err(""));
        check("1 ", Err(""));
    }
}
