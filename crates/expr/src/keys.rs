//! Keys: which events belong together, by values that both have.

use crate::ast::Operand;
use crate::parser::parse_key;
use crate::span::{Span, pointed};

/// The values by which the end of an interval finds its begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Of each part, what it is in the event that begins, and what in the one that ends.
    parts: Vec<(Operand, Operand)>,
    spans: Vec<Span>,
}

impl Key {
    /// Reads `tid`, `dev,sector`, or `tid=next_tid` where the two events call it differently.
    ///
    /// # Errors
    /// [`event::ErrorKind::InvalidInput`]: what is wrong, and where.
    pub fn parse(text: &str) -> event::Result<Key> {
        let parts = parse_key(text).map_err(|fault| fault.into_error("key", text))?;
        let (parts, spans) = parts.into_iter().unzip();
        Ok(Key { parts, spans })
    }

    /// Shows where in its text a part was written.
    pub fn pointed(&self, text: &str, part: usize) -> String {
        pointed(text, self.spans.get(part).copied().unwrap_or_default())
    }

    /// Its parts in the event that begins.
    pub fn from(&self) -> Vec<&Operand> {
        self.parts.iter().map(|(from, _)| from).collect()
    }

    /// Its parts in the event that ends.
    pub fn to(&self) -> Vec<&Operand> {
        self.parts.iter().map(|(_, to)| to).collect()
    }
}
