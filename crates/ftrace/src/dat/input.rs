//! Numbers and texts one after the other, out of a file or out of bytes of it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use event::{Error, ErrorKind, Result};

use crate::bytes::Order;

/// A name in the file's head is no longer.
const TEXT_BYTES_MAX: u64 = 4096;
/// No table in the file's head is larger.
const TABLE_BYTES_MAX: u64 = 64 << 20;

/// Where the bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    File(&'a File),
    Bytes(&'a [u8]),
}

/// A walk over them.
#[derive(Clone, Debug)]
pub(super) struct Input<'a> {
    source: Source<'a>,
    /// The file's name, for errors.
    name: &'a str,
    at: u64,
    end: u64,
    order: Order,
}

impl<'a> Input<'a> {
    /// From the begin of a file.
    pub fn file(file: &'a File, name: &'a str) -> Result<Self> {
        let status = file.metadata();
        let status = status.map_err(|cause| Error::io(format!("cannot read {name}"), cause))?;
        Ok(Input {
            source: Source::File(file),
            name,
            at: 0,
            end: status.len(),
            order: Order::Little,
        })
    }

    /// From the begin of bytes that came out of the same file.
    pub fn inside(&self, bytes: &'a [u8]) -> Input<'a> {
        Input {
            source: Source::Bytes(bytes),
            at: 0,
            end: bytes.len() as u64,
            ..self.clone()
        }
    }

    /// Numbers have this order from here on.
    pub fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    /// Goes on at this offset.
    pub fn seek(&mut self, at: u64) {
        self.at = at;
    }

    pub fn at(&self) -> u64 {
        self.at
    }

    /// Bytes up to the end.
    pub fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    /// What was expected here was not found.
    pub fn corrupt(&self, expected: &str) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            format!("cannot understand {}", self.name),
        )
        .found(format!("no {expected} at byte {}", self.at))
        .fix("record again; 'trace-cmd dump --validate -i FILE' names what a whole file lacks")
    }

    /// The next bytes, as many as the buffer has room for; `expected` names them in an error.
    fn fill(&mut self, buffer: &mut [u8], expected: &str) -> Result<()> {
        if buffer.len() as u64 > self.left() {
            return Err(self.corrupt(expected));
        }
        match self.source {
            Source::File(file) => file
                .read_exact_at(buffer, self.at)
                .map_err(|cause| Error::io(format!("cannot read {}", self.name), cause))?,
            Source::Bytes(bytes) => {
                let rest = bytes.get(self.at as usize..).unwrap_or_default();
                let found = rest.get(..buffer.len());
                buffer.copy_from_slice(found.ok_or_else(|| self.corrupt(expected))?);
            }
        }
        self.at += buffer.len() as u64;
        Ok(())
    }

    pub fn u8(&mut self, expected: &str) -> Result<u8> {
        let mut byte = [0];
        self.fill(&mut byte, expected)?;
        Ok(byte[0])
    }

    pub fn u16(&mut self, expected: &str) -> Result<u16> {
        let mut word = [0; 2];
        self.fill(&mut word, expected)?;
        Ok(self.order.u16_at(&word, 0).unwrap_or(0))
    }

    pub fn u32(&mut self, expected: &str) -> Result<u32> {
        let mut word = [0; 4];
        self.fill(&mut word, expected)?;
        Ok(self.order.u32_at(&word, 0).unwrap_or(0))
    }

    pub fn u64(&mut self, expected: &str) -> Result<u64> {
        let mut word = [0; 8];
        self.fill(&mut word, expected)?;
        Ok(self.order.u64_at(&word, 0).unwrap_or(0))
    }

    /// The next `count` bytes, as far as they are there and a table may be large.
    pub fn take(&mut self, count: u64, expected: &str) -> Result<Vec<u8>> {
        if count > self.left() || count > TABLE_BYTES_MAX {
            return Err(self.corrupt(&format!("{count} bytes of {expected}")));
        }
        let mut taken = vec![0; count as usize];
        self.fill(&mut taken, expected)?;
        Ok(taken)
    }

    /// Steps over `count` bytes.
    pub fn skip(&mut self, count: u64, expected: &str) -> Result<()> {
        if count > self.left() {
            return Err(self.corrupt(&format!("{count} bytes of {expected}")));
        }
        self.at += count;
        Ok(())
    }

    /// A text up to its zero byte, which is taken too.
    pub fn text(&mut self, expected: &str) -> Result<String> {
        let mut piece = vec![0; self.left().min(TEXT_BYTES_MAX) as usize];
        let begin = self.at;
        self.fill(&mut piece, expected)?;
        let end = piece.iter().position(|byte| *byte == 0);
        self.at = begin;
        let end = end.ok_or_else(|| self.corrupt(expected))?;
        self.at += end as u64 + 1;
        Ok(String::from_utf8_lossy(&piece[..end]).into_owned())
    }

    /// Takes exactly these bytes.
    pub fn literal(&mut self, literal: &[u8], expected: &str) -> Result<()> {
        let begin = self.at;
        if self.take(literal.len() as u64, expected)? != literal {
            self.at = begin;
            return Err(self.corrupt(expected));
        }
        Ok(())
    }
}
