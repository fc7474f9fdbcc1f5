//! Events that are held in memory: of a trace that lives there, or on their way to another thread.

use event::{ClassId, Cpu, FieldId, Value};

use crate::carried::CarriedEvent;
use crate::memory::MemoryEvent;

/// An event on which no reader of a file stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HeldEvent<'a> {
    Memory(&'a MemoryEvent),
    Carried(CarriedEvent<'a>),
}

impl<'a> HeldEvent<'a> {
    #[inline]
    pub fn class(&self) -> ClassId {
        match self {
            HeldEvent::Memory(event) => event.class,
            HeldEvent::Carried(event) => event.class(),
        }
    }

    #[inline]
    pub fn cpu(&self) -> Option<Cpu> {
        match self {
            HeldEvent::Memory(event) => event.cpu,
            HeldEvent::Carried(event) => event.cpu(),
        }
    }

    #[inline]
    pub fn integer(&self, field: FieldId) -> i64 {
        match self {
            HeldEvent::Memory(event) => event.integer(field),
            HeldEvent::Carried(event) => event.integer(field),
        }
    }

    pub fn float(&self, field: FieldId) -> f64 {
        match self {
            HeldEvent::Memory(event) => event.float(field),
            HeldEvent::Carried(event) => event.float(field),
        }
    }

    #[inline]
    pub fn text(&self, field: FieldId) -> &'a [u8] {
        match self {
            HeldEvent::Memory(event) => event.text(field),
            HeldEvent::Carried(event) => event.text(field),
        }
    }

    pub fn value(&self, field: FieldId) -> Value<'a> {
        match self {
            HeldEvent::Memory(event) => event.value(field),
            HeldEvent::Carried(event) => event.value(field),
        }
    }
}
