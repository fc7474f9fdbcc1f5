//! The types that are made of attributes: integers, floating-point numbers, strings.

use std::sync::Arc;

use event::{Base, Integer, Result};

use super::attributes::{AttributeValue, Block};
use super::lexer::refuse;
use super::parser::Parser;
use super::types::{Extent, IntType, Type, TypeKind, base};

impl Parser<'_> {
    fn byte_order(&self, block: &Block<'_>) -> Result<bool> {
        match block.text("byte_order") {
            None | Some("native") => Ok(self.big_endian),
            Some("be" | "network") => Ok(true),
            Some("le") => Ok(false),
            Some(other) => Err(refuse(self.spot(), format!("the byte order '{other}'"))),
        }
    }

    pub(super) fn integer(&mut self) -> Result<Arc<Type>> {
        self.bump();
        let braces = self.plain_braces();
        if let Some((braces, end)) = braces
            && let Some(ty) = self.integers.get(braces).cloned()
        {
            self.skip_to(end);
            return Ok(ty);
        }
        let ty = self.new_integer()?;
        if let Some((braces, end)) = braces
            && self.is_taken_to(end)
        {
            self.integers.insert(braces, ty.clone());
        }
        Ok(ty)
    }

    fn new_integer(&mut self) -> Result<Arc<Type>> {
        let block = self.block()?;
        self.check_integer(&block);
        let size = block
            .number("size")
            .and_then(|size| u32::try_from(size).ok());
        if let Some(size_bits) = size.filter(|size| *size > 64) {
            return self.long_integer(&block, size_bits);
        }
        let size = size.and_then(|size| u8::try_from(size).ok());
        let Some(size_bits) = size.filter(|size| (1..=64).contains(size)) else {
            return Err(refuse(self.spot(), "an integer without a size"));
        };
        let default_align = if size_bits % 8 == 0 { 8 } else { 1 };
        let align_bits = self.alignment(block.number("align").unwrap_or(default_align))?;
        let signed = match block.value("signed") {
            None => false,
            Some(AttributeValue::Number(number)) => *number != 0,
            Some(AttributeValue::Path(path)) => matches!(first(path), "true" | "TRUE"),
            Some(AttributeValue::Text(_)) => false,
        };
        let base = match block.value("base") {
            None => Base::Decimal,
            Some(AttributeValue::Number(number)) => u64::try_from(*number)
                .ok()
                .and_then(base)
                .unwrap_or_default(),
            Some(AttributeValue::Path(path)) => named_base(first(path)),
            Some(AttributeValue::Text(_)) => Base::Decimal,
        };
        let clock = match block.value("map") {
            Some(AttributeValue::Path(path)) => match path.split('.').collect::<Vec<_>>()[..] {
                ["clock", name, _] => Some(name.to_owned()),
                _ => None,
            },
            _ => None,
        };
        let integer = Integer {
            size_bits,
            align_bits: align_bits as u16,
            signed,
            big_endian: self.byte_order(&block)?,
            base,
            text: has_characters(&block),
        };
        let int = IntType {
            clock,
            ..IntType::plain(integer)
        };
        self.make(TypeKind::Integer(int), align_bits)
    }

    /// An integer that is larger than any number of ours is read as its bytes.
    fn long_integer(&self, block: &Block<'_>, size_bits: u32) -> Result<Arc<Type>> {
        let align_bits = self.alignment(block.number("align").unwrap_or(8))?;
        if !size_bits.is_multiple_of(8) || align_bits < 8 {
            let found = format!("an integer of {size_bits} bits that is not whole bytes");
            return Err(refuse(self.spot(), found));
        }
        let kind = TypeKind::Blob {
            length: Extent::Bytes(u64::from(size_bits / 8)),
            media_type: "application/octet-stream".to_owned(),
        };
        self.make(kind, align_bits)
    }

    pub(super) fn float(&mut self) -> Result<Arc<Type>> {
        self.bump();
        let block = self.block()?;
        let size_bits = match (block.number("exp_dig"), block.number("mant_dig")) {
            (Some(8), Some(24)) => 32,
            (Some(11), Some(53)) => 64,
            other => return Err(refuse(self.spot(), format!("a float of {other:?} digits"))),
        };
        let align_bits = self.alignment(block.number("align").unwrap_or(1))?;
        let big_endian = self.byte_order(&block)?;
        self.make(
            TypeKind::Float {
                size_bits,
                big_endian,
            },
            align_bits,
        )
    }

    pub(super) fn string(&mut self) -> Result<Arc<Type>> {
        self.bump();
        if self.at("{") {
            let block = self.block()?;
            self.check_encoding(&block);
        }
        self.make(TypeKind::String, 8)
    }
}

/// The first word of a path.
fn first(path: &str) -> &str {
    path.split('.').next().unwrap_or_default()
}

fn has_characters(block: &Block<'_>) -> bool {
    let encoding = block.text("encoding").unwrap_or_default();
    let is_same = |name: &&str| encoding.eq_ignore_ascii_case(name);
    ["utf8", "utf-8", "ascii"].iter().any(is_same)
}

fn named_base(word: &str) -> Base {
    match word {
        "hexadecimal" | "hex" | "x" | "X" | "p" => Base::Hexadecimal,
        "octal" | "oct" | "o" => Base::Octal,
        "binary" | "b" => Base::Binary,
        _ => Base::Decimal,
    }
}
