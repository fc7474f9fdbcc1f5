//! From the vocabulary's types to what is written: names, references, and what CTF 1.8 cannot say.

use std::collections::HashSet;

use event::{
    Base, Error, EventClass, Field, FieldType, Integer, IntegerMapping, Length, Result, Scope,
};

use super::links::{Frame, Lookup};
use super::refusal::refuse;
use super::wire::{
    BODY, Choice, ClassWire, Int, Kind, Member, Node, Shows, Span, SubByte, written_name,
};
use super::{Dialect, StreamMeta};
use crate::keywords::is_keyword;

/// Lowers the fields of one stream class.
pub(super) struct Lowering<'s> {
    pub stream: &'s StreamMeta,
    pub dialect: Dialect,
    sub_byte: SubByte,
}

impl<'s> Lowering<'s> {
    pub fn new(stream: &'s StreamMeta, dialect: Dialect) -> Self {
        let own = stream.classes.iter().flat_map(|class| class.fields.iter());
        let shared = stream.event_context.iter().chain(&stream.packet_context);
        Lowering {
            stream,
            dialect,
            sub_byte: SubByte::of(own.chain(shared)),
        }
    }

    /// The members of the packet context behind those that every packet of ours has.
    pub fn packet_context(&self) -> Result<Vec<Member>> {
        let fields: Vec<&Field> = self.stream.packet_context.iter().collect();
        let mut builder = Builder::new(self);
        builder.scope(Scope::PacketContext, &fields)
    }

    /// The context that all events share.
    pub fn event_context(&self) -> Result<Vec<Member>> {
        let fields: Vec<&Field> = self.stream.event_context.iter().collect();
        let mut builder = Builder::new(self);
        builder
            .lookup
            .done
            .push((Scope::PacketContext, self.packet_context()?));
        builder.scope(Scope::StreamContext, &fields)
    }

    /// The structures of a class.
    pub fn class(&self, class: &EventClass) -> Result<ClassWire> {
        let mut builder = Builder::new(self);
        builder
            .lookup
            .done
            .push((Scope::PacketContext, self.packet_context()?));
        for scope in BODY {
            let fields: Vec<&Field> = match scope {
                Scope::StreamContext => self.stream.event_context.iter().collect(),
                scope => class.fields.iter().filter(|f| f.scope == scope).collect(),
            };
            let members = builder.scope(scope, &fields)?;
            builder.lookup.done.push((scope, members));
        }
        let slot_count = builder.lookup.slots;
        let mut done = builder.lookup.done.into_iter().skip(1);
        let scopes = BODY.map(|_| done.next().map(|(_, members)| members).unwrap_or_default());
        let is_bytes = scopes.iter().flatten().all(|member| member.node.is_bytes());
        Ok(ClassWire {
            scopes,
            slot_count,
            is_bytes,
        })
    }
}

pub(super) struct Builder<'l> {
    lowering: &'l Lowering<'l>,
    pub lookup: Lookup,
}

impl<'l> Builder<'l> {
    fn new(lowering: &'l Lowering<'l>) -> Self {
        Builder {
            lowering,
            lookup: Lookup::new(lowering.dialect),
        }
    }

    pub fn is_ctf2(&self) -> bool {
        self.lowering.dialect == Dialect::Ctf2
    }

    /// Whether what the fields refer to may not be written.
    pub fn lacks_headers(&self) -> bool {
        self.lowering.stream.lacks_headers
    }

    fn scope(&mut self, scope: Scope, fields: &[&Field]) -> Result<Vec<Member>> {
        self.lookup.scope = scope;
        self.members(fields.iter().copied())
    }

