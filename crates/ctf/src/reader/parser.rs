//! TSDL's types: a recursive descent over the tokens, with a stack of named types.

use std::collections::HashMap;
use std::sync::Arc;

use event::Result;

use super::attributes::{AttributeValue, Block};
use super::lexer::{Token, refuse, tokens};
use super::types::{Mapping, Member, Reference, Type, TypeKind};

/// A type, or words of which the last may be a declarator's name.
enum Specifier {
    Type(Arc<Type>),
    Words(Vec<String>),
}

pub(crate) struct Parser {
    tokens: Vec<(Token, u32)>,
    pub(super) next: usize,
    depth: u32,
    pub(super) big_endian: bool,
    scopes: Vec<HashMap<String, Arc<Type>>>,
}

/// Braces and types nest no deeper than this.
const BRACES_MAX: u32 = 128;

impl Parser {
    pub fn new(text: &str) -> Result<Parser> {
        let tokens = tokens(text)?;
        let big_endian = native_is_big_endian(&tokens);
        Ok(Parser {
            tokens,
            next: 0,
            depth: 0,
            big_endian,
            scopes: vec![HashMap::new()],
        })
    }

    pub fn line(&self) -> u32 {
        let last = self.tokens.last();
        self.tokens
            .get(self.next)
            .or(last)
            .map_or(1, |(_, line)| *line)
    }

    /// The next token in words, for errors.
    pub fn found(&self) -> String {
        match self.tokens.get(self.next) {
            Some((Token::Word(word), _)) => format!("'{word}'"),
            Some((Token::Number(number), _)) => number.to_string(),
            Some((Token::Text(text), _)) => format!("{text:?}"),
            Some((Token::Punct(punct), _)) => format!("'{punct}'"),
            None => "the end of the text".to_owned(),
        }
    }

    pub fn at_end(&self) -> bool {
        self.next >= self.tokens.len()
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    fn peek_word(&self) -> Option<&str> {
        match self.peek()? {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn at(&self, punct: &str) -> bool {
        matches!(self.peek(), Some(Token::Punct(found)) if *found == punct)
    }

    pub fn accept(&mut self, punct: &str) -> bool {
        let found = self.at(punct);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, punct: &str) -> Result<()> {
        match self.accept(punct) {
            true => Ok(()),
            false => Err(refuse(
                self.line(),
                format!("{} instead of '{punct}'", self.found()),
            )),
        }
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        self.next += usize::from(found);
        found
    }

    pub fn word(&mut self) -> Result<String> {
        let Some(word) = self.peek_word().map(str::to_owned) else {
            return Err(refuse(
                self.line(),
                format!("{} instead of a name", self.found()),
            ));
        };
        self.next += 1;
        Ok(word)
    }

    fn path(&mut self) -> Result<Vec<String>> {
        let mut path = vec![self.word()?];
        while self.accept(".") || self.accept("->") {
            path.push(self.word()?);
        }
        Ok(path)
    }

    fn open(&mut self) -> Result<()> {
        self.expect("{")?;
        self.depth += 1;
        if self.depth > BRACES_MAX {
            return Err(refuse(self.line(), "types that nest too deep"));
        }
        self.scopes.push(HashMap::new());
        Ok(())
    }

    /// Whether the block ends here; the closing brace is then taken.
    fn closed(&mut self) -> Result<bool> {
        if self.at_end() {
            return Err(refuse(self.line(), "the end of the text inside of a block"));
        }
        let closed = self.accept("}");
        if closed {
            self.depth -= 1;
            self.scopes.pop();
        }
        Ok(closed)
    }

    fn named(&self, name: &str) -> Option<Arc<Type>> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
            .cloned()
    }

    fn define(&mut self, name: String, ty: Arc<Type>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, ty);
        }
    }

