//! TSDL's tokens, each with where it stands.

use std::borrow::Cow;

use event::{Error, ErrorKind};

/// One token of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// A name or keyword.
    Word(&'a str),
    /// A number without its sign.
    Number(u64),
    /// A quoted text or character, escapes resolved.
    Text(Cow<'a, str>),
    /// Punctuation.
    Punct(&'static str),
}

/// Punctuation of several characters, which comes before that of one.
const LONG_PUNCTUATION: [&str; 3] = ["...", ":=", "->"];
/// Punctuation of one character, signs included.
const PUNCTUATION: [&str; 16] = [
    "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", "=", "*", ".", "-", "+",
];

/// What a byte may be part of.
const BLANK: u8 = 1;
const WORD: u8 = 2;
const NUMBER: u8 = 4;

/// By byte: tests of ranges took most of the time of reading metadata.
const PARTS: [u8; 256] = {
    let mut parts = [0; 256];
    let mut place = 0;
    while place < parts.len() {
        parts[place] = match place as u8 {
            b' ' | b'\t'..=b'\r' | 0 => BLANK,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => WORD | NUMBER,
            b'_' => WORD,
            _ => 0,
        };
        place += 1;
    }
    parts
};

/// How many bytes from the first on may be part of this.
#[inline]
fn count(bytes: &[u8], part: u8) -> usize {
    let is_other = |byte: &u8| PARTS[usize::from(*byte)] & part == 0;
    bytes.iter().position(is_other).unwrap_or(bytes.len())
}

/// A place of the metadata, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Of the text, from one on.
    pub line: usize,
    /// Of the file, from zero on.
    pub byte: usize,
}

/// The metadata cannot be understood at `spot`.
pub(crate) fn refuse(spot: Spot, found: impl std::fmt::Display) -> Error {
    let Spot { line, byte } = spot;
    Error::new(ErrorKind::Corrupt, "cannot understand the trace's metadata")
        .found(format!("byte {byte}, line {line}: {found}"))
        .fix("copy the trace again: its file 'metadata' is cut or damaged")
}

/// What is no token, and where in the text it stands.
#[derive(Debug)]
pub(crate) struct NoToken {
    pub at: usize,
    pub found: String,
}

/// Cuts the metadata into tokens, one at a time.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    /// Where the next one is looked for.
    at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Lexer { text, at: 0 }
    }

    /// Where the last token ended.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes on at `at`, the border of a token.
    pub fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    /// What was not cut yet.
    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next token and where it begins; none at the end.
    pub fn token(&mut self) -> Result<Option<(usize, Token<'a>)>, NoToken> {
        self.skip_blank()?;
        let at = self.at;
        let Some(first) = self.byte(at) else {
            return Ok(None);
        };
        let token = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Token::Word(self.take(WORD)),
            b'0'..=b'9' => self.number()?,
            b'"' | b'\'' => self.quoted(first)?,
            _ => self.punctuation()?,
        };
        Ok(Some((at, token)))
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The next bytes that may be part of this, all of them ASCII.
    #[inline]
    fn take(&mut self, part: u8) -> &'a str {
        let rest = self.rest();
        let length = count(rest.as_bytes(), part);
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn no_token<T>(at: usize, found: impl Into<String>) -> Result<T, NoToken> {
        let found = found.into();
        Err(NoToken { at, found })
    }

    fn skip_blank(&mut self) -> Result<(), NoToken> {
        loop {
            self.at += count(self.rest().as_bytes(), BLANK);
            let Some(byte) = self.byte(self.at) else {
                return Ok(());
            };
            match byte {
                b'/' if self.rest().starts_with("/*") => {
                    let Some(length) = self.rest().find("*/") else {
                        return Self::no_token(self.at, "a comment without an end");
                    };
                    self.at += length + 2;
                }
                b'/' if self.rest().starts_with("//") => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                0x80.. => match self.rest().chars().next().filter(|c| c.is_whitespace()) {
                    Some(blank) => self.at += blank.len_utf8(),
                    None => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    fn punctuation(&mut self) -> Result<Token<'a>, NoToken> {
        let rest = self.rest();
        let is_next = |punct: &&'static str| rest.starts_with(*punct);
        let mut long = LONG_PUNCTUATION.into_iter();
        let long = match rest.as_bytes() {
            [b'.' | b':' | b'-', ..] => long.find(is_next),
            _ => None,
        };
        let Some(punct) = long.or_else(|| PUNCTUATION.into_iter().find(is_next)) else {
            let first = rest.chars().next().unwrap_or_default();
            return Self::no_token(self.at, format!("{first:?} has no meaning here"));
        };
        self.at += punct.len();
        Ok(Token::Punct(punct))
    }

    fn number(&mut self) -> Result<Token<'a>, NoToken> {
        let at = self.at;
        let written = self.take(NUMBER);
        if (!written.starts_with('0') || written.len() == 1)
            && let Ok(number) = written.parse()
        {
            return Ok(Token::Number(number));
        }
        let text = written.to_ascii_lowercase();
        let (digits, radix) = match text.as_bytes() {
            [b'0', b'x', ..] => (&text[2..], 16),
            [b'0', b'b', ..] => (&text[2..], 2),
            [b'0', _, ..] => (&text[1..], 8),
            _ => (&text[..], 10),
        };
        let digits = digits.trim_end_matches(['u', 'l']);
        let digits = if digits.is_empty() && radix == 8 {
            "0"
        } else {
            digits
        };
        match u64::from_str_radix(digits, radix) {
            Ok(number) => Ok(Token::Number(number)),
            Err(_) => Self::no_token(at, format!("'{text}' is not a number")),
        }
    }

    fn quoted(&mut self, quote: u8) -> Result<Token<'a>, NoToken> {
        let at = self.at;
        self.at += 1;
        let plain = self.take_until(quote);
        if self.byte(self.at) == Some(quote) {
            self.at += 1;
            return Ok(Token::Text(Cow::Borrowed(plain)));
        }
        let mut text = plain.to_owned();
        loop {
            let Some(c) = self.next_char() else {
                return Self::no_token(at, "a text without an end");
            };
            if c == char::from(quote) {
                return Ok(Token::Text(Cow::Owned(text)));
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let Some(escaped) = self.next_char() else {
                return Self::no_token(at, "a text without an end");
            };
            match escaped {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'a' => text.push('\x07'),
                'b' => text.push('\x08'),
                'f' => text.push('\x0c'),
                'v' => text.push('\x0b'),
                'x' => self.escaped_number(&mut text, "", 16, 2),
                '0'..='7' => self.escaped_number(&mut text, &escaped.to_string(), 8, 3),
                other => text.push(other),
            }
        }
    }

    /// The text up to the quote or the first escape.
    fn take_until(&mut self, quote: u8) -> &'a str {
        let rest = self.rest();
        let mut bytes = rest.bytes();
        let length = bytes.position(|byte| byte == quote || byte == b'\\');
        let length = length.unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// `\x41` and `\101`; a code that is no character is left out.
    fn escaped_number(&mut self, text: &mut String, first: &str, radix: u32, digits_max: usize) {
        let mut digits = first.to_owned();
        while digits.len() < digits_max {
            match self.rest().chars().next().filter(|c| c.is_digit(radix)) {
                Some(digit) => digits.push(digit),
                None => break,
            }
            self.at += 1;
        }
        text.extend(
            u32::from_str_radix(&digits, radix)
                .ok()
                .and_then(char::from_u32),
        );
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<&[Token<'_>]>) {
        let mut lexer = Lexer::new(text);
        let next = || match lexer.token() {
            Ok(token) => token.map(|(_, token)| Some(token)),
            Err(_) => Some(None),
        };
        let found: Option<Vec<_>> = std::iter::from_fn(next).take(100).collect();
        assert_eq!(found.as_deref(), expect, "{text}");
    }

    #[test]
    fn numbers_of_every_base_and_suffix_are_read() {
        check("42 0x1F 017 0", Some(&[42, 31, 15, 0].map(Token::Number)));
        check("0b101 7ULL", Some(&[5, 7].map(Token::Number)));
        check("12abc", None);
        check("99999999999999999999", None);
    }

    #[test]
    fn comments_and_escapes_are_resolved_and_open_ends_refused() {
        check(
            "/* a */ \"x\\\"\\n\\x41\" // b",
            Some(&[Token::Text("x\"\nA".into())]),
        );
        check("/* a", None);
        check("\"a", None);
        check(
            "0 ... 3",
            Some(&[Token::Number(0), Token::Punct("..."), Token::Number(3)]),
        );
        check("ä", None);
    }
}