    fn members<'f>(&mut self, fields: impl Iterator<Item = &'f Field>) -> Result<Vec<Member>> {
        self.lookup.frames.push(Frame::default());
        let mut taken = HashSet::new();
        for field in fields {
            let name = unique(written_name(&field.name, self.lowering.dialect), &mut taken);
            let within = |error: Error| match error.value_found() {
                Some(_) => error,
                None => error.found(format!("field '{}'", field.name)),
            };
            let ty = self.with_carried(&name, &field.ty, &mut taken);
            let node = self.node(&ty).map_err(within)?;
            if let Some(frame) = self.lookup.frames.last_mut() {
                frame.members.push(Member {
                    name,
                    node,
                    is_carried: false,
                });
            }
        }
        let frame = self.lookup.frames.pop();
        Ok(frame.map(|frame| frame.members).unwrap_or_default())
    }

    fn node(&mut self, ty: &FieldType) -> Result<Node> {
        Ok(match ty {
            FieldType::Integer(integer) => self.int(integer, Shows::Number),
            FieldType::Enum(integer, labels) => self.int(integer, Shows::Label(labels.to_vec())),
            FieldType::Bool(integer) => self.int(integer, Shows::Truth),
            FieldType::Flags(integer, labels) => {
                let hexadecimal = Integer {
                    base: Base::Hexadecimal,
                    ..*integer
                };
                self.int(&hexadecimal, Shows::Flags(labels.to_vec()))
            }
            FieldType::Float {
                size_bits,
                align_bits,
                big_endian,
            } => {
                let kind = Kind::Float {
                    size_bits: if *size_bits <= 32 { 32 } else { 64 },
                    big_endian: *big_endian,
                };
                Node::new(kind, u32::from(*align_bits).max(8))
            }
            FieldType::String => Node::new(Kind::String, 8),
            FieldType::Text { size_bytes } => Node::new(Kind::Text(*size_bytes), 8),
            FieldType::Array { element, count } => {
                Node::new(Kind::Array(Box::new(self.node(element)?), *count), 1)
            }
            FieldType::Sequence { element, length } => self.sequence(element, length)?,
            FieldType::WideText { encoding, length } => match self.is_ctf2() {
                true => {
                    let span = self.span(length)?;
                    let encoding = *encoding;
                    Node::new(Kind::Wide { encoding, span }, 8)
                }
                false => Node::new(Kind::String, 8),
            },
            FieldType::Blob { length, media_type } => self.blob(length, media_type)?,
            FieldType::Struct(fields) => Node::new(Kind::Struct(self.members(fields.iter())?), 1),
            FieldType::Variant {
                selector,
                choices,
                ranges,
            } => self.variant(selector, choices, ranges.as_deref())?,
            FieldType::Optional {
                selector,
                content,
                ranges,
            } => self.optional(selector, content, ranges.as_deref())?,
        })
    }

    fn int(&self, integer: &Integer, shows: Shows) -> Node {
        let mut integer = *integer;
        let is_shared = !integer.size_bits.is_multiple_of(8) || integer.align_bits < 8;
        if is_shared && self.lowering.sub_byte == SubByte::Align {
            integer.align_bits = 8;
        }
        let align_bits = u32::from(integer.align_bits.max(1));
        let int = Int {
            integer,
            shows,
            slot: None,
        };
        Node::new(Kind::Int(int), align_bits)
    }

    fn sequence(&mut self, element: &FieldType, length: &str) -> Result<Node> {
        let link = self.lookup.link(length, None)?;
        let is_character = matches!(element, FieldType::Integer(int)
            if int.text && int.size_bits == 8 && int.align_bits == 8);
        Ok(match is_character {
            true => Node::new(Kind::CountedText(link), 8),
            false => Node::new(Kind::Sequence(Box::new(self.node(element)?), link), 1),
        })
    }

    fn span(&mut self, length: &Length) -> Result<Span> {
        Ok(match length {
            Length::Terminated => Span::Terminated,
            Length::Bytes(bytes) => Span::Bytes(*bytes),
            Length::Field(name) => Span::Counted(self.lookup.link(name, None)?),
        })
    }

    fn blob(&mut self, length: &Length, media_type: &str) -> Result<Node> {
        let span = self.span(length)?;
        if self.is_ctf2() {
            let media_type = media_type.to_owned();
            return Ok(Node::new(Kind::Blob { span, media_type }, 8));
        }
        let byte = Box::new(self.int(&Integer::hex(8), Shows::Number));
        match span {
            Span::Bytes(count) => Ok(Node::new(Kind::Array(byte, count), 8)),
            Span::Counted(link) => Ok(Node::new(Kind::Sequence(byte, link), 8)),
            Span::Terminated => Err(refuse("a blob needs a length")),
        }
    }

    fn variant(
        &mut self,
        selector: &str,
        fields: &[Field],
        ranges: Option<&[IntegerMapping]>,
    ) -> Result<Node> {
        let target = self.lookup.target(selector)?;
        let labels = match (ranges, target.labels()) {
            (Some(ranges), _) => ranges.to_vec(),
            (None, Some(labels)) => labels.to_vec(),
            (None, None) => {
                let what = "a variant's selector must be an enumeration";
                return Err(refuse(what).found(format!("'{selector}'")));
            }
        };
        let mut choices = Vec::with_capacity(fields.len());
        for field in fields {
            let escaped = format!("_{}", field.name);
            let is_escaped = ranges.is_none() && labels.iter().any(|m| m.label == escaped);
            let label = if is_escaped {
                escaped.as_str()
            } else {
                &field.name
            };
            let own = labels.iter().filter(|mapping| mapping.label == label);
            choices.push(Choice {
                name: field.name.to_string(),
                written: match is_escaped {
                    true => escaped.clone(),
                    false => choice_name(&field.name, self.lowering.dialect),
                },
                ranges: own.map(|m| (m.first, m.last)).collect(),
                node: self.node(&field.ty)?,
            });
        }
        self.choose(selector, choices, false)
    }

    fn optional(
        &mut self,
        selector: &str,
        content: &FieldType,
        ranges: Option<&[(i64, i64)]>,
    ) -> Result<Node> {
        if self.is_ctf2() {
            let selector = self.lookup.link(selector, None)?;
            let content = Box::new(self.node(content)?);
            let ranges = ranges.map(<[_]>::to_vec);
            let kind = Kind::Optional {
                selector,
                content,
                ranges,
            };
            return Ok(Node::new(kind, 1));
        }
        let integer = self.lookup.target(selector)?.integer;
        let (there, absent) = presence(&integer, ranges);
        let choice = |name: &str, ranges, node| Choice {
            name: name.to_owned(),
            written: name.to_owned(),
            ranges,
            node,
        };
        let nothing = Node::new(Kind::Struct(Vec::new()), 1);
        let content = self.node(content)?;
        let choices = vec![
            choice("none", absent, nothing),
            choice("some", there, content),
        ];
        self.choose(selector, choices, true)
    }

    /// A variant of these choices, whose selector gets their labels where they must have some.
    fn choose(&mut self, selector: &str, choices: Vec<Choice>, is_optional: bool) -> Result<Node> {
        let mapping = |choice: &Choice, (first, last): (i64, i64)| IntegerMapping {
            label: choice.written.clone(),
            first,
            last,
        };
        let labels: Vec<IntegerMapping> = choices
            .iter()
            .flat_map(|choice| {
                choice
                    .ranges
                    .iter()
                    .map(move |range| mapping(choice, *range))
            })
            .collect();
        let labels = (!self.is_ctf2()).then_some(labels.as_slice());
        let kind = Kind::Variant {
            selector: self.lookup.link(selector, labels)?,
            choices,
            is_optional,
        };
        Ok(Node::new(kind, 1))
    }
}

