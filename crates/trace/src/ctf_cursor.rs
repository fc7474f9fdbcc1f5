//! The merge of all CTF streams by time.

use std::sync::Arc;

use ctf::reader::{BadBytes, Hole, Loss, Step, StreamReader};
use event::{Cpu, Instant, TimeRange};

use crate::ctf_trace::{CtfTrace, Part, Writer};
use crate::cursor::{Payload, Place};
use crate::merge::{Lane, Merge};
use crate::{Damage, Disorder, EventView, Item, LossCause, Lost, LostFrom};

/// One stream file of one part, or the packets of it that follow each other in time.
struct CtfLane<'a> {
    reader: StreamReader<'a>,
    part: &'a Part,
    /// Of the part, at hand.
    shift_ns: i64,
    range: TimeRange,
    /// Where what is no event must lie.
    others: TimeRange,
    /// Its name relative to the root.
    file: String,
    /// The CPU of all its packets.
    cpu: Option<Cpu>,
    /// Of which kind it is.
    from: LostFrom,
    /// From the trace's begin to its end.
    whole: TimeRange,
    /// Of other streams, which are missing; they come first, the last of them at first.
    missing: Vec<Lost>,
    /// What the reader stands on, when it stands on no event.
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

/// The walk over CTF streams.
pub(crate) struct CtfCursor<'a> {
    merge: Merge<CtfLane<'a>>,
    packets_back_in_time: u64,
    share: Share,
}

/// Which lanes of all are walked: every `of`th from `first` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub first: usize,
    pub of: usize,
}

impl Share {
    pub const ALL: Share = Share { first: 0, of: 1 };

    /// The place of an item of the lane that has this number in the share.
    #[inline]
    fn place(self, time_ns: i64, number: usize) -> Place {
        let lane = self.first + number * self.of;
        Place { time_ns, lane }
    }
}

impl<'a> CtfCursor<'a> {
    /// Events of the classes that are `wanted`, by the trace's list of classes; of all when it is
    /// empty.
    pub fn new(ctf: &'a CtfTrace, range: TimeRange, wanted: &[bool], share: Share) -> Self {
        CtfCursor::with_others(ctf, range, TimeRange::ALL, wanted, share)
    }

    /// The same without what is no event and stands outside of `others`.
    pub fn with_others(
        ctf: &'a CtfTrace,
        range: TimeRange,
        others: TimeRange,
        wanted: &[bool],
        share: Share,
    ) -> Self {
        let mut lanes = Vec::new();
        let wanted_of = |part: &Part| wanted.get(part.classes()).map(Arc::from);
        let wanted: Vec<Option<Arc<[bool]>>> = ctf.parts.iter().map(wanted_of).collect();
        for (number, place) in ctf.streams_in_order() {
            let part = &ctf.parts[number];
            let range = part.time.inside(range);
            let begin_ns = part.time.own_ns(range.begin);
            let end_ns = part.time.own_ns(range.end);
            let narrow = |mut reader: StreamReader<'a>| {
                if part.writer == Writer::Killed {
                    reader = reader.unfinished();
                }
                if let Some(stop) = &ctf.stop {
                    reader = reader.with_stop(Arc::clone(stop));
                }
                match &wanted[number] {
                    Some(wanted) => reader.with_wanted(wanted.clone()).until(end_ns),
                    None => reader,
                }
            };
            let file = format!("{}{}", part.prefix, part.files.streams()[place].name());
            let index = &part.files.indexes()[place];
            let cpu = index.cpu.filter(|_| !index.has_several_cpus).map(Cpu);
            let from = part.kind_of_stream(index.stream_class);
            let readers = part.files.readers_from(place, begin_ns).into_iter();
            lanes.extend(readers.map(|reader| CtfLane {
                reader: narrow(reader.with_first_class(part.first_class)),
                cpu,
                from,
                whole: ctf.whole(),
                missing: Vec::new(),
                part,
                shift_ns: part.time.shift_ns,
                range,
                others,
                file: file.clone(),
                other: None,
                latest_ns: i64::MIN,
                events_back_in_time: 0,
            }));
        }
        if let Some(first) = lanes.first_mut() {
            first.begin_with(ctf.missing());
        }
        let lanes = lanes.into_iter().skip(share.first).step_by(share.of);
        CtfCursor {
            merge: Merge::new(lanes.collect()),
            packets_back_in_time: ctf.packets_back_in_time(),
            share,
        }
    }

    /// The place of the item that was handed out last.
    #[inline]
    pub fn place(&self) -> Option<Place> {
        let (time_ns, number) = self.merge.taken_key()?;
        Some(self.share.place(time_ns, number))
    }

    /// Goes on to the next item, unless it stands on one that was not taken; returns its time.
    #[inline(never)]
    pub fn settle(&mut self) -> Option<i64> {
        self.merge.settle()
    }

    /// Takes the item that it stands on.
    #[inline]
    pub fn take(&mut self) -> Option<Item<'_>> {
        let (time_ns, lane) = self.merge.take()?;
        Some(lane.item(Instant::from_ns(time_ns)))
    }

    #[inline]
    pub fn next(&mut self) -> Option<Item<'_>> {
        self.settle();
        self.take()
    }

    /// Hands all items that are left to `take`, until that fails.
    #[inline]
    pub fn each<E>(
        &mut self,
        mut take: impl FnMut(Place, &Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let share = self.share;
        self.merge.each(|time_ns, number, lane| {
            let (place, time) = (share.place(time_ns, number), Instant::from_ns(time_ns));
            // Each by itself: of an event is then known that nothing of it is to be dropped.
            match lane.event(time) {
                Some(event) => take(place, &Item::Event(event)),
                None => take(place, &lane.other_item()),
            }
        })
    }

    /// The event that was handed out last.
    #[inline]
    pub fn event(&self) -> Option<EventView<'_>> {
        let (time_ns, lane) = self.merge.taken()?;
        lane.event(Instant::from_ns(time_ns))
    }

    pub fn disorder(&self) -> Disorder {
        Disorder {
            packets: self.packets_back_in_time,
            events: self
                .merge
                .lanes()
                .iter()
                .map(|lane| lane.events_back_in_time)
                .sum(),
        }
    }
}

