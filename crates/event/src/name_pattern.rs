//! Patterns of thread names, as a shell has them, over the names that the kernel keeps.

use crate::{Error, ErrorKind, Result};

/// A thread's name in the kernel has at most so many bytes: `TASK_COMM_LEN` without its final zero.
pub const COMM_BYTES_MAX: usize = 15;

/// A pattern of names: `*` is any run of bytes, `?` any one byte, `[a-z]` one of a set, `[!a-z]`
/// one that is not in it, and `\` takes the next byte as it is. A name also matches itself,
/// whatever bytes it has.
///
/// # Invariants
/// - At most [`COMM_BYTES_MAX`] elements take a byte, so that a machine word holds all states.
/// - Equal texts are equal patterns.
#[derive(Clone, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
    /// None where the text is no pattern but a name: a set that nothing closes, a last `\`.
    elements: Option<Vec<Element>>,
}

/// What takes bytes of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// Any run of bytes, also none.
    Run,
    /// One byte of these: bit `byte % 64` of word `byte / 64`.
    One([u64; 4]),
}

impl Element {
    const ANY: Element = Element::One([u64::MAX; 4]);

    fn byte(byte: u8) -> Element {
        let mut set = [0; 4];
        set[usize::from(byte / 64)] = 1 << (byte % 64);
        Element::One(set)
    }

    /// Whether it takes this byte.
    pub fn accepts(&self, byte: u8) -> bool {
        match self {
            Element::Run => true,
            Element::One(set) => set[usize::from(byte / 64)] >> (byte % 64) & 1 == 1,
        }
    }
}

impl NamePattern {
    /// Reads a pattern. The kernel cuts names after 15 bytes, so what stands before the first `*`
    /// is cut there too, with all that follows.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when it is empty, or when only a name of more than 15 bytes
    /// could match it.
    pub fn parse(text: &str) -> Result<NamePattern> {
        let refuse =
            |what: &str| Error::new(ErrorKind::InvalidInput, what).found(format!("'{text}'"));
        if text.is_empty() {
            return Err(refuse("a name pattern is empty")
                .fix("give a name or a pattern, as in jackd or 'irq/*-eth?'; '*' is every name"));
        }
        let mut elements = elements(text.as_bytes());
        if let Some(elements) = &mut elements {
            let is_one = |element: &&Element| matches!(element, Element::One(_));
            let head = elements.iter().take_while(is_one).count();
            if head >= COMM_BYTES_MAX {
                elements.truncate(COMM_BYTES_MAX);
            }
            if elements.iter().filter(is_one).count() > COMM_BYTES_MAX {
                return Err(
                    refuse("no thread's name is as long as this pattern asks for").fix(
                        "the kernel keeps 15 bytes of a name: shorten what stands after the '*'",
                    ),
                );
            }
        }
        Ok(NamePattern {
            text: text.to_owned(),
            elements,
        })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a thread of this name is meant.
    pub fn matches(&self, comm: &[u8]) -> bool {
        let is_itself = cut(self.text.as_bytes()) == cut(comm);
        is_itself
            || self
                .elements
                .as_deref()
                .is_some_and(|pattern| glob(pattern, comm))
    }

    /// Whether a program's file of this name is meant. Files may have longer names than threads:
    /// one that is given whole means no other.
    pub fn means_file(&self, file: &[u8]) -> bool {
        let text = self.text.as_bytes();
        match self.literal() {
            Some(_) if text.len() > COMM_BYTES_MAX => file == text,
            _ => self.matches(cut(file)),
        }
    }

    /// The patterns without which nothing matches this one: a name matches one of them just when
    /// [`NamePattern::matches`] says so. One, or two where the text is a pattern of other names
    /// than itself.
    pub fn alternatives(&self) -> Vec<Vec<Element>> {
        let literal = || {
            let bytes = cut(self.text.as_bytes()).iter();
            bytes.map(|byte| Element::byte(*byte)).collect::<Vec<_>>()
        };
        match &self.elements {
            None => vec![literal()],
            Some(elements) if glob(elements, cut(self.text.as_bytes())) => vec![elements.clone()],
            Some(elements) => vec![elements.clone(), literal()],
        }
    }

    /// The name, when only one name matches.
    pub fn literal(&self) -> Option<&[u8]> {
        let special = |byte: u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        (!self.text.bytes().any(special)).then(|| cut(self.text.as_bytes()))
    }
}

impl std::fmt::Debug for NamePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// As the kernel cuts names: by bytes, also in the middle of a character.
fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(COMM_BYTES_MAX)]
}

/// None where the text is no pattern.
fn elements(text: &[u8]) -> Option<Vec<Element>> {
    let mut elements = Vec::new();
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        elements.push(match byte {
            b'*' if elements.last() == Some(&Element::Run) => continue,
            b'*' => Element::Run,
            b'?' => Element::ANY,
            b'[' => set(&mut bytes)?,
            b'\\' => Element::byte(bytes.next()?),
            byte => Element::byte(byte),
        });
    }
    Some(elements)
}

