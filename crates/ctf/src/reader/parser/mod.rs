//! TSDL's types: a recursive descent over the tokens, with a stack of named types.
//!
//! Here are the tokens and the names; [`declarations`] and [`composites`] have the grammar.

mod composites;
mod declarations;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use event::{Error, Result};

use super::lexer::{Lexer, Spot, Token, refuse};
use super::metadata::Piece;
use super::types::{Type, TypeKind};
use super::violations::{Found, Violations};

pub(crate) struct Parser<'a> {
    pub(super) text: &'a str,
    /// Where the pieces of the text lie in the file.
    pieces: &'a [Piece],
    lexer: Lexer<'a>,
    /// The next token and where it begins; the last one's begin at the end.
    next: Option<Token<'a>>,
    next_at: usize,
    /// Where the token before it ended.
    taken_to: usize,
    /// What is no token: the text ends before it.
    failed: Option<Error>,
    depth: u32,
    pub(super) big_endian: bool,
    scopes: Vec<HashMap<String, Arc<Type>>>,
    /// Integer types by the text that declares them: most tracers repeat it for each field.
    pub(super) integers: HashMap<&'a str, Arc<Type>>,
    /// Structures of bytes' own alignment by their braces, if no name of a type stands in these:
    /// many events of a kernel have the same fields.
    structures: Structures<'a>,
    /// How often a type was looked up by its name.
    lookups: u64,
    /// Structures and variants that are open.
    structures_open: u32,
    violations: Found,
}

/// Structures by the text between their braces; none once braces in a comment or text misled those
/// who look for the last of them.
type Structures<'a> = Option<HashMap<&'a str, Arc<Type>>>;

/// Braces and types nest no deeper than this.
const BRACES_MAX: u32 = 128;

