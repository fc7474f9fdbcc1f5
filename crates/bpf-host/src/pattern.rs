//! Name patterns as bit-parallel automata: the kernel matches a name of 15 bytes with 15 shifts.

use abi::raw;
use event::{Error, ErrorKind, Result};

/// A name in the kernel has at most this many bytes.
const NAME_LENGTH_MAX: usize = raw::COMM_LENGTH - 1;

/// Compiles `*` (any bytes), `?` (one byte), `[a-z]` and `[!a-z]` (one of a set), `\` (the next
/// byte as it is). State `i` means that `i` elements matched.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when it is empty, a set is not closed, or it is longer than a name.
pub(crate) fn compile(text: &str) -> Result<raw::Pattern> {
    let refuse = |what: &str| {
        Error::new(
            ErrorKind::InvalidInput,
            format!("not a name pattern: {what}"),
        )
        .found(format!("'{text}'"))
        .mend("use *, ? and [a-z], as in 'jackd' or 'irq/*-eth0'; names have 15 bytes at most")
    };
    if text.is_empty() {
        return Err(refuse("it is empty"));
    }
    let mut pattern: raw::Pattern = raw::zeroed();
    let mut bytes = text.bytes();
    let mut elements = 0;
    while let Some(byte) = bytes.next() {
        let accepts: Box<dyn Fn(u8) -> bool> = match byte {
            b'*' => {
                pattern.loops |= 1 << elements;
                continue;
            }
            b'?' => Box::new(|_| true),
            b'[' => set(&mut bytes).ok_or_else(|| refuse("a set is not closed"))?,
            b'\\' => {
                let literal = bytes
                    .next()
                    .ok_or_else(|| refuse("nothing after the last \\"))?;
                Box::new(move |byte| byte == literal)
            }
            literal => Box::new(move |byte| byte == literal),
        };
        if elements == NAME_LENGTH_MAX {
            return Err(refuse("longer than any name"));
        }
        for (byte, accept) in pattern.accept.iter_mut().enumerate() {
            *accept |= u32::from(accepts(byte as u8)) << elements;
        }
        elements += 1;
    }
    pattern.r#match = 1 << elements;
    Ok(pattern)
}

/// The rest of a set, up to its closing bracket.
fn set(bytes: &mut impl Iterator<Item = u8>) -> Option<Box<dyn Fn(u8) -> bool>> {
    let mut members: Vec<u8> = Vec::new();
    loop {
        match bytes.next()? {
            b']' if !members.is_empty() => break,
            byte => members.push(byte),
        }
    }
    let negated = members[0] == b'!' && members.len() > 1;
    let members = members.split_off(usize::from(negated));
    Some(Box::new(move |byte| in_set(&members, byte) != negated))
}

fn in_set(members: &[u8], byte: u8) -> bool {
    let in_range = members
        .windows(3)
        .any(|w| w[1] == b'-' && (w[0]..=w[2]).contains(&byte));
    in_range || members.contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The automaton, step by step as `bpf/filter.h` runs it.
    fn matches(pattern: &raw::Pattern, name: &str) -> bool {
        let step = |states: u32, byte: u8| {
            (states & pattern.accept[byte as usize]) << 1 | states & pattern.loops
        };
        name.bytes().fold(1, step) & pattern.r#match != 0
    }

    #[test]
    fn a_pattern_matches_whole_names_as_a_shell_does() {
        let check = |pattern: &str, name: &str, expect: bool| {
            assert_eq!(
                matches(&compile(pattern).unwrap(), name),
                expect,
                "{pattern} {name}"
            );
        };
        check("jackd", "jackd", true);
        check("jackd", "jackdbus", false);
        check("jack*", "jackdbus", true);
        check("*jack*", "qjackctl", true);
        check("irq/*-eth?", "irq/24-eth0", true);
        check("irq/*-eth?", "irq/24-eth", false);
        check("irq/[0-9]*", "irq/24-eth0", true);
        check("irq/[!0-9]*", "irq/24-eth0", false);
        check("*", "", true);
        check("a**b", "ab", true);
        check("*a*a*a*", "banan", false);
        check("*a*a*a*", "banana", true);
        check("\\*", "*", true);
        check("\\*", "x", false);
        check("abcdefghijklmno", "abcdefghijklmno", true);
    }

    #[test]
    fn a_pattern_that_can_match_nothing_is_refused() {
        let check = |pattern: &str| assert!(compile(pattern).is_err(), "{pattern}");
        check("");
        check("[a-z");
        check("a\\");
        check("abcdefghijklmnop");
    }
}
