//! The merge of all CTF streams by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use ctf::reader::{BadBytes, Loss, Step, StreamReader};
use event::{ClassId, Cpu, Instant, TimeRange};

use crate::ctf_trace::{CtfTrace, Part};
use crate::cursor::Payload;
use crate::{Damage, Disorder, EventView, Item, LossCause, Lost};

/// One stream file of one part, or the packets of it that follow each other in time.
struct Lane<'a> {
    reader: StreamReader<'a>,
    part: &'a Part,
    range: TimeRange,
    /// Its name relative to the root.
    file: String,
    /// What the reader stands on.
    step: Step,
    /// The time of the last event.
    latest_ns: i64,
    events_back_in_time: u64,
}

/// The walk: the lane with the earliest item is on top of the heap.
pub(crate) struct CtfCursor<'a> {
    lanes: Vec<Lane<'a>>,
    /// Time in nanoseconds and lane; lanes of one instant in their order.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    /// Whether the top lane's item was handed out and the lane must go on.
    top_is_used: bool,
    packets_back_in_time: u64,
}

impl<'a> CtfCursor<'a> {
    pub fn new(ctf: &'a CtfTrace, range: TimeRange) -> Self {
        let mut lanes = Vec::new();
        for part in &ctf.parts {
            let range = part.inside(range);
            let begin_ns = range.begin.as_ns().saturating_sub(part.shift_ns);
            for (place, stream) in part.files.streams().iter().enumerate() {
                let file = format!("{}{}", part.prefix, stream.name());
                let readers = part.files.readers_from(place, begin_ns).into_iter();
                lanes.extend(readers.map(|reader| Lane {
                    reader,
                    part,
                    range,
                    file: file.clone(),
                    step: Step::End,
                    latest_ns: i64::MIN,
                    events_back_in_time: 0,
                }));
            }
        }
        let mut heap = BinaryHeap::with_capacity(lanes.len());
        for (place, lane) in lanes.iter_mut().enumerate() {
            heap.extend(lane.advance().map(|time_ns| Reverse((time_ns, place))));
        }
        CtfCursor {
            lanes,
            heap,
            top_is_used: false,
            packets_back_in_time: ctf.packets_back_in_time(),
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<Item<'_>> {
        if self.top_is_used {
            let mut top = self.heap.peek_mut()?;
            let Reverse((_, place)) = *top;
            match self.lanes[place].advance() {
                Some(time_ns) => top.0.0 = time_ns,
                None => {
                    PeekMut::pop(top);
                }
            }
        }
        self.top_is_used = true;
        let Reverse((time_ns, place)) = *self.heap.peek()?;
        Some(self.lanes[place].item(Instant::from_ns(time_ns)))
    }

    pub fn disorder(&self) -> Disorder {
        Disorder {
            packets: self.packets_back_in_time,
            events: self.lanes.iter().map(|lane| lane.events_back_in_time).sum(),
        }
    }
}

impl Lane<'_> {
    /// Goes to the next item inside of the range and returns its time; none at the end.
    #[inline]
    fn advance(&mut self) -> Option<i64> {
        loop {
            self.step = self.reader.step();
            let time_ns = self.reader.time_ns().saturating_add(self.part.shift_ns);
            let time = Instant::from_ns(time_ns);
            match &self.step {
                Step::End => return None,
                Step::Event if time >= self.range.end => {
                    self.note(time_ns);
                    // Packets follow each other in time, and so do their events, as a rule.
                    if self.events_back_in_time == 0 {
                        return None;
                    }
                }
                Step::Lost(_) if time >= self.range.end => return None,
                Step::Event if time < self.range.begin => self.note(time_ns),
                Step::Lost(loss) if self.loss_range(loss).end < self.range.begin => {}
                Step::Event => {
                    self.note(time_ns);
                    return Some(time_ns);
                }
                _ => return Some(time_ns),
            }
        }
    }

    #[inline]
    fn note(&mut self, time_ns: i64) {
        self.events_back_in_time += u64::from(time_ns < self.latest_ns);
        self.latest_ns = time_ns;
    }

    #[inline]
    fn item(&self, time: Instant) -> Item<'_> {
        match (&self.step, self.reader.event()) {
            (Step::Event, Some(event)) => Item::Event(EventView {
                time,
                cpu: self.reader.cpu().map(Cpu),
                class: ClassId(self.part.first_class + event.class().0),
                payload: Payload::Ctf(event),
            }),
            (Step::Lost(loss), _) => Item::Lost(self.lost(loss)),
            (Step::Damage(damage), _) => Item::Damage(self.damage(damage)),
            (step, _) => Item::Damage(Damage {
                file: self.file.clone(),
                offset_bytes: 0,
                reason: format!("no event at {step:?}"),
            }),
        }
    }

    fn loss_range(&self, loss: &Loss) -> TimeRange {
        let end = match self.part.losses_between {
            true => loss.packet_begin_ns,
            false => loss.packet_end_ns,
        };
        TimeRange {
            begin: self.part.shifted(loss.begin_ns),
            end: self.part.shifted(end),
        }
    }

    fn lost(&self, loss: &Loss) -> Lost {
        let cause = match loss.events {
            Some(_) => LossCause::Discarded,
            None => LossCause::Overrun,
        };
        let cpu = self.reader.cpu().map(Cpu);
        Lost {
            cpu,
            range: self.loss_range(loss),
            count: loss.events,
            cause,
        }
    }

    fn damage(&self, damage: &BadBytes) -> Damage {
        let BadBytes {
            offset_bytes,
            reason,
        } = damage;
        let (offset_bytes, reason) = (*offset_bytes, reason.clone());
        Damage {
            file: self.file.clone(),
            offset_bytes,
            reason,
        }
    }
}
