//! The time-ordered walk over all streams of a trace.

use event::{ClassId, Cpu, FieldId, Instant, Result, TimeRange, Value};

use crate::beside::BesideCursor;
use crate::ctf_cursor::{CtfCursor, Share};
use crate::ctf_trace::CtfTrace;
use crate::ftrace_cursor::{FtraceCursor, FtraceEvent};
use crate::held::HeldEvent;
use crate::memory::MemoryEvent;
use crate::{Disorder, Source, Trace};

/// Why events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossCause {
    /// The tracer's buffer was full and it dropped new events.
    Discarded,
    /// The reader was overtaken inside the window.
    Overrun,
    /// The packet's counters do not say.
    Unknown,
    /// Bytes could not be understood: an [`Item::Damage`] names them.
    Damaged,
    /// The file ends inside of a packet, a page or a line.
    Cut,
    /// A stream has no file, an empty one, or a link that leads nowhere.
    Missing,
    /// Recordings of a kernel that were opened together do not overlap: none of them ran then.
    Silent,
}

/// Of which kind of streams something is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LostFrom {
    /// What was recorded.
    #[default]
    Recording,
    /// What a watch saw: the classes of [`event::evidence`].
    Evidence,
    /// Nobody knows: the trace has both, and the stream does not say which it is.
    Either,
}

/// Time of which events are not known: the tracer lost them, they cannot be read, or their stream
/// is missing. Overwritten history before the window is no loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The CPU, when its stream has one; else events of any CPU may be missing.
    pub cpu: Option<Cpu>,
    /// They were lost inside this range, with both of its ends.
    pub range: TimeRange,
    /// How many, when the tracer counted them.
    pub count: Option<u64>,
    /// Why.
    pub cause: LossCause,
    /// Of which streams.
    pub from: LostFrom,
}

impl Lost {
    /// Whether it may hide what tasks, CPUs and programs did. What only a watch's evidence lost
    /// does not: that tells of its hits.
    pub fn hides_what_happened(&self) -> bool {
        self.from != LostFrom::Evidence
    }

    /// Where it stands: behind the events of the instant at which it begins, and before whatever
    /// other streams did meanwhile.
    pub(crate) fn stands_ns(&self) -> i64 {
        let TimeRange { begin, end } = self.range;
        begin.as_ns().saturating_add(1).min(end.as_ns())
    }
}

/// Bytes that could not be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the trace.
    pub file: String,
    /// The offset of the first byte that was not understood.
    pub offset_bytes: u64,
    /// What was expected and what was found.
    pub reason: String,
}

/// One step of the walk.
#[derive(Debug)]
pub enum Item<'a> {
    /// An event.
    Event(EventView<'a>),
    /// Events are missing here.
    Lost(Lost),
    /// The rest of a packet or stream could not be read: where, and why. An [`Item::Lost`] says
    /// which time that concerns.
    Damage(Damage),
}

/// One event, borrowed from the cursor.
#[derive(Debug)]
pub struct EventView<'a> {
    pub(crate) time: Instant,
    pub(crate) payload: Payload<'a>,
}

