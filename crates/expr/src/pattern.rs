//! Patterns of texts, made once and matched without allocation.

use std::fmt;

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};

use crate::ast::{MatchOp, Text};

/// A pattern, ready to match.
#[derive(Clone)]
pub(crate) enum Matcher {
    Regex(Regex),
    Glob(Glob),
    Contains(Box<Finder<'static>>),
}

/// A shell pattern, which covers the whole of a text; it works on bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    parts: Vec<GlobPart>,
}

impl Glob {
    /// The pattern of a text: `*` is any run of bytes, `?` any byte, `[a-z]` and `[!a-z]` one of a
    /// set or none of it. What was escaped stands for itself.
    pub fn new(text: &Text) -> Glob {
        Glob {
            parts: glob(text, true),
        }
    }

    /// Its parts in order; no two neighbours are [`GlobPart::Any`].
    pub fn parts(&self) -> &[GlobPart] {
        &self.parts
    }

    /// Whether it covers `text`. Takes at most pattern × text steps, and no memory.
    pub fn matches(&self, text: &[u8]) -> bool {
        glob_matches(&self.parts, text)
    }
}

/// A part of a shell pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GlobPart {
    /// This byte.
    Byte(u8),
    /// `?`
    One,
    /// `*`
    Any,
    /// `[a-z]`, or `[!a-z]` when negated.
    Set {
        /// Whether the bytes outside are meant.
        negated: bool,
        /// First and last of each range.
        ranges: Vec<(u8, u8)>,
    },
}

/// Memory that one regular expression may take.
const REGEX_BYTES_MAX: usize = 1 << 18;
/// How deep one may nest.
const REGEX_DEPTH_MAX: u32 = 64;

impl Matcher {
    /// The pattern of an operator; the error says in words why a regular expression is none.
    pub fn new(op: MatchOp, text: &Text) -> Result<Matcher, String> {
        match op {
            MatchOp::Regex => regex(&text.bytes).map(Matcher::Regex),
            MatchOp::Glob => Ok(Matcher::Glob(Glob::new(text))),
            MatchOp::Contains => {
                let finder = Finder::new(&text.bytes).into_owned();
                Ok(Matcher::Contains(Box::new(finder)))
            }
        }
    }

    /// The pattern that `==` makes of a text with stars: nothing else means anything in it.
    pub fn stars(text: &Text) -> Matcher {
        Matcher::Glob(Glob {
            parts: glob(text, false),
        })
    }

    /// Whether `text` matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Matcher::Regex(regex) => regex.is_match(text),
            Matcher::Glob(glob) => glob.matches(text),
            Matcher::Contains(finder) => finder.find(text).is_some(),
        }
    }

    /// The shell pattern that says the same; a regular expression has none.
    pub fn glob_parts(&self) -> Option<Vec<GlobPart>> {
        match self {
            Matcher::Glob(glob) => Some(glob.parts().to_vec()),
            Matcher::Contains(finder) => {
                let mut parts = vec![GlobPart::Any];
                let needle = finder.needle();
                parts.extend(needle.iter().map(|byte| GlobPart::Byte(*byte)));
                parts.extend((!needle.is_empty()).then_some(GlobPart::Any));
                Some(parts)
            }
            Matcher::Regex(_) => None,
        }
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Matcher::Regex(regex) => write!(f, "Regex({regex})"),
            Matcher::Glob(glob) => write!(f, "{glob:?}"),
            Matcher::Contains(finder) => {
                write!(f, "Contains({})", finder.needle().escape_ascii())
            }
        }
    }
}

fn regex(bytes: &[u8]) -> Result<Regex, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no UTF-8".to_owned())?;
    let regex = RegexBuilder::new(text)
        .unicode(false)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX)
        .nest_limit(REGEX_DEPTH_MAX)
        .build();
    regex.map_err(|error| {
        let text = error.to_string();
        // Its last line holds the reason, the lines before show the place.
        let last = text.lines().last().unwrap_or_default();
        last.strip_prefix("error: ").unwrap_or(last).to_owned()
    })
}

/// The parts of a shell pattern; only with `all` are `?` and sets more than themselves.
fn glob(text: &Text, all: bool) -> Vec<GlobPart> {
    let bytes = &text.bytes;
    let mut parts = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let special = !text.is_escaped(at);
        at += 1;
        match byte {
            b'*' if special => {
                if parts.last() != Some(&GlobPart::Any) {
                    parts.push(GlobPart::Any);
                }
            }
            b'?' if special && all => parts.push(GlobPart::One),
            b'[' if special && all => match set(&bytes[at..]) {
                Some((set, length)) => {
                    parts.push(set);
                    at += length;
                }
                None => parts.push(GlobPart::Byte(b'[')),
            },
            byte => parts.push(GlobPart::Byte(*byte)),
        }
    }
    parts
}

