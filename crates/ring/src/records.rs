//! The records in a stretch of a ring.

use abi::rings::{self, Plain};

/// Bytes of a record's header.
const HEADER_BYTES: usize = size_of::<rings::Record>();

/// One event as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its first eight bytes: size, event and thread. Records of which they are equal are alike in
    /// all three; never 0.
    pub alike: u64,
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

    /// The record at the position, where it is whole and nothing is amiss with it: the most of
    /// them. [`Records::accept`] goes on behind it; [`Records::next`] deals with all others.
    #[inline(always)]
    pub fn peek(&self) -> Option<Record<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let first = u64::from_le_bytes(*rest.first_chunk()?);
        let size_bytes = usize::from(first as u16) * 8;
        let record = rest.get(..size_bytes)?;
        let header = rings::Record::from_bytes(record)?;
        let id = (first >> 16) as u16;
        let is_sound = size_bytes <= self.subbuffer_end - self.at
            && header.time >= self.time_min
            && id != rings::ID_PADDING;
        is_sound.then(|| Record {
            alike: first,
            id,
            tid: (first >> 32) as i32,
            time: header.time,
            payload: &record[HEADER_BYTES..],
        })
    }

    /// Goes on behind `record`, which [`Records::peek`] gave.
    #[inline(always)]
    pub fn accept(&mut self, record: &Record<'_>) {
        self.time_min = record.time;
        self.advance(HEADER_BYTES + record.payload.len());
    }

    /// The records from the position on that are like the one there, up to the end of the
    /// sub-buffer at most. [`Records::skip`] goes on behind some of them.
    #[inline(always)]
    pub fn alike(&self) -> Option<Alike<'a>> {
        let record = self.peek()?;
        let end = self.subbuffer_end.min(self.bytes.len());
        Some(Alike {
            bytes: &self.bytes[self.at..end],
            alike: record.alike,
            size_bytes: HEADER_BYTES + record.payload.len(),
            at: 0,
            time_min: self.time_min,
        })
    }

    /// Goes on behind so many of the records `alike`, which were all taken from it.
    #[inline(always)]
    pub fn skip(&mut self, alike: &Alike<'_>, count: usize) {
        if count > 0 {
            let behind = count * alike.size_bytes;
            let last = &alike.bytes[behind - alike.size_bytes..];
            self.time_min = rings::Record::from_bytes(last).map_or(0, |last| last.time);
            self.advance(behind);
        }
    }

    /// Goes on by `size_bytes`, at most to the end of the sub-buffer.
    #[inline(always)]
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

/// Records of one event, thread and size, one after the other.
#[derive(Clone, Debug)]
pub struct Alike<'a> {
    bytes: &'a [u8],
    alike: u64,
    size_bytes: usize,
    at: usize,
    time_min: u64,
}

impl<'a> Alike<'a> {
    /// The time of the next of them, and the `window_bytes` from its payload on, of which those
    /// behind its end are not its own. None where there are not so many, or it is no such record.
    #[inline(always)]
    pub fn next_window(&mut self, window_bytes: usize) -> Option<(u64, &'a [u8])> {
        let rest = self.bytes.get(self.at..)?;
        let header = rings::Record::from_bytes(rest)?;
        let first = u64::from_le_bytes(*rest.first_chunk()?);
        let window = rest.get(HEADER_BYTES..HEADER_BYTES + window_bytes)?;
        if first != self.alike || header.time < self.time_min {
            return None;
        }
        self.time_min = header.time;
        self.at += self.size_bytes;
        Some((header.time, window))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            if let Some(record) = self.peek() {
                self.accept(&record);
                return Some(record);
            }
            let rest = self.bytes.get(self.at..)?;
            let first = u64::from_le_bytes(*rest.first_chunk()?);
            let size_bytes = usize::from(first as u16) * 8;
            if (first >> 16) as u16 == rings::ID_PADDING {
                // Behind half of it, what is left there from an earlier turn would be a record.
                if self.subbuffer_end > self.bytes.len() {
                    return None;
                }
                self.advance(self.subbuffer_end - self.at);
                continue;
            }
            let is_possible = (HEADER_BYTES..=self.subbuffer_end - self.at).contains(&size_bytes);
            if is_possible && size_bytes > rest.len() {
                return None;
            }
            self.pass_by();
        }
    }
}