/// The bytes behind a view; hidden, so that readers can change behind the same face.
#[derive(Debug)]
#[repr(u8)] // a tag of its own: one that hides in a variant takes longer to look at
pub(crate) enum Payload<'a> {
    Held(HeldEvent<'a>),
    Ctf(ctf::reader::EventRef<'a>),
    Ftrace(FtraceEvent<'a>),
}

impl<'a> EventView<'a> {
    /// When it happened.
    #[inline]
    pub fn time(&self) -> Instant {
        self.time
    }

    /// Whether its stream has a clock; without one its time means nothing.
    #[inline]
    pub fn is_timed(&self) -> bool {
        match &self.payload {
            Payload::Held(_) | Payload::Ftrace(_) => true,
            Payload::Ctf(event) => event.is_timed(),
        }
    }

    /// Its time as its tracer counted it: ticks of the clock of its stream, from that clock's own
    /// origin.
    pub fn ticks(&self) -> u64 {
        match &self.payload {
            Payload::Held(_) | Payload::Ftrace(_) => self.time.as_ns() as u64,
            Payload::Ctf(event) => event.ticks(),
        }
    }

    /// The CPU of its stream.
    #[inline]
    pub fn cpu(&self) -> Option<Cpu> {
        match &self.payload {
            Payload::Held(event) => event.cpu(),
            Payload::Ctf(event) => event.cpu().map(Cpu),
            Payload::Ftrace(event) => Some(event.cpu()),
        }
    }

    /// Its class: an index into [`Trace::classes`].
    #[inline]
    pub fn class(&self) -> ClassId {
        match &self.payload {
            Payload::Held(event) => event.class(),
            Payload::Ctf(event) => event.class(),
            Payload::Ftrace(event) => event.class(),
        }
    }

    /// An integer field as unsigned bits; zero when the field is no integer.
    #[inline]
    pub fn u64(&self, field: FieldId) -> u64 {
        self.i64(field) as u64
    }

    /// An integer field, sign-extended when it is signed; zero when the field is no integer.
    #[inline]
    pub fn i64(&self, field: FieldId) -> i64 {
        match &self.payload {
            Payload::Held(event) => event.integer(field),
            Payload::Ctf(event) => event.i64(field),
            Payload::Ftrace(event) => event.i64(field),
        }
    }

    /// Several integer fields, each as [`EventView::i64`] reads it: faster than one by one.
    #[inline]
    pub fn integers<const N: usize>(&self, fields: [FieldId; N]) -> [i64; N] {
        match &self.payload {
            Payload::Held(event) => fields.map(|field| event.integer(field)),
            Payload::Ctf(event) => fields.map(|field| event.i64(field)),
            Payload::Ftrace(event) => fields.map(|field| event.i64(field)),
        }
    }

    /// Adds several integer fields to a list, each as [`EventView::u64`] reads it.
    #[inline]
    pub(crate) fn add_integers(&self, fields: &[FieldId], to: &mut Vec<u64>) {
        let fields = fields.iter();
        match &self.payload {
            Payload::Held(event) => to.extend(fields.map(|field| event.integer(*field) as u64)),
            Payload::Ctf(event) => to.extend(fields.map(|field| event.i64(*field) as u64)),
            Payload::Ftrace(event) => to.extend(fields.map(|field| event.i64(*field) as u64)),
        }
    }

    /// A floating point field; zero when the field is none.
    #[inline]
    pub fn f64(&self, field: FieldId) -> f64 {
        match &self.payload {
            Payload::Held(event) => event.float(field),
            Payload::Ctf(event) => event.f64(field),
            Payload::Ftrace(_) => 0.0,
        }
    }

    /// The bytes of a text field up to its end; empty when the field is no text.
    #[inline]
    pub fn text(&self, field: FieldId) -> &'a [u8] {
        match &self.payload {
            Payload::Held(event) => event.text(field),
            Payload::Ctf(event) => event.text(field),
            Payload::Ftrace(event) => event.text(field),
        }
    }

    /// Any field, decoded whole; for paths where clarity is worth an allocation.
    pub fn value(&self, field: FieldId) -> Value<'a> {
        match &self.payload {
            Payload::Held(event) => event.value(field),
            Payload::Ctf(event) => event.value(field),
            Payload::Ftrace(event) => event.value(field),
        }
    }
}

impl event::Record for EventView<'_> {
    fn class(&self) -> ClassId {
        EventView::class(self)
    }

    fn instant(&self) -> Option<Instant> {
        self.is_timed().then_some(self.time)
    }

    fn cpu(&self) -> Option<Cpu> {
        EventView::cpu(self)
    }

    fn i64(&self, field: FieldId) -> i64 {
        EventView::i64(self, field)
    }

    fn f64(&self, field: FieldId) -> f64 {
        EventView::f64(self, field)
    }

    fn text(&self, field: FieldId) -> &[u8] {
        EventView::text(self, field)
    }

    fn value(&self, field: FieldId) -> Value<'_> {
        EventView::value(self, field)
    }
}

/// Where an item stands among those of all [shares](Trace::shares) of a walk: by its time, then by
/// its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub(crate) time_ns: i64,
    pub(crate) lane: usize,
}

/// Walks the items of a trace in time order; items of one instant keep the order of their streams.
pub struct Cursor<'a>(Walk<'a>);

