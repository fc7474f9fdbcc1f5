//! The walk over one CPU's pages: events with their times, losses and damage at their places.

use std::ops::Range;

use event::ClassId;

use crate::lttng::RecordRef;
use crate::page::PageWalk;
use crate::recording::Recording;
use crate::stream::{Missing, PageBuffer, PageStream};
use crate::{Page, PageDamage};

/// Events that the kernel dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// How many, when the kernel says.
    pub count: Option<u64>,
    /// They were lost after this time …
    pub begin_ns: i64,
    /// … and before this one.
    pub end_ns: i64,
}

/// What the reader stands on when it is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Events are missing here.
    Lost(Loss),
    /// Bytes that could not be understood; the walk goes on behind them.
    Damage {
        /// Offset in the file; of a compressed page, where its chunk begins.
        offset_bytes: u64,
        /// What was expected and what was found.
        reason: String,
    },
    /// There is no more.
    End,
}

/// A walk over the pages of one stream.
#[derive(Debug)]
pub struct PageReader<'a> {
    recording: &'a Recording,
    stream: &'a PageStream,
    buffer: PageBuffer,
    /// The page that the reader is in.
    page: u64,
    /// Where its records are in the page; empty before the first page.
    records: Range<usize>,
    walk: PageWalk,
    /// The event that it stands on, inside of the records.
    record: Range<usize>,
    class: ClassId,
    time_ns: i64,
    has_begun: bool,
}

impl<'a> PageReader<'a> {
    /// Before the first event of stream `place`.
    pub fn new(recording: &'a Recording, place: usize) -> Option<Self> {
        Some(PageReader {
            recording,
            stream: recording.streams().get(place)?,
            buffer: PageBuffer::default(),
            page: 0,
            records: 0..0,
            walk: PageWalk::default(),
            record: 0..0,
            class: ClassId(0),
            time_ns: i64::MIN,
            has_begun: false,
        })
    }

    /// Before the first page that may hold an event at `time_ns` or later. Pages of a ring follow
    /// each other in time.
    pub fn seek(&mut self, time_ns: i64) {
        let (mut first, mut end) = (0, self.stream.pages());
        // The first page that begins later; what is damaged is taken for early.
        while first < end {
            let middle = first + (end - first) / 2;
            match self
                .page_time_ns(middle)
                .is_some_and(|begin| begin > time_ns)
            {
                true => end = middle,
                false => first = middle + 1,
            }
        }
        self.page = first.saturating_sub(1);
        self.has_begun = false;
        self.records = 0..0;
    }

    /// From its first page's begin to its last event; none without events.
    pub fn range_ns(&mut self) -> Option<(i64, i64)> {
        let last = self.stream.pages().checked_sub(1)?;
        let begin_ns = self.page_time_ns(0)?;
        self.buffer.page(self.stream, last).ok()?;
        let bytes = self.buffer.bytes(self.stream, last);
        let page = Page::parse(self.recording.layout(), bytes).ok()?;
        let times = page
            .events()
            .map_while(Result::ok)
            .map(|event| event.time_ns);
        let end = times.last().unwrap_or(page.time_ns);
        Some((begin_ns, self.stream.time().ns(end).max(begin_ns)))
    }

    /// When a page begins.
    fn page_time_ns(&mut self, page: u64) -> Option<i64> {
        self.buffer.page(self.stream, page).ok()?;
        let bytes = self.buffer.bytes(self.stream, page);
        let page = Page::parse(self.recording.layout(), bytes).ok()?;
        Some(self.stream.time().ns(page.time_ns))
    }

    /// The time of what it stands on; after a loss, the end of the loss.
    #[inline]
    pub fn time_ns(&self) -> i64 {
        self.time_ns
    }

    /// The stream.
    pub fn stream(&self) -> &'a PageStream {
        self.stream
    }

    /// The class of the event that it stands on.
    #[inline]
    pub fn class(&self) -> ClassId {
        self.class
    }

    /// The event that it stands on.
    #[inline]
    pub fn event(&self) -> RecordRef<'_> {
        let page = self.buffer.bytes(self.stream, self.page);
        let records = page.get(self.records.clone()).unwrap_or_default();
        RecordRef {
            reading: &self.recording.readings[self.class.0 as usize],
            tables: &self.recording.tables,
            record: records.get(self.record.clone()).unwrap_or_default(),
            order: self.recording.layout().order(),
            cpu: self.stream.cpu().0,
        }
    }

    /// Goes to the next event.
    ///
    /// # Errors
    /// What stands there instead. After [`Halt::End`] it stays at the end.
    #[inline]
    pub fn advance(&mut self) -> Result<(), Box<Halt>> {
        loop {
            let page = self.buffer.bytes(self.stream, self.page);
            let records = page.get(self.records.clone()).unwrap_or_default();
            let begin = self.walk.at;
            match self.walk.next(records) {
                Some(Ok(place)) => {
                    let order = self.recording.layout().order();
                    let id = order.u16_at(records, place.start).unwrap_or(0);
                    self.time_ns = self.stream.time().ns(self.walk.time_ns);
                    let Some(class) = self.recording.class_of(id) else {
                        let reason = format!("a known event, found number {id}");
                        return Err(self.damage(begin, reason));
                    };
                    self.class = class;
                    self.record = place;
                    return Ok(());
                }
                Some(Err(reason)) => return Err(self.damage(begin, reason)),
                None => self.next_page()?,
            }
        }
    }

    /// Damage `at` bytes into the records.
    #[cold]
    fn damage(&self, at: usize, reason: String) -> Box<Halt> {
        let page = self.buffer.offset_bytes(self.stream, self.page);
        Box::new(Halt::Damage {
            offset_bytes: page.saturating_add((self.records.start + at) as u64),
            reason: format!("expected {reason}"),
        })
    }

    /// Goes to the next page; on a loss before it, it is there already.
    fn next_page(&mut self) -> Result<(), Box<Halt>> {
        if self.has_begun {
            self.page = self.page.saturating_add(1);
        }
        self.has_begun = true;
        self.records = 0..0;
        match self.buffer.page(self.stream, self.page) {
            Ok(()) => {}
            Err(Missing::End) => {
                self.has_begun = false;
                return Err(Box::new(Halt::End));
            }
            Err(Missing::Damage {
                offset_bytes,
                reason,
                next,
            }) => {
                self.page = next;
                self.has_begun = false;
                let reason = format!("expected {reason}");
                return Err(Box::new(Halt::Damage {
                    offset_bytes,
                    reason,
                }));
            }
        }
        let layout = self.recording.layout();
        let bytes = self.buffer.bytes(self.stream, self.page);
        let page = match Page::parse(layout, bytes) {
            Ok(page) => page,
            Err(PageDamage {
                offset_bytes,
                reason,
            }) => return Err(self.damage(offset_bytes, reason)),
        };
        let begin = layout.data_offset_bytes;
        self.records = begin..begin + page.size_bytes();
        self.walk = PageWalk::new(&page);
        let begin_ns = self.stream.time().ns(page.time_ns);
        let Some(count) = page.missed else {
            return Ok(());
        };
        let last_ns = std::mem::replace(&mut self.time_ns, begin_ns);
        Err(Box::new(Halt::Lost(Loss {
            count,
            begin_ns: if last_ns == i64::MIN {
                begin_ns
            } else {
                last_ns.min(begin_ns)
            },
            end_ns: begin_ns,
        })))
    }
}
