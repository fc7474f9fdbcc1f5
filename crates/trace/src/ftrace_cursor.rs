//! The merge of all CPUs' pages by time.

use std::sync::atomic::{AtomicBool, Ordering};

use event::{ClassId, Cpu, FieldId, Instant, TimeRange, Value};
use ftrace::Halt;

use crate::cursor::Payload;
use crate::ftrace_trace::{self, FtracePart, FtraceTrace};
use crate::merge::{Lane, Merge};
use crate::recorded::{Reader, Record};
use crate::{Damage, Disorder, EventView, Item};

/// Events that are passed over between two looks at whether to stop.
const LOOK_EVENTS: u32 = 1 << 12;

/// The walk over recordings of ftrace.
pub(crate) struct FtraceCursor<'a>(Merge<FtraceLane<'a>>);

/// One stream.
struct FtraceLane<'a> {
    reader: Reader<'a>,
    part: &'a FtracePart,
    range: TimeRange,
    /// By class of the part; empty when all are wanted.
    wanted: Vec<bool>,
    /// Ends the walk once it is raised.
    stop: Option<&'a AtomicBool>,
    /// What the reader stands on, when it is no event.
    other: Option<Box<Halt>>,
    /// The time of the last event.
    latest_ns: i64,
    events_back_in_time: u64,
}

/// One event of a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FtraceEvent<'a> {
    record: Record<'a>,
    class: &'a event::EventClass,
    first_class: u32,
}

impl<'a> FtraceCursor<'a> {
    /// Events of the classes that are `wanted`, by the trace's list of classes; of all when it is
    /// empty.
    pub fn new(trace: &'a FtraceTrace, range: TimeRange, wanted: &[bool]) -> Self {
        let mut lanes = Vec::new();
        for part in &trace.parts {
            let range = part.inside(range);
            let begin_ns = range.begin.as_ns().saturating_sub(part.shift_ns);
            let wanted = wanted.get(part.classes()).unwrap_or_default().to_vec();
            for mut reader in part.recording.readers() {
                if range.begin > Instant::MIN {
                    reader.seek(begin_ns);
                }
                lanes.push(FtraceLane {
                    reader,
                    part,
                    range,
                    wanted: wanted.clone(),
                    stop: trace.stop.as_deref(),
                    other: None,
                    latest_ns: i64::MIN,
                    events_back_in_time: 0,
                });
            }
        }
        FtraceCursor(Merge::new(lanes))
    }

    /// Goes on to the next item, unless it stands on one that was not taken; returns its time.
    #[inline]
    pub fn settle(&mut self) -> Option<i64> {
        self.0.settle()
    }

    /// Takes the item that it stands on.
    #[inline]
    pub fn take(&mut self) -> Option<Item<'_>> {
        let (time_ns, lane) = self.0.take()?;
        Some(lane.item(Instant::from_ns(time_ns)))
    }

    #[inline(never)]
    pub fn next(&mut self) -> Option<Item<'_>> {
        self.settle();
        self.take()
    }

    /// The event that was handed out last.
    #[inline]
    pub fn event(&self) -> Option<EventView<'_>> {
        let (time_ns, lane) = self.0.taken()?;
        match lane.item(Instant::from_ns(time_ns)) {
            Item::Event(event) => Some(event),
            _ => None,
        }
    }

    pub fn disorder(&self) -> Disorder {
        let lanes = self.0.lanes().iter();
        Disorder {
            packets: 0,
            events: lanes.map(|lane| lane.events_back_in_time).sum(),
        }
    }
}

impl Lane for FtraceLane<'_> {
    /// Goes to the next item inside of the range.
    #[inline]
    fn advance(&mut self) -> Option<i64> {
        let mut passed = 0u32;
        loop {
            let step = self.reader.advance();
            let time_ns = self.reader.time_ns().saturating_add(self.part.shift_ns);
            let time = Instant::from_ns(time_ns);
            if let Err(halt) = step {
                if self.meet(&halt)? {
                    self.other = Some(halt);
                    return Some(time_ns.max(self.latest_ns));
                }
                continue;
            }
            self.other = None;
            self.events_back_in_time += u64::from(time_ns < self.latest_ns);
            self.latest_ns = time_ns;
            if time >= self.range.end {
                // Pages follow each other in time, and so do their events, as a rule.
                if self.reader.is_ordered() && self.events_back_in_time == 0 {
                    return None;
                }
            } else if time >= self.range.begin && self.is_wanted() {
                return Some(time_ns);
            }
            passed = passed.wrapping_add(1);
            if passed.is_multiple_of(LOOK_EVENTS) && self.is_stopped() {
                return None;
            }
        }
    }
}

impl FtraceLane<'_> {
    #[cold]
    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    #[inline]
    fn is_wanted(&self) -> bool {
        let wanted = self.wanted.get(self.reader.class().0 as usize);
        wanted.is_none_or(|wanted| *wanted)
    }

    /// Whether what is no event belongs to the range; none at the end.
    #[cold]
    fn meet(&self, halt: &Halt) -> Option<bool> {
        match halt {
            Halt::End => None,
            Halt::Lost(loss) => {
                let range = ftrace_trace::lost(self.part, self.cpu(), loss).range;
                (range.begin < self.range.end).then_some(range.end >= self.range.begin)
            }
            Halt::Damage { .. } => Some(true),
        }
    }

    fn cpu(&self) -> Cpu {
        self.reader.cpu()
    }

    #[inline]
    fn item(&self, time: Instant) -> Item<'_> {
        match &self.other {
            None => Item::Event(EventView {
                time,
                payload: Payload::Ftrace(FtraceEvent {
                    record: self.reader.event(),
                    class: &self.part.recording.classes()[self.reader.class().0 as usize],
                    first_class: self.part.first_class,
                }),
            }),
            Some(halt) => self.other_item(halt),
        }
    }

    #[cold]
    fn other_item(&self, halt: &Halt) -> Item<'_> {
        let (offset_bytes, reason) = match halt {
            Halt::Lost(loss) => {
                return Item::Lost(ftrace_trace::lost(self.part, self.cpu(), loss));
            }
            Halt::Damage {
                offset_bytes,
                reason,
            } => (*offset_bytes, reason.clone()),
            Halt::End => (0, "no event at the end".to_owned()),
        };
        Item::Damage(Damage {
            file: format!("{}{}", self.part.prefix, self.reader.name()),
            offset_bytes,
            reason,
        })
    }
}

impl<'a> FtraceEvent<'a> {
    #[inline]
    pub fn class(&self) -> ClassId {
        ClassId(self.first_class + self.class.id.0)
    }

    #[inline]
    pub fn cpu(&self) -> Cpu {
        self.record.cpu()
    }

    #[inline]
    pub fn i64(&self, field: FieldId) -> i64 {
        self.record.i64(field)
    }

    #[inline]
    pub fn text(&self, field: FieldId) -> &'a [u8] {
        self.record.text(field)
    }

    pub fn value(&self, field: FieldId) -> Value<'a> {
        self.record.value(self.class, field)
    }
}