enum Walk<'a> {
    Memory(MemoryCursor<'a>),
    Ctf(CtfCursor<'a>),
    Ftrace(FtraceCursor<'a>),
    Beside(BesideCursor<'a>),
}

struct MemoryCursor<'a> {
    events: &'a [MemoryEvent],
    losses: &'a [Lost],
    range: TimeRange,
    /// What was handed out last, when it was an event.
    current: Option<&'a MemoryEvent>,
    /// By class; empty when all are wanted.
    wanted: Vec<bool>,
}

impl Trace {
    /// A walk over the items inside `range`.
    pub fn cursor(&self, range: TimeRange) -> Cursor<'_> {
        self.walk(range, Vec::new())
    }

    /// A walk over the events of `wanted` classes inside `range`; others are passed over without
    /// being decoded. Losses and damages are handed out all the same.
    pub fn cursor_of(&self, range: TimeRange, wanted: impl Fn(ClassId) -> bool) -> Cursor<'_> {
        let wanted: Vec<bool> = self.classes.iter().map(|class| wanted(class.id)).collect();
        let all = wanted.iter().all(|wanted| *wanted);
        self.walk(range, if all { Vec::new() } else { wanted })
    }

    /// The walk of [`Trace::cursor`] dealt out to several, at most `count`, for as many threads:
    /// each hands out the items of some streams. Of the items on which they stand, the one with the
    /// least [`Cursor::place`] comes first in the walk over all. One cursor where the trace has one
    /// stream, is no CTF alone, or has [`LossCause::Silent`].
    pub fn shares(&self, range: TimeRange, count: usize) -> Vec<Cursor<'_>> {
        let Some(ctf) = self.ctf_alone() else {
            return vec![self.cursor(range)];
        };
        let of = count.clamp(1, ctf.stream_count().max(1));
        let share = |first| CtfCursor::new(ctf, range, &[], Share { first, of });
        (0..of)
            .map(|first| Cursor(Walk::Ctf(share(first))))
            .collect()
    }

    /// The walk over one of several ranges that follow each other; what is no event belongs to it
    /// when it stands inside of `others`.
    pub(crate) fn slice(&self, range: TimeRange, others: TimeRange) -> Cursor<'_> {
        match self.ctf_alone() {
            Some(ctf) => {
                let walk = CtfCursor::with_others(ctf, range, others, &[], Share::ALL);
                Cursor(Walk::Ctf(walk))
            }
            None => self.cursor(range),
        }
    }

    /// The CTF streams, where there is nothing to walk over beside them.
    pub(crate) fn ctf_alone(&self) -> Option<&CtfTrace> {
        match &self.source {
            Source::Ctf(ctf) if self.silences().is_empty() => Some(ctf),
            _ => None,
        }
    }

    fn walk(&self, range: TimeRange, wanted: Vec<bool>) -> Cursor<'_> {
        let ctf = |ctf| CtfCursor::new(ctf, range, &wanted, Share::ALL);
        let ftrace = |ftrace| FtraceCursor::new(ftrace, range, &wanted);
        let silences = self.silences();
        Cursor(match &self.source {
            Source::Ctf(only) if silences.is_empty() => Walk::Ctf(ctf(only)),
            Source::Ftrace(only) if silences.is_empty() => Walk::Ftrace(ftrace(only)),
            Source::Ctf(_) | Source::Ftrace(_) | Source::Both(..) => {
                let ctf = self.source.ctf().map(ctf);
                let ftrace = self.source.ftrace().map(ftrace);
                Walk::Beside(BesideCursor::new(ctf, ftrace, silences, range))
            }
            Source::Memory { events, losses } => {
                let next = events.partition_point(|event| event.time < range.begin);
                let events = &events[next..];
                Walk::Memory(MemoryCursor {
                    events,
                    losses,
                    range,
                    current: None,
                    wanted,
                })
            }
        })
    }
}

impl Trace {
    /// All losses that touch `range`, by a walk that hands out no event.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    pub fn losses(&self, range: TimeRange) -> Result<Vec<Lost>> {
        let mut losses = Vec::new();
        let mut cursor = self.walk(range, vec![false; self.classes().len()]);
        cursor.each(|item| {
            if let Item::Lost(lost) = item {
                losses.push(*lost);
            }
            Ok(())
        })?;
        Ok(losses)
    }
}

