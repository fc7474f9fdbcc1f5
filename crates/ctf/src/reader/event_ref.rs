//! One decoded event: its fields by their bound places.

use std::borrow::Cow;

use event::{ClassId, FieldId, Value};

use super::bits::until_zero;
use super::float;
use super::layout::{At, ClassLayout, Load, Node, NodeKind, Place};
use super::walk::{Content, State};

/// An event, borrowed from the reader that stands on it.
#[derive(Clone, Copy, Debug)]
pub struct EventRef<'r> {
    pub(super) class: &'r ClassLayout,
    pub(super) packet_context: Option<&'r Node>,
    /// Where the event's scopes are.
    pub(super) content: Content<'r>,
    /// Where the packet's context is.
    pub(super) packet_content: Content<'r>,
    pub(super) state: &'r State,
    /// Where the scopes of the body begin.
    pub(super) bases: &'r [u64; 3],
    /// Where walked fields begin, by field.
    pub(super) walked: &'r [u64],
    /// Where the members of the packet's context begin.
    pub(super) packet_positions: &'r [u64],
    pub(super) timed: bool,
}

impl<'r> EventRef<'r> {
    /// Its class: an index into [`Schema::classes`].
    pub fn class(&self) -> ClassId {
        self.class.class
    }

    /// Whether its stream has a clock.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    fn position(&self, field: FieldId, place: &Place) -> Option<u64> {
        match place.at {
            At::Scope { body, offset_bits } => {
                Some(self.bases[usize::from(body)] + u64::from(offset_bits))
            }
            At::Walked => self.walked.get(usize::from(field.0)).copied(),
            At::Packet => self
                .packet_positions
                .get(usize::from(place.member))
                .copied(),
        }
    }

    #[inline]
    fn content(&self, place: &Place) -> &Content<'r> {
        match place.at {
            At::Packet => &self.packet_content,
            _ => &self.content,
        }
    }

    fn node(&self, place: &Place) -> Option<&'r Node> {
        let scope = match place.at {
            At::Packet => self.packet_context?,
            _ => {
                &self
                    .class
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
        let place = self.class.places.get(usize::from(field.0))?;
        let position = self.position(field, place)?;
        match place.load {
            Load::Int(load) => load.read(self.content.bytes, position),
            Load::Other => match &self.node(place)?.kind {
                NodeKind::Int(int) => int.load.read(self.content(place).bytes, position),
                _ => None,
            },
            _ => None,
        }
    }

    /// A floating point number; zero when the field is none.
    pub fn f64(&self, field: FieldId) -> f64 {
        self.float(field).unwrap_or(0.0)
    }

    fn float(&self, field: FieldId) -> Option<f64> {
        let place = self.class.places.get(usize::from(field.0))?;
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

    fn text_bytes(&self, field: FieldId) -> Option<&'r [u8]> {
        let place = self.class.places.get(usize::from(field.0))?;
        let position = self.position(field, place)?;
        let content = self.content(place);
        match place.load {
            Load::String => content.string(position).ok().map(|(text, _)| text),
            Load::Text { size_bytes } => content.text(position, size_bytes),
            Load::Int(_) => None,
            Load::Other => match &self.node(place)?.kind {
                NodeKind::Sequence {
                    slot, text: true, ..
                } => {
                    let length = self.state.slots.get(usize::from(*slot))?;
                    content.text(position, *length).map(until_zero)
                }
                NodeKind::String => content.string(position).ok().map(|(text, _)| text),
                NodeKind::Array {
                    count, text: true, ..
                } => content.text(position, *count),
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
        let place = self.class.places.get(usize::from(field.0))?;
        let node = self.node(place)?;
        let position = self.position(field, place)?;
        let mut state = self.state.clone();
        let content = self.content(place);
        state.refuel(content.end_bits);
        let decoded = content.value(node, position, &mut state);
        decoded.ok().map(|(value, _)| value)
    }
}