/// A choice's name as it is written: bare, because labels are, unless TSDL forbids it.
fn choice_name(name: &str, dialect: Dialect) -> String {
    let written = written_name(name, dialect);
    let is_word = written.starts_with(|c: char| c.is_ascii_alphabetic());
    match dialect {
        Dialect::Ctf18 if is_keyword(&written) || !is_word => format!("_{written}"),
        _ => written,
    }
}

/// First and last selector values, by their bits.
type Ranges = Vec<(i64, i64)>;

/// Selector values that mean that an optional field is there, and those that mean that it is not.
fn presence(integer: &Integer, ranges: Option<&[(i64, i64)]>) -> (Ranges, Ranges) {
    let bits = u32::from(integer.size_bits);
    let wide = |bound: i64| match integer.signed {
        true => i128::from(bound),
        false => i128::from(bound as u64),
    };
    let (least, greatest) = match integer.signed {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    let complement = |inside: &[(i128, i128)]| {
        let mut inside = inside.to_vec();
        inside.sort_unstable();
        let mut outside = Vec::new();
        let mut next = least;
        for (first, last) in inside {
            if first > next {
                outside.push((next, first - 1));
            }
            next = next.max(last + 1);
        }
        if next <= greatest {
            outside.push((next, greatest));
        }
        outside
    };
    let narrow = |ranges: Vec<(i128, i128)>| -> Vec<(i64, i64)> {
        let bound = |(first, last)| (first as i64, last as i64);
        ranges.into_iter().map(bound).collect()
    };
    let there: Vec<(i128, i128)> = match ranges {
        Some(ranges) => ranges.iter().map(|(a, b)| (wide(*a), wide(*b))).collect(),
        None => complement(&[(0, 0)]),
    };
    let absent = complement(&there);
    (narrow(there), narrow(absent))
}

/// The name, with a number behind it where another member has it.
pub(super) fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.clone();
    let mut number = 1;
    while !taken.insert(candidate.clone()) {
        number += 1;
        candidate = format!("{name}_{number}");
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presence_and_absence_share_every_value_out() {
        let check =
            |size_bits, signed, ranges: Option<&[(i64, i64)]>, expect: [&[(i64, i64)]; 2]| {
                let (there, absent) = presence(&Integer::le(size_bits, signed), ranges);
                assert_eq!([&there[..], &absent[..]], expect);
            };
        check(8, false, None, [&[(1, 255)], &[(0, 0)]]);
        check(8, true, None, [&[(-128, -1), (1, 127)], &[(0, 0)]]);
        check(8, false, Some(&[(3, 4)]), [&[(3, 4)], &[(0, 2), (5, 255)]]);
        check(64, false, None, [&[(1, -1)], &[(0, 0)]]);
    }
}
