//! What CTF 1.8 asks of metadata and reading does not need: each breach is noted, none is refused.

use std::collections::HashSet;

use super::attributes::{AttributeValue, Block};
use super::parser::Parser;
use super::schema::uuid;
use super::types::{IntType, Mapping, Member, Reference, Type, TypeKind, shown};
use crate::keywords::{C_TYPE_WORDS, is_keyword};

/// Fewer members are compared with each other, which needs no memory.
const COMPARED_MEMBERS_MAX: usize = 16;
/// What the metadata's text begins with.
const SIGNATURE: &str = "/* CTF 1.8";

const BASES: [&str; 14] = [
    "decimal",
    "dec",
    "d",
    "i",
    "u",
    "hexadecimal",
    "hex",
    "x",
    "X",
    "p",
    "octal",
    "oct",
    "o",
    "binary",
];
const ENCODINGS: [&str; 5] = ["none", "UTF8", "utf8", "ASCII", "ascii"];
const TRUTHS: [&str; 4] = ["true", "false", "TRUE", "FALSE"];

/// A value as it was written; the end of a long one is left out.
fn spelled(value: &AttributeValue<'_>) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    let whole = match value {
        AttributeValue::Number(number) => number.to_string(),
        AttributeValue::Text(text) => format!("{text:?}"),
        AttributeValue::Path(path) => format!("'{path}'"),
    };
    match whole.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}

