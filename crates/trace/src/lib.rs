//! Open any trace and read one time-ordered stream of typed events, with losses as items.
//!
//! # How to use it
//! Open a [`Trace`], look at its [`classes`](Trace::classes), bind the fields that you need once
//! ([`event::EventClass::field`]), then walk a [`Cursor`]. Reading a bound field of a fixed layout
//! is a load at a known offset. [`Cursor::each`] is the fastest walk of one thread;
//! [`Trace::map_slices`] walks with several.
//!
//! # Design constraints
//! - Readers never panic, loop or allocate without bound on hostile bytes: what was understood is
//!   returned, what was not is an [`Item::Damage`] that names file and offset.
//! - A lost event is data: [`Item::Lost`] stands at its place in time.
//!
//! # Losses
//! Whatever is not known is an [`Item::Lost`] with a CPU (none: any), a range and a
//! [cause](LossCause): events that the tracer discarded or overwrote; packets that are missing by
//! their sequence numbers; bytes, pages, packets and lines that make no sense; a file that ends
//! inside of one of these; a stream of which there is no file, an empty one, or a link that leads
//! nowhere; time between recordings of a kernel that do not overlap. Each [`Item::Damage`] has a
//! loss beside it, so who only wants to know which time is unknown looks at losses alone.
//!
//! - A loss stands at its begin, behind the last event of its stream before it: whoever follows
//!   other streams meanwhile knows of it beforehand. In ftrace's text, a line tells of it only
//!   behind what other CPUs did. Streams that are missing stand before all events.
//! - A range reaches from the last event, or packet, before it to the first behind it. Where a
//!   stream has none, it is the begin or the end of the trace.
//! - Bytes are not guarded by sums. A packet of CTF, or a compressed chunk of pages, in which
//!   something makes no sense is doubted from its begin: such a loss begins before events that were
//!   handed out. Who cannot take them back asks [`Trace::losses`] before the walk. Plain pages and
//!   lines are looked at before any of their events is handed out.
//! - What cannot be seen is not said: another value in a field, a file that ends exactly where a
//!   packet, a page or a line does, a CPU that trace-cmd left out of its table.

mod beside;
mod carried;
mod ctf_cursor;
mod ctf_trace;
mod cursor;
mod ftrace_cursor;
mod ftrace_trace;
mod held;
mod look;
mod memory;
mod merge;
mod missing;
mod open;
mod options;
mod own_time;
mod recorded;
mod silence;
mod slices;
mod symbols;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use event::{ClassId, Clock, Cpu, Duration, EventClass, Instant, TimeRange};

use ctf_trace::CtfTrace;
use ftrace_trace::FtraceTrace;

pub use carried::{Batch, Carry};
pub use ctf::reader::{Violation, Violations};
pub use cursor::{Cursor, Damage, EventView, Item, LossCause, Lost, LostFrom, Place};
pub use look::LOOK_EVENTS_MAX;
pub use memory::{MemoryEvent, MemoryTrace};
pub use missing::{FILTERED_EVENTS, RECORDED_CPUS, TRACKED_TASKS};
pub use options::{ClassFacts, ClockFacts, Disorder, OpenOptions, PartInfo, Root, StreamInfo};
pub use symbols::{NO_FUNCTION, Symbols};

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
    classes: Arc<[EventClass]>,
    /// Read when they are asked for: few need them, and they are many.
    symbols: OnceLock<Symbols>,
    /// The classes of its first events, once somebody asked.
    met: OnceLock<look::Met>,
    /// See [`LossCause::Silent`].
    silences: OnceLock<Vec<Lost>>,
    /// What was opened: the symbols may lie there.
    roots: Vec<PathBuf>,
    source: Source,
}

/// Where events come from; hidden, so that readers can change behind the same face.
enum Source {
    Memory {
        events: Vec<MemoryEvent>,
        losses: Vec<Lost>,
    },
    Ctf(CtfTrace),
    Ftrace(FtraceTrace),
    Both(CtfTrace, FtraceTrace),
}

impl Source {
    fn ctf(&self) -> Option<&CtfTrace> {
        match self {
            Source::Ctf(ctf) | Source::Both(ctf, _) => Some(ctf),
            _ => None,
        }
    }

    fn ftrace(&self) -> Option<&FtraceTrace> {
        match self {
            Source::Ftrace(ftrace) | Source::Both(_, ftrace) => Some(ftrace),
            _ => None,
        }
    }

    /// The recording of ftrace that `class` belongs to, if it belongs to one.
    fn ftrace_of(&self, class: ClassId) -> Option<(&FtraceTrace, usize)> {
        let ftrace = self.ftrace()?;
        Some((ftrace, ftrace.part_index(class)?))
    }
}

