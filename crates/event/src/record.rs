//! One event behind a face that does not say how it is stored.

use crate::{ClassId, Cpu, FieldId, Instant, Value};

/// One event, however it is stored: what a filter, or any other question that was bound to an
/// [`EventClass`](crate::EventClass) before, may ask of it.
///
/// Fields are those of the event's own class; asking for a field of another class, or as another
/// type than it has, gives the type's zero, never a panic.
pub trait Record {
    /// Its class: an index into the list of classes of its trace.
    fn class(&self) -> ClassId;
    /// When it happened; none when its stream has no clock.
    fn instant(&self) -> Option<Instant>;
    /// The CPU of its stream.
    fn cpu(&self) -> Option<Cpu>;
    /// An integer field, sign-extended when it is signed; an unsigned one keeps its bits.
    fn i64(&self, field: FieldId) -> i64;
    /// A floating point field.
    fn f64(&self, field: FieldId) -> f64;
    /// The bytes of a text field up to its end.
    fn text(&self, field: FieldId) -> &[u8];
    /// Any field, decoded whole: this may allocate.
    fn value(&self, field: FieldId) -> Value<'_>;
}
