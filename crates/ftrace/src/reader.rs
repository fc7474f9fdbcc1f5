//! The walk over one CPU's pages: events with their times, losses and damage at their places.

use std::collections::VecDeque;
use std::ops::Range;

use event::ClassId;

use crate::lttng::RecordRef;
use crate::recording::Recording;
use crate::stream::{Missing, PageBuffer, PageStream};
use crate::whole_page::{Bounds, WholePage};
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

/// The time of events that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// After this time; [`i64::MIN`] when it is the recording's begin.
    pub begin_ns: i64,
    /// Up to this time; [`i64::MAX`] when it is the recording's end.
    pub end_ns: i64,
    /// Whether the file ends too early, and everything before its end was understood.
    pub is_cut: bool,
    /// Whether what cannot be read may be of any CPU.
    pub is_of_any_cpu: bool,
}

/// What the reader stands on when it is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Events are missing here.
    Lost(Loss),
    /// Events of this CPU are missing, in a text of several.
    LostOn(u32, Loss),
    /// Bytes that could not be understood; the walk goes on behind them.
    Damage {
        /// Offset in the file; of a compressed page, where its chunk begins.
        offset_bytes: u64,
        /// What was expected and what was found.
        reason: String,
    },
    /// The time of events that could not be read; after damage there is one.
    Unread(Hole),
    /// There is no more.
    End,
}

