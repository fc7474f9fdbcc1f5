//! A JSON object whose members are asked for by name and kind.

use event::Result;
use serde_json::{Map, Value as Json};

use super::super::compile::refuse;

/// An object and what it is, for errors.
#[derive(Clone, Copy)]
pub(super) struct Object<'j> {
    members: &'j Map<String, Json>,
    what: &'static str,
}

impl<'j> Object<'j> {
    pub fn new(json: &'j Json, what: &'static str) -> Result<Object<'j>> {
        match json {
            Json::Object(members) => Ok(Object { members, what }),
            other => Err(refuse(format!(
                "{what} that is no object: {}",
                brief(other)
            ))),
        }
    }

    pub fn get(&self, key: &str) -> Option<&'j Json> {
        self.members.get(key)
    }

    pub fn required(&self, key: &str) -> Result<&'j Json> {
        self.get(key)
            .ok_or_else(|| refuse(format!("{} without '{key}'", self.what)))
    }

    fn wrong(&self, key: &str, json: &Json) -> event::Error {
        refuse(format!("{}: '{key}' is {}", self.what, brief(json)))
    }

    pub fn text(&self, key: &str) -> Result<&'j str> {
        let json = self.required(key)?;
        json.as_str().ok_or_else(|| self.wrong(key, json))
    }

    pub fn optional_text(&self, key: &str) -> Result<Option<&'j str>> {
        self.get(key).map(|_| self.text(key)).transpose()
    }

    pub fn u64(&self, key: &str) -> Result<u64> {
        let json = self.required(key)?;
        json.as_u64().ok_or_else(|| self.wrong(key, json))
    }

    pub fn u64_or(&self, key: &str, default: u64) -> Result<u64> {
        self.get(key).map_or(Ok(default), |_| self.u64(key))
    }

    pub fn i64_or(&self, key: &str, default: i64) -> Result<i64> {
        match self.get(key) {
            None => Ok(default),
            Some(json) => json.as_i64().ok_or_else(|| self.wrong(key, json)),
        }
    }

    /// The elements of a list; none when there is no such member.
    pub fn list(&self, key: &str) -> Result<&'j [Json]> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Json::Array(elements)) => Ok(elements),
            Some(other) => Err(self.wrong(key, other)),
        }
    }
}

/// The start of a value's text, for errors.
pub(super) fn brief(json: &Json) -> String {
    let text = json.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
