//! TSDL's tokens, each with the line that it stands in.

use event::{Error, ErrorKind, Result};

/// One token of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A name or keyword.
    Word(String),
    /// A number without its sign.
    Number(u64),
    /// A quoted text or character, escapes resolved.
    Text(String),
    /// Punctuation.
    Punct(&'static str),
}

/// Punctuation of several characters, which comes before that of one.
const LONG_PUNCTUATION: [&str; 3] = ["...", ":=", "->"];
/// Punctuation of one character, signs included.
const PUNCTUATION: [&str; 16] = [
    "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", "=", "*", ".", "-", "+",
];

/// The metadata cannot be understood at `line`.
pub(crate) fn refuse(line: u32, found: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, "cannot understand the trace's metadata")
        .found(format!("line {line}: {found}"))
        .mend("copy the trace again: its file 'metadata' is cut or damaged")
}

/// Splits the metadata into tokens.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token, u32)>> {
    let mut lexer = Lexer {
        rest: text,
        line: 1,
    };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank()?;
        let line = lexer.line;
        match lexer.token()? {
            Some(token) => tokens.push((token, line)),
            None => return Ok(tokens),
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
}

impl Lexer<'_> {
    /// Takes `bytes` bytes, which end at a character's border.
    fn take(&mut self, bytes: usize) {
        let taken = self.take_on_line(bytes);
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count() as u32;
    }

    /// The same of bytes among which no line ends.
    fn take_on_line(&mut self, bytes: usize) -> &str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// How many of the next bytes are ASCII that `belongs`.
    fn ascii_length(&self, belongs: impl Fn(u8) -> bool) -> usize {
        let mut bytes = self.rest.bytes();
        let end = bytes.position(|byte| !byte.is_ascii() || !belongs(byte));
        end.unwrap_or(self.rest.len())
    }

    fn skip_blank(&mut self) -> Result<()> {
        loop {
            if self
                .rest
                .starts_with(|c: char| c.is_ascii_graphic() && c != '/')
            {
                return Ok(());
            }
            let blank = self.rest.find(|c: char| !(c.is_whitespace() || c == '\0'));
            self.take(blank.unwrap_or(self.rest.len()));
            if self.rest.starts_with("/*") {
                let Some(end) = self.rest.find("*/") else {
                    return Err(refuse(self.line, "a comment without an end"));
                };
                self.take(end + 2);
            } else if self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.take(end);
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Option<Token>> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        if first.is_ascii_alphabetic() || first == '_' {
            let length = self.ascii_length(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            return Ok(Some(Token::Word(self.take_on_line(length).to_owned())));
        }
        if first.is_ascii_digit() {
            return self.number().map(Some);
        }
        if first == '"' || first == '\'' {
            self.take(1);
            return self.quoted(first).map(Some);
        }
        let mut long = LONG_PUNCTUATION.into_iter();
        let long = match first {
            '.' | ':' | '-' => long.find(|punct| self.rest.starts_with(punct)),
            _ => None,
        };
        let short = || {
            PUNCTUATION
                .into_iter()
                .find(|punct| punct.starts_with(first))
        };
        let Some(punct) = long.or_else(short) else {
            let found = format!("{first:?} has no meaning here");
            return Err(refuse(self.line, found));
        };
        self.take_on_line(punct.len());
        Ok(Some(Token::Punct(punct)))
    }

    fn number(&mut self) -> Result<Token> {
        let line = self.line;
        let length = self.ascii_length(|byte| byte.is_ascii_alphanumeric());
        let text = self.take_on_line(length).to_ascii_lowercase();
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
        u64::from_str_radix(digits, radix)
            .map(Token::Number)
            .map_err(|_| refuse(line, format!("'{text}' is not a number")))
    }

    fn quoted(&mut self, quote: char) -> Result<Token> {
        let line = self.line;
        let mut text = String::new();
        loop {
            let Some(c) = self.next_char() else {
                return Err(refuse(line, "a text without an end"));
            };
            if c == quote {
                return Ok(Token::Text(text));
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let Some(escaped) = self.next_char() else {
                return Err(refuse(line, "a text without an end"));
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

    /// `\x41` and `\101`; a code that is no character is left out.
    fn escaped_number(&mut self, text: &mut String, first: &str, radix: u32, digits_max: usize) {
        let mut digits = first.to_owned();
        while digits.len() < digits_max {
            match self.rest.chars().next().filter(|c| c.is_digit(radix)) {
                Some(digit) => digits.push(digit),
                None => break,
            }
            self.take(1);
        }
        text.extend(
            u32::from_str_radix(&digits, radix)
                .ok()
                .and_then(char::from_u32),
        );
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.take(c.len_utf8());
        Some(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<&[Token]>) {
        let found = tokens(text).ok();
        let found = found.map(|all| all.into_iter().map(|(token, _)| token).collect::<Vec<_>>());
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
            Some(&[Token::Text("x\"\nA".to_owned())]),
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