/// The rest of a set, up to its closing bracket. A bracket that comes first is a member.
fn set(bytes: &mut impl Iterator<Item = u8>) -> Option<Element> {
    let mut members: Vec<u8> = Vec::new();
    let mut is_negated = false;
    loop {
        match bytes.next()? {
            b'!' if members.is_empty() && !is_negated => is_negated = true,
            b']' if !members.is_empty() => break,
            byte => members.push(byte),
        }
    }
    let mut set = [0u64; 4];
    let mut place = 0;
    while let Some(first) = members.get(place) {
        let range = match members.get(place + 1..place + 3) {
            Some([b'-', last]) => *first..=*last,
            _ => *first..=*first,
        };
        place += if members.get(place + 1) == Some(&b'-') && place + 2 < members.len() {
            3
        } else {
            1
        };
        for byte in range {
            set[usize::from(byte / 64)] |= 1 << (byte % 64);
        }
    }
    Some(Element::One(set.map(|word| match is_negated {
        true => !word,
        false => word,
    })))
}

/// Whether `text` matches `pattern`. Linear in the text for each run: only the last one is ever
/// reconsidered.
fn glob(pattern: &[Element], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut run: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(Element::Run) => {
                run = Some((p, t));
                p += 1;
            }
            Some(one) if one.accepts(text[t]) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((run_p, run_t)) = run else {
                    return false;
                };
                run = Some((run_p, run_t + 1));
                p = run_p + 1;
                t = run_t + 1;
            }
        }
    }
    pattern[p..].iter().all(|element| *element == Element::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, comm: &str, expect: bool) {
        let found = NamePattern::parse(pattern)
            .expect("a pattern")
            .matches(comm.as_bytes());
        assert_eq!(found, expect, "{pattern} {comm}");
    }

    #[test]
    fn a_pattern_matches_whole_names_as_shells_do() {
        check("jackd", "jackd", true);
        check("jackd", "jackdbus", false);
        check("jack*", "jackdbus", true);
        check("*d", "jackd", true);
        check("?ackd", "jackd", true);
        check("?ackd", "ackd", false);
        check("*a*b*c", "xxaxxbxxc", true);
        check("*a*b*c", "xxaxxcxxb", false);
        check("a**b", "ab", true);
        check("*", "", true);
        check("irq/[0-9]*", "irq/24-eth0", true);
        check("irq/[!0-9]*", "irq/24-eth0", false);
        check("[]x]", "]", true);
        check("[a-]", "-", true);
        check("[!]", "!", false);
        check("[z-a]", "m", false);
    }

    #[test]
    fn names_are_cut_as_the_kernel_cuts_them_and_so_are_patterns() {
        check("Client management", "Client manageme", true);
        check("Client management*", "Client manageme", true);
        check("Client management", "Client managemX", false);
        check("abcdefghijklmno", "abcdefghijklmno", true);
        check("abcdefghijklmnop", "abcdefghijklmno", true);
        check("abcdefghijklmn*", "abcdefghijklmno", true);
        check("?bcdefghijklmnopq", "xbcdefghijklmno", true);
        // Where something kept more of a name than the kernel does, both name it.
        check("kworker/0:1H-kblockd", "kworker/0:1H-kb", true);
        check("kworker/0:1H-kblockd", "kworker/0:1H-kblockd", true);
        check("*kblockd", "kworker/0:1H-kblockd", true);
        // The kernel cuts in the middle of a character.
        let name = "ééééééééé";
        let pattern = NamePattern::parse(name).expect("a name");
        assert!(pattern.matches(&name.as_bytes()[..15]));
    }

    #[test]
    fn a_name_matches_itself_whatever_bytes_it_has() {
        for name in [
            "rt[0]",
            "a[b",
            "a\\",
            "\\*",
            "[!a]",
            "what?",
            "**",
            "-1",
            " x ",
            "a,b",
            "é?",
            "]",
            "[]",
            "a[b-",
            "kworker/u8:0-[x",
            "a:b",
            "名前",
            "\t",
        ] {
            check(name, name, true);
        }
        check("rt[0]", "rt0", true);
        check("rt[0]", "rt1", false);
        check("a[b", "ab", false);
        check("\\*", "*", true);
        check("\\*", "x", false);
        check("rt\\[0]", "rt[0]", true);
        check("rt\\[0]", "rt0", false);
    }

    #[test]
    fn the_alternatives_say_what_the_pattern_says() {
        let names = [
            "rt0",
            "rt[0]",
            "a[b",
            "ab",
            "*",
            "\\*",
            "jackd",
            "jackdbus",
            "",
            "abcdefghijklmno",
        ];
        for text in [
            "rt[0]",
            "a[b",
            "\\*",
            "jack*",
            "*",
            "jackd",
            "?",
            "abcdefghijklmnopq",
            "x*y\\",
        ] {
            let pattern = NamePattern::parse(text).expect("a pattern");
            for name in names {
                let any = pattern
                    .alternatives()
                    .iter()
                    .any(|one| glob(one, name.as_bytes()));
                assert_eq!(any, pattern.matches(name.as_bytes()), "{text} {name}");
            }
        }
    }

    #[test]
    fn a_pattern_that_no_name_can_match_is_refused() {
        let check = |text: &str| {
            let error = NamePattern::parse(text).expect_err(text);
            assert!(error.fixed_by().is_some(), "{text}");
        };
        check("");
        check("*abcdefghijklmnop");
        check("a*bcdefghijklmnop");
    }
}