/// The set after `[` and its length with the `]`; none when it has no end.
fn set(bytes: &[u8]) -> Option<(GlobPart, usize)> {
    let negated = bytes.first() == Some(&b'!');
    let mut at = usize::from(negated);
    let first = at;
    let mut ranges = Vec::new();
    loop {
        let byte = *bytes.get(at)?;
        // A bracket that comes first is a member.
        if byte == b']' && at > first {
            return Some((GlobPart::Set { negated, ranges }, at + 1));
        }
        match (bytes.get(at + 1), bytes.get(at + 2)) {
            (Some(b'-'), Some(last)) if *last != b']' => {
                ranges.push((byte, *last));
                at += 3;
            }
            _ => {
                ranges.push((byte, byte));
                at += 1;
            }
        }
    }
}

impl GlobPart {
    fn takes(&self, byte: u8) -> bool {
        match self {
            GlobPart::Byte(own) => *own == byte,
            GlobPart::One => true,
            GlobPart::Any => false,
            GlobPart::Set { negated, ranges } => {
                let inside = |(first, last): &(u8, u8)| (*first..=*last).contains(&byte);
                ranges.iter().any(inside) != *negated
            }
        }
    }
}

/// Only the last star is ever reconsidered, so that the time is at most pattern × text.
fn glob_matches(parts: &[GlobPart], text: &[u8]) -> bool {
    let (mut part, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(at) {
        match parts.get(part) {
            Some(GlobPart::Any) => {
                star = Some((part, at));
                part += 1;
            }
            Some(own) if own.takes(*byte) => {
                part += 1;
                at += 1;
            }
            _ => {
                let Some((star_part, star_at)) = star else {
                    return false;
                };
                star = Some((star_part, star_at + 1));
                part = star_part + 1;
                at = star_at + 1;
            }
        }
    }
    parts[part..].iter().all(|part| *part == GlobPart::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_pattern_covers_the_whole_text() {
        let check = |pattern: &str, text: &str, expect: bool| {
            let matcher = Matcher::new(MatchOp::Glob, &Text::new(pattern)).expect("a glob");
            assert_eq!(matcher.matches(text.as_bytes()), expect, "{pattern} {text}");
        };
        check("irq_*_entry", "irq_handler_entry", true);
        check("irq_*_entry", "irq_handler_exit", false);
        check("*", "", true);
        check("?", "", false);
        check("j?ck*", "jackd", true);
        check("*a*b*c", "xxaxxbxxc", true);
        check("*a*b*c", "xxaxxcxxb", false);
        check("cpu[0-3]", "cpu2", true);
        check("cpu[!0-3]", "cpu2", false);
        check("cpu[!0-3]", "cpu7", true);
        check("[]]", "]", true);
        check("[ab", "[ab", true);
        check("[a-]", "-", true);
    }

    #[test]
    fn an_escaped_mark_and_for_a_comparison_all_but_the_star_stand_for_themselves() {
        let text = Text {
            bytes: b"a*b".to_vec(),
            escaped: vec![1],
        };
        let glob = Matcher::new(MatchOp::Glob, &text).expect("a glob");
        assert!(glob.matches(b"a*b") && !glob.matches(b"axb"));
        let stars = Matcher::stars(&Text::new("?[a]*"));
        assert!(stars.matches(b"?[a]xyz") && !stars.matches(b"xaxyz"));
    }

    #[test]
    fn a_regular_expression_is_found_anywhere_in_bytes() {
        let check = |pattern: &str, text: &[u8], expect: bool| {
            let matcher = Matcher::new(MatchOp::Regex, &Text::new(pattern)).expect("a regex");
            assert_eq!(matcher.matches(text), expect, "{pattern}");
        };
        check("^irq/[0-9]+-", b"irq/24-snd", true);
        check("snd", b"irq/24-snd", true);
        check("^snd", b"irq/24-snd", false);
        check(r"\d\.\w", b"1.x", true);
        check("(?i)JACK", b"jackd", true);
        check("x$", b"\xff\xfex", true);
    }

    #[test]
    fn a_regular_expression_that_is_none_or_too_large_says_why() {
        let reason = |pattern: &str| {
            let text = Text::new(pattern);
            Matcher::new(MatchOp::Regex, &text).expect_err("refused")
        };
        assert_eq!(reason("a("), "unclosed group");
        assert!(!reason("(a{1000}){1000}").is_empty());
        assert!(!reason(&"(".repeat(10_000)).is_empty());
    }
}
