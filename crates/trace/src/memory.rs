//! A trace that lives in memory: for tests and for events that were never on disk.

use std::sync::OnceLock;

use event::{ClassId, Cpu, EventClass, FieldId, Instant, Value};

use crate::{Lost, Source, Symbols, Trace, TraceInfo};

/// One event with a value for each field of its class, in order.
#[derive(Clone, Debug)]
pub struct MemoryEvent {
    /// When it happened.
    pub time: Instant,
    /// On which CPU.
    pub cpu: Option<Cpu>,
    /// Its class.
    pub class: ClassId,
    /// A value for each field of the class.
    pub values: Vec<Value<'static>>,
}

impl MemoryEvent {
    pub(crate) fn integer(&self, field: FieldId) -> i64 {
        self.values
            .get(usize::from(field.0))
            .and_then(Value::as_i64)
            .unwrap_or(0)
    }

    pub(crate) fn float(&self, field: FieldId) -> f64 {
        match self.values.get(usize::from(field.0)) {
            Some(Value::Float(float)) => *float,
            _ => 0.0,
        }
    }

    pub(crate) fn text(&self, field: FieldId) -> &[u8] {
        let value = self
            .values
            .get(usize::from(field.0))
            .and_then(Value::as_text);
        value.unwrap_or_default().as_bytes()
    }

    pub(crate) fn value(&self, field: FieldId) -> Value<'_> {
        self.values
            .get(usize::from(field.0))
            .cloned()
            .unwrap_or(Value::Unsigned(0))
    }
}

/// Builds a [`Trace`] from events in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryTrace {
    /// Facts of the machine.
    pub info: TraceInfo,
    /// The classes, each at the index of its id.
    pub classes: Vec<EventClass>,
    /// The events, in any order.
    pub events: Vec<MemoryEvent>,
    /// Where events are missing, in any order; each stands behind the events of its begin.
    pub losses: Vec<Lost>,
    /// Kernel symbols.
    pub symbols: Symbols,
}

impl MemoryTrace {
    /// The trace, its events sorted by time (events of one instant keep their order).
    pub fn into_trace(mut self) -> Trace {
        self.events.sort_by_key(|event| event.time);
        self.losses.sort_by_key(|lost| lost.range.begin);
        Trace {
            info: self.info,
            classes: self.classes.into(),
            symbols: self.symbols.into(),
            met: OnceLock::new(),
            silences: OnceLock::new(),
            roots: Vec::new(),
            source: Source::Memory {
                events: self.events,
                losses: self.losses,
            },
        }
    }
}
