//! `{ key = value; … }`: blocks of attributes.

use std::borrow::Cow;
use std::sync::Arc;

use super::types::Type;

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AttributeValue<'a> {
    Number(i128),
    Text(Cow<'a, str>),
    /// One word, or several with dots between.
    Path(Cow<'a, str>),
}

/// A block's contents: `key = value;` and `key := type;`, dots inside the keys kept.
#[derive(Debug, Default)]
pub(crate) struct Block<'a> {
    pub values: Vec<(Cow<'a, str>, AttributeValue<'a>)>,
    pub types: Vec<(Cow<'a, str>, Arc<Type>)>,
}

impl<'a> Block<'a> {
    pub fn value(&self, key: &str) -> Option<&AttributeValue<'a>> {
        self.values
            .iter()
            .rfind(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    pub fn ty(&self, key: &str) -> Option<&Arc<Type>> {
        self.types
            .iter()
            .rfind(|(name, _)| name == key)
            .map(|(_, ty)| ty)
    }

    pub fn number(&self, key: &str) -> Option<i128> {
        match self.value(key)? {
            AttributeValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            AttributeValue::Text(text) | AttributeValue::Path(text) => Some(text),
            AttributeValue::Number(_) => None,
        }
    }
}
