//! The pages of one CPU: where they are in a file, plain or compressed in chunks.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use event::{Cpu, Error, Result};

use crate::bytes::Order;
use crate::dat::Tsc;
use crate::dat::pack::Packing;

/// Bytes of plain pages that are read at once.
const PIECE_BYTES: usize = 256 << 10;
/// No chunk is larger: trace-cmd makes them of ten pages.
const CHUNK_BYTES_MAX: u32 = 16 << 20;
/// Chunks of one CPU; with chunks of ten pages they hold 40 GB.
const CHUNKS_MAX: u32 = 1 << 20;

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub at: u64,
    pub size: u64,
}

/// How the times of a ring become nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeScale {
    pub tsc: Option<Tsc>,
    pub offset_ns: i64,
}

impl TimeScale {
    /// Nanoseconds; what would leave their range stays at its end.
    #[inline]
    pub fn ns(self, ticks: u64) -> i64 {
        let ns = match self.tsc {
            None => ticks,
            Some(tsc) => {
                let wide = (u128::from(ticks) * u128::from(tsc.mult)) >> tsc.shift;
                u64::try_from(wide).unwrap_or(u64::MAX)
            }
        };
        i64::try_from(ns)
            .unwrap_or(i64::MAX)
            .saturating_add(self.offset_ns)
    }
}

/// The pages of one CPU.
#[derive(Debug)]
pub struct PageStream {
    file: Arc<File>,
    name: String,
    cpu: Cpu,
    place: Place,
    page_bytes: usize,
    time: TimeScale,
    /// Chunks that are compressed; none where pages are plain.
    chunks: Option<Chunks>,
    /// How much memory its pages may take at once.
    buffer_bytes: usize,
}

/// Where the chunks of a stream are.
#[derive(Debug)]
struct Chunks {
    packing: Packing,
    /// In their order.
    list: Vec<Chunk>,
    /// Why the list ends early.
    damage: Option<(u64, String)>,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// Of its compressed bytes.
    at: u64,
    packed_bytes: u32,
    bytes: u32,
    /// Pages before it.
    first_page: u64,
}

impl PageStream {
    /// Plain pages at `place`; what lies behind the file's end is not there.
    pub(crate) fn new(
        file: Arc<File>,
        name: String,
        cpu: Cpu,
        place: Place,
        page_bytes: usize,
    ) -> Self {
        // What is said of the size may be anything: a page beyond the file's end tells that it was
        // cut, and more would tell no more.
        let file_bytes = file.metadata().map_or(u64::MAX, |facts| facts.len());
        let there_bytes = file_bytes.saturating_sub(place.at);
        let place = Place {
            size: place
                .size
                .min(there_bytes.saturating_add(page_bytes as u64)),
            ..place
        };
        PageStream {
            file,
            name,
            cpu,
            place,
            page_bytes,
            time: TimeScale::default(),
            chunks: None,
            buffer_bytes: PIECE_BYTES,
        }
    }

    pub(crate) fn with_time(self, time: TimeScale) -> Self {
        PageStream { time, ..self }
    }

    /// The same in chunks that are compressed; reads where they are.
    pub(crate) fn packed(mut self, packing: Packing, order: Order) -> Result<Self> {
        let mut chunks = Chunks {
            packing,
            list: Vec::new(),
            damage: None,
        };
        if self.place.size > 0
            && let Err((at, reason)) = self.find_chunks(order, &mut chunks.list)?
        {
            chunks.damage = Some((at, reason));
        }
        self.chunks = Some(chunks);
        Ok(self)
    }

    /// Bounds the memory that its pages take at once.
    pub(crate) fn limit_buffer(&mut self, bytes: usize) {
        self.buffer_bytes = bytes;
    }

    /// The file's name inside of the recording.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its CPU.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Bytes of the file.
    pub fn size_bytes(&self) -> u64 {
        self.place.size
    }

    pub(crate) fn time(&self) -> TimeScale {
        self.time
    }

    /// How many whole pages there should be.
    pub fn pages(&self) -> u64 {
        match &self.chunks {
            None => self.place.size / self.page_bytes as u64,
            Some(chunks) => chunks.list.last().map_or(0, |last| {
                last.first_page + u64::from(last.bytes) / self.page_bytes as u64
            }),
        }
    }

