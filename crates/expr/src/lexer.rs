//! Text to tokens, for both languages.

use event::Duration;

use crate::ast::Literal;
use crate::span::{Fault, Parsed, Span};

/// Nothing that a person writes is longer; bounds all that follows.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'t> {
    /// A name, without the backticks that it may stand in.
    Name(&'t str),
    /// `$name`, without the dollar.
    Sigil(&'t str),
    /// A number or a duration.
    Number(Number),
    /// What stands between two quotes, escapes not yet undone.
    Quoted(&'t str),
    /// An operator or a bracket.
    Mark(&'static str),
    /// After the last.
    End,
}

/// A number as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Integer(u64),
    Float(f64),
    Duration(Duration),
}

impl From<Number> for Literal {
    fn from(number: Number) -> Literal {
        match number {
            Number::Integer(value) => Literal::Integer(value),
            Number::Float(value) => Literal::Float(value),
            Number::Duration(value) => Literal::Duration(value),
        }
    }
}

/// Longer marks first, so that `<=` is not `<` and `=`.
const MARKS: [&str; 30] = [
    "&&", "||", "==", "!=", "<=", ">=", "=~", "=*", "<<", ">>", "=", "<", ">", "!", "~", "+", "-",
    "*", "/", "%", "&", "|", "^", "(", ")", "[", "]", ".", ",", ":",
];

/// All tokens from the byte `at` on with their places, [`Token::End`] last.
pub(crate) fn tokens(text: &str, at: usize) -> Parsed<Vec<(Token<'_>, Span)>> {
    if text.len() > TEXT_BYTES_MAX {
        let span = Span {
            start: TEXT_BYTES_MAX as u32,
            end: TEXT_BYTES_MAX as u32,
        };
        let what = format!("it has {} bytes, {TEXT_BYTES_MAX} are allowed", text.len());
        return Err(Fault::new(
            span,
            what,
            "say it shorter, as with 'in (…)' or a pattern",
        ));
    }
    let mut lexer = Lexer { text, at };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let start = lexer.at;
        let token = lexer.token()?;
        tokens.push((token, lexer.span(start)));
        if token == Token::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether `name` needs no backticks.
pub(crate) fn is_plain_name(name: &str) -> bool {
    name.starts_with(is_name_start) && name.chars().all(is_name_part)
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn span(&self, start: usize) -> Span {
        Span {
            start: start as u32,
            end: self.at as u32,
        }
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// What follows as long as `wanted` says so.
    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn token(&mut self) -> Parsed<Token<'t>> {
        let start = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Token::End);
        };
        if is_name_start(first) {
            return Ok(Token::Name(self.take(is_name_part)));
        }
        if first.is_ascii_digit() {
            return self.number().map(Token::Number);
        }
        match first {
            '"' => return self.quoted(),
            '`' => return self.backticks(),
            '$' => {
                self.at += 1;
                let name = self.take(is_name_part);
                if name.is_empty() {
                    let what = "a name is missing after '$'";
                    return Err(Fault::new(self.span(start), what, SIGILS));
                }
                return Ok(Token::Sigil(name));
            }
            _ => {}
        }
        if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            self.at += mark.len();
            return Ok(Token::Mark(mark));
        }
        self.at += first.len_utf8();
        let fix = match first {
            '\'' => "write texts in double quotes, as in \"jackd\"",
            _ => "write texts in double quotes, names of odd characters in backticks",
        };
        let what = format!("'{first}' means nothing here");
        Err(Fault::new(self.span(start), what, fix))
    }

    fn quoted(&mut self) -> Parsed<Token<'t>> {
        let start = self.at;
        let inner = &self.rest()[1..];
        let mut escaped = false;
        for (place, byte) in inner.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.at += place + 2;
                    return Ok(Token::Quoted(&inner[..place]));
                }
                _ => {}
            }
        }
        self.at = start + 1;
        let what = "the text that begins here has no end";
        Err(Fault::new(
            self.span(start),
            what,
            "close it with '\"'; a quote inside is '\\\"'",
        ))
    }

    fn backticks(&mut self) -> Parsed<Token<'t>> {
        let start = self.at;
        self.at += 1;
        let name = self.take(|c| c != '`');
        if self.rest().is_empty() || name.is_empty() {
            self.at = start + 1;
            let what = "the name in backticks is empty or has no end";
            return Err(Fault::new(
                self.span(start),
                what,
                "write `a name` between two backticks",
            ));
        }
        self.at += 1;
        Ok(Token::Name(name))
    }

    fn number(&mut self) -> Parsed<Number> {
        let start = self.at;
        let rest = self.rest();
        for (prefixes, radix) in [(["0x", "0X"], 16), (["0b", "0B"], 2), (["0o", "0O"], 8)] {
            if prefixes.iter().any(|prefix| rest.starts_with(prefix)) {
                self.at += 2;
                let digits = self.take(is_name_part);
                return self.integer(start, digits, radix);
            }
        }
        self.take(|c| c.is_ascii_digit());
        let mut whole = true;
        let mut after = self.rest().chars();
        if after.next() == Some('.') && !after.next().is_some_and(|c| is_name_start(c) || c == '.')
        {
            whole = false;
            self.at += 1;
            self.take(|c| c.is_ascii_digit());
        }
        let mantissa = &self.text[start..self.at];
        if self.exponent() {
            whole = false;
        }
        let number = &self.text[start..self.at];
        let unit = self.take(|c| is_name_part(c) || c == 'µ');
        if !unit.is_empty() {
            return self.duration(start, number, mantissa);
        }
        match whole {
            true if number.len() > 1 && number.starts_with('0') => self.integer(start, number, 8),
            true => self.integer(start, number, 10),
            false => self.float(start, number),
        }
    }

    /// Takes `e9`, `e-9`, `E+9`, if that is what follows.
    fn exponent(&mut self) -> bool {
        let rest = self.rest();
        let Some(power) = rest.strip_prefix(['e', 'E']) else {
            return false;
        };
        let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
        if !digits.starts_with(|c: char| c.is_ascii_digit()) {
            return false;
        }
        self.at += rest.len() - digits.len();
        self.take(|c| c.is_ascii_digit());
        true
    }

    fn integer(&self, start: usize, digits: &str, radix: u32) -> Parsed<Number> {
        let value = u64::from_str_radix(digits, radix);
        value.map(Number::Integer).map_err(|_| {
            let (what, fix) = if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
                (
                    "the number is beyond 64 bits",
                    "no field holds it: the largest is 2^64 - 1",
                )
            } else {
                let fix = "write 42, 0x2a, 052 (a leading zero is octal), 0b101010, 4.2e1 or 42ms";
                ("not a number", fix)
            };
            Fault::new(self.span(start), what, fix)
        })
    }

    fn float(&self, start: usize, number: &str) -> Parsed<Number> {
        let value = number.parse().ok().filter(|value: &f64| value.is_finite());
        value.map(Number::Float).ok_or_else(|| {
            let what = "the number is beyond a float's range";
            Fault::new(
                self.span(start),
                what,
                "no field holds it: the largest is about 1.8e308",
            )
        })
    }

    fn duration(&self, start: usize, number: &str, mantissa: &str) -> Parsed<Number> {
        let text = &self.text[start..self.at];
        let parsed = Duration::parse(text).ok().filter(|_| number == mantissa);
        parsed.map(Number::Duration).ok_or_else(|| {
            let what = format!("'{text}' is neither a number nor a duration");
            let fix = "units are ns, us, ms, s, m, h and d, as in 25ms; hexadecimal begins with 0x";
            Fault::new(self.span(start), what, fix)
        })
    }
}

/// The names that begin with a dollar.
pub(crate) const SIGILS: &str = "write $name, $cpu, $tid, $procname, $prio, $time, or a field of \
                                 $payload, $ctx, $header, $stream_ctx, $pkt_ctx, $pkt_header";
