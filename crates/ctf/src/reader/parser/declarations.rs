//! What declares names and gives them values: aliases, fields, blocks of attributes.

use std::borrow::Cow;
use std::sync::Arc;

use event::Result;

use super::super::attributes::{AttributeValue, Block};
use super::super::lexer::{Token, refuse};
use super::super::types::{Reference, Type, TypeKind};
use super::{BRACES_MAX, Parser};

/// A type, or words of which the last may be a declarator's name.
enum Specifier<'a> {
    Type(Arc<Type>),
    Words(Vec<&'a str>),
}

impl<'a> Parser<'a> {
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

    pub(super) fn alias_target(&mut self, words: &[&str]) -> Result<Arc<Type>> {
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
    pub(super) fn declarators(&mut self) -> Result<Vec<(&'a str, Arc<Type>)>> {
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
