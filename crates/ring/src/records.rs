//! The records in a stretch of a ring.

use abi::rings::{self, Plain};

/// Bytes of a record's header.
const HEADER_BYTES: usize = size_of::<rings::Record>();

/// One event as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Which event: an id of the table.
    pub id: u16,
    /// The thread, as the process sees it; 0 where it is not known.
    pub tid: i32,
    /// When, on the file's clock.
    pub time: u64,
    /// Its fields, and up to seven zeros.
    pub payload: &'a [u8],
}

/// Walks over the records of a stretch. It ends before a record that is not whole, so that the
/// next stretch can begin at [`Records::position`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    /// The ring's offset of the first byte.
    base: u64,
    subbuffer_bytes: u64,
    at: usize,
    /// Where the sub-buffer ends that holds `at`: a division for each record would cost as much as
    /// all the rest of it.
    subbuffer_end: usize,
    malformed: u64,
    time_min: u64,
}

impl<'a> Records<'a> {
    /// The records in `bytes`, which a ring holds from the offset `base` on: the beginning of a
    /// record. Times below `time_min` are malformed: times in a ring never fall.
    pub fn new(bytes: &'a [u8], base: u64, subbuffer_bytes: u64, time_min: u64) -> Self {
        let left = subbuffer_bytes - base % subbuffer_bytes;
        Records {
            bytes,
            base,
            subbuffer_bytes,
            at: 0,
            subbuffer_end: usize::try_from(left).unwrap_or(usize::MAX),
            malformed: 0,
            time_min,
        }
    }

    /// The ring's offset behind the last record.
    pub fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Stretches that were no records and were passed by, to the end of their sub-buffer.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// The time of the last record.
    pub fn time_max(&self) -> u64 {
        self.time_min
    }

    /// Goes on by `size_bytes`, at most to the end of the sub-buffer.
    #[inline]
    fn advance(&mut self, size_bytes: usize) {
        self.at += size_bytes;
        if self.at == self.subbuffer_end {
            let subbuffer_bytes = usize::try_from(self.subbuffer_bytes).unwrap_or(usize::MAX);
            self.subbuffer_end = self.at.saturating_add(subbuffer_bytes);
        }
    }

    /// Goes to the next sub-buffer, or as far as there are bytes.
    fn pass_by(&mut self) {
        self.malformed += 1;
        let left = self.subbuffer_end - self.at;
        self.advance(left.min(self.bytes.len() - self.at));
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            let rest = &self.bytes[self.at..];
            let first = rest
                .first_chunk::<8>()
                .map(|bytes| u64::from_le_bytes(*bytes))?;
            let size_bytes = usize::from(first as u16) * 8;
            let id = (first >> 16) as u16;
            if id == rings::ID_PADDING {
                // Behind half of it, what is left there from an earlier turn would be a record.
                if self.subbuffer_end > self.bytes.len() {
                    return None;
                }
                self.advance(self.subbuffer_end - self.at);
                continue;
            }
            if size_bytes < HEADER_BYTES || size_bytes > self.subbuffer_end - self.at {
                self.pass_by();
                continue;
            }
            let record = rest.get(..size_bytes)?;
            let header = rings::Record::from_bytes(record)?;
            if header.time < self.time_min {
                self.pass_by();
                continue;
            }
            self.time_min = header.time;
            self.advance(size_bytes);
            return Some(Record {
                id,
                tid: header.tid,
                time: header.time,
                payload: &record[HEADER_BYTES..],
            });
        }
    }
}
