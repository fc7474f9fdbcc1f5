//! Open any trace and read one time-ordered stream of typed events, with losses as items.
//!
//! # How to use it
//! Open a [`Trace`], look at its [`classes`](Trace::classes), bind the fields that you need once
//! ([`event::EventClass::field`]), then walk a [`Cursor`]. Reading a bound field of a fixed layout
//! is a load at a known offset.
//!
//! # Design constraints
//! - Readers never panic, loop or allocate without bound on hostile bytes: what was understood is
//!   returned, what was not is an [`Item::Damage`] that names file and offset.
//! - A lost event is data: [`Item::Lost`] stands at its place in time.

mod ctf_cursor;
mod ctf_trace;
mod cursor;
mod memory;
mod open;
mod options;
mod symbols;

use std::collections::BTreeMap;

use event::{ClassId, Clock, Cpu, Duration, EventClass, Instant, TimeRange};

use ctf_trace::CtfTrace;

pub use cursor::{Cursor, Damage, EventView, Item, LossCause, Lost};
pub use memory::{MemoryEvent, MemoryTrace};
pub use options::{ClockFacts, Disorder, OpenOptions, PartInfo, Root, StreamInfo};
pub use symbols::Symbols;

/// Facts of the machine and the tracer that a trace carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceInfo {
    /// The clock that all instants of the trace are on.
    pub clock: Clock,
    /// Wall clock (since 1970, UTC) minus trace clock.
    pub wall_offset: Duration,
    /// `env` of the trace: `hostname`, `kernel_release`, `tracer_name`, …
    pub environment: BTreeMap<String, String>,
    /// The CPUs that have a stream, in order.
    pub cpus: Vec<Cpu>,
}

/// An open trace.
pub struct Trace {
    info: TraceInfo,
    classes: Vec<EventClass>,
    symbols: Symbols,
    source: Source,
}

/// Where events come from; hidden, so that readers can change behind the same face.
enum Source {
    Memory {
        events: Vec<MemoryEvent>,
        losses: Vec<Lost>,
    },
    Ctf(CtfTrace),
}

impl Trace {
    /// Facts of the machine and the tracer.
    pub fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// `env` of the trace that events of `class` come from, where several lie below one root.
    pub fn environment_of(&self, class: ClassId) -> &BTreeMap<String, String> {
        match &self.source {
            Source::Memory { .. } => &self.info.environment,
            Source::Ctf(ctf) => ctf.environment_of(class).unwrap_or(&self.info.environment),
        }
    }

    /// Whether events of `class` have a payload, be it one without fields.
    pub fn has_payload(&self, class: ClassId) -> bool {
        match &self.source {
            Source::Memory { .. } => true,
            Source::Ctf(ctf) => ctf.has_payload(class),
        }
    }

    /// All event classes; a [`event::ClassId`] is an index into this list.
    pub fn classes(&self) -> &[EventClass] {
        &self.classes
    }

    /// Kernel symbols of the traced machine; empty when the trace carries none.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The CTF traces that were opened as one, the kernel's first; none for a trace in memory.
    pub fn parts(&self) -> Vec<PartInfo> {
        match &self.source {
            Source::Memory { .. } => Vec::new(),
            Source::Ctf(ctf) => ctf.part_infos(),
        }
    }

    /// Which of [`Trace::parts`] the events of `class` come from, as an index; zero where there is
    /// only one.
    pub fn part_of(&self, class: ClassId) -> usize {
        match &self.source {
            Source::Memory { .. } => 0,
            Source::Ctf(ctf) => ctf.part_index(class).unwrap_or(0),
        }
    }

    /// From the first packet's begin to the last one's end, without reading events; none when
    /// nobody says.
    pub fn range(&self) -> Option<TimeRange> {
        match &self.source {
            Source::Memory { events, .. } => {
                let (first, last) = (events.first()?, events.last()?);
                Some(TimeRange {
                    begin: first.time,
                    end: last.time + Duration::from_ns(1),
                })
            }
            Source::Ctf(ctf) => ctf.range(),
        }
    }

    /// The offset that turns an instant of this trace into nanoseconds since 1970 (UTC).
    pub fn wall_ns(&self, instant: Instant) -> i64 {
        (instant + self.info.wall_offset).as_ns()
    }
}