/// A walk over the pages of one stream.
#[derive(Debug)]
pub struct PageReader<'a> {
    recording: &'a Recording,
    stream: &'a PageStream,
    buffer: PageBuffer,
    /// The pages behind those of the buffer.
    behind: PageBuffer,
    /// The page that the reader is in.
    page: u64,
    /// Its events; none before the first page.
    events: WholePage,
    /// The next of them.
    next: usize,
    /// The event that it stands on, inside of the page.
    record: Range<usize>,
    /// When the last page began that was understood.
    page_begin_ns: i64,
    /// The time before the pages that were compressed together with the current one.
    chunk_begin_ns: i64,
    /// What could not be read and whose end is not known yet.
    hole: Option<Hole>,
    /// What is to be handed out before reading goes on.
    waiting: VecDeque<Halt>,
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
            behind: PageBuffer::default(),
            page: 0,
            events: WholePage::default(),
            next: 0,
            record: 0..0,
            page_begin_ns: i64::MIN,
            chunk_begin_ns: i64::MIN,
            hole: None,
            waiting: VecDeque::new(),
            class: ClassId(0),
            time_ns: i64::MIN,
            has_begun: false,
        })
    }

    /// The same that hands out these first.
    pub fn after(&mut self, halts: impl IntoIterator<Item = Halt>) {
        self.waiting.extend(halts);
    }

    /// Before the first page that may hold an event at `time_ns` or later. Pages of a ring follow
    /// each other in time.
    pub fn seek(&mut self, time_ns: i64) {
        let (mut first, mut end) = (0, self.stream.pages());
        // The first page that begins later. Of one that is damaged, the page before it tells.
        while first < end {
            let middle = first + (end - first) / 2;
            let sound = (first..=middle).rev();
            let sound = sound.take(SEEK_PAGES_MAX);
            let begin_ns = sound.into_iter().find_map(|page| self.page_time_ns(page));
            match begin_ns.is_some_and(|begin_ns| begin_ns > time_ns) {
                true => end = middle,
                false => first = middle + 1,
            }
        }
        self.page = first.saturating_sub(1);
        // From a page that is understood on, so that it is known where a hole begins.
        while self.page > 0 && self.page_time_ns(self.page).is_none() {
            self.page -= 1;
        }
        self.has_begun = false;
        self.events.clear();
        self.next = 0;
    }

    /// From the begin of its first page to its last event, as far as they are understood; none
    /// without events.
    pub fn range_ns(&mut self) -> Option<(i64, i64)> {
        let pages = self.stream.pages();
        let begin_ns = (0..pages).find_map(|page| self.page_time_ns(page))?;
        let end_ns = (0..pages).rev().find_map(|page| {
            let page_ns = self.page_time_ns(page).filter(|ns| *ns >= begin_ns)?;
            self.read_page(
                page,
                Bounds {
                    begin_ns: page_ns,
                    end_ns: i64::MAX,
                },
            );
            let latest_ns = self.events.latest_ns().unwrap_or(page_ns);
            Some(latest_ns)
        });
        self.events.clear();
        Some((begin_ns, end_ns.unwrap_or(begin_ns).max(begin_ns)))
    }

    /// When a page begins that is understood.
    fn page_time_ns(&mut self, page: u64) -> Option<i64> {
        self.buffer.page(self.stream, page).ok()?;
        let bytes = self.buffer.bytes(self.stream, page);
        let page = Page::parse(self.recording.layout(), bytes).ok()?;
        page.is_written()
            .then(|| self.stream.time().ns(page.time_ns))
    }

    /// When the page behind the current one begins, if it is understood; without giving up the
    /// current one.
    fn next_page_ns(&mut self) -> Option<i64> {
        let next = self.page.checked_add(1)?;
        let buffer = match self.buffer.holds(next) {
            true => &self.buffer,
            false => {
                self.behind.page(self.stream, next).ok()?;
                &self.behind
            }
        };
        let bytes = buffer.bytes(self.stream, next);
        let page = Page::parse(self.recording.layout(), bytes).ok()?;
        page.is_written()
            .then(|| self.stream.time().ns(page.time_ns))
    }

    /// Finds the events of a page that is in memory.
    fn read_page(&mut self, page: u64, bounds: Bounds) {
        let layout = self.recording.layout();
        let bytes = self.buffer.bytes(self.stream, page);
        let Ok(page) = Page::parse(layout, bytes) else {
            return self.events.clear();
        };
        let (recording, time) = (self.recording, self.stream.time());
        let is_known = |id| recording.class_of(id).is_some();
        let strangers = recording.has_strangers();
        self.events.read(&page, (time, bounds), strangers, is_known);
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
        RecordRef {
            reading: &self.recording.readings[self.class.0 as usize],
            tables: &self.recording.tables,
            record: page.get(self.record.clone()).unwrap_or_default(),
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
            let Some(event) = self.events.get(self.next) else {
                self.next_page()?;
                continue;
            };
            self.next += 1;
            self.time_ns = event.time_ns;
            self.record = event.place();
            let Some(class) = self.recording.class_of(event.id) else {
                return Err(self.stranger(event.id));
            };
            self.class = class;
            return Ok(());
        }
    }

    /// An event that no format tells of: of all others its time is known.
    #[cold]
    fn stranger(&mut self, id: u16) -> Box<Halt> {
        self.waiting.push_back(Halt::Unread(Hole {
            begin_ns: self.time_ns,
            end_ns: self.time_ns,
            is_cut: false,
            is_of_any_cpu: false,
        }));
        // It is handed out before the rest of the page.
        self.events.pause(self.next);
        self.next = self.events.len();
        self.damage(
            self.record.start,
            format!("a known event, found number {id}"),
        )
    }

    /// Damage `at` bytes into the page.
    #[cold]
    fn damage(&self, at: usize, reason: String) -> Box<Halt> {
        let page = self.buffer.offset_bytes(self.stream, self.page);
        Box::new(Halt::Damage {
            offset_bytes: page.saturating_add(at as u64),
            reason: format!("expected {reason}"),
        })
    }

    /// Goes to the next page; on a loss before it, it is there already.
    #[cold]
    fn next_page(&mut self) -> Result<(), Box<Halt>> {
        if let Some(halt) = self.waiting.pop_front() {
            return Err(Box::new(halt));
        }
        if let Some(next) = self.events.resume() {
            self.next = next;
            return Ok(());
        }
        if let Some((at, reason)) = self.events.take_damage() {
            let latest_ns = self.time_ns.max(self.page_begin_ns);
            let damage = self.damage(at, reason);
            self.unread(latest_ns, false);
            return Err(damage);
        }
        if self.has_begun {
            self.page = self.page.saturating_add(1);
        }
        self.has_begun = true;
        self.events.clear();
        self.next = 0;
        if self.behind.holds(self.page) && !self.buffer.holds(self.page) {
            std::mem::swap(&mut self.buffer, &mut self.behind);
        }
        if self
            .stream
            .chunk(self.page)
            .is_none_or(|chunk| chunk.start == self.page)
        {
            self.chunk_begin_ns = self.time_ns;
        }
        match self.buffer.page(self.stream, self.page) {
            Ok(()) => self.open_page(),
            Err(Missing::End) => {
                self.has_begun = false;
                let hole = self.hole.take().map(Halt::Unread);
                Err(Box::new(hole.unwrap_or(Halt::End)))
            }
            Err(Missing::Damage {
                offset_bytes,
                reason,
                next,
            }) => {
                self.unread(self.time_ns, next == u64::MAX);
                self.page = next;
                self.has_begun = false;
                let reason = format!("expected {reason}");
                Err(Box::new(Halt::Damage {
                    offset_bytes,
                    reason,
                }))
            }
        }
    }

    /// Nothing is read from `begin_ns` on, until a page is understood.
    fn unread(&mut self, begin_ns: i64, is_cut: bool) {
        let earlier = self.hole.take();
        let begin_ns = match self.stream.chunk(self.page) {
            // No sum guards what was compressed: all of it is doubted.
            Some(chunk) => {
                self.page = self.page.max(chunk.end.saturating_sub(1));
                begin_ns.min(self.chunk_begin_ns)
            }
            None => begin_ns,
        };
        let (begin_ns, is_cut) = match earlier {
            Some(hole) => (hole.begin_ns.min(begin_ns), hole.is_cut && is_cut),
            None => (begin_ns, is_cut),
        };
        self.hole = Some(Hole {
            begin_ns,
            end_ns: i64::MAX,
            is_cut,
            is_of_any_cpu: false,
        });
    }

    /// Reads the page that is in memory.
    fn open_page(&mut self) -> Result<(), Box<Halt>> {
        let layout = self.recording.layout();
        let bytes = self.buffer.bytes(self.stream, self.page);
        let page = match Page::parse(layout, bytes) {
            Ok(page) => page,
            Err(PageDamage {
                offset_bytes,
                reason,
            }) => {
                let damage = self.damage(offset_bytes, reason);
                self.unread(self.time_ns, false);
                return Err(damage);
            }
        };
        let is_written = page.is_written();
        let (missed, begin_ns) = (page.missed, self.stream.time().ns(page.time_ns));
        let next_ns = self.next_page_ns();
        let bounds = Bounds::of_page(begin_ns, self.page_begin_ns, next_ns);
        let bounds = bounds.filter(|_| is_written);
        let Some(bounds) = bounds else {
            let reason = format!("a page's time between those around it, found {begin_ns} ns");
            let damage = self.damage(0, reason);
            self.unread(self.time_ns, false);
            return Err(damage);
        };
        self.read_page(self.page, bounds);
        self.page_begin_ns = begin_ns;
        let last_ns = self.time_ns;
        if let Some(hole) = self.hole.take() {
            self.waiting.push_back(Halt::Unread(Hole {
                end_ns: begin_ns.max(hole.begin_ns),
                ..hole
            }));
        }
        if let Some(count) = missed {
            self.time_ns = begin_ns;
            self.waiting.push_back(Halt::Lost(Loss {
                count,
                begin_ns: match last_ns {
                    i64::MIN => begin_ns,
                    last_ns => last_ns.min(begin_ns),
                },
                end_ns: begin_ns,
            }));
        }
        match self.waiting.pop_front() {
            None => Ok(()),
            Some(halt) => {
                // What waits comes before the events of the page.
                if !self.waiting.is_empty() {
                    self.events.pause(0);
                    self.next = self.events.len();
                }
                Err(Box::new(halt))
            }
        }
    }
}

/// Pages before a damaged one that are asked for their time.
const SEEK_PAGES_MAX: usize = 1 << 10;
