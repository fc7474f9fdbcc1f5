//! What both parsers share: a walk over tokens, and the parts that both languages spell alike.

use crate::ast::{FieldScope, Step, Text};
use crate::lexer::{Token, tokens};
use crate::span::{Fault, Parsed, Span};

/// A walk over the tokens of a text.
pub(crate) struct Tokens<'t> {
    tokens: Vec<(Token<'t>, Span)>,
    at: usize,
    /// How many rules are open, one within the other.
    depth: u32,
}

/// Trees are no higher, and rules nest no deeper: bounds the stack of all that walks them.
pub(crate) const DEPTH_MAX: u32 = 128;

impl<'t> Tokens<'t> {
    pub fn new(text: &'t str) -> Parsed<Tokens<'t>> {
        Tokens::new_in(text, 0)
    }

    /// Those from the byte `at` on.
    pub fn new_in(text: &'t str, at: usize) -> Parsed<Tokens<'t>> {
        Ok(Tokens {
            tokens: tokens(text, at)?,
            at: 0,
            depth: 0,
        })
    }

    pub fn peek(&self) -> Token<'t> {
        self.tokens[self.at].0
    }

    /// The place of the next token.
    pub fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// The place of the token before the next.
    pub fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    pub fn next(&mut self) -> (Token<'t>, Span) {
        let token = self.tokens[self.at];
        // The end stays next for ever.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    pub fn accept(&mut self, mark: &str) -> bool {
        let found = matches!(self.peek(), Token::Mark(next) if next == mark);
        if found {
            self.next();
        }
        found
    }

    pub fn expect(&mut self, mark: &str, what: &str, fix: &str) -> Parsed<()> {
        match self.accept(mark) {
            true => Ok(()),
            false => Err(self.fault(what, fix)),
        }
    }

    /// An error at the next token.
    pub fn fault(&self, what: &str, fix: &str) -> Fault {
        Fault::new(self.span(), what, fix)
    }

    pub fn name(&mut self, what: &str, fix: &str) -> Parsed<&'t str> {
        let Token::Name(name) = self.peek() else {
            return Err(self.fault(what, fix));
        };
        self.next();
        Ok(name)
    }

    /// Opens a rule; [`Tokens::leave`] closes it.
    pub fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        match self.depth > DEPTH_MAX {
            true => Err(too_deep(self.span())),
            false => Ok(()),
        }
    }

    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// `.member` and `[2]`, as many as follow.
    pub fn steps(&mut self) -> Parsed<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            if self.accept(".") {
                let fix = "write the member's name, as in msg.size";
                let name = self.name("the name of a member is missing after '.'", fix)?;
                steps.push(Step::Member(name.to_owned()));
            } else if self.accept("[") {
                steps.push(Step::Index(self.index()?));
                let fix = "write one number in brackets, as in args[2]";
                self.expect("]", "']' is missing here", fix)?;
            } else {
                return Ok(steps);
            }
        }
    }

    fn index(&mut self) -> Parsed<u32> {
        let index = match self.peek() {
            Token::Number(crate::lexer::Number::Integer(value)) => u32::try_from(value).ok(),
            _ => None,
        };
        let fix = "write a number from 0 to 4294967295, as in args[2]";
        let index = index.ok_or_else(|| self.fault("an element has a number", fix))?;
        self.next();
        Ok(index)
    }
}

pub(crate) fn too_deep(span: Span) -> Fault {
    let what = format!("it nests deeper than {DEPTH_MAX} levels");
    Fault::new(
        span,
        what,
        "say it flatter, as with 'in (…)' or fewer parentheses",
    )
}

/// The scope that `$word` names.
pub(crate) fn scope(word: &str) -> Option<FieldScope> {
    Some(match word {
        "payload" => FieldScope::Payload,
        "ctx" => FieldScope::Context,
        "header" => FieldScope::Header,
        "stream_ctx" => FieldScope::StreamContext,
        "pkt_ctx" => FieldScope::PacketContext,
        "pkt_header" => FieldScope::PacketHeader,
        _ => return None,
    })
}

/// The bytes of a quoted text, its escapes undone.
pub(crate) fn text(quoted: &str, span: Span) -> Parsed<Text> {
    let mut text = Text::default();
    let mut rest = quoted.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.bytes
                .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        // The lexer saw to it that something follows.
        let escape = rest.next().unwrap_or('\\');
        let byte = match escape {
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            'a' => 0x07,
            'b' => 0x08,
            'f' => 0x0c,
            'v' => 0x0b,
            '0' => 0,
            '"' | '\'' | '\\' => escape as u8,
            '*' | '?' | '[' => {
                text.escaped.push(text.bytes.len() as u32);
                escape as u8
            }
            'x' => {
                let digits = rest.as_str().get(..2);
                let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                rest = rest.as_str().get(2..).unwrap_or_default().chars();
                byte.ok_or_else(|| unknown_escape(escape, span))?
            }
            _ => return Err(unknown_escape(escape, span)),
        };
        text.bytes.push(byte);
    }
    Ok(text)
}

fn unknown_escape(escape: char, span: Span) -> Fault {
    let what = format!("'\\{escape}' is no escape that a text knows");
    let fix = "known are \\n \\t \\r \\a \\b \\f \\v \\0 \\x41 \\\" \\\\ \\* \\? \\[ ; after =~ a \
                text is taken as it stands";
    Fault::new(span, what, fix)
}

/// A quoted regular expression: a quote loses its backslash, all else stands.
pub(crate) fn regex(quoted: &str) -> Text {
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut escaped = false;
    for byte in quoted.bytes() {
        if escaped && byte == b'"' {
            bytes.pop();
        }
        escaped = byte == b'\\' && !escaped;
        bytes.push(byte);
    }
    Text::new(bytes)
}