    /// Reads the table of chunks; where it ends early, the inner error says why.
    fn find_chunks(
        &self,
        order: Order,
        list: &mut Vec<Chunk>,
    ) -> Result<std::result::Result<(), (u64, String)>> {
        let end = self.place.at.saturating_add(self.place.size);
        let mut at = self.place.at;
        let mut word = [0u8; 8];
        if !self.read_whole(&mut word[..4], at)? {
            return Ok(Err((at, "a number of chunks, found the file's end".into())));
        }
        let count = order.u32_at(&word, 0).unwrap_or(0);
        at += 4;
        let mut first_page = 0;
        for _ in 0..count.min(CHUNKS_MAX) {
            if at.saturating_add(8) > end || !self.read_whole(&mut word, at)? {
                return Ok(Err((at, "a chunk, found the end of the data".into())));
            }
            let packed_bytes = order.u32_at(&word, 0).unwrap_or(0);
            let bytes = order.u32_at(&word, 4).unwrap_or(0);
            let pages = u64::from(bytes) / self.page_bytes as u64;
            if bytes > CHUNK_BYTES_MAX || packed_bytes > CHUNK_BYTES_MAX || pages == 0 {
                let reason = format!("a chunk of whole pages, found {packed_bytes}, {bytes} bytes");
                return Ok(Err((at, reason)));
            }
            list.push(Chunk {
                at: at + 8,
                packed_bytes,
                bytes,
                first_page,
            });
            first_page += pages;
            at = at.saturating_add(8 + u64::from(packed_bytes));
        }
        Ok(if count > CHUNKS_MAX {
            Err((at, format!("at most {CHUNKS_MAX} chunks, found {count}")))
        } else if at < end {
            let left = end - at;
            Err((
                at,
                format!("chunks up to the end of the data, found {left} bytes more"),
            ))
        } else {
            Ok(())
        })
    }

    /// The pages that were compressed together with this one; none where pages are plain.
    pub(crate) fn chunk(&self, index: u64) -> Option<Range<u64>> {
        let chunk = self.chunks.as_ref()?.find(index)?;
        let pages = u64::from(chunk.bytes) / self.page_bytes as u64;
        Some(chunk.first_page..chunk.first_page + pages)
    }

    /// Fills the buffer; false when the file ends before.
    fn read_whole(&self, buffer: &mut [u8], at: u64) -> Result<bool> {
        match self.file.read_exact_at(buffer, at) {
            Ok(()) => Ok(true),
            Err(cause) if cause.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            Err(cause) => Err(Error::io(format!("cannot read {}", self.name), cause)),
        }
    }
}

/// Pages that were read.
#[derive(Debug, Default)]
pub(crate) struct PageBuffer {
    bytes: Vec<u8>,
    packed: Vec<u8>,
    first_page: u64,
    /// Whole pages.
    pages: u64,
}

/// Why a page is not there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// There are no more.
    End,
    /// These bytes are no page; the next that may be one is `next`.
    Damage {
        offset_bytes: u64,
        reason: String,
        next: u64,
    },
}

impl PageBuffer {
    /// The page `index` of `stream`, which is read when it is not there yet.
    #[inline]
    pub fn page(&mut self, stream: &PageStream, index: u64) -> std::result::Result<(), Missing> {
        match self.holds(index) {
            true => Ok(()),
            false => self.load(stream, index),
        }
    }

    pub fn holds(&self, index: u64) -> bool {
        index
            .checked_sub(self.first_page)
            .is_some_and(|at| at < self.pages)
    }

    /// The bytes of a page that [`PageBuffer::page`] found; none of any other.
    #[inline]
    pub fn bytes(&self, stream: &PageStream, index: u64) -> &[u8] {
        let place = match index.checked_sub(self.first_page) {
            Some(place) if place < self.pages => place as usize,
            _ => return &[],
        };
        let at = place * stream.page_bytes;
        self.bytes.get(at..at + stream.page_bytes).unwrap_or(&[])
    }

    /// Where a page begins in the file: of a compressed one, where its chunk begins.
    pub fn offset_bytes(&self, stream: &PageStream, index: u64) -> u64 {
        match &stream.chunks {
            None => index
                .saturating_mul(stream.page_bytes as u64)
                .saturating_add(stream.place.at),
            Some(chunks) => chunks.find(index).map_or(0, |chunk| chunk.at),
        }
    }

