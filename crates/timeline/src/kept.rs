//! Bytes of blocks that are no longer changed: in memory, or in a file that the caller lends for
//! what outgrows it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

use crate::decoded::Remembered;
use crate::packed::pack;

/// So much is written at once.
const HELD_BYTES: usize = 1 << 20;
/// Behind the bytes of each block stand so many, by which a damaged one is told.
const SUM_BYTES: usize = 4;
/// A block that says to be longer is none.
const BLOCK_BYTES_MAX: u32 = 1 << 20;

/// A file with blocks.
#[derive(Debug)]
pub(crate) struct Lent {
    file: File,
    /// What could not be written, and where it belongs: nothing is known behind it.
    unwritten: OnceLock<(u64, Vec<u8>)>,
    pub remembered: Remembered,
}

impl Lent {
    /// A file that is read, and perhaps written.
    pub fn new(file: File) -> Arc<Lent> {
        Arc::new(Lent {
            file,
            unwritten: OnceLock::new(),
            remembered: Remembered::default(),
        })
    }

    /// Reads all of `room`.
    pub fn read(&self, room: &mut [u8], at: u64) -> io::Result<()> {
        if let Some((from, bytes)) = self.unwritten.get()
            && let Some(skipped) = at.checked_sub(*from)
        {
            let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
            let found = skipped
                .checked_add(room.len())
                .and_then(|end| bytes.get(skipped..end));
            room.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
            return Ok(());
        }
        self.file.read_exact_at(room, at)
    }

    /// How many bytes it has.
    pub fn size_bytes(&self) -> io::Result<u64> {
        self.file.metadata().map(|facts| facts.len())
    }
}

/// The bytes of a block.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    Memory(Arc<[u8]>),
    Lent {
        lent: Arc<Lent>,
        at: u64,
        /// With their sum.
        bytes: u32,
    },
}

impl Kept {
    /// The bytes, read into `room` where they are in a file; none where they cannot be read, or
    /// are not what was kept.
    pub fn read<'r>(&'r self, room: &'r mut Vec<u8>) -> Option<&'r [u8]> {
        match self {
            Kept::Memory(bytes) => Some(bytes),
            Kept::Lent { lent, at, bytes } => {
                let bytes = Some(*bytes).filter(|bytes| *bytes <= BLOCK_BYTES_MAX)?;
                room.resize(bytes as usize, 0);
                lent.read(room, *at).ok()?;
                let (content, sum) = room.split_last_chunk::<SUM_BYTES>()?;
                (block_sum(content) == u32::from_le_bytes(*sum)).then_some(content)
            }
        }
    }
}

/// Where blocks are kept: in memory when no file is lent, or when that cannot be written.
#[derive(Debug, Default)]
pub(crate) struct Spill {
    lent: Option<Arc<Lent>>,
    /// Where what is held back belongs.
    at: u64,
    held: Vec<u8>,
    /// Numbers of a block on their way there.
    packed: Vec<u8>,
    failed: Option<io::Error>,
}

impl Spill {
    /// Into a file, from this place on.
    pub fn to(lent: Arc<Lent>, at: u64) -> Spill {
        Spill {
            lent: Some(lent),
            at,
            ..Spill::default()
        }
    }

    /// Keeps the bytes of a block. They can be read from a file once that was
    /// [flushed](Spill::flush).
    pub fn keep(&mut self, content: &[u8]) -> Kept {
        let lent = self.lent.as_ref().filter(|_| self.failed.is_none());
        let Some(lent) = lent.map(Arc::clone) else {
            return Kept::Memory(content.into());
        };
        let at = self.end();
        self.held.extend_from_slice(content);
        self.held
            .extend_from_slice(&block_sum(content).to_le_bytes());
        if self.held.len() >= HELD_BYTES {
            self.flush();
        }
        Kept::Lent {
            lent,
            at,
            bytes: (content.len() + SUM_BYTES) as u32,
        }
    }

    /// Keeps a block of numbers, [packed](pack).
    pub fn keep_numbers(&mut self, numbers: &[u64]) -> Kept {
        let mut packed = std::mem::take(&mut self.packed);
        pack(numbers, &mut packed);
        let kept = self.keep(&packed);
        self.packed = packed;
        kept
    }

