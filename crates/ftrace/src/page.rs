//! Ring-buffer pages: from the bytes of one sub-buffer to events with absolute times.
//!
//! The encoding is the kernel's (`include/linux/ring_buffer.h`): a header of time stamp and commit
//! word, then records that begin with five bits of type or length and 27 bits of time delta.

use crate::PageLayout;

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
        let data = bytes.get(layout.data_offset_bytes..);
        let time_ns = read_u64(bytes, 0);
        let commit = match layout.commit_size_bytes {
            8 => read_u64(bytes, layout.commit_offset_bytes),
            _ => read_u32(bytes, layout.commit_offset_bytes).map(u64::from),
        };
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
                read_u64(data, size)
            } else {
                None
            }
        });
        Ok(Page {
            time_ns,
            missed,
            records,
            offset_bytes: layout.data_offset_bytes,
        })
    }

    /// A walk over the events, in the order in which they were written.
    pub fn events(&self) -> PageEvents<'a> {
        PageEvents {
            records: self.records,
            at: 0,
            time_ns: self.time_ns,
            offset_bytes: self.offset_bytes,
        }
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
    at: usize,
    time_ns: u64,
    offset_bytes: usize,
}

/// What the next record is.
enum Step<'a> {
    Event(&'a [u8]),
    Time,
    End,
}

impl<'a> Iterator for PageEvents<'a> {
    type Item = Result<RawEvent<'a>, PageDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.records.len() {
            let begin = self.at;
            match self.step() {
                Ok(Step::Event(record)) => {
                    return Some(Ok(RawEvent {
                        time_ns: self.time_ns,
                        record,
                    }));
                }
                Ok(Step::Time) => {}
                Ok(Step::End) => self.at = self.records.len(),
                Err(reason) => {
                    self.at = self.records.len();
                    let offset_bytes = self.offset_bytes + begin;
                    return Some(Err(PageDamage {
                        offset_bytes,
                        reason,
                    }));
                }
            }
        }
        None
    }
}

impl<'a> PageEvents<'a> {
    /// Takes one record; always moves forward by at least four bytes.
    fn step(&mut self) -> Result<Step<'a>, String> {
        let header = self.word(0)?;
        let (kind, delta) = (header & 0x1f, u64::from(header >> 5));
        let second = |this: &Self| this.word(4).map(u64::from);
        match kind {
            TYPE_PADDING if delta == 0 => return Ok(Step::End),
            TYPE_PADDING => {
                // A discarded record: its delta counts, because the next one counts from it.
                let length = second(self)? as usize;
                self.time_ns = self.time_ns.wrapping_add(delta);
                self.skip(length.saturating_add(4))?;
                return Ok(Step::Time);
            }
            TYPE_TIME_EXTEND => {
                let long = (second(self)? << 27) + delta;
                self.time_ns = self.time_ns.wrapping_add(long);
                self.skip(8)?;
                return Ok(Step::Time);
            }
            TYPE_TIME_STAMP => {
                self.time_ns = absolute(self.time_ns, (second(self)? << 27) + delta);
                self.skip(8)?;
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
        self.skip(begin.saturating_add(length.next_multiple_of(4)))?;
        self.time_ns = self.time_ns.wrapping_add(delta);
        Ok(Step::Event(
            &self.records[record_begin..record_begin + length],
        ))
    }

    fn word(&self, offset: usize) -> Result<u32, String> {
        let found = self.records.len() - self.at;
        read_u32(self.records, self.at + offset)
            .ok_or_else(|| format!("a record header, found the last {found} bytes of the page"))
    }

    fn skip(&mut self, length: usize) -> Result<(), String> {
        let left = self.records.len() - self.at;
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

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(
        bytes.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