    #[cold]
    fn load(&mut self, stream: &PageStream, index: u64) -> std::result::Result<(), Missing> {
        self.pages = 0;
        if index >= stream.pages() {
            return Err(stream.end(index));
        }
        if stream.page_bytes > stream.buffer_bytes {
            let bytes = stream.page_bytes;
            let reason = format!(
                "a page of at most {} bytes, found {bytes}",
                stream.buffer_bytes
            );
            return Err(lost_pages(stream.place.at, reason));
        }
        match &stream.chunks {
            None => self.load_plain(stream, index),
            Some(chunks) => self.load_chunk(stream, chunks, index),
        }
    }

    fn load_plain(&mut self, stream: &PageStream, index: u64) -> std::result::Result<(), Missing> {
        let wanted = (PIECE_BYTES.min(stream.buffer_bytes) / stream.page_bytes) as u64;
        let pages = wanted.max(1).min(stream.pages() - index);
        let at = stream
            .place
            .at
            .saturating_add(index * stream.page_bytes as u64);
        self.bytes.resize(pages as usize * stream.page_bytes, 0);
        let found = read_up_to(&stream.file, &mut self.bytes, at);
        let found = found.map_err(|error| lost_pages(at, error.to_string()))?;
        self.first_page = index;
        self.pages = (found / stream.page_bytes) as u64;
        match self.pages {
            0 => Err(lost_pages(
                at,
                format!("a page of {} bytes, found {found}", stream.page_bytes),
            )),
            _ => Ok(()),
        }
    }

    fn load_chunk(
        &mut self,
        stream: &PageStream,
        chunks: &Chunks,
        index: u64,
    ) -> std::result::Result<(), Missing> {
        let Some(chunk) = chunks.find(index) else {
            return Err(Missing::End);
        };
        let pages = u64::from(chunk.bytes) / stream.page_bytes as u64;
        let damage = |reason: String| Missing::Damage {
            offset_bytes: chunk.at,
            reason,
            next: chunk.first_page + pages,
        };
        let bytes = chunk.bytes.max(chunk.packed_bytes) as usize;
        if bytes > stream.buffer_bytes {
            let most = stream.buffer_bytes;
            return Err(damage(format!(
                "a chunk of at most {most} bytes, found {bytes}"
            )));
        }
        self.packed.resize(chunk.packed_bytes as usize, 0);
        let found = read_up_to(&stream.file, &mut self.packed, chunk.at)
            .map_err(|error| damage(error.to_string()))?;
        let packed = &self.packed[..found];
        chunks
            .packing
            .unpack(packed, chunk.bytes as usize, &mut self.bytes)
            .map_err(damage)?;
        self.first_page = chunk.first_page;
        self.pages = pages;
        Ok(())
    }
}

impl PageStream {
    /// What lies behind the last page: nothing, or bytes that are none.
    fn end(&self, index: u64) -> Missing {
        if index > self.pages() {
            return Missing::End;
        }
        let damage = |offset_bytes, reason| Missing::Damage {
            offset_bytes,
            reason,
            next: u64::MAX,
        };
        match &self.chunks {
            Some(chunks) => chunks
                .damage
                .clone()
                .map_or(Missing::End, |(at, reason)| damage(at, reason)),
            None => match self.place.size % self.page_bytes as u64 {
                0 => Missing::End,
                rest => damage(
                    self.place.at.saturating_add(self.place.size - rest),
                    format!("a page of {} bytes, found {rest}", self.page_bytes),
                ),
            },
        }
    }
}

impl Chunks {
    /// The chunk that holds a page.
    fn find(&self, index: u64) -> Option<&Chunk> {
        let after = self.list.partition_point(|chunk| chunk.first_page <= index);
        self.list.get(after.checked_sub(1)?)
    }
}

/// Nothing can be read from here on.
fn lost_pages(offset_bytes: u64, reason: String) -> Missing {
    Missing::Damage {
        offset_bytes,
        reason,
        next: u64::MAX,
    }
}

/// Reads up to the buffer's end or the file's.
fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], at.saturating_add(count as u64)) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}
