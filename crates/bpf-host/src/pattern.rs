//! Name patterns as bit-parallel automata: the kernel matches a name of 15 bytes with 15 shifts.

use abi::raw;
use event::{Element, NamePattern};

/// The automata of which one accepts each name that the pattern matches. State `i` means that `i`
/// elements that take a byte have matched.
pub(crate) fn compile(pattern: &NamePattern, of_process: bool) -> Vec<raw::Pattern> {
    let alternatives = pattern.alternatives().into_iter();
    let compiled = alternatives.map(|elements| automaton(&elements));
    compiled
        .map(|automaton| raw::Pattern {
            of_process: u32::from(of_process),
            ..automaton
        })
        .collect()
}

fn automaton(elements: &[Element]) -> raw::Pattern {
    let mut pattern: raw::Pattern = raw::zeroed();
    let mut state = 0;
    for element in elements {
        if *element == Element::Run {
            pattern.loops |= 1 << state;
            continue;
        }
        for (byte, accept) in pattern.accept.iter_mut().enumerate() {
            *accept |= u32::from(element.accepts(byte as u8)) << state;
        }
        state += 1;
    }
    pattern.r#match = 1 << state;
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The automaton, step by step as `bpf/filter.h` runs it.
    fn accepts(pattern: &raw::Pattern, name: &[u8]) -> bool {
        let step = |states: u32, byte: &u8| {
            (states & pattern.accept[usize::from(*byte)]) << 1 | states & pattern.loops
        };
        name.iter().fold(1, step) & pattern.r#match != 0
    }

    #[test]
    fn the_kernel_and_the_analyses_match_the_same_names() {
        let names: [&[u8]; 14] = [
            b"jackd",
            b"jackdbus",
            b"qjackctl",
            b"irq/24-eth0",
            b"irq/24-eth",
            b"",
            b"ab",
            b"banana",
            b"*",
            b"x",
            b"abcdefghijklmno",
            b"rt[0]",
            b"rt0",
            &[0xc3, 0xa9, 0xff],
        ];
        for text in [
            "jackd",
            "jack*",
            "*jack*",
            "irq/*-eth?",
            "irq/[0-9]*",
            "irq/[!0-9]*",
            "*",
            "a**b",
            "*a*a*a*",
            "\\*",
            "abcdefghijklmno",
            "abcdefghijklmnopqrst",
            "rt[0]",
            "a[b",
            "a\\",
            "é?",
            "é*",
            "[]x]",
            "?",
            "abcdefghijklmn?*",
        ] {
            let pattern = NamePattern::parse(text).expect("a pattern");
            let compiled = compile(&pattern, false);
            for name in names {
                let found = compiled.iter().any(|automaton| accepts(automaton, name));
                let shown = String::from_utf8_lossy(name);
                assert_eq!(found, pattern.matches(name), "{text} {shown}");
            }
        }
    }
}
