//! Lengths and selectors that a trace keeps in the headers of its packets and events, which no
//! converter copies: each is written as a field of its own before what it counts or chooses. So is
//! a selector of another scope in CTF 1.8, which babeltrace2's grammar cannot name.
//!
//! Each use has one of its own, so that no two of them need the same value.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use event::{Field, FieldType, Integer, IntegerMapping, Length, Value};

use super::lower::{Builder, unique};
use super::wire::{Choice, Int, Kind, Link, Member, Node, Shows, Span};

impl Builder<'_> {
    /// The type of the field `name`; integers that it refers to and that are not written are
    /// written before it.
    pub(super) fn with_carried<'t>(
        &mut self,
        name: &str,
        ty: &'t FieldType,
        taken: &mut HashSet<String>,
    ) -> Cow<'t, FieldType> {
        if !self.lacks_headers() || !self.misses(ty) {
            return Cow::Borrowed(ty);
        }
        Cow::Owned(
            Carrying {
                builder: self,
                name,
                taken,
            }
            .ty(ty),
        )
    }

    fn is_missing(&mut self, reference: &str) -> bool {
        self.lookup.target(reference).is_err()
    }

    /// The same of a selector, which in CTF 1.8 is one of the same scope.
    fn lacks_selector(&mut self, reference: &str) -> bool {
        self.is_missing(reference) || !self.is_ctf2() && self.lookup.is_elsewhere(reference)
    }

    /// Whether the type refers to what is not written. The members of a structure have theirs
    /// before them.
    fn misses(&mut self, ty: &FieldType) -> bool {
        match ty {
            FieldType::Sequence { element, length } => {
                self.is_missing(length) || self.misses(element)
            }
            FieldType::Array { element, .. } => self.misses(element),
            FieldType::Variant {
                selector, choices, ..
            } => {
                self.lacks_selector(selector)
                    || choices.iter().any(|choice| self.misses(&choice.ty))
            }
            FieldType::Optional {
                selector, content, ..
            } => self.lacks_selector(selector) || self.misses(content),
            FieldType::Blob {
                length: Length::Field(length),
                ..
            } => self.is_missing(length),
            FieldType::WideText {
                length: Length::Field(length),
                ..
            } => self.is_ctf2() && self.is_missing(length),
            _ => false,
        }
    }
}

/// The field whose references are written before it.
struct Carrying<'c, 'l> {
    builder: &'c mut Builder<'l>,
    name: &'c str,
    taken: &'c mut HashSet<String>,
}

impl Carrying<'_, '_> {
    /// The same type, with references to what is written.
    fn ty(&mut self, ty: &FieldType) -> FieldType {
        match ty {
            FieldType::Sequence { element, length } => {
                // What counts the whole stands before what counts its elements.
                let length = self.length(length);
                FieldType::Sequence {
                    element: Arc::new(self.ty(element)),
                    length,
                }
            }
            FieldType::Array { element, count } => FieldType::Array {
                element: Arc::new(self.ty(element)),
                count: *count,
            },
            FieldType::Variant {
                selector,
                choices,
                ranges,
            } => self.variant(selector, choices, ranges.as_ref()),
            FieldType::Optional {
                selector,
                content,
                ranges,
            } => {
                let is_missing = self.builder.lacks_selector(selector);
                let own = is_missing.then(|| self.add("selector", 8, Shows::Truth));
                FieldType::Optional {
                    selector: own.unwrap_or_else(|| selector.clone()),
                    content: Arc::new(self.ty(content)),
                    ranges: ranges.clone().filter(|_| !is_missing),
                }
            }
            FieldType::Blob {
                length: Length::Field(length),
                media_type,
            } => FieldType::Blob {
                length: Length::Field(self.length(length)),
                media_type: media_type.clone(),
            },
            FieldType::WideText {
                length: Length::Field(length),
                encoding,
            } if self.builder.is_ctf2() => FieldType::WideText {
                length: Length::Field(self.length(length)),
                encoding: *encoding,
            },
            other => other.clone(),
        }
    }

