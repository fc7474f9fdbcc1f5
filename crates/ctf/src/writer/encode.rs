//! Values to bits, by the types that the metadata declares.
//!
//! What a reader could not take apart again is refused: a length that differs from its elements, a
//! choice that its selector does not choose.

use event::{Error, EventClass, FieldId, Integer, Record, Result, Scope, Value, WideEncoding};

use super::bits::PacketBytes;
use super::carried::{carried_value, chosen, length_of};
use super::refusal::refuse;
use super::wire::{BODY, Choice, ClassWire, Int, Kind, Link, Member, Node, Span, in_range};

/// A class as the encoder uses it.
#[derive(Clone, Debug)]
pub(super) struct ClassEncoder {
    pub name: String,
    pub wire: ClassWire,
    /// Where each member's value is in the record, by scope; empty when the class does not list
    /// the fields of the stream's context.
    fields: [Vec<FieldId>; 3],
}

/// The places of a class's fields of one scope.
pub(super) fn fields_of(class: &EventClass, scope: Scope) -> Vec<FieldId> {
    let fields = class.fields.iter().enumerate();
    let own = fields.filter(|(_, field)| field.scope == scope);
    own.map(|(place, _)| FieldId(place as u16)).collect()
}

impl ClassEncoder {
    pub fn new(class: &EventClass, wire: ClassWire) -> Self {
        ClassEncoder {
            name: class.name.clone(),
            wire,
            fields: BODY.map(|scope| fields_of(class, scope)),
        }
    }

    /// Appends the body of an event.
    pub fn encode(&self, record: &dyn Record, out: &mut PacketBytes) -> Result<()> {
        let mut encoder = Encoder {
            out,
            slots: vec![0; usize::from(self.wire.slot_count)],
        };
        for (members, fields) in self.wire.scopes.iter().zip(&self.fields) {
            if !fits(members, fields.len()) {
                return Err(
                    refuse("the event's class lacks fields of the stream's context")
                        .found(format!("event '{}'", self.name)),
                );
            }
            encoder.out.align(super::wire::align_of(members));
            let mut fields = fields.iter();
            for (place, member) in members.iter().enumerate() {
                let encoded = match (member.is_carried, fields.as_slice().first()) {
                    (true, Some(next)) => encoder.carried(&members[place..], &record.value(*next)),
                    (true, None) => continue,
                    (false, _) => match fields.next() {
                        Some(field) => encoder.field(member, *field, record),
                        None => continue,
                    },
                };
                encoded.map_err(|error| self.within(&error, member))?;
            }
        }
        Ok(())
    }

    fn within(&self, error: &Error, member: &Member) -> Error {
        let place = format!("field '{}' of event '{}'", member.name, self.name);
        let found = error.value_found().unwrap_or_default();
        Error::new(error.kind(), error.what()).found(format!("{place}: {found}"))
    }
}

/// Appends the members of a packet's context.
pub(super) fn encode_members(
    members: &[Member],
    values: &[Value<'_>],
    out: &mut PacketBytes,
) -> Result<()> {
    let mut encoder = Encoder {
        out,
        slots: Vec::new(),
    };
    if !fits(members, values.len()) {
        return Err(
            refuse("the packet's context wants a value for each of its fields").found(format!(
                "{} for {}",
                values.len(),
                members.len()
            )),
        );
    }
    encoder.members(members, values.iter())
}

struct Encoder<'o> {
    out: &'o mut PacketBytes,
    /// Values of the integers that lengths and selectors refer to.
    slots: Vec<i64>,
}

