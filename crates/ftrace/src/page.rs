//! Ring-buffer pages: from the bytes of one sub-buffer to events with absolute times.
//!
//! The encoding is the kernel's (`include/linux/ring_buffer.h`): a header of time stamp and commit
//! word, then records that begin with five bits of type or length and 27 bits of time delta.

use crate::PageLayout;
use crate::bytes::Order;

/// Commit word: events are missing before this page.
const MISSED_EVENTS: u64 = 1 << 31;
/// Commit word: their number stands behind the last record.
const MISSED_STORED: u64 = 1 << 30;
/// Commit word: the bits of the size.
const COMMIT_MASK: u64 = (1 << 30) - 1;

/// Record type: padding, or a discarded record.
const TYPE_PADDING: u32 = 29;
/// Record type: a time delta too long for 27 bits.
const TYPE_TIME_EXTEND: u32 = 30;
/// Record type: an absolute time of 59 bits.
const TYPE_TIME_STAMP: u32 = 31;
/// Bits of a record's time delta.
const DELTA_BITS: u32 = 27;
/// Bits of the time that a record's absolute time does not have.
const TIME_HIGH_BITS: u64 = 0xf8 << 56;

/// The header of a sub-buffer and its records, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The time that the first record's delta counts from, in nanoseconds of the instance's clock.
    pub time_ns: u64,
    /// How many events the kernel dropped just before this page; `Some(None)` when it did not say.
    pub missed: Option<Option<u64>>,
    records: &'a [u8],
    /// Where the records begin in the page, for damage reports.
    offset_bytes: usize,
    order: Order,
}

/// One event of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// Nanoseconds of the instance's clock.
    pub time_ns: u64,
    /// The record: `common_type` first. Its length is a multiple of four.
    pub record: &'a [u8],
}

/// Why the rest of a page could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageDamage {
    /// Offset from the page's begin.
    pub offset_bytes: usize,
    /// What was expected and what was found.
    pub reason: String,
}

impl<'a> Page<'a> {
    /// Reads the header of the sub-buffer `bytes`.
    ///
    /// # Errors
    /// When the bytes are shorter than the header, or than the header says.
    pub fn parse(layout: &PageLayout, bytes: &'a [u8]) -> Result<Self, PageDamage> {
        let damage = |offset_bytes, reason: String| PageDamage {
            offset_bytes,
            reason,
        };
        let order = layout.order();
        let data = bytes.get(layout.data_offset_bytes..);
        let time_ns = order.u64_at(bytes, 0);
        // The commit word is a long of the kernel's, and so is the number of missed events.
        let long = |bytes, at| match layout.commit_size_bytes {
            8 => order.u64_at(bytes, at),
            _ => order.u32_at(bytes, at).map(u64::from),
        };
        let commit = long(bytes, layout.commit_offset_bytes);
        let (Some(data), Some(time_ns), Some(commit)) = (data, time_ns, commit) else {
            return Err(damage(
                0,
                format!("a page header, but only {} bytes", bytes.len()),
            ));
        };
        let size = (commit & COMMIT_MASK) as usize;
        let Some(records) = data.get(..size) else {
            let reason = format!("{size} bytes of records, but only {}", data.len());
            return Err(damage(layout.commit_offset_bytes, reason));
        };
        let missed = (commit & MISSED_EVENTS != 0).then(|| {
            if commit & MISSED_STORED != 0 {
                long(data, size)
            } else {
                None
            }
        });
        Ok(Page {
            time_ns,
            missed,
            records,
            offset_bytes: layout.data_offset_bytes,
            order,
        })
    }

    /// A walk over the events, in the order in which they were written.
    pub fn events(&self) -> PageEvents<'a> {
        PageEvents {
            records: self.records,
            walk: PageWalk::new(self),
            offset_bytes: self.offset_bytes,
        }
    }

    /// Whether the kernel wrote it: zeros are no page.
    pub(crate) fn is_written(&self) -> bool {
        self.time_ns > 0 || !self.records.is_empty()
    }

    pub(crate) fn records(&self) -> &'a [u8] {
        self.records
    }

    /// Where the records begin.
    pub(crate) fn offset_bytes(&self) -> usize {
        self.offset_bytes
    }

    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Bytes of records on this page.
    pub fn size_bytes(&self) -> usize {
        self.records.len()
    }
}

/// The walk over a page's events. After damage it ends.
#[derive(Clone, Debug)]
pub struct PageEvents<'a> {
    records: &'a [u8],
    walk: PageWalk,
    offset_bytes: usize,
}