    fn variant(
        &mut self,
        selector: &str,
        choices: &[Field],
        ranges: Option<&Arc<[IntegerMapping]>>,
    ) -> FieldType {
        let own = self.builder.lacks_selector(selector).then(|| {
            let numbered = choices.iter().zip(0..);
            let labels: Vec<IntegerMapping> = numbered
                .map(|(choice, number)| IntegerMapping {
                    label: choice.name.to_string(),
                    first: number,
                    last: number,
                })
                .collect();
            let own = self.add("selector", 32, Shows::Label(labels.clone()));
            (own, labels.into())
        });
        let choice = |choice: &Field| Field {
            ty: self.ty(&choice.ty),
            ..choice.clone()
        };
        let choices = choices.iter().map(choice).collect();
        let (selector, ranges) = match own {
            Some((own, labels)) => (own, Some(labels)),
            None => (selector.to_owned(), ranges.cloned()),
        };
        FieldType::Variant {
            selector,
            choices,
            ranges,
        }
    }

    fn length(&mut self, length: &str) -> String {
        match self.builder.is_missing(length) {
            true => self.add("length", 32, Shows::Number),
            false => length.to_owned(),
        }
    }

    /// Adds an integer before the field; returns its name.
    fn add(&mut self, what: &str, size_bits: u8, shows: Shows) -> String {
        let own = unique(format!("{}_{what}", self.name), self.taken);
        if let Some(frame) = self.builder.lookup.frames.last_mut() {
            let int = Int {
                integer: Integer::le(size_bits, false),
                shows,
                slot: None,
            };
            frame.members.push(Member {
                name: own.clone(),
                node: Node::new(Kind::Int(int), 8),
                is_carried: true,
            });
        }
        own
    }
}

/// What the carried integer `own` says where the field of the type `node` that needs it has this
/// value; none where the value has no such part.
pub(super) fn carried_value(node: &Node, value: &Value<'_>, own: &str) -> Option<i64> {
    let is_own = |link: &Link| link.is_here && link.names == [own];
    match &node.kind {
        Kind::CountedText(link) => is_own(link).then(|| length_of(value)),
        Kind::Sequence(_, link) if is_own(link) => Some(length_of(value)),
        Kind::Sequence(element, _) | Kind::Array(element, _) => match value {
            Value::Array(values) => {
                let mut values = values.iter();
                values.find_map(|value| carried_value(element, value, own))
            }
            _ => None,
        },
        Kind::Blob {
            span: Span::Counted(link),
            ..
        } => is_own(link).then(|| length_of(value)),
        Kind::Wide {
            span: Span::Counted(link),
            encoding,
        } => match value {
            Value::Text(text) if is_own(link) => Some(encoding_bytes(text, encoding.unit_bytes)),
            _ => None,
        },
        Kind::Variant {
            selector,
            choices,
            is_optional,
        } => {
            let (choice, content) = chosen(choices, *is_optional, value)?;
            match is_own(selector) {
                true => choice.ranges.first().map(|(first, _)| *first),
                false => carried_value(&choice.node, content, own),
            }
        }
        Kind::Optional {
            selector, content, ..
        } => match (is_own(selector), value) {
            (true, value) => Some(i64::from(!matches!(value, Value::Absent))),
            (false, Value::Absent) => None,
            (false, value) => carried_value(content, value, own),
        },
        _ => None,
    }
}

/// The choice that a variant's value is of, and what it holds.
pub(super) fn chosen<'n, 'v, 'd>(
    choices: &'n [Choice],
    is_optional: bool,
    value: &'v Value<'d>,
) -> Option<(&'n Choice, &'v Value<'d>)> {
    const NOTHING: &Value<'static> = &Value::Struct(Vec::new());
    let (name, content) = match (is_optional, value) {
        (true, Value::Absent) => ("none", NOTHING),
        (true, value) => ("some", value),
        (false, Value::Struct(chosen)) => match &chosen[..] {
            [(name, value)] => (*name, value),
            _ => return None,
        },
        (false, _) => return None,
    };
    let choice = choices.iter().find(|choice| choice.name == name)?;
    Some((choice, content))
}

/// How many elements or bytes a value has.
pub(super) fn length_of(value: &Value<'_>) -> i64 {
    match value {
        Value::Array(elements) => elements.len() as i64,
        Value::Blob(bytes) => bytes.len() as i64,
        Value::Text(text) => text.len() as i64,
        _ => 0,
    }
}

/// The bytes of a text in units of two or four bytes, up to its first zero.
fn encoding_bytes(text: &str, unit_bytes: u8) -> i64 {
    let letters = text.chars().take_while(|c| *c != '\0');
    let units: usize = match unit_bytes {
        2 => letters.map(char::len_utf16).sum(),
        _ => letters.count(),
    };
    (units * usize::from(unit_bytes)) as i64
}