impl Cursor<'_> {
    /// The next item, or none at the end.
    ///
    /// # Errors
    /// Only when the operating system refuses to read; damaged bytes are [`Item::Damage`].
    #[allow(clippy::should_implement_trait)] // an item borrows from the cursor
    #[inline]
    pub fn next(&mut self) -> Result<Option<Item<'_>>> {
        match &mut self.0 {
            Walk::Ctf(ctf) => Ok(ctf.next()),
            Walk::Memory(memory) => Ok(memory.next()),
            Walk::Ftrace(ftrace) => Ok(ftrace.next()),
            Walk::Beside(beside) => Ok(beside.next()),
        }
    }

    /// Hands all items that are left to `take`, in order: as [`Cursor::next`] until the end, but
    /// faster, because no item is moved.
    ///
    /// # Errors
    /// As [`Cursor::next`], and what `take` returns.
    #[inline]
    pub fn each(&mut self, mut take: impl FnMut(&Item<'_>) -> Result<()>) -> Result<()> {
        self.each_placed(|_, item| take(item))
    }

    /// Hands items to `take` until it says no: then the cursor stands on that one, as behind
    /// [`Cursor::next`]. As fast as [`Cursor::each`], for who goes on later.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    #[inline]
    pub fn each_while(&mut self, mut take: impl FnMut(&Item<'_>) -> bool) -> Result<()> {
        if let Walk::Ctf(ctf) = &mut self.0 {
            let refused = |_, item: &Item<'_>| if take(item) { Ok(()) } else { Err(()) };
            // Who says no did not fail.
            let _ = ctf.each(refused);
            return Ok(());
        }
        while let Some(item) = self.next()? {
            if !take(&item) {
                break;
            }
        }
        Ok(())
    }

    /// The same, each with its [place](Cursor::place).
    ///
    /// # Errors
    /// As [`Cursor::each`].
    #[inline]
    pub fn each_placed(
        &mut self,
        mut take: impl FnMut(Place, &Item<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Walk::Ctf(ctf) = &mut self.0 {
            return ctf.each(take);
        }
        while let Some(item) = self.next()? {
            take(Place::default(), &item)?;
        }
        Ok(())
    }

    /// The event that [`Cursor::next`] handed out last; none when it was no event. For those who
    /// cannot keep the item that they were given.
    #[inline]
    pub fn event(&self) -> Option<EventView<'_>> {
        match &self.0 {
            Walk::Memory(memory) => memory.current.map(view),
            Walk::Ctf(ctf) => ctf.event(),
            Walk::Ftrace(ftrace) => ftrace.event(),
            Walk::Beside(beside) => beside.event(),
        }
    }

    /// Where the item that was handed out last stands among those of all
    /// [shares](Trace::shares).
    #[inline]
    pub fn place(&self) -> Place {
        let place = match &self.0 {
            Walk::Ctf(ctf) => ctf.place(),
            _ => None,
        };
        place.unwrap_or_default()
    }

    /// Time that went backwards so far. Packets are put in order by what their headers say; events
    /// inside of a packet are handed out where they stand. Events of classes that are not wanted
    /// are not looked at for this.
    pub fn disorder(&self) -> Disorder {
        match &self.0 {
            Walk::Memory(_) => Disorder::default(),
            Walk::Ctf(ctf) => ctf.disorder(),
            Walk::Ftrace(ftrace) => ftrace.disorder(),
            Walk::Beside(beside) => beside.disorder(),
        }
    }
}

impl<'a> MemoryCursor<'a> {
    #[inline(never)]
    fn next(&mut self) -> Option<Item<'a>> {
        let is_wanted = |event: &MemoryEvent| {
            let wanted = self.wanted.get(event.class.0 as usize);
            wanted.is_none_or(|wanted| *wanted)
        };
        let unwanted = self.events.iter().take_while(|event| !is_wanted(event));
        self.events = &self.events[unwanted.count()..];
        let event = self
            .events
            .first()
            .filter(|event| event.time < self.range.end);
        let ended = |lost: &&Lost| lost.range.end < self.range.begin;
        let ended = self.losses.iter().take_while(ended);
        self.losses = &self.losses[ended.count()..];
        let before_event = |lost: &&Lost| event.is_none_or(|event| lost.range.begin < event.time);
        let inside = |lost: &&Lost| lost.range.begin < self.range.end;
        if let Some(lost) = self.losses.first().filter(before_event).filter(inside) {
            self.losses = &self.losses[1..];
            self.current = None;
            return Some(Item::Lost(*lost));
        }
        self.current = event;
        let event = event?;
        self.events = &self.events[1..];
        Some(Item::Event(view(event)))
    }
}

fn view(event: &MemoryEvent) -> EventView<'_> {
    EventView {
        time: event.time,
        payload: Payload::Held(HeldEvent::Memory(event)),
    }
}