impl<'a> Parser<'a> {
    pub fn new(text: &'a str, pieces: &'a [Piece]) -> Parser<'a> {
        let mut parser = Parser {
            text,
            pieces,
            lexer: Lexer::new(text),
            next: None,
            next_at: 0,
            taken_to: 0,
            failed: None,
            depth: 0,
            big_endian: native_is_big_endian(Lexer::new(text)),
            scopes: vec![HashMap::new()],
            integers: HashMap::new(),
            structures: Some(HashMap::new()),
            lookups: 0,
            structures_open: 0,
            violations: Found::default(),
        };
        parser.bump();
        parser
    }

    /// Why the text ended, when it was not its end.
    pub fn into_failure(self) -> Option<Error> {
        self.failed
    }

    /// What broke the standard so far, and no longer belongs to the parser.
    pub fn take_violations(&mut self) -> Violations {
        let found = std::mem::take(&mut self.violations);
        found.placed(|at| self.spot_of(at))
    }

    /// Notes what breaks the standard at this place of the text.
    #[cold]
    pub(super) fn violates(&mut self, at: usize, what: impl Into<String>) {
        self.violations.add(at, what);
    }

    /// Where the last token that was taken ended.
    pub(super) fn here(&self) -> usize {
        self.taken_to
    }

    /// Whether what stands here belongs to a structure or a variant.
    pub(super) fn is_in_structure(&self) -> bool {
        self.structures_open > 0
    }

    /// Where in the text the next token begins.
    pub fn next_at(&self) -> usize {
        self.next_at
    }

    /// Where the next token stands.
    pub fn spot(&self) -> Spot {
        self.spot_of(self.next_at)
    }

    /// Where this place of the text is.
    pub fn spot_of(&self, at: usize) -> Spot {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        Spot {
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            byte: Piece::file_offset(self.pieces, at),
        }
    }

    /// Goes on to the next token.
    pub(super) fn bump(&mut self) {
        self.taken_to = self.lexer.at();
        self.next = match self.lexer.token() {
            Ok(Some((at, token))) => {
                self.next_at = at;
                Some(token)
            }
            Ok(None) => None,
            Err(wrong) => {
                let spot = self.spot_of(wrong.at);
                self.failed = Some(refuse(spot, wrong.found));
                None
            }
        };
    }

    fn bump_if(&mut self, found: bool) -> bool {
        if found {
            self.bump();
        }
        found
    }

    /// The braces that begin here with what they hold, when that holds no others, and where they
    /// end.
    pub(super) fn plain_braces(&self) -> Option<(&'a str, usize)> {
        let rest = self.text.get(self.next_at..)?;
        let length = rest.find('}')? + 1;
        let braces = rest.get(..length).filter(|_| self.at("{"))?;
        Some((braces, self.next_at + length))
    }

    /// The braces that begin here with all that they hold, and where they end, if no comment and no
    /// text has braces.
    fn nested_braces(&self) -> Option<(&'a str, usize)> {
        let rest = self.text.get(self.next_at..)?;
        let mut depth = 0usize;
        for at in memchr::memchr2_iter(b'{', b'}', rest.as_bytes()) {
            match rest.as_bytes()[at] {
                b'{' => depth += 1,
                _ => depth = depth.checked_sub(1)?,
            }
            if depth == 0 {
                return Some((rest.get(..=at)?, self.next_at + at + 1));
            }
        }
        None
    }

    /// Whether the last token that was taken ended at `at`.
    pub(super) fn is_taken_to(&self, at: usize) -> bool {
        self.taken_to == at
    }

    /// Takes everything up to `at`.
    pub(super) fn skip_to(&mut self, at: usize) {
        self.lexer.go_to(at);
        self.bump();
    }

    /// The next token in words, for errors.
    pub fn found(&self) -> String {
        match &self.next {
            Some(Token::Word(word)) => format!("'{word}'"),
            Some(Token::Number(number)) => number.to_string(),
            Some(Token::Text(text)) => format!("{text:?}"),
            Some(Token::Punct(punct)) => format!("'{punct}'"),
            None => "the end of the text".to_owned(),
        }
    }

    pub fn at_end(&self) -> bool {
        self.next.is_none()
    }

    #[inline]
    fn peek_word(&self) -> Option<&'a str> {
        match self.next {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn at(&self, punct: &str) -> bool {
        matches!(self.next, Some(Token::Punct(found)) if found == punct)
    }

    #[inline]
    pub fn accept(&mut self, punct: &str) -> bool {
        let found = self.at(punct);
        self.bump_if(found)
    }

    fn expect(&mut self, punct: &str) -> Result<()> {
        match self.accept(punct) {
            true => Ok(()),
            false => Err(refuse(
                self.spot(),
                format!("{} instead of '{punct}'", self.found()),
            )),
        }
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        self.bump_if(found)
    }

    pub fn word(&mut self) -> Result<&'a str> {
        let Some(word) = self.peek_word() else {
            return Err(refuse(
                self.spot(),
                format!("{} instead of a name", self.found()),
            ));
        };
        self.bump();
        Ok(word)
    }

    /// A name, taken if one stands here.
    fn accept_name(&mut self) -> Option<&'a str> {
        let name = self.peek_word();
        self.bump_if(name.is_some());
        name
    }

    /// Words with dots between.
    fn path(&mut self) -> Result<Cow<'a, str>> {
        let mut path = Cow::Borrowed(self.word()?);
        while self.accept(".") || self.accept("->") {
            let word = self.word()?;
            let path = path.to_mut();
            path.push('.');
            path.push_str(word);
        }
        Ok(path)
    }

    /// The words of a path, to look up.
    fn path_words(&mut self) -> Result<Vec<String>> {
        Ok(self.path()?.split('.').map(str::to_owned).collect())
    }

    fn open(&mut self) -> Result<()> {
        self.expect("{")?;
        self.depth += 1;
        if self.depth > BRACES_MAX {
            return Err(refuse(self.spot(), "types that nest too deep"));
        }
        self.scopes.push(HashMap::new());
        Ok(())
    }

    /// Whether the block ends here; the closing brace is then taken.
    fn closed(&mut self) -> Result<bool> {
        if self.at_end() {
            return Err(refuse(self.spot(), "the end of the text inside of a block"));
        }
        let closed = self.accept("}");
        if closed {
            self.depth -= 1;
            self.scopes.pop();
        }
        Ok(closed)
    }

    fn named(&mut self, name: &str) -> Option<Arc<Type>> {
        self.lookups += 1;
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
            .cloned()
    }

    fn define(&mut self, name: impl Into<String>, ty: Arc<Type>) {
        let name = name.into();
        let Some(scope) = self.scopes.last_mut() else {
            return;
        };
        if scope.insert(name.clone(), ty).is_some() {
            self.violates(self.taken_to, format!("the type '{name}' declared twice"));
        }
    }

    pub(super) fn make(&self, kind: TypeKind, align_bits: u32) -> Result<Arc<Type>> {
        Type::new(kind, align_bits).ok_or_else(|| refuse(self.spot(), "a type too large to read"))
    }

    fn signed_number(&mut self) -> Result<i128> {
        let mut sign = 1;
        while self.at("-") || self.at("+") {
            sign *= if self.at("-") { -1 } else { 1 };
            self.bump();
        }
        let Some(Token::Number(number)) = self.next else {
            return Err(refuse(
                self.spot(),
                format!("{} instead of a number", self.found()),
            ));
        };
        self.bump();
        Ok(sign * i128::from(number))
    }

    pub(super) fn alignment(&self, number: i128) -> Result<u32> {
        let fits = u32::try_from(number)
            .ok()
            .filter(|n| n.is_power_of_two() && *n <= 1 << 15);
        fits.ok_or_else(|| refuse(self.spot(), format!("an alignment of {number} bits")))
    }
}

/// The trace's byte order, which types before the trace block already need.
fn native_is_big_endian(mut lexer: Lexer<'_>) -> bool {
    let mut depth = 0u32;
    let mut in_trace = false;
    while let Ok(Some((_, token))) = lexer.token() {
        match token {
            Token::Punct("{") => depth += 1,
            Token::Punct("}") => depth = depth.saturating_sub(1),
            Token::Word(name) if depth == 0 => in_trace = name == "trace",
            Token::Word("byte_order") if depth == 1 && in_trace => {
                let value = lexer.token().and_then(|_| lexer.token());
                return matches!(value, Ok(Some((_, Token::Word("be" | "network")))));
            }
            _ => {}
        }
    }
    false
}