    /// Writes bytes that are no block.
    pub fn put(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= HELD_BYTES {
            self.flush();
        }
    }

    /// Where the next byte belongs.
    pub fn end(&self) -> u64 {
        self.at + self.held.len() as u64
    }

    /// Whether blocks are in this file.
    pub fn is_in(&self, lent: &Arc<Lent>) -> bool {
        self.lent.as_ref().is_some_and(|own| Arc::ptr_eq(own, lent))
    }

    /// Writes what is held back. What cannot be written stays in memory.
    pub fn flush(&mut self) {
        let Some(lent) = self.lent.as_ref().filter(|_| self.failed.is_none()) else {
            return;
        };
        match lent.file.write_all_at(&self.held, self.at) {
            Ok(()) => {
                self.at += self.held.len() as u64;
                self.held.clear();
            }
            Err(error) => {
                let held = std::mem::take(&mut self.held);
                // It is set once: nothing is written behind a failure.
                lent.unwritten.set((self.at, held)).ok();
                self.failed = Some(error);
            }
        }
    }

    /// Writes what is held back.
    ///
    /// # Errors
    /// The first that the file had.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.failed.map_or(Ok(()), Err)
    }
}

/// FNV-1a over words of eight bytes: tells damaged bytes, not forged ones.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| u64::from(*byte));
    let sum = words.chain(rest).fold(0xcbf2_9ce4_8422_2325, mix);
    mix(sum, bytes.len() as u64)
}

fn mix(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(0x0100_0000_01b3)
}

fn block_sum(bytes: &[u8]) -> u32 {
    let sum = checksum(bytes);
    (sum ^ sum >> 32) as u32
}

/// A number in as few groups of seven bits as it needs, the lowest first.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number that [`put`] wrote.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A number with a sign, such that what is near zero is short.
#[inline]
pub(crate) fn folded(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// Takes back [`folded`].
#[inline]
pub(crate) fn unfolded(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_back_however_long_it_is() {
        for number in [0, 1, -1, 63, 64, -65, 300, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put(&mut bytes, folded(number));
            let mut rest = &bytes[..];
            assert_eq!(take(&mut rest).map(unfolded), Some(number));
            assert!(rest.is_empty());
        }
        assert_eq!(take(&mut &[0x80; 20][..]), None);
        assert_eq!(take(&mut &[0x80][..]), None);
    }

    #[test]
    fn a_block_comes_back_from_memory_and_from_a_file_and_a_damaged_one_does_not() {
        let file = tempfile::tempfile().expect("a file");
        let lent = Lent::new(file.try_clone().expect("another handle"));
        let mut spill = Spill::to(lent, 3);
        let (mut memory, mut room) = (Spill::default(), Vec::new());
        let contents: Vec<Vec<u8>> = (0..200u8).map(|n| vec![n; usize::from(n) * 70]).collect();
        let kept: Vec<Kept> = contents.iter().map(|one| spill.keep(one)).collect();
        spill.flush();
        for (content, kept) in contents.iter().zip(&kept) {
            assert_eq!(kept.read(&mut room), Some(&content[..]));
            assert_eq!(memory.keep(content).read(&mut room), Some(&content[..]));
        }
        file.write_all_at(&[7], 3 + 70 + 10).expect("one byte");
        let damaged = |kept: &Kept| kept.read(&mut Vec::new()).is_none();
        let damaged: Vec<bool> = kept.iter().map(damaged).collect();
        assert_eq!(damaged.iter().filter(|damaged| **damaged).count(), 1);
    }

    #[test]
    fn what_a_full_disk_does_not_take_stays_in_memory() {
        let full = File::options().read(true).write(true).open("/dev/full");
        let mut spill = Spill::to(Lent::new(full.expect("it is there")), 0);
        let first = spill.keep(b"before it is known");
        spill.flush();
        let second = spill.keep(b"behind that");
        let mut room = Vec::new();
        assert_eq!(first.read(&mut room), Some(&b"before it is known"[..]));
        assert_eq!(second.read(&mut room), Some(&b"behind that"[..]));
        assert!(spill.finish().is_err());
    }
}