    pub(super) fn make(&self, kind: TypeKind, align_bits: u32) -> Result<Arc<Type>> {
        Type::new(kind, align_bits).ok_or_else(|| refuse(self.line(), "a type too large to read"))
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
            self.define(name.join(" "), ty);
        } else if self.accept_word("typedef") {
            for (name, ty) in self.declarators()? {
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

    fn alias_target(&self, words: &[String]) -> Result<Arc<Type>> {
        let name = words.join(" ");
        self.named(&name)
            .ok_or_else(|| refuse(self.line(), format!("the unknown type '{name}'")))
    }

    fn words(&mut self) -> Specifier {
        let mut words = Vec::new();
        loop {
            if self.accept("*") {
                words.push("*".to_owned());
            } else if self.peek_word() == Some("const") {
                self.next += 1;
            } else if let Some(word) = self.peek_word() {
                words.push(word.to_owned());
                self.next += 1;
            } else {
                return Specifier::Words(words);
            }
        }
    }

    fn specifier(&mut self) -> Result<Specifier> {
        self.depth += 1;
        if self.depth > BRACES_MAX {
            return Err(refuse(self.line(), "types that nest too deep"));
        }
        let specifier = self.specifier_inside();
        self.depth -= 1;
        specifier
    }

    fn specifier_inside(&mut self) -> Result<Specifier> {
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
        matches!(self.tokens.get(self.next + 1), Some((Token::Punct("{"), _)))
    }

    /// A type without a declarator, up to what cannot belong to it.
    pub fn whole_type(&mut self) -> Result<Arc<Type>> {
        match self.specifier()? {
            Specifier::Type(ty) => Ok(ty),
            Specifier::Words(words) => self.alias_target(&words),
        }
    }

    /// `TYPE name, other[3], third[length]` up to the semicolon.
    fn declarators(&mut self) -> Result<Vec<(String, Arc<Type>)>> {
        let (ty, first) = match self.specifier()? {
            Specifier::Type(_) if self.at(";") => return Ok(Vec::new()),
            Specifier::Type(ty) => {
                while self.accept("*") || self.accept_word("const") {}
                (ty, self.word()?)
            }
            Specifier::Words(mut words) => {
                let Some(name) = words.pop().filter(|_| !words.is_empty()) else {
                    return Err(refuse(
                        self.line(),
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
            if let Some(Token::Number(count)) = self.peek() {
                dimensions.push(Dimension::Fixed(*count));
                self.next += 1;
            } else {
                dimensions.push(Dimension::Counted(self.path()?));
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
        let mut members = Vec::new();
        while !self.closed()? {
            let aliased = matches!(self.peek_word(), Some("typealias" | "typedef"));
            if aliased && self.declaration()? {
                continue;
            }
            let declared = self.declarators()?;
            members.extend(declared.into_iter().map(|(name, ty)| Member {
                name,
                ty,
                escaped: true,
            }));
            self.expect(";")?;
        }
        Ok(members)
    }

    fn structure(&mut self) -> Result<Arc<Type>> {
        self.next += 1;
        let name = self
            .peek_word()
            .filter(|_| !self.at("{"))
            .map(str::to_owned);
        self.next += usize::from(name.is_some());
        if let Some(name) = name.as_ref().filter(|_| !self.at("{")) {
            return self.alias_target(&["struct".to_owned(), name.clone()]);
        }
        let members = self.members()?;
        let mut align_bits = 1;
        if self.accept_word("align") {
            self.expect("(")?;
            let number = self.signed_number()?;
            align_bits = self.alignment(number)?;
            self.expect(")")?;
        }
        let ty = self.make(TypeKind::Struct(members), align_bits)?;
        if let Some(name) = name {
            self.define(format!("struct {name}"), ty.clone());
        }
        Ok(ty)
    }

    fn variant(&mut self) -> Result<Arc<Type>> {
        self.next += 1;
        let name = self.peek_word().map(str::to_owned);
        self.next += usize::from(name.is_some());
        let mut selector = None;
        if self.accept("<") {
            selector = Some(Reference::Words(self.path()?));
            self.expect(">")?;
        }
        if !self.at("{") {
            let name = name.unwrap_or_default();
            let declared = self.alias_target(&["variant".to_owned(), name])?;
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
        self.next += 1;
        let name = self.peek_word().map(str::to_owned);
        self.next += usize::from(name.is_some());
        let container = if self.accept(":") {
            self.whole_type()?
        } else if self.at("{") {
            self.alias_target(&["int".to_owned()])?
        } else {
            return self.alias_target(&["enum".to_owned(), name.unwrap_or_default()]);
        };
        let TypeKind::Integer(int) = &container.kind else {
            return Err(refuse(
                self.line(),
                "an enumeration of something that is no integer",
            ));
        };
        let mappings = self.mappings()?;
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
            let label = match self.peek().cloned() {
                Some(Token::Word(label) | Token::Text(label)) => label,
                _ => return Err(refuse(self.line(), format!("{} as a label", self.found()))),
            };
            self.next += 1;
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
                    self.line(),
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
            self.next += 1;
        }
        let Some(Token::Number(number)) = self.peek() else {
            return Err(refuse(
                self.line(),
                format!("{} instead of a number", self.found()),
            ));
        };
        let number = sign * i128::from(*number);
        self.next += 1;
        Ok(number)
    }

    pub(super) fn alignment(&self, number: i128) -> Result<u32> {
        let fits = u32::try_from(number)
            .ok()
            .filter(|n| n.is_power_of_two() && *n <= 1 << 15);
        fits.ok_or_else(|| refuse(self.line(), format!("an alignment of {number} bits")))
    }

    fn attribute_value(&mut self) -> Result<AttributeValue> {
        match self.peek() {
            Some(Token::Text(text)) => {
                let mut text = text.clone();
                self.next += 1;
                while let Some(Token::Text(more)) = self.peek() {
                    text.push_str(more);
                    self.next += 1;
                }
                Ok(AttributeValue::Text(text))
            }
            Some(Token::Word(_)) => Ok(AttributeValue::Path(self.path()?)),
            _ => Ok(AttributeValue::Number(self.signed_number()?)),
        }
    }

    /// `{ key = value; key := type; declarations }`
    pub fn block(&mut self) -> Result<Block> {
        self.open()?;
        let mut block = Block::default();
        while !self.closed()? {
            if self.accept(";") || self.declaration()? {
                continue;
            }
            let key = self.path()?.join(".");
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
fn native_is_big_endian(tokens: &[(Token, u32)]) -> bool {
    let word = |token: &Token, expect: &str| matches!(token, Token::Word(w) if w == expect);
    let mut depth = 0u32;
    let mut in_trace = false;
    for (place, (token, _)) in tokens.iter().enumerate() {
        match token {
            Token::Punct("{") => depth += 1,
            Token::Punct("}") => depth = depth.saturating_sub(1),
            Token::Word(name) if depth == 0 => in_trace = name == "trace",
            Token::Word(name) if depth == 1 && in_trace && name == "byte_order" => {
                let value = tokens.get(place + 2).map(|(token, _)| token);
                return value.is_some_and(|v| word(v, "be") || word(v, "network"));
            }
            _ => {}
        }
    }
    false
}
