//! TSDL's types: a recursive descent over the tokens, with a stack of named types.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use event::{Error, Result};

use super::attributes::{AttributeValue, Block};
use super::lexer::{Lexer, Spot, Token, refuse};
use super::metadata::Piece;
use super::types::{Mapping, Member, Reference, Type, TypeKind};
use super::violations::{Found, Violations};

/// A type, or words of which the last may be a declarator's name.
enum Specifier<'a> {
    Type(Arc<Type>),
    Words(Vec<&'a str>),
}

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

    /// `typealias`, `typedef` or a named type with a body; false when something else stands here.
    pub fn declaration(&mut self) -> Result<bool> {
        if self.accept_word("typealias") {
            let ty = match self.specifier()? {
                Specifier::Type(ty) => ty,
                Specifier::Words(words) => self.alias_target(&words)?,
            };
            self.expect(":=")?;
            let Specifier::Words(name) = self.words() else {
                return Ok(false);
            };
            self.check_alias(&name);
            self.define(name.join(" "), ty);
        } else if self.accept_word("typedef") {
            for (name, ty) in self.declarators()? {
                self.check_name(name);
                self.define(name, ty);
            }
        } else if matches!(self.peek_word(), Some("struct" | "enum" | "variant")) {
            self.specifier()?;
            // After a named body the semicolon is often forgotten.
            self.accept(";");
            return Ok(true);
        } else {
            return Ok(false);
        }
        self.expect(";")?;
        Ok(true)
    }

    fn alias_target(&mut self, words: &[&str]) -> Result<Arc<Type>> {
        let name = match words {
            [word] => Cow::Borrowed(*word),
            words => Cow::Owned(words.join(" ")),
        };
        self.named(&name)
            .ok_or_else(|| refuse(self.spot(), format!("the unknown type '{name}'")))
    }

    fn words(&mut self) -> Specifier<'a> {
        let mut words = Vec::new();
        loop {
            if self.accept("*") {
                words.push("*");
            } else if let Some(word) = self.accept_name() {
                if word != "const" {
                    words.push(word);
                }
            } else {
                return Specifier::Words(words);
            }
        }
    }

    fn specifier(&mut self) -> Result<Specifier<'a>> {
        self.depth += 1;
        if self.depth > BRACES_MAX {
            return Err(refuse(self.spot(), "types that nest too deep"));
        }
        let specifier = self.specifier_inside();
        self.depth -= 1;
        specifier
    }

    fn specifier_inside(&mut self) -> Result<Specifier<'a>> {
        while self.accept_word("const") {}
        let ty = match self.peek_word() {
            Some("integer") if self.brace_follows() => self.integer()?,
            Some("floating_point") if self.brace_follows() => self.float()?,
            Some("string") => self.string()?,
            Some("struct") => self.structure()?,
            Some("enum") => self.enumeration()?,
            Some("variant") => self.variant()?,
            _ => return Ok(self.words()),
        };
        Ok(Specifier::Type(ty))
    }

    fn brace_follows(&self) -> bool {
        let next = self.lexer.clone().token();
        matches!(next, Ok(Some((_, Token::Punct("{")))))
    }

    /// A type without a declarator, up to what cannot belong to it.
    pub fn whole_type(&mut self) -> Result<Arc<Type>> {
        match self.specifier()? {
            Specifier::Type(ty) => Ok(ty),
            Specifier::Words(words) => self.alias_target(&words),
        }
    }

    /// `TYPE name, other[3], third[length]` up to the semicolon.
    fn declarators(&mut self) -> Result<Vec<(&'a str, Arc<Type>)>> {
        let (ty, first) = match self.specifier()? {
            Specifier::Type(_) if self.at(";") => return Ok(Vec::new()),
            Specifier::Type(ty) => {
                while self.accept("*") || self.accept_word("const") {}
                (ty, self.word()?)
            }
            Specifier::Words(mut words) => {
                let Some(name) = words.pop().filter(|_| !words.is_empty()) else {
                    return Err(refuse(
                        self.spot(),
                        format!("{} in place of a type", self.found()),
                    ));
                };
                (self.alias_target(&words)?, name)
            }
        };
        let mut declared = vec![(first, self.dimensions(&ty)?)];
        while self.accept(",") {
            let name = self.word()?;
            declared.push((name, self.dimensions(&ty)?));
        }
        Ok(declared)
    }

    fn dimensions(&mut self, element: &Arc<Type>) -> Result<Arc<Type>> {
        enum Dimension {
            Fixed(u64),
            Counted(Vec<String>),
        }
        let mut dimensions = Vec::new();
        while self.accept("[") {
            if let Some(Token::Number(count)) = self.next {
                dimensions.push(Dimension::Fixed(count));
                self.bump();
            } else {
                let words = self.path_words()?;
                self.check_length(&words);
                dimensions.push(Dimension::Counted(words));
            }
            self.expect("]")?;
        }
        let mut ty = element.clone();
        for dimension in dimensions.into_iter().rev() {
            let kind = match dimension {
                Dimension::Fixed(count) => TypeKind::Array { element: ty, count },
                Dimension::Counted(length) => TypeKind::Sequence {
                    element: ty,
                    length: Reference::Words(length),
                },
            };
            ty = self.make(kind, 1)?;
        }
        Ok(ty)
    }

    fn members(&mut self) -> Result<Vec<Member>> {
        self.open()?;
        self.structures_open += 1;
        let mut members: Vec<Member> = Vec::new();
        while !self.closed()? {
            let aliased = matches!(self.peek_word(), Some("typealias" | "typedef"));
            if aliased && self.declaration()? {
                continue;
            }
            for (name, ty) in self.declarators()? {
                self.check_name(name);
                self.check_variant(&ty, &members);
                members.push(Member {
                    name: name.into(),
                    ty,
                    escaped: true,
                });
            }
            self.expect(";")?;
        }
        self.structures_open -= 1;
        self.check_members(&members);
        Ok(members)
    }

    fn structure(&mut self) -> Result<Arc<Type>> {
        self.bump();
        let name = self.accept_name();
        if let Some(name) = name.filter(|_| !self.at("{")) {
            return self.alias_target(&["struct", name]);
        }
        let mut ty = self.braced_structure()?;
        if self.accept_word("align") {
            self.expect("(")?;
            let number = self.signed_number()?;
            let align_bits = self.alignment(number)?;
            self.expect(")")?;
            if let TypeKind::Struct(members) = &ty.kind {
                ty = self.make(TypeKind::Struct(members.clone()), align_bits)?;
            }
        }
        if let Some(name) = name {
            self.define(format!("struct {name}"), ty.clone());
        }
        Ok(ty)
    }

    /// A structure from its opening brace on, with the alignment that its members need.
    fn braced_structure(&mut self) -> Result<Arc<Type>> {
        let braces = self.structures.as_ref().and_then(|_| self.nested_braces());
        let known = self.structures.as_ref().zip(braces);
        if let Some((structures, (text, end))) = known
            && let Some(ty) = structures.get(text).cloned()
        {
            self.skip_to(end);
            return Ok(ty);
        }
        let lookups = self.lookups;
        let members = self.members()?;
        let ty = self.make(TypeKind::Struct(members), 1)?;
        match braces.filter(|(_, end)| self.is_taken_to(*end)) {
            None => self.structures = None,
            // The same name may mean another type elsewhere.
            Some(_) if self.lookups > lookups => {}
            Some((text, _)) => {
                let structures = self.structures.as_mut();
                structures.map(|structures| structures.insert(text, ty.clone()));
            }
        }
        Ok(ty)
    }

    fn variant(&mut self) -> Result<Arc<Type>> {
        self.bump();
        let name = self.accept_name();
        let mut selector = None;
        if self.accept("<") {
            let words = self.path_words()?;
            self.check_reference(&words);
            selector = Some(Reference::Words(words));
            self.expect(">")?;
        }
        if !self.at("{") {
            let name = name.unwrap_or_default();
            let declared = self.alias_target(&["variant", name])?;
            let TypeKind::Variant { choices, .. } = &declared.kind else {
                return Ok(declared);
            };
            let choices = choices.clone();
            return self.variant_of(selector, choices);
        }
        let choices = self.members()?;
        let ty = self.variant_of(selector, choices)?;
        if let Some(name) = name {
            self.define(format!("variant {name}"), ty.clone());
        }
        Ok(ty)
    }

    fn variant_of(&self, selector: Option<Reference>, choices: Vec<Member>) -> Result<Arc<Type>> {
        let kind = TypeKind::Variant {
            selector,
            choices,
            ranges: None,
        };
        self.make(kind, 1)
    }

    fn enumeration(&mut self) -> Result<Arc<Type>> {
        self.bump();
        let name = self.accept_name();
        let container = if self.accept(":") {
            self.whole_type()?
        } else if self.at("{") {
            self.alias_target(&["int"])?
        } else {
            return self.alias_target(&["enum", name.unwrap_or_default()]);
        };
        let TypeKind::Integer(int) = &container.kind else {
            return Err(refuse(
                self.spot(),
                "an enumeration of something that is no integer",
            ));
        };
        let mappings = self.mappings()?;
        self.check_labels(int, &mappings);
        let kind = TypeKind::Enum(int.clone(), mappings.into());
        let ty = self.make(kind, container.align_bits)?;
        if let Some(name) = name {
            self.define(format!("enum {name}"), ty.clone());
        }
        Ok(ty)
    }

    fn mappings(&mut self) -> Result<Vec<Mapping>> {
        self.open()?;
        let mut mappings = Vec::new();
        let mut first = 0i128;
        while !self.closed()? {
            let label = match &self.next {
                Some(Token::Word(label)) => (*label).to_owned(),
                Some(Token::Text(label)) => label.clone().into_owned(),
                _ => return Err(refuse(self.spot(), format!("{} as a label", self.found()))),
            };
            self.bump();
            if self.accept("=") {
                first = self.signed_number()?;
            }
            let last = if self.accept("...") {
                self.signed_number()?
            } else {
                first
            };
            mappings.push(Mapping { label, first, last });
            first = last.saturating_add(1);
            if !self.accept(",") && !self.at("}") {
                return Err(refuse(
                    self.spot(),
                    format!("{} instead of ','", self.found()),
                ));
            }
        }
        Ok(mappings)
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

    fn attribute_value(&mut self) -> Result<AttributeValue<'a>> {
        match &self.next {
            Some(Token::Text(text)) => {
                let mut text = text.clone();
                self.bump();
                while let Some(Token::Text(more)) = &self.next {
                    text.to_mut().push_str(more);
                    self.bump();
                    self.violates(self.taken_to, "two texts one after the other as one value");
                }
                Ok(AttributeValue::Text(text))
            }
            Some(Token::Word(_)) => Ok(AttributeValue::Path(self.path()?)),
            _ => Ok(AttributeValue::Number(self.signed_number()?)),
        }
    }

    /// `{ key = value; key := type; declarations }`
    pub fn block(&mut self) -> Result<Block<'a>> {
        self.open()?;
        let mut block = Block::default();
        while !self.closed()? {
            if self.accept(";") || self.declaration()? {
                continue;
            }
            let key = self.path()?;
            if self.accept(":=") {
                let ty = self.whole_type()?;
                block.types.push((key, ty));
            } else {
                self.expect("=")?;
                let value = self.attribute_value()?;
                block.values.push((key, value));
            }
            self.expect(";")?;
        }
        Ok(block)
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