impl Parser<'_> {
    /// The text as a whole; `packets_are_big` is the byte order of the packets that it came in.
    pub(super) fn check_text(&mut self, packets_are_big: Option<bool>) {
        match packets_are_big {
            None if !self.text.starts_with(SIGNATURE) => {
                let first = self.text.lines().next().unwrap_or_default();
                let found: String = first.chars().take(40).collect();
                self.violates(
                    0,
                    format!("begins with {found:?}, not with '{SIGNATURE} */'"),
                );
            }
            Some(is_big) if is_big != self.big_endian => {
                let name = |is_big| {
                    if is_big {
                        "big-endian"
                    } else {
                        "little-endian"
                    }
                };
                let (own, packets) = (name(self.big_endian), name(is_big));
                self.violates(0, format!("{packets} packets of metadata in a {own} trace"));
            }
            _ => {}
        }
        if let Some(at) = memchr::memchr(0, self.text.as_bytes()) {
            self.violates(at, "a byte of zero in the text");
        }
    }

    /// A name that is given to a field, or by `typedef` to a type.
    pub(super) fn check_name(&mut self, name: &str) {
        if is_keyword(name) {
            let at = self.here();
            self.violates(at, format!("the keyword '{name}' as a name"));
        }
    }

    /// The name that `typealias` gives to a type: words of C's own types are allowed.
    pub(super) fn check_alias(&mut self, words: &[&str]) {
        let wrong = |word: &&&str| is_keyword(word) && !C_TYPE_WORDS.contains(*word);
        if let Some(word) = words.iter().find(wrong) {
            let at = self.here();
            self.violates(at, format!("the keyword '{word}' as a type's name"));
        }
    }

    /// The words of a length or of a selector.
    pub(super) fn check_reference(&mut self, words: &[String]) {
        let is_relative = words.len() == 1;
        if let Some(word) = words.iter().find(|word| is_relative && is_keyword(word)) {
            let at = self.here();
            self.violates(
                at,
                format!("the keyword '{word}' in place of a field's name"),
            );
        }
    }

    /// A length by the name of a field, where no structure is around that could have the field.
    pub(super) fn check_length(&mut self, words: &[String]) {
        self.check_reference(words);
        if !self.is_in_structure() && words.len() == 1 {
            let at = self.here();
            let name = &words[0];
            self.violates(at, format!("the length '{name}' outside of any structure"));
        }
    }

    /// Members of a structure or choices of a variant, which were just read.
    pub(super) fn check_members(&mut self, members: &[Member]) {
        let at = self.here();
        if let Some(name) = twice(members) {
            self.violates(at, format!("the field '{name}' twice in one structure"));
        }
    }

    /// The member `ty`, of which `before` are those that stand before it in the same structure.
    pub(super) fn check_variant(&mut self, ty: &Type, before: &[Member]) {
        let TypeKind::Variant {
            selector: Some(Reference::Words(words)),
            choices,
            ..
        } = &ty.kind
        else {
            return;
        };
        let [word] = &words[..] else {
            return;
        };
        let Some(selector) = before.iter().rfind(|member| member.name == *word) else {
            return;
        };
        let at = self.here();
        let TypeKind::Enum(_, mappings) = &selector.ty.kind else {
            self.violates(at, format!("the selector '{word}' is no enumeration"));
            return;
        };
        let is_label = |choice: &Member| {
            let named = |mapping: &Mapping| {
                mapping.label == *choice.name || shown(&mapping.label) == choice.shown()
            };
            mappings.iter().any(named)
        };
        if !choices.is_empty() && !choices.iter().any(is_label) {
            let found = format!("no choice of the variant is a label of its selector '{word}'");
            self.violates(at, found);
        }
    }

    /// The labels of an enumeration of this integer.
    pub(super) fn check_labels(&mut self, int: &IntType, mappings: &[Mapping]) {
        let at = self.here();
        if mappings.is_empty() {
            self.violates(at, "an enumeration without labels");
        }
        let bits = u32::from(int.integer.size_bits);
        let (least, greatest) = match int.integer.signed {
            true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            false => (0, (1i128 << bits) - 1),
        };
        for Mapping { label, first, last } in mappings {
            let outside = [first, last]
                .into_iter()
                .find(|n| **n < least || **n > greatest);
            let sign = if int.integer.signed {
                "signed"
            } else {
                "unsigned"
            };
            if let Some(number) = outside {
                let what = format!("the label '{label}' of {number} in {bits} {sign} bits");
                self.violates(at, what);
            } else if first > last {
                self.violates(
                    at,
                    format!("the label '{label}' from {first} down to {last}"),
                );
            }
        }
    }

    /// The attributes of an integer.
    pub(super) fn check_integer(&mut self, block: &Block<'_>) {
        self.check_numbers(block, &["size", "align"]);
        self.check_word(block, "signed", |value| match value {
            AttributeValue::Number(number) => matches!(number, 0 | 1),
            AttributeValue::Path(path) => TRUTHS.contains(&&**path),
            AttributeValue::Text(_) => false,
        });
        self.check_word(block, "base", |value| match value {
            AttributeValue::Number(number) => matches!(number, 2 | 8 | 10 | 16),
            AttributeValue::Path(path) => {
                BASES.contains(&&**path) || matches!(&**path, "bin" | "b")
            }
            AttributeValue::Text(_) => false,
        });
        self.check_word(block, "byte_order", |value| {
            matches!(value, AttributeValue::Path(_))
        });
        self.check_encoding(block);
    }

    /// The encoding of a string, or of an integer that is a character.
    pub(super) fn check_encoding(&mut self, block: &Block<'_>) {
        self.check_word(
            block,
            "encoding",
            |value| matches!(value, AttributeValue::Path(path) if ENCODINGS.contains(&&**path)),
        );
    }

    /// The attributes of a block of this name.
    pub(super) fn check_block(&mut self, name: &str, block: &Block<'_>) {
        match name {
            "trace" => {
                self.check_numbers(block, &["major", "minor"]);
                self.check_word(block, "byte_order", |value| {
                    matches!(value, AttributeValue::Path(_))
                });
                self.check_word(block, "uuid", is_uuid);
            }
            "stream" => self.check_numbers(block, &["id"]),
            "event" => self.check_numbers(block, &["id", "stream_id", "loglevel"]),
            "clock" => {
                self.check_numbers(block, &["freq", "precision", "offset", "offset_s"]);
                self.check_word(block, "uuid", is_uuid);
            }
            _ => {}
        }
    }

    fn check_numbers(&mut self, block: &Block<'_>, keys: &[&str]) {
        for key in keys {
            self.check_word(block, key, |value| {
                matches!(value, AttributeValue::Number(_))
            });
        }
    }

    /// Notes a value that is not one of those that the standard allows for `key`.
    fn check_word(
        &mut self,
        block: &Block<'_>,
        key: &str,
        is_allowed: impl Fn(&AttributeValue<'_>) -> bool,
    ) {
        if let Some(value) = block.value(key).filter(|value| !is_allowed(value)) {
            let at = self.here();
            self.violates(at, format!("{} as the attribute '{key}'", spelled(value)));
        }
    }
}

fn is_uuid(value: &AttributeValue<'_>) -> bool {
    matches!(value, AttributeValue::Text(text) if uuid(text).is_some())
}

/// A name that two members have.
fn twice(members: &[Member]) -> Option<&str> {
    if members.len() <= COMPARED_MEMBERS_MAX {
        let has_earlier = |(place, member): &(usize, &Member)| {
            let earlier = members.iter().take(*place);
            earlier.into_iter().any(|other| other.name == member.name)
        };
        return members
            .iter()
            .enumerate()
            .find(has_earlier)
            .map(|(_, member)| &*member.name);
    }
    let mut names = HashSet::new();
    let mut all = members.iter().map(|member| &*member.name);
    all.find(|name| !names.insert(*name))
}
