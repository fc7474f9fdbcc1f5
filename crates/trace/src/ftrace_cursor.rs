//! The merge of all CPUs' pages by time.

use std::sync::atomic::{AtomicBool, Ordering};

use event::{ClassId, Cpu, FieldId, Instant, TimeRange, Value};
use ftrace::{Halt, Hole};

use crate::cursor::Payload;
use crate::ftrace_trace::{FtracePart, FtraceTrace};
use crate::merge::{Lane, Merge};
use crate::recorded::{Reader, Record};
use crate::{Damage, Disorder, EventView, Item, Lost};

/// Events that are passed over between two looks at whether to stop.
const LOOK_EVENTS: u32 = 1 << 12;

/// The walk over recordings of ftrace.
pub(crate) struct FtraceCursor<'a>(Merge<FtraceLane<'a>>);

/// One stream.
struct FtraceLane<'a> {
    reader: Reader<'a>,
    trace: &'a FtraceTrace,
    part: &'a FtracePart,
    /// Of other streams, which are missing; they come first, the last of them at first.
    missing: Vec<Lost>,
    range: TimeRange,
    /// By class of the part; empty when all are wanted.
    wanted: Vec<bool>,
    /// Ends the walk once it is raised.
    stop: Option<&'a AtomicBool>,
    /// What the reader stands on, when it is no event.
    other: Option<Box<Other>>,
    /// The time of the last event.
    latest_ns: i64,
    events_back_in_time: u64,
}

/// What is no event.
enum Other {
    Lost(Lost),
    Damage(Damage),
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
            let range = part.time.inside(range);
            let begin_ns = part.time.own_ns(range.begin);
            let wanted = wanted.get(part.classes()).unwrap_or_default().to_vec();
            let mut missing = trace.missing(part);
            missing.reverse();
            for mut reader in part.recording.readers() {
                if range.begin > Instant::MIN {
                    reader.seek(begin_ns);
                }
                let missing = std::mem::take(&mut missing);
                let hole = Halt::Unread(Hole {
                    begin_ns: i64::MIN,
                    end_ns: i64::MAX,
                    is_cut: false,
                    is_of_any_cpu: false,
                });
                reader.after(vec![hole; missing.len()]);
                lanes.push(FtraceLane {
                    reader,
                    trace,
                    part,
                    missing,
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
            let time_ns = self
                .reader
                .time_ns()
                .saturating_add(self.part.time.shift_ns);
            let time = Instant::from_ns(time_ns);
            if let Err(halt) = step {
                match self.meet(*halt, time_ns)? {
                    Some(time_ns) => return Some(time_ns),
                    None => continue,
                }
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

    /// When what is no event stands, if it belongs to the range; the outer none is the end.
    #[cold]
    fn meet(&mut self, halt: Halt, time_ns: i64) -> Option<Option<i64>> {
        let latest_ns = time_ns.max(self.latest_ns);
        let (other, time_ns) = match halt {
            Halt::End => return None,
            Halt::Damage {
                offset_bytes,
                reason,
            } => {
                let file = format!("{}{}", self.part.prefix, self.reader.name());
                let damage = Damage {
                    file,
                    offset_bytes,
                    reason,
                };
                (Other::Damage(damage), latest_ns)
            }
            Halt::Unread(_) | Halt::Lost(_) | Halt::LostOn(..) => {
                let of_stream = || self.trace.lost(self.part, self.reader.cpu(), &halt);
                let lost = match self.missing.pop() {
                    Some(missing) => missing,
                    None => of_stream()?,
                };
                let TimeRange { begin, end } = lost.range;
                if begin >= self.range.end || end < self.range.begin {
                    let is_behind = begin >= self.range.end && matches!(halt, Halt::Lost(_));
                    return if is_behind { None } else { Some(None) };
                }
                let stands_ns = match halt {
                    Halt::Unread(_) => begin.as_ns(),
                    _ => lost.stands_ns(),
                };
                (Other::Lost(lost), stands_ns.max(self.latest_ns))
            }
        };
        self.other = Some(Box::new(other));
        Some(Some(time_ns))
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
            Some(other) => match &**other {
                Other::Lost(lost) => Item::Lost(*lost),
                Other::Damage(damage) => Item::Damage(damage.clone()),
            },
        }
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
