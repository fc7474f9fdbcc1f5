//! The part of a stream file that is in memory.
//!
//! Files are read in pieces with `pread`, not mapped: a file that is cut while it is mapped ends
//! the process with SIGBUS, which no check beforehand can prevent. A piece read is a copy that
//! nobody can take away; it costs one pass over bytes that decoding looks at anyway.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where a stream's bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Bytes(&'a [u8]),
    /// An open file.
    File(&'a File),
    /// A file that is opened for each piece, where there are too many to keep open.
    Path(&'a Path),
}

impl Source<'_> {
    /// How many bytes there are now.
    pub fn size_bytes(&self) -> io::Result<u64> {
        match self {
            Source::Bytes(bytes) => Ok(bytes.len() as u64),
            Source::File(file) => file.metadata().map(|status| status.len()),
            Source::Path(path) => path.metadata().map(|status| status.len()),
        }
    }

    /// Reads up to the buffer's end or the source's.
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Source::Bytes(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
                let rest = rest.unwrap_or_default();
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
            Source::File(file) => read_all(file, buffer, offset),
            Source::Path(path) => read_all(&File::open(path)?, buffer, offset),
        }
    }
}

fn read_all(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], offset.saturating_add(count as u64)) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// A window over a source: the bytes from `at` on.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    source: Source<'a>,
    buffer: Vec<u8>,
    /// The source's offset of the first of them.
    at: u64,
    /// How much is read at once.
    piece_bytes: usize,
}

impl<'a> Window<'a> {
    pub fn new(source: Source<'a>, piece_bytes: usize) -> Self {
        Window {
            source,
            buffer: Vec::new(),
            at: 0,
            piece_bytes: piece_bytes.max(1),
        }
    }

    pub fn size_bytes(&self) -> io::Result<u64> {
        self.source.size_bytes()
    }

    pub fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// The bytes from `offset` on that are in memory.
    #[inline]
    pub fn from(&self, offset: u64) -> &[u8] {
        let skipped = offset.checked_sub(self.at).map(usize::try_from);
        match skipped {
            Some(Ok(skipped)) => self.buffer.get(skipped..).unwrap_or_default(),
            _ => &[],
        }
    }

    /// How many of the bytes in memory stand before `offset`.
    pub fn before(&self, offset: u64) -> usize {
        let skipped = offset.checked_sub(self.at).map(usize::try_from);
        match skipped {
            Some(Ok(skipped)) => skipped.min(self.buffer.len()),
            _ => self.buffer.len(),
        }
    }

    /// The bytes in memory after the first `skipped`.
    #[inline]
    pub fn after(&self, skipped: usize) -> &[u8] {
        self.buffer.get(skipped..).unwrap_or_default()
    }

    /// Sees to it that `length` bytes from `offset` on are in memory, or all up to the source's
    /// end.
    pub fn load(&mut self, offset: u64, length: usize) -> io::Result<()> {
        if self.from(offset).len() >= length {
            return Ok(());
        }
        self.fill(offset, length.max(self.piece_bytes))
    }

    /// Reads `length` bytes from `offset` on, or all up to the source's end.
    pub fn fill(&mut self, offset: u64, length: usize) -> io::Result<()> {
        self.at = offset;
        let mut wanted = length;
        if self.buffer.capacity() < length {
            // What the source does not have needs no memory.
            let left = self.source.size_bytes()?.saturating_sub(offset);
            wanted = usize::try_from(left).map_or(length, |left| left.min(length));
        }
        if self.buffer.capacity() < wanted {
            // What was read before is not needed: fresh memory is zero already.
            self.buffer = vec![0; wanted];
        }
        self.buffer.resize(wanted, 0);
        let read = self.source.read(&mut self.buffer, offset);
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        read.map(|_| ())
    }
}
