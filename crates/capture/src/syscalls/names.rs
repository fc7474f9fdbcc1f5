//! Names of flags and of errors: `flags.tsv` and `errors.tsv`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Values of each set.
#[derive(Debug)]
pub(crate) struct NameSet {
    /// The bits that hold one value: all, some, or none.
    mask: u64,
    values: Vec<(&'static str, u64)>,
    /// Those with most bits first: a name of several bits comes before the names of each.
    bits: Vec<(&'static str, u64)>,
}

static SETS: LazyLock<HashMap<&'static str, NameSet>> = LazyLock::new(|| {
    let lines = include_str!("flags.tsv").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(set_of)
        .collect()
});

static ERRORS: LazyLock<HashMap<i64, &'static str>> = LazyLock::new(|| {
    let lines = include_str!("errors.tsv").lines();
    let error = |line: &'static str| {
        let (name, number) = line.split_once('\t')?;
        Some((number.parse().ok()?, name))
    };
    lines.filter_map(error).collect()
});

/// What the error of the largest number returns.
const ERROR_MIN: i64 = -4095;

fn set_of(line: &'static str) -> Option<(&'static str, NameSet)> {
    let mut columns = line.split('\t');
    let (name, mask) = (columns.next()?, columns.next()?.parse::<i64>().ok()?);
    let mut list = || -> Option<Vec<(&'static str, u64)>> {
        let words = columns.next()?.split(' ').filter(|word| *word != "-");
        let pair = |word: &'static str| {
            let (name, value) = word.split_once('=')?;
            Some((name, value.parse::<i64>().ok()? as u64))
        };
        words.map(pair).collect()
    };
    let (values, mut bits) = (list()?, list()?);
    bits.sort_by_key(|(_, value)| std::cmp::Reverse(value.count_ones()));
    let mask = mask as u64;
    Some((name, NameSet { mask, values, bits }))
}

/// The set of this name.
pub(crate) fn set(name: &str) -> Option<&'static NameSet> {
    SETS.get(name)
}

impl NameSet {
    /// Appends the names in `value`, what has none in hexadecimal.
    pub fn write(&self, value: u64, text: &mut String) {
        let begin = text.len();
        // All are `int`, of which registers hold whatever beside it.
        let value = match self.mask {
            u64::MAX => value as i32 as i64 as u64,
            _ => value & u64::from(u32::MAX),
        };
        let mut left = value;
        let one = value & self.mask;
        let named = self.values.iter().find(|(_, value)| *value == one);
        if let Some((name, of)) = named
            && (self.mask != 0 || value == 0)
        {
            text.push_str(name);
            left &= !of;
        }
        let bits = self.bits.iter().filter(|(_, bits)| *bits != 0);
        for (name, bits) in bits {
            if left & bits == *bits {
                separate(text, begin);
                text.push_str(name);
                left &= !bits;
            }
        }
        if left != 0 || (text.len() == begin && !self.values.is_empty()) {
            separate(text, begin);
            // Writing to a String cannot fail.
            let _ = write!(text, "{left:#x}");
        }
    }
}

fn separate(text: &mut String, begin: usize) {
    if text.len() > begin {
        text.push('|');
    }
}

/// The name of what a failed call returned; empty where it did not fail, or has none.
pub(crate) fn error_name(result: i64) -> &'static str {
    match result {
        ERROR_MIN..=-1 => ERRORS.get(&-result).copied().unwrap_or("unknown"),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_bits_have_their_names_and_the_rest_is_a_number() {
        let check = |name: &str, value: u64, expect: &str| {
            let mut text = String::new();
            set(name).expect("a set").write(value, &mut text);
            assert_eq!(text, expect, "{name} {value:#x}");
        };
        check("open", 0, "O_RDONLY");
        check("open", 0o2001101, "O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC");
        // O_SYNC holds O_DSYNC's bit, and O_DSYNC alone is not O_SYNC.
        check("open", 0o4010002, "O_RDWR|O_SYNC");
        check("open", 0o10000, "O_RDONLY|O_DSYNC");
        check("prot", 0, "PROT_NONE");
        check("prot", 5, "PROT_READ|PROT_EXEC");
        check("clone", 17, "SIGCHLD");
        check("clone", 0, "0x0");
        check("clone", 0x4111, "SIGCHLD|CLONE_VM|CLONE_VFORK");
        check("socktype", 0o2000001, "SOCK_STREAM|SOCK_CLOEXEC");
        check("whence", 2, "SEEK_END");
        check("whence", 77, "0x4d");
        check("futex", 129, "FUTEX_WAKE|FUTEX_PRIVATE_FLAG");
        check("msg", 0, "");
        check("msg", 0x4000 | 1 << 31, "MSG_NOSIGNAL|0x80000000");
        check("at", 0x100, "AT_SYMLINK_NOFOLLOW");
        check("rusage", u64::from(u32::MAX), "RUSAGE_CHILDREN");
        check("rusage", u64::MAX, "RUSAGE_CHILDREN");
    }

    #[test]
    fn only_what_an_error_can_be_has_a_name() {
        let check = |result, expect| assert_eq!(error_name(result), expect, "{result}");
        check(0, "");
        check(7, "");
        check(-2, "ENOENT");
        check(-11, "EAGAIN");
        check(-512, "ERESTARTSYS");
        check(-4095, "unknown");
        check(-4096, "");
        check(i64::MIN, "");
    }
}
