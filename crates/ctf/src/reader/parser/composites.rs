//! Types of several parts: structures, variants and enumerations.

use std::sync::Arc;

use event::Result;

use super::super::lexer::{Token, refuse};
use super::super::types::{Mapping, Member, Reference, Type, TypeKind};
use super::Parser;

impl Parser<'_> {
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

    pub(super) fn structure(&mut self) -> Result<Arc<Type>> {
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

    pub(super) fn variant(&mut self) -> Result<Arc<Type>> {
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

    pub(super) fn enumeration(&mut self) -> Result<Arc<Type>> {
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
}
