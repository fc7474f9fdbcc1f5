//! The file below a stream. Packets reach it in pieces that cost the page cache little.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use event::Result;
use rustix::fs::{FallocateFlags, fallocate};

use super::write_error;

/// Pieces end at multiples of this: the page cache fills whole blocks of pages then, each in one
/// go, and no page twice. Not more than this: a kernel that does not preempt itself copies as much
/// in one go as the file system has in a folio, up to megabytes, and a task of any priority waits
/// for that.
const PIECE_BYTES: u64 = 64 * 1024;
/// A file that is so large has room reserved ahead: a write finds its blocks there, and need not
/// account for each. Smaller ones end soon.
const RESERVED_FROM_BYTES: u64 = 1 << 20;
/// Of a file's size, so much is reserved at once: one part in this many, and at most so much.
const RESERVED_PARTS: u64 = 4;
const RESERVED_BYTES_MAX: u64 = 16 << 20;

/// A stream's file, to whose end whole packets are added.
#[derive(Debug)]
pub(super) struct Storage {
    file: File,
    size_bytes: u64,
    /// Up to where blocks are reserved; at least the size. None where that cannot be done.
    reserved_bytes: Option<u64>,
}

impl Storage {
    /// A new file.
    pub fn create(path: &Path) -> Result<Storage> {
        let mut options = File::options();
        // Read by `take_from` alone.
        let file = options.read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|cause| write_error(path, cause))?;
        Ok(Storage {
            file,
            size_bytes: 0,
            reserved_bytes: Some(0),
        })
    }

    /// The size of the file.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Adds a packet, or after an error nothing: half of one would spoil those before it.
    pub fn append(&mut self, packet: &[u8]) -> std::io::Result<()> {
        self.reserve(packet.len() as u64);
        let first = PIECE_BYTES - self.size_bytes % PIECE_BYTES;
        let (first, others) = packet.split_at(packet.len().min(first as usize));
        let mut pieces = std::iter::once(first).chain(others.chunks(PIECE_BYTES as usize));
        let written = pieces.try_for_each(|piece| self.file.write_all(piece));
        match written {
            Ok(()) => self.size_bytes += packet.len() as u64,
            Err(_) => {
                // That it cannot be cut off is no news.
                let _ = self.file.set_len(self.size_bytes);
                let _ = self.file.seek(SeekFrom::Start(self.size_bytes));
            }
        }
        written
    }

    /// Takes all from `offset` on, where a packet begins, out of the file again. Gives its bytes,
    /// and what was reserved behind them goes back.
    pub fn take_from(&mut self, offset: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.size_bytes.saturating_sub(offset) as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        self.file.set_len(offset)?;
        self.file.seek(SeekFrom::Start(offset))?;
        (self.size_bytes, self.reserved_bytes) = (offset, Some(offset));
        Ok(bytes)
    }

    /// Reserves blocks for `more` bytes, and some beyond. Without them writing goes on as well.
    fn reserve(&mut self, more: u64) {
        let end = self.size_bytes + more;
        let reserved = self.reserved_bytes.filter(|reserved| *reserved < end);
        let Some(reserved) = reserved.filter(|_| end > RESERVED_FROM_BYTES) else {
            return;
        };
        let begin = reserved.max(self.size_bytes);
        let ahead = (end / RESERVED_PARTS).min(RESERVED_BYTES_MAX);
        let end = (end + ahead).next_multiple_of(PIECE_BYTES);
        let done = fallocate(&self.file, FallocateFlags::KEEP_SIZE, begin, end - begin);
        self.reserved_bytes = done.is_ok().then_some(end);
    }
}

/// What was reserved and not used goes back.
impl Drop for Storage {
    fn drop(&mut self) {
        if self.reserved_bytes.is_none_or(|end| end > self.size_bytes) {
            let _ = self.file.set_len(self.size_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn check(sizes: &[usize]) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stream");
        let mut storage = Storage::create(&path).expect("a file");
        let mut expect = Vec::new();
        for (place, size) in sizes.iter().enumerate() {
            let packet = vec![place as u8 + 1; *size];
            storage.append(&packet).expect("room");
            expect.extend(packet);
            assert_eq!(storage.size_bytes(), expect.len() as u64);
        }
        drop(storage);
        assert_eq!(std::fs::read(&path).expect("a file"), expect);
        let used_bytes = std::fs::metadata(&path).expect("a file").blocks() * 512;
        let most = (expect.len() as u64).next_multiple_of(PIECE_BYTES);
        assert!(
            used_bytes <= most,
            "{used_bytes} bytes for {}",
            expect.len()
        );
    }

    #[test]
    fn packets_of_any_size_follow_each_other_and_no_block_is_kept_beyond_them() {
        check(&[]);
        check(&[1]);
        check(&[100, 65_536, 3]);
        check(&[65_436, 100, 65_536]);
        check(&[524_000; 20]);
    }

    #[test]
    fn a_packet_that_does_not_fit_leaves_those_before_it() {
        let file = File::options().write(true).open("/dev/full");
        let mut storage = Storage {
            file: file.expect("the device that is always full"),
            size_bytes: 0,
            reserved_bytes: Some(0),
        };
        let refused = storage.append(&[1; 100]).expect_err("no room");
        assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
        assert_eq!(storage.size_bytes(), 0);
    }
}