impl<'a> Iterator for PageEvents<'a> {
    type Item = Result<RawEvent<'a>, PageDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        let begin = self.walk.at;
        match self.walk.next(self.records)? {
            Ok(place) => Some(Ok(RawEvent {
                time_ns: self.walk.time_ns,
                record: &self.records[place],
            })),
            Err(reason) => Some(Err(PageDamage {
                offset_bytes: self.offset_bytes + begin,
                reason,
            })),
        }
    }
}

/// Where a walk over the records of a page stands; it borrows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageWalk {
    /// The next record.
    pub at: usize,
    /// The time of the last one.
    pub time_ns: u64,
    order: Order,
}

/// What the next record is.
enum Step {
    Event(std::ops::Range<usize>),
    Time,
    End,
}

impl PageWalk {
    /// Before the first record of `page`.
    pub fn new(page: &Page<'_>) -> Self {
        PageWalk {
            at: 0,
            time_ns: page.time_ns,
            order: page.order,
        }
    }

    /// The place of the next event in `records`; none at their end. After damage it ends.
    #[inline]
    pub fn next(&mut self, records: &[u8]) -> Option<Result<std::ops::Range<usize>, String>> {
        while self.at < records.len() {
            match self.step(records) {
                Ok(Step::Event(place)) => return Some(Ok(place)),
                Ok(Step::Time) => {}
                Ok(Step::End) => self.at = records.len(),
                Err(reason) => {
                    self.at = records.len();
                    return Some(Err(reason));
                }
            }
        }
        None
    }

    /// Takes one record; always moves forward by at least four bytes.
    #[inline]
    fn step(&mut self, records: &[u8]) -> Result<Step, String> {
        let header = self.word(records, 0)?;
        let (kind, delta) = match self.order {
            Order::Little => (header & 0x1f, header >> 5),
            Order::Big => (header >> DELTA_BITS, header & ((1 << DELTA_BITS) - 1)),
        };
        let delta = u64::from(delta);
        let second = |this: &Self| this.word(records, 4).map(u64::from);
        match kind {
            TYPE_PADDING if delta == 0 => return Ok(Step::End),
            TYPE_PADDING => {
                // A discarded record: its delta counts, because the next one counts from it.
                let length = second(self)? as usize;
                self.time_ns = self.time_ns.wrapping_add(delta);
                self.skip(records, length.saturating_add(4))?;
                return Ok(Step::Time);
            }
            TYPE_TIME_EXTEND => {
                let long = (second(self)? << DELTA_BITS) + delta;
                self.time_ns = self.time_ns.wrapping_add(long);
                self.skip(records, 8)?;
                return Ok(Step::Time);
            }
            TYPE_TIME_STAMP => {
                self.time_ns = absolute(self.time_ns, (second(self)? << DELTA_BITS) + delta);
                self.skip(records, 8)?;
                return Ok(Step::Time);
            }
            _ => {}
        }
        let (begin, length) = match kind {
            // The long form: a word with the length of itself and the data follows.
            0 => match (second(self)? as usize).checked_sub(4) {
                Some(length) => (8, length),
                None => return Err("a record's length of at least 4, found less".to_owned()),
            },
            words => (4, words as usize * 4),
        };
        let record_begin = self.at + begin;
        self.skip(records, begin.saturating_add(length.next_multiple_of(4)))?;
        self.time_ns = self.time_ns.wrapping_add(delta);
        Ok(Step::Event(record_begin..record_begin + length))
    }

    #[inline]
    fn word(&self, records: &[u8], offset: usize) -> Result<u32, String> {
        let found = records.len() - self.at;
        let word = self.order.u32_at(records, self.at + offset);
        word.ok_or_else(|| format!("a record header, found the last {found} bytes of the page"))
    }

    #[inline]
    fn skip(&mut self, records: &[u8], length: usize) -> Result<(), String> {
        let left = records.len() - self.at;
        if length > left {
            return Err(format!("a record of {length} bytes, found only {left}"));
        }
        self.at += length;
        Ok(())
    }
}

/// An absolute time of 59 bits, completed with the high bits of the time before it (as
/// `rb_fix_abs_ts` does).
fn absolute(before_ns: u64, low_ns: u64) -> u64 {
    let high = before_ns & TIME_HIGH_BITS;
    let time = low_ns | high;
    if high != 0 && time < before_ns {
        time.wrapping_add(1 << 59)
    } else {
        time
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