impl Lane for CtfLane<'_> {
    /// Goes to the next item inside of the range and returns its time; none at the end.
    #[inline(always)]
    fn advance(&mut self) -> Option<i64> {
        loop {
            let step = self.reader.advance();
            let time_ns = self.reader.time_ns().saturating_add(self.shift_ns);
            let time = Instant::from_ns(time_ns);
            if let Err(step) = step {
                match self.meet(&step, time_ns)? {
                    Some(time_ns) => return Some(time_ns),
                    None => continue,
                }
            }
            self.events_back_in_time += u64::from(time_ns < self.latest_ns);
            self.latest_ns = time_ns;
            if time >= self.range.end {
                // Packets follow each other in time, and so do their events, as a rule.
                if self.events_back_in_time == 0 {
                    return None;
                }
            } else if time >= self.range.begin {
                return Some(time_ns);
            }
        }
    }
}

impl CtfLane<'_> {
    /// Hands out the losses of streams that are missing before anything else.
    fn begin_with(&mut self, missing: &[Lost]) {
        let hole = Step::Unread(Hole {
            begin_ns: i64::MIN,
            end_ns: i64::MAX,
            is_cut: false,
        });
        self.missing.extend(missing.iter().rev());
        let reader = std::mem::replace(&mut self.reader, self.part.files.no_reader());
        self.reader = reader.after(vec![hole; missing.len()]);
    }

    /// When a step that is no event stands, if it belongs to the range; the outer none is the end.
    #[cold]
    fn meet(&mut self, step: &Step, time_ns: i64) -> Option<Option<i64>> {
        let (other, time_ns) = match step {
            // A lane that has ended is not asked again.
            Step::Event | Step::End => return None,
            Step::Lost(loss) => {
                let lost = self.lost(loss);
                if Instant::from_ns(time_ns) >= self.range.end && lost.range.begin >= self.range.end
                {
                    return None;
                }
                let stands_ns = lost.stands_ns().max(self.latest_ns);
                (Other::Lost(lost), stands_ns)
            }
            // A packet that is written just now is there in part; whoever looks next has all of it.
            Step::Unread(_) if self.part.writer == Writer::Active => return Some(None),
            Step::Unread(hole) => {
                let lost = self.missing.pop().unwrap_or_else(|| self.unread(hole));
                let begin_ns = lost.range.begin.as_ns().max(self.latest_ns);
                (Other::Lost(lost), begin_ns)
            }
            Step::Damage(damage) => (Other::Damage(self.damage(damage)), time_ns),
        };
        let time = Instant::from_ns(time_ns);
        let is_outside = match &other {
            Other::Lost(Lost { range, .. }) => {
                range.end < self.range.begin || range.begin >= self.range.end
            }
            Other::Damage(_) => false,
        };
        let of_other_slice =
            time < self.others.begin || time >= self.others.end && self.others.end < Instant::MAX;
        if is_outside || of_other_slice {
            return Some(None);
        }
        self.other = Some(Box::new(other));
        Some(Some(time_ns))
    }

    #[inline]
    fn item(&self, time: Instant) -> Item<'_> {
        let event = self.event(time).map(Item::Event);
        event.unwrap_or_else(|| self.other_item())
    }

    #[inline]
    fn event(&self, time: Instant) -> Option<EventView<'_>> {
        let payload = Payload::Ctf(self.reader.event()?);
        Some(EventView { time, payload })
    }

    #[cold]
    #[inline(never)]
    fn other_item(&self) -> Item<'_> {
        match self.other.as_deref() {
            Some(Other::Lost(lost)) => Item::Lost(*lost),
            Some(Other::Damage(damage)) => Item::Damage(damage.clone()),
            None => Item::Damage(Damage {
                file: self.file.clone(),
                offset_bytes: 0,
                reason: "no event".to_owned(),
            }),
        }
    }

    /// What could not be read: from the trace's begin or to its end, where the stream has none.
    fn unread(&self, hole: &Hole) -> Lost {
        let begin = match hole.begin_ns {
            i64::MIN => self.whole.begin,
            begin_ns => self.part.time.shifted(begin_ns),
        };
        let end = match hole.end_ns {
            i64::MAX => self.whole.end,
            end_ns => self.part.time.shifted(end_ns),
        };
        Lost {
            cpu: self.cpu,
            range: TimeRange {
                begin,
                end: end.max(begin),
            },
            count: None,
            cause: match hole.is_cut {
                true => LossCause::Cut,
                false => LossCause::Damaged,
            },
            from: self.from,
        }
    }

    fn loss_range(&self, loss: &Loss) -> TimeRange {
        let end = match self.part.losses_between {
            true => loss.packet_begin_ns,
            false => loss.packet_end_ns,
        };
        TimeRange {
            begin: self.part.time.shifted(loss.begin_ns),
            end: self.part.time.shifted(end),
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
            from: self.from,
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