impl Encoder<'_> {
    /// A top-level field; the common types are taken from the record without decoding a value.
    fn field(&mut self, member: &Member, field: FieldId, record: &dyn Record) -> Result<()> {
        let node = &member.node;
        match &node.kind {
            Kind::Int(int) => self.int(int, node.align_bits, record.i64(field)),
            Kind::Float { .. } => self.value(node, &Value::Float(record.f64(field))),
            Kind::Text(size_bytes) => self.text(record.text(field), *size_bytes as usize),
            Kind::CountedText(link) => self.counted_text(link, record.text(field)),
            // A value has the text as far as it is UTF-8; file names need not be.
            Kind::String => match (record.text(field), record.value(field)) {
                (bytes, Value::Text(_)) if !bytes.is_empty() => {
                    self.string(bytes);
                    Ok(())
                }
                (_, value) => self.value(node, &value),
            },
            _ => self.value(node, &record.value(field)),
        }
    }

    fn value(&mut self, node: &Node, value: &Value<'_>) -> Result<()> {
        match (&node.kind, value) {
            (Kind::Int(int), value) => match value.as_i64() {
                Some(number) => self.int(int, node.align_bits, number),
                None => Err(mismatch(value)),
            },
            (
                Kind::Float {
                    size_bits,
                    big_endian,
                },
                Value::Float(float),
            ) => {
                self.out.align(node.align_bits);
                let bits = match size_bits {
                    32 => u64::from((*float as f32).to_bits()),
                    _ => float.to_bits(),
                };
                self.out.integer(bits, *size_bits, *big_endian);
                Ok(())
            }
            (Kind::String, Value::Text(text)) => {
                self.string(text.as_bytes());
                Ok(())
            }
            (Kind::Text(size_bytes), Value::Text(text)) => {
                self.text(text.as_bytes(), *size_bytes as usize)
            }
            (Kind::CountedText(link), Value::Text(text)) => {
                self.counted_text(link, text.as_bytes())
            }
            (Kind::Wide { encoding, span }, Value::Text(text)) => self.wide(*encoding, span, text),
            (Kind::Blob { span, .. }, Value::Blob(bytes)) => self.blob(span, bytes),
            (Kind::Struct(members), Value::Struct(values)) => self.structure(members, values),
            (Kind::Array(element, count), value) => {
                self.elements(element, value, i64::from(*count))
            }
            (Kind::Sequence(element, link), value) => {
                let count = self.slot(link);
                self.elements(element, value, count.unwrap_or(length_of(value)))
            }
            (
                Kind::Variant {
                    selector,
                    choices,
                    is_optional,
                },
                value,
            ) => self.variant(selector, choices, *is_optional, value),
            (
                Kind::Optional {
                    selector,
                    content,
                    ranges,
                },
                value,
            ) => self.optional(selector, content, ranges.as_deref(), value),
            (_, value) => Err(mismatch(value)),
        }
    }

    fn optional(
        &mut self,
        selector: &Link,
        content: &Node,
        ranges: Option<&[(i64, i64)]>,
        value: &Value<'_>,
    ) -> Result<()> {
        let there = !matches!(value, Value::Absent);
        let says = |chosen| match ranges {
            None => chosen != 0,
            Some(ranges) => {
                let mut ranges = ranges.iter();
                ranges.any(|range| in_range(chosen, *range, selector.is_signed))
            }
        };
        let chosen = self.slot(selector);
        if chosen.is_some_and(|chosen| says(chosen) != there) {
            return Err(
                refuse("an optional field and its selector disagree").found(format!("{chosen:?}"))
            );
        }
        if there {
            self.value(content, value)
        } else {
            Ok(())
        }
    }

    fn int(&mut self, int: &Int, align_bits: u32, value: i64) -> Result<()> {
        let Integer {
            size_bits,
            signed,
            big_endian,
            ..
        } = int.integer;
        if !holds(&int.integer, value) {
            let (bits, sign) = (size_bits, if signed { "signed" } else { "unsigned" });
            return Err(refuse("a number does not fit into its field")
                .found(format!("{value} in {bits} {sign} bits")));
        }
        if let Some(slot) = int.slot
            && let Some(kept) = self.slots.get_mut(usize::from(slot))
        {
            *kept = value;
        }
        self.out.align(align_bits);
        self.out.integer(value as u64, size_bits, big_endian);
        Ok(())
    }

    fn slot(&self, link: &Link) -> Option<i64> {
        self.slots.get(usize::from(link.slot?)).copied()
    }

    /// A text in so many bytes, filled with zeros; what is longer is cut.
    fn string(&mut self, text: &[u8]) {
        self.out.append(until_zero(text));
        self.out.append(&[0]);
    }

    fn text(&mut self, text: &[u8], size_bytes: usize) -> Result<()> {
        let text = until_zero(text);
        let kept = &text[..text.len().min(size_bytes)];
        self.out.append(kept);
        let filled = self.out.bytes.len() + size_bytes - kept.len();
        self.out.bytes.zero_up_to(filled);
        Ok(())
    }

    fn counted_text(&mut self, link: &Link, text: &[u8]) -> Result<()> {
        let size = self.slot(link).unwrap_or(text.len() as i64);
        match usize::try_from(size)
            .ok()
            .filter(|size| *size >= until_zero(text).len())
        {
            Some(size) if size <= LENGTH_MAX => self.text(text, size),
            _ => Err(lengths(size, text.len())),
        }
    }

    fn wide(&mut self, encoding: WideEncoding, span: &Span, text: &str) -> Result<()> {
        let mut bytes = Vec::with_capacity(text.len() * 2);
        let mut unit = |value: u32| {
            let all = match encoding.big_endian {
                true => (value << (32 - 8 * u32::from(encoding.unit_bytes))).to_be_bytes(),
                false => value.to_le_bytes(),
            };
            bytes.extend_from_slice(&all[..usize::from(encoding.unit_bytes)]);
        };
        for c in text.chars().take_while(|c| *c != '\0') {
            match encoding.unit_bytes {
                2 => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|half| unit((*half).into())),
                _ => unit(c.into()),
            }
        }
        let size = match span {
            Span::Terminated => {
                unit(0);
                bytes.len()
            }
            Span::Bytes(size) => *size as usize,
            Span::Counted(link) => {
                let size = self.slot(link).and_then(|size| usize::try_from(size).ok());
                size.filter(|size| *size <= LENGTH_MAX)
                    .unwrap_or(bytes.len())
            }
        };
        if matches!(span, Span::Counted(_)) && size < bytes.len() {
            return Err(lengths(size as i64, bytes.len()));
        }
        bytes.resize(size, 0);
        self.out.append(&bytes);
        Ok(())
    }

    fn blob(&mut self, span: &Span, bytes: &[u8]) -> Result<()> {
        let size = match span {
            Span::Bytes(size) => Some(i64::from(*size)),
            Span::Counted(link) => self.slot(link),
            Span::Terminated => None,
        };
        match size.is_none_or(|size| size == bytes.len() as i64) {
            true => self.out.append(bytes),
            false => return Err(lengths(size.unwrap_or_default(), bytes.len())),
        }
        Ok(())
    }

    fn structure(&mut self, members: &[Member], values: &[(&str, Value<'_>)]) -> Result<()> {
        if !fits(members, values.len()) {
            return Err(lengths(members.len() as i64, values.len()));
        }
        self.out.align(super::wire::align_of(members));
        self.members(members, values.iter().map(|(_, value)| value))
    }

    /// The members, of which those that are fields have these values.
    fn members<'v>(
        &mut self,
        members: &[Member],
        values: impl Iterator<Item = &'v Value<'v>>,
    ) -> Result<()> {
        let mut values = values.peekable();
        for (place, member) in members.iter().enumerate() {
            match (member.is_carried, values.peek()) {
                (true, Some(next)) => self.carried(&members[place..], next)?,
                (false, Some(value)) => {
                    self.value(&member.node, value)?;
                    values.next();
                }
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// The first of these members, which is no field of the record, from the value of the first one
    /// that is. Where nothing of that needs it, nobody reads it.
    fn carried(&mut self, members: &[Member], value: &Value<'_>) -> Result<()> {
        let Some((member, rest)) = members.split_first() else {
            return Ok(());
        };
        let field = rest.iter().find(|member| !member.is_carried);
        let said = field.and_then(|field| carried_value(&field.node, value, &member.name));
        match &member.node.kind {
            Kind::Int(int) => self.int(int, member.node.align_bits, said.unwrap_or(0)),
            _ => Err(mismatch(value)),
        }
    }

    fn elements(&mut self, element: &Node, value: &Value<'_>, count: i64) -> Result<()> {
        self.out.align(element.align_bits);
        if length_of(value) != count {
            return Err(lengths(count, length_of(value) as usize));
        }
        match value {
            Value::Array(elements) => elements.iter().try_for_each(|e| self.value(element, e)),
            Value::Blob(bytes) => {
                self.out.append(bytes);
                Ok(())
            }
            Value::Text(text) => self.text(text.as_bytes(), text.len()),
            value => Err(mismatch(value)),
        }
    }

    fn variant(
        &mut self,
        selector: &Link,
        choices: &[Choice],
        is_optional: bool,
        value: &Value<'_>,
    ) -> Result<()> {
        let Some((choice, content)) = chosen(choices, is_optional, value) else {
            return Err(match value {
                Value::Struct(chosen) if chosen.len() == 1 => {
                    refuse("a variant has no such choice").found(format!("'{}'", chosen[0].0))
                }
                value => mismatch(value),
            });
        };
        let says = |selected| {
            choice
                .ranges
                .iter()
                .any(|range| in_range(selected, *range, selector.is_signed))
        };
        let selected = self.slot(selector);
        if selected.is_some_and(|selected| !says(selected)) {
            return Err(refuse("a variant's choice and its selector disagree")
                .found(format!("'{}' by {selected:?}", choice.name)));
        }
        self.value(&choice.node, content)
    }
}

/// No text or blob of an event is longer: a length from a damaged trace must not fill the memory.
const LENGTH_MAX: usize = 1 << 28;

/// Whether an integer has room for a value's bits.
fn holds(integer: &Integer, value: i64) -> bool {
    let unused = 64 - u32::from(integer.size_bits);
    match integer.signed {
        true => value << unused >> unused == value,
        false => (value as u64) << unused >> unused == value as u64,
    }
}

/// Whether so many values are one for each member that is a field.
fn fits(members: &[Member], values: usize) -> bool {
    let fields = members.iter().filter(|member| !member.is_carried);
    fields.count() == values
}

fn until_zero(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == 0);
    &text[..end.unwrap_or(text.len())]
}

fn mismatch(value: &Value<'_>) -> Error {
    refuse("a value is of another type than its field").found(format!("{value:?}"))
}

fn lengths(says: i64, has: usize) -> Error {
    refuse("a length and what it counts disagree").found(format!("{says} and {has}"))
}