impl Trace {
    /// Walks over the trace from now on end early once `stop` is raised, also where they pass over
    /// events without handing out any. They end as at the end of the trace: who raised it knows.
    /// A trace in memory is walked to its end.
    pub fn stop_when(&mut self, stop: &Arc<AtomicBool>) {
        if let Source::Ctf(ctf) | Source::Both(ctf, _) = &mut self.source {
            ctf.stop = Some(Arc::clone(stop));
        }
        if let Source::Ftrace(ftrace) | Source::Both(_, ftrace) = &mut self.source {
            ftrace.stop = Some(Arc::clone(stop));
        }
    }

    /// Facts of the machine and the tracer.
    pub fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// `env` of the trace that events of `class` come from, where several lie below one root.
    pub fn environment_of(&self, class: ClassId) -> &BTreeMap<String, String> {
        let of_ftrace = self.source.ftrace().and_then(|f| f.environment_of(class));
        let of_ctf = || self.source.ctf().and_then(|ctf| ctf.environment_of(class));
        of_ftrace.or_else(of_ctf).unwrap_or(&self.info.environment)
    }

    /// Whether events of `class` have a payload, be it one without fields.
    pub fn has_payload(&self, class: ClassId) -> bool {
        match (self.source.ftrace_of(class), self.source.ctf()) {
            (None, Some(ctf)) => ctf.has_payload(class),
            _ => true,
        }
    }

    /// What the trace says of a class besides its fields.
    pub fn class_facts(&self, class: ClassId) -> ClassFacts {
        let of_ctf = match self.source.ftrace_of(class) {
            Some(_) => None,
            None => self.source.ctf().and_then(|ctf| ctf.class_facts(class)),
        };
        // What is no CTF always has a clock.
        of_ctf.unwrap_or(ClassFacts {
            is_timed: true,
            ..ClassFacts::default()
        })
    }

    /// All event classes; a [`event::ClassId`] is an index into this list.
    pub fn classes(&self) -> &[EventClass] {
        &self.classes
    }

    /// Kernel symbols of the traced machine; empty when the trace carries none that can be read.
    pub fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| {
            let mut kept = self.roots.iter().map(|root| open::symbols(root));
            if let Some(symbols) = kept.find(|symbols| !symbols.is_empty()) {
                return symbols;
            }
            let text = self.source.ftrace().map(FtraceTrace::kallsyms);
            Symbols::from_kallsyms(&text.and_then(Result::ok).unwrap_or_default())
        })
    }

    /// The traces that were opened as one, the kernel's CTF first; none for a trace in memory.
    pub fn parts(&self) -> Vec<PartInfo> {
        let ctf = self.source.ctf().map(CtfTrace::part_infos);
        let ftrace = self.source.ftrace().map(FtraceTrace::part_infos);
        ctf.into_iter().chain(ftrace).flatten().collect()
    }

    /// Where metadata breaks its standard and was read all the same: the part's path as in
    /// [`Trace::parts`], and the places.
    pub fn violations(&self) -> impl Iterator<Item = (&str, &Violations)> {
        let parts = self.source.ctf().into_iter().flat_map(|ctf| &ctf.parts);
        let of_part = parts.map(|part| {
            let path = part.prefix.trim_end_matches('/');
            (path, &part.files.schema().violations)
        });
        of_part.filter(|(_, violations)| violations.count > 0)
    }

    /// Which of [`Trace::parts`] the events of `class` come from, as an index; zero where there is
    /// only one.
    pub fn part_of(&self, class: ClassId) -> usize {
        let ctf = self.source.ctf();
        match self.source.ftrace_of(class) {
            Some((_, part)) => ctf.map_or(0, |ctf| ctf.parts.len()) + part,
            None => ctf.and_then(|ctf| ctf.part_index(class)).unwrap_or(0),
        }
    }

    /// From the first packet's begin to the last one's end, without reading all events; none when
    /// nobody says.
    pub fn range(&self) -> Option<TimeRange> {
        if let Source::Memory { events, .. } = &self.source {
            let (first, last) = (events.first()?, events.last()?);
            return Some(TimeRange {
                begin: first.time,
                end: last.time + Duration::from_ns(1),
            });
        }
        let ctf = self.source.ctf().and_then(CtfTrace::range);
        let ftrace = self.source.ftrace().and_then(FtraceTrace::range);
        match (ctf, ftrace) {
            (Some(ctf), Some(ftrace)) => Some(TimeRange {
                begin: ctf.begin.min(ftrace.begin),
                end: ctf.end.max(ftrace.end),
            }),
            (ctf, ftrace) => ctf.or(ftrace),
        }
    }

    /// Time in which no recording of the kernel ran, in order.
    fn silences(&self) -> &[Lost] {
        self.silences.get_or_init(|| {
            let ctf = self.source.ctf().map(CtfTrace::covered);
            let ftrace = self.source.ftrace().map(FtraceTrace::covered);
            let parts: Vec<_> = ctf.into_iter().chain(ftrace).flatten().collect();
            silence::silences(&parts)
        })
    }

    /// The offset that turns an instant of this trace into nanoseconds since 1970 (UTC).
    pub fn wall_ns(&self, instant: Instant) -> i64 {
        (instant + self.info.wall_offset).as_ns()
    }
}
