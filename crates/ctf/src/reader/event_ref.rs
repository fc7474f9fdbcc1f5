//! One decoded event: its fields by their bound places.

use std::borrow::Cow;

use event::{ClassId, FieldId, Value};

use super::bits::{bytes_at, until_zero};
use super::float;
use super::layout::{At, BodyLayout, Load, Node, NodeKind, Place};
use super::stream::StreamReader;
use super::walk::Content;

/// An event, borrowed from the reader that stands on it.
#[derive(Clone, Copy, Debug)]
pub struct EventRef<'r> {
    pub(super) class: ClassId,
    pub(super) layout: &'r BodyLayout,
    pub(super) reader: &'r StreamReader<'r>,
    /// What is in memory from the body on.
    pub(super) body: &'r [u8],
}

impl<'r> EventRef<'r> {
    /// Its class: an index into [`Schema::classes`](super::Schema::classes), added to the first
    /// number that the reader was given.
    #[inline]
    pub fn class(&self) -> ClassId {
        ClassId(self.class.0.wrapping_add(self.reader.first_class()))
    }

    /// The CPU of its packet, or the one that it names itself.
    #[inline]
    pub fn cpu(&self) -> Option<u32> {
        let own = || u32::try_from(self.i64(self.layout.cpu?)).ok();
        self.reader.cpu().or_else(own)
    }

    /// Its time in ticks of its stream's own clock.
    pub fn ticks(&self) -> u64 {
        self.reader.ticks()
    }

    /// Whether its stream has a clock.
    pub fn is_timed(&self) -> bool {
        self.reader.is_timed()
    }

    #[inline]
    fn place(&self, field: FieldId) -> Option<&'r Place> {
        let place = usize::from(field.0);
        let own = &self.layout.places;
        own.get(place)
            .or_else(|| self.reader.packet_place(place - own.len()))
    }

    #[inline]
    fn position(&self, field: FieldId, place: &Place) -> Option<u64> {
        match place.at {
            At::Body { offset_bits } => Some(self.reader.body() + u64::from(offset_bits)),
            At::Scope { body, offset_bits } => {
                Some(self.reader.base_of(body) + u64::from(offset_bits))
            }
            At::Walked => self.reader.walked(usize::from(field.0)),
            At::Packet => self.reader.packet_position(place.member),
        }
    }

    #[inline]
    fn content(&self, place: &Place) -> Content<'r> {
        match place.at {
            At::Packet => self.reader.packet_content(),
            _ => self.reader.content(),
        }
    }

    fn node(&self, place: &Place) -> Option<&'r Node> {
        let scope = match place.at {
            At::Packet => self.reader.packet_context()?,
            _ => {
                &self
                    .layout
                    .scopes
                    .get(usize::from(place.body))?
                    .as_ref()?
                    .node
            }
        };
        let NodeKind::Struct(members) = &scope.kind else {
            return None;
        };
        members
            .get(usize::from(place.member))
            .map(|member| &member.node)
    }

    /// An integer, sign-extended when it is signed; zero when the field is no integer.
    #[inline]
    pub fn i64(&self, field: FieldId) -> i64 {
        self.integer(field).unwrap_or(0) as i64
    }

    #[inline]
    fn integer(&self, field: FieldId) -> Option<u64> {
        let number = usize::from(field.0);
        let own = &self.layout.places;
        let Some(place) = own.get(number) else {
            return self.reader.packet_number(number - own.len());
        };
        if let Load::Body { load, offset_bytes } = place.load
            && let Some(word) = bytes_at(self.body, offset_bytes as usize)
        {
            return Some(load.of_word(word));
        }
        self.placed_integer(field, place)
    }

    #[inline(never)]
    fn placed_integer(&self, field: FieldId, place: &Place) -> Option<u64> {
        let position = self.position(field, place)?;
        place.load.integer(self.content(place).bytes, position)
    }

    /// A floating point number; zero when the field is none.
    pub fn f64(&self, field: FieldId) -> f64 {
        self.float(field).unwrap_or(0.0)
    }

    fn float(&self, field: FieldId) -> Option<f64> {
        let place = self.place(field)?;
        let NodeKind::Float { load } = &self.node(place)?.kind else {
            return None;
        };
        let position = self.position(field, place)?;
        float::read(self.content(place).bytes, *load, position)
    }

    /// The bytes of a text up to its end; empty when the field is no text.
    #[inline]
    pub fn text(&self, field: FieldId) -> &'r [u8] {
        self.text_bytes(field).unwrap_or_default()
    }

    #[inline]
    fn text_bytes(&self, field: FieldId) -> Option<&'r [u8]> {
        let place = self.place(field)?;
        if let Load::BodyText {
            size_bytes,
            offset_bytes,
        } = place.load
        {
            let bytes = self.body.get(offset_bytes as usize..)?;
            return bytes.get(..size_bytes as usize).map(until_zero);
        }
        self.placed_text(field, place)
    }

    fn placed_text(&self, field: FieldId, place: &Place) -> Option<&'r [u8]> {
        let position = self.position(field, place)?;
        let content = self.content(place);
        match place.load {
            Load::String => content.string(position).ok().map(|(text, _)| text),
            Load::Text { size_bytes } => content.text(position, size_bytes),
            Load::Int(_) | Load::Bytes(_) | Load::Body { .. } | Load::BodyText { .. } => None,
            Load::Other => match &self.node(place)?.kind {
                NodeKind::Sequence {
                    slot, text: true, ..
                } => {
                    let length = self.reader.state().slots.get(usize::from(*slot))?;
                    content.text(position, *length).map(until_zero)
                }
                _ => None,
            },
        }
    }

    /// Any field, decoded whole. A variant is a structure with the chosen member alone. What
    /// cannot be decoded is an empty text.
    pub fn value(&self, field: FieldId) -> Value<'r> {
        self.decoded(field)
            .unwrap_or(Value::Text(Cow::Borrowed("")))
    }

    fn decoded(&self, field: FieldId) -> Option<Value<'r>> {
        let place = self.place(field)?;
        let node = self.node(place)?;
        let position = self.position(field, place)?;
        let mut state = self.reader.state().clone();
        let content = self.content(place);
        state.refuel(content.end_bits);
        let decoded = content.value(node, position, &mut state);
        decoded.ok().map(|(value, _)| value)
    }
}
